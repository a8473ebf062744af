"""From numpy's calls to ours: the table of listed functions, and what surrounds every operation."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tinyfuse import errors
from tinyfuse.graph.ir import Var
from tinyfuse.source import Source, here
from tinyfuse.trace.builder import active, place_text, state
from tinyfuse.trace.tracer import Tracer

Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}


def listed(*functions: Callable[..., Any], method: str | None = None) -> Callable[[Function], Function]:
    """Decorator: the implementation of numpy functions, and perhaps of the ndarray method `method`."""

    def register(implementation: Function) -> Function:
        for function in functions:
            FUNCTIONS[function] = implementation
        if method is not None:
            as_method(method)(implementation)
        return implementation

    return register


def as_method(name: str) -> Callable[[Function], Function]:
    """Decorator: the implementation of an ndarray method."""

    def register(implementation: Function) -> Function:
        @functools.wraps(implementation)
        def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
            return operate(implementation, self, *args, **kwargs)

        method.__name__ = name
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


def operate(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run an implementation as one operation of the user's.

    The outermost one takes the user's place in the source, names its result after the variable it
    is bound to, and ends the messages of errors with that place.
    """
    builder = state.builder
    if builder is not None and builder.source is not None:
        return function(*args, **kwargs)
    source = here()
    if builder is not None:
        builder.source = source
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        raise explained(error, source) from None
    finally:
        if builder is not None:
            builder.source = None
    if source.name is not None:
        _give_name(result, source.name)
    elif source.names and isinstance(result, (tuple, list)):
        for part, name in zip(result, source.names, strict=False):
            _give_name(part, name)
    return result


def _give_name(result: Any, name: str | None) -> None:
    if type(result) is Tracer and type(result._atom) is Var and result._atom.name is None:
        object.__setattr__(result._atom, "name", name)  # no one has seen the variable yet


def explained(error: Exception, source: Source) -> Exception:
    """An error as the user is to see it: of one of our classes, ending with the user's place."""
    if isinstance(error, errors.TinyfuseError):
        if error.located:
            return error
        cls: type[errors.TinyfuseError] = type(error)
    else:
        for kind, ours in _OURS:
            if isinstance(error, kind):
                cls = ours
                break
        else:
            return error
    message = str(error).rstrip()
    if cls is errors.DtypeError and not message.startswith(("ufunc", "numpy", "Cannot cast")):
        cls = errors.ArgumentTypeError
    located = cls(message + place_text(source))
    located.located = True
    return located


_OURS: list[tuple[type[Exception], type[errors.TinyfuseError]]] = [
    (np.exceptions.AxisError, errors.AxisError),
    (IndexError, errors.IndexingError),
    (OverflowError, errors.IntegerRangeError),
    (TypeError, errors.DtypeError),
    (ValueError, errors.InvalidArgumentError),
]


def call_function(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A numpy function called with traced arrays (`__array_function__`)."""
    implementation = FUNCTIONS.get(function)
    if implementation is None:
        raise unlisted(function_name(function))
    active()
    return implementation(*args, **kwargs)


def function_name(function: Any) -> str:
    """`np.linalg.inv`, as a user writes it."""
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{function.__name__}"


def unlisted(name: str) -> errors.UnlistedFunctionError:
    message = f"{name} is not among the functions that tinyfuse traces"
    near = difflib.get_close_matches(name, listed_names(), 1, 0.6)
    hint = f"; the nearest one that is: {near[0]}" if near else ""
    return errors.UnlistedFunctionError(message + hint)


def listed_names() -> list[str]:
    """The names of all traced functions and ufuncs, sorted."""
    from tinyfuse.trace.promotion import OPERATIONS

    return sorted({function_name(function) for function in (*FUNCTIONS, *OPERATIONS)})


def no_output_array(out: Any) -> None:
    """Raises InPlaceWriteError where an `out=` is given."""
    if out is not None:
        raise errors.InPlaceWriteError(
            "out= writes into an array, which is not supported yet: leave it out and assign the result"
        )
