"""Exponentials of rows below one number: which they are, and that bits are those of one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import GraphBuilder
from tests.test_emit import kernels_of, parsed
from tests.test_lower import lowered
from tinyfuse.emit.c import emit_c
from tinyfuse.loops.interpreter import interpret_loops
from tinyfuse.runtime.numerics import CompiledNumerics
from tinyfuse.stage.build import build_stages
from tinyfuse.testing.compiled import Library

FLAGS = [("-O3",), ("-O3", "-march=x86-64-v3"), ("-O2", "-march=x86-64"), ("-O0",)]
ROWS, COLUMNS = 40, 300

# Around where results are subnormal and where they are 0; limits; NaN with any payload.
EDGES = [-87.0, -87.25, -87.5, -88.0, -103.25, -104.0, -104.5, -105.0, -3e38, -np.inf, -0.0, 0.0]
NANS = np.array([0x7FC00000, 0xFFC00000, 0x7FC00001, 0xFFC01FFF], np.uint32).view(np.float32)


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Elements that are not above the number of their row, or NaN."""
    random = np.random.default_rng(1)
    x = -abs(random.standard_normal((ROWS, COLUMNS))).astype(np.float32)
    x[ROWS // 2 :] *= 60  # from 0 to about -200
    places = random.integers(0, COLUMNS, 16)
    x[range(16), places] = [*EDGES, *NANS]
    tops = np.zeros(ROWS, np.float32)
    tops[16:] = random.standard_normal(ROWS - 16)
    x[16:] += tops[16:, None]
    return np.minimum(x, tops[:, None]), tops


@pytest.mark.parametrize("flags", FLAGS)
def test_bits_are_those_of_one_by_one(flags: tuple[str, ...]) -> None:
    build = GraphBuilder("below")
    x, tops = build.input("x", ROWS, COLUMNS), build.input("tops", ROWS, 1)
    difference = build.op("subtract", x, build.broadcast(tops, ROWS, COLUMNS))
    loops = lowered(build_stages(build.graph(build.op("exp_nonpositive", difference))))
    text = emit_c(loops).text
    parsed(text)
    assert text.count("    tf_exp_long_row_float(") == 1
    arrays = [*rows()]
    (found,) = Library([loops], flags).run(loops, arrays)
    (expected,) = interpret_loops(loops, [a.ravel() for a in arrays], CompiledNumerics())
    np.testing.assert_array_equal(found, expected)
    assert np.isnan(found).sum() == len(NANS)
    subnormal = (found > 0) & (found < np.finfo(np.float32).tiny)
    assert subnormal.sum() > 100
    assert (found == 0).sum() > 100


def below(x: Any) -> Any:
    return np.exp(x - x.max(axis=-1, keepdims=True))


def softmax(x: Any) -> Any:
    e = below(x)
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "columns", "dtype", "expected"),
    [
        (below, 256, np.float32, 1),
        (softmax, 256, np.float32, 1),
        (lambda x: below(x).sum(-1), 1024, np.float32, 1),  # 64 at a time
        (lambda x: below(x) + below(x + 1), 200, np.float32, 1),  # x + 1 is in no row of memory
        (lambda x: below(x) * x, 256, np.float32, 1),
        (lambda x: below(x) * x, 300, np.float32, 0),  # too many to keep them
        (below, 63, np.float32, 0),
        (below, 256, np.float64, 0),
        (lambda x: np.where(x > 0, below(x), x), 256, np.float32, 0),  # only where it is chosen
        (lambda x: np.exp(-abs(x)), 256, np.float32, 0),
    ],
)
def test_which_exponentials(function: Callable, columns: int, dtype: Any, expected: int) -> None:
    x = np.random.default_rng(3).standard_normal((64, columns)).astype(dtype)
    x[7] *= 60
    x[8, 5], x[9, 5] = np.nan, -np.inf
    jitted = tinyfuse.jit(function)
    kernels = kernels_of(jitted.lower(x).as_text("c"))
    calls = re.findall(r"\btf_exp_(?:long_)?row_float\(", kernels)
    assert len(calls) == expected
    found, unfused = jitted(x), tinyfuse.jit(function, fuse=False)(x)
    np.testing.assert_array_equal(found, unfused)
