"""ufuncs: each an elementwise equation, after casts and broadcasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.graph.scalar_ops import CONSTANT_POWERS
from tinyfuse.trace.builder import GraphBuilder, active, leaked
from tinyfuse.trace.dispatch import function_name, unlisted
from tinyfuse.trace.eagerly import tried
from tinyfuse.trace.known import known_value
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import (
    broadcast_shape,
    cast_atom,
    filled,
    insert_axes,
    stretch_atom,
    traced,
    type_text,
)
from tinyfuse.trace.outputs import write_function_output, write_ufunc_output
from tinyfuse.trace.promotion import Loop, OperandKind, operations, resolve
from tinyfuse.trace.specs import NeedsValue
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.trace.weak_complex import TracedComplex

NEGATIVE_POWER = "Integers to negative integer powers are not allowed."

_COMPARISONS = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip

# ufuncs that work on whole axes, and numpy's ufuncs that no one equation computes.
COMPOSED_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}  # of ufuncs, that take the ufunc first


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A ufunc called with traced arrays (`__array_ufunc__`)."""
    kwargs = {key: value for key, value in kwargs.items() if not _is_default(key, value)}
    outs = kwargs.pop("out", ())
    if any(out is not None for out in outs):
        return _with_outputs(ufunc, method, inputs, outs, kwargs)
    if method == "reduce" and ufunc in REDUCTIONS:
        return REDUCTIONS[ufunc](*inputs, **kwargs)
    if method == "outer" and operations(ufunc) and len(inputs) == 2:
        return apply(ufunc, _outer_operands(*inputs), **kwargs)
    if method in METHODS:
        return METHODS[method](ufunc, *inputs, **kwargs)
    if method != "__call__":
        raise errors.UnlistedFunctionError(
            f"np.{ufunc.__name__}.{method} is not supported on traced arrays"
        )
    if "where" in kwargs:
        raise errors.UnsupportedArgumentError(
            f"np.{ufunc.__name__}(..., where=) is not supported: write np.where(mask, "
            f"np.{ufunc.__name__}(...), other)"
        )
    implementation = COMPOSED_UFUNCS.get(ufunc)
    if implementation is not None:
        return implementation(*inputs, **kwargs)
    if not operations(ufunc):
        raise unlisted(function_name(ufunc))
    return apply(ufunc, inputs, **kwargs)


def _with_outputs(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], outs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    if method == "reduce" and ufunc in REDUCTIONS:
        reduced = REDUCTIONS[ufunc](*inputs, out=outs[0], **kwargs)
        return write_function_output(ufunc, f"np.{ufunc.__name__}.reduce", outs[0], reduced)
    if method == "accumulate":
        made = METHODS[method](ufunc, *inputs, out=outs[0], **kwargs)
        return write_function_output(ufunc, f"np.{ufunc.__name__}.accumulate", outs[0], made)
    mask = kwargs.pop("where", True)
    made = call_ufunc(ufunc, method, inputs, kwargs)
    return write_ufunc_output(ufunc, outs, made, kwargs.get("casting", "same_kind"), mask)


def _is_default(key: str, value: Any) -> bool:
    if value is None:
        return key != "axis"
    if key == "where":
        return value is True
    return (key, value) in (("order", "K"), ("subok", True), ("casting", "same_kind"))


def _outer_operands(a: Any, b: Any) -> tuple[Tracer, Tracer]:
    a, b = traced(a), traced(b)
    return insert_axes(a, range(a.ndim, a.ndim + b.ndim)), b


def apply(
    ufunc: np.ufunc,
    operands: Sequence[Any],
    dtype: Any = None,
    casting: str = "same_kind",
    **options: Any,
) -> Any:
    """An elementwise ufunc: casts, broadcasts, and one equation for each output.

    Raises TypeError, OverflowError and ShapeError with numpy's words.
    """
    if options:
        raise errors.UnsupportedArgumentError(
            f"np.{ufunc.__name__}(..., {next(iter(options))}=) is not supported: leave it out"
        )
    builder = active()
    if ufunc is np.power and type(operands[1]) in (TracedFloat, TracedComplex):
        raise NeedsValue(operands[1]._index, "x ** a")  # numpy computes some powers otherwise
    values, kinds = _classified(builder, operands)
    loop = _loop(ufunc, values, kinds, dtype, casting)
    if ufunc is np.power:
        shortcut = _power(values, loop)
        if shortcut is not None:
            return shortcut
    shape = broadcast_shape([value for value in values if type(value) not in NUMBERS])
    try:
        atoms = [
            _operand(value, to, shape) for value, to in zip(values, loop.operands, strict=True)
        ]
    except OverflowError:
        if ufunc in _COMPARISONS:
            return _decided_comparison(ufunc, values, loop, shape)
        raise
    return _outputs(builder, loop, tuple(atoms), shape)


_WEAK = {TracedFloat: float, TracedInt: int, TracedComplex: complex}
NUMBERS = (int, float, bool, complex)  # of Python, that are weak in promotion


def _loop(ufunc: np.ufunc, values: list[Any], kinds: Any, dtype: Any, casting: str) -> Loop:
    try:
        if dtype is None and casting == "same_kind":
            return resolve(ufunc, kinds)
        return resolve(ufunc, kinds, None if dtype is None else np.dtype(dtype), casting)
    except errors.UnsupportedDtypeError:
        raise
    except TypeError as error:
        types = [repr(v) if type(v) in NUMBERS else type_text(v) for v in values]
        raise errors.DtypeError(f"{error}: {', '.join(types)}") from None


