"""Indexing with arrays of integers, and with integers known at run time only.

Reading gathers from the indexed axes, which are moved to the front; writing scatters into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom
from tinyfuse.trace.arrays import assigned_value
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import filled_atom
from tinyfuse.trace.index_keys import Key, Positions, basic_part, is_basic, take_apart
from tinyfuse.trace.masks import Masked, masked, set_masked, taken_from
from tinyfuse.trace.operations import copy, shape_text, size_of, transpose
from tinyfuse.trace.placed import Placed, can_be_placed
from tinyfuse.trace.placing import broadcast_value, positions_along, stretched
from tinyfuse.trace.tracer import Tracer

__all__ = ["get_item", "is_basic", "positions_along", "set_item"]

Shape = tuple[int, ...]


def get_item(x: Tracer, index: Any) -> Any:
    """`x[index]`: a new array, or a scalar where integers take all axes."""
    if type(index) is Masked:
        return taken_from(x, index)
    key = take_apart(x, index)
    if key.masks:
        return masked(x, key)
    if key.positions and can_be_placed(x, key):
        return Placed(x, key).view(not key.as_array)
    part = basic_part(x, key)
    if not key.positions:
        return copy(part) if key.copied and type(part) is Tracer else part
    taken = Taken(part, key)
    if taken.is_view and not key.copied:
        return taken.view(not key.as_array)
    atom = taken.read()
    return Tracer(active(), atom, not atom.shape and not key.as_array)


def set_item(target: Tracer, index: Any, value: Any) -> None:
    """`target[index] = value`."""
    key = take_apart(target, index)
    if key.masks:
        return set_masked(target, key, value)
    if not key.positions:
        target[key.basic_index] = value
    else:
        new = assigned_value(value, target.dtype)
        taken: Placed | Taken
        if can_be_placed(target, key):
            taken = Placed(target, key)
        else:
            taken = Taken(basic_part(target, key), key)
        if new.ndim and not key.as_array and not taken.result_shape() and not _is_truth(new):
            raise errors.InvalidArgumentError("setting an array element with a sequence.")
        taken.write("set", new)
    return None


def _is_truth(value: Tracer) -> bool:
    """Whether numpy takes an array for one element: it asks it whether it is true."""
    return value.dtype == BOOL and value.size == 1


class Taken:
    """Some axes of an array, and the positions along them."""

    def __init__(self, x: Tracer, key: Key) -> None:
        self._x = x
        self._shape = _broadcast_shape(key.positions)
        self._empty = not size_of(self._shape)
        self._axes = [each.at for each in key.positions]
        self._rest = [at for at in range(x.ndim) if at not in self._axes]
        self._place = key.place
        self._indices = [self._index(each) for each in key.positions]

    def _index(self, positions: Positions) -> Atom:
        checked = not self._empty or not positions.values.shape
        atom = positions_along(positions, self._x.shape[positions.at], checked)
        return stretched(atom, self._shape)

    def _rest_shape(self) -> Shape:
        return tuple([self._x.shape[at] for at in self._rest])

    def result_shape(self) -> Shape:
        rest = self._rest_shape()
        return rest[: self._place] + self._shape + rest[self._place :]

    def read(self) -> Atom:
        shape = self.result_shape()
        if not size_of(shape) or not self._x.size:
            return filled_atom(shape, self._x.dtype.type(0))
        found = active().emit(p.gather, self._in_front(), *self._indices)
        return _transposed(found, self._to_result())

    @property
    def is_view(self) -> bool:
        """Whether integers index all these axes, so that what is left is a view in numpy."""
        return not self._shape and self._x.size > 0

    def view(self, scalar: bool) -> Tracer:
        front = transpose(self._x, [*self._axes, *self._rest])
        builder = active()
        found = builder.emit(p.gather, front._atom, *self._indices)
        view = Tracer(builder, found, scalar and not found.shape)
        if not view._scalar:
            view._become_view(front, builder.eqns[-1])
        return view

    def write(self, op: str, value: Tracer, dtype: np.dtype | None = None) -> None:
        """Put values in, or combine them with the elements; as `ufunc.at` where one comes twice.

        dtype: what the elements are converted to, if they are to be combined in another one.
        """
        values = broadcast_value(value, self.result_shape())
        if not size_of(self.result_shape()) or not self._x.size:
            return
        result = self._to_result()
        in_front = _transposed(stretched(values, self.result_shape()), _inverse(result))
        array = self._in_front()
        computed = dtype or array.dtype
        new = active().emit(p.scatter, array, in_front, *self._indices, op=op, dtype=computed)
        order = _inverse([*self._axes, *self._rest])
        self._x._assign(Tracer(active(), _transposed(new, order)))

    def _in_front(self) -> Atom:
        return _transposed(stretched(self._x._atom, self._x.shape), [*self._axes, *self._rest])

    def _to_result(self) -> list[int]:
        """The axes of what a gather gives, in the order of the result."""
        count, before = len(self._shape), self._place
        rest = list(range(count, count + len(self._rest)))
        return [*rest[:before], *range(count), *rest[before:]]


def _broadcast_shape(positions: Sequence[Positions]) -> Shape:
    shapes = [each.values.shape for each in positions]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        texts = " ".join(map(shape_text, shapes))
        raise errors.IndexingError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {texts} "
        ) from None


def _transposed(atom: Atom, axes: Sequence[int]) -> Atom:
    if list(axes) == list(range(len(axes))):
        return atom
    return active().emit(p.transpose, atom, axes=tuple(axes))


def _inverse(axes: Sequence[int]) -> list[int]:
    return sorted(range(len(axes)), key=axes.__getitem__)
