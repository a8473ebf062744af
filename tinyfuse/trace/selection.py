"""Conversions, choices between arrays, bounds, rounding."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import is_complex
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Literal
from tinyfuse.trace.builder import active
from tinyfuse.trace.creation import supported_dtype
from tinyfuse.trace.dispatch import as_method, as_property, listed
from tinyfuse.trace.elementwise import COMPOSED_UFUNCS, apply
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import (
    broadcast_shape,
    cast,
    filled,
    in_order,
    lying,
    stretch_atom,
    to_bool,
    traced,
    view_of,
)
from tinyfuse.trace.operations import (
    copy as copied,
)
from tinyfuse.trace.promotion import converted_number, resolve
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.trace.weak_complex import TracedComplex

# -- conversions


@as_method("astype")
def astype(
    x: Tracer,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Tracer:
    to = supported_dtype(dtype)
    if not np.can_cast(x.dtype, to, casting):  # type: ignore[arg-type]
        raise errors.DtypeError(
            f"Cannot cast array data from {x.dtype!r} to {to!r} according to the rule '{casting}'"
        )
    if to == x.dtype:
        return copied(x, order) if copy else in_order(x, order)
    converted = cast(x, to)
    return converted if order == "K" else copied(converted, order)


if hasattr(np, "astype"):

    @listed(np.astype)
    def astype_function(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tracer:
        return astype(traced(x), dtype, copy=copy)


@listed(np.real)
@as_property("real")
def real(val: Any) -> Tracer:
    x = traced(val)
    return view_of(x, p.part, at=0) if is_complex(x.dtype) else x


def of_parts(re: Tracer, im: Tracer) -> Tracer:
    """Complex numbers of two real arrays of one shape and dtype."""
    builder = active()
    return Tracer(builder, builder.emit(p.from_parts, re._atom, im._atom), re._scalar)


@listed(np.imag)
@as_property("imag")
def imag(val: Any) -> Tracer:
    x = traced(val)
    if is_complex(x.dtype):
        return view_of(x, p.part, at=1)
    zeros = filled(x.shape, x.dtype.type(0))
    zeros._scalar = x._scalar
    zeros._read_only = ""
    return zeros


def _settable(name: str) -> None:
    """`x.real = values` and `x.imag = values`, as numpy's arrays have them."""

    def put(x: Tracer, values: Any) -> None:
        if x._scalar:
            raise AttributeError(f"attribute '{name}' of numpy's scalars is not writable")
        if name == "imag" and not is_complex(x.dtype):
            raise errors.ArgumentTypeError("array does not have imaginary part to set")
        getattr(x, name)[...] = values

    def write(self: Tracer, values: Any) -> None:
        operate(put, self, values)

    setattr(Tracer, name, getattr(Tracer, name).setter(write))


_settable("real")
_settable("imag")


@as_method("conj")
def conj(x: Tracer) -> Tracer:
    if is_complex(x.dtype):
        return apply(np.conjugate, (x,))
    return x  # numpy's method returns a real array itself; its function np.conj copies


as_method("conjugate")(conj)


# -- choices


