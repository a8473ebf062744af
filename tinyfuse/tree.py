"""Nested containers of arrays: taken apart into leaves, and put together again."""

from __future__ import annotations

import enum
import functools
import operator
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tinyfuse.records import dataclass

Path = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TreeDef:
    """The structure of a value without its leaves. Hashable: equal where leaves mean the same.

    Keys are the same as in `same_keys`.

    kind: how the children are put together; a leaf has the kind `leaf`.
    keys: what leads to each child: positions, dictionary keys or attribute names.
    static: what else the container needs (a class, a default factory).
    """

    kind: str
    static: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[TreeDef, ...] = ()
    leaf_count: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeDef):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[Any, ...]:
        return self.kind, self.static, compared_keys(self.kind, self.keys), self.children

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The value of this structure with these leaves, in the order of `flatten`."""
        if len(leaves) != self.leaf_count:
            raise ValueError(f"the tree has {self.leaf_count} leaves, got {len(leaves)}")
        return _build(self, iter(leaves))

    def paths(self) -> list[Path]:
        """For each leaf the keys that lead to it from the outermost container."""
        if self.kind == "leaf":
            return [()]
        return [
            (key, *path)
            for key, child in zip(self.keys, self.children, strict=True)
            for path in child.paths()
        ]


LEAF = TreeDef("leaf", leaf_count=1)
NONE = TreeDef("none")


def typed(value: Any) -> Any:
    """Equal for values that mean the same: 1, 1.0 and True are three, -0.0 and 0.0 two."""
    if isinstance(value, tuple):
        return (type(value), *map(typed, value))
    if isinstance(value, frozenset):
        return type(value), frozenset(map(typed, value))
    if isinstance(value, np.generic):
        return value.dtype, value.tobytes()
    if isinstance(value, ByIdentity):
        return Identity(value)
    return type(value), repr(value) if isinstance(value, float | complex) else value


def compared_keys(kind: str, keys: tuple[Any, ...]) -> Any:
    """Equal for the same keys of two containers of a kind.

    The keys themselves, too, because a NaN is no other one.
    """
    return (keys, typed(keys)) if kind in MAPPINGS else keys


def same_keys(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether keys are equal and mean the same: for a dictionary 1, 1.0 and True are one key."""
    if len(one) == len(other) and all(map(operator.is_, one, other)):
        return True
    return one == other and bool(typed(one) == typed(other))


class Leaf:
    """Base of classes whose objects are not taken apart."""

    __slots__ = ()


class ByIdentity(Leaf):
    """Base of those whose objects mean the same as themselves alone, whatever `==` says."""

    __slots__ = ()


class Identity:
    """Equal for the very same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def flatten(value: Any, kept: Iterable[Any] = ()) -> tuple[list[Any], TreeDef]:
    """(leaves, structure) of nested tuples, lists, dicts, named tuples, dataclasses and objects.

    Dictionaries keep their order. None has no leaves. An object of a plain Python class counts as
    the container of its attributes. Everything else is a leaf, and so are the objects in `kept`.
    Raises ValueError for a container that contains itself.
    """
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves, set(), frozenset([id(leaf) for leaf in kept]))


def _flatten(value: Any, leaves: list[Any], inside: set[int], kept: frozenset[int]) -> TreeDef:
    if value is None:
        return NONE
    parts = None if kept and id(value) in kept else parts_of(value)
    if parts is None:
        leaves.append(value)
        return LEAF
    if id(value) in inside:
        raise ValueError(f"a {type(value).__name__} contains itself and cannot be taken apart")
    kind, static, keys, items = parts
    inside.add(id(value))
    children = tuple([_flatten(item, leaves, inside, kept) for item in items])
    inside.discard(id(value))
    return TreeDef(kind, static, keys, children, sum([child.leaf_count for child in children]))


Parts = tuple[str, Any, tuple[Any, ...], Sequence[Any]]


def parts_of(value: Any) -> Parts | None:
    """(kind, static, keys, items) of a container, None for a leaf and for None itself."""
    cls: Any = type(value)
    if cls in _KINDS:
        return _KINDS[cls](value)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return "namedtuple", cls, cls._fields, value
    if not _is_plain_class(cls):
        return None
    names = _attributes(value)
    return ("object", cls, names, [getattr(value, name) for name in names]) if names else None


def _sequence(value: Sequence[Any]) -> Parts:
    return type(value).__name__, None, tuple(range(len(value))), value


def _mapping(value: dict[Any, Any]) -> Parts:
    static = value.default_factory if isinstance(value, defaultdict) else None
    return type(value).__name__, static, tuple(value), list(value.values())


MAPPINGS = ("dict", "OrderedDict", "defaultdict")

_KINDS: dict[type, Callable[[Any], Parts]] = {
    tuple: _sequence,
    list: _sequence,
    dict: _mapping,
    OrderedDict: _mapping,
    defaultdict: _mapping,
}

_LEAVES = (
    Leaf,
    type,
    types.ModuleType,
    types.FunctionType,
    enum.Enum,
    BaseException,
    np.ndarray,
    np.generic,
    np.dtype,
)


_ARRAY_LIKE = ("__array__", "__array_interface__", "__cuda_array_interface__", "__dlpack__")


@functools.lru_cache(maxsize=4096)
def _is_plain_class(cls: type) -> bool:
    """Whether objects of a class hold nothing but attributes, so that these make a copy."""
    if issubclass(cls, _LEAVES) or cls is object or any(hasattr(cls, n) for n in _ARRAY_LIKE):
        return False
    try:
        object.__new__(cls)
    except TypeError:  # it keeps data outside its attributes: str, functools.partial, a lock
        return False
    return True


def _attributes(value: Any) -> tuple[str, ...]:
    cls: Any = type(value)
    names = [name for name in slots(cls) if hasattr(value, name)]
    return (*names, *getattr(value, "__dict__", ()))


@functools.lru_cache(maxsize=4096)
def slots(cls: type) -> tuple[str, ...]:
    """Names of the attributes that are kept in slots."""
    members = [
        name
        for base in reversed(cls.__mro__)
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType)
    ]
    return tuple(members)


def _build(tree: TreeDef, leaves: Iterator[Any]) -> Any:
    if tree.kind == "leaf":
        return next(leaves)
    items = [_build(child, leaves) for child in tree.children]
    return _BUILDERS[tree.kind](tree, items)


def _build_object(tree: TreeDef, items: list[Any]) -> Any:
    copy = object.__new__(tree.static)
    for name, item in zip(tree.keys, items, strict=True):
        object.__setattr__(copy, name, item)
    return copy


_BUILDERS: dict[str, Callable[[TreeDef, list[Any]], Any]] = {
    "none": lambda tree, items: None,
    "tuple": lambda tree, items: tuple(items),
    "list": lambda tree, items: items,
    "dict": lambda tree, items: dict(zip(tree.keys, items, strict=True)),
    "OrderedDict": lambda tree, items: OrderedDict(zip(tree.keys, items, strict=True)),
    "defaultdict": lambda tree, items: defaultdict(tree.static, zip(tree.keys, items, strict=True)),
    "namedtuple": lambda tree, items: tree.static._make(items),
    "object": _build_object,
}
