"""Positions along an axis as indices of a gather, and values for the places they choose."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64, UINT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import constant_atom, filled_atom
from tinyfuse.trace.index_keys import Positions
from tinyfuse.trace.operations import cast_atom, shape_text, size_of, stretch_atom
from tinyfuse.trace.position_bounds import interval, position_bound
from tinyfuse.trace.tracer import Tracer

Shape = tuple[int, ...]


def broadcast_value(value: Tracer, shape: Shape) -> Atom:
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
