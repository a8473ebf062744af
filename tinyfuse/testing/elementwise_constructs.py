"""Constructs that compute element by element."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from tinyfuse.dtypes import SUPPORTED
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.testing.program import Expression, call, method, operator
from tinyfuse.testing.scope import NotApplicable, Scope

# A NaN's sign is outside every promise, so these are used only where there is none.
_SEES_SIGN_OF_NAN = {"signbit", "copysign"}
_UFUNCS = tuple(row.evaluate for row in SCALAR_OPS.values() if isinstance(row.evaluate, np.ufunc))


@functools.cache
def ufuncs_of(*dtypes: np.dtype) -> tuple[str, ...]:
    """Names of the ufuncs that numpy resolves for operands of these dtypes to supported dtypes."""
    return tuple(
        ufunc.__name__
        for ufunc in _UFUNCS
        if ufunc.nin == len(dtypes)
        and ufunc.__name__ not in _SEES_SIGN_OF_NAN
        and _resolves(ufunc, dtypes)
    )


def _resolves(ufunc: np.ufunc, dtypes: Iterable[np.dtype]) -> bool:
    try:
        return all(dtype in SUPPORTED for dtype in ufunc.resolve_dtypes((*dtypes, None)))
    except TypeError:
        return False


BINARY_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
    "remainder": "%", "power": "**", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "left_shift": "<<", "right_shift": ">>", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
UNARY_OPERATORS = {"negative": "-{0}", "positive": "+{0}", "invert": "~{0}"}
LITERALS = (
    "2", "1", "0.5", "-1.5", "0", "3", "-1", "7",
    "np.float32(1.5)", "np.int8(3)", "np.float64(-2.0)", "True",
)  # fmt: skip


def unary(scope: Scope) -> Expression:
    x = scope.array()
    name = scope.choices.choose(ufuncs_of(scope.values[x].dtype))
    if name in UNARY_OPERATORS and scope.choices.below(2):
        return operator(UNARY_OPERATORS[name], x)
    return call(f"np.{name}({{0}})", x, by_layout=order_of(name))


_EXTREMES = ("maximum", "minimum", "fmax", "fmin")


def order_of(name: str) -> str:
    """`by_layout` of a ufunc: numpy has loops that differ in last bits, by the direction in memory.

    That is so for functions that are approximated.
    """
    return "" if SCALAR_OPS[name].exact or name in _EXTREMES else "ascending"


def _binary(scope: Scope, name: str, x: str, *y: str, second: str = "{1}") -> Expression:
    """`second` is the text of the second operand, for literals."""
    if name in BINARY_OPERATORS and scope.choices.below(4):
        scope.raise_to_power(BINARY_OPERATORS[name], x)
        text = f"{{0}} {BINARY_OPERATORS[name]} {second}"
        return operator(text, x, *y, by_layout=order_of(name))
    return call(f"np.{name}({{0}}, {second})", x, *y, by_layout=order_of(name))


def arithmetic(scope: Scope) -> Expression:
    """Fewer kinds, but those that programs are made of."""
    x = scope.array(lambda value: value.dtype.kind != "b")
    y = scope.partner(x, lambda value: value.dtype.kind != "b")
    return _binary(
        scope, scope.choices.choose(("add", "multiply", "subtract", "maximum", "minimum")), x, y
    )


def binary(scope: Scope) -> Expression:
    x = scope.array()
    y = scope.partner(x)
    names = ufuncs_of(scope.values[x].dtype, scope.values[y].dtype)
    if not names:
        raise NotApplicable
    return _binary(scope, scope.choices.choose(names), x, y)


def with_literal(scope: Scope) -> Expression:
    x = scope.array()
    name = scope.choices.choose(tuple(BINARY_OPERATORS))
    literal = scope.choices.choose(LITERALS)
    if scope.choices.chance(1, 4):
        scope.raise_to_power(BINARY_OPERATORS[name], x)
        first = literal if literal[0] != "-" else f"({literal})"
        text = f"{first} {BINARY_OPERATORS[name]} {{0}}"
        return operator(text, x, by_layout=order_of(name))
    return _binary(scope, name, x, second=literal)


def with_float(scope: Scope) -> Expression:
    """A Python float that is known only at run time."""
    floats = [name for name, value in scope.values.items() if isinstance(value, float)]
    if not floats:
        raise NotApplicable
    x, symbol = (
        scope.array(lambda value: value.dtype.kind == "f"),
        scope.choices.choose(("*", "+", "-", "/", "<")),
    )
    operands = scope.choices.shuffled((x, scope.choices.choose(floats)))
    return operator(f"{{0}} {symbol} {{1}}", *operands)


def signs(scope: Scope) -> Expression:
    x = scope.array(lambda value: value.dtype.kind == "f")
    if scope.choices.below(2):
        return operator("np.signbit({0}) & ({1} == {2})", x, x, x)
    y = scope.partner(x, lambda value: value.dtype.kind == "f")
    return call("np.copysign({0}, np.where({1} == {2}, {3}, 1.0))", x, y, y, y)


def two_results(scope: Scope) -> Expression:
    which = scope.choices.below(2)
    if scope.choices.below(2):
        x = scope.array(lambda value: value.dtype.kind == "f")
        return call(f"np.{scope.choices.choose(('modf', 'frexp'))}({{0}})[{which}]", x)
    x = scope.array(lambda value: value.dtype.kind != "b")
    return call(
        f"np.divmod({{0}}, {{1}})[{which}]",
        x,
        scope.partner(x, lambda value: value.dtype.kind != "b"),
    )


def cast(scope: Scope) -> Expression:
    dtype = scope.choices.choose(SUPPORTED[::-1])
    name = dtype.name if dtype.kind != "b" else "bool_"
    return method(
        f"{{0}}.astype({scope.choices.choose((f'np.{name}', repr(dtype.name)))})", scope.array()
    )


def where(scope: Scope) -> Expression:
    x = scope.array()
    test = scope.partner(x, lambda value: value.dtype.kind == "b")
    if scope.choices.chance(1, 3):
        return call(f"np.where({{0}}, {{1}}, {scope.choices.choose(LITERALS)})", test, x)
    return call("np.where({0}, {1}, {2})", test, x, scope.partner(x))


def compare_where(scope: Scope) -> Expression:
    x = scope.array(lambda value: value.dtype.kind != "b")
    y = scope.partner(x)
    return call(
        f"np.where({{0}} {scope.choices.choose(('<', '>', '=='))} {{1}}, {{2}}, {{3}})", x, y, x, y
    )


def centre(scope: Scope) -> Expression:
    """A reduction that its own operand reads: the shape of softmax."""
    x = scope.array(lambda value: value.ndim > 0 and value.dtype.kind != "b")
    axis = scope.choices.choose((-1, 0, None))
    name, symbol = scope.choices.choose((("mean", "-"), ("max", "-"), ("sum", "/")))
    text = f"{{0}} {symbol} {{1}}.{name}(axis={axis}, keepdims=True)"
    return operator(text, x, x, by_layout="K C")  # the result lies as x does


def outer(scope: Scope) -> Expression:
    x = scope.array(lambda value: value.ndim == 1)
    y = scope.array(
        lambda value: value.ndim == 1 and value.size * scope.values[x].size <= scope.largest
    )
    symbol = scope.choices.choose(("*", "-", "+", "<"))
    return operator(f"{{0}}[:, None] {symbol} {{1}}", x, y)
