"""Textbook programs under `tinyfuse.jit`: the results and the caller's arrays are numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.textbook import PROGRAMS, Program
from tinyfuse import jit
from tinyfuse.testing import difference
from tinyfuse.tree import flatten

# Programs that need what is not there yet, with the reason; strict, so that none is forgotten here.
MISSING: dict[str, str] = {}


def arguments(program: Program) -> tuple[Any, ...]:
    return program.arguments(np.random.default_rng(20))


def leaves(result: Any, args: tuple[Any, ...]) -> list[Any]:
    """What a call returns, then its arguments as they are afterwards."""
    return flatten((result, args))[0]


def assert_same(expected: list[Any], found: list[Any], steps: int | None) -> None:
    """To the bit, or floats within so many roundings of the largest magnitude."""
    assert len(found) == len(expected)
    for want, have in zip(expected, found, strict=True):
        if steps is None or np.asarray(want).dtype.kind != "f":
            assert difference(want, have) is None
        else:
            assert (have.dtype, have.shape) == (want.dtype, want.shape)
            bound = steps * np.finfo(want.dtype).eps * max(np.abs(want).max(initial=0), 1)
            np.testing.assert_allclose(have, want, rtol=0, atol=bound)


def parameters() -> list[Any]:
    return [
        pytest.param(
            name, marks=[pytest.mark.xfail(reason=MISSING[name])] if name in MISSING else []
        )
        for name in PROGRAMS
    ]


@pytest.mark.parametrize("name", parameters())
def test_results_and_arguments(name: str):
    program = PROGRAMS[name]
    compiled = jit(program.function)
    for _ in range(2):  # the second call compiles nothing
        args, given = arguments(program), arguments(program)
        expected = leaves(program.function(*args), args)
        found = leaves(compiled(*given), given)
        assert_same(expected, found, program.steps)
    assert compiled.cache_info().currsize == 1


def test_they_write():
    """Most of them change what they are given; all are there that the list promises."""
    changed = []
    for name, program in PROGRAMS.items():
        args = arguments(program)
        program.function(*args)
        before, after = leaves(None, arguments(program)), leaves(None, args)
        if any(difference(a, b) is not None for a, b in zip(before, after, strict=True)):
            changed.append(name)
    assert len(PROGRAMS) == 25
    assert len(changed) == 15, changed


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in MISSING])
def test_arguments_in_another_layout(name: str):
    """Written arrays with gaps and reversed axes get the same elements."""
    program = PROGRAMS[name]
    args, given = arguments(program), tuple(map(spread, arguments(program)))
    expected = leaves(program.function(*args), args)
    found = leaves(jit(program.function)(*given), given)
    assert_same(expected, found, program.steps)


def spread(value: Any) -> Any:
    """The same array, every other element of a larger one that lies in memory backwards."""
    if not isinstance(value, np.ndarray):
        return value
    base = np.zeros((*value.shape[:-1], 2 * value.shape[-1]), value.dtype)
    view = np.flip(base)[..., ::2]
    view[...] = value
    return view
