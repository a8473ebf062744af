"""Basic indexing: integers, slices, `...` and `None`."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

from tinyfuse import errors
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace import advanced_indexing
from tinyfuse.trace.advanced_indexing import is_basic
from tinyfuse.trace.assignment import assigned_atom
from tinyfuse.trace.builder import active, leaked
from tinyfuse.trace.cells import require_writable, write
from tinyfuse.trace.dispatch import as_method
from tinyfuse.trace.known import known_value
from tinyfuse.trace.operations import Shape, alias, reshape, scalar_copy, size_of, slice_
from tinyfuse.trace.outputs import full_atom
from tinyfuse.trace.run_time_parts import RunTimePart, part_of, put
from tinyfuse.trace.run_time_slices import run_time_slice, slice_of
from tinyfuse.trace.tracer import Tracer

_WORDS = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)


class Region(NamedTuple):
    """What a basic index chooses.

    extents: of the axes of the array. shape: without the axes that integers take away, and with
    those of None. is_scalar: whether that is one element, and no `...` asks for an array.
    """

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    extents: Shape
    shape: Shape
    is_scalar: bool


@as_method("__getitem__")
def get_item(x: Tracer, index: Any) -> Any:
    """A view of x, or a scalar where integers take all axes; a copy where arrays index it.

    A scalar that is known while tracing is a literal.
    """
    part = run_time_slice(x, index)
    if part is not None:
        return part_of(part)
    if type(index) is RunTimePart:
        return index.taken_from(x)
    if not is_basic(index):
        return advanced_indexing.get_item(x, index)
    region = _region(x, index)
    known = known_value(x) if region.is_scalar else None
    if known is not None:
        return Tracer(active(), Literal(known[region.starts]), scalar=True)
    view = reshape(slice_(x, region.starts, region.steps, region.extents), region.shape)
    if region.is_scalar:
        return scalar_copy(view)
    return alias(view) if view._scalar else view


@as_method("__setitem__")
def set_item(x: Tracer, index: Any, value: Any) -> None:
    """Put elements into a part of x; into copies of them where arrays index it."""
    if x._builder is not active():
        raise leaked()
    if x._scalar:
        raise errors.ArgumentTypeError(
            f"'numpy.{x.dtype.name}' object does not support item assignment"
        )
    part = slice_of(x, index) if type(value) is RunTimePart else run_time_slice(x, index)
    if part is not None:
        return put(part, value)
    if not is_basic(index):
        return advanced_indexing.set_item(x, index, value)
    region = _region(x, index)
    if type(value) is Tracer and _is_same(value, x, region):
        return None  # the end of `x[index] += y`, which has written there
    require_writable(x)
    atom = assigned_atom(value, x.dtype, region.shape, region.is_scalar)
    if size_of(region.shape):
        _put(x, region, atom)
    return None


def _put(x: Tracer, region: Region, atom: Atom) -> None:
    builder = active()
    if type(atom) is Literal:
        atom = full_atom(atom, region.extents)
    elif region.shape != region.extents:
        atom = builder.emit(p.reshape, atom, shape=region.extents)
    starts, steps = region.starts, region.steps
    write(x, builder.emit(p.update, x._atom, atom, starts=starts, steps=steps))


def _is_same(view: Tracer, x: Tracer, region: Region) -> bool:
    """Whether this is what the index has given before."""
    if view.shape != region.shape or region.is_scalar:
        return False
    if view._step is not None and view._step.primitive is p.reshape:
        view = view._base
    step = view._step
    if step is not None and step.primitive is p.slice_ and view._base is x:
        params = step.params
        return (params["starts"], params["steps"], view.shape) == region[:3]
    if step is None and view._base is x:
        view = x
    return view is x and region == _whole(x, region)


def _whole(x: Tracer, region: Region) -> Region:
    """The region of all elements in their order, of the same shape."""
    none, one = (0,) * x.ndim, (1,) * x.ndim
    return Region(none, one, x.shape, region.shape, region.is_scalar)


def _region(x: Tracer, index: Any) -> Region:
    """Raises IndexingError with numpy's words."""
    items = _checked(index if isinstance(index, tuple) else (index,))
    starts: list[int] = []
    steps: list[int] = []
    extents: list[int] = []
    shape: list[int] = []
    for item in _completed(x, items):
        if item is None:
            shape.append(1)
            continue
        axis = len(starts)
        start, step, extent = _range(item, axis, x.shape[axis])
        starts.append(start if extent else 0)
        steps.append(step if extent > 1 else 1)
        extents.append(extent)
        if type(item) is slice:
            shape.append(extent)
    is_scalar = not shape and Ellipsis not in items
    return Region(tuple(starts), tuple(steps), tuple(extents), tuple(shape), is_scalar)


def _checked(items: tuple[Any, ...]) -> list[Any]:
    """The items with integers as Python's."""
    return [item if item is None or item is Ellipsis else _checked_item(item) for item in items]


def _checked_item(item: Any) -> slice | int:
    if type(item) is slice or type(item) is int:
        return item
    try:
        return operator.index(item)
    except TypeError:
        raise errors.IndexingError(_WORDS) from None


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
