"""Whether everything that is read of a stage has been computed, and by one thread only.

Asked for stages that are kept longer than the loop they are computed in: what each step of that
loop computes has to make up, with the other steps, all that is read later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.lower.bounds import Range, Ranges, whole
from tinyfuse.lower.pieces import Piece
from tinyfuse.records import dataclass
from tinyfuse.schedule.places import Loop, Places, Site
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Stage

Interval = tuple[int, int]  # from the first to before the last
Box = tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A region of a stage that is computed for all values of the loop variables around it.

    variables: None for a loop of one step.
    """

    region: Ranges
    variables: tuple[Axis | None, ...]


class Coverage:
    """What one kernel computes of the stages that it keeps."""

    def __init__(self, places: Places, root: Stage):
        self.places = places
        self.parts: dict[Stage, list[Part]] = {}
        self.later: dict[Stage, str] = {}  # who reads the stage once the kernel has run
        self.scopes: dict[Site, list[tuple[Stage, Stage]]] = {}
        self.variables: list[Axis | None] = []  # of the loops around
        self.shared: set[Axis] = set()  # those that number the steps that threads share
        self.conditions = 0  # how many tests around decide whether anything is computed
        for stage in places.inside(Site(root, None)):
            self._enter(stage, root)

    def _enter(self, stage: Stage, root: Stage) -> None:
        site = self.places.plans[stage].compute_at
        assert site is not None
        if stage in self.places.outputs:
            self.later[stage] = "the caller"
        for reader in self.places.readers[stage]:
            if self.places.within(reader, site):
                continue
            found = self.places.meeting(stage, reader)
            if found is None or self.places.chain(reader)[-1] is not root:
                self.later.setdefault(stage, reader.name)
                continue
            around = self.places.plans[found[0]].compute_at
            assert around is not None
            self.scopes.setdefault(around.plain, []).append((stage, reader))
        kept = [stage for pairs in self.scopes.values() for stage, _ in pairs]
        if stage in self.later or stage in kept or self.places.storage(stage) is None:
            self.parts.setdefault(stage, [])

    def computed(self, stage: Stage, region: Ranges) -> None:
        """Note that a region is computed here; under a condition that counts for nothing."""
        if stage in self.parts and not self.conditions:
            self.parts[stage].append(Part(region, tuple(self.variables)))

    def enter(self, loop: Loop, piece: Piece) -> None:
        """Before what runs in a step of a piece of a loop."""
        variable = piece.variable
        if loop.kind is LoopKind.PARALLEL:
            variable = variable or Axis(loop.axis.name, 1, piece.first)
            self.shared.add(variable)
        self.variables.append(variable)
        self.conditions += bool(piece.test)

    def leave(self, piece: Piece) -> None:
        """After what runs in a step of a piece of a loop."""
        self.conditions -= bool(piece.test)
        self.variables.pop()

    @contextmanager
    def condition(self) -> Iterator[None]:
        """Around what runs only where a test holds."""
        self.conditions += 1
        yield
        self.conditions -= 1

    @contextmanager
    def checked(self, site: Site, needs: Mapping[Stage, Ranges]) -> Iterator[None]:
        """Around one step of a loop: refuse it if it reads, of what is computed in it and kept,
        more than that. needs: the regions read in the step."""
        pairs = self.scopes.get(site.plain, ())
        marks = {stage: len(self.parts[stage]) for stage, _ in pairs}
        depth = len(self.variables)
        yield
        for stage, reader in pairs:
            if stage in needs:
                parts = self.parts[stage][marks[stage] :]
                self._check(stage, reader.name, needs[stage], parts, depth)

    def check_kernel(self) -> None:
        """Refuse a kernel that leaves out elements of what is read later, or computes them in two
        threads."""
        for stage, reader in self.later.items():
            everything = {axis: whole(axis) for axis in stage.axes}
            self._check(stage, reader, everything, self.parts[stage], 0)
        for stage, parts in self.parts.items():
            kept_by_all = self.places.storage(stage) is None
            if self.shared and kept_by_all and not _are_apart(stage, parts, self.shared):
                raise ScheduleError(
                    f"{self._name(stage)}: two threads would compute the same elements of it"
                )

    def _check(
        self, stage: Stage, reader: str, need: Ranges, parts: Sequence[Part], depth: int
    ) -> None:
        if not all(need[axis].extent for axis in stage.axes):
            return
        found = [_box(stage, part, need, depth) for part in parts]
        boxes = [box for box in found if box is not None]
        if not _cover(boxes, [need[axis].extent for axis in stage.axes]):
            raise ScheduleError(
                f"{self._name(stage)}: {reader} reads more of it than is computed there"
            )

    def _name(self, stage: Stage) -> str:
        site = self.places.plans[stage].compute_at
        assert site is not None
        loop = f", {site.loop.axis.name}" if site.loop else ""
        return f"compute_at({stage.name}, {site.stage.name}{loop})"


