"""Sums of functions of pairs run side by side, in vectors.

Where each element of one array meets each of another one and a sum over the latter remains, as in
the forces between bodies or a density from samples, each sum is a chain of additions that wait for
each other, and no vectors hold them. So many sums are computed at a time instead, one in each lane:
outside is the loop over what is summed, inside the one over the sums. What is computed for the same
pairs is in the same loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from tinyfuse.loops.ir import LoopKind
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import place_of, reads_through, with_inlined
from tinyfuse.schedule.places import Loop, Places, Site, StagePlan
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.analysis import only_axis
from tinyfuse.stage.expr import IndexTest, Load, depends_on, walk
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Order, Stage

# Sums at a time: several vectors of them, as each waits for itself; fewer where threads would have
# nothing to do, but so many that the C compiler makes vectors before it writes the loop out.
WIDTHS = (64, 32)
BUNDLES_PER_CORE = 2
# Elements of a chain from which on it is worth while.
LEAST_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Member:
    """A stage of a kernel that has an element for each pair, or for each sum. side: its axis along
    which the sums lie. other: the one that they go over."""

    stage: Stage
    side: Axis
    other: Axis

    @property
    def place(self) -> int:
        """Where the side is among its axes."""
        return self.stage.axes.index(self.side)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Its loops, the sums innermost."""
        free = [Loop(axis) for axis in self.stage.axes if axis not in (self.side, self.other)]
        return (*free, Loop(self.other), Loop(self.side, 1, LoopKind.VECTOR))


@dataclass(frozen=True, slots=True)
class Bundle:
    """Sums that run side by side, so many at a time. root: the stage of the kernel, in whose loop
    over `side` they are computed, unless it is the only sum itself. pairs: what else is computed of
    each pair, and uses: how often the sums read that."""

    root: Stage
    side: Axis
    width: int
    sums: tuple[Member, ...]
    pairs: tuple[Member, ...]
    uses: Mapping[Stage, int]


