"""Small kernels that can run one after the other, with no other in between, are one kernel.

Threads do not share them, so that each costs little more than its launch.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping

from tinyfuse.records import dataclass, field
from tinyfuse.schedule.groups import FRAME_BYTES, GROUP_UNITS, Grouping, Unit
from tinyfuse.schedule.loop_order import PARALLEL_ELEMENTS
from tinyfuse.schedule.seats import Seat
from tinyfuse.stage.ir import Stage

# Operations of a kernel made of small ones: the C compiler's time grows faster than a function.
SMALL_OPERATIONS = 100


@dataclass(eq=False, slots=True)
class _Nest:
    """The units computed in the kernel of one, how many elements it goes through and operations it
    has, and the nests that have to run before it and after it.

    place: of its root in the program. first: of the first stage computed inside the root, if any.
    fixed: whether it is computed once, not at every call.
    """

    root: Unit
    place: int
    fixed: bool
    first: float = math.inf
    units: list[Unit] = field(default_factory=list)
    visits: int = 0
    operations: int = 0
    waits: set[_Nest] = field(default_factory=set)
    followers: list[_Nest] = field(default_factory=list)


class SmallKernels:
    """Finds runs of small kernels. seats: of all stages that are computed inside others."""

    def __init__(self, grouping: Grouping, seats: Mapping[Stage, Seat]):
        self.grouping = grouping
        self.seats = seats
        self.nest_of = self._nests()

    def _nests(self) -> dict[Unit, _Nest]:
        unit_of, order, fixed = self.grouping.unit_of, self.grouping.order, self.grouping.fixed
        found: dict[Unit, _Nest] = {}
        for unit in reversed(self.grouping.units):
            seat = self.seats.get(unit.root)
            nest = (
                found[unit_of[seat.stage]]
                if seat
                else _Nest(unit, order[unit.root], unit.root in fixed)
            )
            found[unit] = nest
            inside = [*unit.parts, *([] if unit is nest.root else [unit.root])]
            nest.first = min([nest.first, *[order[stage] for stage in inside]])
            nest.units.append(unit)
            nest.visits += self.grouping.visits[unit]
            nest.operations += unit.operations
        for source, readers in self.grouping.readers.items():
            if source in unit_of:
                first = found[unit_of[source]]
                for later in dict.fromkeys(found[reader] for reader in readers):
                    if later is not first and first not in later.waits:
                        later.waits.add(first)
                        first.followers.append(later)
        return found

    def seats_of_runs(self) -> Iterator[dict[Stage, Seat]]:
        """Where the stages at the root are computed that another one's kernel computes first."""
        for run in self._runs():
            if len(run) > 1:
                yield self._seated(run)

    def _runs(self) -> Iterator[list[_Nest]]:
        """The small nests in an order in which all can run, in runs as long as a kernel may be.
        What is large comes as soon as it can."""
        waiting = {nest: len(nest.waits) for nest in dict.fromkeys(self.nest_of.values())}
        large: list[tuple[bool, int, _Nest]] = []
        small: list[tuple[bool, int, _Nest]] = []

        def release(nest: _Nest) -> None:
            key = (not nest.fixed, nest.place, nest)
            heapq.heappush(small if self._is_small(nest) else large, key)

        for nest, others in waiting.items():
            if not others:
                release(nest)
        run: list[_Nest] = []
        while large or small:
            if small and (run or not large):
                *_, nest = heapq.heappop(small)
                if not _continues(run, nest):
                    yield run
                    run = []
                run.append(nest)
            else:
                yield run
                run = []
                *_, nest = heapq.heappop(large)
            for follower in nest.followers:
                waiting[follower] -= 1
                if not waiting[follower]:
                    release(follower)
        yield run

    def _is_small(self, nest: _Nest) -> bool:
        """Whether threads do not share a nest, and it can be a part of another one."""
        if not _fits([nest]):
            return False
        roots = [unit.root for unit in nest.units]
        if any(root.scatter or root.sort or root in self.grouping.apart for root in roots):
            return False
        return all(math.prod(root.shape) for root in roots)

    def _seated(self, run: list[_Nest]) -> dict[Stage, Seat]:
        *others, last = run
        kept = 0
        seats = {}
        for nest in others:
            root = nest.root.root
            size = math.prod(root.shape) * root.dtype.itemsize
            inside = all(self.nest_of[reader] in run for reader in self._readers(nest.root))
            on_stack = inside and root not in self.grouping.outputs and kept + size <= FRAME_BYTES
            kept += size if on_stack else 0
            at_root = not on_stack and root not in self.grouping.outputs
            seats[root] = Seat(last.root.root, before=True, at_root=at_root)
        return seats

    def _readers(self, unit: Unit) -> Mapping[Unit, None]:
        return self.grouping.readers.get(unit.root, {})


def _continues(run: list[_Nest], nest: _Nest) -> bool:
    """Whether a nest can be the next one of a run.

    All others are computed before its own loops, in the order of the program, and so is what is
    computed inside it.
    """
    if not _fits([*run, nest]) or any(each.fixed is not nest.fixed for each in run):
        return False
    *others, last = [*run, nest]
    found = [(last, last.first), *[(each, float(each.place)) for each in others[-1:]]]
    return all(
        first.place < place for each, place in found for first in others if first in each.waits
    )


def _fits(run: list[_Nest]) -> bool:
    """Whether a kernel of these is still small."""
    return (
        sum([nest.visits for nest in run]) < PARALLEL_ELEMENTS
        and sum([nest.operations for nest in run]) <= SMALL_OPERATIONS
        and sum([len(nest.units) for nest in run]) <= GROUP_UNITS
    )
