"""What traced functions see in place of numpy's functions that create arrays.

Those ask nobody: `np.zeros(3)` gives a real array, which no traced value can be put into. The
stand-ins give traced arrays. A function that is called outside of a trace is numpy's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from tinyfuse.trace.builder import state
from tinyfuse.trace.eagerly import as_numpy, as_traced_values
from tinyfuse.trace.operation import operate
from tinyfuse.trace.random_states import Undrawn

Function = TypeVar("Function", bound=Callable[..., Any])

# By id of what numpy has: that, and what stands for it.
_STAND_INS: dict[int, tuple[Any, Any]] = {}


def stands_in_for(*functions: Callable[..., Any]) -> Callable[[Function], Function]:
    """Decorator: how traced functions create an array.

    The implementation returns NotImplemented where the array is to be numpy's own; so it does for
    arguments that numpy is to refuse with its own words.
    """

    def register(implementation: Function) -> Function:
        for function in functions:
            replace(function, _stand_in(function, implementation))
        return implementation

    return register


def replace(original: Any, stand_in: Any) -> None:
    """Let traced functions see something else in place of what numpy has."""
    _STAND_INS[id(original)] = original, stand_in


def _stand_in(function: Callable[..., Any], implementation: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def create(*args: Any, **kwargs: Any) -> Any:
        if state.builder is None:
            return function(*args, **kwargs)
        return operate(_create, function, implementation, args, kwargs)

    return create


def _create(
    function: Callable[..., Any],
    implementation: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    try:
        created = implementation(*args, **kwargs)
    except TypeError as error:
        if not _is_about_arguments(error):
            raise
        created = NotImplemented
    return made_by_numpy(function, args, kwargs) if created is NotImplemented else created


def _is_about_arguments(error: TypeError) -> bool:
    """Whether Python could not call the implementation with these arguments."""
    return error.__traceback__ is not None and error.__traceback__.tb_next is None


def made_by_numpy(
    function: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The arrays that numpy makes of what is known while tracing, as traced ones."""
    args, kwargs = as_numpy((args, kwargs or {}))
    return as_traced_values(function(*args, **kwargs))


def stand_in_for(value: Any) -> Any:
    """What traced functions see in place of a value of numpy's; the value itself for most."""
    found = _STAND_INS.get(id(value))
    return value if found is None else found[1]


def original_of(value: Any) -> Any:
    """What numpy has in place of a stand-in; other values as they are."""
    wrapped = getattr(value, "__wrapped__", None)
    found = _STAND_INS.get(id(wrapped))
    return wrapped if found is not None and found[1] is value else value


def originals() -> list[Any]:
    """All that there are stand-ins for."""
    return [original for original, _ in _STAND_INS.values()]


class Numpy(ModuleType):
    """A module of numpy's, as traced functions see it."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        vars(self)["__wrapped__"] = module
        for name in ("__file__", "__loader__", "__path__", "__spec__", "__version__"):
            if hasattr(module, name):
                vars(self)[name] = getattr(module, name)

    def __getattr__(self, name: str) -> Any:
        value = stand_in_for(getattr(vars(self)["__wrapped__"], name))
        if name == "random":  # imported by those who ask for it
            value = Undrawn(value, "np.random")
        if not name.startswith("__"):
            vars(self)[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(vars(self)["__wrapped__"])


NUMPY = Numpy(np)
replace(np.linalg, Numpy(np.linalg))
