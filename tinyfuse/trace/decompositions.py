"""Factors of matrices, and what np.linalg computes by them.

Matrices are the last two axes, (..., m, n). The methods are those of G. H. Golub and C. F. Van
Loan, Matrix Computations, 4th edition: elimination with partial pivoting (3.4), Cholesky's by outer
products (4.2), Householder's reflections (5.2). Their steps and sums come in another order than
those of LAPACK, so that results differ from numpy's in the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import FLOAT32, FLOAT64, is_complex
from tinyfuse.trace.control_flow import traced_loop
from tinyfuse.trace.dispatch import listed_unless_known
from tinyfuse.trace.operations import transpose, type_text
from tinyfuse.trace.picking import as_tracer, take_along_axis
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.stand_ins import NUMPY


def matrix(value: Any, square: bool = False) -> Any:
    """An array of matrices of floats, or of complex numbers."""
    x = as_tracer(value)
    if x.ndim < 2:
        raise errors.MatrixError(
            f"{x.ndim}-dimensional array given. Array must be at least two-dimensional: "
            f"{type_text(x)}"
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise errors.MatrixError(f"Last 2 dimensions of the array must be square: {type_text(x)}")
    if is_complex(x.dtype):
        return x
    return x.astype(FLOAT32 if x.dtype == FLOAT32 else FLOAT64, copy=False)


def _turns(count: int, body: Callable[[Any, Any], Any], begin: Any) -> Any:
    return traced_loop(count, body, begin, "a decomposition")


def refuse_where(condition: Any, words: str) -> None:
    check_none(NUMPY.asarray(condition)._atom, errors.MatrixError, words)


# -- elimination


class Eliminated(NamedTuple):
    """The rows of a matrix, in another order, as a product.

    factors: the upper factor, and below the diagonal the lower one, whose diagonal is 1.
    order: (..., n), which row of the matrix is the k-th. swaps: (...), how many were exchanged.
    """

    factors: Any
    order: Any
    swaps: Any

    @property
    def pivots(self) -> Any:
        return np.diagonal(self.factors, axis1=-2, axis2=-1)


def eliminated(a: Any) -> Eliminated:
    """a: (..., n, n)."""
    n = a.shape[-1]
    rows = NUMPY.arange(n)

    def turn(k: Any, carried: Any) -> Any:
        factors, order, swaps = carried
        sizes = np.where(rows >= k, np.abs(factors[..., k]), -1)
        best = np.argmax(sizes, axis=-1, keepdims=True)
        places = np.where(rows == k, best, np.where(rows == best, k, rows))
        order = np.take_along_axis(order, places, -1)
        factors = np.take_along_axis(factors, places[..., None], -2)
        pivot = factors[..., k, k][..., None]
        column = factors[..., k] / np.where(pivot == 0, 1, pivot)
        column = np.where(rows > k, column, 0)[..., None]
        changed = factors - column * factors[..., k, :][..., None, :]
        factors = np.where(
            rows > k, changed, np.where((rows == k) & (rows[:, None] > k), column, factors)
        )
        return factors, order, swaps + (best[..., 0] != k)

    order = NUMPY.zeros((*a.shape[:-2], n), np.int64) + rows
    if not n:
        return Eliminated(a, order, NUMPY.zeros(a.shape[:-2], np.int64))
    begin = a.copy(), order, NUMPY.zeros(a.shape[:-2], np.int64)
    return Eliminated(*_turns(n, turn, begin))


def _sign(found: Eliminated, negative: Any) -> Any:
    """-1 where an odd number of signs changes, else 1."""
    return np.where(negative % 2 == 1, -1, 1).astype(found.factors.dtype)[()]


@listed_unless_known(np.linalg.det)
def det(a: Any) -> Any:
    found = eliminated(matrix(a, square=True))
    return _sign(found, found.swaps) * np.prod(found.pivots, axis=-1)


@listed_unless_known(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    found = eliminated(matrix(a, square=True))
    sizes = np.abs(found.pivots)
    nothing = (sizes == 0).any(axis=-1)
    if is_complex(found.pivots.dtype):
        turns = found.pivots / np.where(sizes == 0, 1, sizes)
        sign = _sign(found, found.swaps) * np.prod(turns, axis=-1)
    else:
        sign = _sign(found, found.swaps + (found.pivots < 0).sum(axis=-1))
    return _SLOGDET(sign * np.logical_not(nothing), np.log(sizes).sum(axis=-1))


def _result_type(function: Callable[..., Any], *args: Any) -> Any:
    """The named tuple that a function of numpy's returns."""
    return type(function(*args))


_SLOGDET = _result_type(np.linalg.slogdet, np.eye(1))


