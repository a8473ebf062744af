"""What stands between brackets, taken apart: basic indices, arrays of positions, masks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.records import dataclass, field
from tinyfuse.trace.arrays import joined_array
from tinyfuse.trace.known import known_value
from tinyfuse.trace.operations import holds_tracer, traced
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt

WORDS = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)
_NOT_INTEGERS = "arrays used as indices must be of integer (or boolean) type"
_BASIC = (int, slice, type(None), type(Ellipsis))


def is_basic(index: Any) -> bool:
    """Whether an index has no arrays in it, no masks, and no integers known at run time only."""
    items = index if type(index) is tuple else (index,)
    return all(type(item) in _BASIC or _is_known_integer(item) for item in items)


def _is_known_integer(item: Any) -> bool:
    if type(item) is Tracer:
        return item._scalar and item.dtype.kind in "iu" and known_value(item) is not None
    if type(item) is TracedInt:
        return False
    return isinstance(item, np.integer) or (hasattr(item, "__index__") and not _is_array(item))


def _is_array(item: Any) -> bool:
    return isinstance(item, (bool, np.ndarray, np.generic)) or hasattr(item, "__array__")


@dataclass(slots=True)
class Positions:
    """Positions along an axis of the array: known while tracing, or a tracer.

    at: the axis of what the basic part of the index gives.
    """

    values: np.ndarray | Tracer
    axis: int
    at: int

    @property
    def known(self) -> np.ndarray | None:
        """Those that are known while tracing, in int64."""
        known: Any = known_value(self.values) if type(self.values) is Tracer else self.values
        return None if known is None else known.astype(np.int64, copy=False)


@dataclass(slots=True)
class Mask:
    """A boolean array that is known at run time only. at: the first axis that it takes."""

    values: Tracer
    at: int


@dataclass(slots=True)
class Key:
    """An index as two steps: a basic one, then what indexes some axes of its result.

    basic: with a whole slice for each axis that an array indexes.
    place: the axis of the result where the axes of the arrays go.
    as_array: whether a result without axes is an array, not a scalar.
    copied: whether a basic index alone gives a copy: it has arrays without axes in it.
    """

    basic: list[Any] = field(default_factory=list)
    positions: list[Positions] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)
    place: int = 0
    as_array: bool = False
    copied: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the basic step changes nothing."""
        return all(type(item) is slice and item == slice(None) for item in self.basic)

    @property
    def basic_index(self) -> tuple[Any, ...]:
        """What gives an array also where it takes all axes, if the index asks for one."""
        return (*self.basic, ...) if self.as_array else tuple(self.basic)


def basic_part(x: Tracer, key: Key) -> Tracer:
    """What the basic step of an index gives: a view of x, or x itself."""
    return x if key.is_whole else x[key.basic_index]  # type: ignore[index]


def take_apart(x: Tracer, index: Any) -> Key:
    """Raises IndexingError with numpy's words."""
    given = index if isinstance(index, tuple) else (index,)
    items = [_checked(item) for item in given]
    ellipses = sum([item is Ellipsis for item in items])
    taken = sum(map(_axes_taken, items))
    if ellipses > 1:
        raise errors.IndexingError("an index can only have a single ellipsis ('...')")
    if taken > x.ndim:
        raise errors.IndexingError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were indexed"
        )
    if not ellipses:
        items.append(Ellipsis)
    reading = _Reading(x, x.ndim - taken)
    for item in items:
        reading.add(item)
    reading.key.as_array = ellipses > 0
    reading.key.copied = any(map(_is_array_without_axes, given))
    return reading.key


