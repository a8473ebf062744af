"""numpy.fft: discrete Fourier transforms of one axis and of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import is_complex, part_dtype
from tinyfuse.trace.axes import normalize_axis_index
from tinyfuse.trace.butterflies import Pair, minus, pair_of, plus, plus_turned, roots_of, times
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.operations import (
    cast,
    concatenate,
    elementwise,
    filled,
    reshape,
    size_of,
    slice_axis,
    traced,
)
from tinyfuse.trace.padding import pad
from tinyfuse.trace.selection import of_parts
from tinyfuse.trace.shape import flip, moveaxis
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.transforms import (
    interleaved,
    joined,
    pieces_of_transformed,
    transformed,
    transformed_columns,
)

# -- numpy's functions of one axis


def _scaled(x: Tracer, n: int, inverse: bool, norm: Any) -> Tracer:
    """By 1, 1 / sqrt(n) or 1 / n, as the direction and the norm say."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise errors.InvalidArgumentError(
            f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".'
        )
    if norm != "ortho" and inverse == (norm == "forward"):
        return x
    dtype = part_dtype(x.dtype)
    factor = dtype.type(1 / np.sqrt(n) if norm == "ortho" else 1 / n)
    if not is_complex(x.dtype):
        return apply(np.multiply, (x, factor))
    return of_parts(apply(np.multiply, (x.real, factor)), apply(np.multiply, (x.imag, factor)))


def _sized(x: Tracer, n: Any, axis: int) -> Tracer:
    """Cut off, or with zeros at the end."""
    extent = x.shape[axis]
    if n is None or n == extent:
        n = extent
    if n < 1:
        raise errors.InvalidArgumentError(f"Invalid number of FFT data points ({n}) specified.")
    if n <= extent:
        return slice_axis(x, axis, 0, n)
    return pad(x, [(0, n - extent if at == axis else 0) for at in range(x.ndim)])


def _taken(a: Any) -> Tracer:
    """An array in the dtype that numpy transforms."""
    x = traced(a)
    made = np.fft.fft(np.zeros(1, x.dtype)).dtype
    return cast(x, made if is_complex(x.dtype) else part_dtype(made))


def _as_complex(x: Tracer) -> Tracer:
    return x if is_complex(x.dtype) else cast(x, np.result_type(x.dtype, np.complex64))


def _along(x: Tracer, axis: Any, function: Callable[[Tracer], Tracer]) -> Tracer:
    """A function of the last axis, along another one."""
    at = normalize_axis_index(axis, x.ndim)
    return moveaxis(function(moveaxis(x, at, -1)), -1, at)


def _both_ways(name: str, inverse: bool) -> Callable[..., Tracer]:
    @listed(getattr(np.fft, name))
    def transform(
        a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
    ) -> Tracer:
        x = _taken(a)
        at = normalize_axis_index(axis, x.ndim)
        x, sign = _sized(x, n, at), 1 if inverse else -1
        shape, extent = x.shape, x.shape[at]
        if at == x.ndim - 1:
            found = transformed(pair_of(x), sign)
        else:
            rows = reshape(x, (*shape[:at], extent, size_of(shape[at + 1 :])))
            found = transformed_columns(pair_of(rows), sign)
        return reshape(_scaled(found.joined(), extent, inverse, norm), shape)

    return transform


fft = _both_ways("fft", inverse=False)
ifft = _both_ways("ifft", inverse=True)


