"""Small, varied numpy programs as people write them, with the types of their arguments."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

BIAS = np.array([0.5, -1.0, 0.25, 0.0], np.float32)


@dataclass(frozen=True)
class Example:
    """types: `float32[8, 16]` as (dtype, shape), or a value that is passed as it is."""

    function: Callable[..., Any]
    types: tuple[Any, ...]

    def arguments(self) -> tuple[Any, ...]:
        """The same on every call."""
        random = np.random.default_rng(zlib.crc32(self.function.__name__.encode()))
        return tuple(
            _array(random, each) if isinstance(each, tuple) else each for each in self.types
        )


def _array(random: np.random.Generator, type_: tuple[str, tuple[int, ...]]) -> np.ndarray:
    dtype, shape = np.dtype(type_[0]), type_[1]
    if dtype.kind == "c":
        return random.standard_normal((*shape, 2)).view(dtype)[..., 0]
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, weight, bias):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * weight + bias


def dense(x, weight):
    return np.maximum(x @ weight + BIAS, 0)


def blur(image):
    rows = image[:-2] + image[1:-1] + image[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9


def convolution(image, kernel):
    windows = sliding_window_view(np.pad(image, 1), kernel.shape)
    return (windows * kernel).sum(axis=(-2, -1))


def moments(x):
    mean = x.mean(axis=0)
    variance = ((x - mean) ** 2).mean(axis=0)
    return mean, variance


def nearest(points, centres):
    squares = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    return squares.argmin(axis=1)


def limited(x, low, high):
    joined = np.concatenate([x, -x], axis=1)
    return np.where(joined < low, low, np.where(joined > high, high, joined))


def symmetric(x):
    return (x + x.T) / 2


def checksum(words):
    mixed = (words ^ (words >> 7)) * np.uint32(2654435761)
    return np.bitwise_count(mixed & 0xFFFF), (mixed // 3 % 251).sum()


def scaled_sum(x, y, alpha, beta):
    return alpha * x + beta * y


def outer_difference(x, y):
    return np.abs(x[:, None] - y)


def distances(points, centres):
    return np.sqrt(((points[:, None] - centres) ** 2).sum(axis=-1))


def running_pairs(x):
    return (x[1:] + x[:-1])[::2], np.stack([x, x[::-1]]).T


def cosine(x, y):
    return x @ y / np.sqrt((x * x).sum() * (y * y).sum())


def large_sums(x):
    return x.sum(), x.sum(axis=0), x.sum(axis=1)


def long_dot(x, y):
    return np.dot(x, y)


def any_negative(x):
    return (x < 0).any(axis=1), np.isfinite(x).all()


def causal_attention(query, key, value):
    scores = query @ np.swapaxes(key, -1, -2) * np.float32(0.25)
    positions = np.arange(query.shape[-2])
    scores = np.where(positions[:, None] >= positions, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value


def attention(query, key, value):
    scores = query @ key.T / np.sqrt(np.float32(query.shape[-1]))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value


def quantize(x):
    scale = np.abs(x).max() / 127
    return np.rint(x / scale).astype(np.int8), scale


def batched(x, y):
    return np.einsum("bij,bjk->bik", x, y)


def rebound(x):
    x = x - x.min()
    x = x / x.max()
    return x  # noqa: RET504


def transposed_sum(x, y):
    return (x.T + y).reshape(2, -1)[:, ::-3]


def mixed(image, weights):
    return image.T * weights - image.mean()


def smallest(x):
    return x[0, 0] + x[-1, -1]


def integral_image(image):
    return np.cumsum(np.cumsum(image * 2, axis=0), axis=1)


def ranked(x, y):
    order = np.argsort(x, axis=0)
    return np.take_along_axis(y, order, axis=0), np.sort(x - y), np.median(x, axis=1)


def layers(x, first, second, third):
    for weight in (first, second, third):
        x = x + np.tanh(x @ weight)
    return x


def phasors(z, turn):
    turned = z * np.exp(1j * turn)
    return np.abs(turned), turned.conj() @ z


PROGRAMS: dict[str, Example] = {
    example.function.__name__: example
    for example in [
        Example(softmax, (("float32", (8, 300)),)),
        Example(layer_norm, (("float32", (4, 64)), ("float32", (64,)), ("float32", (64,)))),
        Example(dense, (("float32", (5, 7)), ("float32", (7, 4)))),
        Example(blur, (("float64", (10, 20)),)),
        Example(convolution, (("float32", (6, 9)), ("float32", (3, 3)))),
        Example(moments, (("float64", (130, 3)),)),
        Example(nearest, (("float32", (6, 3)), ("float32", (4, 3)))),
        Example(limited, (("int32", (3, 4)), ("int32", (3, 1)), ("int32", (8,)))),
        Example(symmetric, (("float64", (5, 5)),)),
        Example(checksum, (("uint32", (40,)),)),
        Example(scaled_sum, (("float32", (100,)), ("float32", (100,)), 0.5, -2.0)),
        Example(outer_difference, (("float64", (6,)), ("float64", (9,)))),
        Example(distances, (("float32", (21, 20)), ("float32", (40, 20)))),
        Example(running_pairs, (("int16", (11,)),)),
        Example(cosine, (("float64", (100,)), ("float64", (100,)))),
        Example(large_sums, (("float32", (300, 2100)),)),
        Example(long_dot, (("float32", (9000,)), ("float32", (9000,)))),
        Example(any_negative, (("float64", (7, 90)),)),
        Example(causal_attention, (("float32", (2, 256, 16)),) * 3),
        Example(attention, (("float32", (6, 8)), ("float32", (10, 8)), ("float32", (10, 4)))),
        Example(quantize, (("float32", (4, 33)),)),
        Example(batched, (("float64", (2, 3, 4)), ("float64", (2, 4, 5)))),
        Example(rebound, (("float32", (50,)),)),
        Example(transposed_sum, (("float64", (6, 4)), ("float64", (4, 6)))),
        Example(mixed, (("float32", (40, 70)), ("float32", (70, 40)))),
        Example(smallest, (("float32", (3, 3)),)),
        Example(integral_image, (("float32", (90, 200)),)),
        Example(ranked, (("float32", (40, 9)), ("float32", (40, 9)))),
        Example(layers, (("float32", (40, 16)), *[("float32", (16, 16))] * 3)),
        Example(phasors, (("complex128", (100,)), ("float64", (100,)))),
    ]
}
