"""Contractions of several operands, and what is fused with them: kernels, threads and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.compilation import Lowered
from tinyfuse.machine import REFERENCE
from tinyfuse.testing import difference


def product(x, w):
    return x @ w


def of_three(x, y, z):
    return np.einsum("ij,jk,kl->il", x, y, z)


def forms(x, y, z):
    return np.einsum("bi,ij,bj->b", x, y, z)


def of_four(w, x, y, z):
    return np.einsum("ij,jk,kl,lm->im", w, x, y, z)


def from_the_left(x, y, z):
    return np.linalg.multi_dot([x, y, z])


def queries_keys_values(x, q, k, v):
    return x @ q, x @ k, x @ v


def normalised(x, w):
    y = x @ w
    centred = y - y.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))


def lowered(function: Callable[..., Any], *arrays: np.ndarray) -> Lowered:
    traced = tinyfuse.jit(function).trace(*arrays)
    return Lowered(traced, traced.options, REFERENCE)


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(6)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


WEIGHTS = (96, 256)


@pytest.mark.parametrize(
    ("function", "shapes", "kernels"),
    [
        (of_three, ((64, 48), (48, 80), (80, 96)), (1, 2)),  # for a block of rows at a time
        (forms, ((64, 48), (48, 80), (64, 80)), (1, 2)),
        (of_four, ((64, 48), (48, 40), (40, 48), (48, 96)), (1, 3)),
        (from_the_left, ((64, 100), (100, 48), (48, 96)), (1, 2)),
        (from_the_left, ((64, 80), (80, 96), (96, 16)), (2, 2)),  # all of y @ z comes first
        (queries_keys_values, ((128, 96), WEIGHTS, WEIGHTS, WEIGHTS), (1, 3)),
        (normalised, ((200, 64), (64, 128)), (1, 10)),
    ],
)
def test_contractions_have_as_few_kernels_as_their_order_allows(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], kernels: tuple[int, int]
) -> None:
    arrays = numbers(*shapes)
    found = lowered(function, *arrays)
    assert (len(found.kernels), len(found.unfused().kernels)) == kernels
    fused = tinyfuse.jit(function)(*arrays)
    plain = tinyfuse.jit(function, fuse=False)(*arrays)
    for one, other, numpy in zip(*map(_several, (fused, plain, function(*arrays))), strict=True):
        assert difference(other, one) is None
        np.testing.assert_allclose(one, numpy, rtol=0, atol=1e-5 * np.abs(numpy).max())


def _several(results: Any) -> tuple[np.ndarray, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize(
    ("shapes", "shared"),
    [
        (((1024, 64), (64, 64)), "  out: root; i by 6 < 1024 parallel, j by 64 < 64"),
        (((64, 512), (512, 1024)), "  out: root; j by 64 < 1024 parallel, i by 5 < 64"),
    ],
)
def test_threads_share_the_rows_or_the_columns(
    shapes: tuple[tuple[int, ...], ...], shared: str
) -> None:
    assert shared in lowered(product, *numbers(*shapes)).as_text("schedule")
