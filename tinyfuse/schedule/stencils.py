"""Stencils: stages that are read some rows around, computed as the rows of their reader need them.

A chain of stencils goes into the kernel of the last one, in one of two ways. As rings: each row is
computed once per thread, just before the first row that reads it, and kept while it is read. As
strips: for every few rows of the last stage all that they need of the others, which computes the
rows at the edges of strips twice. Where rows go round, as `np.roll` lets them, the stages inside
have copies of some at both ends.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Container, Iterable

from tinyfuse.errors import ScheduleError
from tinyfuse.machine import LINE_BYTES, Machine
from tinyfuse.records import dataclass, field, replace
from tinyfuse.schedule.cost import stage_bytes
from tinyfuse.schedule.groups import PLACES_PER_CORE, Group, Grouping, Read, Unit
from tinyfuse.schedule.places import LONG_ROW, REGION_LIMIT, STACK_LIMIT
from tinyfuse.schedule.seats import Seat
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage
from tinyfuse.stage.wrapping import offsets_through

# Rows further apart than this are no neighbourhood.
WIDEST_HALO = 64
# Elements of a row from which on rows are kept in rings: steps along the ring run one after the
# other, so that only the rows themselves are vectors.
RING_ROW = 64
# Chains up to so many stencils are rings; longer ones warm up for too many rows.
MOST_RINGS = 3
# How many times as much as needed strips may compute.
MOST_RECOMPUTED = 1.25
# On a device, whose blocks each compute a strip: that many strips are made as long as they compute
# at most so many times as much as needed.
MOST_STRIPS = 128
MOST_IN_STRIPS = 2.0
# Operations of one kernel, and stages in it: of each the C compiler sees up to three copies.
CHAIN_OPERATIONS = 200
CHAIN_STAGES = 12


@dataclass(frozen=True, slots=True)
class Halo:
    """The rows of a stage that are read for row 0 of the last one: low … high."""

    low: int
    high: int

    @property
    def width(self) -> int:
        return self.high - self.low

    def hull(self, other: Halo) -> Halo:
        return Halo(min(self.low, other.low), max(self.high, other.high))


@dataclass(eq=False, slots=True)
class Chain:
    """Units that are computed in the loops of one over its rows. halos: of all, also of those that
    were in its kernel before. is_round: whether the first row follows the last one; then `copied`
    are the arrays that it has copies of."""

    last: Unit
    rows: Axis
    halos: dict[Stage, Halo]
    members: list[Unit] = field(default_factory=list)
    is_round: bool = False
    copied: tuple[Stage, ...] = ()

    def recompute(self, stage: Stage, step: int) -> float:
        """How often strips of so many rows compute each row of a stage."""
        return 1 + self.halos[stage].width / step


class Stencils:
    """Finds chains among the units and groups of a program. inlined: stages without loops."""

    def __init__(self, grouping: Grouping, inlined: Container[Stage], machine: Machine):
        self.grouping = grouping
        self.inlined = inlined
        self.machine = machine
        self.rounds: dict[Stage, dict[Stage, set[int]] | None] = {}
        self.taken: set[Unit] = set()
        self.reasons: dict[Stage, str] = {}  # why a unit is not in a chain with all that read it

    def seats(self) -> Iterable[tuple[Chain, dict[Stage, Seat]]]:
        """The chains, the last ones of the program first, and where their units are computed."""
        for unit in reversed(self.grouping.units):
            group = self.grouping.group_of[unit]
            if unit is group.leader and unit not in self.taken:
                chain = self._chain(group)
                if chain and not chain.members and self._may_go_round(group):
                    chain = self._chain(group, is_round=True)
                seats = self._seats(chain) if chain and chain.members else None
                if chain and seats:
                    self.taken.update(chain.members)
                    yield chain, seats
                elif chain:
                    fits = "all of it stays in the cache as it is"
                    self.reasons.update(dict.fromkeys([u.root for u in chain.members], fits))

    # --- chains -----------------------------------------------------------------------------------

    def _chain(self, group: Group, is_round: bool = False) -> Chain | None:
        """All that can go into the kernel of a group, the nearest first."""
        last = group.leader
        if not last.outer or last.outer[0] is not next(iter(last.root.axes)):
            return None
        if any(not unit.is_elementwise for unit in group.units):
            return None
        halos = {unit.root: Halo(0, 0) for unit in group.units}
        chain = Chain(last, last.outer[0], halos, is_round=is_round)
        waiting: list[tuple[int, Unit]] = []  # those that the chain reads, the last ones first
        self._wait(waiting, group)
        while waiting:
            _, unit = heapq.heappop(waiting)
            if unit.root not in chain.halos:
                more = self.grouping.group_of[unit]
                grown = self._grown(chain, more)
                if grown is not None:
                    chain = grown
                    self._wait(waiting, more)
        return chain

    def _wait(self, waiting: list[tuple[int, Unit]], group: Group) -> None:
        """Add what a group reads."""
        grouping = self.grouping
        sources = dict.fromkeys([stage for unit in group.units for stage in grouping.sources[unit]])
        for unit in {
            grouping.unit_of[stage]: None for stage in sources if stage in grouping.unit_of
        }:
            place = (-grouping.order[unit.root], unit)
            if place not in waiting:
                heapq.heappush(waiting, place)

    def _grown(self, chain: Chain, group: Group) -> Chain | None:
        """A chain with the units of one more group; None where not all of them can go there."""
        if not all(self._is_free(unit) for unit in group.units):
            return None
        grown = replace(chain, halos=dict(chain.halos), members=list(chain.members))
        for unit in reversed(group.units):
            halo = self._round_halo(unit, grown) if chain.is_round else self._halo(unit, grown)
            if halo is None:
                return None
            grown.halos[unit.root] = halo
            grown.members.append(unit)
        grown.copied = self._copied(grown) if chain.is_round else ()
        if self._fits(grown):
            return grown
        reason = f"the rows of it that {chain.last.root.name} needs at a time are too many"
        self.reasons.update(dict.fromkeys([unit.root for unit in group.units], reason))
        return None

    def _is_free(self, unit: Unit) -> bool:
        wanted = unit.root in self.grouping.apart or unit.root in self.grouping.outputs
        if wanted or unit in self.taken or unit.root in self.grouping.fixed:
            return False
        return unit.is_elementwise and math.prod(unit.root.shape) > 0

    def _halo(self, unit: Unit, chain: Chain) -> Halo | None:
        """The rows of a unit that a chain needs; None where others need it too, or all of it."""
        readers = self.grouping.readers.get(unit.root, ())
        if not readers or any(reader.root not in chain.halos for reader in readers):
            return None
        halo: Halo | None = None
        for reader in readers:
            for read in self.grouping.reads[reader.root]:
                if read.source is not unit.root:
                    continue
                offset = _offset(read, reader.root)
                if offset is None or abs(offset) > WIDEST_HALO:
                    if _is_by_rows(read, reader.root):
                        far = f"{reader.root.name} reads it far from its own rows"
                        self.reasons[unit.root] = far
                    return None
                at = chain.halos[reader.root]
                there = Halo(at.low + offset, at.high + offset)
                halo = there if halo is None else halo.hull(there)
        return halo

    # --- rows that go round -----------------------------------------------------------------------

    def _may_go_round(self, group: Group) -> bool:
        """Whether a group reads rows of another one far from its own, as at its other end."""
        return any(
            self.grouping.unit_of.get(read.source) and _is_by_rows(read, unit.root)
            for unit in group.units
            for read in self.grouping.reads[unit.root]
            if (offset := _offset(read, unit.root)) is None or abs(offset) > WIDEST_HALO
        )

    def _round_halo(self, unit: Unit, chain: Chain) -> Halo | None:
        """The rows of a unit that a chain needs, round and round; None as of others."""
        readers = self.grouping.readers.get(unit.root, ())
        if not readers or any(reader.root not in chain.halos for reader in readers):
            return None
        halo: Halo | None = None
        for reader in readers:
            offsets = (self._offsets(reader.root) or {}).get(unit.root)
            if not offsets or max(map(abs, offsets)) > WIDEST_HALO:
                return None
            at = chain.halos[reader.root]
            there = Halo(at.low + min(offsets), at.high + max(offsets))
            halo = there if halo is None else halo.hull(there)
        own = self._offsets(unit.root) is not None and unit.root.shape[0] == chain.rows.extent
        return halo if own else None

    def _offsets(self, root: Stage) -> dict[Stage, set[int]] | None:
        """How many rows below its own row a unit reads others; None where that is not all that its
        rows depend on."""
        if root not in self.rounds:
            try:
                self.rounds[root] = offsets_through(root, self.inlined, self.grouping.order)
            except ScheduleError:
                self.rounds[root] = None
        return self.rounds[root]

    def _copied(self, chain: Chain) -> tuple[Stage, ...]:
        """The arrays from outside that units of a chain read along their rows, unless only at
        rows of the last one."""
        inside = {unit.root for unit in chain.members}
        found = {
            source: None
            for unit in chain.halos
            for source, offsets in (self._offsets(unit) or {}).items()
            if source not in self.inlined and source not in chain.halos
            if unit in inside or offsets != {0}
        }
        return tuple(found)

    # --- how large --------------------------------------------------------------------------------

    def _fits(self, chain: Chain) -> bool:
        """Whether a chain leaves its kernel small enough, and can be computed in time."""
        units = [chain.last, *chain.members]
        if len(units) > CHAIN_STAGES or sum(unit.operations for unit in units) > CHAIN_OPERATIONS:
            return False
        return self._rings(chain) is not None or self._strip(chain) is not None

    # --- rings and strips -------------------------------------------------------------------------

    def _seats(self, chain: Chain) -> dict[Stage, Seat] | None:
        stored = sum(stage_bytes(unit.root) for unit in chain.members)
        if stored <= self.machine.l2 // 2:
            return None  # all of it stays in the cache as it is
        rings, last = self._rings(chain), chain.last.root
        if rings is not None:
            around = self._chunk(chain)
            return {
                stage: Seat(last, chain.rows, kept_at=around, ring=(stage.axes[0], length))
                for stage, length in rings.items()
            }
        step = self._strip(chain)
        if step is None:
            return None
        return {unit.root: Seat(last, chain.rows, step) for unit in chain.members}

    def _chunk(self, chain: Chain) -> Seat:
        """What one thread computes at a time; all of it where there is one thread."""
        last, extent = chain.last.root, chain.rows.extent
        if self.machine.cores == 1:
            return Seat(last, before=True)
        return Seat(last, chain.rows, -(-extent // (PLACES_PER_CORE * self.machine.cores)))

    def _rings(self, chain: Chain) -> dict[Stage, int] | None:
        """How many rows of each unit are kept; None where they are too many."""
        if chain.is_round or self.machine.device:
            return None  # what begins at each end is other code; a device's blocks have no order
        stencils = [unit.root for unit in chain.members if chain.halos[unit.root].width]
        if len(stencils) > MOST_RINGS or chain.rows.extent < 8 * self.machine.cores:
            return None
        if min(math.prod(unit.root.shape[1:]) for unit in chain.members) < RING_ROW:
            return None
        lengths = {u.root: _power_of_two(chain.halos[u.root].width + 1) for u in chain.members}
        kept = sum(length * _row_bytes(stage) for stage, length in lengths.items())
        return lengths if kept <= min(self.machine.l2 // 2, REGION_LIMIT) else None

    def _strip(self, chain: Chain) -> int | None:
        """How many rows of the last unit to compute at a time; None where no number is good."""
        if self.machine.device:
            return _strip_of_block(chain)
        wide = max(chain.halos[unit.root].width for unit in chain.members)
        alive = self._alive(chain) + sum(map(_row_bytes, chain.copied))
        rows = min(self.machine.l2 * 3 // 4, STACK_LIMIT) // alive - wide
        rows = min(rows, chain.rows.extent // (PLACES_PER_CORE * self.machine.cores))
        if rows < 1:
            return None
        step = min(1 << (rows.bit_length() - 1), _power_of_two(64 * max(1, wide)))
        return step if _recomputed(chain, step) <= MOST_RECOMPUTED else None

    def _alive(self, chain: Chain) -> int:
        """Bytes of a row of all that is needed at once, while one unit after the other is computed:
        what is not needed any more leaves its memory to others."""
        units = sorted(chain.members, key=lambda unit: self.grouping.order[unit.root])
        place = {unit: number for number, unit in enumerate(units)}
        last = {u: max(place.get(reader, len(units)) for reader in self._readers(u)) for u in units}
        most = 0
        for now in range(len(units) + 1):
            alive = [unit for unit in units[: now + 1] if last[unit] >= now]
            ending = [unit for unit in alive if last[unit] == now]
            if now < len(units) and any(self._takes_place(units[now], each) for each in ending):
                alive.remove(units[now])
            most = max(most, sum([_row_bytes(unit.root) for unit in alive]))
        return most

    def _takes_place(self, unit: Unit, other: Unit) -> bool:
        """Whether a unit can be stored where another one lies while it reads that one's rows."""
        if self.machine.device:  # whose threads go through them in no order
            return False
        stage, source = unit.root, other.root
        reads = [read for read in self.grouping.reads[stage] if read.source is source]
        if stage.dtype != source.dtype or _row_bytes(stage) != _row_bytes(source):
            return False
        return all(
            (index - axis).is_constant
            for read in reads
            for index, axis in zip(read.indices, stage.axes, strict=False)
        )

    def _readers(self, unit: Unit) -> list[Unit]:
        return list(self.grouping.readers[unit.root])