def sum_side_by_side(
    schedule: Schedule, decisions: Sequence[Decision], machine: Machine, alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Let the sums of each kernel of a schedule of the planner's run side by side where they can.

    decisions: on all stages. alone: names of stages that stay as they are.
    """
    known = {decision.producer: decision for decision in decisions}
    for root in schedule.places.kernels:
        bundle = _bundle(schedule.places, root, machine)
        if bundle and not any(member.stage.name in alone for member in bundle.sums):
            plans = _plans(schedule.places, bundle)
            schedule = Schedule(schedule.stages, plans, "sum side by side")
            for stage, plan in plans.items():
                known[stage.name] = _decision(known[stage.name], bundle, stage, plan)
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _decision(decision: Decision, bundle: Bundle, stage: Stage, plan: StagePlan) -> Decision:
    leader = bundle.sums[0]
    if stage in [member.stage for member in bundle.sums]:
        joins = plan.compute_at is not None and plan.compute_at.aligned
        action = "compute_with" if joins else decision.action
        reason = f"{bundle.width} of its sums run side by side, in vectors"
        return replace(decision, action=action, reason=reason)
    if stage not in [member.stage for member in bundle.pairs]:
        return decision
    if plan.inlined:
        reason = f"{leader.stage.name} takes each element as it is computed"
        return replace(decision, action="inline", reason=reason)
    reason = f"{bundle.width} sums side by side take its values in each step of {leader.other.name}"
    return replace(decision, action="compute_at", reason=reason)


# --- which ----------------------------------------------------------------------------------------


def _bundle(places: Places, root: Stage, machine: Machine) -> Bundle | None:
    """The sums of a kernel, if all that it does is of their kind and there are many enough."""
    side, attached = _side(places, root), places.attached.get(root, [])
    reducing = [stage for stage in (root, *attached) if stage.reduce_axes]
    if side is None or not reducing or side.extent * root.dtype.itemsize < machine.vector_bytes:
        return None
    inlined = places.inlined
    sums = [_sum(places, stage, root, side, inlined) for stage in reducing]
    found = [member for member in sums if member]
    if len(found) < len(sums) or any(not _are_alike(member, found[0]) for member in found):
        return None
    others = [stage for stage in attached if not stage.reduce_axes]
    pairs = [_pair(places, stage, found, inlined) for stage in others]
    members = (*found, *[member for member in pairs if member])
    if len(members) < len(reducing) + len(others):
        return None
    if not all(_meets_pairs(member, members, inlined) for member in members):
        return None
    uses = Counter([load.source for each in found for load in reads_through(each.stage, inlined)])
    width = _width(side, places.plans[root].loops, machine)
    return Bundle(root, side, width, tuple(found), members[len(found) :], uses)


def _are_alike(first: Member, second: Member) -> bool:
    """Whether two sums go along with each other, axis by axis."""
    extents = first.other.extent == second.other.extent
    return extents and first.stage.shape == second.stage.shape and first.place == second.place


def _width(side: Axis, loops: Sequence[Loop], machine: Machine) -> int:
    shared = any(loop.axis is side and loop.kind is LoopKind.PARALLEL for loop in loops)
    least = BUNDLES_PER_CORE * machine.cores if shared else 1
    return next((width for width in WIDTHS if side.extent >= least * width), WIDTHS[-1])


def _side(places: Places, root: Stage) -> Axis | None:
    """The axis of the loop in which all else in a kernel is computed."""
    attached = places.attached.get(root, [])
    sites = {site.plain for stage in attached if (site := places.plans[stage].compute_at)}
    nested = any(places.attached.get(stage) for stage in attached)
    if root.row_axis or root.scatter or nested or len(sites) > 1:
        return None
    site = next(iter(sites), None)
    if any(not _is_kept_well(places, stage, root, site) for stage in attached):
        return None
    axis = site.loop.axis if site and site.loop else None
    if site is None and root.axes:
        axis = root.axes[-1]
    loops = [loop for loop in places.plans[root].loops if loop.axis is axis]
    return axis if axis in root.axes and len(loops) == 1 else None


def _is_kept_well(places: Places, stage: Stage, root: Stage, site: Site | None) -> bool:
    """Whether a stage is kept where it is computed; or for later, a sum beside another one."""
    kept, plan = places.storage(stage), places.plans[stage]
    if root.reduce_axes and stage.reduce_axes:
        return kept is None and plan.compute_at is not None and bool(plan.compute_at.aligned)
    return kept == site and plan.compute_at == site


def _sum(
    places: Places, stage: Stage, root: Stage, side: Axis, inlined: Collection[Stage]
) -> Member | None:
    """A reduction that goes along its only reduced axis, one float after the other."""
    plan = places.plans[stage]
    loops = [loop.axis for loop in plan.loops]
    if stage.order is not Order.SERIAL or stage.dtype.kind != "f" or stage.scatter:
        return None
    if len(stage.reduce_axes) > 1 or loops != [*stage.axes, *stage.reduce_axes]:
        return None
    if plan.loops[-1].kind is LoopKind.UNROLL:  # side by side already
        return None
    own, other = side, stage.reduce_axes[0]
    if stage is not root:
        site = plan.compute_at
        along = {leader: axis for axis, leader in site.aligned} if site else {}
        found = along.get(side) or _axis_along(stage, side, reads_through(root, inlined))
        if found is None:
            return None
        own = found
    return Member(stage, own, other) if other.extent >= LEAST_LENGTH else None


def _pair(
    places: Places, stage: Stage, sums: Sequence[Member], inlined: Collection[Stage]
) -> Member | None:
    """What is computed of each pair, element by element, for the sums alone."""
    readers = places.readers[stage]
    reading = [member for member in sums if member.stage in readers]
    if len(reading) < len(readers) or stage.row_axis or stage.scatter:
        return None
    found = set()
    for member in reading:
        loads = list(reads_through(member.stage, inlined))
        axes = [_axis_along(stage, axis, loads) for axis in (member.side, member.other)]
        found.add(tuple(axes))
    side, other = found.pop() if len(found) == 1 else (None, None)
    return Member(stage, side, other) if side and other else None


def _axis_along(source: Stage, axis: Axis, loads: Iterable[Load]) -> Axis | None:
    """The axis of a source that a reader's axis goes along, wherever it reads it."""
    places = {
        tuple([only_axis(index) is axis for index in load.indices])
        for load in loads
        if load.source is source and not load.data
    }
    place = places.pop() if len(places) == 1 else ()
    return source.axes[place.index(True)] if place.count(True) == 1 else None


def _meets_pairs(member: Member, members: Sequence[Member], inlined: Collection[Stage]) -> bool:
    """Whether lanes find what they read side by side, or all the same, whatever the data is."""
    sums = [other.stage for other in members if other.stage.reduce_axes]
    pairs = [other.stage for other in members if not other.stage.reduce_axes]
    for load in reads_through(member.stage, inlined):
        both = depends_on(load, member.side) and depends_on(load, member.other)
        apart = both and place_of(load).coefficient(member.side) != 1
        if load.data or load.source in sums or (apart and load.source not in pairs):
            return False
    return not any(
        isinstance(node, IndexTest) or (isinstance(node, Load) and node.data)
        for stage in with_inlined(member.stage, inlined)
        for expression in stage.expressions
        for node in walk(expression)
    )


# --- how ------------------------------------------------------------------------------------------


def _plans(places: Places, bundle: Bundle) -> dict[Stage, StagePlan]:
    """The plans of all stages, with the sums of a bundle side by side."""
    plans = dict(places.plans)
    root, (leader, *others) = bundle.root, bundle.sums
    steps, inner = _steps(plans[root].loops, bundle), Site(leader.stage, Loop(leader.other))
    kept = None
    if leader.stage is root:
        plans[root] = replace(plans[root], loops=(*steps, *leader.loops[-2:]))
    else:
        kept = Site(root, steps[-1])
        place = len(steps) - 1
        rolled = replace(plans[root].loops[place], kind=LoopKind.SERIAL)
        plans[root] = replace(plans[root], loops=(*steps, rolled, *plans[root].loops[place + 1 :]))
        plans[leader.stage] = StagePlan(leader.loops, compute_at=kept)
    for member in others:
        own, axes = ((*each.stage.axes, each.other) for each in (member, leader))
        site = replace(inner, aligned=tuple(zip(own, axes, strict=True)))
        before = places.plans[member.stage]
        plans[member.stage] = replace(
            before, loops=member.loops, compute_at=site, store_at=kept or before.store_at
        )
    for member in bundle.pairs:
        inlined = bundle.uses[member.stage] == 1
        plans[member.stage] = StagePlan(member.loops, inlined, None if inlined else inner)
    return plans


def _steps(loops: Sequence[Loop], bundle: Bundle) -> tuple[Loop, ...]:
    """The root's loops down to the one over bundles."""
    place = [loop.axis for loop in loops].index(bundle.side)
    kind = loops[place].kind
    shared = kind if kind is LoopKind.PARALLEL else LoopKind.SERIAL
    return (*loops[:place], Loop(bundle.side, bundle.width, shared))
