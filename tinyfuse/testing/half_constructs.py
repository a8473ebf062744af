"""Constructs with 16-bit floats, which no others take: float16, and bfloat16 where it is installed.

What is rounded after each operation has numpy's bits; sums and products, in float32, have not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from tinyfuse.dtypes import FLOAT16, is_half
from tinyfuse.testing.program import Expression, call, method, operator
from tinyfuse.testing.scope import Array, NotApplicable, Scope, broadcasts


@functools.cache
def halves() -> tuple[np.dtype, ...]:
    try:
        import ml_dtypes
    except ImportError:
        return (FLOAT16,)
    return FLOAT16, np.dtype(ml_dtypes.bfloat16)


def _half(scope: Scope, accept: Callable[[Array], bool] = lambda value: True) -> str:
    return scope.any_array(lambda value: is_half(value.dtype) and accept(value))


def _partner(scope: Scope, name: str) -> str:
    """A name of an array of the same dtype that broadcasts with the named one."""
    value = scope.values[name]
    return _half(
        scope,
        lambda other: (
            other.dtype == value.dtype and broadcasts(value.shape, other.shape, scope.largest)
        ),
    )


def narrow(scope: Scope) -> Expression:
    dtype = scope.choices.choose(halves())
    return method(f"{{0}}.astype({dtype.name!r})", scope.array())


def widen(scope: Scope) -> Expression:
    name = scope.choices.choose(("float32", "float64", "float32", "bool"))
    return method(f"{{0}}.astype({name!r})", _half(scope))


def half_arithmetic(scope: Scope) -> Expression:
    x = _half(scope)
    symbol = scope.choices.choose(("+", "*", "-", "/", "<", "==", ">="))
    return operator(f"{{0}} {symbol} {{1}}", x, _partner(scope, x))


def half_unary(scope: Scope) -> Expression:
    text = scope.choices.choose(
        ("-{0}", "abs({0})", "np.sqrt({0})", "np.square({0})", "np.rint({0})")
    )
    return operator(text, _half(scope))


def half_where(scope: Scope) -> Expression:
    x = _half(scope)
    y = _partner(scope, x)
    return call("np.where({0} < {1}, {2}, {3})", x, y, x, y)


def half_view(scope: Scope) -> Expression:
    x = _half(scope, lambda value: value.ndim > 0)
    return method(scope.choices.choose(("{0}.T", "{0}[::-1]", "{0}.reshape(-1)", "{0}[1:]")), x)


def half_extreme(scope: Scope) -> Expression:
    """The position of the largest: of two zeros numpy does not say which is larger."""
    x = _half(scope, lambda value: value.ndim > 0 and value.size > 0)
    return method("{0}.argmax(axis=-1)", x)


def half_sum(scope: Scope) -> Expression:
    x = _half(scope, lambda value: value.ndim > 0)
    scope.compose()
    return method(f"{{0}}.{scope.choices.choose(('sum', 'mean'))}(axis=-1)", x)


def half_product(scope: Scope) -> Expression:
    """Of a matrix of 16-bit floats and an array of the same, or of float32."""
    w = _half(scope, lambda value: value.ndim == 2)
    extent = scope.values[w].shape[0]
    others = scope.values[w].dtype, np.dtype(np.float32)
    x = scope.any_array(
        lambda value: value.ndim > 0 and value.shape[-1] == extent and value.dtype in others
    )
    if scope.values[x].size // max(1, extent) * scope.values[w].shape[1] > scope.largest:
        raise NotApplicable
    scope.compose()
    return operator("{0} @ {1}", x, w)
