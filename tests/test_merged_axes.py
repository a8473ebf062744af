"""Images as rows: which products and which of their readers have them, and that bits stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.test_networks import lowered
from tinyfuse import jit, nn
from tinyfuse.testing import ArraySpec, check_equivalence

SHAPES = {"x": (2, 16, 9, 7), "w": (24, 16), "s": (24,), "r": (2, 24, 9, 7), "p": (9, 7)}


def product(x, w):
    return np.einsum("nchw,oc->nohw", x, w)


def scaled(x, w, s):
    return np.maximum(product(x, w) * s[:, None, None] + s[:, None, None], 0)


def residual(x, w, s, r):
    return np.maximum(product(x, w) * s[:, None, None] + r * 2, 0)


def positions(x, w, p):
    return (product(x, w) + p).astype(np.float64)


def two_layers(x, w):
    return np.einsum("nchw,co->nohw", nn.relu(product(x, w)), w)


def prologue(x, w):
    return product(nn.relu(x), w)


def selected(x, w):
    y = product(x, w)
    return np.where(y > 0, y, 0.1 * y)


def of_image(x, w):
    return np.tensordot(w, x[0], axes=(1, 0))


def convolution(x, w):
    return nn.relu(nn.conv(x, w[:, :, None, None]))


def flat(x, w):
    return product(x, w).reshape(2, -1)


def pooled(x, w):
    return product(x, w).mean(axis=(2, 3))


def padded(x, w):
    return np.pad(product(x, w), ((0, 0), (0, 0), (1, 1), (1, 1)))


def beside(x, w, r):
    return np.concatenate([product(x, w), r, nn.relu(product(x, w))], axis=1)


MERGED = [
    *(product, scaled, residual, positions, two_layers, prologue, selected, of_image),
    *(convolution, flat, pooled, padded, beside),
]


def by_steps(x, w):
    return nn.conv(x, w[:, :, None, None], stride=2)


def channels_last(x, w):
    return product(x, w).transpose(0, 2, 3, 1)


def of_columns(x, w):
    return product(x, w) + np.arange(7, dtype=np.float32)


def below(x, w, r):
    return np.concatenate([product(x, w), r], axis=2)


def of_padded(x, w):
    return product(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), w)


def three_by_three(x, w):
    return nn.conv(x, np.broadcast_to(w[:, :, None, None], (24, 16, 3, 3)), padding=1)


APART = [by_steps, below, channels_last, of_columns, of_padded, three_by_three]


def shapes(function: Callable[..., Any]) -> list[tuple[int, ...]]:
    code = function.__code__
    return [SHAPES[name] for name in code.co_varnames[: code.co_argcount]]


@pytest.mark.parametrize("function", MERGED)
def test_images_are_rows(function: Callable[..., Any]):
    stages = lowered(function, *shapes(function)).stages.stages
    products = [stage for stage in stages if stage.shape[-1:] == (63,) and stage.reduce_axes]
    assert len(products) == (2 if function is two_layers else 1)
    assert not any(stage.shape[-2:] == (9, 7) and stage.reduce_axes for stage in stages)


@pytest.mark.parametrize("function", APART)
def test_images_stay_where_something_reads_rows_or_columns(function: Callable[..., Any]):
    stages = lowered(function, *shapes(function)).stages.stages
    assert not any(stage.shape[-1:] == (63,) for stage in stages)


@pytest.mark.parametrize("function", MERGED)
def test_bits_are_the_same_however_it_is_scheduled(function: Callable[..., Any]):
    arrays = [ArraySpec("float32", shape) for shape in shapes(function)]
    check_equivalence(function, *arrays, exact=False, schedules=1, examples=1)


@pytest.mark.parametrize("function", [*MERGED, *APART])
def test_results_are_numpys(function: Callable[..., Any]):
    random = np.random.default_rng(3)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes(function)]
    found, expected = jit(function)(*arrays), function(*arrays)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [28, 56])
def test_a_convolution_of_single_elements_copies_nothing(size: int):
    """What it reads lies side by side in long rows, and tiles leave nothing over."""

    def layer(x, w, s):
        y = nn.conv(x, w)
        return nn.relu(y * s[:, None, None] + x)

    program = lowered(layer, (1, 64, size, size), (64, 64, 1, 1), (64,))
    assert len(program.all_kernels) == 1
    assert program.scratch_bytes == 0


def test_what_is_returned_in_another_shape_is_computed_there():
    program = lowered(lambda x: (x * 2).reshape(-1), (4, 6))
    assert len(program.kernels) == 1
    assert [stage.shape for stage in program.stages.stages] == [(4, 6)]
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(jit(lambda x: (x * 2).reshape(-1))(x), x.ravel() * 2)


def test_what_is_returned_as_it_is_too_is_copied():
    def both(x):
        y = x * 2
        return y + 0, y.reshape(-1), y

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    first, second, third = jit(both)(x)
    np.testing.assert_array_equal(second, third.ravel())
    np.testing.assert_array_equal(first, third)
    assert np.shares_memory(second, third)  # as numpy's view does


def test_rows_of_products_in_another_shape_have_one_kernel():
    """No copy follows the product: 784 KiB fewer are written and read again."""
    program = lowered(
        lambda x, w: (w @ x.reshape(64, -1)).reshape(x.shape), (1, 64, 56, 56), (64, 64)
    )
    assert len(program.all_kernels) == 1
    assert program.scratch_bytes == 0
