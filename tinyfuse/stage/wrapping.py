"""Axes that go round: past either end of a stage its other end follows.

`np.roll` and its like read an array at `i - 1`, and where that is before the first element at the
other end. Here such reads are told from those of other kinds. Of a stage that has copies of its
last elements before the first one, and of its first ones past the last, they need no test.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Mapping
from functools import partial
from types import MappingProxyType

from tinyfuse.errors import ScheduleError
from tinyfuse.records import dataclass, field, replace
from tinyfuse.stage.expr import Expr, IndexTest, Load, depends_on, is_select, rewrite, select, walk
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Stage, Stages, rewritten


@dataclass(frozen=True, slots=True)
class Round:
    """The axis of a stage at `place` has `period` different elements: before them stand copies of
    the last ones, after them of the first ones."""

    place: int
    period: int
    before: int = 0
    after: int = 0

    @property
    def length(self) -> int:
        return self.before + self.period + self.after


@dataclass(frozen=True, slots=True)
class Wrap:
    """Stages that go round, all along the axis at one place, with how."""

    rounds: tuple[tuple[Stage, Round], ...]

    @property
    def name(self) -> str:
        return self.rounds[0][0].name

    @property
    def place(self) -> int:
        return self.rounds[0][1].place


@dataclass(eq=False, slots=True)
class Turn:
    """Rewrites what a stage computes along an axis that goes round.

    place: of the axis, among those of the stage. around: the axis in its place, on which element
    `before` is the first one. rounds: of what it reads. offsets: how far from its own place it
    reads each stage.
    """

    place: int
    axis: Axis
    around: Axis
    before: int = 0
    rounds: Mapping[Stage, Round] = MappingProxyType({})
    offsets: dict[Stage, set[int]] = field(default_factory=dict)
    made: dict[tuple[Stage, tuple[Affine, ...], int], Expr] = field(default_factory=dict)

    def whole(self, root: Expr) -> Expr:
        """All of an expression. Raises ScheduleError where an element depends on more than others
        so far from it."""
        found = rewrite(root, self._along, self.joined)
        if any(depends_on(node, self.axis) for node in walk(found)):
            raise ScheduleError(f"it depends on where along {self.axis.name} it is")
        return found

    def _along(self, node: Expr) -> Expr:
        if not isinstance(node, Load) or not depends_on(node, self.axis):
            return node
        found = self.read(node)
        if found is None:
            raise ScheduleError(f"it does not read {node.source.name} at its own places")
        return found

    def read(self, load: Load) -> Expr | None:
        """An element so far from the stage's own; None where it is no such."""
        place = next((at for at, i in enumerate(load.indices) if i.depends_on(self.axis)), None)
        if place is None or load.data:
            return None
        distance = load.indices[place] - self.axis
        others = (*load.indices[:place], *load.indices[place + 1 :])
        if not distance.is_constant or any(index.depends_on(self.axis) for index in others):
            return None
        return self._element(load, place, distance.constant)

    def joined(self, node: Expr) -> Expr:
        """One element in place of two that are the same, one or the other end tested for."""
        if not is_select(node) or not isinstance(node.parts[0], IndexTest):
            return node
        test, *branches = node.parts
        if not (test.index - self.axis).is_constant:
            return node
        values = _single_values(test, self.axis)
        chosen, other = (self._moving(b, at) for b, at in zip(branches, values, strict=True))
        return chosen if chosen is other else node

    def _moving(self, branch: Expr, at: int | None) -> Expr:
        """What a branch loads for one value of the axis, as if it went along with that."""
        if at is None or not isinstance(branch, Load) or branch.data:
            return branch
        indices = branch.indices
        if len(indices) <= self.place or not indices[self.place].is_constant:
            return branch
        found = self._element(branch, self.place, indices[self.place].constant - at)
        return branch if found is None else found

    def _element(self, load: Load, place: int, distance: int) -> Expr | None:
        source = load.source
        known = self.rounds.get(source, Round(place, source.shape[place]))
        if not self.place == known.place == place or not known.period == self.axis.extent > 0:
            return None
        distance = (distance - known.before) % known.period
        key = (source, (*load.indices[:place], affine(0), *load.indices[place + 1 :]), distance)
        if key not in self.made:
            self.offsets.setdefault(source, set()).add(_nearest(distance, known.period))
            self.made[key] = self._loaded(load, known, distance)
        return self.made[key]

    def _loaded(self, load: Load, known: Round, distance: int) -> Expr:
        """The element at a distance from that which `around` is at: a load for each time round."""
        start = (distance - self.before + known.before) % known.period
        ends = range(known.length - start, self.around.extent, known.period)
        found: Expr | None = None
        for turn in range(len(ends), -1, -1):
            index = self.around + (start - turn * known.period)
            here = _at(load, load.source, known.place, index)
            test = IndexTest(affine(self.around), None, ends[turn]) if found else None
            found = select(test, here, found) if test and found else here
        assert found is not None
        return found


def offsets_along(stage: Stage, place: int) -> dict[Stage, set[int]]:
    """How far from its own place along one of its axes, which goes round, a stage reads others
    along the axis at the same place. What does not go along with the axis is not there.

    Raises ScheduleError where it depends on where it is in another way.
    """
    if stage.body is None or stage.reduce_axes or stage.row_axis or stage.scatter:
        raise ScheduleError(f"the elements of {stage.name} depend on each other")
    axis = stage.axes[place]
    turn = Turn(place, axis, Axis(axis.name, axis.extent))
    try:
        turn.whole(stage.body)
    except ScheduleError as error:
        raise ScheduleError(f"{stage.name} cannot go round: {error}") from None
    return turn.offsets


