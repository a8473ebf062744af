"""Layers: on arrays as they are against plain loops, and compiled against themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyfuse import jit, nn
from tinyfuse.graph.primitives import iota
from tinyfuse.testing import ArraySpec, check_equivalence


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def assert_near(found: np.ndarray, expected: np.ndarray, bound: float = 1e-5) -> None:
    """bound: of the error, over the largest magnitude."""
    assert found.shape == expected.shape
    largest = np.abs(expected).max(initial=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * largest)


def assert_layer(function: Callable[..., Any], expected: np.ndarray, *arrays: np.ndarray) -> None:
    """What plain numpy gives, and what is compiled of it, fused or not."""
    for each in (function, jit(function), jit(function, fuse=False)):
        result = each(*arrays)
        assert result.dtype == np.float32
        assert_near(result, expected)
    assert np.array_equal(
        jit(function)(*arrays), jit(function, fuse=False)(*arrays), equal_nan=True
    )


# --- convolution and pooling ----------------------------------------------------------------------


def windows_by_loops(
    padded: np.ndarray, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> np.ndarray:
    """[n, c, *out, *kernel] of [n, c, *space], one element at a time."""
    out = [
        (size - (taps - 1) * gap - 1) // step + 1
        for size, taps, step, gap in zip(padded.shape[2:], kernel, stride, dilation, strict=True)
    ]
    result = np.empty((*padded.shape[:2], *out, *kernel), padded.dtype)
    for place in itertools.product(*map(range, out)):
        for tap in itertools.product(*map(range, kernel)):
            at = [
                p * step + t * gap
                for p, t, step, gap in zip(place, tap, stride, dilation, strict=True)
            ]
            result[(slice(None), slice(None), *place, *tap)] = padded[
                (slice(None), slice(None), *at)
            ]
    return result


def conv_by_loops(
    x: np.ndarray,
    weight: np.ndarray,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> np.ndarray:
    """In float64, channels first, one output channel at a time."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *padding])
    windows = windows_by_loops(padded, weight.shape[2:], stride, dilation)
    ins, outs = weight.shape[1], weight.shape[0] // groups
    taps = tuple(range(-len(stride), 0))
    result = []
    for channel, kernel in enumerate(weight):
        first = channel // outs * ins
        products = windows[:, first : first + ins] * kernel.reshape(
            ins, *(1,) * len(stride), *kernel.shape[1:]
        )
        result.append(products.sum(axis=(1, *taps)))
    return np.stack(result, axis=1)


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    """Sizes for a convolution, each axis of space with its own."""
    rank = draw(st.integers(1, 3))
    small = st.integers(1, 3)
    each = {name: draw(st.tuples(*[small] * rank)) for name in ("kernel", "stride", "dilation")}
    width = st.tuples(st.integers(0, 2), st.integers(0, 2))
    padding = draw(st.tuples(*[width] * rank))
    groups = draw(small)
    space = [
        max((taps - 1) * gap + 1 - sum(around), 0) + draw(st.integers(0, 5))
        for taps, gap, around in zip(each["kernel"], each["dilation"], padding, strict=True)
    ]
    return {
        **each,
        "padding": padding,
        "groups": groups,
        "x": (draw(st.integers(1, 2)), groups * draw(small), *space),
        "outs": groups * draw(small),
    }


@settings(max_examples=12, deadline=None)
@given(convolutions(), st.booleans())
def test_convolutions_equal_loops(sizes: dict[str, Any], channels_last: bool):
    groups = sizes["groups"]
    x = normal(*sizes["x"])
    weight = normal(sizes["outs"], x.shape[1] // groups, *sizes["kernel"], seed=1)
    options = {name: sizes[name] for name in ("stride", "padding", "dilation", "groups")}
    expected = conv_by_loops(x, weight, **options)
    if channels_last:
        x, expected = np.moveaxis(x, 1, -1), np.moveaxis(expected, 1, -1)
        weight = np.moveaxis(weight, (0, 1), (-1, -2))

    def conv(x, weight):
        return nn.conv(x, weight, **options, channels_last=channels_last)

    assert_layer(conv, expected, np.ascontiguousarray(x), np.ascontiguousarray(weight))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("shape", [(2, 5, 11), (2, 5, 9, 8), (1, 3, 5, 6, 7)])
def test_depthwise_convolution_is_convolution_of_as_many_groups(
    shape: tuple[int, ...], channels_last: bool
):
    channels, rank = shape[1], len(shape) - 2
    x, weight = normal(*shape), normal(channels, *(3,) * rank, seed=1)
    around = ((1, 1),) * rank
    expected = conv_by_loops(x, weight[:, None], (2,) * rank, around, (1,) * rank, channels)
    if channels_last:
        x, weight, expected = [
            np.ascontiguousarray(np.moveaxis(array, axis, -1))
            for array, axis in ((x, 1), (weight, 0), (expected, 1))
        ]

    def depthwise(x, weight):
        return nn.depthwise_conv(x, weight, stride=2, padding=1, channels_last=channels_last)

    assert_layer(depthwise, expected, x, weight)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    ("shape", "size", "stride", "padding"),
    [
        ((2, 3, 9), 2, None, 0),
        ((1, 3, 8, 8), 2, None, 0),
        ((1, 3, 9, 11), (3, 2), (2, 3), ((1, 0), (0, 1))),
        ((1, 2, 5, 6, 7), 3, 1, 1),
    ],
)
def test_pools_equal_loops(
    shape: tuple[int, ...], size: Any, stride: Any, padding: Any, channels_last: bool
):
    x, rank = normal(*shape) - 3, len(shape) - 2
    kernel = np.broadcast_to(size, rank).tolist()
    steps = kernel if stride is None else np.broadcast_to(stride, rank).tolist()
    around = [(padding, padding)] * rank if isinstance(padding, int) else list(padding)
    taps = tuple(range(-rank, 0))
    for pool, outside, reduced in ((nn.max_pool, -np.inf, np.max), (nn.avg_pool, 0, np.mean)):
        padded = np.pad(x, [(0, 0), (0, 0), *around], constant_values=outside)
        expected = reduced(windows_by_loops(padded, kernel, steps, [1] * rank), axis=taps)
        given = x
        if channels_last:
            given, expected = np.moveaxis(x, 1, -1).copy(), np.moveaxis(expected, 1, -1)

        def layer(x, pool=pool):
            return pool(x, size, stride=stride, padding=padding, channels_last=channels_last)

        assert_layer(layer, expected, given)


