"""np.linalg's functions of products, ranks and inverses, and its names for those of numpy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.decompositions import eliminated, inv, matrix, refuse_where, solved
from tinyfuse.trace.dispatch import listed, listed_unless_known
from tinyfuse.trace.norms import norm
from tinyfuse.trace.picking import as_tracer
from tinyfuse.trace.singular_values import singular_values, svd
from tinyfuse.trace.stand_ins import NUMPY


def _arrays(*values: Any) -> list[Any]:
    return [as_tracer(value) for value in values]


# -- other names


@listed(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    return np.matmul(as_tracer(x1), as_tracer(x2))


@listed(np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    return np.matrix_transpose(as_tracer(x))


@listed(np.linalg.tensordot)
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return np.tensordot(as_tracer(x1), as_tracer(x2), axes)


@listed(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    first, second = [np.moveaxis(each, axis, -1) for each in _arrays(x1, x2)]
    return np.vecdot(first, second)


@listed(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Any:
    both = _arrays(x1, x2)
    if any(each.ndim != 1 for each in both):
        raise errors.InvalidArgumentError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={both[0].ndim!r} and "
            f"x2.ndim={both[1].ndim!r}."
        )
    return np.outer(*both)


@listed(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    first, second = both = _arrays(x1, x2)
    if any(each.shape[axis] != 3 for each in both):
        raise errors.InvalidArgumentError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{both[0].shape[axis]} and {both[1].shape[axis]} dimensional instead."
        )
    return np.cross(first, second, axis=axis)


@listed(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return np.diagonal(as_tracer(x), offset, axis1=-2, axis2=-1)


@listed(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return np.trace(as_tracer(x), offset, axis1=-2, axis2=-1, dtype=dtype)


# -- powers, inverses, ranks


@listed_unless_known(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """By squaring, in the order of numpy's own function."""
    x = as_tracer(a)
    matrix(x, square=True)
    exponent = operator.index(n)
    if exponent == 0:
        return np.zeros_like(x) + NUMPY.eye(x.shape[-1], dtype=x.dtype)
    power: Any = x if exponent > 0 else inv(x)
    exponent = abs(exponent)
    if exponent == 3:
        return np.matmul(np.matmul(power, power), power)
    found = None
    while exponent:
        exponent, bit = divmod(exponent, 2)
        if bit:
            found = power if found is None else np.matmul(found, power)
        if exponent:
            power = np.matmul(power, power)
    return found


@listed_unless_known(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """hermitian: without effect, as it decides only how numpy computes."""
    x = matrix(a)
    if rcond is not None and rtol is not np._NoValue:
        raise errors.InvalidArgumentError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    if rcond is None:
        rcond = max(x.shape[-2:]) * np.finfo(x.dtype).eps
    if not x.size:
        return NUMPY.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    u, s, vh = svd(x, False)
    large = s > NUMPY.asarray(rcond)[..., None] * s.max(axis=-1, keepdims=True)
    inverse = np.where(large, 1 / np.where(large, s, 1), 0).astype(x.dtype)
    return np.matmul(np.swapaxes(vh, -1, -2), inverse[..., None] * np.swapaxes(u, -1, -2))


@listed_unless_known(np.linalg.matrix_rank)
def matrix_rank(
    A: Any,  # noqa: N803
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,
) -> Any:
    (x,) = _arrays(A)
    if rtol is not None and tol is not None:
        raise errors.InvalidArgumentError("`tol` and `rtol` can't be both set.")
    if x.ndim < 2:
        return (x != 0).any().astype(np.int64)
    values = singular_values(matrix(x))
    if tol is None:
        if rtol is None:
            rtol = max(x.shape[-2:]) * np.finfo(values.dtype).eps
        limit = values.max(axis=-1, keepdims=True) * NUMPY.asarray(rtol)[..., None]
    else:
        limit = NUMPY.asarray(tol)[..., None]
    return np.count_nonzero(values > limit, axis=-1)


@listed_unless_known(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    a = matrix(x)
    if not a.size:
        raise errors.MatrixError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        values = singular_values(a)
        ends = values[..., -1], values[..., 0]
        found = ends[0] / ends[1] if p == -2 else ends[1] / ends[0]
    else:
        a = matrix(a, square=True)
        inverse = solved(eliminated(a), NUMPY.eye(a.shape[-1], dtype=a.dtype))
        size: Any = norm(a, p, axis=(-2, -1))
        found = size * norm(inverse, p, axis=(-2, -1))
    nothing = np.isnan(found) & ~np.isnan(a).any(axis=(-2, -1))
    return np.where(nothing, found.dtype.type(np.inf), found)[()]


# -- least squares


@listed_unless_known(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """(solution, residuals, rank, singular values), of matrices whose columns are independent.

    Where they are not, numpy gives no residuals: that is refused after the call.
    """
    x, (right,) = matrix(a), _arrays(b)
    if x.ndim > 2:
        raise errors.MatrixError(f"{x.ndim}-dimensional array given. Array must be two-dimensional")
    (m, n), vector = x.shape, right.ndim == 1
    if right.shape[0] != m:
        raise errors.MatrixError("Incompatible dimensions")
    dtype = np.result_type(x.dtype, matrix(np.atleast_2d(right)).dtype)
    x, columns = x.astype(dtype), (right[:, None] if vector else right).astype(dtype)
    u, s, vh = svd(x, full_matrices=False)
    limit = max(m, n) * np.finfo(dtype).eps if rcond is None else rcond
    limit = np.finfo(dtype).eps if type(limit) in (int, float) and limit < 0 else limit
    large = s > limit * s.max(initial=0)
    inverse = np.where(large, 1 / np.where(large, s, 1), 0).astype(dtype)
    found = vh.T @ (inverse[:, None] * (u.T @ columns))
    rank = np.count_nonzero(large, axis=0).astype(np.int32)
    residuals: Any = NUMPY.zeros(0, dtype)
    if m > n:
        refuse_where(
            rank < n,
            "np.linalg.lstsq of dependent columns gives no residuals: take np.linalg.pinv(a) @ b",
        )
        residuals = np.square(columns - x @ found).sum(axis=0)
    return (found[:, 0] if vector else found), residuals, rank, s


@listed_unless_known(np.polyfit)
def polyfit(
    x: Any,
    y: Any,
    deg: Any,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    """The steps of numpy's own function, for a number of a degree."""
    for name, given in (("full", full), ("cov", cov)):
        if given:
            raise errors.UnsupportedArgumentError(
                f"np.polyfit(..., {name}=) is not supported: take the coefficients "
                "alone, and what is left from y - np.polyval(p, x)"
            )
    order = operator.index(deg)
    if order < 0:
        raise errors.InvalidArgumentError("expected deg >= 0")
    places, values = [each + 0.0 for each in _arrays(x, y)]
    if places.ndim != 1 or not places.size:
        raise errors.ArgumentTypeError("expected non-empty vector for x")
    if values.ndim not in (1, 2):
        raise errors.ArgumentTypeError("expected 1D or 2D array for y")
    if len(places) != len(values):
        raise errors.ArgumentTypeError("expected x and y to have same length")
    if rcond is None:
        rcond = len(places) * np.finfo(places.dtype).eps
    left = np.vander(places, order + 1)
    if w is not None:
        weights = _arrays(w)[0] + 0.0
        left = left * weights[:, None]
        values = values * (weights[:, None] if values.ndim == 2 else weights)
    scale = np.sqrt((left * left).sum(axis=0))
    found = lstsq(left / scale, values, rcond)[0]
    return (found.T / scale).T