def offsets_through(
    root: Stage, inlined: Container[Stage], order: Mapping[Stage, int]
) -> dict[Stage, set[int]]:
    """The same along the first axis, of what a stage reads itself or through what is inlined into
    it. order: of the stages of the program."""
    found = {root: {0}}
    pending = [(-order[root], root)]
    while pending:
        stage = heapq.heappop(pending)[1]
        for source, distances in offsets_along(stage, 0).items():
            if source in inlined and source not in found:
                heapq.heappush(pending, (-order[source], source))
            sums = {own + other for own in found[stage] for other in distances}
            found[source] = found.get(source, set()) | sums
    return found


def rounds_of(
    stages: Stages,
    place: int,
    wanted: Mapping[Stage, tuple[int, int]],
    inner: Container[Stage],
) -> tuple[tuple[Stage, Round], ...]:
    """How stages have to go round, so that others find all that they read.

    wanted: how many elements of some before their first one and after their last one. inner: those
    that may go round as well. Raises ScheduleError where one cannot.
    """
    found = dict(wanted)
    for stage in reversed(stages.stages):
        if stage in found:
            before, after = found[stage]
            for source, distances in offsets_along(stage, place).items():
                if source in inner:
                    known = found.get(source, (0, 0))
                    first, last = before - min(distances), after + max(distances)
                    found[source] = (max(known[0], first), max(known[1], last))
    return tuple(
        [
            (stage, Round(place, stage.shape[place], before, after))
            for stage, (before, after) in found.items()
            if before or after
        ]
    )


# --- the program --------------------------------------------------------------------------------


def wrapped(
    stages: Stages, change: Wrap, earlier: Mapping[Stage, Round]
) -> tuple[tuple[Stage, ...], dict[Stage, Stage]]:
    """The stages of a program some of which go round now, and what has become of each that is
    another one. earlier: what goes round already.

    Raises ScheduleError where one of them cannot.
    """
    rounds = dict(change.rounds)
    _check(stages, rounds)
    new: dict[Stage, Stage] = {}
    known = dict(earlier)

    def renamed(node: Expr) -> Expr:
        if not isinstance(node, Load) or node.source not in new:
            return node
        return Load(new[node.source], node.indices, node.data)

    for stage in stages.stages:
        found = stage
        for source in dict.fromkeys(load.source for load in stage.reads()):
            if source in rounds:
                found = _reading(found, source, new[source], rounds[source])
        found = rewritten(found, renamed)
        if stage in rounds:
            found = _going_round(found, rounds[stage], known)
            known[found] = rounds[stage]
        if found is not stage:
            new[stage] = found
    return tuple([new.get(stage, stage) for stage in stages.stages]), new


def _check(stages: Stages, rounds: Mapping[Stage, Round]) -> None:
    data = {load.source for stage in stages.stages for load in stage.reads() if load.data}
    for stage, known in rounds.items():
        reason = None
        if stage.is_input:
            reason = "it is an input"
        elif stage in stages.outputs:
            reason = "it is an output, which has no room past its ends"
        elif stage.reduce_axes or stage.row_axis or stage.scatter:
            reason = "its elements depend on each other"
        elif stage in data:
            reason = "data decides where it is read"
        elif (
            not 0
            <= min(known.before, known.after)
            <= max(known.before, known.after)
            <= known.period
        ):
            reason = f"there are only {known.period} elements to go on with"
        if reason:
            raise ScheduleError(f"{stage.name} cannot go round: {reason}")


def _going_round(stage: Stage, known: Round, rounds: Mapping[Stage, Round]) -> Stage:
    axis = stage.axes[known.place]
    around = Axis(axis.name, known.length)
    assert stage.body is not None
    body = Turn(known.place, axis, around, known.before, rounds).whole(stage.body)
    axes = tuple([around if each is axis else each for each in stage.axes])
    return replace(stage, axes=axes, body=body)


def _reading(reader: Stage, source: Stage, new: Stage, known: Round) -> Stage:
    """A reader of what goes round now: where it tested for an end it need not, if there are as many
    copies as it asks for."""

    def moved(node: Expr) -> Expr:
        if not isinstance(node, Load) or node.source is not source:
            return node
        return _at(node, new, known.place, node.indices[known.place] + known.before)

    reader = rewritten(reader, moved)
    loads = [load for load in reader.reads() if load.source is new]
    for axis in {axis: None for load in loads for axis in load.indices[known.place].axes()}:
        if axis.extent == known.period:
            place = reader.axes.index(axis) if axis in reader.axes else known.place
            turn = Turn(place, axis, axis, 0, {new: known})
            reader = rewritten(reader, partial(_unless_tested, turn, new), turn.joined)
    return reader


def _unless_tested(turn: Turn, source: Stage, node: Expr) -> Expr:
    """A load of a source by a turn, if there is one element for it wherever the reader is."""
    found = turn.read(node) if isinstance(node, Load) and node.source is source else None
    return found if isinstance(found, Load) else node


def _single_values(test: IndexTest, axis: Axis) -> tuple[int | None, int | None]:
    """The value of an axis where a test of it holds, and where not, if there is only one."""
    shift = (test.index - axis).constant
    first, last = axis.interval()
    low = first if test.low is None else max(first, test.low - shift)
    high = last if test.high is None else min(last, test.high - 1 - shift)
    outside = [*range(first, min(low, first + 2)), *range(max(high, last - 2) + 1, last + 1)]
    return (low if low == high else None), (outside[0] if len(outside) == 1 else None)


def _at(load: Load, source: Stage, place: int, index: Affine) -> Load:
    """A load of a source at another index along one axis."""
    return Load(source, (*load.indices[:place], index, *load.indices[place + 1 :]))


def _nearest(distance: int, period: int) -> int:
    """The same place, the shorter way round."""
    return distance if 2 * distance < period else distance - period
