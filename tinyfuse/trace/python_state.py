"""What the variables of a running function lead to besides arrays: lists, objects, iterators.

What is changed in these while a part of the function is recorded changes as often as it is
recorded, which the program knows nothing of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import CellType, FunctionType, GeneratorType, MethodType
from typing import Any

import numpy as np

from tinyfuse.source import users_frame
from tinyfuse.trace.captured import equal, is_constant
from tinyfuse.trace.operations import is_traced
from tinyfuse.trace.reachable import is_users
from tinyfuse.tree import parts_of


class PythonState:
    """What can be reached from the function of the user's that runs, as it is now.

    but: cells of variables that may change.
    """

    def __init__(self, but: Iterable[CellType]) -> None:
        seen = {*map(id, but)}
        self._held: list[tuple[Any, Sequence[Any]]] = []
        frame = users_frame()
        waiting = [*frame.f_locals.values()] if frame else []
        for value in waiting:  # grows while it runs
            if id(value) not in seen and not is_constant(value) and not is_traced(value):
                seen.add(id(value))
                held = _held(value)
                self._held.append((value, held))
                waiting += held

    def has_changed(self) -> bool:
        return not all(_same(held, _held(value)) for value, held in self._held)


def _held(value: Any) -> Sequence[Any]:
    """What a value holds that can be another one later."""
    for kinds, inside in _INSIDE:
        if issubclass(type(value), kinds):
            return inside(value)
    if is_users(type(value).__module__, ""):
        parts = parts_of(value)
        return [type(value), *parts[2], *parts[3]] if parts else [type(value)]
    return _of_iterator(value) if isinstance(value, Iterator) else []


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(_is, one, other))


def _is(one: Any, other: Any) -> bool:
    if type(one) is type(other) is tuple:
        return _same(one, other)
    return one is other or equal(one, other)


def _of_cell(cell: CellType) -> Sequence[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # a variable without a value
        return []


def _of_class(cls: type) -> Sequence[Any]:
    return [*vars(cls).values()] if is_users(cls.__module__, "") else []


def _of_function(function: FunctionType) -> Sequence[Any]:
    if not is_users(function.__module__ or "", function.__code__.co_filename):
        return []
    return [*(function.__closure__ or ()), *(function.__defaults__ or ())]


def _of_generator(generator: GeneratorType) -> Sequence[Any]:
    frame = generator.gi_frame
    return [] if frame is None else [frame.f_lasti, *frame.f_locals.values()]


def _of_iterator(iterator: Any) -> Sequence[Any]:
    """Where one of Python's own is."""
    try:
        return [*iterator.__reduce__()]
    except TypeError:  # of a file, say
        return []


_INSIDE: list[tuple[Any, Callable[[Any], Sequence[Any]]]] = [
    (dict, lambda value: [*value.keys(), *value.values()]),
    ((list, tuple, set, deque), list),
    (np.ndarray, lambda value: [hash(value.tobytes())]),
    (type, _of_class),
    (MethodType, lambda value: [value.__self__, value.__func__]),
    (partial, lambda value: [value.func, *value.args, *value.keywords.values()]),
    (FunctionType, _of_function),
    (CellType, _of_cell),
    (GeneratorType, _of_generator),
]
