"""Elements side by side, whose order gcc loses: behind conditions, and in sums of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.emit.neighbours import masks_neighbours, turns_combined

ROWS = (3, 5, 11, 40)
WIDTHS = (1, 2, 3, 4, 5, 8)


def every_other_row_set(x: Any, y: Any) -> Any:
    """Sums of rows, of which some have been written in place: each beside others in the results."""
    x = np.concatenate([x, x], axis=-1)
    x[1:-1:2] = y[0]
    return x.sum(axis=-1)[:, None] * y


def last_turned_round(x: Any, y: Any) -> Any:
    x = x.copy()
    x[1:-1:2] = 7
    return x[:, ::-1] + y


def rolled(x: Any, y: Any) -> Any:
    x = x.copy()
    x[2::3] = y
    return np.roll(x, 1, axis=1)


def padded(x: Any, y: Any) -> Any:
    z = np.pad(x, ((2, 1), (0, 0)))
    return z.sum(axis=1)[:, None] * y + z[:, ::-1]


def of_every_other_column(x: Any, y: Any) -> Any:
    z = np.zeros((x.shape[0], 2 * x.shape[1]), x.dtype)
    z[:, ::2] = x
    return z.sum(axis=1)[:, None] * y


def of_neighbours(x: Any, y: Any) -> Any:
    z = np.pad(x, ((1, 1), (0, 0)))
    z = z[:-2] + z[2:]
    return z[:, ::-1] - z.max(axis=1)[:, None] * y


@pytest.mark.parametrize(
    "function",
    [every_other_row_set, last_turned_round, rolled, padded, of_every_other_column, of_neighbours],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_what_is_loaded_behind_conditions(function: Callable[..., Any], dtype: type):
    def of_all(*arrays: Any) -> Any:
        return [function(x, y) for x, y in zip(arrays[::2], arrays[1::2], strict=True)]

    arrays = []
    for rows in ROWS:
        for width in WIDTHS:
            arrays += [np.arange(rows * width).reshape(rows, width).astype(dtype) ** 2]
            arrays += [np.arange(1, width + 1).astype(dtype)]
    for found, expected in zip(tinyfuse.jit(of_all)(*arrays), of_all(*arrays), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_sums_of_three_copies_of_a_row_some_of_which_are_set():
    def function(x: Any, y: Any, z: Any) -> Any:
        rows = np.concatenate([x, x, x], axis=-1)
        rows[None][0, -4::2] = z.sum()
        return np.swapaxes(np.einsum("i,jk->ij", y, rows), 0, -1)

    x, y, z = np.arange(10.0).reshape(5, 2) ** 2, np.array([0.5, 1.5]), np.array([3, 4], np.int32)
    np.testing.assert_array_equal(tinyfuse.jit(function)(x, y, z), function(x, y, z))


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: np.pad(x, ((2, 2), (0, 0))).sum(axis=1)[:, None] * np.arange(2.0), False),
        (lambda x: every_other_row_set(x, np.arange(1.0, 3.0)), True),
        (lambda x: np.where(x > 0, x, 2)[:, ::-1], False),
    ],
)
def test_which_kernels_do(function: Callable[..., Any], found: bool):
    kernels = tinyfuse.jit(function).lower(np.ones((5, 2))).kernels
    assert [masks_neighbours(kernel) for kernel in kernels] == [found]


@pytest.mark.parametrize("width", [2, 4, 8, 16])
@pytest.mark.parametrize("combine", ["add", "maximum", "minimum", "bitwise_xor", "multiply"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16])
def test_rows_that_are_combined_and_turned_round(width: int, combine: str, dtype: type):
    def function(x: Any, y: Any) -> Any:
        z = np.pad(x, ((1, 1), (0, 0)))
        z = z[:-2] + z[2:]
        return z[:, ::-1] - getattr(np, combine).reduce(z, axis=1)[:, None] * y

    def of_all(y: Any, *arrays: Any) -> Any:
        return [function(x, y) for x in arrays]

    arrays = [np.arange(rows * width).reshape(rows, width) ** 2 for rows in (3, 5, 11, 13, 19)]
    arguments = [x.astype(dtype) for x in (np.arange(1, width + 1), *arrays)]
    for found, expected in zip(tinyfuse.jit(of_all)(*arguments), of_all(*arguments), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: x[:, ::-1] - x.sum(axis=1)[:, None], True),
        (lambda x: x - x.sum(axis=1)[:, None], False),
        (lambda x: x[:, ::-1] * 2, False),
        (lambda x: x.astype(float)[:, ::-1] - x.astype(float).sum(axis=1)[:, None], False),
    ],
)
def test_which_kernels_combine_what_they_turn_round(function: Callable[..., Any], found: bool):
    kernels = tinyfuse.jit(function).lower(np.ones((50, 8), np.int64)).kernels
    assert [turns_combined(kernel) for kernel in kernels] == [found]
