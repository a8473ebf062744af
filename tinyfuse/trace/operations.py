"""The equations that numpy's functions are composed of, as functions of tracers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, FLOAT32, SUPPORTED_TEXT, describe, is_half, is_supported
from tinyfuse.fixed import Constant, written
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.memory import is_on_device
from tinyfuse.trace.builder import GraphBuilder, active, leaked
from tinyfuse.trace.cells import Question
from tinyfuse.trace.layouts import has_view, is_contiguous, is_fortran
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.trace.weak_complex import TracedComplex

Shape = tuple[int, ...]


def traced(value: Any) -> Tracer:
    """A tracer for anything that numpy takes as an array.

    Raises ArrayConversionError for lists that hold tracers, UnsupportedDtypeError.
    """
    builder = active()
    kind = type(value)
    if kind is Tracer:
        if value._builder is not builder:
            raise leaked()
        return value
    if kind in (TracedFloat, TracedInt, TracedComplex):
        return Tracer(builder, value._atom, scalar=True)
    if kind is Constant:
        return fixed(builder, value)
    if isinstance(value, np.generic):
        return Tracer(builder, Literal(require_supported(value)), scalar=True)
    if not isinstance(value, np.ndarray):
        value = _as_array(value)
        if value.ndim == 0:
            return Tracer(builder, Literal(require_supported(value[()])))
    real = Tracer(builder, builder.capture(value))
    real._read_only = _NOT_FOLLOWED
    return real


def fixed(builder: GraphBuilder, value: Constant, name: str | None = None) -> Tracer:
    """A tracer for a constant, found in a variable of that name; it refuses to be written."""
    tracer = Tracer(builder, builder.fixed(value, name))
    tracer._read_only = str(written())
    tracer._born = 0  # it was there before whatever part of the function shows it first
    return tracer


_NOT_FOLLOWED = (
    "an array that was not made by numpy's functions in the traced function can't be written "
    "there: make it with np.zeros, np.array or np.copy, or pass it as an argument"
)


def require_supported(value: np.generic) -> np.generic:
    if not is_supported(value.dtype):
        raise errors.UnsupportedDtypeError(
            f"{value!r} has the dtype {value.dtype}, which tinyfuse does not support: it computes "
            f"with {SUPPORTED_TEXT}"
        )
    return value


def _as_array(value: Any) -> np.ndarray:
    if holds_tracer(value):
        raise errors.ArrayConversionError(
            f"a {type(value).__name__} of traced values stands where an array is needed: join them "
            "with np.stack"
        )
    if is_on_device(value):
        raise errors.UnsupportedArgumentError(
            f"a {type(value).__name__} on a GPU is no argument of the function, and only those are "
            "read there: pass it as one"
        )
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise errors.UnsupportedDtypeError(
            f"{type(value).__name__} gives an array of dtype {array.dtype}, which tinyfuse does "
            f"not support: it computes with {SUPPORTED_TEXT}"
        )
    return array


def is_traced(value: Any) -> bool:
    """Whether a value is a stand-in of a trace that is running."""
    return type(value) in (Tracer, TracedFloat, TracedInt, TracedComplex)


def holds_tracer(value: Any) -> bool:
    """Whether a tracer stands somewhere in nested lists and tuples."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if is_traced(part):
            return True
        if isinstance(part, (list, tuple)):
            waiting.extend(part)
    return False


def result(x: Tracer, primitive: Any, **params: Any) -> Tracer:
    """One equation on one array, as an array."""
    builder = active()
    return Tracer(builder, builder.emit(primitive, x._atom, **params))


def elementwise(op: str, *operands: Tracer | Literal, scalar: bool = False) -> Tracer:
    """One scalar operation on operands in its dtypes, which are broadcast."""
    builder = active()
    atoms: list[Atom] = [x if isinstance(x, Literal) else x._atom for x in operands]
    shape = broadcast_shape(atoms)
    stretched = [stretch_atom(atom, shape) for atom in atoms]
    return Tracer(builder, builder.emit(p.elementwise, *stretched, op=op), scalar)


