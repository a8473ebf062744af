"""Discrete Fourier transforms, as products with small matrices of roots of unity.

A length is taken apart into factors (Cooley and Tukey, 1965): each of them is one product with a
matrix, with a multiplication by roots in between. A large prime is a convolution of a length that
is a power of two (Bluestein, 1970). Rounding is in proportion to the logarithm of the length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import is_complex, part_dtype
from tinyfuse.trace.axes import normalize_axis_index
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import constant_atom
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.joining import concatenate_
from tinyfuse.trace.linear_algebra import matmul
from tinyfuse.trace.operations import cast, reshape, slice_axis, traced
from tinyfuse.trace.padding import pad
from tinyfuse.trace.selection import of_parts
from tinyfuse.trace.shape import moveaxis, swapaxes
from tinyfuse.trace.tracer import Tracer

LARGEST_MATRIX = 16  # up to this extent a transform is one product
LARGEST_PRIME = 200  # above, a convolution takes less

Array = np.ndarray


# -- roots of unity


@lru_cache(maxsize=256)
def _roots(numerators: tuple[int, int], n: int, sign: int) -> Array:
    """exp(sign 2 pi i j k / n), for all j and k below two extents, in complex256."""
    first, second = [np.arange(extent, dtype=np.int64) for extent in numerators]
    return _on_circle(first[:, None] * second % n, n, sign)


def _on_circle(turns: Array, n: int, sign: int) -> Array:
    """exp(sign 2 pi i turns / n), with zeros where a part vanishes. turns: from 0 to n - 1."""
    angles = turns.astype(np.longdouble) * (_FULL / n)
    roots = np.cos(angles) + sign * 1j * np.sin(angles)
    roots.real[4 * turns % (2 * n) == n] = 0
    roots.imag[2 * turns % n == 0] = 0
    return roots


_FULL = 8 * np.arctan(np.longdouble(1))


def _constant(array: Array, dtype: np.dtype) -> Tracer:
    return Tracer(active(), constant_atom(np.ascontiguousarray(array, dtype)))


# -- along the last axis


def _transformed(x: Tracer, sign: int) -> Tracer:
    """The transform of complex or real numbers, not scaled."""
    n = x.shape[-1]
    if n == 1:
        return _as_complex(x)
    factor = _factor(n)
    if factor == n:
        return _by_matrix(x, sign) if n <= LARGEST_PRIME else _by_convolution(x, sign)
    rows = reshape(x, (*x.shape[:-1], factor, n // factor))
    over_rows = swapaxes(_transformed(swapaxes(rows, -1, -2), sign), -1, -2)
    twisted = apply(
        np.multiply,
        (over_rows, _constant(_roots((factor, n // factor), n, sign), over_rows.dtype)),
    )
    whole = swapaxes(_transformed(twisted, sign), -1, -2)
    return reshape(whole, x.shape)


def _factor(n: int) -> int:
    """The largest factor that one matrix transforms; else the smallest one, which is prime."""
    if n <= LARGEST_MATRIX:
        return n
    small = [each for each in range(2, LARGEST_MATRIX + 1) if n % each == 0]
    if small:
        return small[-1]
    return next((each for each in range(2, int(n**0.5) + 1) if n % each == 0), n)


def _as_complex(x: Tracer) -> Tracer:
    return x if is_complex(x.dtype) else cast(x, np.result_type(x.dtype, np.complex64))


def _by_matrix(x: Tracer, sign: int) -> Tracer:
    n = x.shape[-1]
    roots = _roots((n, n), n, sign)
    if is_complex(x.dtype):
        return matmul(x, _constant(roots, x.dtype))
    re, im = [matmul(x, _constant(part, x.dtype)) for part in (roots.real, roots.imag)]
    return of_parts(re, im)


def _by_convolution(x: Tracer, sign: int) -> Tracer:
    """Bluestein's: j k = (j^2 + k^2 - (k - j)^2) / 2."""
    n, size = x.shape[-1], 1 << (2 * x.shape[-1] - 2).bit_length()
    chirp = _on_circle(np.arange(n, dtype=np.int64) ** 2 % (2 * n), 2 * n, sign)
    filled = np.zeros(size, np.clongdouble)
    filled[:n] = chirp.conj()
    filled[size - n + 1 :] = chirp.conj()[:0:-1]
    x = _as_complex(x)
    here = _constant(chirp, x.dtype)
    padded = pad(apply(np.multiply, (x, here)), [(0, 0)] * (x.ndim - 1) + [(0, size - n)])
    spectrum = _constant(np.fft.fft(filled) / size, x.dtype)
    found = _transformed(apply(np.multiply, (_transformed(padded, -1), spectrum)), 1)
    return apply(np.multiply, (slice_axis(found, x.ndim - 1, 0, n), here))


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


def _along(x: Tracer, axis: Any, function: Callable[[Tracer], Tracer]) -> Tracer:
    """A function of the last axis, along another one."""
    at = normalize_axis_index(axis, x.ndim)
    return moveaxis(function(moveaxis(x, at, -1)), -1, at)


def _both_ways(name: str, inverse: bool) -> Callable[..., Tracer]:
    @listed(getattr(np.fft, name))
    def transform(
        a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
    ) -> Tracer:
        def of_last(x: Tracer) -> Tracer:
            x = _sized(x, n, x.ndim - 1)
            return _scaled(_transformed(x, 1 if inverse else -1), x.shape[-1], inverse, norm)

        return _along(_taken(a), axis, of_last)

    return transform


fft = _both_ways("fft", inverse=False)
ifft = _both_ways("ifft", inverse=True)


@listed(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    """The first half of the transform of real numbers; the other half is its conjugate."""

    def of_last(x: Tracer) -> Tracer:
        x = _sized(x, n, x.ndim - 1)
        half = slice_axis(_transformed(x, -1), x.ndim - 1, 0, x.shape[-1] // 2 + 1)
        return _scaled(half, x.shape[-1], False, norm)

    return _along(_taken(a), axis, of_last)


@listed(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    def of_last(x: Tracer) -> Tracer:
        extent = 2 * (x.shape[-1] - 1) if n is None else n
        if extent < 1:
            raise errors.InvalidArgumentError(
                f"Invalid number of FFT data points ({extent}) specified."
            )
        last = x.ndim - 1
        half = _sized(x, extent // 2 + 1, last)
        count = (extent + 1) // 2 - 1
        if count:
            rest = slice_axis(half, last, count, count, -1)
            half = concatenate_([half, apply(np.conjugate, (rest,))], axis=last)
        return _scaled(_transformed(half, 1).real, extent, True, norm)

    return _along(_as_complex(_taken(a)), axis, of_last)


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
