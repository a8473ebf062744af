"""Rows of float16 are converted by a function, a vector at a time, with the bits of one by one."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.test_emit import parsed
from tests.test_halves import every, floats_around
from tests.test_register_tiles import planned
from tinyfuse.emit.c import emit_c
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.testing import difference
from tinyfuse.testing.compiled import Library

FLAGS = [("-O3",), ("-O3", "-march=x86-64-v3"), ("-O2", "-march=x86-64"), ("-O0",)]
HALF = np.dtype(np.float16)
needs_zig = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="needs the ziglang wheel"
)


def loops_of(function: Callable[..., Any], *arrays: np.ndarray) -> Loops:
    return lower(planned(function, *arrays), REFERENCE)


def widened(x):
    return x.astype(np.float32)


def narrowed(x):
    return x.astype(np.float16)


def scaled(x, y):
    return np.float32(2) * x.astype(np.float32) + y


def product(x, w):
    return x @ w


def some(*shape: int, dtype: Any = HALF) -> np.ndarray:
    return np.random.default_rng(4).standard_normal(shape).astype(dtype)


CASES = [
    (widened, (every(HALF),)),
    (narrowed, (floats_around(HALF),)),
    (scaled, (some(30, 200), some(30, 200, dtype=np.float32))),
    (product, (some(1, 64, dtype=np.float32), some(64, 1024))),
    (product, (some(3, 300, dtype=np.float32), some(300, 4000))),
    (product, (some(33, 90), some(90, 150))),
]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize(("function", "arrays"), CASES)
def test_bits_are_those_of_one_by_one(
    function: Callable[..., Any], arrays: tuple[np.ndarray, ...], flags: tuple[str, ...]
) -> None:
    loops = loops_of(function, *arrays)
    (found,) = Library([loops], flags).run(loops, [array.ravel() for array in arrays])
    assert difference(expected(function, *arrays).ravel(), found) is None


def expected(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """As numpy has it; products as of floats that were converted before, rounded then."""
    if function is not product:
        with np.errstate(all="ignore"):
            return function(*arrays)
    floats = [array.astype(np.float32) for array in arrays]
    return tinyfuse.jit(product)(*floats).astype(np.result_type(*arrays))


@needs_zig
@pytest.mark.parametrize("function", [widened, narrowed])
def test_another_compiler(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    array = every(HALF) if function is widened else floats_around(HALF)
    monkeypatch.setenv("CC", shlex.join([sys.executable, "-m", "ziglang", "cc"]))
    assert difference(expected(function, array), tinyfuse.jit(function)(array)) is None


def calls(function: Callable[..., Any], *arrays: np.ndarray) -> list[str]:
    """The calls that convert rows, in the C."""
    text = emit_c(loops_of(function, *arrays)).text
    parsed(text)
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line.startswith("tf_float") and "_row_of_" in line]


def test_a_copy_of_a_row_is_one_call() -> None:
    assert calls(widened, some(20, 40)) == [
        "tf_float_row_of_float16(out + i_first, x + i_first, 160);"
    ]
    assert calls(widened, some(200, 100)) == [
        "tf_float_row_of_float16(out + i_first, x + i_first, i_next - i_first);"
    ]
    rows = calls(product, some(1, 64, dtype=np.float32), some(64, 1024))
    row = "w + 4096 * k_outer + 512 * j_outer + j_first"
    assert rows[0] == f"tf_float_row_of_float16(w_floats, {row}, 256);"
    assert len(rows) == 4
    assert calls(product, some(36, 64, dtype=np.float32), some(64, 1024)) == [
        "tf_float_row_of_float16(cast_copy + 64 * i, w + 1024 * i + 64 * j_outer, 64);"
    ]


def test_rows_of_results_are_converted_where_they_are_stored() -> None:
    rows = calls(product, some(36, 64), some(64, 128))
    assert [row.partition("(")[0] for row in rows] == [
        "tf_float_row_of_float16",
        "tf_float_row_of_float16",
        "tf_float16_row_of_float",
    ]


def test_what_is_written_in_place_is_read_before() -> None:
    def in_place(x):
        x *= x

    x = some(64, 64)
    changed = x.copy()
    tinyfuse.jit(in_place)(changed)
    assert difference(x * x, changed) is None


def test_rows_shorter_than_a_vector_are_converted_one_by_one() -> None:
    assert not calls(lambda x: x.astype(np.float32).T + np.float32(1), some(8, 3))


def test_elements_that_a_test_leaves_out_are_not_read() -> None:
    def padded(x):
        return np.pad(x.astype(np.float32), 3)

    x = some(20, 40)
    assert difference(padded(x), tinyfuse.jit(padded)(x)) is None
