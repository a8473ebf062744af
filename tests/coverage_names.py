"""numpy's public functions, ufuncs and methods, and what documents their parameters."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

MODULES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")

# Of functions, but not of the methods that take the rest of their keywords.
_ONLY_OF_FUNCTIONS = {"a", "a_min", "a_max", "correction"}


def functions() -> dict[str, Callable[..., Any]]:
    """`np.linalg.norm` and its like, by the names under which numpy has them."""
    found = {
        f"{module}.{name}": getattr(of, name)
        for module, of in MODULES.items()
        for name in of.__all__
        if hasattr(getattr(of, name), "__name__") and _is_function(getattr(of, name))
    }
    windows = np.lib.stride_tricks.sliding_window_view
    found["np.lib.stride_tricks.sliding_window_view"] = windows
    return dict(sorted(found.items()))


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def attributes() -> list[str]:
    """Of arrays, without those between underscores: `T`, `sum`."""
    return [name for name in dir(np.ndarray) if not name.startswith("_")]


# -- parameters

# Those behind numpy's `**kwargs`.
_BEHIND = {
    "np.pad": ("constant_values", "end_values", "stat_length", "reflect_type"),
    "np.einsum": ("dtype", "order", "casting"),
    "np.clip": ("where", "order", "subok", "casting", "dtype"),
}


def parameters(name: str) -> set[str]:
    """The names of what a function or a method (`x.sum`) of numpy's takes by name."""
    if name.startswith("x."):
        function, same = getattr(np.ndarray, name[2:]), f"np.{name[2:]}"
        if not callable(function):
            return set()
        first = next(iter(_named(function)))
        found = set(_named(function)) - {first}
        if _takes_others(function) and hasattr(np, name[2:]):
            found |= parameters(same) - _ONLY_OF_FUNCTIONS
        return found
    function = eval(name, {"np": np})
    return set(_named(function)) | set(_BEHIND.get(name, ()))


def _signature(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return []


def _named(function: Any) -> list[str]:
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in _signature(function) if each.kind not in several]


def _takes_others(function: Any) -> bool:
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in _signature(function))


# -- calls


def calls(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Each function or method that an expression calls, and the parameters that it gives."""
    for node in ast.walk(ast.parse(expression, mode="eval")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield _called(ast.unparse(node.func)), _given(node)
        elif isinstance(node, ast.Attribute):
            yield _called(ast.unparse(node)), set()


def _called(text: str) -> str:
    return text if re.fullmatch(r"np(\.\w+)+", text) else f"x.{text.rpartition('.')[2]}"


def _given(node: ast.Call) -> set[str]:
    name = _called(ast.unparse(node.func))
    names = {each.arg for each in node.keywords if each.arg}
    function = (
        getattr(np.ndarray, name[2:], None) if name.startswith("x.") else eval(name, {"np": np})
    )
    places = [
        each.name
        for each in _signature(function)
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return names | set(places[name.startswith("x.") :][: len(node.args)])
