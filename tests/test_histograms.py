"""Histograms: numpy's counts and edges, for bins that are known or given as edges."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.test_trace_functions import DTYPES, compare, sample
from tinyfuse.errors import (
    DataDependentShapeError,
    InvalidArgumentError,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FUNCTIONS: list[Callable[..., Any]] = [
    lambda x: np.histogram(x, bins=7, range=(-3, 3)),
    lambda x: np.histogram(x, range=(0.1, 0.7)),
    lambda x: np.histogram(x, 100, (-10, 90)),
    lambda x: np.histogram(x, 5, (0, 1), density=True),
    lambda x: np.histogram(x, 4, (2, 2)),
    lambda x: np.histogram(x, 4, (3, 2)),
    lambda x: np.histogram(x, 0, (1, 2)),
    lambda x: np.histogram(x, 3, (-np.inf, 2)),
    lambda x: np.histogram(x, [-2, 0, 0, 1.5, 4]),
    lambda x: np.histogram(x, np.arange(50)),
    lambda x: np.histogram(x, np.array([0, 0.1, 0.2, 5], np.float32), density=True),
    lambda x: np.histogram(x, [3, 2, 1]),
    lambda x: np.histogram(x, np.ones((2, 2))),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_histograms_of_all_dtypes_and_shapes(function: Callable[..., Any]) -> None:
    for dtype in DTYPES:
        for shape in [(300,), (12, 20), (0,), ()]:
            compare(function, sample(shape, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_values_at_the_edges(dtype: str) -> None:
    """Positions that are computed fall on the wrong side of some of these."""
    for count, limits in [(10, (0.0, 1.0)), (7, (-3, 11)), (30, (0.1, 0.4)), (3, (-1, 2))]:
        edges = np.linspace(*limits, count + 1)
        near = [edges, np.nextafter(edges, 99), np.nextafter(edges, -99)]
        x = np.concatenate(near).astype(dtype)
        compare(lambda x: np.histogram(x, count, limits), x)  # noqa: B023
        compare(lambda x: np.histogram(x, edges), x)  # noqa: B023


def test_compiled() -> None:
    counted = tinyfuse.jit(lambda x, edges: (np.histogram(x, 8, (-2, 2)), np.histogram(x, edges)))
    x = np.append(np.random.default_rng(0).standard_normal(5000), [np.nan, np.inf, -2, 2])
    edges = np.array([-1.0, 0, 0.5, 3])
    (first, first_edges), (second, second_edges) = counted(x, edges)
    np.testing.assert_array_equal(first, np.histogram(x, 8, (-2, 2))[0])
    np.testing.assert_array_equal(first_edges, np.linspace(-2, 2, 9))
    np.testing.assert_array_equal(second, np.histogram(x, edges)[0])
    assert second_edges is edges
    with pytest.raises(InvalidArgumentError, match="`bins` must increase monotonically"):
        counted(x, edges[::-1])


@pytest.mark.parametrize(
    ("function", "error", "remedy"),
    [
        (lambda x: np.histogram(x, "auto"), DataDependentShapeError, "decide: pass a number"),
    ],
)
def test_what_is_refused_has_a_remedy(function: Any, error: type, remedy: str) -> None:
    with pytest.raises(error, match=re.escape(remedy)):
        tinyfuse.jit(function)(np.arange(6.0))


def test_bins_are_found_by_vectors():
    """No place is hidden from the compiler: that is needed where conditions are added up."""
    x = np.linspace(-5, 5, 100_000)
    text = tinyfuse.jit(lambda x: np.histogram(x, 50, (-4.0, 4.0))[0]).lower(x).as_text("c")
    assert "tf_place" not in text
    assert "minimum - 1 : minimum" in text