class _Reading:
    """The axes that the items so far have taken from the array, and made of it."""

    def __init__(self, x: Tracer, rest: int) -> None:
        self.key = Key()
        self._x = x
        self._rest = rest  # axes that no item takes
        self._axis = 0  # of the array
        self._at = 0  # of the basic result
        self._plain = 0  # axes of the result so far that are no array's
        self._begun = self._ended = False  # the run of items that are integers or arrays

    def add(self, item: Any) -> None:
        if item is None or type(item) is slice:
            self._add_plain(item)
        elif item is Ellipsis:
            self._ended = self._begun
            for _ in range(self._rest):
                self._add_plain(slice(None))
        elif type(item) is int:
            self._note_array()
            self.key.basic.append(item)
            self._axis += 1
        elif item.dtype == np.bool_:
            self._add_mask(item)
        else:
            self._note_array()
            self._add_positions(item)

    def _add_plain(self, item: Any) -> None:
        self.key.basic.append(item)
        self._axis += item is not None
        self._at += 1
        self._plain += 1
        self._ended = self._begun

    def _note_array(self) -> None:
        """Arrays that are neighbours keep their place; others go to the front."""
        if not self._begun:
            self._begun, self.key.place = True, self._plain
        elif self._ended:
            self.key.place = 0

    def _add_positions(self, values: np.ndarray | Tracer) -> None:
        self.key.positions.append(Positions(values, self._axis, self._at))
        self.key.basic.append(slice(None))
        self._axis += 1
        self._at += 1

    def _add_mask(self, mask: np.ndarray | Tracer) -> None:
        for axis, extent in enumerate(mask.shape, self._axis):
            if extent and extent != self._x.shape[axis]:  # numpy lets 0 pass
                raise errors.IndexingError(
                    f"boolean index did not match indexed array along axis {axis}; size of axis is "
                    f"{self._x.shape[axis]} but size of corresponding boolean axis is {extent}"
                )
        self._note_array()
        if type(mask) is Tracer:
            self.key.masks.append(Mask(mask, self._at))
            self.key.basic += [slice(None)] * mask.ndim
            self._axis += mask.ndim
            self._at += mask.ndim
        elif mask.ndim:
            for positions in np.nonzero(mask):
                self._add_positions(positions)
        else:  # one axis more, with or without its only position
            self._add_positions(np.zeros(int(mask), np.int64))
            self.key.basic[-1] = None
            self._axis -= 1


def _is_array_without_axes(item: Any) -> bool:
    if type(item) is Tracer:
        return not item.shape and not item._scalar
    return isinstance(item, np.ndarray) and not item.shape


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if getattr(item, "dtype", None) == np.bool_ else 1


# -- one item


def _checked(item: Any) -> Any:
    """None, `...`, a slice, an int, an array of int64 or bool, a tracer of integers or bool."""
    kind = type(item)
    if kind in _BASIC:
        return item
    if kind is Tracer or kind is TracedInt:
        return _checked_tracer(traced(item))
    if kind is TracedFloat or isinstance(item, (str, bytes)):
        raise errors.IndexingError(WORDS)
    if not _is_array(item) and not isinstance(item, (list, tuple, range)):
        try:
            return operator.index(item)
        except TypeError:
            raise errors.IndexingError(WORDS) from None
    if holds_tracer(item):
        return _checked_tracer(joined_array(item))
    array = _as_array(item)
    if array.dtype.kind not in "biu" and not hasattr(item, "dtype"):
        if array.size:
            raise errors.IndexingError(WORDS)
        array = array.astype(np.int64)  # of an empty list
    return _checked_array(array)


def _as_array(item: Any) -> np.ndarray:
    try:
        return np.asarray(item)
    except ValueError:  # a list of lists of several lengths
        raise errors.IndexingError(WORDS) from None


def _checked_tracer(item: Tracer) -> Any:
    if item.dtype.kind not in "biu":
        raise errors.IndexingError(_NOT_INTEGERS if item.shape else WORDS)
    value = known_value(item)
    if value is None and item.dtype == np.bool_ and not item.size:
        value = np.zeros(item.shape, bool)
    if value is None:
        return item
    if value.dtype.kind == "b" or not value.shape or (value < 0).any():
        return _checked_array(value)
    return item  # what is an expression of positions stays one


def _checked_array(array: np.ndarray) -> Any:
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind not in "iu":
        raise errors.IndexingError(_NOT_INTEGERS if array.shape else WORDS)
    return array.astype(np.int64) if array.shape else int(array)
