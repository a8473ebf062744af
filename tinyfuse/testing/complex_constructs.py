"""Constructs with complex numbers, which no others take; their parts are arrays like others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.dtypes import is_complex, is_half
from tinyfuse.testing.program import Expression, call, effect, method, operator
from tinyfuse.testing.scope import Array, NotApplicable, Scope, broadcasts


def _numbers(scope: Scope, accept: Callable[[Array], bool] = lambda value: True) -> str:
    return scope.any_array(lambda value: is_complex(value.dtype) and accept(value))


def _partner(scope: Scope, name: str) -> str:
    """A name of an array, of complex or real numbers, that broadcasts with the named one."""
    shape = scope.values[name].shape
    return scope.any_array(
        lambda value: not is_half(value.dtype) and broadcasts(shape, value.shape, scope.largest)
    )


def _written(scope: Scope) -> str:
    return _numbers(scope, lambda value: isinstance(value, np.ndarray) and value.flags.writeable)


def complex_arithmetic(scope: Scope) -> Expression:
    x = _numbers(scope)
    symbol = scope.choices.choose(("+", "*", "-", "/", "*", "<", "==", ">=", "!="))
    return operator(f"{{0}} {symbol} {{1}}", x, _partner(scope, x))


def complex_literal(scope: Scope) -> Expression:
    text = scope.choices.choose(
        ("{0} * (2 - 3j)", "{0} + 1j", "1j - {0}", "{0} / 2.5", "(1 + 1j) / {0}", "{0} * 2")
    )
    return operator(text, _numbers(scope))


def complex_unary(scope: Scope) -> Expression:
    text = scope.choices.choose(
        ("-{0}", "np.conj({0})", "np.square({0})", "np.reciprocal({0})", "np.isnan({0})", "+{0}")
    )
    return operator(text, _numbers(scope))


def complex_function(scope: Scope) -> Expression:
    names = ("abs", "np.exp", "np.sqrt", "np.log", "np.angle", "np.sin", "np.tanh")
    name = scope.choices.choose(names)
    scope.compose()
    return call(f"{name}({{0}})", _numbers(scope))


def complex_part(scope: Scope) -> Expression:
    return method(f"{{0}}.{scope.choices.choose(('real', 'imag'))}", _numbers(scope))


def complex_of_real(scope: Scope) -> Expression:
    x = scope.array(lambda value: value.dtype.kind == "f")
    y = scope.partner(x, lambda value: value.dtype.kind == "f")
    return operator("{0} + 1j * {1}", x, y)


def complex_cast(scope: Scope) -> Expression:
    name = scope.choices.choose(("complex64", "complex128"))
    return method(f"{{0}}.astype({name!r})", _partner(scope, _numbers(scope)))


def complex_where(scope: Scope) -> Expression:
    x = _numbers(scope)
    y = _partner(scope, x)
    return call("np.where({0} == {1}, {2}, {3})", x, y, x, y)


def complex_view(scope: Scope) -> Expression:
    x = _numbers(scope, lambda value: value.ndim > 0)
    return method(scope.choices.choose(("{0}.T", "{0}[::-1]", "{0}.reshape(-1)", "{0}[1:]")), x)


def complex_reduction(scope: Scope) -> Expression:
    names = ("sum", "mean", "prod", "max", "argmax", "cumsum")
    name = scope.choices.choose(names)
    x = _numbers(scope, lambda value: value.ndim > 0 and value.size > 0)
    scope.compose()
    return method(f"{{0}}.{name}(axis={scope.choices.choose((-1, 0))})", x)


def complex_sort(scope: Scope) -> Expression:
    """By position too: of equal numbers numpy's usual algorithm does not keep the order."""
    x = _numbers(scope, lambda value: value.ndim > 0)
    text = scope.choices.choose(("np.argsort({0}, kind='stable')", "np.sort({0}, kind='stable')"))
    return call(text, x)


def complex_product(scope: Scope) -> Expression:
    w = _numbers(scope, lambda value: value.ndim == 2)
    extent = scope.values[w].shape[0]
    x = scope.any_array(
        lambda value: value.ndim > 0 and value.shape[-1] == extent and not is_half(value.dtype)
    )
    if scope.values[x].size // max(1, extent) * scope.values[w].shape[1] > scope.largest:
        raise NotApplicable
    scope.compose()
    return operator("{0} @ {1}", x, w)


def complex_assignment(scope: Scope) -> Expression:
    x = _written(scope)
    text = scope.choices.choose(
        ("{0}[...] = {1}", "{0} += {1}", "{0} *= {1}", "{0}.real[...] = {1}.real", "{0} -= {1}")
    )
    if "*=" in text and scope.values[x].size == 1:
        scope.compose()  # numpy 2.4 rounds such a product otherwise than that of several elements
    return effect(text, x, _fitting(scope, x))


def complex_part_assignment(scope: Scope) -> Expression:
    x = _written(scope)
    text = scope.choices.choose(("{0}.imag = {1}", "{0}.real += {1}", "{0}.imag[...] *= {1}"))
    return effect(text, x, _fitting(scope, x, lambda value: value.dtype.kind in "biuf"))


def _fitting(scope: Scope, name: str, accept: Callable[[Array], bool] = lambda value: True) -> str:
    """A name of what can be written into the named array."""
    shape = scope.values[name].shape
    return scope.any_array(
        lambda value: (
            not is_half(value.dtype)
            and value.ndim <= len(shape)
            and broadcasts(shape, value.shape, max(1, int(np.prod(shape))))
            and accept(value)
        )
    )
