"""Reductions as they run: the same bits however loops are cut, errors no larger than numpy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.testing import Case, Ladder, Variant
from tinyfuse.testing.variants import fused, random, unfused

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# The same bits: 1, 2, 3 and 7 threads, and random tilings

SHAPES = [
    ((5000,), None),  # full, in blocks
    ((40, 130), None),
    ((300, 7), 0),  # outer, in blocks of rows
    ((9, 2500), 0),  # outer, in tiles of columns
    ((6, 150, 20), 1),  # middle
    ((70, 20, 3), (0, 2)),  # not side by side
    ((9, 1100), 1),  # rows in blocks
    ((70, 300), 1),  # rows of lanes
    ((90, 10), 1),  # short rows
    ((60, 33), 1),  # of half as many lanes, all of them but one in one turn
    ((60, 63), 1),
    ((60, 65), 1),
    ((60, 127), 1),
    ((90, 3), -1),
    ((1, 64, 1), 1),
]
FUNCTIONS = ["sum", "prod", "max", "nanmin", "any", "argmax", "var"]
VARIANTS = [
    Variant("unfused C", unfused, pieces=(1, 3)),
    Variant("fused C", fused, pieces=(1, 2, 3, 7)),
    Variant("C of a random schedule", random(1), pieces=(1, 7)),
    Variant("C of another random schedule", random(2), pieces=(2, 3)),
]


def reduction(name: str, shape: tuple[int, ...], axis: Any) -> Case:
    function = getattr(np, name)
    if name == "argmax" and isinstance(axis, tuple):
        axis = None
    x = drawn("normal", shape)
    if name == "prod":
        x = (x * 9).astype(np.int16)
    return Case(lambda x: function(x, axis=axis), [x], f"{name} {shape} {axis}", exact=False)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_schedule_and_number_of_threads(name: str) -> None:
    cases = [reduction(name, shape, axis) for shape, axis in SHAPES]
    Ladder(VARIANTS, lambda case: False).climb(cases).check()


# Accuracy of sums in float32


def drawn(distribution: str, shape: tuple[int, ...]) -> np.ndarray:
    generator = np.random.default_rng(7)
    x = {
        "uniform": lambda: generator.random(shape),
        "normal": lambda: generator.standard_normal(shape),
        "lognormal": lambda: generator.lognormal(0, 3, shape),
        "tenths": lambda: np.full(shape, 0.1),
        "shifted": lambda: 1000 + generator.standard_normal(shape),
        "growing": lambda: np.sort(generator.random(shape)),
    }[distribution]()
    return x.astype(np.float32)


def largest_error(found: np.ndarray, x: np.ndarray, axis: int) -> float:
    """Of the sums along an axis, relative to the sum of magnitudes."""
    return max(errors(found, np.moveaxis(x, axis, -1)))


def errors(found: np.ndarray, rows: np.ndarray) -> list[float]:
    """Of the sum of each row, relative to the sum of its magnitudes."""
    exact = [math.fsum(row) for row in rows.astype(float)]
    size = [math.fsum(np.abs(row)) for row in rows.astype(float)]
    pairs = zip(found.tolist(), exact, size, strict=True)
    return [abs(value - sum_) / magnitude for value, sum_, magnitude in pairs]


DISTRIBUTIONS = ["uniform", "normal", "lognormal", "tenths", "shifted", "growing"]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(("shape", "axis"), [((40, 20000), 1), ((20000, 40), 0), ((400, 700), 1)])
def test_sums_are_no_less_accurate_than_numpys(
    distribution: str, shape: tuple[int, ...], axis: int
) -> None:
    x = drawn(distribution, shape)
    ours = largest_error(tinyfuse.jit(lambda x: x.sum(axis=axis))(x), x, axis)
    theirs, eps = largest_error(x.sum(axis=axis), x, axis), float(np.finfo(np.float32).eps)
    assert ours <= max(theirs, eps)  # below one unit of the sum's last place, it is luck
    assert ours <= 16 * eps


@pytest.mark.parametrize("length", [32, 40, 48, 63])
def test_sums_of_short_rows_are_no_less_accurate_than_numpys(length: int) -> None:
    """On average: of the largest of so small errors, luck decides."""
    compiled = tinyfuse.jit(lambda x: x.sum(axis=1))
    ours = theirs = 0.0
    for distribution in DISTRIBUTIONS:
        x = drawn(distribution, (3000, length))
        ours += sum(errors(compiled(x), x))
        theirs += sum(errors(x.sum(axis=1), x))
    assert ours <= theirs


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.dot(x, x),
        lambda x: x.reshape(1, -1) @ x.reshape(-1, 1),
        lambda x: np.einsum("i,i->", x, x),
        lambda x: np.sum(x * x),
        lambda x: np.mean(x) * np.float32(x.size),
    ],
)
def test_contractions_count_2_to_the_25_ones(function: Callable[[Any], Any]) -> None:
    ones = np.ones(1 << 25, np.float32)
    assert np.squeeze(tinyfuse.jit(function)(ones)) == 33554432


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
def test_extremes_of_zeros_infinities_and_nan(name: str, dtype: str) -> None:
    compiled = tinyfuse.jit(lambda x: getattr(np, name)(x, axis=1))
    inf, nan, tiny = np.inf, np.nan, np.finfo(dtype).smallest_subnormal
    rows = [
        [-0.0, 0.0, -0.0, 0.0],
        [-0.0, -0.0, -0.0, -0.0],
        [-tiny, tiny, 0.0, -0.0],
        [-inf, -inf, -inf, -inf],
        [inf, inf, inf, inf],
        [nan, 1.0, -inf, inf],
        [1.0, -nan, -inf, inf],
        [nan, -nan, nan, -nan],
        [-1.0, -2.0, -3.0, -nan],
    ]
    found = compiled(np.array(rows, dtype)).tolist()
    expected = {
        "max": [0.0, -0.0, tiny, -inf, inf, nan, nan, nan, nan],
        "min": [-0.0, -0.0, -tiny, -inf, inf, nan, nan, nan, nan],
        "nanmax": [0.0, -0.0, tiny, -inf, inf, inf, inf, nan, -1.0],
        "nanmin": [-0.0, -0.0, -tiny, -inf, inf, -inf, -inf, nan, -3.0],
    }
    assert str(found) == str([float(value) for value in expected[name]])


@pytest.mark.parametrize("length", [1, 10, 256, 257, 1025, 16385, 40000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_places_of_extremes(dtype: str, length: int) -> None:
    """The first one wins, also among zeros of both signs; NaN before all others."""
    generator = np.random.default_rng(length)
    x = np.zeros((4, length), dtype)
    if dtype.startswith("float"):
        x[0] = generator.standard_normal(length)
        x[1] = np.where(generator.random(length) < 0.5, 0.0, -0.0)
        x[2] = generator.standard_normal(length)
        x[2, length * 2 // 3 :: 7] = -np.nan
        x[2, length * 3 // 4 :: 5] = np.nan
        x[3] = -np.inf
    else:
        x[0] = generator.integers(0, 2, length)
        x[1, length // 2 :] = 1
        x[2] = 1
    for name in ("argmax", "argmin"):
        compiled = tinyfuse.jit(lambda x, name=name: (getattr(x, name)(axis=1), getattr(x, name)()))
        rows, flat = compiled(x)
        assert rows.tolist() == getattr(x, name)(axis=1).tolist()
        assert flat == getattr(x, name)()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2, 3, 5, 8, 16, 40])
def test_sums_of_what_conditions_pick(columns: int, dtype: type) -> None:
    """As optimized as calls are: gcc 12 mixes up loads behind several conditions in one sum."""
    random = np.random.default_rng(columns)
    x = random.integers(-8, 8, (61, columns)).astype(dtype)
    groups = random.integers(0, 3, 61)

    def totals(groups, x):
        picked = np.where((groups == 1)[:, None], x, 0)
        others = np.where((groups == 2)[:, None], x, 1)
        few = np.where((groups == 0)[:, None], x, 0)[:60]
        return picked.sum(axis=0), others.sum(axis=0), few.reshape(20, 3, -1).sum(axis=(1, 2))

    for found, expected in zip(tinyfuse.jit(totals)(groups, x), totals(groups, x), strict=True):
        np.testing.assert_array_equal(found, expected)
