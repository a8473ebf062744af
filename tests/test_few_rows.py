"""Products of one row or a few with a large matrix: which go through it once, and the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.machine import REFERENCE, Machine
from tinyfuse.records import replace
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.testing import difference

ONE_CORE = replace(REFERENCE, cores=1)


def product(x, y):
    return x @ y


def with_bias(x, y):
    return np.tanh(x @ y + y[0])


def costly(x, y):
    return np.exp(np.sin(x[:, :, None] - y)).sum(1)


def ones(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def plan(function: Callable[..., Any], *arrays: Any, machine: Machine = REFERENCE) -> str:
    """The loops of the product."""
    stages = tinyfuse.jit(function).lower(*arrays).stages
    lines = str(default_schedule(stages, machine)[0]).splitlines()
    return next(line for line in lines if " reduced" in line)


def test_few_rows_meet_pieces_of_each_row_of_a_large_matrix() -> None:
    arrays = ones(3, 500), ones(500, 4096)
    assert plan(product, *arrays) == (
        "  out: root; j by 1024 < 4096 parallel, k by 4 < 500 reduced, j < 4096 vector,"
        " i < 3 unroll, k < 500 reduced unroll"
    )
    assert "j by 1376 < 4096, k by 4" in plan(product, *arrays, machine=ONE_CORE)


@pytest.mark.parametrize(
    ("shape", "machine", "width"),
    [
        ((1000, 4096), REFERENCE, "by 2048"),
        ((1000, 5000), ONE_CORE, "by 2512"),
        ((4096, 200), REFERENCE, "by 112"),
    ],
)
def test_threads_have_even_parts_of_one_row(
    shape: tuple[int, int], machine: Machine, width: str
) -> None:
    assert f"  out: root; i {width} < {shape[1]}" in plan(
        product, ones(shape[0]), ones(*shape), machine=machine
    )


@pytest.mark.parametrize(
    ("why", "function", "x", "y"),
    [
        ("a small matrix", product, ones(3, 100), ones(100, 512)),
        ("many rows", product, ones(6, 500), ones(500, 4096)),
        ("columns that lie across", lambda x, y: x @ y.T, ones(3, 500), ones(4096, 500)),
        ("much to compute", costly, ones(3, 500), ones(500, 4096)),
    ],
)
def test_others_do_not(why: str, function: Callable[..., Any], x: Any, y: Any) -> None:
    assert "i < 3 unroll, k < 500 reduced unroll" not in plan(function, x, y), why


@pytest.mark.parametrize("rows", [(), (1,), (3,)])
def test_matrices_of_no_columns_have_products_of_none(rows: tuple[int, ...]) -> None:
    x, y = ones(*rows, 4095), ones(4095, 0)
    assert difference(x @ y, tinyfuse.jit(product)(x, y)) is None


@pytest.mark.parametrize("function", [product, with_bias])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(2, 65, 4100), (3, 4098, 70), (4, 513, 1030), (5, 9000, 40)])
def test_few_rows_keep_the_bits(
    function: Callable[..., Any], dtype: Any, shape: tuple[int, int, int]
) -> None:
    rows, length, columns = shape
    random = np.random.default_rng(6)
    x, y = (8 * random.standard_normal(s) for s in ((rows, length), (length, columns)))
    x, y = x.astype(dtype), y.astype(dtype)
    if y.dtype.kind == "f":
        x[1, 1], y[3, 0], y[0] = np.nan, np.inf, -0.0
    lowered = tinyfuse.jit(function).lower(x, y)
    found, expected = lowered.compile()(x, y), lowered.unfused().compile()(x, y)
    assert difference(expected, found) is None
