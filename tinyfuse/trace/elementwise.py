"""ufuncs, Python's operators, and the functions that compute element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.builder import GraphBuilder, active, leaked
from tinyfuse.trace.dispatch import function_name, no_output_array, unlisted
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import broadcast_shape, cast_atom, filled, stretch_atom, traced
from tinyfuse.trace.promotion import OPERATIONS, Loop, OperandKind, resolve
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat

NEGATIVE_POWER = "Integers to negative integer powers are not allowed."

_COMPARISONS = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip

# ufuncs that work on whole axes, and numpy's ufuncs that no one equation computes.
COMPOSED_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {}


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A ufunc called with traced arrays (`__array_ufunc__`)."""
    kwargs = {key: value for key, value in kwargs.items() if not _is_default(key, value)}
    if any(out is not None for out in kwargs.pop("out", ())):
        no_output_array(True)
    if method == "reduce" and ufunc in REDUCTIONS:
        return REDUCTIONS[ufunc](*inputs, **kwargs)
    if method == "outer" and ufunc in OPERATIONS and len(inputs) == 2:
        return apply(ufunc, _outer_operands(*inputs), **kwargs)
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
    if ufunc not in OPERATIONS:
        raise unlisted(function_name(ufunc))
    return apply(ufunc, inputs, **kwargs)


def _is_default(key: str, value: Any) -> bool:
    return (value is None and key != "axis") or (key == "where" and value is True) or (key, value) in (
        ("order", "K"), ("subok", True), ("casting", "same_kind"),
    )  # fmt: skip


def _outer_operands(a: Any, b: Any) -> tuple[Tracer, Tracer]:
    from tinyfuse.trace.operations import insert_axes

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
            f"np.{ufunc.__name__}(..., {next(iter(options))}=) is not supported"
        )
    builder = active()
    values, kinds = _classified(builder, operands)
    if dtype is None and casting == "same_kind":
        loop = resolve(ufunc, kinds)
    else:
        loop = resolve(ufunc, kinds, None if dtype is None else np.dtype(dtype), casting)
    if ufunc is np.power:
        shortcut = _power(values, loop)
        if shortcut is not None:
            return shortcut
    shape = broadcast_shape([value for value in values if type(value) not in _NUMBERS])
    try:
        atoms = [
            _operand(value, to, shape) for value, to in zip(values, loop.operands, strict=True)
        ]
    except OverflowError:
        if ufunc in _COMPARISONS:
            return _decided_comparison(ufunc, values, loop, shape)
        raise
    return _outputs(builder, loop, tuple(atoms), shape)


_NUMBERS = (int, float, bool)


def _classified(builder: GraphBuilder, operands: Sequence[Any]) -> tuple[list[Any], tuple[OperandKind, ...]]:
    """Each operand as an atom or a Python number, and how it takes part in promotion."""
    values: list[Any] = []
    kinds: list[OperandKind] = []
    for operand in operands:
        kind: Any = type(operand)
        if kind is Tracer or kind is TracedFloat:
            if operand._builder is not builder:
                raise leaked()
            value = operand._atom
            kind = value.dtype if kind is Tracer else float
        elif kind is int or kind is float:
            value = operand
        elif kind is bool:
            value, kind = Literal(np.bool_(operand)), BOOL
        elif kind is complex:
            raise errors.UnsupportedDtypeError(
                f"the complex number {operand} meets a traced array; tinyfuse computes with real numbers: "
                "keep real and imaginary parts in two arrays"
            )
        else:
            value = traced(operand)._atom
            kind = value.dtype
        values.append(value)
        kinds.append(kind)
    return values, tuple(kinds)


