"""Python integers that are known at run time only, weak in promotion as Python's are.

They stand for the number of a turn in a loop, for a dynamic argument and for what Python's
arithmetic makes of these. They are int64: what is beyond that wraps around.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, FLOAT64, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.trace.builder import GraphBuilder, leaked, state
from tinyfuse.trace.elementwise import _array_ufunc
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import cast_atom
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import DIVISIONS, TracedFloat, TracedInt, check_divisor

_KIND = "an integer of a loop or of a dynamic argument"


def integer_atom(x: Any, builder: GraphBuilder) -> Atom:
    """An int64 atom for a run-time integer or a Python integer."""
    if type(x) is not TracedInt:
        if not -(2**63) <= x < 2**63:
            raise OverflowError(f"{x} meets {_KIND}, which is int64")
        return Literal(np.int64(x))
    if x._builder is not builder or builder is not state.builder:
        raise leaked()
    return x._atom


def as_integer(x: Any) -> Any:
    """A scalar of integers as an integer of Python's, known or not; anything else as it is."""
    if type(x) is not Tracer or not x._scalar or x.dtype.kind not in "iu":
        return x
    try:
        return operator.index(x)  # which may ask for the elements of a captured array
    except errors.NumberConversionError:
        return TracedInt(x._builder, cast_atom(x._atom, INT64))


def _define(builder: GraphBuilder, name: str, atoms: tuple[Atom, ...], dtype: np.dtype) -> Var:
    return builder.define(p.elementwise, atoms, {"op": name}, (), dtype)


def _arithmetic(name: str, a: Any, b: Any) -> Any:
    builder = (a if type(a) is TracedInt else b)._builder
    if float in (type(a), type(b)) or TracedFloat in (type(a), type(b)):
        return _as_floats(name, a, b)
    atoms = integer_atom(a, builder), integer_atom(b, builder)
    if name in DIVISIONS:
        check_divisor(builder, name, atoms[1], INT64)
    if name == "divide":
        parts = [builder.emit(p.cast, atom, dtype=FLOAT64) for atom in atoms]
        return TracedFloat(builder, _define(builder, name, (parts[0], parts[1]), FLOAT64), None)
    return TracedInt(builder, _define(builder, name, atoms, INT64))


def _as_floats(name: str, a: Any, b: Any) -> Any:
    """Python converts an integer that meets a float."""
    function = getattr(TracedFloat, _FLOAT_METHODS.get(name, ""), None)
    if function is None:
        raise TypeError(f"unsupported operand types for {name}: a float and an integer")
    return function(as_float(a), as_float(b))


def as_float(x: Any) -> Any:
    """The float that Python converts a number to."""
    if type(x) is TracedInt:
        return TracedFloat(x._builder, x._builder.emit(p.cast, x._atom, dtype=FLOAT64), None)
    if type(x) is TracedFloat:
        return x
    builder = state.builder
    assert builder is not None
    return TracedFloat(builder, Literal(np.float64(float(x))), None)


def _comparison(name: str, a: Any, b: Any) -> Any:
    builder = a._builder
    if type(b) in (float, TracedFloat):
        atoms = as_float(a)._atom, as_float(b)._atom
    else:
        atoms = integer_atom(a, builder), integer_atom(b, builder)
    return Tracer(builder, _define(builder, name, atoms, BOOL), True)


_NUMBERS = (bool, int, float, TracedInt, TracedFloat)


def _with_complex(x: TracedInt, other: Any) -> Any:
    """As of TracedFloat: no complex number of Python's is known at run time only."""
    if type(other) is complex:
        _need(x, f"a complex number of Python's (write np.complex128({other}) in its place)")
    return NotImplemented


def _methods(implementation: Callable[..., Any], name: str) -> tuple[Any, Any]:
    def forward(self: TracedInt, other: Any) -> Any:
        if type(other) in _NUMBERS:
            return operate(implementation, name, self, other)
        return _with_complex(self, other)

    def reflected(self: TracedInt, other: Any) -> Any:
        if type(other) in _NUMBERS:
            return operate(implementation, name, other, self)
        return _with_complex(self, other)

    return forward, reflected


