"""A transformer's block of one sequence: how many kernels it is, and what they read and write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.test_networks import lowered
from tinyfuse import jit
from tinyfuse.compilation import Lowered

WIDTH, HEADS, HIDDEN = 512, 8, 1376
SQUARE = (WIDTH, WIDTH)
WEIGHTS = (
    *((WIDTH,), SQUARE, SQUARE, SQUARE, SQUARE),
    *((WIDTH,), (WIDTH, HIDDEN), (WIDTH, HIDDEN), (HIDDEN, WIDTH)),
)
CACHE = (HEADS, 127, WIDTH // HEADS)


def norm(x, g):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def feed_forward(x, g, up, gate, down):
    h = norm(x, g)
    a = h @ up
    return x + (a / (1 + np.exp(-a)) * (h @ gate)) @ down


def prefill(x, g, q, k, v, o, *feed):
    """All words at once."""
    h, n = norm(x, g), len(x)
    q, k, v = (np.swapaxes((h @ w).reshape(n, HEADS, -1), 0, 1) for w in (q, k, v))
    seen = np.tri(n, dtype=bool)
    a = softmax(np.where(seen, q @ np.swapaxes(k, -1, -2) * 0.125, -np.inf)) @ v
    return feed_forward(x + np.swapaxes(a, 0, 1).reshape(x.shape) @ o, *feed)


def decode(x, keys, values, g, q, k, v, o, *feed):
    """One word after those whose keys and values there are."""
    h = norm(x, g)
    q, k, v = ((h @ w).reshape(HEADS, 1, -1) for w in (q, k, v))
    k, v = np.concatenate([keys, k], axis=1), np.concatenate([values, v], axis=1)
    a = softmax(q @ np.swapaxes(k, -1, -2) * 0.125) @ v
    return feed_forward(x + a.reshape(x.shape) @ o, *feed), k, v


def moved(program: Lowered) -> int:
    return sum(cost.bytes_read + cost.bytes_written for cost in program.cost.values())


SHAPES = {
    prefill: ((256, WIDTH), *WEIGHTS),
    decode: ((1, WIDTH), CACHE, CACHE, *WEIGHTS),
}


@pytest.mark.parametrize(
    ("function", "kernels", "scratch", "bytes_moved"),
    [
        (prefill, (3, 40), (2 << 20, 6_292_480), (18_419_712, 76_386_304)),
        (decode, (8, 42), (11_648, 20_608), (14_281_472, 14_446_976)),
    ],
)
def test_kernels_and_bytes(
    function: Callable[..., Any],
    kernels: tuple[int, int],
    scratch: tuple[int, int],
    bytes_moved: tuple[int, int],
):
    """Fused, and each operation by itself. A step's bytes are its weights."""
    program = lowered(function, *SHAPES[function])
    both = program, program.unfused()
    assert tuple([len(each.all_kernels) for each in both]) == kernels
    assert tuple([each.scratch_bytes for each in both]) == scratch
    assert tuple([moved(each) for each in both]) == bytes_moved


@pytest.mark.parametrize("function", SHAPES)
def test_results_are_numpys_and_have_the_bits_of_what_is_not_fused(function: Callable[..., Any]):
    random = np.random.default_rng(1)
    arrays = [(random.standard_normal(s) * 0.05).astype(np.float32) for s in SHAPES[function]]
    found, expected = jit(function)(*arrays), function(*arrays)
    apart = jit(function, fuse=False)(*arrays)
    outputs = (found, expected, apart) if function is decode else ((found,), (expected,), (apart,))
    for one, of_numpy, other in zip(*outputs, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, of_numpy, rtol=1e-4, atol=1e-5)
