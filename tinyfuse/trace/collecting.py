"""Lists that a loop appends to: an element of each turn, kept in arrays of all turns.

What a turn appends is put into arrays, one for each array or number in it, with an element for each
turn. After the loop the list has these elements, as if all turns had appended theirs. An array that
a turn begins with, or hands on, is there under its name too: then it is that very array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from tinyfuse.records import dataclass, field
from tinyfuse.trace.builder import GraphBuilder
from tinyfuse.trace.carried import Carry, Kind
from tinyfuse.trace.constants import filled_atom
from tinyfuse.trace.python_numbers import number_place
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.turns import MISSING, Turn, lies_in_order
from tinyfuse.trace.weak import TracedInt
from tinyfuse.tree import TreeDef, flatten


@dataclass(slots=True)
class _Collected:
    """What turns append to one list, and the array for each leaf of it that is no constant.

    leaves: of the turn recorded last. own: of the one that becomes the body. fits: whether the
    arrays are for such leaves.
    """

    into: list[Any]
    tree: TreeDef
    kinds: list[Kind]
    leaves: list[Any] = field(default_factory=list)
    own: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    fits: bool = False


class Collector:
    """The lists of one loop. fail: called with the reason where they cannot be kept so."""

    def __init__(self, builder: GraphBuilder, fail: Callable[[str], NoReturn]) -> None:
        self._builder, self._fail = builder, fail
        self._lists: dict[int, _Collected] = {}
        self._values: dict[int, list[Any]] = {}  # of the arrays appended in this turn, by list
        self._writes = False  # whether a turn writes what it has appended

    # -- a turn

    def begin_turn(self) -> None:
        self._values, self._writes = {}, False

    def append(self, into: list[Any], value: Any, turn: TracedInt) -> None:
        carry, leaves = Carry(value, ""), flatten(value)[0]
        if id(into) in self._values:
            self._fail("its turns append to a list twice")
        self._values[id(into)] = [leaf._value for leaf in _arrays(leaves)]
        known = self._lists.setdefault(id(into), _Collected(into, carry.tree, carry.given))
        numbers = self._builder.rolling.numbers
        for leaf in leaves:
            if number_place(getattr(leaf, "_atom", None), numbers, self._builder.eqns):
                self._fail("what it appends is a Python number in its first turn")
        known.fits = known.fits and (known.tree, known.kinds) == (carry.tree, carry.given)
        known.tree, known.kinds, known.leaves = carry.tree, carry.given, leaves
        for array, leaf in zip(known.arrays, leaves, strict=True) if known.fits else ():
            if array is not None:
                array[turn] = leaf

    def end_turn(self) -> None:
        for key, values in self._values.items():
            arrays = _arrays(self._lists[key].leaves)
            pairs = zip(arrays, values, strict=True)
            self._writes = self._writes or any(leaf._value is not value for leaf, value in pairs)

    # -- between turns

    def fit(self, count: int | None) -> bool:
        """Make arrays for what the last turn has appended; whether there were others."""
        if self._values.keys() != self._lists.keys():
            self._fail("its turns append to several lists")
        again = False
        for known in self._lists.values():
            if known.fits:
                continue
            if count is None:
                self._fail("its turns append to a list, and data decides how many there are")
            known.arrays = [self._array(kind, count) for kind in known.kinds]
            known.fits = again = True
        return again

    def _array(self, kind: Kind, count: int) -> Tracer | None:
        if kind.dtype is None:
            return None
        return Tracer(self._builder, filled_atom((count, *kind.shape), kind.dtype.type(0)))

    def require_own(self, turn: Turn, is_outer: Callable[[Any], bool]) -> None:
        """The turn becomes the body. Fails where what it appends may also be, or become, another
        array."""
        begun, after = [*turn.begun.values()], turn.after
        written = [value for at in turn.written for value in (turn.begun[at], after[at])]
        appended = [leaf for known in self._lists.values() for leaf in _arrays(known.leaves)]
        for known in self._lists.values():
            known.own = known.leaves
        for leaf in appended:
            if leaf._root is not None or (is_outer(leaf) and not _is_in(leaf, begun)):
                self._fail("its turns append an array that has another name")
            if self._writes or _is_in(leaf, written):
                self._fail("its turns write an array that they append")
            if leaf._read_only is not None or leaf._links or not lies_in_order(leaf):
                self._fail("its turns append an array that can't be written or is in no C order")
            if sum(leaf is other for other in appended) > 1:
                self._fail("its turns append an array twice")
        for value in after if appended else ():
            if any(_is_in(leaf, begun) for leaf in _arrays(flatten(value)[0])):
                self._fail("its turns append to a list, and exchange arrays")

    # -- after the loop

    def extend(self, turn: Turn, before: Sequence[Any], after: Sequence[Any], count: int) -> Any:
        """Let the lists have the elements of all turns; returns what names mean after the loop.

        before, after: what they mean there, but for what is in the lists.
        """
        after = list(after)
        for known in self._lists.values():
            elements = [self._element(known, at) for at in range(count)]
            arrays = [(i, leaf) for i, leaf in enumerate(known.own) if _arrays([leaf])]
            for place, leaf in arrays:
                for at, where in _places(leaf, turn.begun.items()):
                    elements[0][place] = flatten(before[at])[0][where]
                for at, where in _places(leaf, enumerate(turn.after)):
                    if after[at] is not MISSING:
                        leaves, tree = flatten(after[at])
                        leaves[where] = elements[-1][place]
                        after[at] = tree.unflatten(leaves)
            known.into.extend([known.tree.unflatten(leaves) for leaves in elements])
        return tuple(after)

    def _element(self, known: _Collected, at: int) -> list[Any]:
        """The leaves that a turn has appended."""
        found = []
        for kind, array in zip(known.kinds, known.arrays, strict=True):
            element = None if array is None else array[at]
            is_array = kind.word in ("array", "scalar") and kind.shape
            atom = None if element is None else element._atom
            found.append(element if is_array else kind.stand_in(self._builder, atom))
        return found


def _arrays(leaves: Sequence[Any]) -> list[Tracer]:
    return [leaf for leaf in leaves if type(leaf) is Tracer and not leaf._scalar]


def _is_in(leaf: Any, values: Sequence[Any]) -> bool:
    return any(leaf is each for value in values for each in flatten(value)[0])


def _places(leaf: Any, values: Any) -> Iterator[tuple[int, int]]:
    """(the number of a name, the place among its leaves) where a leaf is found."""
    for at, value in values:
        for where, each in enumerate(flatten(value)[0]):
            if each is leaf:
                yield at, where
