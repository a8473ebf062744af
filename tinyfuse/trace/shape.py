"""Views: other shapes and orders of axes of the same elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tinyfuse import errors
from tinyfuse.graph import primitives as p
from tinyfuse.trace.axes import (
    axis_tuple,
    completed_shape,
    normalize_axis_index,
    normalize_axis_tuple,
    requested_shape,
)
from tinyfuse.trace.dispatch import as_method, as_property, listed
from tinyfuse.trace.layouts import is_contiguous
from tinyfuse.trace.operations import (
    Shape,
    alias,
    array_of,
    broadcast,
    broadcast_shape,
    copy,
    insert_axes,
    reshape,
    scalar_copy,
    shape_text,
    slice_axis,
    traced,
    transpose,
    type_text,
    view_of,
)
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue


# -- what a shape says


@listed(np.shape)
def shape(a: Any) -> Shape:
    return traced(a).shape


@listed(np.ndim)
def ndim(a: Any) -> int:
    return traced(a).ndim


@listed(np.size)
def size(a: Any, axis: Any = None) -> int:
    x = traced(a)
    if axis is None:
        return x.size
    extents = [x.shape[at] for at in normalize_axis_tuple(axis, x.ndim)]
    return int(np.prod(extents, dtype=np.int64))


# -- reshape


def _in_order(x: Tracer, new_shape: Shape, order: str) -> Tracer:
    if order == "C":
        return reshape(x, new_shape)
    _require_order(order)
    return _transposed(reshape(_transposed(x), new_shape[::-1]))


def _require_order(order: str) -> None:
    if order not in ("C", "F"):
        raise errors.UnsupportedArgumentError(
            f"order={order!r} depends on how the array lies in memory: write order='C' or order='F'"
        )


def _transposed(x: Tracer) -> Tracer:
    return transpose(x, range(x.ndim)[::-1])


@listed(np.reshape)
def reshape_(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Tracer:
    x = traced(a)
    return _in_order(x, completed_shape(requested_shape(shape), x.size), order)


@as_method("reshape")
def reshape_method(x: Tracer, *shape: Any, order: str = "C", copy: Any = None) -> Tracer:
    return reshape_(x, shape[0] if len(shape) == 1 else shape, order)


@listed(np.ravel, method="ravel")
def ravel(a: Any, order: str = "C") -> Tracer:
    x = traced(a)
    if order == "F":
        return ravel(_transposed(x))
    _require_order("C" if order == "K" and x.ndim < 2 else order)
    return reshape(alias(x, is_contiguous), (x.size,))


@as_method("flatten")
def flatten(x: Tracer, order: str = "C") -> Tracer:
    return copy(_in_order(x, (x.size,), order))


@listed(np.squeeze, method="squeeze")
def squeeze(a: Any, axis: Any = None) -> Tracer:
    x = traced(a)
    if axis is None:
        axes = [at for at, extent in enumerate(x.shape) if extent == 1]
    else:
        ndim = x.ndim if isinstance(axis, tuple) else max(x.ndim, 1)
        found = [normalize_axis_index(each, ndim) for each in axis_tuple(axis)]
        axes = found if x.ndim else []
    if any(x.shape[at] != 1 for at in axes):
        raise errors.ShapeError(
            "cannot select an axis to squeeze out which has size not equal to one: "
            f"axis {axis} of {type_text(x)}"
        )
    return reshape(x, tuple([n for at, n in enumerate(x.shape) if at not in axes]))


@listed(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Tracer:
    x = array_of(traced(a))
    axes = axis_tuple(axis)
    return insert_axes(x, normalize_axis_tuple(axes, x.ndim + len(axes)))


@listed(np.atleast_1d)
def atleast_1d(*arrays: Any) -> Any:
    return _each(arrays, lambda x: insert_axes(x, range(1 - x.ndim)))


@listed(np.atleast_2d)
def atleast_2d(*arrays: Any) -> Any:
    return _each(arrays, lambda x: insert_axes(x, range(2 - x.ndim)))


@listed(np.atleast_3d)
def atleast_3d(*arrays: Any) -> Any:
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each(arrays, lambda x: insert_axes(x, new.get(x.ndim, ())))


def _each(arrays: Sequence[Any], change: Any) -> Any:
    changed = tuple([change(traced(a)) for a in arrays])
    return changed[0] if len(changed) == 1 else changed


# -- orders of axes


@listed(np.transpose)
def transpose_(a: Any, axes: Any = None) -> Tracer:
    x = traced(a)
    if axes is None:
        return _transposed(x)
    order = [normalize_axis_index(axis, x.ndim) for axis in axis_tuple(axes)]
    if len(order) != x.ndim:
        raise errors.InvalidArgumentError(
            f"axes don't match array: {tuple(axes)} of {type_text(x)}"
        )
    if len(set(order)) != len(order):
        raise errors.InvalidArgumentError("repeated axis in transpose")
    return transpose(x, order)


if hasattr(np, "permute_dims"):
    listed(np.permute_dims)(transpose_)


@as_method("transpose")
def transpose_method(x: Tracer, *axes: Any) -> Tracer:
    if len(axes) == 1 and (axes[0] is None or not isinstance(axes[0], int)):
        return transpose_(x, axes[0])
    return transpose_(x, axes or None)


@as_property("T")
def transposed(x: Tracer) -> Tracer:
    return _transposed(x)


@listed(np.matrix_transpose)
@as_property("mT")
def matrix_transpose(x: Any, /) -> Tracer:
    x = traced(x)
    if x.ndim < 2:
        raise errors.InvalidArgumentError("matrix transpose with ndim < 2 is undefined")
    return swapaxes(x, -1, -2)


@listed(np.swapaxes, method="swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Tracer:
    x = traced(a)
    order = list(range(x.ndim))
    first, second = normalize_axis_index(axis1, x.ndim), normalize_axis_index(axis2, x.ndim)
    order[first], order[second] = order[second], order[first]
    return transpose(x, order)


@listed(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    x = traced(a)
    moved = normalize_axis_tuple(source, x.ndim, "source")
    places = normalize_axis_tuple(destination, x.ndim, "destination")
    if len(moved) != len(places):
        raise errors.InvalidArgumentError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [axis for axis in range(x.ndim) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return transpose(x, order)


@listed(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Tracer:
    x = traced(a)
    axis = normalize_axis_index(axis, x.ndim)
    if start < 0:
        start += x.ndim
    if not 0 <= start <= x.ndim:
        raise errors.AxisError(
            f"'start' arg requires {-x.ndim} <= start < {x.ndim + 1}, but {start} was passed in"
        )
    order = [at for at in range(x.ndim) if at != axis]
    order.insert(start - 1 if axis < start else start, axis)
    return transpose(x, order)


# -- reversed axes


@listed(np.flip)
def flip(m: Any, axis: Any = None) -> Tracer:
    x = traced(m)
    axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim)
    for at in axes:
        x = _reversed(x, at)
    return x if x.ndim else scalar_copy(x)


def _reversed(x: Tracer, axis: int) -> Tracer:
    extent = x.shape[axis]
    return slice_axis(x, axis, extent - 1, extent, -1)


@listed(np.flipud)
def flipud(m: Any) -> Tracer:
    x = traced(m)
    if x.ndim < 1:
        raise errors.InvalidArgumentError("Input must be >= 1-d.")
    return _reversed(x, 0)


@listed(np.fliplr)
def fliplr(m: Any) -> Tracer:
    x = traced(m)
    if x.ndim < 2:
        raise errors.InvalidArgumentError("Input must be >= 2-d.")
    return _reversed(x, 1)


@listed(np.rot90)
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tracer:
    x = traced(m)
    first, second = normalize_axis_tuple(axes, x.ndim)
    turns = operator.index(k) % 4
    if turns == 2:
        return _reversed(_reversed(x, first), second)
    if turns == 1:
        return swapaxes(_reversed(x, second), first, second)
    return _reversed(swapaxes(x, first, second), second) if turns else x


# -- the same elements once more


@as_method("view")
def view(x: Tracer, *args: Any, **kwargs: Any) -> Tracer:
    if args or kwargs:
        raise errors.UnsupportedArgumentError(
            "x.view(dtype) gives the bytes of an array another meaning, which is not supported: "
            "convert with x.astype(dtype), or view outside of the traced function"
        )
    return scalar_copy(x) if x._scalar else alias(x)


# -- broadcasting


@listed(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tracer:
    x = traced(array)
    asked = requested_shape(shape)
    if min(asked, default=0) < 0:
        raise errors.InvalidArgumentError("all elements of broadcast shape must be non-negative")
    padded = (1,) * (len(asked) - x.ndim) + x.shape
    if len(padded) != len(asked) or any(
        n not in (1, to) for n, to in zip(padded, asked, strict=True)
    ):
        raise errors.ShapeError(
            "operands could not be broadcast together with remapped shapes "
            f"[original->remapped]: {shape_text(x.shape)}  and requested shape {shape_text(asked)}"
        )
    view = alias(x) if asked == x.shape else broadcast(x, asked)
    view._read_only = ""
    return view


@listed(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tracer, ...]:
    arrays = [array_of(traced(a)) for a in args]
    shape = broadcast_shape(arrays)
    if all(x.shape == shape for x in arrays):
        return tuple(arrays)
    views = tuple([broadcast_to(x, shape) for x in arrays])
    for view in views:
        view._read_only = _BROADCAST
    return views


_BROADCAST = (
    "the arrays that np.broadcast_arrays gives are views whose elements may overlap: write into "
    "the array itself, or into a copy"
)


# -- windows


@listed(sliding_window_view)
def sliding_windows(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tracer:
    x = traced(x)
    window = requested_shape(window_shape)
    axes = (
        tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim, "axis", True)
    )
    if any(extent < 0 for extent in window):
        raise errors.InvalidArgumentError("`window_shape` cannot contain negative values")
    if len(window) != len(axes):
        raise errors.InvalidArgumentError(_window_words(axis, len(window), x.ndim, len(axes)))
    left = list(x.shape)
    for at, extent in zip(axes, window, strict=True):
        left[at] -= extent - 1
    if any(extent < 0 for extent in left) or any(
        x.shape[a] < w for a, w in zip(axes, window, strict=True)
    ):
        raise errors.InvalidArgumentError(
            f"window shape cannot be larger than input array shape: {window} of {type_text(x)}"
        )
    if writeable:
        raise errors.UnsupportedArgumentError(
            "sliding_window_view(..., writeable=True) gives overlapping elements, which can't be "
            "written while traced: write into the array itself"
        )
    view = view_of(x, p.windows, window_shape=window, axes=tuple(axes))
    view._read_only = ""
    return view


def _window_words(axis: Any, windows: int, ndim: int, axes: int) -> str:
    if axis is None:
        return (
            "Since axis is `None`, must provide window_shape for all dimensions of `x`; got "
            f"{windows} window_shape elements and `x.ndim` is {ndim}."
        )
    return (
        "Must provide matching length window_shape and axis; got "
        f"{windows} window_shape elements and {axes} axes elements."
    )
