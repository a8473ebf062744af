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


def test_threads_share_pieces_where_the_blocks_of_a_chain_are_uneven() -> None:
    """Of 5,000 products 4,096 and 904, which one thread each would have."""
    assert "  out_blocks: root; j by 1024 < 4096 parallel, b < 2, r by 4 < 4096" in plan(
        product, ones(4, 5000), ones(5000, 4096)
    )
    assert "  out_blocks: root; b < 2 parallel, j by 1024 < 4096, r by 4 < 4096" in plan(
        product, ones(4, 8192), ones(8192, 4096)
    )


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


def of_constant(rows: tuple[int, ...], y: np.ndarray, epilogue: bool = False) -> Any:
    """A product with a constant, and rows of ones for it."""
    w = tinyfuse.constant(y)
    function = (lambda x: with_bias(x, w)) if epilogue else (lambda x: product(x, w))
    return tinyfuse.jit(function), ones(*rows, y.shape[0])


@pytest.mark.parametrize(
    ("rows", "columns", "loops"),
    [
        ((), 4096, "i by 128 < 4096 parallel, i < 4096 vector"),
        ((1,), 4096, "j by 128 < 4096 parallel, i < 1, j < 4096 vector"),
        ((3,), 4096, "j by 128 < 4096 parallel, i by 3 < 3, i < 3, j < 4096 vector"),
        ((5,), 4100, "j by 64 < 4100 parallel, i by 5 < 5, i < 5, j < 4100 vector"),
    ],
)
def test_few_rows_read_panels_of_a_large_constant(
    rows: tuple[int, ...], columns: int, loops: str
) -> None:
    """Copied once, a panel is read from end to end."""
    f, x = of_constant(rows, ones(500, columns))
    lowered = f.lower(x)
    assert [kernel.name for kernel in lowered.loops.kernels] == ["lambda_out"]
    assert lowered.scratch_bytes == 0
    assert f"  out: root; {loops}" in str(lowered.schedule)
    assert "w_copy = cache_read(w, out_local along" in str(lowered.schedule)


def test_a_small_constant_is_read_as_it_lies() -> None:
    f, x = of_constant((1,), ones(100, 512))
    assert "copy" not in str(f.lower(x).schedule)


@pytest.mark.parametrize("rows", [(), (1,), (2,), (5,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize("shape", [(513, 1030), (65, 9001), (9000, 70)])
def test_panels_of_a_constant_keep_the_bits(
    rows: tuple[int, ...], dtype: Any, epilogue: bool, shape: tuple[int, int]
) -> None:
    generator = np.random.default_rng(3)
    y = (generator.standard_normal(shape) * 9).astype(dtype)
    function = with_bias if epilogue else product
    for matrix in (y, np.asfortranarray(y)):
        f, x = of_constant(rows, matrix, epilogue)
        x = (generator.standard_normal(x.shape) * 9).astype(dtype)
        assert difference(tinyfuse.jit(function)(x, y), f(x)) is None
        assert difference(f(x), tinyfuse.jit(f.__wrapped__, fuse=False)(x)) is None


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