@listed(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Tracer:
    if x is None or y is None:
        raise errors.DataDependentShapeError(
            "np.where(condition) has a shape that depends on data: choose between two arrays with "
            "np.where(condition, a, b)"
        )
    to = supported_dtype(np.result_type(promoting(x), promoting(y)))
    chosen = [to_bool(traced(condition)), converted(x, to), converted(y, to)]
    shape = broadcast_shape(chosen)
    builder = active()
    atoms = tuple([stretch_atom(part._atom, shape) for part in chosen])
    return Tracer(builder, builder.define(p.elementwise, atoms, {"op": "select"}, shape, to))


def promoting(value: Any) -> Any:
    """What stands for a value in np.result_type."""
    kind = type(value)
    if kind in (int, float, bool, complex):
        return value
    weak = {TracedFloat: 1.0, TracedInt: 1, TracedComplex: 1j}
    return weak[kind] if kind in weak else traced(value).dtype


def converted(value: Any, dtype: np.dtype) -> Tracer:
    """An operand as numpy's conversion to a common dtype leaves it: numbers wrap around."""
    if type(value) in (int, float, bool):
        return Tracer(active(), Literal(converted_number(value, dtype)))
    return cast(traced(value), dtype)


@listed(np.clip)
def clip_function(
    a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, out: Any = None, **options: Any
) -> Tracer:
    if a_min is np._NoValue:
        a_min = options.pop("min", None)
    if a_max is np._NoValue:
        a_max = options.pop("max", None)
    return clip(traced(a), a_min, a_max, out, **options)


@as_method("clip")
def clip(
    x: Tracer,
    min: Any = None,  # noqa: A002
    max: Any = None,  # noqa: A002
    out: Any = None,
    **options: Any,
) -> Tracer:
    low, high = min, max
    if x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    if low is None and high is None:
        return apply(np.positive, (x,), **options)
    if low is None:
        return apply(np.minimum, (x, high), **options)
    if high is None:
        return apply(np.maximum, (x, low), **options)
    return _clip_ufunc(x, low, high, **options)


_CLIP: np.ufunc = np._core.umath.clip  # type: ignore[attr-defined]


def _clip_ufunc(x: Any, low: Any, high: Any, **options: Any) -> Tracer:
    """numpy's own two comparisons; a NaN anywhere gives NaN.

    Where x equals a bound, numpy keeps x if both bounds are scalars, else it takes the bound: only
    the sign of zero shows it.
    """
    if options:
        raise errors.UnsupportedArgumentError(
            f"np.clip(..., {next(iter(options))}=) is not supported: leave it out, and "
            "convert with astype or choose with np.where afterwards"
        )
    kinds = tuple([_kind(value) for value in (x, low, high)])
    to = resolve(_CLIP, kinds).operands[0]
    for bound in (low, high):
        if type(bound) is int:
            to.type(bound)  # OverflowError where it does not fit
    x, low, high = [converted(value, to) for value in (x, low, high)]
    shape = broadcast_shape([x, low, high])
    scalars = not low.shape and not high.shape
    above = _bounded(x, low, np.maximum, np.less if scalars else np.less_equal)
    clipped = _bounded(above, high, np.minimum, np.greater if scalars else np.greater_equal)
    return Tracer(active(), stretch_atom(clipped._atom, shape), not shape)


COMPOSED_UFUNCS[_CLIP] = _clip_ufunc


def _kind(value: Any) -> Any:
    kind = type(value)
    if kind in (int, float):
        return kind
    return float if kind is TracedFloat else traced(value).dtype


def _bounded(x: Tracer, bound: Tracer, of_integers: np.ufunc, beyond: np.ufunc) -> Tracer:
    if x.dtype.kind != "f":
        return apply(of_integers, (x, bound))
    takes_bound = apply(beyond, (x, bound))
    if not (type(bound._atom) is Literal and bound._atom.value == bound._atom.value):
        takes_bound = apply(np.logical_or, (takes_bound, apply(np.isnan, (bound,))))
    return where(takes_bound, bound, x)


@listed(np.round, np.around, method="round")
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Tracer:
    x = traced(a)
    digits = operator.index(decimals)
    if is_complex(x.dtype):
        return of_parts(round_(x.real, digits), round_(x.imag, digits))
    if x.dtype.kind in "iu" and digits >= 0:
        rounded = copied(x)
        rounded._scalar = not x.shape
        return rounded
    if digits == 0:
        return apply(np.rint, (x,))
    there, back = (np.multiply, np.divide) if digits > 0 else (np.divide, np.multiply)
    power = 10.0 ** abs(digits)
    rounded = apply(back, (apply(np.rint, (apply(there, (x, power)),)), power))
    if not np.can_cast(rounded.dtype, x.dtype, "same_kind") and x.dtype.kind == "b":
        raise errors.DtypeError(
            f"Cannot cast ufunc '{there.__name__}' output from {rounded.dtype!r} to {x.dtype!r} "
            "with casting rule 'same_kind'"
        )
    return lying(cast(rounded, x.dtype), "A", x)
