"""Constructs that work on whole rows: cumulative operations and sorting."""

from __future__ import annotations

from tinyfuse.testing.program import Expression, call, method
from tinyfuse.testing.scope import Scope
from tinyfuse.testing.write_constructs import has_axes

_ACCUMULATED = ("add", "maximum", "minimum", "multiply", "subtract")
_OF_INTEGERS = (*_ACCUMULATED, "bitwise_xor", "bitwise_and", "gcd", "logical_or")
_OF_BOOLS = ("logical_and", "logical_xor", "add", "maximum", "not_equal")
_SUMMED = ("float64", "float32", "int64", "int16", "uint8")


def _axis(scope: Scope, x: str) -> str:
    rank = scope.values[x].ndim
    return f"axis={scope.choices.below(2 * rank) - rank}"


def cumulative(scope: Scope) -> Expression:
    """`np.cumsum(x, axis=1)`, also of all elements."""
    x = scope.array()
    axis = _axis(scope, x) if scope.values[x].ndim and scope.choices.below(5) else ""
    name = scope.choices.choose(("cumsum", "cumsum", "cumprod", "nancumsum", "nancumprod"))
    keywords = [axis] if axis else []
    if scope.choices.chance(1, 6):
        keywords.append(f"dtype=np.{scope.choices.choose(_SUMMED)}")
    if scope.choices.below(2) and not name.startswith("nan"):
        return method(f"{{0}}.{name}({', '.join(keywords)})", x)
    return call(f"np.{name}({', '.join(['{0}', *keywords])})", x)


def accumulate(scope: Scope) -> Expression:
    """`np.maximum.accumulate(x, axis=1)`, and that of other ufuncs."""
    x = scope.array(has_axes)
    names = {"b": _OF_BOOLS, "f": (*_ACCUMULATED, "divide", "fmax")}
    name = scope.choices.choose(names.get(scope.values[x].dtype.kind, _OF_INTEGERS))
    return call(f"np.{name}.accumulate({{0}}, {_axis(scope, x)})", x)