def stretch_atom(atom: Atom, shape: Shape) -> Atom:
    """Broadcast, but a literal already stands for an array of any shape."""
    if atom.shape == shape or type(atom) is Literal:
        return atom
    return active().define(p.broadcast, (atom,), {"shape": shape}, shape, atom.dtype)


def cast_atom(atom: Atom, dtype: np.dtype) -> Atom:
    if atom.dtype == dtype:
        return atom
    if type(atom) is Literal:
        return Literal(atom.value.astype(dtype))
    return active().define(p.cast, (atom,), {"dtype": dtype}, atom.shape, dtype)


def broadcast_shape(operands: Sequence[Atom | Tracer]) -> Shape:
    """The shape that numpy broadcasts to. Raises ShapeError with numpy's words."""
    first = operands[0].shape
    if all(operand.shape == first for operand in operands):
        return first
    try:
        return np.broadcast_shapes(*[operand.shape for operand in operands])
    except ValueError:
        shapes = " ".join([shape_text(operand.shape) for operand in operands])
        types = ", ".join(map(type_text, operands))
        raise errors.ShapeError(
            f"operands could not be broadcast together with shapes {shapes}: {types}"
        ) from None


def shape_text(shape: Shape) -> str:
    """A shape as numpy's messages write it: `(3,4)`, `(3,)`."""
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def type_text(x: Atom | Tracer) -> str:
    return describe(x.shape, x.dtype)


# Views of a numpy scalar are numpy scalars where they are 0-d, and share no memory.


def view_of(x: Tracer, primitive: Any, shares: bool | Question = True, **params: Any) -> Tracer:
    """One equation that reads other elements of x, or in another order.

    shares: what decides whether numpy copies them.
    """
    builder = active()
    var = builder.emit(primitive, x._atom, **params)
    view = Tracer(builder, var, x._scalar and not var.shape)
    if not x._scalar:
        view._become_view(x, builder.eqns[-1], shares)
    return view


def alias(x: Tracer, shares: bool | Question = True) -> Tracer:
    """The same elements in the same memory, as an object of its own and no scalar.

    shares: what decides whether numpy copies them.
    """
    view = Tracer(active(), x._atom)
    if not x._scalar:
        view._become_view(x, None, shares)
    return view


def in_c_order(x: Tracer) -> Tracer:
    """The same elements: a view where they lie in C order, else a copy of them."""
    view = alias(x, is_contiguous)
    if x.ndim > 1 and not x._scalar:
        # a value of its own, which lies in C order whatever x does
        view._value = active().emit(p.cast, x._atom, dtype=x.dtype)
        lying(view, "C", x)
    return view


def array_of(x: Tracer) -> Tracer:
    """x, or an array without axes in place of a numpy scalar."""
    return alias(x) if x._scalar else x


def scalar_copy(x: Tracer) -> Tracer:
    """A numpy scalar with the value that a 0-d array has now."""
    return Tracer(active(), x._atom, scalar=True)


def fresh(x: Tracer) -> Tracer:
    """A value as an array in memory of its own, where numpy has copied elements."""
    return Tracer(active(), x._atom, x._scalar)


def cast(x: Tracer, dtype: np.dtype) -> Tracer:
    """Converted elements; x itself where it has the dtype."""
    if x.dtype == dtype:
        return x
    return Tracer(active(), cast_atom(x._atom, dtype), x._scalar)


def copy(x: Tracer, order: str = "K") -> Tracer:
    """A copy, in the memory order that is asked for: a conversion to the same dtype."""
    if order != "K" and x.ndim > 1:
        return _copy_in_order(x, order)
    copied = result(x, p.cast, dtype=x.dtype)
    copied._scalar = x._scalar
    return copied


def _copy_in_order(x: Tracer, order: str) -> Tracer:
    if order == "F" or (order == "A" and is_fortran(x)):
        axes = range(x.ndim)[::-1]
        return transpose(copy(transpose(x, axes), "C"), axes)
    return fresh(reshape(copy(reshape(x, (x.size,))), x.shape))