def test_the_largest_of_a_window_with_nan_is_nan():
    x = normal(1, 1, 4, 4)
    x[0, 0, 1, 2] = np.nan
    for pool in (nn.max_pool, jit(lambda x: nn.max_pool(x, 2))):
        result = pool(x, 2) if pool is nn.max_pool else pool(x)
        assert np.isnan(result).tolist() == [[[[False, True], [False, False]]]]


def test_layers_of_no_examples_are_empty():
    x, weight = np.zeros((0, 4, 6, 6), np.float32), normal(8, 2, 3, 3)

    def layers(x, weight):
        return nn.max_pool(nn.relu(nn.conv(x, weight, groups=2)), 2)

    assert layers(x, weight).shape == jit(layers)(x, weight).shape == (0, 8, 2, 2)


# --- normalisation and activations ----------------------------------------------------------------


@pytest.mark.parametrize("channels_last", [False, True])
def test_batch_norm(channels_last: bool):
    x = normal(2, 5, 6, 7)
    mean, gain, offset = (normal(5, seed=seed) for seed in (1, 2, 3))
    variance = np.abs(normal(5, seed=4))
    column = (5, 1, 1)
    expected = (x - mean.reshape(column)) / np.sqrt(variance.reshape(column) + 1e-5)
    expected = expected * gain.reshape(column) + offset.reshape(column)
    if channels_last:
        x, expected = np.moveaxis(x, 1, -1).copy(), np.moveaxis(expected, 1, -1)

    def layer(x, mean, variance, gain, offset):
        return nn.batch_norm(x, mean, variance, gain, offset, channels_last=channels_last)

    assert_layer(layer, expected, x, mean, variance, gain, offset)


def test_layer_norm_has_a_mean_and_a_variance():
    x = 3 * normal(40, 300) + 7
    result = nn.layer_norm(x, np.float32(2), np.float32(1))
    assert_near(result.mean(axis=1), np.ones(40))
    assert_near(result.std(axis=1), np.full(40, 2.0))
    gain, offset = normal(300, seed=1), normal(300, seed=2)
    assert_layer(nn.layer_norm, (result - 1) / 2 * gain + offset, x, gain, offset)


def test_rms_norm_has_a_length():
    x, gain = 3 * normal(40, 300) + 7, normal(300, seed=1)
    unit = nn.rms_norm(x, np.float32(1))
    assert_near((unit.astype(np.float64) ** 2).mean(axis=1), np.ones(40))
    assert_layer(nn.rms_norm, unit * gain, x, gain)


def by_element(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.array([function(value) for value in x.ravel().tolist()]).reshape(x.shape)


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (nn.relu, lambda x: max(x, 0.0)),
        (nn.sigmoid, lambda x: 1 / (1 + math.exp(-x))),
        (nn.silu, lambda x: x / (1 + math.exp(-x))),
    ],
)
def test_activations(layer: Callable[..., Any], function: Callable[[float], float]):
    x = 4 * normal(3, 50)
    assert_layer(layer, by_element(function)(x), x)


def test_gelu_is_near_the_normal_distribution():
    x = np.linspace(-8, 8, 4001, dtype=np.float32)
    exact = by_element(lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2)(x)
    assert np.abs(nn.gelu(x) - exact).max() < 5e-4
    assert_layer(nn.gelu, nn.gelu(x.astype(np.float64)), x)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int):
    x = 50 * normal(4, 5, 6)
    e = np.exp(x.astype(np.float64))
    assert_layer(lambda x: nn.softmax(x, axis), e / e.sum(axis=axis, keepdims=True), x)