def _classified(
    builder: GraphBuilder, operands: Sequence[Any]
) -> tuple[list[Any], tuple[OperandKind, ...]]:
    """Each operand as an atom or a Python number, and how it takes part in promotion."""
    values: list[Any] = []
    kinds: list[OperandKind] = []
    for operand in operands:
        kind: Any = type(operand)
        if kind is Tracer or kind in _WEAK:
            if operand._builder is not builder:
                raise leaked()
            value = operand._atom
            kind = _WEAK.get(kind) or value.dtype
        elif kind is int or kind is float or kind is complex:
            value = operand
        elif kind is bool:
            value, kind = Literal(np.bool_(operand)), BOOL
        else:
            value = traced(operand)._atom
            kind = value.dtype
        values.append(value)
        kinds.append(kind)
    return values, tuple(kinds)


def _operand(value: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Atom:
    if type(value) in NUMBERS:
        with np.errstate(over="ignore"):
            return Literal(dtype.type(value))
    if value.dtype != dtype:
        given, value = value, cast_atom(value, dtype)
        active().memory.convert(given, value)
    return value if value.shape == shape else stretch_atom(value, shape)


def _outputs(
    builder: GraphBuilder, loop: Loop, atoms: tuple[Atom, ...], shape: tuple[int, ...]
) -> Any:
    made = [
        Tracer(builder, builder.define(p.elementwise, atoms, params, shape, dtype), not shape)
        for params, dtype in zip(loop.params, loop.outputs, strict=True)
    ]
    return made[0] if len(made) == 1 else tuple(made)


def _decided_comparison(
    ufunc: np.ufunc, values: list[Any], loop: Loop, shape: tuple[int, ...]
) -> Tracer:
    """A comparison with an integer beyond the dtype's range is the same for all elements."""
    samples = [
        value if type(value) is int else dtype.type(0)
        for value, dtype in zip(values, loop.operands, strict=True)
    ]
    answer = filled(shape, ufunc(*samples))
    answer._scalar = not shape
    return answer


# -- powers


def _power(values: list[Any], loop: Loop) -> Tracer | None:
    """numpy's shortcuts for constant exponents, and its refusal of negative integer exponents."""
    base, exponent = values
    value: Any = exponent.value if type(exponent) is Literal else exponent
    if type(exponent) in (int, float, complex, Literal):
        if type(value) is int and loop.operands[1].kind in "iu":
            value = loop.operands[1].type(value)  # OverflowError for -1 as uint8
        if loop.operands[1].kind in "iu" and value < 0 and not _is_empty(base):
            raise errors.NegativePowerError(NEGATIVE_POWER)
        return _constant_power(base, value, loop) if type(base) not in NUMBERS else None
    if loop.operands[1].kind == "i" and exponent.dtype.kind == "i" and not _is_empty(base):
        _check_exponents(exponent)
    return None


def _is_empty(value: Any) -> bool:
    """Whether an operand has no elements: numpy then computes, and refuses, nothing."""
    return 0 in getattr(value, "shape", ())


_OF_ALL = {1.0: "positive", 2.0: "square"}
_OF_COMPLEX = {-1: "reciprocal", 0.5: "sqrt", 1: "positive", 2: "square"}
_OF_FLOATS = {-1.0: "reciprocal", 0.5: "sqrt"}
_OF_FLOATS |= {exponent: name for name, (exponent, _) in CONSTANT_POWERS.items()}


def _constant_power(base: Atom, exponent: Any, loop: Loop) -> Tracer | None:
    dtype = loop.operands[0]
    if dtype.kind == "c":
        name = _OF_COMPLEX.get(exponent) if base.shape else None  # otherwise of its scalars
    else:
        name = _OF_ALL.get(float(exponent))
    if name is None and dtype.kind == "f":
        name = _OF_FLOATS.get(float(exponent))
    builder = active()
    if exponent == 0:
        ones = filled(base.shape, dtype.type(1))
        ones._scalar = not base.shape
        return ones
    # numpy computes those of its scalars otherwise: (-0.0) ** 0.5 is 0.0, of an array it is -0.0
    if name is None or (not base.shape and exponent not in (-1, 1, 2)):
        return None
    var = builder.define(p.elementwise, (cast_atom(base, dtype),), {"op": name}, base.shape, dtype)
    return Tracer(builder, var, not base.shape)


def require_exponents(exponents: Tracer, loop: Loop) -> None:
    """Raises NegativePowerError, or has it raised after the call, where numpy does."""
    if loop.operands[1].kind != "i" or exponents.dtype.kind != "i":
        return
    known = known_value(exponents)
    if known is None:
        _check_exponents(exponents._atom)
    elif (known < 0).any():
        raise errors.NegativePowerError(NEGATIVE_POWER)


def _check_exponents(exponent: Atom) -> None:
    """At run time: no exponent may be negative."""
    builder = active()
    zero = Literal(exponent.dtype.type(0))
    negative = builder.define(p.elementwise, (exponent, zero), {"op": "less"}, exponent.shape, BOOL)
    axes = tuple(range(len(exponent.shape)))
    if axes:
        params = {"op": "any", "axes": axes, "dtype": BOOL}
        negative = builder.define(p.reduce, (negative,), params, (), BOOL)
    builder.check(negative, errors.NegativePowerError, NEGATIVE_POWER)


def _array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if any(getattr(type(value), "_takes_over", False) for value in inputs):
        return NotImplemented
    return operate(_tried_ufunc, ufunc, method, inputs, kwargs)


def _tried_ufunc(ufunc: np.ufunc, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    def traced_call(*args: Any, **options: Any) -> Any:
        return call_ufunc(ufunc, method, args, options)

    return tried(traced_call, getattr(ufunc, method), inputs, kwargs)


Tracer.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
TracedFloat.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
TracedComplex.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
