"""Reductions and sorting of complex numbers, by those of their parts.

Parts are summed apart, each in the order of its kind. Numbers are ordered by the real part, then by
the imaginary one; the first NaN along the reduced axes is their extreme, as numpy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyfuse.dtypes import INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.complex_arithmetic import multiply
from tinyfuse.graph.parts import Complex, Real, select

Axes = Sequence[int]
UINT8 = np.dtype(np.uint8)


def _sum(z: Complex, axes: Axes, dtype: np.dtype) -> Complex:
    parts = [part.of(p.reduce, op="sum", axes=tuple(axes), dtype=dtype) for part in z]
    return Complex(*parts)


def _prod(z: Complex, axes: Axes, dtype: np.dtype) -> Complex:
    """First half times second half, until one is left; an odd last one waits."""
    line = _converted(_lines(z, axes), dtype)
    while (count := line.re.shape[-1]) > 1:
        half = count // 2
        made = multiply(_piece(line, 0, half), _piece(line, half, half))
        rest = [_piece(line, 2 * half, 1)] if count % 2 else []
        line = _joined([made, *rest])
    shape = line.re.shape[:-1]
    if not line.re.shape[-1]:
        one, none = line.re.like(1), line.re.like(0)
        return Complex(one.of(p.broadcast, shape=shape), none.of(p.broadcast, shape=shape))
    return Complex(*[part.of(p.reshape, shape=shape) for part in line])


def _converted(z: Complex, dtype: np.dtype) -> Complex:
    return Complex(z.re.cast(dtype), z.im.cast(dtype))


def _lines(z: Complex, axes: Axes) -> Complex:
    """With the reduced axes as one, the last."""
    return Complex(*[_line(part, axes) for part in z])


def _line(x: Real, axes: Axes) -> Real:
    others = [at for at in range(len(x.shape)) if at not in axes]
    count = int(np.prod([x.shape[at] for at in axes], dtype=np.int64))
    turned = x.of(p.transpose, axes=(*others, *axes))
    return turned.of(p.reshape, shape=(*[x.shape[at] for at in others], count))


def _piece(z: Complex, start: int, count: int) -> Complex:
    rank = len(z.re.shape)
    starts, steps = (*(0,) * (rank - 1), start), (1,) * rank
    shape = (*z.re.shape[:-1], count)
    return Complex(*[x.of(p.slice_, starts=starts, steps=steps, shape=shape) for x in z])


def _joined(pieces: Sequence[Complex]) -> Complex:
    first, *others = pieces
    if not others:
        return first
    axis = len(first.re.shape) - 1
    re = first.re.of(p.concat, *[each.re for each in others], axis=axis)
    return Complex(re, first.im.of(p.concat, *[each.im for each in others], axis=axis))


class _Extreme:
    """What is known of the largest or smallest numbers along the last axis."""

    def __init__(self, z: Complex, op: str) -> None:
        self.z, self.op = z, op
        self.worst = float("-inf" if op == "max" else "inf")
        self.nan = z.re.apply("isnan") | z.im.apply("isnan")
        self.has_nan = _over(self.nan, "any")
        self.re = _over(z.re, op)
        self._leads = z.re.is_(_along(self.re, z.re.shape))
        self.im = _over(select(self._leads, z.im, self.worst), op)

    def value(self) -> Complex:
        place = Real(self.z.re.equations, self.z.re.equations.emit(p.iota, extent=self._count))
        places = place.of(p.broadcast, shape=self.z.re.shape)
        first = places.is_(_along(_over(self.nan, "argmax"), self.z.re.shape))

        def part(x: Real, otherwise: Real) -> Real:
            return select(self.has_nan, _over(select(first, x, self.worst), self.op), otherwise)

        return Complex(part(self.z.re, self.re), part(self.z.im, self.im))

    def place(self) -> Real:
        found = self._leads & self.z.im.is_(_along(self.im, self.z.im.shape))
        return select(self.has_nan, _over(self.nan, "argmax"), _over(found, "argmax"))

    @property
    def _count(self) -> int:
        return self.z.re.shape[-1]


def _over(x: Real, op: str) -> Real:
    """A reduction over the last axis."""
    dtype = INT64 if op == "argmax" else x.dtype
    return x.of(p.reduce, op=op, axes=(len(x.shape) - 1,), dtype=dtype)


def _along(x: Real, shape: tuple[int, ...]) -> Real:
    """The same for all along the last axis."""
    return x.of(p.reshape, shape=(*x.shape, 1)).of(p.broadcast, shape=shape)


def _extreme(op: str) -> Callable[[Complex, Axes, np.dtype], Complex]:
    return lambda z, axes, dtype: _Extreme(_lines(z, axes), op).value()


def _place(op: str) -> Callable[[Complex, Axes, np.dtype], Real]:
    return lambda z, axes, dtype: _Extreme(_lines(z, axes), op).place()


# Of complex numbers, by the name of a row of `REDUCE_OPS`.
REDUCTIONS: dict[str, Callable[[Complex, Axes, np.dtype], Complex | Real]] = {
    "sum": _sum,
    "prod": _prod,
    "max": _extreme("max"),
    "min": _extreme("min"),
    "argmax": _place("max"),
    "argmin": _place("min"),
}


# -- sorting


def argsorted(z: Complex, axis: int) -> Real:
    """The positions in ascending order; equal numbers stay in theirs.

    Numbers with a NaN come last: those with one in the imaginary part, in the real part, in both.
    """
    nan_re, nan_im = [part.apply("isnan").cast(UINT8) for part in z]
    kind = nan_im + nan_re * 2
    places = z.im.of(p.argsort, axis=axis, kind="stable")
    for key in (z.re, kind):
        later = _taken(key, places, axis).of(p.argsort, axis=axis, kind="stable")
        places = _taken(places, later, axis)
    return places


def taken_along(z: Complex, places: Real, axis: int) -> Complex:
    return Complex(_taken(z.re, places, axis), _taken(z.im, places, axis))


def _taken(x: Real, places: Real, axis: int) -> Real:
    """The elements at these places along an axis."""
    indices = [places if at == axis else _iota(x, places.shape, at) for at in range(len(x.shape))]
    return x.of(p.gather, *indices)


def _iota(x: Real, shape: tuple[int, ...], axis: int) -> Real:
    """The position along an axis, for all elements of an array."""
    extent = shape[axis]
    line = Real(x.equations, x.equations.emit(p.iota, extent=extent))
    upright = line.of(p.reshape, shape=(extent, *(1,) * (len(shape) - axis - 1)))
    return upright.of(p.broadcast, shape=shape)