def solved(found: Eliminated, right: Any) -> Any:
    """right: (..., n, k), to the solutions of that shape."""
    n = found.factors.shape[-1]
    rows = NUMPY.arange(n)[:, None]
    order = found.order[..., None]
    batch = np.broadcast_shapes(order.shape[:-2], right.shape[:-2])
    right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    x = take_along_axis(right, np.broadcast_to(order, (*batch, *order.shape[-2:])), -2)

    def forward(k: Any, x: Any) -> Any:
        return (
            x - np.where(rows > k, found.factors[..., k][..., None], 0) * x[..., k, :][..., None, :]
        )

    def backward(turn: Any, x: Any) -> Any:
        k = (n - 1) - turn
        own = x[..., k, :][..., None, :] / found.factors[..., k, k][..., None, None]
        return np.where(
            rows == k, own, x - np.where(rows < k, found.factors[..., k][..., None], 0) * own
        )

    return _turns(n, backward, _turns(n, forward, x))


@listed_unless_known(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    left, right = matrix(a, square=True), as_tracer(b)
    dtype = np.result_type(left.dtype, matrix(np.atleast_2d(right)).dtype)
    vector = right.ndim == 1
    right = right.astype(dtype)
    columns = right[..., None] if vector else right
    if columns.ndim < 2 or columns.shape[-2] != left.shape[-1]:
        raise errors.ShapeError(
            f"solve: a matrix of {left.shape[-1]} rows and a right-hand side of another number of "
            f"rows: {type_text(left)}, {type_text(right)}"
        )
    found = eliminated(left.astype(dtype, copy=False))
    refuse_where((found.pivots == 0).any(), "Singular matrix")
    x = solved(found, columns)
    return x[..., 0] if vector else x


@listed_unless_known(np.linalg.inv)
def inv(a: Any) -> Any:
    x = matrix(a, square=True)
    return solve(x, NUMPY.eye(x.shape[-1], dtype=x.dtype))


@listed_unless_known(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    left, right = as_tracer(a), as_tracer(b)
    if axes is not None:
        last = [at % left.ndim for at in axes]
        left = transpose(left, [*[at for at in range(left.ndim) if at not in last], *last])
    shape = left.shape[right.ndim :]
    count = int(np.prod(shape))
    if left.size != count**2:
        raise errors.MatrixError(
            "Input arrays must satisfy the requirement "
            "prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return solve(left.reshape(count, count), right.reshape(count)).reshape(shape)


@listed_unless_known(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    x = as_tracer(a)
    if ind <= 0:
        raise errors.InvalidArgumentError("Invalid ind argument.")
    count = int(np.prod(x.shape[ind:]))
    inverse = inv(x.reshape(count, -1) if count else x.reshape(0, 0))
    return inverse.reshape(*x.shape[ind:], *x.shape[:ind])


# -- positive definite matrices


@listed_unless_known(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    x = matrix(a, square=True)
    n = x.shape[-1]
    rows = NUMPY.arange(n)
    half = x.swapaxes(-1, -2) if upper else x

    def turn(k: Any, carried: Any) -> Any:
        rest, factor = carried
        column = np.where(rows >= k, rest[..., k], 0) / np.sqrt(rest[..., k, k])[..., None]
        outer = column[..., None] * column[..., None, :]
        return rest - outer, np.where(rows == k, column[..., None], factor)

    factor: Any = _turns(n, turn, (np.tril(half), np.zeros_like(x)))[1]
    found = ~(np.diagonal(factor, axis1=-2, axis2=-1) > 0)
    refuse_where(found.any(), "Matrix is not positive definite")
    return np.swapaxes(factor, -1, -2) if upper else factor


# -- reflections


class Reflected(NamedTuple):
    """turned: what reflections have made of a matrix, zero below the diagonal, (..., m, n).

    back: the product of the reflections, (..., m, m).
    """

    turned: Any
    back: Any


def reflected(a: Any) -> Reflected:
    m, n = a.shape[-2:]
    rows = NUMPY.arange(m)

    def turn(k: Any, carried: Any) -> Any:
        turned, back = carried
        column = turned[..., k]
        first = column[..., k][..., None]
        below = np.where(rows > k, column, 0)
        size = np.sqrt((below * below).sum(axis=-1, keepdims=True))
        last = -np.copysign(np.hypot(first, size), first)
        zero = size == 0
        scale = np.where(zero, 0, (last - first) / np.where(zero, 1, last))[..., None]
        mirror = np.where(rows == k, 1, below / np.where(zero, 1, first - last))
        across, along = mirror[..., None, :], mirror[..., None]
        turned = turned - scale * along * (along * turned).sum(axis=-2, keepdims=True)
        back = back - scale * (back * across).sum(axis=-1, keepdims=True) * across
        return turned, back

    identity = NUMPY.zeros((*a.shape[:-2], m, m), a.dtype) + NUMPY.eye(m, dtype=a.dtype)
    return Reflected(*_turns(min(m, n), turn, (a.copy(), identity)))


@listed_unless_known(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r", "raw"):
        raise errors.InvalidArgumentError(f"Unrecognized mode '{mode}'")
    if mode == "raw":
        raise errors.UnsupportedArgumentError(
            "np.linalg.qr(..., mode='raw') is not supported: take mode='reduced'"
        )
    x = matrix(a)
    found = reflected(x)
    count = x.shape[-2] if mode == "complete" else min(x.shape[-2:])
    upper = np.triu(found.turned[..., :count, :])
    return upper if mode == "r" else _QR(found.back[..., :count], upper)


_QR = _result_type(np.linalg.qr, np.eye(1))
