"""Integers to the letter: what numpy computes at the ends of each dtype, compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import assert_same
from tinyfuse.errors import NegativePowerError

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PAIRS = [
    *[(dtype, dtype) for dtype in INTEGERS],
    *(("int8", "uint8"), ("uint8", "int8"), ("int32", "uint32"), ("int64", "int8")),
    *(("uint64", "int64"), ("int64", "uint64"), ("uint8", "int64"), ("bool", "int8")),
    *(("int16", "bool"), ("bool", "bool")),
]

BINARY: list[Callable[..., Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    divmod,
    np.fmod,
    operator.lshift,
    operator.rshift,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lt,
    operator.ge,
    operator.eq,
    np.maximum,
    np.gcd,
    np.lcm,
    operator.truediv,
]
UNARY: list[Callable[..., Any]] = [abs, operator.neg, operator.invert, np.sign, np.square, np.sum]
# Weak in promotion; out of range for some dtypes.
NUMBERS: list[Callable[..., Any]] = [
    lambda a: a + 1,
    lambda a: a * 7 - 3,
    lambda a: a // -3,
    lambda a: 100 % a,
    lambda a: a >> 70,
    lambda a: a << 3,
    lambda a: a**2,
    lambda a: a**3,
    lambda a: a**0,
    lambda a: a + 200,
    lambda a: a < 200,
    lambda a: a == -1,
    lambda a: a / 2,
    lambda a: a * 0.5,
]


def nasty(dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array([True, False])
    if dtype.startswith("float"):
        return np.array([0, -0.0, 1, -1, 2.5, 1e9, -1e9, np.inf, -np.inf, np.nan], dtype)
    info = np.iinfo(dtype)
    near = [info.min, info.min + 1, info.min // 2, info.max // 2, info.max - 1, info.max]
    small = [n for n in (-9, -8, -3, -2, -1, 0, 1, 2, 3, 7, 8, 64, 100) if info.min <= n]
    return np.array([*near, *small], dtype)


def defined(functions: list[Callable[..., Any]], *args: Any) -> list[Callable[..., Any]]:
    """Those that numpy has for these operands."""
    found = []
    for function in functions:
        try:
            function(*args)
        except (TypeError, OverflowError):
            continue
        found.append(function)
    return found


def same(function: Callable[..., Any], *args: Any) -> None:
    with np.errstate(all="ignore"):
        assert_same(tinyfuse.jit(function)(*args), function(*args))


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_operands(first: str, second: str) -> None:
    a, b = np.meshgrid(nasty(first), nasty(second), indexing="ij")
    functions = defined(BINARY, a, b)
    assert len(functions) > 8
    same(lambda a, b: [function(a, b) for function in functions], a, b)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_one_operand_and_python_numbers(dtype: str) -> None:
    a = nasty(dtype)
    functions = defined([*UNARY, *NUMBERS], a)
    same(lambda a: [function(a) for function in functions], a)
    for function in [each for each in NUMBERS if each not in functions]:
        with pytest.raises((TypeError, OverflowError)) as numpys:
            function(a)
        with pytest.raises(numpys.type):
            tinyfuse.jit(function)(a)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers(dtype: str) -> None:
    base, exponent = nasty(dtype), np.array([0, 1, 2, 3, 5, 7, 63, 64, 100], dtype)
    a, n = np.meshgrid(base, exponent, indexing="ij")
    same(lambda a, n: (a**n, np.power(a, n), n**n, 2**n, np.int64(-3) ** n.astype(int)), a, n)
    if dtype.startswith("int"):
        with pytest.raises(NegativePowerError, match="Integers to negative integer powers"):
            tinyfuse.jit(lambda a, n: a**n)(a, -n)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float32", "float64"])
def test_casts(dtype: str) -> None:
    a = nasty(dtype)
    if dtype.startswith("float"):
        edges = [2.0**bits for bits in (7, 8, 15, 16, 31, 32, 52, 63, 64)]
        near = [np.nextafter(np.array(edges, dtype), np.array(0, dtype)), np.array(edges, dtype)]
        a = np.concatenate([a, *near, *[-each for each in near]])
    # what does not fit into uint32 is converted otherwise in numpy's vectorized loop than behind it
    fitting = np.where((a > -1) & (a < 2**32), a, a.dtype.type(0))
    others = [to for to in (*INTEGERS, "bool", "float32", "float64") if to != "uint32"]
    same(lambda a, b: ([a.astype(to) for to in others], b.astype(np.uint32)), a, fitting)


def test_assignment_converts_as_numpy_does() -> None:
    def function(a: Any, b: Any, c: Any) -> Any:
        small = np.zeros(len(a), np.int8)
        small[:] = a
        wide = np.zeros(len(a), np.uint64)
        wide[:] = small
        wide -= np.uint64(1)
        b += b
        c[np.arange(len(c))[::-1]] = a[: len(c)]
        return small, wide, b, c, np.array([a[0], 1]) * 2

    a, b = nasty("int64"), nasty("uint8")
    args = [(a.copy(), b.copy(), np.zeros(5, np.uint16)) for _ in range(2)]
    assert_same(tinyfuse.jit(function)(*args[0]), function(*args[1]))
    assert_same(args[0], args[1])