def _recomputed(chain: Chain, step: int) -> float:
    """How many times as much as needed strips of so many rows compute, on average."""
    each = [chain.recompute(unit.root, step) for unit in chain.members]
    return sum(each) / len(each)


def _strip_of_block(chain: Chain) -> int | None:
    """The rows of a strip for each block of a device: few, so that there are many blocks."""
    extent = chain.rows.extent
    steps = [1 << power for power in range((extent // 2).bit_length())]
    good = [step for step in steps if _recomputed(chain, step) <= MOST_IN_STRIPS]
    cheap = [step for step in good if _recomputed(chain, step) <= MOST_RECOMPUTED]
    several = [step for step in good if extent <= MOST_STRIPS * step]
    return min(cheap[0], several[0]) if cheap and several else None


def _offset(read: Read, reader: Stage) -> int | None:
    """How many rows below the reader's own row a read is; None where that varies."""
    if not read.indices:
        return None
    rest = read.indices[0] - reader.axes[0]
    return rest.constant if rest.is_constant else None


def _is_by_rows(read: Read, reader: Stage) -> bool:
    """Whether the row that is read depends on the row of the reader alone, if on anything."""
    if not read.indices or read.source.axes[0].extent < 2:
        return False
    return all(axis is reader.axes[0] for axis in read.indices[0].axes())


def _row_bytes(stage: Stage) -> int:
    """Of rows along the last axis that begin with cache lines, wherever their edges are."""
    if len(stage.shape) < 2:
        return stage.dtype.itemsize
    row = stage.shape[-1] * stage.dtype.itemsize
    if row >= LONG_ROW:
        row = (-(-row // LINE_BYTES) + 1) * LINE_BYTES
    return math.prod(stage.shape[1:-1]) * row


def _power_of_two(number: int) -> int:
    """The next one, from the number on."""
    return 1 << max(0, number - 1).bit_length()
