"""Exponentials, logarithms, powers, remainders: special and exact values, and where pieces meet."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.math_checking import landmarks, loops_library, results, samples
from tinyfuse.dtypes import FLOAT32, FLOAT64, FLOATING, INT64
from tinyfuse.runtime.library import load
from tinyfuse.runtime.numerics import Loop

INF, NAN = np.inf, np.nan
by_dtype = pytest.mark.parametrize("dtype", FLOATING, ids=str)


def call(name: str, dtype: np.dtype, *operands: object) -> np.ndarray:
    broadcast = np.broadcast_arrays(*[np.array(operand, dtype) for operand in operands])
    return results(name, [np.ascontiguousarray(each).ravel() for each in broadcast])


def assert_are(got: np.ndarray, expected: list[float]) -> None:
    """The same numbers, with the same signs of zeros."""
    want = np.array(expected, got.dtype)
    assert np.array_equal(got, want, equal_nan=True), (got, want)
    assert np.array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@by_dtype
@pytest.mark.parametrize(
    ("name", "limits"),
    {
        "exp": (1, 1, 0, INF),
        "exp2": (1, 1, 0, INF),
        "expm1": (0.0, -0.0, -1, INF),
        "log": (-INF, -INF, NAN, INF),
        "log2": (-INF, -INF, NAN, INF),
        "log10": (-INF, -INF, NAN, INF),
        "log1p": (0.0, -0.0, NAN, INF),
        "sinh": (0.0, -0.0, -INF, INF),
        "cosh": (1, 1, INF, INF),
        "tanh": (0.0, -0.0, -1, 1),
        "arcsinh": (0.0, -0.0, -INF, INF),
        "arccosh": (NAN, NAN, NAN, INF),
        "arctanh": (0.0, -0.0, NAN, NAN),
        "expit": (0.5, 0.5, 0, 1),
    }.items(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_limits(name: str, limits: tuple[float, ...], dtype: np.dtype) -> None:
    assert_are(call(name, dtype, [0.0, -0.0, -INF, INF, NAN]), [*limits, NAN])


@by_dtype
@pytest.mark.parametrize("name", ["expm1", "log1p", "sinh", "tanh", "arcsinh", "arctanh"])
def test_tiny_operands_come_back(name: str, dtype: np.dtype) -> None:
    tiny = np.array([1, 2, 3, 2**10, 2**20 + 1]) * np.finfo(dtype).smallest_subnormal
    x = np.concatenate([tiny, -tiny])
    assert_are(call(name, dtype, x), list(x))


@by_dtype
def test_whole_powers_of_two_and_ten(dtype: np.dtype) -> None:
    limits = np.finfo(dtype)
    whole = np.arange(limits.minexp - limits.nmant, limits.maxexp)
    powers = np.ldexp(dtype.type(1), whole)
    assert np.array_equal(call("exp2", dtype, whole), powers)
    assert np.array_equal(call("log2", dtype, powers), whole)
    assert np.array_equal(call("power", dtype, 2, whole), powers)
    tens = 10.0 ** np.arange(11 if dtype == FLOAT32 else 23)
    assert np.array_equal(call("log10", dtype, tens), np.arange(tens.size))
    assert np.array_equal(call("power", dtype, 10, np.arange(tens.size)), tens.astype(dtype))


@by_dtype
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "sinh", "cosh", "expit", "log", "tanh"])
def test_neighbours_are_in_order(name: str, dtype: np.dtype) -> None:
    """Where the pieces of a function meet, and at powers of two."""
    ends = [2.0**k for k in range(-30, 11)] + [0.85, 10, 18.714, 19.0615, 88.7, 709.7, 710.4]
    ends += [n * math.log(2) / 2 for n in range(1, 80)] + [math.sqrt(0.5), math.sqrt(2)]
    points = np.unique(np.array(ends, dtype))
    steps = np.arange(-8, 9) * np.spacing(points)[:, None]
    y = call(name, dtype, (points[:, None] + steps).astype(dtype)).reshape(steps.shape)
    with np.errstate(invalid="ignore"):
        off = np.diff(y) / np.abs(np.spacing(y[:, 1:]))
    assert np.nanmin(off) >= -1, "neighbours are more than one unit in the wrong order"


@by_dtype
def test_powers_of_special_values(dtype: np.dtype) -> None:
    """The rows of C11's annex F.10.4.4, and no others."""
    values = [0.0, 0.5, 1.0, 2.0, 3.0, 2.5, 2.0**53, INF, NAN]
    x, y = np.meshgrid([*values, *np.negative(values)], [*values, *np.negative(values)])
    got = call("power", dtype, x, y)
    with np.errstate(all="ignore"):
        expected = [
            _power(a, b) for a, b in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
        ]
        assert_are(got, list(np.array(expected).astype(dtype)))


