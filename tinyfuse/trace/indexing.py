"""Basic indexing: integers, slices, `...` and `None`."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.dispatch import as_method
from tinyfuse.trace.elements import without_tracing
from tinyfuse.trace.operations import reshape, slice_
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat

_WORDS = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)


@as_method("__getitem__")
def get_item(x: Tracer, index: Any) -> Tracer:
    """A view of x, or a scalar where integers take all axes."""
    items = _checked(index if isinstance(index, tuple) else (index,))
    starts: list[int] = []
    steps: list[int] = []
    extents: list[int] = []
    shape: list[int] = []  # without the axes that integers take away, with those of None
    for item in _completed(x, items):
        if item is None:
            shape.append(1)
            continue
        axis = len(starts)
        start, step, extent = _range(item, axis, x.shape[axis])
        starts.append(start)
        steps.append(step)
        extents.append(extent)
        if type(item) is slice:
            shape.append(extent)
    view = reshape(slice_(x, starts, steps, tuple(extents)), tuple(shape))
    return _as_numpy_returns(x, view, items)


def _as_numpy_returns(x: Tracer, view: Tracer, items: list[Any]) -> Tracer:
    """A 0-d result is a scalar unless `...` asks for an array."""
    scalar = not view.shape and Ellipsis not in items
    if view is x and scalar != x._scalar:
        view = Tracer(x._builder, x._atom)
    view._scalar = scalar
    return view


def _checked(items: tuple[Any, ...]) -> list[Any]:
    """The items with integers as Python's, after refusing what is no basic index."""
    return [item if item is None or item is Ellipsis else _checked_item(item) for item in items]


def _checked_item(item: Any) -> slice | int:
    kind = type(item)
    if kind is slice or kind is int:
        return item
    if kind is Tracer and not item.shape:
        raise without_tracing(errors.ArrayIndexingError(_no_array_index(item)), item)
    if kind in (bool, np.bool_, list, Tracer) or isinstance(item, np.ndarray):
        raise errors.ArrayIndexingError(_no_array_index(item))
    if kind is TracedFloat:
        raise errors.IndexingError(_WORDS)
    try:
        return operator.index(item)
    except TypeError:
        raise errors.IndexingError(_WORDS) from None


def _no_array_index(item: Any) -> str:
    dtype = getattr(item, "dtype", np.dtype(bool) if isinstance(item, bool) else None)
    if dtype is not None and dtype.kind == "b":
        return (
            "indexing with a boolean mask is not supported yet, and x[mask] has a shape that "
            "depends on data: compute on all elements and choose with np.where(mask, x, other)"
        )
    what = "a list" if isinstance(item, list) else "an integer known only at run time"
    if getattr(item, "ndim", 0):
        what = "an integer array"
    return (
        f"indexing with {what} is not supported yet: use slices and Python integers, and np.stack "
        "to join what they give"
    )


def _completed(x: Tracer, items: list[Any]) -> Iterator[Any]:
    """One item for each axis of x, and the Nones between them."""
    ellipses = sum([item is Ellipsis for item in items])
    taken = len(items) - ellipses - sum([item is None for item in items])
    if ellipses > 1:
        raise errors.IndexingError("an index can only have a single ellipsis ('...')")
    if taken > x.ndim:
        raise errors.IndexingError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were indexed"
        )
    rest = [slice(None)] * (x.ndim - taken)
    for item in items:
        if item is Ellipsis:
            yield from rest
        else:
            yield item
    if not ellipses:
        yield from rest


def _range(item: slice | int, axis: int, size: int) -> tuple[int, int, int]:
    """(start, step, extent)."""
    if isinstance(item, slice):
        start, stop, step = item.indices(size)
        return start, step, len(range(start, stop, step))
    if not -size <= item < size:
        raise errors.IndexingError(
            f"index {item} is out of bounds for axis {axis} with size {size}"
        )
    return item % size, 1, 1
