"""Python complex numbers that are known at run time only, weak in promotion as Python's are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tinyfuse.dtypes import COMPLEX128
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom
from tinyfuse.trace.builder import GraphBuilder, leaked, state
from tinyfuse.trace.operation import operate
from tinyfuse.trace.specs import NeedsValue


class TracedComplex:
    """Stands for a Python complex number among the arguments.

    With arrays it promotes as a complex number of Python's does. Whatever needs its value raises
    NeedsValue; so does arithmetic with other numbers of Python's than complex ones, which converts
    them in ways that versions of Python differ in.
    """

    __slots__ = ("_atom", "_builder", "_index")

    def __init__(self, builder: GraphBuilder, atom: Atom, index: int):
        self._builder, self._atom = builder, atom
        self._index = index  # of the spec

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # so that isinstance(a, complex) is what it is without tracing
        return complex

    def __repr__(self) -> str:
        return "TracedComplex()"

    def __getattr__(self, name: str) -> Any:
        if hasattr(complex, name) and not name.startswith("__"):
            raise NeedsValue(self._index, f"complex.{name}")
        raise AttributeError(f"'complex' object has no attribute '{name}'")

    def __pos__(self) -> TracedComplex:
        return self

    def __neg__(self) -> TracedComplex:
        return operate(_negative, self)

    def __add__(self, other: Any) -> Any:
        return _with_number(_sum, "add", self, other)

    def __sub__(self, other: Any) -> Any:
        return _with_number(_sum, "subtract", self, other)


def _negative(x: TracedComplex) -> TracedComplex:
    return _made(x, "negative", x._atom)


def _sum(name: str, one: TracedComplex, other: TracedComplex) -> TracedComplex:
    return _made(one, name, one._atom, other._atom)


def _made(x: TracedComplex, name: str, *atoms: Atom) -> TracedComplex:
    if x._builder is not state.builder:
        raise leaked()
    made = x._builder.define(p.elementwise, atoms, {"op": name}, (), COMPLEX128)
    return TracedComplex(x._builder, made, x._index)


def _with_number(function: Callable[..., Any], name: str, one: TracedComplex, other: Any) -> Any:
    if type(other) is TracedComplex:
        return operate(function, name, one, other)
    return _need_with(one, other, "arithmetic with a number")


def _need_with(self: TracedComplex, other: Any, what: str) -> Any:
    """Arrays compute with it; other numbers need its value."""
    if isinstance(other, (int, float, complex)) and not hasattr(other, "dtype"):
        raise NeedsValue(self._index, what)
    return NotImplemented


def _needing(what: str) -> Callable[..., NoReturn]:
    def need(self: TracedComplex, *args: Any, **kwargs: Any) -> NoReturn:
        raise NeedsValue(self._index, what)

    return need


def _needing_with(what: str) -> Callable[..., Any]:
    return lambda self, other, *more: _need_with(self, other, what)


for _name in ("bool", "complex", "hash", "format", "str", "array"):
    setattr(TracedComplex, f"__{_name}__", _needing(f"{_name}()"))
setattr(TracedComplex, "__abs__", _needing("abs()"))  # noqa: B010
for _name in ("mul", "truediv", "pow", "eq", "ne"):
    setattr(TracedComplex, f"__{_name}__", _needing_with(f"a complex number in {_name}"))
for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(TracedComplex, f"__r{_name}__", _needing_with(f"a complex number in {_name}"))
