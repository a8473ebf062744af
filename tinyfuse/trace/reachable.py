"""Arrays that functions can reach by name, found by looking at their code without running it.

A trace does not see what becomes of an array in code that it cannot copy: methods of classes, and
functions that C code calls. These places say which arrays that may be.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from tinyfuse.trace.captured import (
    Place,
    attribute_place,
    cell_place,
    global_place,
    item_place,
)
from tinyfuse.tree import Leaf

_DEPTH = 3  # containers within containers that are searched
_LIMIT = 20_000  # values looked at

_OURS = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep
    for path in (np.__file__, os.path.dirname(__file__))
)
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = ("site-packages" + os.sep, "dist-packages" + os.sep)


def find_places(function: Callable[..., Any]) -> dict[int, Place]:
    """The places of all arrays that a function can reach by name, by the arrays' ids.

    Looks at the closure and global variables that the function's code mentions, at those of the
    Python functions among them, and into dicts, lists, tuples, modules and objects that are
    mentioned.
    """
    search = _Search()
    search.add_function(function)
    return search.run()


def find_hidden(
    values: Iterable[Any],
    places: Iterable[Place],
    copied: Container[int],
    names: dict[str, None],
) -> list[Place]:
    """The places of all arrays that code can reach which belongs to these values.

    values: classes, and callables that were not copied. places: of objects that hold what nobody
    has looked at. copied: ids of functions that were copied.
    names: what the copied functions mention; a method with another name is not called.
    """
    search = _Search()
    mentioned = dict(names)
    waiting = [method for value in values for method in _methods(value)]
    again = True
    while again:
        again = False
        for method in list(waiting):
            name, found, place = method
            if name in mentioned or name.startswith("__"):
                again = True
                waiting.remove(method)
                if isinstance(found, FunctionType):
                    if id(found) not in copied:
                        mentioned.update(mentioned_names(found.__code__))
                        search.add_function(found)
                else:
                    search.look_at(place, mentioned)
    for place in places:
        search.look_at(place, mentioned)
    return list(search.run().values())


def _methods(value: Any) -> Iterator[tuple[str, Any, Place]]:
    """(name, function or class attribute, place)."""
    if not isinstance(value, type):
        for function in _python_functions(value):
            yield "__call__", function, Place("", (), lambda: None)
        return
    for cls in value.__mro__:
        if not is_users(cls.__module__, ""):
            continue
        root = Place(cls.__name__, ("class", id(cls)), functools.partial(lambda cls: cls, cls), cls)
        for name, part in vars(cls).items():
            place = attribute_place(root, name)
            for each in _unwrapped(part):
                yield name, each, place


def _unwrapped(part: Any) -> list[Any]:
    """The functions in a descriptor; no jitted ones, which are traced through."""
    if isinstance(part, property):
        return [each for each in (part.fget, part.fset) if isinstance(each, FunctionType)]
    if isinstance(part, (staticmethod, classmethod)):
        part = part.__func__
    elif isinstance(part, functools.cached_property):
        part = part.func
    return [] if _is_ours(type(part)) else [part]


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "tinyfuse"


@functools.cache
def is_users(module: str, file: str) -> bool:
    """Whether code belongs neither to Python, nor to numpy, nor to tinyfuse.

    file: where it is; "" where only its module is known. The layers in `tinyfuse.nn` are plain
    numpy, and traced as such.
    """
    if module == "tinyfuse.nn":
        return True
    if file.startswith(_OURS) or module.partition(".")[0] in ("numpy", "tinyfuse", "builtins"):
        return False
    if not file:
        known = sys.modules.get(module)
        file = getattr(known, "__file__", None) or ""
        origin = getattr(getattr(known, "__spec__", None), "origin", None)
        if origin in ("built-in", "frozen"):
            return False
    return not (
        file.startswith("<frozen")
        or (file.startswith(_STANDARD) and not any(part in file for part in _INSTALLED))
    )


class _Search:
    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.seen: set[int] = set()
        self.functions: list[FunctionType] = []

    def run(self) -> dict[int, Place]:
        for found in self.functions:  # grows while it runs
            names = mentioned_names(found.__code__)
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
        """Queue the Python functions behind a callable; jitted ones are traced through."""
        if isinstance(value, Leaf):
            return
        for function in _python_functions(value):
            file = function.__code__.co_filename
            users = is_users(function.__module__ or "", file)
            if not users and (file.startswith(_OURS) or not function.__closure__):
                continue
            if not any(function is known for known in self.functions):
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


def mentioned_names(code: CodeType) -> dict[str, None]:
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
        yield cell_place(cell, name)
    for name in names:
        if name in function.__globals__:
            yield global_place(function.__globals__, name)


def _inside(place: Place, value: Any, names: dict[str, None]) -> Iterator[Place]:
    """The parts of a container; of modules and objects only the attributes that are mentioned."""
    if isinstance(value, dict):
        for key in value:
            yield item_place(place, key)
    elif isinstance(value, (list, tuple)):
        for key in range(len(value)):
            yield item_place(place, key)
    elif not isinstance(value, np.generic) and value is not np:
        attributes = _attributes(value)
        for name in names:
            if name in attributes:
                yield attribute_place(place, name)


def _attributes(value: Any) -> Container[str]:
    """Names of attributes that can be read without running code of the user's."""
    own = getattr(value, "__dict__", ())
    cls = value if isinstance(value, type) else type(value)
    if not is_users(cls.__module__, ""):
        return own
    inherited = [name for base in cls.__mro__ for name, part in vars(base).items() if _plain(part)]
    return {*own, *inherited} if inherited else own


def _plain(part: Any) -> bool:
    return isinstance(
        part, (np.ndarray, FunctionType, staticmethod, classmethod, list, dict, tuple)
    )
