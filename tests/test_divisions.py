"""Rows divided by one number: which divisions they are, and that bits are those of dividing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import GraphBuilder, PlainNumerics
from tests.test_emit import parsed
from tests.test_lower import lowered
from tests.test_streaming import streamed
from tinyfuse.emit.c import emit_c
from tinyfuse.loops.interpreter import interpret_loops
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.stage.build import build_stages
from tinyfuse.testing.compiled import Library

FLAGS = [("-O3",), ("-O3", "-march=x86-64-v3"), ("-O2", "-march=x86-64"), ("-O0",)]
ROWS, COLUMNS = 40, 300


def quotients(rows: int, columns: int) -> Loops:
    build = GraphBuilder("quotients")
    x, divisors = build.input("x", rows, columns), build.input("divisors", rows, 1)
    whole = build.broadcast(divisors, rows, columns)
    return lowered(build_stages(build.graph(build.op("divide", x, whole))))


def assert_divides(x: np.ndarray, divisors: np.ndarray, flags: tuple[str, ...]) -> None:
    loops = quotients(*x.shape)
    assert emit_c(loops).text.count("    tf_divide_row_float(") == 1
    (found,) = Library([loops], flags).run(loops, [x, divisors])
    with np.errstate(all="ignore"):
        expected = (x / divisors[:, None]).reshape(found.shape)
    same = (found.view(np.uint32) == expected.view(np.uint32)) | (
        np.isnan(found) & np.isnan(expected)
    )
    assert same.all(), np.argwhere(~same)[:5]


def closest_to_ties(divisor: int) -> Iterator[int]:
    """Dividends of 24 bits whose quotients by an odd divisor lie next to the middle of two floats.

    M / 2^k is such a middle, of 25 bits, and the dividend times 2^k is M times the divisor, and d.
    """
    for k in (24, 25):
        inverse = pow(divisor, -1, 1 << k)
        for d in range(-15, 16, 2):
            middle = -d * inverse % (1 << k)
            middle += (1 << 24) * (middle < 1 << 24)
            dividend = (middle * divisor + d) >> k
            if middle % 2 and 1 << 23 <= dividend < 1 << 24:
                yield dividend


@pytest.mark.parametrize("flags", FLAGS)
def test_quotients_next_to_the_middle_of_two_numbers(flags: tuple[str, ...]) -> None:
    random = np.random.default_rng(1)
    divisors = random.integers(1 << 22, 1 << 23, 3000) * 2 + 1
    x = np.ones((3000, 256), np.float32)
    for row, divisor in zip(x, divisors, strict=True):
        dividends = [*closest_to_ties(int(divisor))]
        assert dividends
        row[: len(dividends)] = dividends
    scale = np.float32(2) ** random.integers(-40, -6, 3000)
    assert_divides(x, divisors.astype(np.float32) * scale.astype(np.float32), flags)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-38, 3e-31, 2e30, -3e38, 1.0]


@pytest.mark.parametrize("flags", FLAGS)
def test_any_numbers(flags: tuple[str, ...]) -> None:
    """Rows of numbers that no exponent ends; of any bits; with one special value; of zeros."""
    random = np.random.default_rng(2)
    x = random.standard_normal((4 * ROWS, COLUMNS)).astype(np.float32)
    x[ROWS : 2 * ROWS] = random.integers(0, 1 << 32, (ROWS, COLUMNS), np.uint32).view(np.float32)
    x[range(2 * ROWS, 3 * ROWS), random.integers(0, COLUMNS, ROWS)] = np.resize(SPECIAL, ROWS)
    x[3 * ROWS :] *= random.random((ROWS, COLUMNS)) < 0.5
    divisors = random.standard_normal(4 * ROWS).astype(np.float32)
    divisors[::3] = random.integers(0, 1 << 32, len(divisors[::3]), np.uint32).view(np.float32)
    divisors[1::7] = np.resize(SPECIAL, len(divisors[1::7]))
    assert_divides(x, divisors, flags)


# Which divisions


def norm(x: Any) -> Any:
    return np.sqrt((x * x).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize(
    ("function", "columns", "dtype", "expected"),
    [
        (lambda x: x / norm(x), 256, np.float32, 1),
        (lambda x: x / norm(x) * x + 1, 256, np.float32, 0),  # there is time to divide
        (lambda x: (x - x.mean(-1, keepdims=True)) / norm(x), 256, np.float32, 0),
        (lambda x: x / np.float32(3), 256, np.float32, 1),
        (lambda x: x / np.float32(4), 256, np.float32, 0),  # a product
        (lambda x: x / norm(x), 255, np.float32, 0),  # it would not pay
        (lambda x: x / norm(x), 256, np.float64, 0),
        (lambda x: norm(x) / x, 256, np.float32, 0),
        (lambda x: x / np.exp(x), 256, np.float32, 0),
        (lambda x: np.where(x > 0, x / norm(x), x), 256, np.float32, 0),  # only where it is chosen
        (lambda x: np.where(x / norm(x) > 0.5, x, 0), 256, np.float32, 0),
        (lambda x: (x / norm(x)).sum(-1), 256, np.float32, 0),  # lane by lane
    ],
)
def test_which_divisions(function: Callable, columns: int, dtype: Any, expected: int) -> None:
    x = np.random.default_rng(3).standard_normal((64, columns)).astype(dtype)
    jitted = tinyfuse.jit(function)
    text = jitted.lower(x).as_text("c")
    assert text.count("tf_divide_row_float(") == expected + (expected > 0)
    assert jitted(x).tobytes() == tinyfuse.jit(function, fuse=False)(x).tobytes()


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_exponentials_of_what_is_never_positive() -> None:
    """Rows of numbers below 2^-100 too, which are looked for where there are some below e^-69, of
    zeros, and of NaN."""
    x = np.random.default_rng(5).standard_normal((64, 300)).astype(np.float32)
    x[16:32] *= 40
    x[32:48, ::3] = -np.inf
    x[48, 7], x[49, 8], x[50] = np.nan, np.inf, -np.inf
    x[51:56, 9] = x[51:56].max(-1) - np.float32([68.99, 69, 69.01, 69.3, 69.4])
    jitted, other = (
        tinyfuse.jit(softmax),
        tinyfuse.jit(lambda x: np.exp(x) / softmax(x).sum(-1)[:, None]),
    )
    text = jitted.lower(x).as_text("c")
    assert text.count("tf_divide_exps_float(out + 300 * i, 300, sum, out_sizes)") == 1
    assert text.count("tf_divide_row_float(") == 0
    assert "tf_divide_exps_float(" not in other.lower(x).as_text("c")
    found, expected = jitted(x), tinyfuse.jit(softmax, fuse=False)(x)
    assert found[~np.isnan(found)].tobytes() == expected[~np.isnan(expected)].tobytes()
    np.testing.assert_array_equal(np.isnan(found).any(axis=1).nonzero()[0], [48, 49, 50])


def test_a_row_that_is_divided_where_it_lies_is_divided_element_by_element() -> None:
    def scale(x: Any) -> None:
        x /= norm(x)

    x = np.ones((64, 256), np.float32)
    assert "tf_divide_row_float(x + " not in tinyfuse.jit(scale).lower(x).as_text("c")
    tinyfuse.jit(scale)(x)
    np.testing.assert_array_equal(x, np.float32(1) / np.float32(16))


@pytest.mark.parametrize("flags", FLAGS)
def test_quotients_that_are_streamed(flags: tuple[str, ...]) -> None:
    build = GraphBuilder("streamed")
    x, divisors = build.input("x", 3, 1100), build.input("divisors", 3, 1)
    whole = build.broadcast(divisors, 3, 1100)
    stages = build_stages(build.graph(build.op("divide", x, whole)))
    random = np.random.default_rng(4)
    arrays = [random.standard_normal(n).astype(np.float32) for n in (3300, 3)]
    loops = lower(streamed(stages), REFERENCE)
    text = emit_c(loops).text
    parsed(text)
    assert text.count("      tf_divide_row_float(") == 1
    (found,) = Library([loops], flags).run(loops, arrays)
    (expected,) = interpret_loops(loops, arrays, PlainNumerics())
    np.testing.assert_array_equal(found, expected)