_FLOAT_METHODS = {}
for _name, _ufunc in [
    ("add", "add"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("truediv", "divide"),
    ("floordiv", "floor_divide"),
    ("mod", "remainder"),
    ("and", "bitwise_and"),
    ("or", "bitwise_or"),
    ("xor", "bitwise_xor"),
]:
    _forward, _reflected = _methods(_arithmetic, _ufunc)
    setattr(TracedInt, f"__{_name}__", _forward)
    setattr(TracedInt, f"__r{_name}__", _reflected)
    _FLOAT_METHODS[_ufunc] = f"__{_name}__"
for _name, _ufunc in [
    ("lt", "less"),
    ("le", "less_equal"),
    ("gt", "greater"),
    ("ge", "greater_equal"),
    ("eq", "equal"),
    ("ne", "not_equal"),
]:
    setattr(TracedInt, f"__{_name}__", _methods(_comparison, _ufunc)[0])


def _power(self: TracedInt, other: Any, modulo: Any = None) -> Any:
    if type(other) is int and modulo is None and 1 <= other <= 3:
        power = self
        for _ in range(other - 1):
            power = operate(_arithmetic, "multiply", power, self)
        return power
    return NotImplemented if type(other) not in _NUMBERS else _need(self, "i ** n")


_USES = "use it as the index of an array, in arithmetic, or in np.where"


def _need(self: Any, what: str, remedy: str = _USES) -> NoReturn:
    _refuse(
        self,
        f"{what} needs the value of {_KIND}, which is known only when the compiled function runs; "
        f"{remedy}",
    )


def refuse_lengths(what: str, ends: Iterable[Any]) -> None:
    """Raises NumberConversionError where one of the ends of a range is known at run time only."""
    for end in ends:
        if type(end) is TracedInt:
            _refuse(end, unknown_length(what))


def unknown_length(what: str) -> str:
    return (
        f"{what} to {_KIND} has a length that is known only when the compiled function "
        "runs; take a part of a range of known length: np.arange(len(x))[:n]"
    )


def _refuse(self: Any, words: str) -> NoReturn:
    def fail() -> NoReturn:
        if self._builder is not state.builder:
            raise leaked()
        raise errors.NumberConversionError(words)

    operate(fail)
    raise AssertionError


def _needing(what: str, *remedy: str) -> Callable[..., NoReturn]:
    return lambda self, *args, **kwargs: _need(self, what, *remedy)


def _unary(name: str) -> Callable[[TracedInt], TracedInt]:
    def method(self: TracedInt) -> TracedInt:
        return operate(_one, name, self)

    return method


def _one(name: str, x: TracedInt) -> TracedInt:
    return TracedInt(x._builder, _define(x._builder, name, (x._atom,), INT64))


_LENGTHS = (
    "use it as the index of an array, or as the end of a slice: np.zeros(N)[:n] in place of "
    "np.zeros(n)"
)
for _name, _what in [
    ("bool", "`if`, `while`, `and`, `or`, `not` or bool()"),
    ("int", "int()"),
    ("float", "float() (or a function of `math`)"),
    ("hash", "hash()"),
    ("array", "np.asarray"),
    ("round", "round()"),
    ("str", "str()"),
    ("format", "format()"),
    ("rpow", "a ** i"),
]:
    setattr(TracedInt, f"__{_name}__", _needing(_what))
for _name, _method in [
    ("index", _needing("a Python integer (an index of a list, a shape, a step)", _LENGTHS)),
    ("pow", _power),
    ("neg", _unary("negative")),
    ("abs", _unary("absolute")),
    ("pos", lambda self: self),
    ("divmod", lambda self, other: (self // other, self % other)),
    ("rdivmod", lambda self, other: (other // self, other % self)),
    ("array_ufunc", _array_ufunc),
]:
    setattr(TracedInt, f"__{_name}__" if _name != "array_ufunc" else "__array_ufunc__", _method)
