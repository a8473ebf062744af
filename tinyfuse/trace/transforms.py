"""Discrete Fourier transforms along an axis, by passes of butterflies.

A length is taken apart into factors (Cooley and Tukey, 1965), in passes whose results come in order
(T. G. Stockham, High-speed convolution and correlation, 1966). All of them go through columns, so
that rows of what lies side by side are vectors. A single row is a matrix of which first the columns
are transformed and then, when it is transposed, its rows (W. M. Gentleman and G. Sande, Fast
Fourier transforms for fun and profit, 1966). A prime is one product with a matrix of roots of
unity, a large one a convolution of a length that is a power of two (L. I. Bluestein, 1970).
Rounding is in proportion to the logarithm of the length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyfuse.trace.butterflies import (
    RADICES,
    Pair,
    Roots,
    butterfly,
    constant,
    on_circle,
    pair_of,
    roots_of,
    times,
)
from tinyfuse.trace.linear_algebra import matmul
from tinyfuse.trace.operations import concatenate, insert_axes, reshape, slice_axis
from tinyfuse.trace.padding import pad
from tinyfuse.trace.shape import moveaxis, swapaxes
from tinyfuse.trace.tracer import Tracer

LARGEST_PRIME = 200  # above, a convolution takes less
# Elements of a matrix above which its columns are transformed a few at a time: with these, all
# passes stay in the innermost cache.
BLOCKED = 1024
BLOCK = 16


def transformed(x: Pair, sign: int) -> Pair:
    """The sum of x[j] exp(sign 2 pi i j k / n) for each k along the last axis, not scaled."""
    return joined(pieces_of_transformed(x, sign), -1)


def pieces_of_transformed(x: Pair, sign: int) -> list[Pair]:
    """The same in pieces one after the other."""
    n = x.re.shape[-1]
    if n == 1:
        return [x]
    prime = _large_prime(n)
    if n in RADICES:
        columns = x.map(lambda part: insert_axes(part, [part.ndim]))
        return [each.map(_flat) for each in _passes(columns, [n], sign)]
    if prime == 1:
        return _by_columns_and_rows(x, sign)
    if prime < n:
        return [_by_prime(x, prime, sign)]
    return [_by_matrix(x, sign) if n <= LARGEST_PRIME else _by_convolution(x, sign)]


def transformed_columns(x: Pair, sign: int) -> Pair:
    """The same along the last axis but one."""
    *_, n, width = x.re.shape
    if _large_prime(n) > 1 or n == 1 or width == 1:
        return transformed(x.map(_turned), sign).map(_turned)
    blocked = n * width > BLOCKED and width % BLOCK == 0 and width > BLOCK
    parts = _passes(x.map(_in_blocks) if blocked else x, radices(n), sign)
    return joined(parts, -2).map(_in_rows) if blocked else joined(parts, -2)


def radices(n: int) -> list[int]:
    """The factors of a length by which passes go, as few as there can be."""
    found = []
    for each in RADICES[3:]:
        while n % each == 0:
            found.append(each)
            n //= each
    twos = n.bit_length() - 1
    count = -(-twos // 3)
    eights = max(0, twos - 2 * count)
    return [*found, *([8] * eights), *([4] * (count - eights) if twos > 1 else [2] * twos)]


def _large_prime(n: int) -> int:
    """The smallest prime factor by which no pass goes; 1 if there is none."""
    for each in RADICES[2:]:
        while n % each == 0:
            n //= each
    return next((each for each in range(17, math.isqrt(n) + 1, 2) if n % each == 0), n)


# -- passes


def _passes(
    x: Pair, factors: Sequence[int], sign: int, last: Sequence[Roots | None] | None = None
) -> list[Pair]:
    """The transforms of columns, the last axis but one, in parts of the last pass.

    last: what the parts are multiplied by.
    """
    *lead, n, width = x.re.shape
    done = 1
    for radix in factors:
        rest = n // (done * radix)
        x = x.map(lambda part, to=(*lead, radix, rest, done, width): reshape(part, to))  # type: ignore[misc]
        axis = len(lead)
        found = butterfly([_taken(x, axis, at) for at in range(radix)], sign)
        if rest > 1:
            for k in range(1, radix):
                turns = k * np.arange(rest)[:, None, None]
                found[k] = times(found[k], roots_of(turns, radix * rest, sign, x.re.dtype))
            rows = [each.map(lambda part: insert_axes(part, [axis + 1])) for each in found]  # noqa: B023
            x = joined(rows, axis + 1)
        done *= radix
    whole = (*lead, done // factors[-1], width)
    parts = [each.map(lambda part: reshape(part, whole)) for each in found]
    return [times(part, w) for part, w in zip(parts, last, strict=True)] if last else parts


def _taken(x: Pair, axis: int, at: int) -> Pair:
    """One place of an axis, which goes."""

    def taken(part: Tracer) -> Tracer:
        shape = (*part.shape[:axis], *part.shape[axis + 1 :])
        return reshape(slice_axis(part, axis, at, 1), shape)

    return x.map(taken)


def interleaved(x: Pair) -> Tracer:
    """The real part of each number, and its imaginary one after it."""
    *lead, n = x.re.shape
    last = len(lead) + 1
    parts = [insert_axes(part, [last]) for part in (x.re, x.imaginary)]
    return reshape(concatenate(parts, last), (*lead, 2 * n))


def joined(parts: Sequence[Pair], axis: int) -> Pair:
    at = axis % parts[0].re.ndim
    re = concatenate([part.re for part in parts], at)
    if all(part.im is None for part in parts):
        return Pair(re, None)
    return Pair(re, concatenate([part.imaginary for part in parts], at))


# -- rows


def _by_columns_and_rows(x: Pair, sign: int) -> list[Pair]:
    *lead, n = x.re.shape
    first, second = _sides(n)
    x = x.map(lambda part: reshape(part, (*lead, first, second)))
    blocked = n > BLOCKED
    if blocked and second % BLOCK == 0:
        x = x.map(_in_blocks)
    factors = radices(first)
    roots = _twists(first, second, factors[-1], sign, x)
    turned = joined([each.map(_turned) for each in _passes(x, factors, sign, roots)], -1)
    turned = turned.map(lambda part: reshape(part, (*lead, second, first)))
    if blocked and first % BLOCK == 0:
        parts = _passes(turned.map(_in_blocks), radices(second), sign)
        return [joined(parts, -2).map(_in_rows).map(_flat)]
    parts = _passes(turned, radices(second), sign)
    return [each.map(_flat) for each in parts]


def _sides(n: int) -> tuple[int, int]:
    """The rows and columns of a matrix in which vectors are full and passes few."""

    def effort(first: int) -> tuple[float, int]:
        second = n // first
        work = _waste(second) * len(radices(first)) + _waste(first) * len(radices(second))
        return work, abs(first - second)

    return min([(d, n // d) for d in range(2, n) if n % d == 0], key=lambda pair: effort(pair[0]))


def _waste(width: int) -> float:
    """How many elements vectors of eight have for each of a row."""
    return -(-width // 8) * 8 / width


def _twists(first: int, second: int, radix: int, sign: int, x: Pair) -> list[Roots | None]:
    """exp(sign 2 pi i j k / n) for each row j and column k, in parts of rows; in blocks as x."""
    rows = np.arange(first).reshape(radix, -1, 1)
    width = x.re.shape[-1]
    columns = np.arange(second).reshape((-1, 1, width) if width < second else (1, width))
    return [roots_of(row * columns, first * second, sign, x.re.dtype) for row in rows]


def _turned(part: Tracer) -> Tracer:
    return swapaxes(part, -1, -2)


def _flat(part: Tracer) -> Tracer:
    *lead, n, width = part.shape
    return reshape(part, (*lead, n * width))


def _in_blocks(part: Tracer) -> Tracer:
    """(..., n, width) as (..., width / BLOCK, n, BLOCK)."""
    *lead, n, width = part.shape
    return moveaxis(reshape(part, (*lead, n, width // BLOCK, BLOCK)), -2, -3)


def _in_rows(part: Tracer) -> Tracer:
    """What `_in_blocks` was given."""
    *lead, blocks, n, width = part.shape
    return reshape(moveaxis(part, -3, -2), (*lead, n, blocks * width))


# -- primes


def _by_prime(x: Pair, prime: int, sign: int) -> Pair:
    *lead, n = x.re.shape
    rows = x.map(lambda part: reshape(part, (*lead, prime, n // prime)))
    over_rows = transformed(rows.map(_turned), sign).map(_turned)
    turns = np.arange(prime)[:, None] * np.arange(n // prime)
    twisted = times(over_rows, roots_of(turns, n, sign, x.re.dtype))
    return transformed(twisted, sign).map(lambda part: reshape(_turned(part), (*lead, n)))


def _by_matrix(x: Pair, sign: int) -> Pair:
    n = x.re.shape[-1]
    roots = on_circle(np.arange(n)[:, None] * np.arange(n) % n, n, sign)
    if x.im is None:
        parts = [constant(part, x.re.dtype) for part in (roots.real, roots.imag)]
        return Pair(*[matmul(x.re, part) for part in parts])
    whole = x.joined()
    return pair_of(matmul(whole, constant(roots, whole.dtype)))


def _by_convolution(x: Pair, sign: int) -> Pair:
    """Bluestein's: j k = (j^2 + k^2 - (k - j)^2) / 2."""
    *lead, n = x.re.shape
    size = 1 << (2 * n - 2).bit_length()
    squares = np.arange(n, dtype=np.int64) ** 2
    chirp = on_circle(squares % (2 * n), 2 * n, sign)
    filled = np.zeros(size, np.clongdouble)
    filled[:n] = chirp.conj()
    filled[size - n + 1 :] = chirp.conj()[:0:-1]
    spectrum, dtype = np.fft.fft(filled) / size, x.re.dtype
    here = roots_of(squares, 2 * n, sign, dtype)
    padding = [(0, 0)] * len(lead) + [(0, size - n)]
    padded = times(x, here).map(lambda part: pad(part, padding))
    parts = [constant(part, dtype) for part in (spectrum.real, spectrum.imag, -spectrum.imag)]
    found = transformed(times(transformed(padded, -1), Roots(*parts)), 1)
    return times(found.map(lambda part: slice_axis(part, len(lead), 0, n)), here)
