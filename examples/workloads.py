"""What bench.py times: plain numpy functions, with arguments and what a call has to do at least."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

F32 = np.float32


def chain(x, y):
    return np.sqrt(x * x + y * y) * 0.5 + np.abs(x - y)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layernorm(x, weight, bias):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * weight + bias


def total(x):
    return np.sum(x)


def column_sums(x):
    return np.sum(x, axis=0)


def blur(x):
    rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return (rows[:-2] + rows[1:-1] + rows[2:]) / 3


def matmul(x, y):
    return x @ y


def dense(x, weight, bias):
    """A layer of a network, with the GELU activation in its tanh form."""
    y = x @ weight + bias
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) * 0.125
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def distances(x, y):
    return np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)


def fifty_operations(x, weight, bias):
    """50 operations as one writes them: ten layers of five."""
    for _ in range(10):
        y = np.tanh(x @ weight + bias)
        x = x + y * 0.5
    return x


def scaled(a, x, b):
    return a * x + b


class Workload(NamedTuple):
    """shapes: of the float32 arguments. moved: whether moving its bytes is what limits a call."""

    function: Callable[..., object]
    shapes: tuple[tuple[int, ...], ...]
    moved: bool = True


WORKLOADS = (
    Workload(chain, ((1000, 1000), (1000, 1000))),
    Workload(softmax, ((2048, 1024),)),
    Workload(layernorm, ((2048, 1024), (1024,), (1024,))),
    Workload(total, ((2048, 1024),)),
    Workload(column_sums, ((2048, 1024),)),
    Workload(blur, ((1080, 1920),)),
    Workload(matmul, ((256, 256), (256, 256)), moved=False),
    Workload(dense, ((256, 512), (512, 1024), (1024,)), moved=False),
    Workload(attention, ((8, 256, 64),) * 3, moved=False),
    Workload(distances, ((512, 16), (512, 16)), moved=False),
)


def arguments(shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    """Standard normal values, the same at each call."""
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape, dtype=F32) for shape in shapes]
