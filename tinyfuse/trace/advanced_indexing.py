"""Indexing with arrays of integers, and with integers known at run time only.

Reading gathers from the indexed axes, which are moved to the front; writing scatters into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64, UINT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.trace.arrays import assigned_value
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import constant_atom, filled_atom
from tinyfuse.trace.index_keys import Key, Positions, basic_part, is_basic, take_apart
from tinyfuse.trace.masks import Masked, masked, set_masked, taken_from
from tinyfuse.trace.operations import (
    cast_atom,
    copy,
    shape_text,
    size_of,
    stretch_atom,
    transpose,
)
from tinyfuse.trace.position_bounds import interval, position_bound
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
        taken, new = Taken(basic_part(target, key), key), assigned_value(value, target.dtype)
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
        values = _broadcast_value(value, self.result_shape())
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


def _broadcast_value(value: Tracer, shape: Shape) -> Atom:
    """The value's atom in the shape of what it is put into; more axes must be of size 1."""
    extra = max(value.ndim - len(shape), 0)
    own = value.shape[extra:]
    aligned = shape[len(shape) - len(own) :]
    fits = all(a in (1, b) for a, b in zip(own, aligned, strict=True))
    if not fits or any(extent != 1 for extent in value.shape[:extra]):
        raise errors.ShapeError(
            f"shape mismatch: value array of shape {shape_text(value.shape)} could not be "
            f"broadcast to indexing result of shape {shape_text(shape)}"
        )
    atom = value._atom
    if extra:
        atom = active().emit(p.reshape, atom, shape=own)
    return stretch_atom(atom, shape)


def stretched(atom: Atom, shape: Shape) -> Atom:
    """An atom of exactly this shape, a literal included."""
    if type(atom) is Literal:
        return filled_atom(shape, atom.value)
    return stretch_atom(atom, shape)


def _transposed(atom: Atom, axes: Sequence[int]) -> Atom:
    if list(axes) == list(range(len(axes))):
        return atom
    return active().emit(p.transpose, atom, axes=tuple(axes))


def _inverse(axes: Sequence[int]) -> list[int]:
    return sorted(range(len(axes)), key=axes.__getitem__)


# -- positions along an axis


def positions_along(positions: Positions, extent: int, checked: bool = True) -> Atom:
    """The positions as int64 from 0 to extent - 1; out of range they raise IndexError.

    Those that are known now raise it at once, others after the call.
    """
    values: Any = positions.values
    known = positions.known
    if known is not None:
        if checked:
            require_in_range(known, positions.axis, extent)
        return _known_positions(values, known, extent)
    index = _as_int64(values._atom)
    bound = position_bound(active(), index)
    if bound is not None and bound <= extent:
        return index
    low, high = interval(active(), index)
    if low is not None and high is not None and -extent <= low and high < extent:
        return wrapped(index, extent)
    if checked:
        # an array of them wraps around, as in numpy; an integer that int64 does not hold does not
        given = values._atom if values.dtype == UINT64 and not values.shape else index
        _check_range(given, positions.axis, extent)
    return wrapped(index, extent)


def _known_positions(values: Any, known: np.ndarray, extent: int) -> Atom:
    if type(values) is Tracer and not (known < 0).any():
        return _as_int64(values._atom)
    return constant_atom(np.where(known < 0, known + extent, known).astype(np.int64))


def _as_int64(index: Atom) -> Atom:
    """The positions as int64; what numpy makes of them lies as the index itself does."""
    converted = cast_atom(index, INT64)
    if converted is not index:
        active().memory.convert(index, converted)
    return converted


def require_in_range(known: np.ndarray, axis: int, extent: int) -> None:
    outside = (known < -extent) | (known >= extent)
    if outside.any():
        raise errors.IndexingError(out_of_bounds(known, axis, extent))


def out_of_bounds(indices: np.ndarray, axis: int, extent: int) -> str:
    """numpy's words about the first index that is out of range."""
    outside = indices[(indices < -extent) | (indices >= extent)]
    first = outside.flat[0] if outside.size else "?"
    return f"index {first} is out of bounds for axis {axis} with size {extent}"


def _check_range(index: Atom, axis: int, extent: int) -> None:
    assert type(index) is Var
    if not size_of(index.shape):
        return
    builder = active()
    outside = _compared(index, "greater_equal", extent)
    if index.dtype.kind == "i":
        atoms = _compared(index, "less", -extent), outside
        outside = builder.define(p.elementwise, atoms, {"op": "logical_or"}, index.shape, BOOL)
    check_none(
        outside,
        errors.IndexingError,
        f"an index is out of bounds for axis {axis} with size {extent}",
        index,
        lambda values: out_of_bounds(values, axis, extent),
    )


def _compared(index: Atom, op: str, number: int) -> Var:
    operands = index, Literal(index.dtype.type(number))
    return active().define(p.elementwise, operands, {"op": op}, index.shape, BOOL)


def check_none(outside: Var, error: type[Exception], message: str, *told: Any) -> None:
    """After the call raise where any element is true."""
    builder = active()
    if outside.shape:
        params = {"op": "any", "axes": tuple(range(len(outside.shape))), "dtype": BOOL}
        outside = builder.define(p.reduce, (outside,), params, (), BOOL)
    builder.check(outside, error, message, *told)


def wrapped(index: Atom, extent: int) -> Atom:
    operands = (index, Literal(np.int64(extent)))
    return active().define(p.elementwise, operands, {"op": "wrap_index"}, index.shape, INT64)
