"""Special functions and roots: at poles and zeros, at the ends of the range, at special values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests import math_checking
from tests.math_checking import check, results
from tinyfuse.dtypes import FLOAT32, FLOAT64, FLOATING

by_dtype = pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
needs_quadmath = pytest.mark.skipif(
    not math_checking.can_check(), reason="needs gcc and libquadmath, which have __float128"
)
INF, NAN = np.inf, np.nan


def same(got: np.ndarray, expected: object) -> bool:
    """Whether the values are those, also the signs of zeros."""
    wanted = np.asarray(expected, got.dtype)
    numbers = ~np.isnan(wanted)
    signs = np.signbit(got)[numbers] == np.signbit(wanted)[numbers]
    return np.array_equal(got, wanted, equal_nan=True) and bool(signs.all())


def value(name: str, x: object, dtype: np.dtype) -> np.ndarray:
    return results(name, [np.array(x, dtype)])


# Roots


@by_dtype
def test_roots_of_cubes_are_exact(dtype: np.dtype) -> None:
    roots = np.arange(-200, 201)
    assert same(value("cbrt", roots**3, dtype), roots)
    assert same(value("cbrt", [0.0, -0.0, INF, -INF, NAN], dtype), [0.0, -0.0, INF, -INF, NAN])


@by_dtype
def test_lengths_of_whole_triangles_are_exact(dtype: np.dtype) -> None:
    m, n = np.meshgrid(np.arange(2, 30), np.arange(1, 29))
    a, b = abs(m * m - n * n).ravel().astype(dtype), (2 * m * n).ravel().astype(dtype)
    length = (m * m + n * n).ravel().astype(dtype)
    limits = np.finfo(dtype)
    for scale in (1, np.ldexp(dtype.type(1), limits.maxexp - 12), 4 * limits.smallest_subnormal):
        assert same(results("hypot", [a * scale, -b * scale]), length * scale)


@by_dtype
def test_an_infinite_side_is_longer_than_any(dtype: np.dtype) -> None:
    x = np.array([INF, -INF, NAN, 1, NAN, 1], dtype)
    y = np.array([NAN, 1, -INF, INF, 1, NAN], dtype)
    assert same(results("hypot", [x, y]), [INF, INF, INF, INF, NAN, NAN])
    zeros = np.array([0.0, -0.0], dtype)
    assert same(results("hypot", [zeros, zeros]), [0.0, 0.0])


# The error function


@by_dtype
def test_limits_of_the_error_function(dtype: np.dtype) -> None:
    assert same(value("erf", [0.0, -0.0, INF, -INF, 30, NAN], dtype), [0.0, -0.0, 1, -1, 1, NAN])
    assert same(value("erfc", [0.0, -0.0, INF, -INF, 30, NAN], dtype), [1, 1, 0.0, 2, 0.0, NAN])


@by_dtype
def test_tiny_arguments_of_the_error_function(dtype: np.dtype) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    assert same(value("erf", [tiny, -tiny], dtype), [tiny, -tiny])  # 2 / sqrt(pi) of it, rounded
    assert same(value("erfc", [tiny, -tiny], dtype), [1, 1])


@needs_quadmath
@by_dtype
def test_complement_down_to_the_smallest_number(dtype: np.dtype) -> None:
    end = {FLOAT32: 10.06, FLOAT64: 27.23}[dtype]
    report = check("erfc", [np.linspace(0.8 * end, 1.01 * end, 20_001, dtype=dtype)])
    assert not report.failed, report
    assert 0 < value("erfc", [end - 0.01], dtype)[0] < np.finfo(dtype).tiny


@needs_quadmath
@by_dtype
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_where_the_pieces_meet(name: str, dtype: np.dtype) -> None:
    ends = np.array([0.5, 0.9, 3.93, 6, 10.1, 27.3], dtype)
    x = (ends[:, None] + np.arange(-500, 501) * np.spacing(ends)[:, None]).ravel()
    report = check(name, [np.concatenate([x, -x])])
    assert not report.failed, report


# The gamma function


@by_dtype
def test_factorials(dtype: np.dtype) -> None:
    n = np.arange(1, 15)
    factorials = np.array([math.factorial(k - 1) for k in n], dtype)
    assert np.abs(value("gamma", n, dtype) / factorials - 1).max() <= np.finfo(dtype).eps


@by_dtype
def test_poles(dtype: np.dtype) -> None:
    whole = [-1, -2, -3, -40, -170, -1e6, -INF, NAN]
    assert same(value("gamma", whole, dtype), [NAN] * 8)
    assert same(value("gamma", [0.0, -0.0, INF], dtype), [INF, -INF, INF])
    assert same(value("gammaln", [0.0, -0.0, -1, -2, -1e6, INF], dtype), [INF] * 6)
    assert same(value("gammaln", [-INF, NAN], dtype), [-INF, NAN])


@needs_quadmath
@by_dtype
@pytest.mark.parametrize("name", ["gamma", "gammaln"])
def test_next_to_poles(name: str, dtype: np.dtype) -> None:
    poles = -np.arange(40).astype(dtype)
    near = np.concatenate([np.nextafter(poles, dtype.type(end)) for end in (-INF, INF)])
    x = np.concatenate([near, *[poles + dtype.type(0.5**k) for k in range(2, 20)]])
    report = check(name, [x])
    assert not report.failed, report


@needs_quadmath
@by_dtype
def test_signs_between_poles_down_to_zero(dtype: np.dtype) -> None:
    end = {FLOAT32: 45, FLOAT64: 190}[dtype]
    x = -np.arange(0.5, end)
    report = check("gamma", [x.astype(dtype)])
    assert not report.failed, report
    assert same(value("gamma", [-1000.5, -1001.5], dtype), [-0.0, 0.0])


@needs_quadmath
@by_dtype
def test_where_results_overflow(dtype: np.dtype) -> None:
    ends = {FLOAT32: (35.04010009765625, 4.0850034e36), FLOAT64: (171.6243769563027, 2.55634e305)}
    for name, end in zip(("gamma", "gammaln"), ends[dtype], strict=True):
        near = 1 + np.arange(-500, 501) * np.finfo(dtype).eps
        factors = np.concatenate([near, np.linspace(0.9, 1, 1000)])
        report = check(name, [dtype.type(end) * factors.astype(dtype)])
        assert not report.failed, report
    assert same(value("gamma", [np.finfo(dtype).max], dtype), [INF])
    assert same(value("gammaln", [np.finfo(dtype).max], dtype), [INF])


@needs_quadmath
@by_dtype
def test_zeros_of_the_logarithm(dtype: np.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The relative error around 1 and 2; those between poles are only absolutely accurate."""
    assert same(value("gammaln", [1, 2], dtype), [0.0, 0.0])
    monkeypatch.setitem(math_checking.NEAR_ZERO, "gammaln", 0.0)
    distances = np.logspace(-15, 0, 10_000)
    x = np.concatenate([1 + distances, 1 - distances, 2 + distances, 2 - distances])
    x = x[(x > 0) & (x != 1) & (x != 2)].astype(dtype)
    report = check("gammaln", [x[(x != 1) & (x != 2)]])
    assert not report.failed, report
