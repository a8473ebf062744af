"""Plans of programs with copies: what `cache_read`, `cache_write`, `pad` and `wrap` make of
a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.records import replace
from tinyfuse.schedule.edits import root_plan, with_loop
from tinyfuse.schedule.places import Loop, Places, Site, StagePlan
from tinyfuse.stage.copies import (
    CacheRead,
    CacheWrite,
    Pad,
    changed,
    current,
    fresh_name,
    has_room,
    is_along,
)
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.stage.wrapping import Wrap, rounds_of

Plans = dict[Stage, StagePlan]


# --- what is read ---------------------------------------------------------------------------------


def with_read_copied(
    places: Places,
    stage: Stage,
    source: Stage,
    loop: Loop | None,
    along: Axis | None,
    index: Axis | None,
) -> tuple[Stages, Plans]:
    """A program where a stage reads a copy of a source, made in a loop of it, and the plans.

    along, index: as of the directive. Raises ScheduleError where the stage does not read the
    source, or must not read a copy.
    """
    if index is not None and (along is None or index not in source.axes):
        raise ScheduleError(f"{index.name} is no axis of {source.name} that goes along with one")
    readers = tuple(_direct_readers(places, stage, source, along, index).items())
    if not readers:
        where = f" at indices that depend on {along.name}" if along else ""
        raise ScheduleError(f"it does not read {source.name}{where}")
    name = fresh_name(f"{source.name}_copy", places.stages)
    stages = changed(places.stages, CacheRead(name, source, readers, index))
    plans = carried(places.plans, stages)
    copy = next(each for each in stages.stages if each.name == name)
    site = Site(current(stage, stages), loop) if loop else None
    return stages, {**plans, copy: replace(root_plan(copy), compute_at=site)}


def _direct_readers(
    places: Places, stage: Stage, source: Stage, along: Axis | None, index: Axis | None
) -> dict[Stage, Axis | None]:
    """What loads a source: the stage, or what is inlined into it. With the axis of each that goes
    along with the one given of the stage."""
    moving: dict[Stage, set[Axis]] = {stage: {along} if along else set()}
    found: dict[Stage, Axis | None] = {}
    for reader in reversed(places.stages.stages):
        if reader not in moving:
            continue
        for load in reader.reads():
            axes = moving[reader]
            if load.source is source and (
                along is None or any(is_along(load, axis, index) for axis in axes)
            ):
                if len(axes) > 1:
                    raise ScheduleError(f"more than one axis of {reader.name} goes along with it")
                found[reader] = next(iter(axes), None)
            plan = places.plans.get(load.source)
            if plan is not None and plan.inlined:
                moving.setdefault(load.source, set()).update(_moved_axes(load, axes))
    return found


def _moved_axes(load: Load, moving: set[Axis]) -> Iterator[Axis]:
    """The axes of what is loaded whose indices depend on some axes of the reader."""
    places = zip(load.source.axes[len(load.data) :], load.indices, strict=True)
    return (own for own, index in places if any(axis in moving for axis in index.axes()))


# --- what is computed -----------------------------------------------------------------------------


def with_local(
    places: Places, stage: Stage, loop: Loop | None, registers: bool
) -> tuple[Stages, Plans]:
    """A program where a reduction is computed in a stage of its own inside a loop, and its plans.

    registers: as of a plan.

    Raises ScheduleError where the stage is no chain, or its reduction begins outside of the loop.
    """
    loops = places.plans[stage].loops
    depth = loops.index(loop) + 1 if loop else 0
    if any(each.axis in stage.reduce_axes for each in loops[:depth]):
        raise ScheduleError("its reduction has begun outside of that loop")
    name = fresh_name(f"{stage.name}_local", places.stages)
    stages = changed(places.stages, CacheWrite(name, stage))
    local = next(each for each in stages.stages if each.name == name)
    own = dict(zip(stage.axes, local.axes, strict=True))
    outer = [Loop(own[each.axis], each.step) for each in loops[:depth]]
    inner = {each: replace(each, axis=own.get(each.axis, each.axis)) for each in loops[depth:]}
    plans = carried(places.plans, stages, lambda site: _moved_in(site, stage, local, inner, own))
    copy = next(new for old, new in zip(places.plans, plans, strict=True) if old is stage)
    kept = [each for each in loops if each.axis not in stage.reduce_axes]
    plans[copy] = replace(plans[copy], loops=tuple(map(rolled, kept)), prefetch=None)
    plans[local] = StagePlan(
        (*outer, *inner.values()), compute_at=Site(copy, loop), registers=registers
    )
    return stages, plans


def rolled(loop: Loop) -> Loop:
    """A loop as it is in memory, where an unrolled one had registers in mind."""
    return replace(loop, kind=LoopKind.SERIAL) if loop.kind is LoopKind.UNROLL else loop


def _moved_in(
    site: Site, stage: Stage, local: Stage, inner: Mapping[Loop, Loop], own: Mapping[Axis, Axis]
) -> Site:
    """Where something happens that happened in a loop which the local stage has now."""
    if site.stage is not stage or site.loop is None or site.loop not in inner:
        return site
    aligned = tuple([(axis, own.get(leader, leader)) for axis, leader in site.aligned])
    return Site(local, inner[site.loop], aligned)


# --- past the end ---------------------------------------------------------------------------------


def with_padding(places: Places, stage: Stage, loop: Loop) -> tuple[Stages, Plans]:
    """A program where an axis of a stage has whole steps of a loop alone, and its plans.

    So have the axes of what is inlined into it, unless the stage is a copy: that reads nothing past
    the end then. Raises ScheduleError where there is no room there.
    """
    stages, plans, axis = places.stages, dict(places.plans), loop.axis
    extent = loop.steps * loop.step
    for each, along in _padded_with(places, stage, axis) if extent > axis.extent else ():
        change = Pad(current(each, stages), along, extent)
        if each is not stage and not has_room(change):
            if isinstance(stage.body, Load):
                continue
            raise ScheduleError(f"what {each.name} reads ends where {along.name} does")
        stages, plans, axis = _padded(stages, plans, change)
    known = replace(loop, axis=axis)
    padded = replace(known, shifted=False, padded=True)
    return stages, with_loop(plans, current(stage, stages), known, padded)


def _padded_with(places: Places, stage: Stage, axis: Axis) -> list[tuple[Stage, Axis]]:
    """A stage and what is inlined into it, with the axes that go along with one of its; producers
    first."""
    found = {stage: axis}
    for reader in reversed(places.stages.stages):
        for load in reader.reads() if reader in found else ():
            plan = places.plans.get(load.source)
            if plan is not None and plan.inlined:
                own = next(iter(_moved_axes(load, {found[reader]})), None)
                if own is not None:
                    found.setdefault(load.source, own)
    return list(found.items())[::-1]


def _padded(stages: Stages, plans: Plans, change: Pad) -> tuple[Stages, Plans, Axis]:
    """A program with one padded stage more, its plans, and the longer axis."""
    stages, stage = changed(stages, change), change.stage
    place = stage.axes.index(change.axis)
    return stages, _with_longer(plans, stages, {stage: place}), current(stage, stages).axes[place]


def with_rounds(
    places: Places, stage: Stage, axis: Axis, before: int, after: int
) -> tuple[Stages, Plans]:
    """A program where an axis of a stage goes round, and its plans.

    So do the axes of what is inlined into it. Raises ScheduleError where one cannot.
    """
    if axis not in stage.axes:
        raise ScheduleError(f"{axis.name} is not one of its axes, or is reduced")
    place, wanted = stage.axes.index(axis), {stage: (before, after)}
    rounds = rounds_of(places.stages, place, wanted, places.inlined)
    if not rounds:
        raise ScheduleError("there are no elements to go on with")
    stages = changed(places.stages, Wrap(rounds))
    longer = {each: known.place for each, known in rounds}
    return stages, _with_longer(places.plans, stages, longer)


def _with_longer(
    plans: Mapping[Stage, StagePlan], stages: Stages, longer: Mapping[Stage, int]
) -> Plans:
    """The plans of a program in which an axis of some stages is longer now. longer: which."""
    axes = {
        stage: (stage.axes[place], current(stage, stages).axes[place])
        for stage, place in longer.items()
    }

    def now(loop: Loop, stage: Stage) -> Loop:
        old, new = axes[stage]
        return replace(loop, axis=new) if loop.axis is old else loop

    def moved(site: Site) -> Site:
        inside = site.loop is not None and site.stage in axes
        return replace(site, loop=now(site.loop, site.stage)) if inside else site  # type: ignore

    found = carried(plans, stages, moved)
    for stage, (old, new) in axes.items():
        plan = found[current(stage, stages)]
        found[current(stage, stages)] = replace(
            plan,
            loops=tuple([now(loop, stage) for loop in plan.loops]),
            ring=plan.ring and (new if plan.ring[0] is old else plan.ring[0], plan.ring[1]),
            layout=plan.layout and tuple([now(part, stage) for part in plan.layout]),
            prefetch=None,
        )
    return found


# --- plans of the program before ------------------------------------------------------------------


def carried(
    plans: Mapping[Stage, StagePlan],
    stages: Stages,
    moved: Callable[[Site], Site] = lambda site: site,
) -> Plans:
    """The plans of a program's stages for what has become of them. moved: another place for one."""
    assert stages.origin
    replaced = stages.origin.replaced

    def now(site: Site) -> Site:
        site = moved(site)
        return replace(site, stage=replaced.get(site.stage, site.stage))

    def carried_plan(plan: StagePlan) -> StagePlan:
        at, kept, ahead = plan.compute_at, plan.store_at, plan.prefetch
        if not (at or kept or ahead):
            return plan
        return replace(
            plan,
            compute_at=at and now(at),
            store_at=now(kept) if isinstance(kept, Site) else kept,
            prefetch=ahead
            and replace(
                ahead, source=replaced.get(ahead.source, ahead.source), ahead=now(ahead.ahead)
            ),
        )

    return {replaced.get(stage, stage): carried_plan(plan) for stage, plan in plans.items()}
