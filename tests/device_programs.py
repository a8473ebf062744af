"""Programs for the tests of devices, each with what its kernels have to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

F32 = np.float32


def array(*shape: int, seed: int = 0, dtype: Any = F32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class DeviceProgram(NamedTuple):
    """kernels: for each (blocks, threads, barriers)."""

    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    kernels: tuple[tuple[int, int, int], ...]


def elementwise(x, y):
    return np.exp(x) * y + x


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x, g, b):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g + b


def bias_relu(a, b, c):
    return np.maximum(a @ b + c, 0)


def total(x):
    return x.sum()


def columns(x):
    return x.sum(axis=0)


def transposed(x):
    return x.T + 1


def ends(x):
    return x.min(axis=1), x.argmax(axis=1), np.cumsum(x, axis=1)


def batched(a, b):
    return np.matmul(a, b) * 2


def counts(ids):
    return np.bincount(ids, minlength=16)


def smoothed(x):
    y = x.copy()
    for _ in range(40):
        y[1:-1] = 0.5 * (y[:-2] + y[2:])
    return y


def halved(x):
    turns = 0
    while np.abs(x).max() > 1e-3:
        x = x * F32(0.5)
        turns += 1
    return x, turns


def sorted_rows(x):
    return np.sort(x, axis=-1), np.argsort(x, axis=-1)


def fields(x, k):
    return np.convolve(x, k, "valid")
