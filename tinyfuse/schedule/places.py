"""Where stages are computed and stored: inside which loops of which others, and in what order."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping
from enum import Enum
from functools import cached_property

from tinyfuse.loops.ir import LoopKind
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages

# Bytes of one array inside a kernel; a thread's stack holds megabytes.
STACK_LIMIT = 1 << 20
# The same of one of several that a plan makes there.
REGION_LIMIT = 1 << 19
# Bytes of a row from which on each of several begins with a cache line there.
LONG_ROW = 512
# A loop over which index tests change more often than this is not cut: its tests run.
MAX_PIECES = 8


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over an axis in steps of `step` elements; the last step may be shorter.

    shifted: whether the last step begins earlier instead, and computes elements a second time.
    padded: whether it is as long as the others, and computes elements that nobody asks for.
    fused: whether this loop and the next one inside it are one loop over the steps of both.
    """

    axis: Axis
    step: int = 1
    kind: LoopKind = LoopKind.SERIAL
    shifted: bool = False
    padded: bool = False
    fused: bool = False

    def __hash__(self) -> int:
        return hash((self.axis, self.step))  # seldom is there a second one

    @property
    def steps(self) -> int:
        """How many there are to the end of its axis."""
        return -(-self.axis.extent // self.step)

    def same(self, other: Loop) -> bool:
        """Whether it is the same loop, of whatever kind."""
        return self.axis is other.axis and self.step == other.step


@dataclass(frozen=True, slots=True)
class Site:
    """Inside which loop of which stage something happens; without a loop, before all of them.

    aligned: pairs of an axis of a stage computed here and one of this stage: the former runs over
    what the loops leave of the latter. Without any, what is computed is what is read.
    """

    stage: Stage
    loop: Loop | None
    aligned: tuple[tuple[Axis, Axis], ...] = ()

    @property
    def plain(self) -> Site:
        """The same place, whatever goes along with what."""
        return Site(self.stage, self.loop)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """In each step of a stage's loop `at`, what the stage reads of `source` there is asked for as
    it will be read so many steps of a loop around later."""

    source: Stage
    at: Loop
    ahead: Site
    distance: int


class Place(Enum):
    """A place that is inside no stage."""

    ROOT = "root"  # the memory of the program: an output, or scratch memory


@dataclass(frozen=True, slots=True)
class StagePlan:
    """loops: outermost first. compute_at: None for the root, a kernel of its own. store_at: where
    its memory is, around where it is computed; None for the same place. streamed: whether rows of
    it are stored past the caches. ring: an axis along which only so many positions are kept; of a
    scan that moves on with the steps of a reduction its own axis, and one. registers: whether its
    memory has to be vector registers. prefetch: what is asked for ahead of its use. layout: parts
    of the axes in the order in which they lie in memory, the outermost first, as loops would go
    through them; None for the axes in their order."""

    loops: tuple[Loop, ...]
    inlined: bool = False
    compute_at: Site | None = None
    store_at: Site | Place | None = None
    streamed: bool = False
    registers: bool = False
    ring: tuple[Axis, int] | None = None
    prefetch: Prefetch | None = None
    layout: tuple[Loop, ...] | None = None


class Places:
    """The places of all stages of a schedule: `plans` holds that of each."""

    def __init__(self, stages: Stages, plans: Mapping[Stage, StagePlan]):
        self.stages = stages
        self.plans = plans
        self.order = {stage: number for number, stage in enumerate(stages.stages)}
        self.outputs = frozenset(stages.outputs)

    @cached_property
    def inlined(self) -> frozenset[Stage]:
        return frozenset([stage for stage, plan in self.plans.items() if plan.inlined])

    @cached_property
    def seated(self) -> list[tuple[Stage, Site]]:
        """The stages computed inside others, and where."""
        return [(stage, plan.compute_at) for stage, plan in self.plans.items() if plan.compute_at]

    @cached_property
    def sources(self) -> dict[Stage, dict[Stage, None]]:
        """The stages, inputs left out, that each reads; inlined ones are seen through."""
        found: dict[Stage, dict[Stage, None]] = {}
        for stage in self.stages.stages:
            read = dict.fromkeys(load.source for load in stage.reads() if load.source in self.plans)
            found[stage] = {}
            for source in read:
                found[stage].update(found[source] if self.plans[source].inlined else {source: None})
        return found

    @cached_property
    def readers(self) -> dict[Stage, list[Stage]]:
        """The stages that read each, directly or through inlined ones; no inlined ones."""
        found: dict[Stage, list[Stage]] = {stage: [] for stage in self.stages.stages}
        for reader, sources in self.sources.items():
            if not self.plans[reader].inlined:
                for source in sources:
                    found[source].append(reader)
        return found

    @cached_property
    def hosts(self) -> dict[Stage, dict[Stage, None]]:
        """The stages, no inlined ones, in which each inlined one is computed."""
        found: dict[Stage, dict[Stage, None]] = {stage: {} for stage in self.inlined}
        for reader in reversed(self.stages.stages):
            for load in reader.reads():
                if load.source in found:
                    found[load.source].update(found.get(reader, {reader: None}))
        return found

    @cached_property
    def placed_by_data(self) -> dict[Stage, int]:
        """For each source along how many of its first axes data decides where it is read; through
        inlined stages too, which are read at such places themselves."""
        found: dict[Stage, int] = {}
        for reader in reversed(self.stages.stages):
            known = reader.axes[: found.get(reader, 0)] if self.plans[reader].inlined else ()
            for load in reader.reads():
                ends = [len(load.data)]
                for end, place in enumerate(load.places, 1):
                    if place is not None and any(axis in known for axis in place.axes()):
                        ends.append(end)
                found[load.source] = max([found.get(load.source, 0), *ends])
        return found

    @cached_property
    def attached(self) -> dict[Stage, list[Stage]]:
        """The stages computed directly inside each, in the order of the program."""
        found: dict[Stage, list[Stage]] = {}
        for stage in self.stages.stages:
            site = self.plans[stage].compute_at
            if site:
                found.setdefault(site.stage, []).append(stage)
        return found

    @cached_property
    def sites(self) -> frozenset[tuple[Stage, Loop | None]]:
        """The places inside stages where another one is computed or kept."""
        computed = [plan.compute_at for plan in self.plans.values()]
        kept = [plan.store_at for plan in self.plans.values()]
        sites = [site for site in (*computed, *kept) if isinstance(site, Site)]
        return frozenset([(site.stage, site.loop) for site in sites])

    @cached_property
    def kernels(self) -> dict[Stage, int]:
        """The stages at the root in the order they run: as early in the program as what they read
        allows. Those that wait for one another in a circle are left out."""
        waits = self._waits()
        followers: dict[Stage, list[Stage]] = {}
        for stage, needed in waits.items():
            for other in needed:
                followers.setdefault(other, []).append(stage)
        ready = [self.order[stage] for stage, needed in waits.items() if not needed]
        heapq.heapify(ready)
        found: dict[Stage, int] = {}
        while ready:
            stage = self.stages.stages[heapq.heappop(ready)]
            found[stage] = len(found)
            for follower in followers.get(stage, ()):
                waits[follower].discard(stage)
                if not waits[follower]:
                    heapq.heappush(ready, self.order[follower])
        return found

    def _waits(self) -> dict[Stage, set[Stage]]:
        """For each stage at the root those at the root that have to be computed before it."""
        waits: dict[Stage, set[Stage]] = {
            stage: set()
            for stage, plan in self.plans.items()
            if not plan.inlined and plan.compute_at is None
        }
        for reader, sources in self.sources.items():
            if not self.plans[reader].inlined:
                root = self.chain(reader)[-1]
                read = {self.chain(source)[-1] for source in sources}
                waits.setdefault(root, set()).update(read - {root})
        return waits

    def is_joined(self, stage: Stage) -> bool:
        """Whether a stage is reduced in the steps of another reduction's loop."""
        site = self.plans[stage].compute_at
        return site is not None and any(own in stage.reduce_axes for own, _ in site.aligned)

    def is_carried(self, stage: Stage) -> bool:
        """Whether a scan is kept at one position, which moves on with the steps of a reduction's
        loop."""
        plan = self.plans[stage]
        return stage.scan is not None and plan.ring is not None and plan.ring[0] is stage.scan

    def carried(self, leader: Stage) -> list[Stage]:
        """The scans that move on with the steps of this one's loops."""
        return [stage for stage in self.attached.get(leader, ()) if self.is_carried(stage)]

    def joined(self, leader: Stage) -> list[Stage]:
        """The stages that are reduced in the steps of this one's loops."""
        return [stage for stage in self.attached.get(leader, ()) if self.is_joined(stage)]

    def accumulation(self, leader: Stage) -> Site:
        """Right around all loops of a reduction that reduce: where it starts."""
        outside = itertools.takewhile(
            lambda loop: loop.axis not in leader.reduce_axes, self.plans[leader].loops
        )
        return Site(leader, next(reversed(list(outside)), None))

    def loads(self, stage: Stage) -> list[Load]:
        """What a stage loads: itself, and through what is inlined into it; loads of that too."""
        found: list[Load] = []
        seen, pending = {stage}, [stage]
        while pending:
            for load in pending.pop().reads():
                found.append(load)
                plan = self.plans.get(load.source)
                if plan and plan.inlined and load.source not in seen:
                    seen.add(load.source)
                    pending.append(load.source)
        return found

    def storage(self, stage: Stage) -> Site | None:
        """Inside which loop a stage's memory lives; None for the memory of the program."""
        plan = self.plans[stage]
        if stage in self.outputs or plan.store_at is Place.ROOT:
            return None
        return plan.store_at if isinstance(plan.store_at, Site) else plan.compute_at

    def chain(self, stage: Stage) -> list[Stage]:
        """The stage, what it is computed in, what that is computed in …, up to the root."""
        found = [stage]
        while (site := self.plans[found[-1]].compute_at) is not None and site.stage not in found:
            found.append(site.stage)
        return found

    def depth(self, site: Site) -> int:
        """How many loops of the stage are around a site."""
        return 0 if site.loop is None else self.plans[site.stage].loops.index(site.loop) + 1

    def within(self, stage: Stage, site: Site) -> bool:
        """Whether a stage is computed inside a site; the stage of the site itself is."""
        inner = stage
        while inner is not site.stage:
            at = self.plans[inner].compute_at
            if at is None:
                return False
            if at.stage is site.stage:
                return self.depth(at) >= self.depth(site)
            inner = at.stage
        return True

    def inside(self, site: Site) -> list[Stage]:
        """The stages computed inside a site, in the order of the program; not that of the site."""
        depth = self.depth(site)
        found = [
            stage
            for stage in self.attached.get(site.stage, ())
            if self.depth(self.plans[stage].compute_at) >= depth  # type: ignore[arg-type]
        ]
        for stage in found:
            found += self.attached.get(stage, ())
        return sorted(found, key=self.order.__getitem__)

    def meeting(self, producer: Stage, reader: Stage) -> tuple[Stage, Stage | None] | None:
        """Where the producer stands when the reader runs in the same kernel: what of the stage
        around both holds the producer, and what holds the reader, or None if the reader is that
        stage. None where they are in different kernels, or the reader inside the producer."""
        around = self.chain(reader)
        held = self.chain(producer)
        for place, stage in enumerate(held):
            if stage in around:
                if not place:
                    return None
                at = around.index(stage)
                return held[place - 1], around[at - 1] if at else None
        return None
