"""Python floats that are known at run time only, weak in promotion as Python's are."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tinyfuse.dtypes import BOOL, FLOAT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.trace.builder import GraphBuilder, leaked, state
from tinyfuse.trace.operation import operate
from tinyfuse.trace.specs import NeedsValue


class TracedFloat:
    """Stands for a Python float argument, or for what Python's arithmetic makes of some.

    With arrays it promotes as a Python float does. Whatever needs its value raises NeedsValue.
    """

    __slots__ = ("_atom", "_builder", "_index")

    def __init__(self, builder: GraphBuilder, atom: Atom, index: int | None):
        self._builder = builder
        self._atom = atom
        self._index = index  # of a spec that it depends on; None where a loop computes it

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # so that isinstance(a, float) is what it is without tracing
        return float

    def __repr__(self) -> str:
        return "TracedFloat()"

    def __getattr__(self, name: str) -> Any:
        if hasattr(float, name) and not name.startswith("__"):
            raise NeedsValue(self._index, f"float.{name}")
        raise AttributeError(f"'float' object has no attribute '{name}'")

    @property
    def real(self) -> TracedFloat:
        return self

    def conjugate(self) -> TracedFloat:
        return self

    def __pos__(self) -> TracedFloat:
        return self

    def __neg__(self) -> TracedFloat:
        return operate(_unary, "negative", self)

    def __abs__(self) -> TracedFloat:
        return operate(_unary, "absolute", self)


class TracedInt:
    """Stands for a Python integer that a loop counts or computes; see `weak_integers`."""

    __slots__ = ("_atom", "_builder")

    def __init__(self, builder: GraphBuilder, atom: Atom):
        self._builder = builder
        self._atom = atom

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # as of TracedFloat
        return int

    def __repr__(self) -> str:
        return "TracedInt()"


PythonNumber = (bool, int, float)


def _unary(name: str, x: TracedFloat) -> TracedFloat:
    return TracedFloat(x._builder, _define(x._builder, name, (atom_of(x, x._builder),)), x._index)


def _define(builder: GraphBuilder, name: str, atoms: tuple[Atom, ...]) -> Var:
    dtype = BOOL if name == "equal" else FLOAT64
    return builder.define(p.elementwise, atoms, {"op": name}, (), dtype)


def atom_of(x: Any, builder: GraphBuilder) -> Atom:
    """A float64 atom for a run-time float or a Python number."""
    if type(x) is not TracedFloat:
        return Literal(np.float64(float(x)))
    if x._builder is not builder or builder is not state.builder:
        raise leaked()
    return x._atom


def _arithmetic(name: str, a: Any, b: Any) -> TracedFloat:
    traced = a if type(a) is TracedFloat else b
    builder = traced._builder
    atoms = atom_of(a, builder), atom_of(b, builder)
    if name in DIVISIONS:
        check_divisor(builder, name, atoms[1], FLOAT64)
    index = traced._index if traced._index is not None else getattr(b, "_index", None)
    return TracedFloat(builder, _define(builder, name, atoms), index)


def _words_of_division_by_zero(function: Callable[[float, float], Any]) -> str:
    try:
        function(1.0, 0.0)
    except ZeroDivisionError as error:
        return str(error)
    raise AssertionError


DIVISIONS = {
    "divide": _words_of_division_by_zero(operator.truediv),
    "floor_divide": _words_of_division_by_zero(operator.floordiv),
    "remainder": _words_of_division_by_zero(operator.mod),
}


def check_divisor(builder: GraphBuilder, name: str, divisor: Atom, dtype: np.dtype) -> None:
    """Python's numbers do not divide by zero."""
    if isinstance(divisor, Literal):
        if divisor.value == 0:
            raise ZeroDivisionError(DIVISIONS[name])
        return
    is_zero = _define(builder, "equal", (divisor, Literal(dtype.type(0))))
    builder.check(is_zero, ZeroDivisionError, DIVISIONS[name])


def _with_complex(x: TracedFloat, other: Any) -> Any:
    """There are no complex numbers of Python's that are known at run time only."""
    if type(other) is complex:
        raise NeedsValue(x._index, "a complex number")
    return NotImplemented


def _binary_methods(name: str) -> tuple[Any, Any]:
    def forward(self: TracedFloat, other: Any) -> Any:
        if type(other) in PythonNumber or type(other) is TracedFloat:
            return operate(_arithmetic, name, self, other)
        return _with_complex(self, other)

    def reflected(self: TracedFloat, other: Any) -> Any:
        if type(other) in PythonNumber:
            return operate(_arithmetic, name, other, self)
        return _with_complex(self, other)

    return forward, reflected


for _name, _ufunc in [
    ("add", "add"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("truediv", "divide"),
    ("floordiv", "floor_divide"),
    ("mod", "remainder"),
]:
    _forward, _reflected = _binary_methods(_ufunc)
    setattr(TracedFloat, f"__{_name}__", _forward)
    setattr(TracedFloat, f"__r{_name}__", _reflected)


def _divmod(a: Any, b: Any) -> Any:
    return a // b, a % b


def _reflected_divmod(a: Any, b: Any) -> Any:
    return _divmod(b, a)


def _needing(what: str) -> Callable[..., NoReturn]:
    def need(self: TracedFloat, *args: Any, **kwargs: Any) -> NoReturn:
        if self._builder is not state.builder:
            operate(_raise, leaked())
        raise NeedsValue(self._index, what)

    return need


def _raise(error: Exception) -> NoReturn:
    raise error


def _compared(op: str, a: TracedFloat, b: Any) -> Any:
    """Of a number that a loop computes: a truth that is known at run time only."""
    builder = a._builder
    atoms = atom_of(a, builder), atom_of(b, builder)
    return COMPARED[0](builder, builder.define(p.elementwise, atoms, {"op": op}, (), BOOL))


COMPARED: list[Callable[..., Any]] = []  # what makes a scalar of an atom; tracers come later


def _comparing(what: str, op: str) -> Callable[..., Any]:
    need = _needing(what)

    def compare(self: TracedFloat, other: Any) -> Any:
        if type(other) in PythonNumber or type(other) is TracedFloat:
            if self._index is None:
                return operate(_compared, op, self, other)
            need(self)
        return NotImplemented

    return compare


for _name in ("bool", "int", "float", "hash", "format", "trunc", "floor", "ceil", "round", "str"):
    setattr(TracedFloat, f"__{_name}__", _needing(f"{_name}()"))
for _name, _sign, _ufunc in [
    ("lt", "<", "less"),
    ("le", "<=", "less_equal"),
    ("gt", ">", "greater"),
    ("ge", ">=", "greater_equal"),
    ("eq", "==", "equal"),
    ("ne", "!=", "not_equal"),
]:
    setattr(TracedFloat, f"__{_name}__", _comparing(f"a {_sign} b", _ufunc))


def _power(self: TracedFloat, other: Any, modulo: Any = None) -> Any:
    if type(other) in PythonNumber or type(other) is TracedFloat:
        raise NeedsValue(self._index, "a ** b")
    return NotImplemented


for _name, _method in [
    ("array", _needing("np.asarray")),
    ("divmod", _divmod),
    ("rdivmod", _reflected_divmod),
    ("pow", _power),
    ("rpow", _power),
]:
    setattr(TracedFloat, f"__{_name}__", _method)
