"""Masked elements: what takes their place, and the masks of `where=`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.graph.reduce_ops import REDUCE_OPS
from tinyfuse.trace.builder import active
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.operations import Shape, cast, reduce, shape_text, stretch_atom, traced
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt

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
    mask = traced(where)
    if mask.dtype != BOOL:
        raise errors.DtypeError(
            f"Cannot cast array data from {mask.dtype!r} to {BOOL!r} according to the rule 'safe'"
        )
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
    mask, neutral = fitting_mask(where, x.shape), Literal(REDUCE_OPS[op].start(x.dtype))
    return Tracer(active(), select_atom(mask._atom, x._atom, neutral, x.shape))


def counted(where: Any, shape: Shape, axes: Sequence[int], keepdims: bool) -> Tracer:
    """How many elements are left in: int64."""
    mask = fitting_mask(where, shape)
    whole = Tracer(active(), stretch_atom(mask._atom, shape))
    if type(whole._atom) is Literal:
        whole = Tracer(active(), active().emit(p.broadcast, whole._atom, shape=shape))
    return reduce("sum", whole, axes, INT64, keepdims) if axes else cast(whole, INT64)


def without_identity(ufunc: np.ufunc) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where "
        "mask one has to specify 'initial'"
    )


def require_start(ufunc: np.ufunc, where: Any, initial: Any) -> None:
    """`initial=None` takes away what sums and products start from; all may then be masked."""
    if initial is None and has_mask(where):
        raise without_identity(ufunc)


def from_start(ufunc: np.ufunc, total: Tracer, initial: Any) -> Tracer:
    """A reduction together with its `initial=`, which has the dtype of the result."""
    if not is_given(initial):
        return total
    combined: Tracer = apply(ufunc, (start_of(initial, total.dtype), total))
    return combined


def start_of(initial: Any, dtype: np.dtype) -> Tracer:
    """The argument `initial=` in the dtype of a reduction. Raises what numpy raises."""
    if type(initial) in (Tracer, TracedFloat, TracedInt):
        start = traced(initial)
        if start.ndim:
            raise errors.InvalidArgumentError("setting an array element with a sequence.")
        return cast(start, dtype)
    real = np.zeros((), dtype)
    real[()] = initial
    return traced(real[()])