def _operand(value: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Atom:
    if type(value) in _NUMBERS:
        with np.errstate(over="ignore"):
            return Literal(dtype.type(value))
    if value.dtype != dtype:
        value = cast_atom(value, dtype)
    return value if value.shape == shape else stretch_atom(value, shape)


def _outputs(builder: GraphBuilder, loop: Loop, atoms: tuple[Atom, ...], shape: tuple[int, ...]) -> Any:
    made = [
        Tracer(builder, builder.define(p.elementwise, atoms, params, shape, dtype), not shape)
        for params, dtype in zip(loop.params, loop.outputs, strict=True)
    ]
    return made[0] if len(made) == 1 else tuple(made)


def _decided_comparison(ufunc: np.ufunc, values: list[Any], loop: Loop, shape: tuple[int, ...]) -> Tracer:
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
    value = exponent.value if type(exponent) is Literal else exponent
    if type(exponent) in (int, float, Literal):
        if type(value) is int and loop.operands[1].kind in "iu":
            value = loop.operands[1].type(value)  # OverflowError for -1 as uint8
        if loop.operands[1].kind in "iu" and value < 0:
            raise errors.NegativePowerError(NEGATIVE_POWER)
        return _constant_power(base, value, loop) if type(base) not in _NUMBERS else None
    if loop.operands[1].kind == "i":
        _check_exponents(cast_atom(exponent, loop.operands[1]))
    return None


_SHORTCUTS = {-1.0: "reciprocal", 0.5: "sqrt", 1.0: "positive", 2.0: "square"}


def _constant_power(base: Atom, exponent: Any, loop: Loop) -> Tracer | None:
    dtype = loop.operands[0]
    name = _SHORTCUTS.get(float(exponent))
    if name in ("reciprocal", "sqrt") and dtype.kind != "f":
        return None
    builder = active()
    if exponent == 0:
        ones = filled(base.shape, dtype.type(1))
        ones._scalar = not base.shape
        return ones
    # a numpy scalar's own power has no shortcuts: (-0.0) ** 0.5 is 0.0, of an array it is -0.0
    if name is None or (name == "sqrt" and not base.shape):
        return None
    var = builder.define(p.elementwise, (cast_atom(base, dtype),), {"op": name}, base.shape, dtype)
    return Tracer(builder, var, not base.shape)


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


# -- Python's operators


def _binary(ufunc: np.ufunc, reflected: bool = False) -> Callable[[Tracer, Any], Any]:
    def method(self: Tracer, other: Any) -> Any:
        if _declines(other):
            return NotImplemented
        return operate(call, (other, self) if reflected else (self, other))

    def call(operands: tuple[Any, Any]) -> Any:
        implementation = COMPOSED_UFUNCS.get(ufunc)
        return implementation(*operands) if implementation else apply(ufunc, operands)

    return method


def _power_operator(self: Tracer, other: Any, modulo: Any = None) -> Any:
    if type(other) is int and other == 2 and not self._scalar:
        return operate(apply, np.square, (self,))  # of bool gives int8, unlike np.power
    return _power_of(self, other)


_power_of = _binary(np.power)


def _equality(ufunc: np.ufunc, answer_for_none: bool) -> Callable[[Tracer, Any], Any]:
    compare = _binary(ufunc)

    def method(self: Tracer, other: Any) -> Any:
        if other is not None:
            return compare(self, other)
        answer = filled(self.shape, np.bool_(answer_for_none))  # no element is None
        answer._scalar = not self.shape
        return answer

    return method


def _declines(other: Any) -> bool:
    """Whether the other operand asks numpy's arrays to leave the operation to it."""
    kind = type(other)
    if kind is Tracer or kind in _NUMBERS or other is None:
        return False
    return getattr(kind, "__array_ufunc__", other) is None


def _unary(ufunc: np.ufunc) -> Callable[[Tracer], Any]:
    def method(self: Tracer) -> Any:
        return operate(apply, ufunc, (self,))

    return method


def _in_place(name: str, sign: str) -> Callable[[Tracer, Any], Any]:
    def method(self: Tracer, other: Any) -> Any:
        if self._scalar:
            return NotImplemented  # numpy's scalars are immutable: x += y binds x to x + y
        return operate(refuse)

    def refuse() -> None:
        raise errors.InPlaceWriteError(
            f"`x {sign}= y` writes into the array x in place, which is not supported yet: write "
            f"x = x {sign} y"
        )

    return method


_OPERATORS = [
    ("add", "+", np.add),
    ("sub", "-", np.subtract),
    ("mul", "*", np.multiply),
    ("truediv", "/", np.divide),
    ("floordiv", "//", np.floor_divide),
    ("mod", "%", np.remainder),
    ("pow", "**", np.power),
    ("lshift", "<<", np.left_shift),
    ("rshift", ">>", np.right_shift),
    ("and", "&", np.bitwise_and),
    ("or", "|", np.bitwise_or),
    ("xor", "^", np.bitwise_xor),
    ("matmul", "@", np.matmul),
]
for _name, _sign, _ufunc in _OPERATORS:
    setattr(Tracer, f"__{_name}__", _binary(_ufunc))
    setattr(Tracer, f"__r{_name}__", _binary(_ufunc, reflected=True))
    setattr(Tracer, f"__i{_name}__", _in_place(_name, _sign))
Tracer.__eq__ = _equality(np.equal, False)  # type: ignore[method-assign]
Tracer.__ne__ = _equality(np.not_equal, True)  # type: ignore[method-assign]
Tracer.__pow__ = _power_operator  # type: ignore[attr-defined]
Tracer.__divmod__ = _binary(np.divmod)  # type: ignore[attr-defined]
Tracer.__rdivmod__ = _binary(np.divmod, reflected=True)  # type: ignore[attr-defined]
for _name, _ufunc in zip(("lt", "le", "gt", "ge"), _COMPARISONS[2:], strict=True):
    setattr(Tracer, f"__{_name}__", _binary(_ufunc))
for _name, _ufunc in [
    ("neg", np.negative),
    ("pos", np.positive),
    ("abs", np.absolute),
    ("invert", np.invert),
]:
    setattr(Tracer, f"__{_name}__", _unary(_ufunc))


def _array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    return operate(call_ufunc, ufunc, method, inputs, kwargs)


Tracer.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
TracedFloat.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
