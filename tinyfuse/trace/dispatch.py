"""From numpy's calls to ours: the table of listed functions, and what surrounds every operation."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.builder import active
from tinyfuse.trace.complex_numbers import require_covered
from tinyfuse.trace.eagerly import UnknownError, as_numpy, as_traced_values, tried
from tinyfuse.trace.operation import operate
from tinyfuse.trace.outputs import write_function_output
from tinyfuse.trace.promotion import is_special
from tinyfuse.trace.refusals import reason_of
from tinyfuse.trace.tracer import Tracer

Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}


def listed(
    *functions: Callable[..., Any], method: str | None = None
) -> Callable[[Function], Function]:
    """Decorator: the implementation of numpy functions, perhaps also of an ndarray method."""

    def register(implementation: Function) -> Function:
        for function in functions:
            FUNCTIONS[function] = with_output(implementation, function)
        if method is not None:
            as_method(method)(implementation)
        return implementation

    return register


def listed_unless_known(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """Decorator: as `listed`, but where all operands are known while tracing numpy computes."""

    def register(implementation: Function) -> Function:
        @functools.wraps(implementation)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                real_args, real_kwargs = as_numpy((args, kwargs))
            except UnknownError:
                return implementation(*args, **kwargs)
            return as_traced_values(function(*real_args, **real_kwargs))

        listed(function)(run)
        return implementation

    return register


REFUSED: dict[Callable[..., Any], None] = {}  # those of FUNCTIONS that only say why not


def refused(function: Callable[..., Any], error: type[Exception], words: str) -> None:
    """List a function that is not traced, with what is said about it."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise error(words)

    FUNCTIONS[function] = refuse
    REFUSED[function] = None


def with_output(
    implementation: Function, function: Callable[..., Any], name: str | None = None
) -> Function:
    """The implementation, or what also writes its result into an array given as `out=`.

    The implementation is told that array, as numpy may choose a dtype by it.
    """
    parameters = inspect.signature(implementation).parameters
    if "out" not in parameters:
        return implementation
    by_position = parameters["out"].kind is not inspect.Parameter.KEYWORD_ONLY
    place = list(parameters).index("out") if by_position else sys.maxsize
    named = name or function_name(function)

    @functools.wraps(implementation)
    def run(*args: Any, **kwargs: Any) -> Any:
        out = args[place] if len(args) > place else kwargs.get("out")
        result = implementation(*args, **kwargs)
        return result if out is None else write_function_output(function, named, out, result)

    return run  # type: ignore[return-value]


def as_method(name: str) -> Callable[[Function], Function]:
    """Decorator: the implementation of an ndarray method."""

    def register(implementation: Function) -> Function:
        written = with_output(implementation, getattr(np, name, implementation), f"x.{name}")
        run = _on_numbers(written, f"x.{name}")

        def numpys(array: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(array, name)(*args, **kwargs)

        @functools.wraps(implementation)
        def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
            return operate(tried, run, numpys, (self, *args), kwargs)

        method.__name__ = name
        implementation.__qualname__ = name  # for Python's words about unexpected arguments
        setattr(Tracer, name, method)
        return implementation

    return register


def as_property(name: str) -> Callable[[Function], Function]:
    """Decorator: the implementation of an ndarray attribute that needs an equation."""

    def register(implementation: Function) -> Function:
        def read(self: Tracer) -> Any:
            return operate(implementation, self)

        setattr(Tracer, name, property(read))
        return implementation

    return register


def call_function(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A numpy function called with traced arrays (`__array_function__`)."""
    active()
    implementation = FUNCTIONS.get(function)
    if implementation is None:
        return tried(_refusing(function), function, args, kwargs)
    if function in REFUSED:
        return tried(implementation, function, args, kwargs)
    return tried(_on_numbers(implementation, function_name(function)), function, args, kwargs)


def _on_numbers(implementation: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The implementation, of what it is made for."""

    def run(*args: Any, **kwargs: Any) -> Any:
        require_covered(name, args, kwargs)
        return implementation(*args, **kwargs)

    return run


def _refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise unlisted(function_name(function))

    return refuse


def function_name(function: Any) -> str:
    """`np.linalg.inv`, as a user writes it."""
    if isinstance(function, np.ufunc) and is_special(function):
        return f"scipy.special.{function.__name__}"
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{function.__name__}"


def unlisted(name: str) -> errors.UnlistedFunctionError:
    reason = reason_of(name)
    if reason is not None:
        return errors.UnlistedFunctionError(f"{name} is not traced: {reason}")
    return errors.UnlistedFunctionError(
        f"{name} is not among the functions that tinyfuse traces, which "
        "tinyfuse.supported_functions() lists"
    )


def _array_function(
    self: Tracer, function: Any, types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    if any(getattr(kind, "_takes_over", False) for kind in types):
        return NotImplemented
    return operate(call_function, function, args, kwargs)


Tracer.__array_function__ = _array_function  # type: ignore[attr-defined]
