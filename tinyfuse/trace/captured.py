"""What a traced function takes from outside: where that is found, and whether it has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import CellType
from typing import Any, Protocol

import numpy as np

from tinyfuse.dtypes import describe
from tinyfuse.records import dataclass, field
from tinyfuse.tree import parts_of, same_keys

# Bytes of an array whose elements are compared at every call, where tracing needs them.
COMPARED_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """Where Python finds a value: a global or closure variable, then items and attributes of it.

    path: equal for the same place.
    holder: what the path begins in: the dictionary or cell of a variable, or an object itself.
    """

    name: str
    path: tuple[Hashable, ...]
    look: Callable[[], Any]
    holder: Any = field(default=None, compare=False)


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


# -- places


def global_place(variables: Mapping[str, Any], name: str) -> Place:
    def read() -> Any:
        try:
            return variables[name]
        except KeyError:
            raise NameError(f"name {name!r} is not defined") from None

    return Place(name, ("global", id(variables), name), read, variables)


def cell_place(cell: CellType, name: str) -> Place:
    return Place(name, ("cell", id(cell)), lambda: cell.cell_contents, cell)


def item_place(place: Place, key: Any) -> Place:
    path = (*place.path, "item", key)
    return Place(f"{place.name}_{key}", path, lambda: place.look()[key], place.holder)


def attribute_place(place: Place, name: str) -> Place:
    path = (*place.path, "attribute", name)
    return Place(name, path, lambda: getattr(place.look(), name), place.holder)


# -- guards: what a program depends on, beside its arguments


class Guard(Protocol):
    """Something that tracing has seen, compared at every call with what is there now."""

    @property
    def place(self) -> Place: ...

    def change(self) -> str | None:
        """What differs now, for a log line; None if nothing does."""


class _Changing:
    """Base of guards: reading a place that is gone is a change as well."""

    __slots__ = ("place",)

    def __init__(self, place: Place) -> None:
        self.place = place

    def change(self) -> str | None:
        try:
            now = self.place.look()
        except Exception as error:  # whatever reading a variable or an attribute can raise
            return f"the captured {self.place.name} cannot be read: {error}"
        return self.difference(now)

    def difference(self, now: Any) -> str | None:
        raise NotImplementedError


class Same(_Changing):
    """The very object, or an equal number, string or tuple of those."""

    __slots__ = ("value",)

    def __init__(self, place: Place, value: Any) -> None:
        super().__init__(place)
        self.value = value

    def difference(self, now: Any) -> str | None:
        if now is self.value or equal(now, self.value):
            return None
        if is_constant(now) and is_constant(self.value):
            return f"the captured {self.place.name}: {_short(now)}, was {_short(self.value)}"
        return f"the captured {self.place.name} is another {type(self.value).__name__}"


class SameAs(_Changing):
    """The same array as another place holds."""

    __slots__ = ("other",)

    def __init__(self, place: Place, other: Place) -> None:
        super().__init__(place)
        self.other = other

    def difference(self, now: Any) -> str | None:
        if now is self.other.look():
            return None
        return f"the captured {self.place.name} and {self.other.name} are no longer the same object"


class SameType(_Changing):
    """An array of this shape and dtype."""

    __slots__ = ("array",)

    def __init__(self, place: Place, array: np.ndarray) -> None:
        super().__init__(place)
        self.array = array

    def difference(self, now: Any) -> str | None:
        return type_difference(self.place.name, now, self.array)


class SameElements(_Changing):
    """An array with these elements, bit for bit."""

    __slots__ = ("copy", "elements")

    def __init__(self, place: Place, array: np.ndarray) -> None:
        super().__init__(place)
        self.copy = array.copy()  # also keeps the objects in it alive
        self.elements = self.copy.tobytes()

    def difference(self, now: Any) -> str | None:
        change = type_difference(self.place.name, now, self.copy)
        if change is None and now.tobytes() != self.elements:
            change = f"the captured {self.place.name} has other elements, which tracing has used"
        return change


class SameParts(_Changing):
    """A container of this type with these keys; what is in it has guards of its own."""

    __slots__ = ("keys", "type")

    def __init__(self, place: Place, kind: type, keys: tuple[Any, ...]) -> None:
        super().__init__(place)
        self.type = kind
        self.keys = keys

    def difference(self, now: Any) -> str | None:
        if type(now) is self.type:
            parts = parts_of(now)
            if same_keys(parts[2] if parts else tuple(vars(now)), self.keys):
                return None
        return f"the captured {self.place.name} has other parts"


def type_difference(name: str, now: Any, array: np.ndarray) -> str | None:
    """How an array differs in type from the one that tracing saw."""
    if type(now) is type(array) and now.shape == array.shape and now.dtype == array.dtype:
        return None
    was = describe(array.shape, array.dtype)
    if not isinstance(now, np.ndarray):
        return f"the captured {name} is no array any more, was {was}"
    return f"the captured {name}: {describe(now.shape, now.dtype)}, was {was}"


_CONSTANTS = (
    *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range),
    np.dtype,
)


def is_constant(value: Any) -> bool:
    """Whether a value cannot change, so that equal ones mean the same."""
    if type(value) is tuple:
        return all(map(is_constant, value))
    return type(value) in _CONSTANTS or issubclass(type(value), (np.generic, np.dtype))


def equal(one: Any, other: Any) -> bool:
    """Whether two constants mean the same: 1, 1.0 and True are three, -0.0 and 0.0 two."""
    if type(one) is not type(other) or not is_constant(one):
        return False
    if type(one) is tuple:
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.generic):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, (float, complex)):
        return repr(one) == repr(other)
    return bool(one == other)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
