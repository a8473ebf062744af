"""Random programs of views and writes: the graph and the compiled function against numpy."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinyfuse
from tests.trace_checking import assert_same, check, twin
from tests.write_programs import programs


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def square(draw: Any) -> np.ndarray:
    """4 by 4, in one of many layouts."""
    random = np.random.default_rng(draw(st.integers(0, 5)))
    memory = random.integers(-3, 4, (8, 8)).astype(np.float64)
    layouts = [
        memory[:4, :4].copy(),
        memory[:4, :4],
        memory[::2, ::2].T,
        memory[3::-1, :4],
        np.asfortranarray(memory[:4, :4]),
    ]
    return layouts[draw(st.integers(0, len(layouts) - 1))]


@st.composite
def arguments(draw: Any) -> list[Any]:
    """Two arrays: perhaps the same, of two dtypes, or with one axis."""
    x, y = square(draw), square(draw)
    kind = draw(st.integers(0, 4))
    return [x, [x, y, y.astype(np.int64), y.reshape(-1)[:8], y.astype(np.float32)][kind]]


quickly = settings(
    deadline=None, database=None, suppress_health_check=list(HealthCheck), max_examples=300
)


@quickly
@given(programs(arguments()))
def test_graphs(program: tuple[str, Any, list[Any]]) -> None:
    _, function, args = program
    check(function, *args)


@settings(quickly, max_examples=25)
@given(programs(arguments(), 7))
def test_compiled_functions(program: tuple[str, Any, list[Any]]) -> None:
    text, function, args = program
    expected_in, found_in = twin(args), twin(args)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = function(*expected_in)
        found = tinyfuse.jit(function)(*found_in)
    assert_same(found, expected)
    assert_same(found_in, expected_in)
    if "diagonal" not in text:
        _require_the_same_memory(found, found_in, expected, expected_in)


def _require_the_same_memory(
    found: Any, found_in: list[Any], expected: Any, expected_in: list[Any]
) -> None:
    """Results that are an argument, or a view of one, are that here as well."""
    for have, want in zip(found, expected, strict=True):
        for given_here, given_there in zip(found_in, expected_in, strict=True):
            if want is given_there:
                assert have is given_here
            if isinstance(want, np.ndarray):
                shared = np.shares_memory(have, given_here)
                assert shared == np.shares_memory(want, given_there)
