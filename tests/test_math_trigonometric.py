"""Trigonometric functions: far from zero, next to their zeros and poles, at special values."""

from __future__ import annotations

import numpy as np
import pytest

from tests import math_checking
from tests.math_checking import check, results
from tinyfuse.dtypes import FLOAT32, FLOAT64, FLOATING

by_dtype = pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
by_function = pytest.mark.parametrize("name", ["sin", "cos", "tan"])
needs_quadmath = pytest.mark.skipif(
    not math_checking.can_check(), reason="needs gcc and libquadmath, which have __float128"
)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def neighbours(x: np.ndarray, count: int = 3) -> np.ndarray:
    """The values, and so many next to each on both sides."""
    found = [x]
    for end in (-np.inf, np.inf):
        near = x
        for _ in range(count):
            with np.errstate(over="ignore"):
                near = np.nextafter(near, x.dtype.type(end))
            found.append(near)
    return np.concatenate(found)


# Every exponent


@needs_quadmath
@by_function
@by_dtype
def test_all_exponents(name: str, dtype: np.dtype) -> None:
    """Each power of two with what is next to it, and some values between it and the next one."""
    limits, random = np.finfo(dtype), np.random.default_rng(0)
    powers = np.ldexp(dtype.type(1), np.arange(limits.minexp - limits.nmant, limits.maxexp))
    between = np.concatenate([powers * dtype.type(1 + random.random()) for _ in range(20)])
    x = np.concatenate([neighbours(powers), between])
    report = check(name, [np.concatenate([x, -x])])
    assert not report.failed, report


@needs_quadmath
@by_function
@pytest.mark.parametrize("end", [47, 75, 102, 128])
def test_where_the_constants_change(name: str, end: int) -> None:
    """Towards the end of the exponents that one constant serves, quotients are least exact."""
    below = np.float32(np.ldexp(1 - 2.0**-24, end)).view(np.uint32)
    x = (below - 13 * np.arange(300_000, dtype=np.uint32)).view(FLOAT32)
    report = check(name, [np.concatenate([x, -x])])
    assert not report.failed, report


@by_dtype
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_no_value_is_beyond_one(name: str, dtype: np.dtype) -> None:
    quarters = (np.arange(-20_000, 20_000) * (np.pi / 2)).astype(dtype)
    assert np.abs(results(name, [neighbours(quarters, 5)])).max() == 1


# Of all floats and doubles, those nearest to a multiple of pi / 2 (J.-M. Muller, Elementary
# Functions, 2016, chapter 11).
NEAREST = {FLOAT32: 16367173 * 2.0**72, FLOAT64: 6381956970095103 * 2.0**797}


@needs_quadmath
@by_function
@by_dtype
def test_nearest_to_a_multiple_of_a_quarter_turn(name: str, dtype: np.dtype) -> None:
    x = np.array([NEAREST[dtype], -NEAREST[dtype]], dtype)
    report = check(name, [x])
    assert not report.failed, report
    assert np.abs(results("cos", [x])).min() < 1e-8


@needs_quadmath
@by_function
@by_dtype
def test_next_to_zeros_and_poles(name: str, dtype: np.dtype) -> None:
    quarters = np.concatenate([np.arange(1.0, 200), np.arange(1.0, 200) * 2.0**20])
    report = check(name, [neighbours((quarters * (np.pi / 2)).astype(dtype))])
    assert not report.failed, report


# Special values


@by_dtype
@pytest.mark.parametrize("name", ["sin", "tan", "arcsin", "arctan"])
def test_zeros_keep_their_sign(name: str, dtype: np.dtype) -> None:
    zeros = np.array([0.0, -0.0], dtype)
    assert same_bits(results(name, [zeros]), zeros)


@by_dtype
@pytest.mark.parametrize("name", ["sin", "tan", "arcsin", "arctan"])
def test_tiny_values_stay(name: str, dtype: np.dtype) -> None:
    limits = np.finfo(dtype)
    x = np.array([limits.smallest_subnormal, limits.tiny * 0.75, -limits.tiny, 1e-20], dtype)
    assert same_bits(results(name, [x]), x)


@by_dtype
def test_what_has_no_value_is_nan(dtype: np.dtype) -> None:
    infinite = np.array([np.inf, -np.inf, np.nan], dtype)
    for name in ("sin", "cos", "tan"):
        assert np.isnan(results(name, [infinite])).all()
    outside = np.array([np.nextafter(dtype.type(1), dtype.type(2)), -2, np.inf, np.nan], dtype)
    for name in ("arcsin", "arccos"):
        assert np.isnan(results(name, [outside])).all()


@by_dtype
def test_ends_of_the_inverses(dtype: np.dtype) -> None:
    ends = np.array([-1, 1], dtype)
    turn = np.array([-np.pi / 2, np.pi / 2], dtype)
    assert same_bits(results("arcsin", [ends]), turn)
    assert same_bits(results("arccos", [ends]), np.array([np.pi, 0], dtype))
    assert same_bits(results("arctan", [np.array([-np.inf, np.inf], dtype)]), turn)


INF, NAN, PI = np.inf, np.nan, np.pi
ANGLES = [  # C99, annex F: x, and the angles for y of 0, 1, infinity, NaN
    (0.0, 0, PI / 2, PI / 2, NAN),
    (-0.0, PI, PI / 2, PI / 2, NAN),
    (1.0, 0, PI / 4, PI / 2, NAN),
    (-1.0, PI, 3 * PI / 4, PI / 2, NAN),
    (INF, 0, 0, PI / 4, NAN),
    (-INF, PI, PI, 3 * PI / 4, NAN),
    (NAN, NAN, NAN, NAN, NAN),
]


@by_dtype
@pytest.mark.parametrize("angles", ANGLES, ids=lambda angles: str(angles[0]))
def test_angles_of_special_points(angles: tuple[float, ...], dtype: np.dtype) -> None:
    y, x = np.array([0, 1, INF, NAN], dtype), np.full(4, angles[0], dtype)
    expected = np.array(angles[1:], dtype)
    for sign in (1, -1):
        got = results("arctan2", [np.copysign(y, dtype.type(sign)), x])
        assert np.array_equal(got, sign * expected, equal_nan=True)
        assert (np.signbit(got) == (sign < 0))[~np.isnan(got)].all()


@needs_quadmath
@by_dtype
def test_angles_at_the_ends_of_the_range(dtype: np.dtype) -> None:
    """Neither sums nor quotients nor reciprocals overflow, or lose what is subnormal."""
    limits = np.finfo(dtype)
    ends = [limits.max, limits.max / 2, limits.tiny, limits.tiny / 2, limits.smallest_subnormal]
    y, x = np.meshgrid(*[neighbours(np.array([*ends, 1, 3], dtype), 2)] * 2)
    report = check("arctan2", [y.ravel(), x.ravel()])
    assert not report.failed, report
