"""Masked elements: what takes their place, and the masks of `where=`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.graph.numerics import start_value
from tinyfuse.trace.builder import active
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.operations import Shape, cast, reduce, shape_text, stretch_atom, to_bool, traced
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue


def is_given(value: Any) -> bool:
    return value is not _NOT_GIVEN and value is not None


def select_atom(mask: Atom, chosen: Atom, other: Atom, shape: Shape) -> Atom:
    """The chosen elements where the mask is true. The operands broadcast to the shape."""
    atoms = tuple([stretch_atom(atom, shape) for atom in (mask, chosen, other)])
    return active().define(p.elementwise, atoms, {"op": "select"}, shape, chosen.dtype)


def has_mask(where: Any) -> bool:
    return where is not True and where is not _NOT_GIVEN


def fitting_mask(where: Any, shape: Shape) -> Tracer:
    """The argument `where=` of a reduction over an array of this shape."""
    mask = to_bool(traced(where))
    if mask.ndim > len(shape):
        raise errors.ShapeError(
            "input operand has more dimensions than allowed by the axis remapping"
        )
    aligned = shape[len(shape) - mask.ndim :]
    if any(a not in (1, b) for a, b in zip(mask.shape, aligned, strict=True)):
        raise errors.ShapeError(
            "operands could not be broadcast together with remapped shapes "
            f"[original->remapped]: {shape_text(shape)} {shape_text(mask.shape)}"
        )
    return mask


def selected(op: str, x: Tracer, where: Any) -> Tracer:
    """x with what a reduction starts from in place of the elements that `where` leaves out."""
    if not has_mask(where):
        return x
    mask, neutral = fitting_mask(where, x.shape), Literal(start_value(op, x.dtype))
    return Tracer(active(), select_atom(mask._atom, x._atom, neutral, x.shape))


def counted(where: Any, shape: Shape, axes: Sequence[int], keepdims: bool) -> Tracer:
    """How many elements are left in: int64."""
    mask = fitting_mask(where, shape)
    whole = Tracer(active(), stretch_atom(mask._atom, shape))
    if type(whole._atom) is Literal:
        whole = Tracer(active(), active().emit(p.broadcast, whole._atom, shape=shape))
    return reduce("sum", whole, axes, INT64, keepdims) if axes else cast(whole, INT64)


def from_start(ufunc: np.ufunc, total: Tracer, initial: Any) -> Tracer:
    """A reduction together with its `initial=`, which has the dtype of the result."""
    if not is_given(initial):
        return total
    start: Any = initial
    if type(initial) in (int, float, bool):
        start = np.full((), initial, total.dtype)[()]
    elif np.ndim(start):
        raise errors.InvalidArgumentError("setting an array element with a sequence.")
    combined: Tracer = apply(ufunc, (cast(traced(start), total.dtype), total))
    return combined
