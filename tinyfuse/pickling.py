"""How jitted functions get to other processes: as functions do, by their names.

Where the name does not lead to one, the function in it is sent, with its options. In the main
module of another process there may be nothing of that name; then the function has to be sent as it
is, which some picklers (cloudpickle) do with functions of the main module. For those it goes under
a name by which it can be found: it is the attribute `_plain` of the jitted one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

_PLAIN = "._plain"


def reduced(jitted: Any, protocol: int, options: tuple[Any, ...]) -> str | tuple[Any, ...]:
    """What `__reduce_ex__` returns."""
    made = (type(jitted), options)
    if _found(jitted.__module__, jitted.__qualname__) is not jitted:
        return remade, (jitted.__wrapped__, *made)
    function = jitted._plain if jitted.__module__ == "__main__" and protocol >= 4 else None
    return str(jitted.__qualname__) if function is None else (remade, (function, *made))


def plain(jitted: Any) -> FunctionType | None:
    """The function in a jitted one, under a name by which it can be found."""
    function = jitted.__wrapped__
    if not isinstance(function, FunctionType):
        return None
    code, variables, closure = function.__code__, function.__globals__, function.__closure__
    copy = FunctionType(code, variables, function.__name__, function.__defaults__, closure)
    functools.update_wrapper(copy, function)
    del copy.__dict__["__wrapped__"]
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = jitted.__qualname__ + _PLAIN
    return copy


@functools.lru_cache(maxsize=256)
def remade(function: Callable[..., Any], kind: Any, options: tuple[Any, ...]) -> Any:
    """A jitted function that was pickled: the one of that name, or one that compiles the same."""
    name = getattr(function, "__qualname__", "")
    if name.endswith(_PLAIN):
        name = name.removesuffix(_PLAIN)
        found = _found(function.__module__, name)
        if isinstance(found, kind) and found._plain is function:
            return found
        function.__qualname__ = name
    static, *others = options
    return kind(function, sorted(static), *others)


def _found(module: str, name: str) -> Any:
    """What a name stands for in a module."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
