"""Fusion groups: stages that are stored, but computed together in the outer loops of one of them.

A unit is a stage at the root with the parts of its reduction in it. Two units can go together where
each reads of the other, if anything, what lies at the same place of their outer loops: the frame of
the group. Groups grow greedily, the largest saving first, while the rules hold.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence

from tinyfuse.machine import Machine
from tinyfuse.records import dataclass, field
from tinyfuse.schedule.cost import stage_bytes
from tinyfuse.schedule.loop_order import PARALLEL_ELEMENTS, outer_axes
from tinyfuse.schedule.seats import Seat
from tinyfuse.stage.analysis import only_axis
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Order, Stage, Stages
from tinyfuse.stage.views import axis_indices

# Bytes of all that a group keeps for one place of its frame: less than the second cache.
FRAME_BYTES = 1 << 17
# Operations and stored stages of one group: the C compiler's time grows faster than a function.
GROUP_OPERATIONS = 1000
GROUP_UNITS = 24
# How many times as many where crowds of units are loops of their own inside the frame.
CROWDED = 10
# Elements of a row from which on vectors are full for most of it.
VECTOR_ROW = 64
# Places of the frame for each core, so that threads have something to share.
PLACES_PER_CORE = 2
# Units that, if they read the same, are computed together before others join them.
CROWD = 4
# Elements of a row that are computed one after the other, before those of the next stage.
CHUNK = 1024


@dataclass(frozen=True, slots=True)
class Read:
    """What a stored stage reads of another or of an input, in terms of its axes, and of others
    where data decides the place."""

    source: Stage
    indices: tuple[Affine, ...]


@dataclass(eq=False, slots=True)
class Unit:
    """A stage at the root and what is computed inside it for its reduction.

    outer: the axes of its loops around everything it does. operations: of all its stages.
    parts: its stages but for the root. along: for each of its stages which of their axes go along
    with which of the root's.
    """

    root: Stage
    outer: tuple[Axis, ...]
    operations: int
    parts: list[Stage] = field(default_factory=list)
    along: dict[Stage, dict[Axis, Axis]] = field(default_factory=dict)

    @property
    def is_elementwise(self) -> bool:
        """Whether each element of the root is computed on its own."""
        stage = self.root
        return not (stage.reduce_axes or stage.row_axis or stage.scatter or self.parts)


@dataclass(eq=False, slots=True)
class Group:
    """Units in the order of the program; `depth` axes of each make up the frame.

    inner: groups of some of them with a deeper frame, each computed as a whole.
    """

    units: list[Unit]
    depth: int
    inner: list[Group] = field(default_factory=list)

    @property
    def leader(self) -> Unit:
        return self.units[-1]


class Grouping:
    """Forms the groups of a program whose inlined stages are known.

    reads: for each stored stage what it reads. parts: stages computed inside others already.
    operations: of each stored stage, inlined ones included. slow: those that compute long on each
    element, so that vectors count. flat: those of them whose rows vectors do not fit. fixed: those
    that are computed once, not at every call.
    """

    def __init__(
        self,
        stages: Stages,
        machine: Machine,
        reads: Mapping[Stage, Sequence[Read]],
        parts: Mapping[Stage, Seat],
        operations: Mapping[Stage, int],
        slow: Collection[Stage],
        flat: Collection[Stage],
        apart: Mapping[Stage, str],
        fixed: Collection[Stage],
    ):
        self.machine = machine
        self.fixed = fixed
        self.reads = reads
        self.apart = apart
        self.slow = slow
        self.flat = flat
        self.outputs = frozenset(stages.outputs)
        self.order = {stage: number for number, stage in enumerate(stages.stages)}
        self.unit_of = _units([s for s in stages.stages if s in reads], parts, operations)
        self.units = list(dict.fromkeys(self.unit_of.values()))
        self.units.sort(key=lambda unit: self.order[unit.root])
        self.group_of = {unit: Group([unit], len(unit.outer)) for unit in self.units}
        self.visits = {unit: _visits(unit) for unit in self.units}
        self.readers: dict[Stage, dict[Unit, None]] = {}
        self.sources: dict[Unit, dict[Stage, None]] = {unit: {} for unit in self.units}
        for unit in self.units:
            self._connect(unit)
        self.is_crowded = any(map(self._is_crowd, self.readers.values()))
        self.reasons: dict[Stage, str] = {}  # why a unit is not with what reads it
        self.merged: dict[tuple[Group, Group], tuple[Group, str | None]] = {}
        # Where in the program groups begin and end, in ascending order.
        self.firsts = [self.order[unit.root] for unit in self.units]
        self.lasts = list(self.firsts)

    def _connect(self, unit: Unit) -> None:
        """Find which axes of its stages go along with the root's, and whom it reads."""
        unit.along[unit.root] = {axis: axis for axis in unit.root.axes}
        for stage in (unit.root, *unit.parts):
            for read in self.reads[stage]:
                if self.unit_of.get(read.source) is unit:
                    unit.along.setdefault(read.source, _along(read, unit.along[stage]))
                else:
                    self.readers.setdefault(read.source, {})[unit] = None
                    self.sources[unit][read.source] = None

    # --- growing ----------------------------------------------------------------------------------

    def _is_crowd(self, readers: Collection[Unit]) -> bool:
        """Whether many units read the same beside one another, as those of a butterfly do."""
        roots = {unit.root for unit in readers}
        beside = [unit for unit in readers if roots.isdisjoint(self.sources[unit])]
        return sum(unit.is_elementwise for unit in beside) >= CROWD

    def form(self) -> list[Group]:
        """The groups of more than one unit."""
        pairs = sorted(self._pairs(), key=lambda pair: pair[0])
        if self.is_crowded:
            for depth in range(max(len(unit.outer) for unit in self.units), 1, -1):
                for _, first, second in pairs:
                    self._join(self.units[first], self.units[second], depth)
        for _, first, second in pairs:
            self._join(self.units[first], self.units[second])
        groups = dict.fromkeys(self.group_of[unit] for unit in self.units)
        return [group for group in groups if len(group.units) > 1]

    def _pairs(self) -> Iterable[tuple[tuple[int, int, int], int, int]]:
        """Pairs of units that could save something together, with what they are sorted by."""
        number = {unit: place for place, unit in enumerate(self.units)}
        saved: dict[tuple[int, int], int] = {}
        for source, readers in self.readers.items():
            size = stage_bytes(source)
            places = [number[unit] for unit in readers]
            producer = self.unit_of.get(source)
            if producer is not None and producer.root is source:
                for place in places:
                    pair = (number[producer], place)
                    saved[pair] = saved.get(pair, 0) + 2 * size
            for pair in itertools.pairwise(places):
                ordered = (min(pair), max(pair))
                saved[ordered] = saved.get(ordered, 0) + size
        for pair in zip(range(len(self.units)), range(1, len(self.units)), strict=False):
            saved.setdefault(pair, 0)
        return [((-gain, *pair), *pair) for pair, gain in saved.items() if pair[0] != pair[1]]

    def _join(self, first: Unit, second: Unit, depth: int = 0) -> None:
        """Make one group of those of two units, unless its frame is less deep than this."""
        one, other = self.group_of[first], self.group_of[second]
        if one is other:
            return
        group, reason = self._merged(one, other)
        if group.depth < depth:
            return
        reason = reason or self._crossing(group.units)
        if reason:
            if second in self.readers.get(first.root, ()):
                self.reasons.setdefault(first.root, f"not with {second.root.name}: {reason}")
            return
        _remove(self.firsts, max(self.order[each.units[0].root] for each in (one, other)))
        _remove(self.lasts, min(self.order[each.leader.root] for each in (one, other)))
        for unit in group.units:
            self.group_of[unit] = group

    def _merged(self, one: Group, other: Group) -> tuple[Group, str | None]:
        """What two groups would be as one, and why they should not; found once for each two."""
        if (one, other) not in self.merged:
            units = sorted([*one.units, *other.units], key=lambda unit: self.order[unit.root])
            depth = self._depth(one, other)
            if self._splits_rows(units, depth) and self.rows_at_once(units, depth - 1) > 1:
                depth -= 1
            group = Group(units, depth)
            group.inner = [inner for each in (one, other) for inner in self._inner(each, group)]
            self.merged[one, other] = group, self._refusal(group)
        return self.merged[one, other]

    def _inner(self, part: Group, group: Group) -> list[Group]:
        """The groups that a part of a group leaves in it."""
        whole = part.depth > group.depth and len(part.units) >= CROWD
        return [part] if whole else part.inner

    def _is_in_order(self, group: Group) -> bool:
        """Whether each unit is computed before those that read it, where each inner group is
        computed as a whole in place of its last unit."""
        places = {unit: self.order[unit.root] for unit in group.units}
        for inner in group.inner:
            places.update(dict.fromkeys(inner.units, places[inner.leader]))
        inside = {unit: inner for inner in group.inner for unit in inner.units}
        return all(
            places[unit] < places[reader] or inside.get(unit) is inside.get(reader, unit)
            for unit in group.units
            for reader in self.readers.get(unit.root, ())
            if reader in places
        )

    def _depth(self, one: Group, other: Group) -> int:
        """How many outer axes of all units of two groups go along with one another."""
        depth = min(one.depth, other.depth)
        pairs = zip(one.leader.outer[:depth], other.leader.outer[:depth], strict=True)
        for place, (first, second) in enumerate(pairs):
            if first.extent != second.extent:
                depth = place
                break
        for group, others in ((one, other), (other, one)):
            for unit in group.units:
                for stage in (unit.root, *unit.parts):
                    for read in self.reads[stage]:
                        source = self.unit_of.get(read.source)
                        if source is not None and self.group_of[source] is others:
                            along = unit.along.get(stage, {})
                            depth = min(depth, _common(read, along, source, unit))
        return depth

    # --- rules ------------------------------------------------------------------------------------

    def _refusal(self, group: Group) -> str | None:
        """Why units cannot, or should not, be one group; None if they should, as far as units
        outside have no say."""
        units, depth = group.units, group.depth
        apart = [self.apart[unit.root] for unit in units if unit.root in self.apart]
        if apart:
            return apart[0]
        if len({unit.root in self.fixed for unit in units}) > 1:
            return "one is computed once, the other at every call"
        if any(unit.root.scatter for unit in units):
            return "elements are put in one after the other"
        if not all(math.prod(unit.root.shape) for unit in units):
            return "one of them has no elements"
        if any(self._combines_stored(unit) for unit in units[:-1]):
            return "threads share the blocks of its sum"
        if not depth:
            return "their outer loops do not go along with each other"
        work = sum([self.visits[unit] for unit in units])
        places = _places(units[-1], depth)
        if work >= PARALLEL_ELEMENTS and places < PLACES_PER_CORE * self.machine.cores:
            return f"threads would share only {places} steps"
        narrow = work >= PARALLEL_ELEMENTS and any(self._is_narrow(unit, depth) for unit in units)
        if narrow and self.rows_at_once(units, depth) == 1:
            return f"rows of less than {VECTOR_ROW} elements are too short for vectors"
        if work >= PARALLEL_ELEMENTS and self._splits_rows(units, depth):
            return f"rows of less than {VECTOR_ROW} elements are better one with the next"
        more = CROWDED if self.is_crowded else 1
        operations = sum(unit.operations for unit in units)
        if len(units) > more * GROUP_UNITS or operations > more * GROUP_OPERATIONS:
            return f"one kernel would do more than {more * GROUP_OPERATIONS} operations"
        if group.inner and not self._is_in_order(group):
            return "what one loop computes is read before all of it is computed"
        if self._frame_bytes(group) > FRAME_BYTES:
            return f"more than {FRAME_BYTES} bytes would be kept at each step"
        return self._saves(units)

    def _is_narrow(self, unit: Unit, depth: int) -> bool:
        """Whether a unit computes long on each element of a row, and rows are short."""
        inner = [axis for axis in unit.root.axes if axis not in unit.outer[:depth]]
        return unit.root in self.slow and 1 < math.prod(a.extent for a in inner) < VECTOR_ROW

    def rows_at_once(self, units: Sequence[Unit], depth: int) -> int:
        """How many short rows one unit computes before the next one does: then its vectors go
        through all their elements as one row. 1 where rows are long, or there are few."""
        if not depth:
            return 1
        longest = max(_elements(unit.root) // max(1, _places(unit, depth)) for unit in units)
        rows = units[-1].outer[depth - 1].extent
        if (
            not 1 < longest < VECTOR_ROW
            or sum(map(self.visits.__getitem__, units)) < PARALLEL_ELEMENTS
        ):
            return 1
        at_once = 1 << (CHUNK // longest).bit_length() - 1
        return at_once if rows >= PLACES_PER_CORE * self.machine.cores * at_once else 1

    def _splits_rows(self, units: Sequence[Unit], depth: int) -> bool:
        """Whether a loop through all elements as one would become loops over short rows."""
        flat = [u for u in units if u.root in self.flat and depth == len(u.outer)]
        return any(map(self._is_flat, flat)) and not all(map(self._is_flat, units))

    def _is_flat(self, unit: Unit) -> bool:
        return all(is_same_element(r.source, r.indices, unit.root) for r in self.reads[unit.root])

    def _combines_stored(self, unit: Unit) -> bool:
        """Whether a tree combines in place what is stored once, so that it can run only once."""
        tree = unit.root
        return tree.order is not Order.SERIAL and self.unit_of[tree.reads()[0].source] is not unit

    def _saves(self, units: Sequence[Unit]) -> str | None:
        """Nothing, where the group reads something once that would be read twice."""
        inside, seen = set(units), set()
        for source in (source for unit in units for source in self.sources[unit]):
            if source in seen or self.unit_of.get(source) in inside:
                return None
            seen.add(source)
        if all(unit.is_elementwise for unit in units):
            return None
        return "nothing is gained"

    def _frame_bytes(self, group: Group) -> int:
        """What the group keeps for one place of its frame."""
        inside = set(group.units)
        kept = 0
        for unit in group.units:
            depth = self._kept_in(unit, group).depth
            for stage in (unit.root, *unit.parts):
                frame = set(unit.outer[:depth] if stage is unit.root else unit.outer)
                along = unit.along.get(stage, {})
                extents = [a.extent for a in stage.axes if along.get(a) not in frame]
                if stage is not unit.root or not self.is_kept(unit, inside):
                    kept += math.prod(extents) * stage.dtype.itemsize
        return kept

    def _kept_in(self, unit: Unit, group: Group) -> Group:
        """The innermost group that has all readers of a unit."""
        for inner in group.inner:
            if unit in inner.units and not self.is_kept(unit, inner.units):
                return self._kept_in(unit, inner)
        return group

    def is_kept(self, unit: Unit, inside: Collection[Unit]) -> bool:
        """Whether a unit's result is needed outside of its group."""
        if unit.root in self.outputs:
            return True
        return any(reader not in inside for reader in self.readers.get(unit.root, ()))

    def _crossing(self, units: Sequence[Unit]) -> str | None:
        """Why the group could not run before or after all others: the way from one of its units to
        another one leads through a group outside."""
        inside = set(units)
        last = max(self.order[unit.root] for unit in units)
        stops = not self._is_spanned(last)
        seen: set[Group] = set()
        pending = [reader for unit in units for reader in self._consumers(unit)]
        while pending:
            unit = pending.pop()
            group = self.group_of[unit]
            if unit in inside or group in seen:
                continue
            seen.add(group)
            if stops and self.order[group.units[0].root] > last:
                continue  # from here on there is no way back
            for member in group.units:
                for reader in self._consumers(member):
                    if reader in inside:
                        return f"{member.root.name} has to be computed in between"
                    pending.append(reader)
        return None

    def _is_spanned(self, place: int) -> bool:
        """Whether a group has units before and after a place in the program."""
        return bisect_right(self.firsts, place) > bisect_right(self.lasts, place)

    def _consumers(self, unit: Unit) -> list[Unit]:
        return list(self.readers.get(unit.root, ()))


def is_same_element(source: Stage, indices: Sequence[Affine], reader: Stage) -> bool:
    """Whether a stage reads another where it computes, or one element of it throughout."""
    if all(index.is_constant for index in indices) and math.prod(source.shape) == 1:
        return True
    return source.shape == reader.shape and tuple(indices) == axis_indices(reader.axes)


def _units(
    stages: Sequence[Stage], parts: Mapping[Stage, Seat], operations: Mapping[Stage, int]
) -> dict[Stage, Unit]:
    """The unit of each stored stage; a part comes before what it is computed in."""
    found = {s: Unit(s, outer_axes(s), operations[s]) for s in stages if s not in parts}
    for stage in reversed([s for s in stages if s in parts]):
        unit = found[stage] = found[parts[stage].stage]
        unit.parts.append(stage)
        unit.operations += operations[stage]
    return found


def _remove(numbers: list[int], number: int) -> None:
    """Take a number out of an ascending list."""
    del numbers[bisect_left(numbers, number)]


def _along(read: Read, along: Mapping[Axis, Axis]) -> dict[Axis, Axis]:
    """Which axes of what is read go along with axes of the root, given those of the reader."""
    pairs = zip(read.source.axes, map(only_axis, read.indices), strict=True)
    return {own: along[axis] for own, axis in pairs if axis is not None and axis in along}


def _common(read: Read, along: Mapping[Axis, Axis], source: Unit, reader: Unit) -> int:
    """How many outer axes of a unit are read where the reader's own outer axes are."""
    pairs = _along(read, along)
    for place, (own, other) in enumerate(zip(source.outer, reader.outer, strict=False)):
        if pairs.get(own) is not other:
            return place
    return min(len(source.outer), len(reader.outer))


def _places(unit: Unit, depth: int) -> int:
    """How many steps the outermost loops of a unit have."""
    return math.prod([axis.extent for axis in unit.outer[:depth]])


def _visits(unit: Unit) -> int:
    """How many elements its loops go through."""
    return sum(map(_elements, (unit.root, *unit.parts)))


def _elements(stage: Stage) -> int:
    return math.prod([axis.extent for axis in (*stage.axes, *stage.reduce_axes)])
