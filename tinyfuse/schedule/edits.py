"""Plans of stages, edited: what directives make of them, whether that is legal or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tinyfuse.errors import ScheduleError
from tinyfuse.records import replace
from tinyfuse.schedule.places import Loop, Place, Prefetch, Site, StagePlan
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage

AnyPlace = TypeVar("AnyPlace", bound="Site | Place | None")


def root_plan(stage: Stage) -> StagePlan:
    """At the root, one loop for each axis."""
    return StagePlan(tuple([Loop(axis) for axis in (*stage.axes, *stage.reduce_axes)]))


def with_loop(
    plans: Mapping[Stage, StagePlan], stage: Stage, loop: Loop, edited: Loop
) -> dict[Stage, StagePlan]:
    """Plans with another loop of a stage in place of one, also where it says where something
    happens."""
    loops = tuple([edited if known == loop else known for known in plans[stage].loops])
    found = {**plans, stage: replace(plans[stage], loops=loops)}
    for other, plan in found.items():
        if plan.compute_at or plan.store_at or plan.prefetch:
            found[other] = replace(
                plan,
                compute_at=_moved(plan.compute_at, stage, loop, edited),
                store_at=_moved(plan.store_at, stage, loop, edited),
                prefetch=_marked(plan.prefetch, other is stage, stage, loop, edited),
            )
    return found


def placed(
    plan: StagePlan,
    inlined: bool = False,
    compute_at: Site | None = None,
    store_at: Site | None = None,
) -> StagePlan:
    """The plan of a stage that is computed elsewhere: what was said of the old place is gone."""
    moved = replace(plan, inlined=inlined, compute_at=compute_at, store_at=store_at)
    return replace(moved, ring=None, prefetch=None)


def _moved(place: AnyPlace, stage: Stage, loop: Loop, marked: Loop) -> AnyPlace:
    """A place, where its loop has become another one."""
    if isinstance(place, Site) and place.stage is stage and place.loop == loop:
        return replace(place, loop=marked)
    return place


def _marked(
    prefetch: Prefetch | None, own: bool, stage: Stage, loop: Loop, marked: Loop
) -> Prefetch | None:
    """A prefetch, where a loop of a stage is another one now; own: whether it is that stage's."""
    if prefetch is None:
        return None
    at = marked if own and prefetch.at == loop else prefetch.at
    return replace(prefetch, at=at, ahead=_moved(prefetch.ahead, stage, loop, marked))


def alignment(stage: Stage, leader: Stage, around: Sequence[Axis]) -> tuple[tuple[Axis, Axis], ...]:
    """The pairs of axes of a stage and its leader that run together: of all loops around, and of a
    reduction in loops that reduce all that go along."""
    reduces = any(axis in leader.reduce_axes for axis in around)
    free = [*stage.axes, *stage.reduce_axes]
    pairs = []
    others = [*around, *leader.axes] if reduces else [*around]
    if stage.scan:  # which goes along with what is reduced
        others.sort(key=lambda axis: axis not in leader.reduce_axes)
    for axis in dict.fromkeys(others):
        found = _companion(stage, leader, axis, free)
        if found is not None:
            free.remove(found)
            pairs.append((found, axis))
        elif axis in around:
            raise ScheduleError(
                f"compute_with({stage.name}, {leader.name}): no axis of {stage.name} goes along"
                f" with {axis.name} < {axis.extent}"
            )
    return tuple(pairs)


def _companion(stage: Stage, leader: Stage, axis: Axis, free: Sequence[Axis]) -> Axis | None:
    """The axis of a stage, of those that are free, for one of its leader's."""
    own, others = stage.axes, leader.axes
    if axis in leader.reduce_axes:
        own = stage.reduce_axes or tuple([each for each in stage.axes if each is stage.scan])
        others = leader.reduce_axes
    place = others.index(axis)
    fitting = [each for each in own if each in free and each.extent == axis.extent]
    return next((each for each in fitting if own.index(each) == place), next(iter(fitting), None))
