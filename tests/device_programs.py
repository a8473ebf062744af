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


def weighted_counts(ids, w):
    return np.bincount(ids, w, minlength=16)


def added_rows(ids, rows):
    found = np.zeros((16, 5), F32)
    np.add.at(found, ids, rows)
    return found


def last_values(ids, x):
    found = np.ones(40, F32)
    found[2 * ids] = x
    return found


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


_X = array(6, 300)
_IDS = np.arange(200) ** 2 % 16

PROGRAMS: dict[str, DeviceProgram] = {
    "elementwise": DeviceProgram(elementwise, (_X, _X[::-1]), ((8, 256, 0),)),
    "softmax": DeviceProgram(softmax, (_X,), ((6, 256, 3),)),
    "softmax of few long rows": DeviceProgram(
        softmax, (array(5, 3000),), ((1, 32, 0), (5, 256, 4))
    ),
    "softmax of short rows": DeviceProgram(softmax, (array(700, 12),), ((11, 256, 6),)),
    "layernorm": DeviceProgram(layernorm, (_X, _X[0], _X[1]), ((6, 256, 4),)),
    "tiles": DeviceProgram(
        bias_relu, (array(150, 41), array(41, 140, seed=1), array(140)), ((4, 256, 4),)
    ),
    "small tiles": DeviceProgram(
        bias_relu, (array(40, 70), array(70, 33, seed=1), array(33)), ((1, 256, 4),)
    ),
    "batched tiles": DeviceProgram(
        batched, (array(2, 33, 20), array(2, 20, 40, seed=1)), ((2, 256, 3),)
    ),
    "total": DeviceProgram(total, (_X,), ((1, 64, 2),)),
    "columns": DeviceProgram(columns, (array(300, 50),), ((3, 64, 0), (1, 64, 0))),
    "transposed": DeviceProgram(transposed, (array(70, 90),), ((9, 256, 1),)),
    "ends": DeviceProgram(ends, (_X,), ((1, 32, 0),)),
    "counts": DeviceProgram(counts, (_IDS,), ((1, 224, 1), (1, 64, 1))),
    "weighted counts": DeviceProgram(
        weighted_counts, (_IDS, array(200)), ((1, 224, 1), (1, 32, 0))
    ),
    "added rows": DeviceProgram(added_rows, (_IDS, array(200, 5)), ((1, 224, 0), (1, 96, 0))),
    "last values": DeviceProgram(last_values, (_IDS, array(200)), ((1, 224, 0), (1, 64, 0))),
    "smoothed": DeviceProgram(smoothed, (array(100),), ((1, 128, 23), (1, 128, 15))),
    "halved": DeviceProgram(halved, (_X,), ((1, 256, 2), (1, 256, 4), (1, 256, 0))),
    "sorted rows": DeviceProgram(sorted_rows, (array(5, 50),), ((5, 64, 4),)),
    "fields": DeviceProgram(fields, (array(200), array(7, seed=1)), ((1, 224, 0),)),
}
