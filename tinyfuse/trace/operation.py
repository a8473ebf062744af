"""What surrounds every operation: its place in the source, names, and error messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.graph.ir import Var
from tinyfuse.source import Source, here
from tinyfuse.trace.builder import place_text, state
from tinyfuse.trace.elements import without_tracing


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
        raise explained(without_tracing(error, (args, kwargs)), source) from None
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
    var = getattr(result, "_value", None) or getattr(result, "_atom", None)
    if type(var) is Var and var.name is None:
        object.__setattr__(var, "name", name)  # no one has seen the variable yet


def explained(error: Exception, source: Source) -> Exception:
    """An error as the user is to see it: of one of our classes, ending with the user's place."""
    if isinstance(error, errors.TinyfuseError):
        if error.located:
            return error
        cls: type[errors.TinyfuseError] = type(error)
    else:
        if not _is_plain(error):
            return error
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


def _is_plain(error: Exception) -> bool:
    """Whether an error is one of Python's or of numpy's own; not of a class that users catch."""
    module = type(error).__module__
    return module == "builtins" or (module.startswith("numpy") and "linalg" not in module)


_OURS: list[tuple[type[Exception], type[errors.TinyfuseError]]] = [
    (np.exceptions.AxisError, errors.AxisError),
    (IndexError, errors.IndexingError),
    (OverflowError, errors.IntegerRangeError),
    (TypeError, errors.DtypeError),
    (ValueError, errors.InvalidArgumentError),
]
