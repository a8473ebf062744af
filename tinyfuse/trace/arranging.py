"""Arrays out of parts of others: left out, put in, in blocks; and what a function makes of rows."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.arrays import assigned_value
from tinyfuse.trace.axes import axis_tuple, normalize_axis_index, requested_shape
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.joining import concatenate_, ravel, stack
from tinyfuse.trace.known import known_value
from tinyfuse.trace.operations import (
    broadcast,
    cast,
    concatenate,
    copy,
    filled,
    insert_axes,
    lying,
    reshape,
    size_of,
    slice_axis,
    transpose,
)
from tinyfuse.trace.picking import as_tracer, take
from tinyfuse.trace.shape import moveaxis
from tinyfuse.trace.stand_ins import made_by_numpy
from tinyfuse.trace.tracer import Tracer

_MOST_SLICES = 8  # of which an array is joined; more are gathered

# -- elements left out and put in, at places that are known while tracing


@listed(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Tracer:
    x, at = _along(as_tracer(arr), axis)
    places = _places("np.delete", obj)
    kept = np.delete(np.arange(x.shape[at]), places)
    if x.ndim > 1 and np.size(places) != 1 and not isinstance(places, slice):
        return x[(*(slice(None),) * at, kept)]  # type: ignore[index]
    return lying(_taken(x, kept, at), "A", x)


@listed(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tracer:
    x, at = _along(as_tracer(arr), axis)
    places, extent = _places("np.insert", obj), x.shape[at]
    new = assigned_value(values, x.dtype)
    if new.ndim < x.ndim:
        new = insert_axes(new, range(x.ndim - new.ndim))
    if np.ndim(places) == 0 and not isinstance(places, slice):
        new, count = moveaxis(new, 0, at), None
    else:
        count = len(np.insert(np.arange(extent), places, 0)) - extent
    shape = list(x.shape)
    shape[at] = new.shape[at] if count is None else count
    order = np.insert(np.arange(extent), places, np.arange(extent, extent + shape[at]))
    return lying(_taken(concatenate([x, broadcast(new, tuple(shape))], at), order, at), "A", x)


def _along(x: Tracer, axis: Any) -> tuple[Tracer, int]:
    """All elements along one axis where none is given."""
    if axis is None:
        return ravel(x), 0
    return x, normalize_axis_index(operator.index(axis), x.ndim)


def _places(name: str, obj: Any) -> Any:
    if type(obj) is not Tracer:
        return obj
    known = known_value(obj)
    if known is None:
        raise errors.DataDependentShapeError(
            f"{name} of places that are known at run time only is not traced: choose elements with "
            "np.where(mask, a, b), or x[ids] with ids of the places that are wanted"
        )
    return known[()] if obj._scalar else known


def _taken(x: Tracer, places: np.ndarray, axis: int) -> Tracer:
    """A copy of the elements at these places along an axis."""
    starts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    if not 0 < len(starts) <= _MOST_SLICES:
        return take(x, places, axis)
    ends = [*starts[1:].tolist(), len(places)]
    parts = [
        slice_axis(x, axis, int(places[start]), end - start)
        for start, end in zip(starts.tolist(), ends, strict=True)
    ]
    return copy(parts[0]) if len(parts) == 1 else concatenate(parts, axis)


# -- blocks and repetitions


@listed(np.block)
def block(arrays: Any) -> Tracer:
    depth, leaves = _depth(arrays), list(_leaves(arrays))
    ndim = max([depth, *[leaf.ndim for leaf in leaves]])
    joined = _joined(arrays, depth, ndim)
    return joined if isinstance(arrays, list) else copy(joined, "C")


def _depth(arrays: Any) -> int:
    depth = 0
    while isinstance(arrays, list):
        if not arrays:
            raise errors.InvalidArgumentError("List at arrays cannot be empty")
        depth, arrays = depth + 1, arrays[0]
    return depth


def _leaves(arrays: Any) -> Any:
    if isinstance(arrays, list):
        for part in arrays:
            yield from _leaves(part)
    else:
        yield as_tracer(arrays)


def _joined(arrays: Any, depth: int, ndim: int) -> Tracer:
    """Lists of the innermost level are joined along the last axis."""
    if isinstance(arrays, list) != (depth > 0):
        raise errors.InvalidArgumentError("List depths are mismatched")
    if not depth:
        x = as_tracer(arrays)
        return insert_axes(x, range(ndim - x.ndim)) if x.ndim < ndim else x
    return concatenate_([_joined(part, depth - 1, ndim) for part in arrays], -depth)


@listed(np.resize)
def resize(a: Any, new_shape: Any) -> Tracer:
    x, shape = ravel(as_tracer(a)), requested_shape(new_shape)
    if min(shape, default=0) < 0:
        raise errors.InvalidArgumentError("all elements of `new_shape` must be non-negative")
    size = size_of(shape)
    if not x.size or not size:
        return filled(shape, x.dtype.type(0))
    repeated = concatenate([x] * -(-size // x.size), 0)
    return reshape(copy(slice_axis(repeated, 0, 0, size)), shape)


@listed(np.kron)
def kron(a: Any, b: Any) -> Any:
    x, y = as_tracer(a), as_tracer(b)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    ndim = max(x.ndim, y.ndim)
    x, y = [insert_axes(each, range(ndim - each.ndim)) for each in (x, y)]
    product: Any = np.multiply(
        insert_axes(x, range(1, 2 * ndim, 2)), insert_axes(y, range(0, 2 * ndim, 2))
    )
    return reshape(product, tuple([m * n for m, n in zip(x.shape, y.shape, strict=True)]))


@listed(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Tracer:  # noqa: N803
    """Each power is the one before, times x."""
    base: Any = as_tracer(x)
    if base.ndim != 1:
        raise errors.InvalidArgumentError("x must be a one-dimensional array or sequence.")
    base = cast(base, np.promote_types(base.dtype, np.int64))
    count = base.size if N is None else operator.index(N)
    if count < 0:
        raise errors.InvalidArgumentError("negative dimensions are not allowed")
    ones = filled(base.shape, base.dtype.type(1))
    powers: list[Any] = list(
        itertools.accumulate([ones, *[base] * (count - 1)], lambda a, b: b if a is ones else a * b)
    )[:count]
    if not powers:
        return filled((base.size, 0), base.dtype.type(0))
    return lying(stack(powers if increasing else powers[::-1], 1), "C", base)


# -- vectors


@listed(np.cross)
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = as_tracer(a), as_tracer(b)
    to = np.promote_types(x.dtype, y.dtype)
    p, q = _components(x, axisa, to), _components(y, axisb, to)
    third = _difference(p[0], q[1], p[1], q[0])
    if len(p) == len(q) == 2:
        third._scalar = False
        return third
    p, q = [[*each, None][:3] for each in (p, q)]
    first = _difference(p[1], q[2], p[2], q[1])
    second = _difference(p[2], q[0], p[0], q[2])
    return moveaxis(stack([first, second, third], -1), -1, axisc)


def _components(x: Tracer, axis: int, dtype: np.dtype) -> list[Any]:
    if not x.ndim:
        raise errors.InvalidArgumentError("At least one array has zero dimension")
    rows = cast(moveaxis(x, axis, -1), dtype)
    if rows.shape[-1] not in (2, 3):
        raise errors.InvalidArgumentError(
            "incompatible dimensions for cross product\n(dimension must be 2 or 3)"
        )
    return [rows[..., k] for k in range(rows.shape[-1])]  # type: ignore[index]


def _difference(a: Any, b: Any, c: Any, d: Any) -> Any:
    """`a b - c d`, where a component that is missing counts as 0."""
    if a is None or b is None:
        return -(c * d)
    return a * b if c is None or d is None else a * b - c * d


# -- a function of rows


@listed(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any], axis: Any, arr: Any, *args: Any, **kwargs: Any
) -> Tracer:
    x = as_tracer(arr)
    at = normalize_axis_index(operator.index(axis), x.ndim)
    others = [each for each in range(x.ndim) if each != at]
    rows: Any = transpose(x, [*others, at])
    outer = rows.shape[:-1]
    if not size_of(outer):
        raise errors.InvalidArgumentError(
            "Cannot apply_along_axis when any iteration dimensions are 0"
        )
    made = [as_tracer(func1d(rows[(*k, ...)], *args, **kwargs)) for k in np.ndindex(outer)]
    made = [cast(each, made[0].dtype) for each in made]
    own = made[0].shape
    table = reshape(stack(made, 0), (*outer, *own))
    inner = range(len(outer), len(outer) + len(own))
    return transpose(table, [*range(at), *inner, *range(at, len(outer))])


@listed(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    x: Any = as_tracer(a)
    ndim = x.ndim
    for axis in axis_tuple(axes):
        made = func(x, axis + ndim if axis < 0 else axis)
        x = made if made.ndim == ndim else np.expand_dims(made, axis)
        if x.ndim != ndim:
            raise errors.InvalidArgumentError(
                "function is not returning an array of the correct shape"
            )
    return x


# -- indices that a shape decides


def _of_shape(function: Callable[..., Any], indices: Callable[..., Any]) -> None:
    @listed(function)
    def run(arr: Any, *args: Any, **kwargs: Any) -> Any:
        like: Any = np.broadcast_to(np.False_, as_tracer(arr).shape)
        return made_by_numpy(indices, (like, *args), kwargs)


_FROM: Sequence[Callable[..., Any]] = (
    np.diag_indices_from,
    np.tril_indices_from,
    np.triu_indices_from,
)
for _function in _FROM:
    _of_shape(_function, _function)
