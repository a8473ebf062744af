"""Rows that read the same elements again and again, as `np.tile` makes, go through them in turn.

An index that is a remainder costs a division for each element and keeps a loop from being
vectorized. In a loop over one period of it there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tinyfuse.loops.ir import LoopKind
from tinyfuse.records import replace
from tinyfuse.schedule.loop_order import loads_through
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.analysis import only_axis
from tinyfuse.stage.index import Affine, Axis, Quotient, Remainder
from tinyfuse.stage.ir import Stage

# Elements of a period from which on a loop over them is worth its while.
LEAST_PERIOD = 16
# Elements side by side that come from as many arrays, as the parts of complex numbers do.
PARTS = 2


def split_at_periods(schedule: Schedule, alone: Collection[str]) -> Schedule:
    """Split the last loop of the stages at the root whose reads have one period along it.

    alone: names of stages that stay as they are.
    """
    for stage in schedule.stages.stages:
        stage = schedule.current(stage)
        if stage.name not in alone and _has_plain_loops(schedule, stage):
            periods = _periods(schedule, stage)
            if len(periods) == 1:
                schedule = _split(schedule, stage, periods.pop())
    return schedule


def _has_plain_loops(schedule: Schedule, stage: Stage) -> bool:
    """Whether it is computed by itself, in one loop for each axis."""
    plan = schedule[stage]
    if plan.inlined or plan.compute_at or stage.reduce_axes or stage.row_axis or stage.scatter:
        return False
    last = plan.loops[-1] if plan.loops else None
    if last is None or any(
        loop is not None and loop.same(last)
        for each, loop in schedule.places.sites
        if each is stage
    ):
        return False
    return [loop.axis for loop in plan.loops] == [*stage.axes] and plan.loops[-1].step == 1


def _periods(schedule: Schedule, stage: Stage) -> set[int]:
    """The divisors of the last axis in the indices of what is read, where it is longer."""
    axis, inlined = stage.axes[-1], schedule.places.inlined
    indices = [index for load in loads_through(stage, inlined) for index in load.indices]
    found = {period for index in indices for period in _divisors(index, axis)}
    if any(_alternates(index, axis) for index in indices):
        return {PARTS}
    return {period for period in found if LEAST_PERIOD <= period < axis.extent}


def _alternates(index: Affine, axis: Axis) -> bool:
    """Whether an index is 0 and 1 in turn."""
    if len(index.terms) != 1 or index.constant:
        return False
    ((term, coefficient),) = index.terms
    if not isinstance(term, Remainder) or term.divisor != PARTS or coefficient != 1:
        return False
    return only_axis(term.index) is axis


def _divisors(index: Affine, axis: Axis) -> Iterator[int]:
    for term, _ in index.terms:
        if isinstance(term, (Quotient, Remainder)):
            if only_axis(term.index) is axis:
                yield term.divisor
            else:
                yield from _divisors(term.index, axis)


def _split(schedule: Schedule, stage: Stage, period: int) -> Schedule:
    plan = schedule[stage]
    *others, last = plan.loops
    loops = (*others, replace(last, step=period), replace(last, kind=LoopKind.VECTOR))
    if last.kind is not LoopKind.PARALLEL:
        loops = (*others, Loop(last.axis, period), last)
    if period == PARTS:
        loops = (*loops[:-1], replace(loops[-1], kind=LoopKind.UNROLL))
    plans = {**schedule.places.plans, stage: replace(plan, loops=loops)}
    return Schedule(schedule.stages, plans, "split")
