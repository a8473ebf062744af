"""Loops of which data decides how many turns they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.source import Source
from tinyfuse.trace.branching import choose, one_of_two
from tinyfuse.trace.builder import GraphBuilder
from tinyfuse.trace.cells import link
from tinyfuse.trace.control_flow import ClosedLoop, is_unknown, truth
from tinyfuse.trace.loop_items import RunTimeRange
from tinyfuse.trace.position_bounds import Interval, interval
from tinyfuse.trace.recording import Recording
from tinyfuse.trace.rolling import Rolled
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.turns import MISSING, UNSET, Slot, Turn, can_be_linked, is_array
from tinyfuse.trace.weak import TracedInt
from tinyfuse.trace.weak_integers import integer_atom
from tinyfuse.tree import flatten

# More turns than any call comes to the end of.
ENDLESS = 1 << 62


class _Unsure(Rolled):
    """A loop of which only a call knows how many turns it has.

    none: whether there may be none. told: whether their number would be known if loops around were
    written out. ends: the heads after the loop, of one that a truth ends.
    """

    none = told = True
    ends: list[Var]

    def _require_apart(self, turn: Turn, names: set[int], tied: Mapping[int, int]) -> None:
        for at in sorted(names) if self.none else ():
            made = at not in self.slots and self.before[at] is not UNSET
            if made and self.loop._used[at]:
                self._fail(f"{self._name(at)} is made in turns, of which there may be none")
            if self._stays_a_number(at) and any(
                var.dtype.itemsize < 8 for var in self.builder.inputs
            ):
                self._fail(f"{self._name(at)} is a Python number if there are no turns")
        super()._require_apart(turn, names, tied)
        for at in self.slots.keys() - tied.keys() if self.none else ():
            if turn.after[at] is not turn.begun.get(at) and not can_be_linked(self.before[at]):
                self.slots[at].frozen = self.slots[at].frozen or one_of_two(self.source)

    def _freeze(self, turn: Turn, at: int, slot: Slot, value: Any) -> None:
        super()._freeze(turn, at, slot, value)
        before = self.before[at]
        if self.none and at in self.slots and before is not UNSET and not slot.frozen:
            pairs = zip(flatten(value)[0], flatten(before)[0], strict=True)
            arrays = [pair for pair in pairs if is_array(pair[0]) and is_array(pair[1])]
            for leaf, old in arrays:
                link(leaf, [(old, self._no_turns())])

    def _no_turns(self) -> Atom:
        """The truth that there are none."""
        some = truth(self._some_turns())._atom
        return self.builder.emit(p.elementwise, some, op="logical_not")

    def _some_turns(self) -> Any:
        raise NotImplementedError

    def _fixed(self, turn: Turn, names: set[int]) -> dict[int, Any]:
        """None where there may be no turns: then names are what they were."""
        found = super()._fixed(turn, names)
        if not self.none:
            return found
        for at, value in found.items():
            if self.loop._used[at] and not value._scalar:
                self._fail(f"{self._name(at)} is another array where there are turns")
        return {}

    def _stays_a_number(self, at: int) -> bool:
        """Whether a name that is used may have a Python number, but a scalar after a turn."""
        used = self.none and self.told and at in self.slots and self.loop._used[at]
        return used and self._begins_as_number(at, self.slots[at])

    def _note_numbers(self, turn: Turn, at: int, ends: Sequence[Var | None]) -> None:
        super()._note_numbers(turn, at, ends)
        if self._stays_a_number(at):
            self.builder.rolling.numbers.update({end: self.place for end in ends if end})


class _Tested(_Unsure):
    """A loop that a truth ends, the first of what its turns take and give.

    first: what the heads are before.
    """

    first: list[Atom]

    def _some_turns(self) -> Any:
        return Tracer(self.builder, self.first[0], True)

    def _equation(
        self,
        recording: Recording,
        params: Sequence[Var | None],
        given: Sequence[Atom | None],
    ) -> list[Var]:
        closed = ClosedLoop(p.while_, {}, [], self.source)
        begun, before = [*self.heads, *params], [*self.first, *given]
        made = closed.close(self.part, recording, begun, before)
        self.ends = made[: len(self.heads)]
        return made[len(self.heads) :]


class RolledWhile(_Tested):
    """The turns are as many as a test says."""

    def __init__(
        self,
        loop: Any,
        builder: GraphBuilder,
        source: Source,
        test: Callable[[], Any],
        first: Any,
    ) -> None:
        super().__init__(loop, builder, source)
        self.heads = [Var((), BOOL, "again")]
        self.first: list[Atom] = [truth(first)._atom]
        self.none = is_unknown(first)
        self._test = test

    def _item(self) -> Any:
        return None

    def _last(self) -> Any:
        return None

    def _truths(self) -> list[Atom]:
        return [truth(self._test())._atom]


class Stopped(_Tested):
    """Turns with items that are known, until one leaves the loop."""

    none = False

    def __init__(self, loop: Any, builder: GraphBuilder, source: Source) -> None:
        super().__init__(loop, builder, source)
        self.heads = [Var((), BOOL, "again"), self.heads[0]]
        self.first = [Literal(BOOL.type(True)), Literal(INT64.type(0))]
        self._turns: Any = self.count
        self.count = None  # of arrays that are exchanged

    def _number(self) -> Any:
        """Of the turn."""
        return TracedInt(self.builder, self.heads[1])

    def _item(self) -> Any:
        return self.items.at(self._number())

    def _truths(self) -> list[Atom]:
        following, stopped = self._number() + 1, self.loop._stop()
        inside = truth(following < self._turns)
        if is_unknown(stopped):
            inside = inside & ~truth(stopped)
        elif stopped:
            self._fail("its first turn leaves it")
        return [inside._atom, following._atom]

    def _last(self) -> Any:
        turns: Any = TracedInt(self.builder, self.ends[1])
        last = turns - 1
        self.builder.bounds[last._atom] = 0, self.items.count - 1
        return self.items.at(last)


class _Numbers:
    """The numbers of a range whose ends only a call knows.

    count: how many there are; less than none count as none. most: there are no more.
    """

    def __init__(self, builder: GraphBuilder, numbers: RunTimeRange, loop: Any) -> None:
        self.builder, self.numbers = builder, numbers
        self.before = loop.target() if loop._target_used else MISSING
        start, stop = numbers.start, numbers.stop
        first, last = [interval(builder, integer_atom(end, builder)) for end in (start, stop)]
        if numbers.step > 0:
            ends, step = stop - start, numbers.step
            self.bounds: Interval = first[0], None if last[1] is None else last[1] - 1
        else:
            ends, step = start - stop, -numbers.step
            self.bounds = None if last[0] is None else last[0] + 1, first[1]
        self.count = ends if step == 1 else (ends + (step - 1)) // step
        low, high = self.bounds
        self.most = ENDLESS
        if low is not None and high is not None:
            self.most = max(-(-(high - low + 1) // step), 1)

    def at(self, turn: Any) -> Any:
        start, step = self.numbers.start, self.numbers.step
        scaled = turn if step == 1 else turn * step
        number = scaled if type(start) is int and not start else start + scaled
        self.builder.bounds[number._atom] = self.bounds
        return number

    def last(self, count: Any, loop: Any) -> Any:
        """The number of the last of so many turns; of none what the target was before."""
        if not loop._target_used:
            return MISSING
        start, step = self.numbers.start, self.numbers.step
        last, before, some = start + (count - 1) * step, self.before, truth(count > 0)
        if before is not MISSING:
            return choose(some, lambda: last, lambda: before)
        low, _ = interval(self.builder, integer_atom(count, self.builder))
        if low is None or low < 1:
            words = "the variable of a loop without turns has no value after it: give it one before"
            self.builder.check((~some)._atom, errors.InvalidArgumentError, words)
        return last


class RolledRange(_Unsure):
    """Turns with the numbers of a range whose ends only a call knows; there may be none."""

    def __init__(
        self,
        loop: Any,
        builder: GraphBuilder,
        source: Source,
        numbers: RunTimeRange,
    ) -> None:
        super().__init__(loop, builder, source)
        self.numbers = _Numbers(builder, numbers, loop)
        self.told = None not in self.numbers.bounds
        self.none = (interval(builder, integer_atom(self.numbers.count, builder))[0] or 0) < 1
        builder.bounds[self.heads[0]] = 0, self.numbers.most - 1

    def _item(self) -> Any:
        return self.numbers.at(TracedInt(self.builder, self.heads[0]))

    def _last(self) -> Any:
        return self.numbers.last(self.numbers.count, self.loop)

    def _some_turns(self) -> Any:
        return self.numbers.count > 0

    def _equation(
        self,
        recording: Recording,
        params: Sequence[Var | None],
        given: Sequence[Atom | None],
    ) -> list[Var]:
        none = Literal(np.int64(0))
        known = integer_atom(self.numbers.count, self.builder), none
        count = self.builder.define(p.elementwise, known, {"op": "maximum"}, (), INT64)
        options = {"extent": self.numbers.most, "counted": True}
        closed = ClosedLoop(p.loop, options, self.heads, self.source, count)
        return closed.close(self.part, recording, params, given)


class StoppedRange(Stopped):
    """Such turns, until one leaves the loop."""

    none = True

    def __init__(
        self,
        loop: Any,
        builder: GraphBuilder,
        source: Source,
        numbers: RunTimeRange,
    ) -> None:
        super().__init__(loop, builder, source)
        self.numbers = _Numbers(builder, numbers, loop)
        self.told = None not in self.numbers.bounds
        self._turns = self.numbers.count
        self.first[0] = truth(self._turns > 0)._atom
        builder.bounds[self.heads[1]] = 0, self.numbers.most - 1

    def _item(self) -> Any:
        return self.numbers.at(self._number())

    def _last(self) -> Any:
        return self.numbers.last(TracedInt(self.builder, self.ends[1]), self.loop)
