"""Programs that depend on more of their arguments than the types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyfuse.memory import layout
from tinyfuse.signature import Key, same_arrays
from tinyfuse.tree import typed


class ByValue:
    """In place of a program: more than the types of the arguments is part of the key.

    floats: positions of those whose values are. layouts: of arrays whose order in memory is.
    aliasing: whether it counts which of the arrays are the same.
    """

    __slots__ = ("aliasing", "floats", "layouts", "used")

    def __init__(self, floats: tuple[int, ...], layouts: tuple[int, ...], aliasing: bool) -> None:
        self.floats = floats
        self.layouts = layouts
        self.aliasing = aliasing
        self.used = 0

    def __bool__(self) -> bool:
        return self.aliasing or bool(self.floats or self.layouts)

    def extended(self, key: Key, values: Sequence[Any]) -> Key:
        key = (*key, *[typed(values[place]) for place in self.floats])
        if self.layouts:
            key += tuple([_layout(values[place]) for place in self.layouts])
        return (*key, same_arrays(values)) if self.aliasing else key


def _layout(array: Any) -> tuple[int, ...]:
    return layout(array.shape, array.strides, array.dtype.itemsize)
