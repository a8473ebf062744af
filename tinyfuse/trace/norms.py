"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import FLOAT64, is_complex, part_dtype
from tinyfuse.trace.axes import normalize_axis_index, normalize_axis_tuple
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.linear_algebra import dot
from tinyfuse.trace.operations import cast, reshape, traced, transpose
from tinyfuse.trace.reductions import accumulate, extreme
from tinyfuse.trace.singular_values import singular_values
from tinyfuse.trace.tracer import Tracer

Axes = tuple[int, ...]


@listed(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Tracer:  # noqa: A002
    return _norm(traced(x), ord, axis, keepdims)


def _norm(x: Tracer, order: Any, axis: Any, keepdims: Any = False) -> Tracer:
    if x.dtype.kind not in "fc":
        x = cast(x, FLOAT64)
    if axis is None and _is_of_all(order, x.ndim):
        flat = reshape(x, (x.size,))
        parts = (flat.real, flat.imag) if is_complex(x.dtype) else (flat,)
        squares, *others = [dot(part, part) for part in parts]
        if others:
            squares = apply(np.add, (squares, *others))
        root: Tracer = apply(np.sqrt, (squares,))
        return reshape(root, (1,) * x.ndim) if keepdims else root
    axes = _norm_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, order, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, order, axes, keepdims)
    raise errors.InvalidArgumentError("Improper number of dimensions to norm.")


def _is_of_all(order: Any, ndim: int) -> bool:
    if isinstance(order, str):
        return order in ("f", "fro") and ndim == 2
    return order is None or (order == 2 and ndim == 1)


def _norm_axes(axis: Any, ndim: int) -> Axes:
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple):
        return axis
    try:
        return (int(axis),)
    except (TypeError, ValueError):
        raise errors.ArgumentTypeError(
            "'axis' must be None, an integer or a tuple of integers"
        ) from None


def _vector_norm(x: Tracer, order: Any, axes: Axes, keepdims: Any) -> Tracer:
    if isinstance(order, str):
        raise errors.InvalidArgumentError(f"Invalid norm order '{order}' for vectors")
    if order is None or order == 2:
        return _root_of_squares(x, axes, keepdims)
    if order == 0:
        there = cast(apply(np.not_equal, (x, 0)), part_dtype(x.dtype))
        return accumulate("sum", there, axes, None, keepdims)
    size = apply(np.absolute, (x,))
    if order == math.inf:
        return extreme("max", np.maximum, size, axes, keepdims, initial=0)
    if order == -math.inf:
        return extreme("min", np.minimum, size, axes, keepdims)
    if order == 1:
        return accumulate("sum", size, axes, None, keepdims)
    return _power_norm(size, order, axes, keepdims)


def _root_of_squares(x: Tracer, axes: Axes, keepdims: Any) -> Tracer:
    squares = apply(np.multiply, (x, x))
    if is_complex(x.dtype):
        squares = apply(np.multiply, (apply(np.conjugate, (x,)), x)).real
    return apply(np.sqrt, (accumulate("sum", squares, axes, None, keepdims),))


def _power_norm(size: Tracer, order: Any, axes: Axes, keepdims: Any) -> Tracer:
    total = accumulate("sum", apply(np.power, (size, order)), axes, None, keepdims)
    exponent = np.reciprocal(order, dtype=total.dtype)
    return apply(np.power, (total, exponent))


def _matrix_norm(x: Tracer, order: Any, axes: Axes, keepdims: Any) -> Tracer:
    row, column = (normalize_axis_index(axis, x.ndim) for axis in axes)
    if row == column:
        raise errors.InvalidArgumentError("Duplicate axes given.")
    if order is None or order in ("fro", "f"):
        found = _root_of_squares(x, axes, False)
    elif order in (1, -1, math.inf, -math.inf):
        found = _norm_of_sums(x, order, row, column)
    elif order in ("nuc", 2, -2):
        found = _norm_of_singular_values(transpose(x, _last(x.ndim, row, column)), order)
    else:
        raise errors.InvalidArgumentError("Invalid norm order for matrices.")
    if not keepdims:
        return found
    return reshape(found, tuple([1 if at in (row, column) else n for at, n in enumerate(x.shape)]))


def _last(ndim: int, row: int, column: int) -> list[int]:
    """The axes, with these two behind the others."""
    return [*[at for at in range(ndim) if at not in (row, column)], row, column]


def _norm_of_singular_values(x: Tracer, order: Any) -> Any:
    values = singular_values(x)
    if order == "nuc":
        return values.sum(axis=-1)
    return values.max(axis=-1, initial=0) if order > 0 else values.min(axis=-1)


def _norm_of_sums(x: Tracer, order: Any, row: int, column: int) -> Tracer:
    """The largest or smallest sum of magnitudes, over columns for 1, over rows for infinity."""
    summed, rest = (row, column) if abs(order) == 1 else (column, row)
    sums = accumulate("sum", apply(np.absolute, (x,)), summed, None, False)
    rest -= rest > summed
    if order > 0:
        return extreme("max", np.maximum, sums, rest, False, initial=0)
    return extreme("min", np.minimum, sums, rest, False)


@listed(np.linalg.vector_norm)
def vector_norm(
    x: Any,
    /,
    *,
    axis: Any = None,
    keepdims: Any = False,
    ord: Any = 2,  # noqa: A002
) -> Tracer:
    x = traced(x)
    one, along = x, axis
    if axis is None:
        one, along = reshape(x, (x.size,)), 0
    elif isinstance(axis, tuple):
        axes = normalize_axis_tuple(axis, x.ndim)
        rest = [at for at in range(x.ndim) if at not in axes]
        size = math.prod([x.shape[at] for at in axes])
        moved = transpose(x, [*axes, *rest])
        one, along = reshape(moved, (size, *[x.shape[at] for at in rest])), 0
    found = _norm(one, ord, along)
    if not keepdims:
        return found
    kept = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    return reshape(found, tuple([1 if at in kept else n for at, n in enumerate(x.shape)]))


@listed(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Tracer:  # noqa: A002
    return _norm(traced(x), ord, (-2, -1), keepdims)
