"""Scales of channels move into weights: which do, and what becomes of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyfuse import jit, nn
from tinyfuse.graph import primitives as p
from tinyfuse.graph.fold_batch_norm import fold_batch_norm
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.simplify import simplify
from tinyfuse.graph.verifier import verify_graph


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


X, WEIGHT = normal(2, 3, 6, 7), normal(5, 3, 3, 3, seed=1)
GAIN, OFFSET, MEAN = (normal(5, seed=seed) for seed in (2, 3, 4))
VARIANCE = np.abs(normal(5, seed=5)) + 1


def graphs(function: Callable[..., Any], *arrays: np.ndarray) -> tuple[Graph, Graph]:
    """Before and after."""
    before = simplify(jit(function).trace(*arrays).graph)
    after = fold_batch_norm(before)
    verify_graph(after)
    return before, after


def operations(graph: Graph, *shape: int) -> list[str]:
    """What is computed of each element of an array of this shape."""
    found = [eqn for eqn in graph.eqns if eqn.primitive is p.elementwise]
    return [eqn.params["op"] for eqn in found if eqn.output.shape == shape]


def conv_norm(x, weight, mean, variance, gain, offset):
    return nn.batch_norm(nn.conv(x, weight), mean, variance, gain, offset)


def as_written(x, weight, mean, variance, gain, offset):
    column = (-1, 1, 1)
    centred = nn.conv(x, weight) - mean.reshape(column)
    deviation = np.sqrt(variance + 1e-5).reshape(column)
    return offset.reshape(column) + gain.reshape(column) * (centred / deviation)


def channels_last(x, weight, mean, variance, gain, offset):
    x, weight = np.moveaxis(x, 1, -1), np.moveaxis(weight, (0, 1), (-1, -2))
    y = nn.conv(x, weight, channels_last=True)
    return nn.batch_norm(y, mean, variance, gain, offset, channels_last=True)


@pytest.mark.parametrize("function", [conv_norm, as_written, channels_last])
def test_one_sum_for_each_element_is_left(function: Callable[..., Any]):
    arrays = (X, WEIGHT, MEAN, VARIANCE, GAIN, OFFSET)
    before, after = graphs(function, *arrays)
    expected = function(*arrays)
    assert len(operations(before, *expected.shape)) > 1
    assert operations(after, *expected.shape) == ["add"]
    (found,) = interpret(after, arrays, NumpyNumerics())
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_scales_that_are_powers_of_two_leave_the_bits():
    def layer(x, weight, scale):
        return nn.conv(x, weight) * scale[:, None, None]

    scale = np.float32(2) ** np.arange(-2, 3, dtype=np.float32)
    before, after = graphs(layer, X, WEIGHT, scale)
    assert operations(after, 2, 5, 4, 5) == []
    (expected,), (found,) = (
        interpret(graph, (X, WEIGHT, scale), NumpyNumerics()) for graph in (before, after)
    )
    np.testing.assert_array_equal(found, expected)


def test_a_dense_layer_is_a_product_too():
    def layer(x, weight, scale, shift):
        return np.maximum((x @ weight) * scale + shift, 0)

    _, after = graphs(layer, normal(4, 6), normal(6, 5), GAIN, OFFSET)
    assert operations(after, 4, 5) == ["add", "maximum"]
    assert operations(after, 6, 5) == ["multiply"]


@pytest.mark.parametrize(
    "layer",
    [
        pytest.param(lambda x, w, s: nn.conv(x, w) + s[:, None, None], id="only a shift"),
        pytest.param(lambda x, w, s: s[:, None, None] / nn.conv(x, w), id="a divisor"),
        pytest.param(lambda x, w, s: nn.conv(x, w) * s, id="another axis"),
        pytest.param(lambda x, w, s: nn.relu(nn.conv(x, w)) * s[:, None, None], id="after relu"),
        pytest.param(
            lambda x, w, s: (y := nn.conv(x, w)) * s[:, None, None] + np.exp(y), id="read twice"
        ),
        pytest.param(
            lambda x, w, s: nn.depthwise_conv(x, w[:3, 0]) * s[:3, None, None], id="of a batch"
        ),
    ],
)
def test_what_does_not_scale_channels_stays(layer: Callable[..., Any]):
    arrays = (X, WEIGHT, GAIN)
    before = simplify(jit(layer).trace(*arrays).graph)
    assert fold_batch_norm(before) is before


def test_it_is_applied_where_it_is_asked_for():
    arrays = normal(2, 8, 12, 12), normal(16, 8, 3, 3), *(normal(16, seed=at) for at in range(4))
    arrays = (*arrays[:3], np.abs(arrays[3]), *arrays[4:])
    plain, folded = jit(conv_norm), jit(conv_norm, rewrites="fold_batch_norm")
    text = folded.lower(*arrays).as_text("graph")
    assert text != plain.lower(*arrays).as_text("graph")
    np.testing.assert_allclose(folded(*arrays), plain(*arrays), rtol=1e-4, atol=1e-5)