def in_order(x: Tracer, order: str | None) -> Tracer:
    """The same elements: x or a view of it where they lie in this order, else a copy of them."""
    if order == "F":
        axes = range(x.ndim)[::-1]
        return transpose(in_c_order(transpose(x, axes)), axes)
    return in_c_order(x) if order == "C" or (order == "A" and not is_fortran(x)) else x


def lying(x: Tracer, order: str, like: Tracer) -> Tracer:
    """A new array, that numpy has laid out in this order: C or F, or that of another one: A or K.

    The value of the graph may lie otherwise.
    """
    if x.ndim > 1 and type(x._value) is Var:
        active().memory.lie(x._value, order, like)
    return x


def reshape(x: Tracer, shape: Shape, copies: bool = True) -> Tracer:
    """copies: whether numpy copies where the layout in memory has no view of this shape."""
    if shape == x.shape:
        return x
    certain = not copies or _without_ones(shape) == _without_ones(x.shape)
    return view_of(x, p.reshape, certain or has_view, shape=shape)


def _without_ones(shape: Shape) -> list[int]:
    return [extent for extent in shape if extent != 1]


def transpose(x: Tracer, axes: Sequence[int]) -> Tracer:
    if list(axes) == list(range(x.ndim)):
        return x
    return view_of(x, p.transpose, axes=tuple(axes))


def broadcast(x: Tracer, shape: Shape) -> Tracer:
    """As an array of this shape, also where x is a scalar. A view that can't be written."""
    if shape == x.shape:
        return x
    view = view_of(x, p.broadcast, shape=shape)
    view._read_only = ""
    return view


def slice_(x: Tracer, starts: Sequence[int], steps: Sequence[int], shape: Shape) -> Tracer:
    """Element i of an axis is start + step * i."""
    pairs = zip(starts, steps, shape, strict=True)
    steps = [step if extent > 1 else 1 for _, step, extent in pairs]
    starts = [start if extent else 0 for start, extent in zip(starts, shape, strict=True)]
    if shape == x.shape and not any(starts) and all(step == 1 for step in steps):
        return x
    return view_of(x, p.slice_, starts=tuple(starts), steps=tuple(steps), shape=shape)


def slice_axis(x: Tracer, axis: int, start: int, extent: int, step: int = 1) -> Tracer:
    """A slice along one axis."""
    starts, steps, shape = [0] * x.ndim, [1] * x.ndim, list(x.shape)
    starts[axis], steps[axis], shape[axis] = start, step, extent
    return slice_(x, starts, steps, tuple(shape))


def insert_axes(x: Tracer, axes: Sequence[int]) -> Tracer:
    """New axes of size 1, at these places of the result."""
    shape = list(x.shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return reshape(x, tuple(shape))


def concatenate(parts: Sequence[Tracer], axis: int) -> Tracer:
    """Arrays of one dtype, joined along an axis."""
    if len(parts) == 1:
        return parts[0]
    builder = active()
    return Tracer(builder, builder.emit(p.concat, *[part._atom for part in parts], axis=axis))


def reduce(
    op: str, x: Tracer, axes: Sequence[int], dtype: np.dtype, keepdims: bool = False
) -> Tracer:
    """A reduction over some axes, in numpy a scalar where none is left.

    Of 16-bit floats it is computed in float32, and rounded once.
    """
    if is_half(x.dtype) or is_half(dtype):
        wide = cast(cast(x, dtype) if is_half(dtype) else x, FLOAT32)
        result_dtype = FLOAT32 if is_half(dtype) else dtype
        return cast(reduce(op, wide, axes, result_dtype, keepdims), dtype)
    reduced = result(x, p.reduce, op=op, axes=tuple(sorted(axes)), dtype=dtype)
    if keepdims:
        reduced = insert_axes(reduced, axes)
    reduced._scalar = not reduced._atom.shape
    return reduced


def filled(shape: Shape, value: np.generic) -> Tracer:
    """An array of one value."""
    builder, literal = active(), Literal(value)
    return Tracer(builder, builder.emit(p.broadcast, literal, shape=shape) if shape else literal)


def to_bool(x: Tracer) -> Tracer:
    return cast(x, BOOL)


def size_of(shape: Shape) -> int:
    return math.prod(shape)
