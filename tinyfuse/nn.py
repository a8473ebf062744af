"""Layers of neural networks, each a few lines of plain numpy.

They work on numpy arrays as they are, and inside `tinyfuse.jit`; none of them is special to
tinyfuse, so that a layer of your own, written in the same way, compiles as well.

Shapes: n examples, c channels, o output channels, `*space` one to three axes, such as y and x.
With `channels_last` arrays are `[n, *space, c]`, else `[n, c, *space]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Array = Any  # numpy's, or traced
Sizes = int | Sequence[int]  # one for all axes of space, or one for each
Padding = int | Sequence[int | tuple[int, int]]  # the same before and after, or a pair

# --- convolution and pooling ----------------------------------------------------------------------


def conv(
    x: Array,
    weight: Array,
    *,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    channels_last: bool = False,
) -> Array:
    """Convolution, as networks have it (a correlation: the weights are not flipped).

    out[n, o, y, x] = sum over c, i, j of
        padded[n, c, y * stride + i * dilation, x * stride + j * dilation] * weight[o, c, i, j]

    Args:
        x: `[n, c, *space]` or, with channels_last, `[n, *space, c]`.
        weight: `[o, c / groups, *kernel]` or, with channels_last, `[*kernel, c / groups, o]`.
        stride: steps between outputs.
        padding: zeros around each axis of space.
        dilation: steps between the inputs of one output.
        groups: outputs of the g-th part of o see the g-th part of c alone.

    Returns: `[n, o, *out]` or `[n, *out, o]`.
    """
    axes = _space(x, channels_last)
    rank = len(axes)
    kernel = weight.shape[:rank] if channels_last else weight.shape[2:]
    windows = _windows(_pad(x, padding, axes), kernel, stride, dilation, axes)
    place, taps = "xyz"[:rank], "ijk"[:rank]
    g, parts = ("g", (groups,)) if groups > 1 else ("", ())
    if channels_last:
        n, *out, c = windows.shape[: rank + 2]
        o = weight.shape[-1]
        windows = windows.reshape(n, *out, *parts, c // groups, *kernel)
        weight = weight.reshape(*kernel, c // groups, *parts, o // groups)
        terms = f"{taps}c{g}o,n{place}{g}c{taps}->n{place}{g}o"
        return np.einsum(terms, weight, windows, optimize=True).reshape(n, *out, o)
    n, c, *out = windows.shape[: rank + 2]
    o = weight.shape[0]
    windows = windows.reshape(n, *parts, c // groups, *out, *kernel)
    weight = weight.reshape(*parts, o // groups, c // groups, *kernel)
    terms = f"n{g}c{place}{taps},{g}oc{taps}->n{g}o{place}"
    return np.einsum(terms, windows, weight, optimize=True).reshape(n, o, *out)


def depthwise_conv(
    x: Array,
    weight: Array,
    *,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    channels_last: bool = False,
) -> Array:
    """Convolution of each channel by itself.

    weight: `[c, *kernel]` or, with channels_last, `[*kernel, c]`. The rest is as for `conv`.
    """
    axes = _space(x, channels_last)
    kernel = weight.shape[:-1] if channels_last else weight.shape[1:]
    windows = _windows(_pad(x, padding, axes), kernel, stride, dilation, axes)
    place, taps = "xyz"[: len(axes)], "ijk"[: len(axes)]
    if channels_last:
        return np.einsum(f"n{place}c{taps},{taps}c->n{place}c", windows, weight)
    return np.einsum(f"nc{place}{taps},c{taps}->nc{place}", windows, weight)


def max_pool(
    x: Array,
    size: Sizes,
    *,
    stride: Sizes | None = None,
    padding: Padding = 0,
    channels_last: bool = False,
) -> Array:
    """The largest of each window of float x; NaN where one is in it.

    stride: `size` where it is not given: the windows are side by side. Padding is never largest.
    """
    axes = _space(x, channels_last)
    padded = _pad(x, padding, axes, -math.inf)
    return _pooled(padded, size, stride, axes).max(axis=_last(len(axes)))


def avg_pool(
    x: Array,
    size: Sizes,
    *,
    stride: Sizes | None = None,
    padding: Padding = 0,
    channels_last: bool = False,
) -> Array:
    """The average of each window; what is padded counts as zeros. The rest is as for `max_pool`."""
    axes = _space(x, channels_last)
    return _pooled(_pad(x, padding, axes), size, stride, axes).mean(axis=_last(len(axes)))


def _pooled(x: Array, size: Sizes, stride: Sizes | None, axes: range) -> Array:
    return _windows(x, _each(size, axes), size if stride is None else stride, 1, axes)


def _windows(x: Array, kernel: Sequence[int], stride: Sizes, dilation: Sizes, axes: range) -> Array:
    """A view with what each output reads in new last axes: x's axes, then `*kernel`."""
    steps, gaps = _each(stride, axes), _each(dilation, axes)
    spans = tuple([(size - 1) * gap + 1 for size, gap in zip(kernel, gaps, strict=True)])
    view = sliding_window_view(x, spans, tuple(axes))
    every = [slice(None)] * view.ndim
    for axis, tap, step, gap in zip(axes, _last(len(axes)), steps, gaps, strict=True):
        every[axis], every[tap] = slice(None, None, step), slice(None, None, gap)
    return view[tuple(every)]


