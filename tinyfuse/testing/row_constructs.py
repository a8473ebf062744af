"""Constructs that work on whole rows: cumulative operations and sorting."""

from __future__ import annotations

from tinyfuse.testing.program import Expression, call, effect, method
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


_KINDS = ("", "", ", kind='stable'", ", kind='heapsort'", ", stable=True")


def sort(scope: Scope) -> Expression:
    """`np.sort(x, axis=0)`: numpy's order of zeros under its own numerics, below the stable one."""
    x = scope.array()
    axis = _axis(scope, x) if scope.values[x].ndim and scope.choices.below(6) else "axis=None"
    return call(f"np.sort({{0}}, {axis}{scope.choices.choose(_KINDS)})", x)


def argsort(scope: Scope) -> Expression:
    x = scope.array()
    axis = _axis(scope, x) if scope.values[x].ndim and scope.choices.below(6) else "axis=None"
    kind = scope.choices.choose(_KINDS)
    forms = (call(f"np.argsort({{0}}, {axis}{kind})", x), method(f"{{0}}.argsort({axis}{kind})", x))
    return scope.choices.choose(forms)


def ranked(scope: Scope) -> Expression:
    """The elements in the order of others: what is computed in between is not stored."""
    x = scope.array(has_axes)
    axis = _axis(scope, x)
    y = scope.array(lambda other: other.shape == scope.values[x].shape)
    order = f"np.argsort({{1}}, {axis}, kind='stable')"
    return call(f"np.take_along_axis({{0}}, {order}, {axis})", x, y)


def lexsort(scope: Scope) -> Expression:
    x = scope.array(has_axes)
    y = scope.array(lambda other: other.shape == scope.values[x].shape)
    return call(f"np.lexsort(({{0}}, {{1}}), {_axis(scope, x)})", x, y)


def order_statistic(scope: Scope) -> Expression:
    """Medians and quantiles, with fractions that are Python numbers."""
    x = scope.array(lambda value: value.dtype.kind != "b" and value.size > 0)
    axis = _axis(scope, x) if scope.values[x].ndim and scope.choices.below(4) else "axis=None"
    keep = ", keepdims=True" if scope.choices.chance(1, 4) else ""
    fractions = ("0.5", "0.25", "[0.1, 0.9]", "0", "1.0", "0.66")
    forms = (
        f"np.median({{0}}, {axis}{keep})",
        f"np.quantile({{0}}, {scope.choices.choose(fractions)}, {axis}{keep})",
        f"np.percentile({{0}}, {scope.choices.choose(('50', '5', '33.3'))}, {axis}{keep})",
    )
    return call(scope.choices.choose(forms), x)


def place(scope: Scope) -> Expression:
    """Where values belong in a sorted array, or between edges."""
    edges, v = scope.array(), scope.array()
    ordered = scope.choices.choose(("np.sort({0}, axis=None)", "np.cumsum(np.greater({0}, 0))"))
    side = scope.choices.choose(("", ", side='right'"))
    right = scope.choices.choose(("", ", right=True"))
    forms = (
        f"np.searchsorted({ordered}, {{1}}{side})",
        f"np.digitize({{1}}, np.cumsum(np.greater({{0}}, 0)){right})",
        f"np.digitize({{1}}, np.cumsum(np.greater({{0}}, 0))[::-1]{right})",
    )
    return call(scope.choices.choose(forms), edges, v)


def histogram(scope: Scope) -> Expression:
    x, edges = scope.array(), scope.array(lambda value: value.size > 1)
    at = scope.choices.below(2)
    forms = (
        f"np.histogram({{0}}, bins=5, range=(-2, 3))[{at}]",
        f"np.histogram({{0}}, 4, (-0.5, 0.7), density=True)[{at}]",
        f"np.histogram({{0}}, np.cumsum(np.greater({{1}}, 0)))[{at}]",
    )
    return call(scope.choices.choose(forms), x, edges)


def sort_in_place(scope: Scope) -> Expression:
    """`y[::-1].sort(axis=0)`, of an array, a view or a copy."""
    y = scope.writable(has_axes)
    views = ("{0}", "{0}", "{0}[::-1]", "{0}[1:]", "{0}.T", "{0}[..., ::2]", "{0}.reshape(-1)")
    return effect(f"{scope.choices.choose(views)}.sort({_axis(scope, y)})", y)