@by_dtype
def test_signs_of_powers_of_negative_numbers(dtype: np.dtype) -> None:
    """Exponents next to where all are whole, and to where all are even."""
    digits = np.finfo(dtype).nmant
    y = np.array([2.0**k + step for k in (digits - 1, digits, digits + 1) for step in (-1, 1, 2)])
    y = np.concatenate([y, 2.0 ** np.array([digits + 2, 31, 32, 63, 64]), [0.5, 1.5, NAN]])
    y = np.concatenate([y, -y]).astype(dtype)
    for x in (-1.0, -0.0, -INF):
        got = call("power", dtype, x, y)
        assert_are(got, [_power(x, float(each)) for each in y])


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        odd = b % 2 == 1
        return -INF if a < 0 and odd else INF
    except ValueError:  # 0 to a negative power, or a negative number to a fraction
        if a == 0:
            return math.copysign(INF, a) if b % 2 == 1 else INF
        return NAN


@by_dtype
def test_sums_of_exponentials(dtype: np.dtype) -> None:
    a = [INF, INF, -INF, -INF, NAN, 0, 3, 1000, -1000]
    b = [INF, -INF, -INF, 5, INF, NAN, 3, -1000, 1000]
    assert_are(call("logaddexp2", dtype, a, b), [INF, INF, -INF, 5, NAN, NAN, 4, 1000, 1000])
    expected = [INF, INF, -INF, 5, NAN, NAN, 3 + math.log(2), 1000, 1000]
    assert_are(call("logaddexp", dtype, a, b), expected)


# Remainders and ldexp have numpy's bits.


def bits(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), values.dtype.type(NAN), values).view(f"u{values.itemsize}")


def division_operands(dtype: np.dtype) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    points = landmarks(dtype)
    count = 40_000
    b = random.uniform(-5, 5, count).astype(dtype)
    multiples = (b * random.integers(-(2**20), 2**20, count)).astype(dtype)
    huge = samples("fmod", dtype, count)
    with np.errstate(all="ignore"):
        first = [np.nextafter(multiples, dtype.type(end)) for end in (-INF, INF)]
        small = np.resize(np.abs(huge[::-1]) * dtype.type(2.0**-60), huge.size)
    pairs = [(multiples, b), *[(each, b) for each in first], (huge, np.resize(b, huge.size))]
    pairs += [(huge, small), (np.repeat(points, points.size), np.tile(points, points.size))]
    return [np.concatenate(side) for side in zip(*pairs, strict=True)]


@by_dtype
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_division_has_the_bits_of_numpy(name: str, dtype: np.dtype) -> None:
    operands = division_operands(dtype)
    loop = Loop(name, (dtype, dtype), dtype)
    out = np.empty_like(operands[0])
    load(loops_library((loop,)), loop.symbol)([np.array([out.size]), *operands, out], threads=1)
    with np.errstate(all="ignore"):
        assert np.array_equal(bits(out), bits(getattr(np, name)(*operands)))


@by_dtype
def test_ldexp_rounds_once(dtype: np.dtype) -> None:
    random = np.random.default_rng(0)
    x = samples("ldexp", dtype, 40_000)
    reach = np.finfo(dtype).maxexp * 2 + np.finfo(dtype).nmant
    n = random.integers(-reach, reach, x.size)
    n[::7] = random.integers(-(2**31), 2**31, n[::7].size)
    loop = Loop("ldexp", (dtype, INT64), dtype)
    out = np.empty_like(x)
    load(loops_library((loop,)), loop.symbol)([np.array([out.size]), x, n, out], threads=1)
    with np.errstate(all="ignore"):
        assert np.array_equal(bits(out), bits(np.ldexp(x, n.astype(np.int32))))


def test_the_remainder_of_the_largest_by_the_smallest() -> None:
    for dtype in (FLOAT32, FLOAT64):
        limits = np.finfo(dtype)
        assert math.fmod(float(limits.max), float(limits.smallest_subnormal)) == 0
        eleven = 11 * float(limits.smallest_subnormal)
        loop = Loop("fmod", (dtype, dtype), dtype)
        a, b = np.array([limits.max], dtype), np.array([eleven], dtype)
        out = np.empty_like(a)
        load(loops_library((loop,)), loop.symbol)([np.array([1]), a, b, out], threads=1)
        assert out[0] == math.fmod(float(limits.max), eleven) > 0


@by_dtype
def test_the_exponential_of_what_is_not_above_0_has_the_bits_of_any(dtype: np.dtype) -> None:
    """Also where results are subnormal, or 0."""
    between = np.append(np.linspace(-800, 0, 100_000), [-0.0, 0.0, NAN]).astype(dtype)
    x = np.append(-abs(samples("exp", dtype, 100_000)), between)
    names = ("exp", "exp_nonpositive")
    loops = tuple([Loop(name, (dtype,), dtype) for name in names])
    path, found = loops_library(loops), [np.empty_like(x) for _ in names]
    for loop, out in zip(loops, found, strict=True):
        load(path, loop.symbol)([np.array([x.size]), x, out], threads=1)
    np.testing.assert_array_equal(*found)