@listed(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    """The first half of the transform of real numbers; the other half is its conjugate."""

    def of_last(x: Tracer) -> Tracer:
        x = _sized(x, n, x.ndim - 1)
        extent = x.shape[-1]
        found = _halved(x) if extent % 2 == 0 and extent > 2 else transformed(Pair(x, None), -1)
        half = found.map(lambda part: slice_axis(part, x.ndim - 1, 0, extent // 2 + 1))
        return _scaled(half.joined(), extent, False, norm)

    return _along(_taken(a), axis, of_last)


def _halved(x: Tracer) -> Pair:
    """The first half of the transform of real numbers, by that of half as many complex ones whose
    parts are those at even places and those at odd ones."""
    last, n = x.ndim - 1, x.shape[-1]
    even, odd = [slice_axis(x, last, at, n // 2, 2) for at in (0, 1)]
    found = transformed(Pair(even, odd), -1)
    middle = found.map(lambda part: slice_axis(part, last, 1, n // 2 - 1))
    sums, turned = _apart(middle, middle.map(lambda part: flip(part, last)))
    roots = roots_of(np.arange(1, n // 2), n, -1, x.dtype)
    middle = plus_turned(sums, times(turned, roots), -1)
    middle = middle.map(lambda part: apply(np.multiply, (part, part.dtype.type(0.5))))
    first = found.map(lambda part: slice_axis(part, last, 0, 1))
    assert first.im is not None
    assert middle.im is not None
    zero = filled(first.re.shape, x.dtype.type(0))
    ends = [elementwise(op, first.re, first.im) for op in ("add", "subtract")]
    re = concatenate([ends[0], middle.re, ends[1]], last)
    return Pair(re, concatenate([zero, middle.im, zero], last))


def _apart(x: Pair, other: Pair) -> tuple[Pair, Pair]:
    """The sum of numbers and the conjugates of others, and their difference."""
    conjugate = _conjugate(other)
    return plus(x, conjugate), minus(x, conjugate)


def _conjugate(x: Pair) -> Pair:
    return Pair(x.re, elementwise("negative", x.imaginary))


@listed(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    def of_last(x: Tracer) -> Tracer:
        extent = 2 * (x.shape[-1] - 1) if n is None else n
        if extent < 1:
            raise errors.InvalidArgumentError(
                f"Invalid number of FFT data points ({extent}) specified."
            )
        half = pair_of(_sized(x, extent // 2 + 1, x.ndim - 1))
        real = _doubled(half) if extent % 2 == 0 and extent > 2 else _filled_up(half, extent)
        return _scaled(real, extent, True, norm)

    return _along(_as_complex(_taken(a)), axis, of_last)


def _doubled(half: Pair) -> Tracer:
    """The real numbers of whose transform an even one's first half is given."""
    last, m = half.re.ndim - 1, half.re.shape[-1] - 1
    assert half.im is not None
    zero = filled((*half.re.shape[:-1], 1), half.re.dtype.type(0))
    whole = Pair(half.re, concatenate([zero, slice_axis(half.im, last, 1, m - 1), zero], last))
    first = whole.map(lambda part: slice_axis(part, last, 0, m))
    other = whole.map(lambda part: flip(slice_axis(part, last, 1, m), last))
    sums, differences = _apart(first, other)
    roots = roots_of(np.arange(m), 2 * m, 1, half.re.dtype)
    pieces = pieces_of_transformed(plus_turned(sums, times(differences, roots), 1), 1)
    return concatenate([interleaved(piece) for piece in pieces], last)


def _filled_up(half: Pair, extent: int) -> Tracer:
    """The same by the whole transform, which has the conjugates of the first half as its other."""
    last, count = half.re.ndim - 1, (extent + 1) // 2 - 1
    if count:
        rest = _conjugate(half.map(lambda part: slice_axis(part, last, count, count, -1)))
        half = joined([half, rest], last)
    return transformed(half, 1).re


_OTHER_WAY = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


@listed(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    return irfft(apply(np.conjugate, (_taken(a),)), n, axis, _OTHER_WAY.get(norm, norm))


@listed(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    return apply(np.conjugate, (rfft(a, n, axis, _OTHER_WAY.get(norm, norm)),))


# -- of several axes


def _extents_and_axes(
    x: Tracer, s: Any, axes: Any, of_half: bool = False
) -> tuple[list[Any], list[int]]:
    """For each axis the length of its transform, in the order in which they are given."""
    if s is None:
        chosen = list(range(x.ndim)) if axes is None else list(axes)
        extents = [x.shape[axis] for axis in chosen]
        if of_half and extents:
            extents[-1] = (extents[-1] - 1) * 2
        return extents, chosen
    chosen = list(range(-len(s), 0)) if axes is None else list(axes)
    if len(s) != len(chosen):
        raise errors.InvalidArgumentError("Shape and axes have different lengths.")
    given = [x.shape[axis] if n == -1 else n for n, axis in zip(s, chosen, strict=True)]
    return given, chosen


def _one_after_another(
    x: Tracer, function: Callable[..., Tracer], pairs: Sequence[tuple[Any, int]], norm: Any
) -> Tracer:
    for n, axis in pairs:
        x = function(x, n, axis, norm)
    return x


def _of_axes(name: str, function: Callable[..., Tracer], axes_by_default: Any) -> None:
    @listed(getattr(np.fft, name))
    def transform(
        a: Any, s: Any = None, axes: Any = axes_by_default, norm: Any = None, out: Any = None
    ) -> Tracer:
        x = _taken(a)
        extents, chosen = _extents_and_axes(x, s, axes)
        pairs = list(zip(extents, chosen, strict=True))[::-1]
        return _as_complex(_one_after_another(x, function, pairs, norm))


def _of_real_axes(name: str, axes_by_default: Any) -> None:
    @listed(getattr(np.fft, name))
    def transform(
        a: Any, s: Any = None, axes: Any = axes_by_default, norm: Any = None, out: Any = None
    ) -> Tracer:
        x = _taken(a)
        extents, chosen = _extents_and_axes(x, s, axes)
        *others, last = zip(extents, chosen, strict=True)
        return _one_after_another(rfft(x, *last, norm), fft, others[::-1], norm)


def _to_real_axes(name: str, axes_by_default: Any) -> None:
    @listed(getattr(np.fft, name))
    def transform(
        a: Any, s: Any = None, axes: Any = axes_by_default, norm: Any = None, out: Any = None
    ) -> Tracer:
        x = _taken(a)
        extents, chosen = _extents_and_axes(x, s, axes, of_half=True)
        *others, last = zip(extents, chosen, strict=True)
        return irfft(_one_after_another(x, ifft, others, norm), *last, norm)


for _suffix, _axes in (("2", (-2, -1)), ("n", None)):
    _of_axes(f"fft{_suffix}", fft, _axes)
    _of_axes(f"ifft{_suffix}", ifft, _axes)
    _of_real_axes(f"rfft{_suffix}", _axes)
    _to_real_axes(f"irfft{_suffix}", _axes)