def _pad(x: Array, padding: Padding, axes: range, value: float = 0.0) -> Array:
    widths: list[Any] = [(0, 0)] * x.ndim
    for axis, width in zip(axes, _each(padding, axes), strict=True):
        widths[axis] = (width, width) if isinstance(width, int) else width
    return np.pad(x, widths, constant_values=value) if padding else x


def _space(x: Array, channels_last: bool) -> range:
    """The axes of space."""
    return range(1, x.ndim - 1) if channels_last else range(2, x.ndim)


def _last(number: int) -> tuple[int, ...]:
    """So many last axes, such as (-2, -1)."""
    return tuple(range(-number, 0))


def _each(value: Any, axes: range) -> Sequence[Any]:
    return [value] * len(axes) if isinstance(value, int) else value


# --- normalisation --------------------------------------------------------------------------------


def batch_norm(
    x: Array,
    mean: Array,
    variance: Array,
    gain: Array,
    offset: Array,
    *,
    eps: float = 1e-5,
    channels_last: bool = False,
) -> Array:
    """(x - mean) / sqrt(variance + eps) * gain + offset, with the statistics of training.

    The others are `[c]`. Ioffe and Szegedy, Batch Normalization, 2015, algorithm 2: with one
    product and one sum for each element of x.
    """
    scale = gain / np.sqrt(variance + eps)
    shift = offset - mean * scale
    if not channels_last:
        column = (-1,) + (1,) * (x.ndim - 2)
        scale, shift = scale.reshape(column), shift.reshape(column)
    return x * scale + shift


def layer_norm(x: Array, gain: Array, offset: Array, *, eps: float = 1e-5) -> Array:
    """(x - mean) / sqrt(variance + eps) * gain + offset over the last axis: x[..., c], others [c].

    Ba, Kiros and Hinton, Layer Normalization, 2016.
    """
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gain + offset


def rms_norm(x: Array, gain: Array, *, eps: float = 1e-6) -> Array:
    """x / sqrt(mean of squares + eps) * gain over the last axis: x[..., c], gain[c].

    Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * gain


# --- activations ----------------------------------------------------------------------------------


def relu(x: Array) -> Array:
    """The larger of x and 0."""
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def silu(x: Array) -> Array:
    """x * sigmoid(x), which is also called swish."""
    return x / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    """x times the normal distribution up to x, within 5e-4, with a hyperbolic tangent.

    Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, section 2.
    """
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x) / sum(exp(x)) along an axis, of x less its largest, so that nothing overflows."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# --- attention ------------------------------------------------------------------------------------


def attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    mask: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """softmax(query @ key.T * scale) @ value. Vaswani et al., Attention Is All You Need, 2017.

    Args:
        query: `[..., heads, s, d]`.
        key: `[..., groups, t, d]`: each is for heads / groups heads one after the other.
        value: `[..., groups, t, e]`.
        mask: broadcast to `[..., heads, s, t]`: true where a query sees a key, or floats that are
            added to the products.
        causal: the last query sees all keys, the one before it all but the last one, and so on.
        scale: 1 / sqrt(d) where it is not given.

    Returns: `[..., heads, s, e]`. A query that sees no key gives NaN.
    """
    *batch, heads, s, d = query.shape
    groups, t = key.shape[-3:-1]
    query = query.reshape(*batch, groups, heads // groups, s, d)
    key, value = key[..., None, :, :], value[..., None, :, :]
    scores = query @ np.swapaxes(key, -1, -2) * (1 / math.sqrt(d) if scale is None else scale)
    if mask is not None:
        every = np.broadcast_to(mask, (*batch, heads, s, t)).reshape(scores.shape)
        scores = np.where(every, scores, -np.inf) if mask.dtype == bool else scores + every
    if causal:
        seen = np.arange(t) <= np.arange(s)[:, None] + (t - s)
        scores = np.where(seen, scores, -np.inf)
    return (softmax(scores) @ value).reshape(*batch, heads, s, -1)


def rope(x: Array, start: Any = 0, *, base: float = 10_000.0) -> Array:
    """Pairs of x[..., s, d] turned by angles that grow with the position start, start + 1, ...

    The pair (x[i], x[i + d / 2]) turns by position / base ** (2 i / d). Su et al., RoFormer:
    Enhanced Transformer with Rotary Position Embedding, 2021, section 3.2.2, with the halves for
    the pairs, as most models have them.
    """
    s, d = x.shape[-2:]
    slowness = base ** (np.arange(0, d, 2, dtype=x.dtype) / d)
    angle = (start + np.arange(s, dtype=x.dtype))[:, None] / slowness
    cos, sin = np.cos(angle), np.sin(angle)
    first, second = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