# --- attention ------------------------------------------------------------------------------------


def attention_by_loops(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, seen: np.ndarray, scale: float
) -> np.ndarray:
    """One query at a time, in float64; seen: bool[n, heads, s, t]."""
    n, heads, s, _ = query.shape
    shared = heads // key.shape[1]
    result = np.empty((n, heads, s, value.shape[-1]))
    for example, head, at in itertools.product(range(n), range(heads), range(s)):
        keys = key[example, head // shared].astype(np.float64)
        weights = np.exp(keys @ query[example, head, at] * scale) * seen[example, head, at]
        result[example, head, at] = weights @ value[example, head // shared] / weights.sum()
    return result


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("s", "t"), [(1, 9), (7, 7), (5, 12)])
def test_attention_equals_loops(groups: int, s: int, t: int):
    query, key = normal(2, 4, s, 8), normal(2, groups, t, 8, seed=1)
    value = normal(2, groups, t, 6, seed=2)
    causal = np.arange(t) <= np.arange(s)[:, None] + (t - s)
    padded = np.array([t - 1, t - 3])[:, None, None, None] > np.arange(t)
    padded = padded | (np.arange(t) == 0)
    scale = 1 / math.sqrt(8)
    for seen, options in (
        (np.array(True), {}),
        (causal, {"causal": True}),
        (padded, {"mask": padded}),
        (padded & causal, {"mask": padded, "causal": True}),
        (padded, {"mask": np.where(padded, 0, -np.inf).astype(np.float32)}),
    ):
        every = np.broadcast_to(seen, (2, 4, s, t))
        expected = attention_by_loops(query, key, value, every, scale)

        def layer(query, key, value, options=options):
            return nn.attention(query, key, value, **options)

        assert_layer(layer, expected, query, key, value)


def test_attention_scaled_otherwise_and_without_a_batch():
    query, key, value = normal(3, 5, 8), normal(3, 6, 8, seed=1), normal(3, 6, 8, seed=2)
    seen = np.ones((1, 3, 5, 6), bool)
    expected = attention_by_loops(query[None], key[None], value[None], seen, 0.5)[0]
    assert_layer(lambda q, k, v: nn.attention(q, k, v, scale=0.5), expected, query, key, value)


def test_a_query_that_sees_nothing_gives_nan():
    query, key = normal(1, 3, 4), normal(1, 2, 4, seed=1)
    result = jit(lambda q, k: nn.attention(q, k, k, causal=True))(query, key)
    assert np.isnan(result[0]).all(axis=-1).tolist() == [True, False, False]


def test_rope_turns_by_position():
    x = normal(3, 5, 8)
    result = nn.rope(x, 10)
    for at, pair in itertools.product(range(5), range(4)):
        turn = np.exp(1j * (10 + at) * 10_000 ** (-2 * pair / 8))
        expected = (x[:, at, pair] + 1j * x[:, at, pair + 4]) * turn
        found = result[:, at, pair] + 1j * result[:, at, pair + 4]
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert_layer(lambda x: nn.rope(x, 10), result, x)


def test_products_of_turned_vectors_depend_on_their_distance():
    query, key = normal(1, 16), normal(1, 16, seed=1)
    near = nn.rope(query, 3) @ nn.rope(key, 1).T
    far = nn.rope(query, 103) @ nn.rope(key, 101).T
    np.testing.assert_allclose(near, far, atol=1e-4)


def test_the_start_of_rope_is_a_value_of_the_run():
    turned = jit(nn.rope)
    for start in (0.0, 5.0, 17.5):
        np.testing.assert_allclose(
            turned(normal(4, 6), start), nn.rope(normal(4, 6), start), atol=1e-5
        )
    assert turned.cache_info().misses == 1


# --- traced as users' code ------------------------------------------------------------------------


def test_masks_are_computed_from_positions():
    graph = jit(lambda q: nn.attention(q, q, q, causal=True)).trace(normal(2, 40, 8)).graph
    positions = [eqn.outputs[0].shape for eqn in graph.eqns if eqn.primitive is iota]
    assert positions == [(40,), (40,)]
    assert len(graph.inputs) == 1  # no mask among them


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_block_has_the_same_bits_however_it_is_scheduled(channels_last: bool):
    shape, kernel = ((1, 8, 8, 5), (3, 3, 5, 6)) if channels_last else ((1, 5, 8, 8), (6, 5, 3, 3))

    def block(x, weight, scale, shift):
        y = nn.conv(x, weight, padding=1, channels_last=channels_last)
        column = (6,) if channels_last else (6, 1, 1)
        y = nn.relu(y * scale.reshape(column) + shift.reshape(column))
        return nn.max_pool(y, 2, channels_last=channels_last)

    arrays = [ArraySpec("float32", size) for size in (shape, kernel, (6,), (6,))]
    check_equivalence(block, *arrays, exact=False, schedules=2, examples=1)
