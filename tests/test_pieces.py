"""Arrays that are put together of short pieces, in orders that compilers mistake for others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.emit.pieces import writes_pieces

WIDTHS = (4, 5, 8)


def one_from_elsewhere(x: Any) -> list[Any]:
    """Copies in which one column is another one."""
    found = []
    for to, source in product(range(x.shape[-1]), repeat=2):
        y = x.copy()
        y[..., to] = x[..., source]
        found.append(y)
    return found


def two_from_elsewhere(x: Any) -> list[Any]:
    width = x.shape[-1]
    return [
        np.concatenate([x[..., :to], x[..., source : source + 2], x[..., to + 2 :]], axis=-1)
        for to, source in product(range(width - 1), repeat=2)
    ]


def column_by_column(x: Any) -> list[Any]:
    width = x.shape[-1]
    orders = [[0, 1, 4, 3, 4, 5, 6, 7], [1, 0, 6, 7, 5, 4, 7, 6], [0, 0, 2, 5, 4, 4, 6, 6]]
    return [np.stack([x[..., at % width] for at in order], axis=-1) for order in orders]


@pytest.mark.parametrize("shape", [(), (3,), (40,)], ids=str)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("function", [one_from_elsewhere, two_from_elsewhere, column_by_column])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_pieces_are_in_their_places(
    function: Callable[..., Any], width: int, shape: tuple[int, ...], dtype: type
):
    x = np.arange(np.prod(shape, dtype=int) * width).reshape(*shape, width).astype(dtype)
    for found, expected in zip(tinyfuse.jit(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: np.concatenate([x[:, :2], x[:, 4:]], axis=1), True),
        (lambda x: np.stack([x[:, 1], x[:, 0]], axis=1), True),
        (lambda x: np.exp(x) + 1, False),
        (lambda x: x.astype(np.float32)[:, ::-1], False),
    ],
)
def test_which_kernels_put_pieces_together(function: Callable[..., Any], found: bool):
    kernels = tinyfuse.jit(function).lower(np.ones((100, 8))).kernels
    assert [writes_pieces(kernel) for kernel in kernels] == [found]
