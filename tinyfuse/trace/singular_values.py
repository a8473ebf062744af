"""Eigenvalues of symmetric matrices, and singular values, by Jacobi's rotations.

Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th edition, 8.5 (cyclic, in parallel
order) and 8.6.3 (on one side). Of vectors only the space is determined: their signs, and what spans
a space of equal values, are others than LAPACK's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import is_complex
from tinyfuse.trace.control_flow import traced_loop, traced_while
from tinyfuse.trace.decompositions import matrix, reflected
from tinyfuse.trace.dispatch import listed_unless_known
from tinyfuse.trace.picking import take_along_axis
from tinyfuse.trace.stand_ins import NUMPY

_SWEEPS = 40  # more than are ever needed


def _partners(n: int) -> np.ndarray:
    """(rounds, n): with which index each one meets in each round of a tournament, all once."""
    count = n + n % 2
    seats = np.arange(count)
    rounds = []
    for _ in range(count - 1):
        partner = np.empty(count, np.int64)
        partner[seats] = seats[::-1]
        rounds.append(np.where(partner[:n] < n, partner[:n], np.arange(n)))
        seats = np.concatenate([seats[:1], np.roll(seats[1:], 1)])
    return np.array(rounds)


def _rotation(own: Any, other: Any, off: Any, partner: Any) -> tuple[Any, Any]:
    """(c, s) for each index, so that `c * x + s * x[partner]` makes what is off vanish.

    own, other: the diagonal at the index and at its partner.
    """
    ahead = NUMPY.arange(own.shape[-1]) < partner
    none = off == 0
    ratio = (other - own) / np.where(none, 1, 2 * off)
    side = np.where(ratio == 0, np.where(ahead, 1, -1), np.sign(ratio))
    tangent = np.where(none, 0, side / (np.abs(ratio) + np.hypot(1, ratio)))
    cosine = 1 / np.hypot(1, tangent)
    return cosine.astype(own.dtype), (-tangent * cosine).astype(own.dtype)


def _swept(
    begin: Any, n: int, rotated: Callable[[Any, Any], Any], unfinished: Callable[[Any], Any]
) -> Any:
    """Sweeps over all pairs of n indices, until there is nothing left to do.

    rotated: what a round makes, of what is carried and the partner of each index.
    """
    partners = NUMPY.asarray(_partners(n))

    def sweep(carried: Any) -> Any:
        count, value = carried
        value = traced_loop(len(partners), lambda at, v: rotated(v, partners[at]), value)
        return count + 1, value

    def test(carried: Any) -> Any:
        count, value = carried
        return unfinished(value) & (count < _SWEEPS)

    return traced_while(test, sweep, (NUMPY.zeros((), np.int64), begin))[1]


def _columns(x: Any, partner: Any) -> Any:
    return np.take(x, partner, axis=-1)


# -- eigenvalues


def _diagonalized(a: Any) -> tuple[Any, Any]:
    """Eigenvalues in ascending order (..., n), eigenvectors (..., n, n)."""
    n = a.shape[-1]
    identity = NUMPY.eye(n, dtype=a.dtype)
    small = np.finfo(a.dtype).eps * np.abs(a).max(axis=(-2, -1), initial=0)

    def rotated(value: Any, partner: Any) -> Any:
        x, vectors = value
        diagonal = np.diagonal(x, axis1=-2, axis2=-1)
        at = NUMPY.arange(n)
        off = x[..., np.minimum(at, partner), np.maximum(at, partner)]
        off = np.where(at == partner, 0, off)
        c, s = _rotation(diagonal, _columns(diagonal, partner), off, partner)
        x = c[..., None] * x + s[..., None] * np.take(x, partner, axis=-2)
        turned = [
            c[..., None, :] * y + s[..., None, :] * _columns(y, partner) for y in (x, vectors)
        ]
        return tuple(turned)

    def unfinished(value: Any) -> Any:
        off = np.abs(value[0] * (1 - identity)).max(axis=(-2, -1), initial=0)
        return (off > small).any()

    x, vectors = a, np.zeros_like(a) + identity
    if n > 1:
        x, vectors = _swept((x, vectors), n, rotated, unfinished)
    values = np.diagonal(x, axis1=-2, axis2=-1)
    order = np.argsort(values, axis=-1)
    return (
        take_along_axis(values, order, -1),
        take_along_axis(vectors, np.broadcast_to(order[..., None, :], vectors.shape), -1),
    )


def _symmetric(a: Any, side: str) -> Any:
    if side.upper() not in ("L", "U"):
        raise errors.InvalidArgumentError("UPLO argument must be 'L' or 'U'")
    x = matrix(a, square=True)
    half = np.tril(x, -1) if side.upper() == "L" else np.triu(x, 1)
    on_diagonal = x.real * NUMPY.eye(x.shape[-1], dtype=x.real.dtype)
    return half + np.swapaxes(half, -1, -2).conj() + on_diagonal


@listed_unless_known(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    return _EIGH(*_diagonalized(_symmetric(a, UPLO)))


@listed_unless_known(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    x = _symmetric(a, UPLO)
    return _diagonalized(_parts(x))[0][..., ::2] if is_complex(x.dtype) else _diagonalized(x)[0]


def _parts(z: Any) -> Any:
    """[[re, -im], [im, re]] of complex matrices: it has each eigenvalue of a Hermitian one, and
    each singular value, twice."""
    rows = ([z.real, -z.imag], [z.imag, z.real])
    return np.concatenate([np.concatenate(row, axis=-1) for row in rows], axis=-2)


_EIGH, _SVD = type(np.linalg.eigh(np.eye(1))), type(np.linalg.svd(np.eye(1)))


# -- singular values


def _turned_columns(a: Any) -> tuple[Any, Any]:
    """The columns of a (..., m, n), turned until they are orthogonal, the longest first, and the
    product of the turns (..., n, n)."""
    n = a.shape[-1]
    small = np.finfo(a.dtype).eps

    def rotated(value: Any, partner: Any) -> Any:
        lengths = (value[0] * value[0]).sum(axis=-2)
        off = (value[0] * _columns(value[0], partner)).sum(axis=-2)
        off = np.where(NUMPY.arange(n) == partner, 0, off)
        c, s = _rotation(lengths, _columns(lengths, partner), off, partner)
        return tuple([c[..., None, :] * x + s[..., None, :] * _columns(x, partner) for x in value])

    def unfinished(value: Any) -> Any:
        x = value[0]
        lengths = np.sqrt((x * x).sum(axis=-2, keepdims=True))
        unit = x / np.where(lengths == 0, 1, lengths)
        cosines = np.matmul(np.swapaxes(unit, -1, -2), unit) * (1 - NUMPY.eye(n, dtype=x.dtype))
        return (np.abs(cosines) > small * np.sqrt(x.shape[-2])).any()

    begin = a, NUMPY.zeros((*a.shape[:-2], n, n), a.dtype) + NUMPY.eye(n, dtype=a.dtype)
    x, turns = _swept(begin, n, rotated, unfinished) if n > 1 else begin
    order = np.argsort(-(x * x).sum(axis=-2), axis=-1, stable=True)
    return tuple(
        take_along_axis(each, np.broadcast_to(order[..., None, :], each.shape), -1)
        for each in (x, turns)
    )  # type: ignore[return-value]


def singular_values(a: Any) -> Any:
    """In descending order. a: (..., m, n), to (..., min(m, n))."""
    if is_complex(a.dtype):
        return singular_values(_parts(a))[..., ::2]
    tall = a if a.shape[-2] >= a.shape[-1] else np.swapaxes(a, -1, -2)
    if not tall.shape[-1]:
        return NUMPY.zeros((*tall.shape[:-2], 0), a.dtype)
    scale = _scale(tall)
    x = _turned_columns(tall / scale)[0]
    return np.sqrt((x * x).sum(axis=-2)) * scale[..., 0]


def _scale(a: Any) -> Any:
    """The largest magnitude of each matrix, or 1."""
    largest = np.abs(a).max(axis=(-2, -1), keepdims=True, initial=0)
    return np.where(largest == 0, 1, largest).astype(a.dtype)


@listed_unless_known(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """hermitian: without effect, as it decides only how numpy computes."""
    x = matrix(a)
    if not compute_uv:
        return singular_values(x)
    if x.shape[-2] >= x.shape[-1]:
        return _SVD(*_tall_svd(x, full_matrices))
    u, s, vh = _tall_svd(np.swapaxes(x, -1, -2), full_matrices)
    return _SVD(np.swapaxes(vh, -1, -2), s, np.swapaxes(u, -1, -2))


def _tall_svd(a: Any, full: bool) -> tuple[Any, Any, Any]:
    """Of at least as many rows as columns."""
    n = a.shape[-1]
    scale = _scale(a)
    x, turns = _turned_columns(a / scale)
    values = np.sqrt((x * x).sum(axis=-2)) * scale[..., 0]
    found = reflected(x)
    diagonal = np.diagonal(found.turned, axis1=-2, axis2=-1)
    signs = np.where(diagonal < 0, -1, 1).astype(a.dtype)[..., None, :]
    u = found.back[..., :n] * signs
    if full:
        u = np.concatenate([u, found.back[..., n:]], axis=-1)
    return u, values, np.swapaxes(turns, -1, -2)


@listed_unless_known(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return singular_values(matrix(x))
