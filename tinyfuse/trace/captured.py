"""Arrays that a traced function takes from outside: found again at every call."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_DEPTH = 3  # containers within containers that are searched
_LIMIT = 20_000  # values looked at


@dataclass(frozen=True, slots=True)
class Place:
    """Where Python finds a value: a global or closure variable, then items and attributes of it."""

    name: str
    look: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Captured:
    """An array that is a hidden input of the graph.

    array: what tracing saw. place: the variable it was found in; None for an array that no variable
    outside of the function holds.
    """

    array: np.ndarray
    place: Place | None

    def current(self) -> Any:
        """What the place holds now, after a rebinding not always an array of the same type.

        Raises what Python raises where the place is gone: NameError, AttributeError, KeyError ...
        """
        return self.array if self.place is None else self.place.look()


def find_places(function: Callable[..., Any]) -> dict[int, Place]:
    """The places of all arrays that a function can reach by name, by the arrays' ids.

    Looks at the closure and global variables that the function's code mentions, at those of the
    Python functions among them, and into dicts, lists, tuples, modules and objects that are
    mentioned.
    """
    return _Search().run(function)


class _Search:
    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.seen: set[int] = set()
        self.functions: list[FunctionType] = []

    def run(self, function: Callable[..., Any]) -> dict[int, Place]:
        self.add_function(function)
        for found in self.functions:  # grows while it runs
            names = _names(found.__code__)
            for place in _variables(found, names):
                self.look_at(place, names)
            if len(self.seen) > _LIMIT:
                break
        return self.places

    def look_at(self, place: Place, names: dict[str, None]) -> None:
        waiting = [(place, 0)]
        while waiting and len(self.seen) <= _LIMIT:
            place, depth = waiting.pop()
            try:
                value = place.look()
            except (NameError, AttributeError, LookupError, ValueError):
                continue
            if isinstance(value, np.ndarray):
                self.places.setdefault(id(value), place)
            elif id(value) not in self.seen:
                self.seen.add(id(value))
                self.add_function(value)
                if depth < _DEPTH:
                    inner = list(_inside(place, value, names))
                    waiting.extend((part, depth + 1) for part in reversed(inner))

    def add_function(self, value: Any) -> None:
        """Queue the Python functions behind a callable."""
        for function in _python_functions(value):
            of_numpy = function.__code__.co_filename.startswith(_NUMPY)
            if not of_numpy and not any(function is known for known in self.functions):
                self.functions.append(function)


def _python_functions(value: Any) -> Iterator[FunctionType]:
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, type):
        yield from (part for part in vars(value).values() if isinstance(part, FunctionType))
    elif isinstance(value, functools.partial):
        yield from _python_functions(value.func)
    else:
        call = getattr(type(value), "__call__", None)  # noqa: B004
        if isinstance(call, FunctionType):
            yield call
    wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
    if isinstance(wrapped, (FunctionType, MethodType)):
        yield from _python_functions(wrapped)


def _names(code: CodeType) -> dict[str, None]:
    """All names that a function's code mentions, those of inner functions included."""
    names: dict[str, None] = {}
    codes = [code]
    for found in codes:
        names.update(dict.fromkeys((*found.co_names, *found.co_freevars)))
        codes.extend(const for const in found.co_consts if isinstance(const, CodeType))
    return names


def _variables(function: FunctionType, names: dict[str, None]) -> Iterator[Place]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    for name, cell in cells:
        yield Place(name, _cell_reader(cell))
    for name in names:
        if name in function.__globals__:
            yield Place(name, _global_reader(function.__globals__, name))


def _cell_reader(cell: CellType) -> Callable[[], Any]:
    return lambda: cell.cell_contents


def _global_reader(variables: dict[str, Any], name: str) -> Callable[[], Any]:
    def read() -> Any:
        try:
            return variables[name]
        except KeyError:
            raise NameError(f"name {name!r} is not defined") from None

    return read


def _inside(place: Place, value: Any, names: dict[str, None]) -> Iterator[Place]:
    """The parts of a container; of modules and objects only the attributes that are mentioned."""
    if isinstance(value, dict):
        for key in value:
            yield Place(f"{place.name}_{key}", _item_reader(place, key))
    elif isinstance(value, (list, tuple)):
        for key in range(len(value)):
            yield Place(f"{place.name}_{key}", _item_reader(place, key))
    elif not isinstance(value, (np.generic, type)) and value is not np:
        attributes = getattr(value, "__dict__", ())
        for name in names:
            if name in attributes:
                yield Place(name, _attribute_reader(place, name))


def _item_reader(place: Place, key: Any) -> Callable[[], Any]:
    return lambda: place.look()[key]


def _attribute_reader(place: Place, name: str) -> Callable[[], Any]:
    return lambda: getattr(place.look(), name)
