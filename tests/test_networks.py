"""How many kernels layers of networks are, and how much scratch memory they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyfuse import jit, nn
from tinyfuse.compilation import Lowered
from tinyfuse.machine import REFERENCE
from tinyfuse.testing import ArraySpec, check_equivalence


def lowered(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Lowered:
    traced = jit(function).trace(*[np.zeros(shape, np.float32) for shape in shapes])
    return Lowered(traced, traced.options, REFERENCE)


IMAGE, WEIGHT, CHANNELS = (1, 64, 56, 56), (64, 64, 3, 3), (64,)
PADDED, PACKED, FEATURES = 4 * 64 * 58 * 58, 4 * 64 * 64 * 9, 4 * 64 * 56 * 56


def conv_bn_relu(x, weight, scale, shift):
    y = nn.conv(x, weight, padding=1)
    return nn.relu(y * scale[:, None, None] + shift[:, None, None])


def test_what_follows_a_convolution_is_in_its_kernel():
    program = lowered(conv_bn_relu, IMAGE, WEIGHT, CHANNELS, CHANNELS)
    assert program.scratch_bytes == PADDED + PACKED
    assert len(program.kernels) == 2


def pooled(pool: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def layers(x, weight, scale, shift):
        y = nn.conv(x, weight, padding=1, **options)
        if not options:
            scale, shift = scale[:, None, None], shift[:, None, None]
        return pool(nn.relu(y * scale + shift), 2, **options)

    return layers


@pytest.mark.parametrize("pool", [nn.max_pool, nn.avg_pool])
def test_a_convolution_that_is_pooled_is_never_stored(pool: Callable[..., Any]):
    program = lowered(pooled(pool), IMAGE, WEIGHT, CHANNELS, CHANNELS)
    assert program.scratch_bytes == PADDED + PACKED
    assert len(program.kernels) == 2
    image, weight = (1, 56, 56, 64), (3, 3, 64, 64)
    program = lowered(pooled(pool, channels_last=True), image, weight, CHANNELS, CHANNELS)
    assert program.scratch_bytes == PADDED + PACKED


def test_windows_that_overlap_would_compute_a_convolution_again_and_again():
    def layers(x, weight):
        return nn.max_pool(nn.conv(x, weight, padding=1), 3, stride=2)

    program = lowered(layers, IMAGE, WEIGHT)
    assert program.scratch_bytes >= PADDED + PACKED + FEATURES


def test_a_pool_by_reshape_is_a_pool():
    def layers(x, weight):
        y = nn.conv(x, weight, padding=1)
        return y.reshape(1, 64, 28, 2, 28, 2).max(axis=(3, 5))

    assert lowered(layers, IMAGE, WEIGHT).scratch_bytes == PADDED + PACKED


@pytest.mark.parametrize("options", [{}, {"channels_last": True}])
@pytest.mark.parametrize("pool", [nn.max_pool, nn.avg_pool])
def test_pools_have_the_same_bits_however_they_are_scheduled(
    pool: Callable[..., Any], options: dict[str, Any]
):
    image, weight = ((1, 8, 11, 2), (3, 3, 2, 17)) if options else ((1, 2, 8, 11), (17, 2, 3, 3))
    arrays = [ArraySpec("float32", shape) for shape in (image, weight, (17,), (17,))]
    layers = pooled(pool, **options)
    assert len(lowered(layers, image, weight, (17,), (17,)).kernels) == 2
    check_equivalence(layers, *arrays, exact=False, schedules=0, examples=1)
