"""Discrete Fourier transforms of a few arrays, element by element, on their parts.

Of two, four and eight by sums and differences, of odd numbers by those of pairs that have the same
cosines: H. J. Nussbaumer, Fast Fourier Transform and Convolution Algorithms, 1982, chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tinyfuse.dtypes import is_complex
from tinyfuse.graph.ir import Literal
from tinyfuse.graph.scalar_ops import FMA
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import constant_atom
from tinyfuse.trace.operations import elementwise, filled
from tinyfuse.trace.selection import of_parts
from tinyfuse.trace.tracer import Tracer

# How many arrays there can be: an even number, or an odd prime.
RADICES = (8, 4, 2, 3, 5, 7, 11, 13)

Number = Tracer | Literal


class Pair(NamedTuple):
    """Complex numbers as two arrays, or real ones as one."""

    re: Tracer
    im: Tracer | None

    def map(self, function: Callable[[Tracer], Tracer]) -> Pair:
        return Pair(function(self.re), None if self.im is None else function(self.im))

    @property
    def imaginary(self) -> Tracer:
        return filled(self.re.shape, self.re.dtype.type(0)) if self.im is None else self.im

    def joined(self) -> Tracer:
        return of_parts(self.re, self.imaginary)


def pair_of(x: Tracer) -> Pair:
    return Pair(x.real, x.imag) if is_complex(x.dtype) else Pair(x, None)


# -- roots of unity


class Roots(NamedTuple):
    """What numbers are multiplied by: cosines and sines, and the sines with the other sign."""

    re: Number
    im: Number
    negative: Number


def on_circle(turns: np.ndarray, n: int, sign: int) -> np.ndarray:
    """exp(sign 2 pi i turns / n) in complex256, with zeros where a part vanishes.

    turns: from 0 to n - 1.
    """
    angles = turns.astype(np.longdouble) * (_FULL / n)
    roots = np.cos(angles) + sign * 1j * np.sin(angles)
    roots.real[4 * turns % (2 * n) == n] = 0
    roots.imag[2 * turns % n == 0] = 0
    return roots


_FULL = 8 * np.arctan(np.longdouble(1))


def roots_of(turns: np.ndarray, n: int, sign: int, dtype: np.dtype) -> Roots | None:
    """exp(sign 2 pi i turns / n), in the dtype of the parts; None where all are 1."""
    if not turns.any():
        return None
    roots = on_circle(turns % n, n, sign)
    return Roots(*[constant(part, dtype) for part in (roots.real, roots.imag, -roots.imag)])


def constant(array: np.ndarray, dtype: np.dtype) -> Tracer:
    return Tracer(active(), constant_atom(np.ascontiguousarray(array, dtype)))


# -- arithmetic


def plus(a: Pair, b: Pair) -> Pair:
    return _by_parts("add", a, b)


def minus(a: Pair, b: Pair) -> Pair:
    return _by_parts("subtract", a, b)


def _by_parts(op: str, a: Pair, b: Pair) -> Pair:
    re = elementwise(op, a.re, b.re)
    return Pair(re, None if a.im is None or b.im is None else elementwise(op, a.im, b.im))


def plus_turned(a: Pair, b: Pair, sign: int) -> Pair:
    """a + sign i b."""
    ops = ("subtract", "add") if sign > 0 else ("add", "subtract")
    if a.im is None or b.im is None:
        return Pair(a.re, elementwise(ops[1], Literal(a.re.dtype.type(0)), b.re))
    return Pair(elementwise(ops[0], a.re, b.im), elementwise(ops[1], a.im, b.re))


def times(a: Pair, w: Roots | None) -> Pair:
    """w: None for 1."""
    if w is None:
        return a
    if a.im is None:
        return Pair(_product(a.re, w.re), _product(a.re, w.im))
    re = elementwise(FMA, a.re, w.re, _product(a.im, w.negative))
    return Pair(re, elementwise(FMA, a.re, w.im, _product(a.im, w.re)))


def scaled(a: Pair, factor: float, more: Pair | None = None) -> Pair:
    """a times a number, plus another one."""
    number = Literal(a.re.dtype.type(factor))
    if more is None:
        return a.map(lambda x: _product(x, number))
    re = elementwise(FMA, a.re, number, more.re)
    if a.im is None or more.im is None:
        return Pair(re, None)
    return Pair(re, elementwise(FMA, a.im, number, more.im))


def _product(a: Number, b: Number) -> Tracer:
    return elementwise("multiply", a, b)


# -- transforms


def butterfly(x: Sequence[Pair], sign: int) -> list[Pair]:
    """The transform of as many arrays as one of `RADICES` says: sum of x[j] w^(j k) for each k."""
    if len(x) % 2 and len(x) > 1:
        return _of_prime(x, sign)
    if len(x) == 1:
        return [*x]
    if len(x) == 2:
        return [plus(*x), minus(*x)]
    even, odd = butterfly(x[::2], sign), butterfly(x[1::2], sign)
    if len(x) == 4:
        return [
            plus(even[0], odd[0]),
            plus_turned(even[1], odd[1], sign),
            minus(even[0], odd[0]),
            plus_turned(even[1], odd[1], -sign),
        ]
    half = math.sqrt(0.5)
    first = scaled(plus_turned(odd[1], odd[1], sign), half)
    third = scaled(plus_turned(odd[3], odd[3], -sign), -half)
    return [
        plus(even[0], odd[0]),
        plus(even[1], first),
        plus_turned(even[2], odd[2], sign),
        plus(even[3], third),
        minus(even[0], odd[0]),
        minus(even[1], first),
        plus_turned(even[2], odd[2], -sign),
        minus(even[3], third),
    ]


def _of_prime(x: Sequence[Pair], sign: int) -> list[Pair]:
    """x[j] and x[n - j] have the same cosines, and sines of opposite signs."""
    n, half = len(x), range(1, len(x) // 2 + 1)
    sums = [plus(x[j], x[n - j]) for j in half]
    differences = [minus(x[j], x[n - j]) for j in half]
    found = [x[0]] * n
    for each in sums:
        found[0] = plus(found[0], each)
    for k in half:
        roots = on_circle(np.array([j * k % n for j in half]), n, 1)
        real, turned = x[0], scaled(differences[0], float(roots.imag[0]))
        for cosine, each in zip(roots.real, sums, strict=True):
            real = scaled(each, float(cosine), real)
        for sine, each in zip(roots.imag[1:], differences[1:], strict=True):
            turned = scaled(each, float(sine), turned)
        found[k], found[n - k] = plus_turned(real, turned, sign), plus_turned(real, turned, -sign)
    return found
