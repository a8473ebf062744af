"""Lists, dicts, tuples and objects that a traced function captures: copies with traced arrays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyfuse.config import compile_log as log
from tinyfuse.errors import SideEffectError
from tinyfuse.records import dataclass
from tinyfuse.trace.captured import (
    Place,
    SameAs,
    SameParts,
    attribute_place,
    is_constant,
    item_place,
)
from tinyfuse.trace.eagerly import UnknownError, as_numpy
from tinyfuse.trace.reachable import is_users
from tinyfuse.tree import LEAF, Parts, TreeDef, parts_of, same_keys

if TYPE_CHECKING:
    from tinyfuse.trace.scope import Scope

_PARTS = 1000  # of a container with all that is in it


@dataclass(slots=True)
class _Seen:
    """original: the user's. shown: what traced functions see. items: what was in that."""

    original: Any
    shown: Any
    place: Place
    keys: tuple[Any, ...]
    items: list[Any]
    guard: SameParts


class Containers:
    """Those that one trace has seen."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._seen: dict[int, _Seen] = {}
        self._inside: set[int] = set()

    def see(self, value: Any, place: Place) -> Any:
        """A copy with traced arrays, the value itself if there are none in it.

        NotImplemented for what is no container, or too large a one.
        """
        known = self._seen.get(id(value))
        if known is not None:
            if known.place.path != place.path:
                self._scope.guards.append(SameAs(place, known.place))
            return known.shown
        if is_constant(value):
            return NotImplemented
        if id(value) in self._inside or not _is_container(value):
            return NotImplemented
        inside = _all_parts(value)
        if len(inside) > _PARTS:
            if any(isinstance(part, np.ndarray) for part in inside):
                warn_frozen(place.name, f"has more than {_PARTS} parts")
            return NotImplemented
        self._inside.add(id(value))
        try:
            return self._see_parts(value, place)
        finally:
            self._inside.discard(id(value))

    def _see_parts(self, value: Any, place: Place) -> Any:
        kind, static, keys, items = _parts(value)
        guard = SameParts(place, type(value), keys)
        self._scope.guards.append(guard)
        by_attribute = kind in ("object", "namespace")
        shown = []
        for at, (key, item) in enumerate(zip(keys, items, strict=True)):
            if by_attribute:
                part = attribute_place(place, key)
            else:
                part = item_place(place, at if kind == "namedtuple" else key)
            shown.append(self._scope.see(item, part))
        if by_attribute:
            self._scope.note_class(type(value))
        changed = any(new is not item for new, item in zip(shown, items, strict=True))
        new = value
        if changed and kind == "namespace":
            new = SimpleNamespace(**dict(zip(keys, shown, strict=True)))
        elif changed:
            structure = TreeDef(kind, static, keys, (LEAF,) * len(keys), len(keys))
            new = structure.unflatten(shown)
        self._seen[id(value)] = _Seen(value, new, place, keys, shown, guard)
        return new

    def finish(self) -> None:
        """Raises SideEffectError where the traced function changed one.

        What it only added to one stays there.
        """
        for seen in self._seen.values():
            _, _, keys, items = _parts(seen.shown)
            count = len(seen.keys)
            same = same_keys(keys[:count], seen.keys) and all(
                new is old for new, old in zip(items, seen.items, strict=False)
            )
            if not same:
                raise _written(seen.place, "changes")
            if len(keys) > count:
                self._keep_added(seen, keys[count:], list(items)[count:])

    def _keep_added(self, seen: _Seen, keys: tuple[Any, ...], items: list[Any]) -> None:
        copied = seen.shown is not seen.original
        for key, item in zip(keys, items, strict=True):
            real = _real(item)
            if _is_traced(real) and copied:
                raise _written(seen.place, "adds to")
            if copied or real is not item:
                _put(seen.original, key, real)
        if isinstance(seen.original, list):
            self._scope.guards.remove(seen.guard)  # a list that is only written, to look at it
        else:
            seen.guard.keys = _parts(seen.original)[2]


def _put(container: Any, key: Any, item: Any) -> None:
    if isinstance(container, list):
        container[key:] = [item, *container[key + 1 :]]
    elif isinstance(container, dict):
        container[key] = item
    else:
        setattr(container, key, item)


def _real(item: Any) -> Any:
    """The array that a traced one stands for, if its elements are known while tracing."""
    try:
        return as_numpy(item)
    except UnknownError:
        return item


def _is_traced(value: Any) -> bool:
    return hasattr(type(value), "_atom")


def _parts(value: Any) -> Parts:
    """As `parts_of`, and of a SimpleNamespace; for others there are none."""
    if type(value) is SimpleNamespace:
        return "namespace", None, tuple(vars(value)), list(vars(value).values())
    return parts_of(value) or ("", None, (), ())


def _is_container(value: Any) -> bool:
    kind = _parts(value)[0]
    if kind in ("object", "namedtuple"):
        return is_users(type(value).__module__, "")
    return kind != ""


def _all_parts(value: Any) -> list[Any]:
    """What is in a container; more than `_PARTS` of that are not listed."""
    found = [value]
    seen = {id(value)}
    for part in found:
        if len(found) > _PARTS:
            break
        items = [item for item in _parts(part)[3][: _PARTS + 1] if id(item) not in seen]
        seen.update(map(id, items))
        found.extend(items)
    return found


def warn_frozen(name: str, reason: str) -> None:
    """Say that tracing uses the elements of an array, and that nothing compares them later."""
    log.warning(
        "the captured %s %s, so that what is computed from its elements without any traced array "
        "stays as it is now: pass it as an argument",
        *(name, reason),
    )


def _written(place: Place, verb: str) -> SideEffectError:
    return SideEffectError(
        f"the traced function {verb} the captured {place.name}, which would happen while tracing "
        "only: return the new value instead"
    )