def _box(stage: Stage, part: Part, need: Ranges, depth: int) -> Box | None:
    """What of the needed region a part computes; None where that is no box, or cannot be told."""
    moving = part.variables[depth:]
    used: set[Axis] = set()
    box = []
    for axis in stage.axes:
        offset = part.region[axis].base - need[axis].base
        if used & offset.axes().keys() or any(term not in moving for term, _ in offset.terms):
            return None
        used |= offset.axes().keys()
        span = _span(offset, part.region[axis].extent)
        if span is None:
            return None
        box.append(span)
    return tuple(box)


def _span(offset: Affine, extent: int) -> Interval | None:
    """The positions offset … offset + extent - 1 for all values of the variables in the offset;
    None where they leave gaps."""
    reach = extent
    for term, coefficient in sorted(offset.terms, key=lambda term: abs(term[1])):
        assert isinstance(term, Axis)
        if abs(coefficient) > reach:
            return None
        reach += abs(coefficient) * (term.extent - 1)
    low, _ = offset.interval()
    return low, low + reach


def _cover(boxes: Sequence[Box], extents: Sequence[int]) -> bool:
    """Whether boxes cover the positions from 0 to the extents."""
    if not extents:
        return bool(boxes)
    extent, *rest = extents
    cuts = {min(max(0, edge), extent) for box in boxes for edge in box[0]}
    edges = sorted({0, extent, *cuts})
    return all(
        _cover([box[1:] for box in boxes if box[0][0] <= low and high <= box[0][1]], rest)
        for low, high in pairwise(edges)
    )


def _are_apart(stage: Stage, parts: Sequence[Part], shared: Collection[Axis]) -> bool:
    """Whether parts for different values of the variables that threads share do not meet."""
    groups: dict[Axis | None, list[Part]] = {}
    for part in parts:
        variable = next((v for v in part.variables if v in shared), None)
        groups.setdefault(variable, []).append(part)
    alone = all(
        any(_moves_on(group, axis, variable) for axis in stage.axes)
        for variable, group in groups.items()
        if variable is not None and variable.extent > 1
    )
    return alone and all(
        any(_are_disjoint(first, second, axis) for axis in stage.axes)
        for number, group in enumerate(groups.values())
        for other in list(groups.values())[number + 1 :]
        for first in group
        for second in other
    )


def _moves_on(parts: Sequence[Part], axis: Axis, variable: Axis) -> bool:
    """Whether each step of a variable moves along an axis by at least what a step covers."""
    steps = {part.region[axis].base.coefficient(variable) for part in parts}
    if len(steps) > 1:
        return False
    (step,) = steps
    covered = [
        Range(part.region[axis].base - variable * step, part.region[axis].extent) for part in parts
    ]
    bounds = [_bounds(range_) for range_ in covered]
    return max(high for _, high in bounds) - min(low for low, _ in bounds) <= abs(step)


def _bounds(range_: Range) -> Interval:
    low, high = range_.base.interval()
    return low, high + range_.extent


def _are_disjoint(first: Part, second: Part, axis: Axis) -> bool:
    (low, high), (start, stop) = _bounds(first.region[axis]), _bounds(second.region[axis])
    return high <= start or stop <= low
