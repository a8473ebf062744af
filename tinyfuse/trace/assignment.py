"""Assignment of elements, and the functions and methods of numpy that write."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.builder import active
from tinyfuse.trace.cells import require_writable, write
from tinyfuse.trace.dispatch import as_method, listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.operations import Shape, cast_atom, holds_tracer, is_traced, traced
from tinyfuse.trace.outputs import chosen_atom, fitted_atom, full_atom, mask_atom, require_traced
from tinyfuse.trace.specs import NeedsValue
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat
from tinyfuse.trace.weak_complex import TracedComplex

_NUMBERS = (bool, int, float, complex, np.generic)


# The kinds of arrays that any number of this type can be put into.
_TAKING = {TracedFloat: "bfc", TracedComplex: "c"}


def assigned_atom(value: Any, dtype: np.dtype, shape: Shape, one: bool = False) -> Atom:
    """What `target[...] = value` puts into a target of this dtype and shape, perhaps a literal.

    one: whether the target is an element, not an array without axes, which takes arrays of one
    element. Raises what numpy raises: ShapeError, OverflowError, ValueError for a NaN as an
    integer.
    """
    kind = type(value)
    if not is_traced(value) and isinstance(value, _NUMBERS):
        return Literal(_converted(value, dtype))
    if dtype.kind not in _TAKING.get(kind, dtype.kind):
        raise NeedsValue(value._index, "x[...] = a")  # which raises, or depends on the value
    x = value if kind is Tracer else _as_tracer(value, dtype)
    if not shape and x.ndim and (one or isinstance(value, (list, tuple))):
        if dtype == BOOL and x.size == 1:
            return fitted_atom(x, dtype, shape)  # of any type, numpy asks whether it is true
        raise errors.InvalidArgumentError("setting an array element with a sequence.")
    if x._scalar and kind is Tracer:
        _check_range(x, dtype)
    return fitted_atom(x, dtype, shape)


def _converted(value: Any, dtype: np.dtype) -> np.generic:
    """A number as numpy stores it in an array."""
    with np.errstate(all="ignore"):
        stored: Any = np.zeros((), dtype)
        stored[()] = value
    converted: np.generic = stored[()]
    return converted


def _as_tracer(value: Any, dtype: np.dtype) -> Tracer:
    """numpy converts each element of a list by itself, and real arrays as a whole."""
    if isinstance(value, np.ndarray) or holds_tracer(value):
        return traced(value)
    return traced(np.asarray(value, dtype))


# -- scalars that a signed integer can't hold, found out at run time


def _check_range(x: Tracer, dtype: np.dtype) -> None:
    """numpy's scalars become Python integers on their way into an array of signed integers."""
    if dtype.kind != "i" or np.can_cast(x.dtype, dtype):
        return
    if x.dtype.kind == "f":
        _check(apply(np.isnan, (x,)), errors.InvalidArgumentError, x, dtype)
    low, high = _bounds(x.dtype, dtype)
    inside = [apply(np.less_equal, (x, high))]
    if low is not None:
        inside.append(apply(np.greater_equal, (x, low)))
    outside = apply(np.logical_not, (apply(np.logical_and, inside * (2 // len(inside))),))
    _check(outside, errors.IntegerRangeError, x, dtype)


def _bounds(source: np.dtype, dtype: np.dtype) -> tuple[Any, Any]:
    """The least and greatest values of one dtype whose integer part the other can hold."""
    info = np.iinfo(dtype)
    if source.kind != "f":
        low = None if source.kind == "u" else source.type(info.min)
        return low, source.type(min(info.max, np.iinfo(source).max))
    down, up = source.type(-np.inf), source.type(np.inf)
    beyond = source.type(info.max + 1)
    low = source.type(info.min)
    if int(low) - 1 == int(source.type(info.min - 1)):
        low = np.nextafter(source.type(info.min - 1), up)
    return low, np.nextafter(beyond, down)


def _check(failed: Tracer, error: type[Exception], x: Tracer, dtype: np.dtype) -> None:
    def words(value: np.ndarray) -> str:
        try:
            np.zeros((), dtype)[()] = value[()]
        except (ValueError, OverflowError) as refusal:
            return str(refusal)
        return f"{value[()]} is out of bounds for {dtype.name}"

    atom = failed._atom
    if type(atom) is Literal:
        if atom.value:
            raise error(words(np.asarray(x._atom.value)))  # type: ignore[union-attr]
        return
    operand = cast_atom(x._atom, x.dtype)
    active().check(atom, error, "", operand, words)  # type: ignore[arg-type]


# -- functions and methods that write


@listed(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    _require_destination(dst)
    if type(src) in (bool, int, float, complex):
        try:
            np.copyto(np.zeros((), dst.dtype), src, casting)  # type: ignore[arg-type]
        except OverflowError as error:
            raise errors.IntegerRangeError(str(error)) from None
        source = Tracer(active(), Literal(_converted(src, dst.dtype)))
    else:
        source = traced(src)
        if not np.can_cast(source.dtype, dst.dtype, casting):  # type: ignore[arg-type]
            raise errors.DtypeError(
                f"Cannot cast array data from {source.dtype!r} to {dst.dtype!r} according to the "
                f"rule '{casting}'"
            )
    atom = fitted_atom(source, dst.dtype, dst.shape)
    if where is not True:
        where = Tracer(active(), mask_atom(where, dst.shape))
    put_everywhere(dst, atom, where)


def _require_destination(dst: Any) -> None:
    require_traced(dst, f"copyto() argument 1 must be numpy.ndarray, not {type(dst).__name__}")
    require_writable(dst)


def put_everywhere(target: Tracer, atom: Atom, mask: Any = True) -> None:
    """Replace all elements, or those under a mask, by the elements of another value."""
    if not target.size:
        return
    if mask is not True:
        write(target, chosen_atom(mask, atom, target))
        return
    none, one = (0,) * target.ndim, (1,) * target.ndim
    full = full_atom(atom, target.shape)
    write(target, active().emit(p.update, target._atom, full, starts=none, steps=one))


@as_method("fill")
def fill(x: Tracer, value: Any) -> None:
    if x._scalar:
        return  # numpy's scalars have the method, and stay as they are
    if np.ndim(value) and not (x.dtype == BOOL and np.size(value) == 1):
        raise errors.InvalidArgumentError("setting an array element with a sequence.")
    require_writable(x)
    put_everywhere(x, assigned_atom(value, x.dtype, (), one=True))
