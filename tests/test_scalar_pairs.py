"""Scalar operations together: what compilers make of two has to be what the two are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tinyfuse
from tests.scalar_pairs import differences, pairs_of
from tinyfuse.dtypes import FLOAT32
from tinyfuse.testing.compare import difference

INTEGERS = [np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)]
WITH_SIGNS = ["cast", "negative", "absolute", "sign", "subtract", "multiply", "fma", "select"]
TELLING = ["cast", "negative", "divide", "copysign", "signbit", "less", "less_equal", "subtract"]


@pytest.fixture(scope="module", autouse=True)
def silent() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("dtype", [FLOAT32, INTEGERS[0], INTEGERS[2]], ids=str)
def test_pairs_have_the_bits_of_one_after_another(dtype: np.dtype) -> None:
    found = differences(list(pairs_of(dtype, WITH_SIGNS, TELLING)), ("-O1",))
    assert not found


def assert_same_at(function: Callable[..., np.ndarray], *arguments: np.ndarray) -> None:
    """One element at a time, without loops, and all at once."""
    for position in range(len(arguments[0])):
        one = [argument[position] for argument in arguments]
        numbers = [np.array(number) for number in one]
        text = difference(np.asarray(function(*one)), np.asarray(tinyfuse.jit(function)(*numbers)))
        assert not text, f"{one}: {text}"
    assert not difference(function(*arguments), tinyfuse.jit(function)(*arguments))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("real", ["float32", "float64"])
def test_the_integer_0_has_no_sign(real: str, dtype: str) -> None:
    def reciprocal(x: np.ndarray) -> np.ndarray:
        return np.divide(1, x.astype(dtype), dtype=real)

    x = np.array([-0.5, 0.5, -0.0, 0.0, -0.99999994, 1.0], real)
    assert_same_at(reciprocal, x)
    assert tinyfuse.jit(reciprocal)(x).tolist() == [np.inf] * 5 + [1]


NO_OPPOSITE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "0 - |x|": lambda x: 0.0 - abs(x),
    "0 - n": lambda x: 0.0 - x.astype(int),
    "-|x| + 0": lambda x: -abs(x) + 0.0,
    "0 + -n": lambda x: 0.0 + -x.astype(int).astype(float),
    "-1 * |x| - -0": lambda x: abs(x) * -1.0 - (-0.0),
    "n / -1 + 0": lambda x: x.astype(int) / -1.0 + 0.0,
    "a sum of one": lambda x: np.array([-abs(x)]).sum(axis=0),
    "sqrt(0) - |x|": lambda x: np.sqrt(np.zeros(x.shape)) - abs(x),
    "(n & 0) - |x|": lambda x: (x.astype(int) & 0) - abs(x),
    "one of two": lambda x: np.where(x < 1, -abs(x), x) + 0.0,
    "0 or x": lambda x: np.where(x == 0, 0.0, x) - abs(x),
}


@pytest.mark.parametrize("name", NO_OPPOSITE)
def test_a_sum_of_zeros_is_not_the_opposite_of_one(name: str) -> None:
    assert_same_at(NO_OPPOSITE[name], np.array([0.0, -0.0, 0.3, -0.3, 1.0]))
    assert not np.signbit(tinyfuse.jit(NO_OPPOSITE[name])(np.zeros(1)))


SIZES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs(n)": lambda n: abs(n),
    "-n": lambda n: np.where(n < 0, -n, n),
    "0 - n": lambda n: np.where(n < 0, 0 - n, n),
    "n * -1": lambda n: np.where(n > 0, n, n * -1),
    "-1 * n": lambda n: np.where(n >= 0, n, -1 * n),
    "n // -1": lambda n: np.where(n < 0, n // -1, n),
    "-(-n)": lambda n: -np.where(n < 0, n, -n),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_the_size_of_the_smallest_integer_is_below_zero(dtype: np.dtype, name: str) -> None:
    size = SIZES[name]
    n = np.array([np.iinfo(dtype).min, 0, 1, -1, np.iinfo(dtype).max], dtype)
    assert_same_at(lambda n: size(n) <= 0, n)
    assert tinyfuse.jit(lambda n: size(n) < 1)(n).tolist() == [True, True, False, False, False]
