"""Loops of which data decides how many turns they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Var
from tinyfuse.source import Source
from tinyfuse.trace.branching import choose
from tinyfuse.trace.builder import GraphBuilder
from tinyfuse.trace.control_flow import ClosedLoop, truth
from tinyfuse.trace.loop_items import RunTimeRange
from tinyfuse.trace.position_bounds import interval
from tinyfuse.trace.recording import Recording
from tinyfuse.trace.rolling import Rolled
from tinyfuse.trace.turns import MISSING, Turn
from tinyfuse.trace.weak import TracedInt
from tinyfuse.trace.weak_integers import integer_atom


class _Tested(Rolled):
    """A loop that a truth ends, the first of what its turns take and give.

    first: what the heads are before.
    """

    first: list[Atom]

    def _require_apart(self, turn: Turn, names: set[int], tied: Mapping[int, int]) -> None:
        for at in sorted(names):
            if at not in self.slots and self.loop._used[at]:
                self._fail(f"{self._name(at)} is made in turns, of which there may be none")
            if self._stays_a_number(at) and any(
                var.dtype.itemsize < 8 for var in self.builder.inputs
            ):
                self._fail(f"{self._name(at)} is a Python number if there are no turns")
        super()._require_apart(turn, names, tied)

    def _fixed(self, turn: Turn, names: set[int]) -> dict[int, Any]:
        """None: where there are no turns names are what they were."""
        for at, value in super()._fixed(turn, names).items():
            if self.loop._used[at] and not value._scalar:
                self._fail(f"{self._name(at)} is another array where there are turns")
        return {}

    def _stays_a_number(self, at: int) -> bool:
        """Whether a name that is used may have a Python number, but a scalar after a turn."""
        used = at in self.slots and self.loop._used[at]
        return used and self._begins_as_number(at, self.slots[at])

    def _note_numbers(self, turn: Turn, at: int, ends: Sequence[Var | None]) -> None:
        super()._note_numbers(turn, at, ends)
        if self._stays_a_number(at):
            self.builder.rolling.numbers.update({end: self.place for end in ends if end})

    def _equation(
        self,
        recording: Recording,
        params: Sequence[Var | None],
        given: Sequence[Atom | None],
    ) -> list[Var]:
        closed = ClosedLoop(p.while_, {}, [], self.source)
        begun, before = [*self.heads, *params], [*self.first, *given]
        return closed.close(self.part, recording, begun, before)[len(self.heads) :]


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
        self._test = test

    def _item(self) -> Any:
        return None

    def _last(self) -> Any:
        return None

    def _truths(self) -> list[Atom]:
        return [truth(self._test())._atom]


class RolledRange(_Tested):
    """Turns with the numbers of a range whose ends only a call knows; there may be none."""

    def __init__(
        self,
        loop: Any,
        builder: GraphBuilder,
        source: Source,
        numbers: RunTimeRange,
    ) -> None:
        super().__init__(loop, builder, source)
        self.numbers = numbers
        self.heads = [Var((), BOOL, "again"), Var((), INT64, "number")]
        self.first = [self._is_inside(numbers.start), integer_atom(numbers.start, builder)]
        self._limit(self.heads[1])

    def _limit(self, number: Var) -> None:
        """Note what is known of the numbers."""
        numbers = self.numbers
        bounds = [
            interval(self.builder, integer_atom(end, self.builder))
            for end in (numbers.start, numbers.stop)
        ]
        (first, last), (low, high) = bounds
        if numbers.step > 0 and first is not None and high is not None:
            self.builder.bounds[number] = first, high - 1
        elif numbers.step < 0 and last is not None and low is not None:
            self.builder.bounds[number] = low + 1, last

    def _is_inside(self, number: Any) -> Atom:
        """Whether a turn has this number."""
        stop = self.numbers.stop
        return truth(number < stop if self.numbers.step > 0 else number > stop)._atom

    def _item(self) -> Any:
        return TracedInt(self.builder, self.heads[1])

    def _truths(self) -> list[Atom]:
        following = self._item() + self.numbers.step
        return [self._is_inside(following), following._atom]

    def _last(self) -> Any:
        """The last number; what the target was before, where there is none."""
        if not self.loop._target_used:
            return MISSING
        numbers = self.numbers
        turns = (numbers.stop - numbers.start - 1) // numbers.step
        if numbers.step < 0:
            turns = (numbers.start - numbers.stop - 1) // -numbers.step
        last = numbers.start + turns * numbers.step
        before = self.loop.target()
        if before is MISSING:
            return last
        return choose(turns >= 0, lambda: last, lambda: before)
