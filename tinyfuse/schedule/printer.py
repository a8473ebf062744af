"""Schedules as text."""

from __future__ import annotations

from tinyfuse.loops.ir import LoopKind
from tinyfuse.schedule.places import Loop, Place, Site, StagePlan
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.ir import Stage


def schedule_text(schedule: Schedule) -> str:
    """One line for each stage: where it is computed and its loops, outermost first."""
    lines = [f"schedule {schedule.stages.name}"]
    lines += [
        f"  {stage.name}: {_plan_text(stage, schedule[stage])}" for stage in schedule.stages.stages
    ]
    return "\n".join(lines) + "\n"


def _plan_text(stage: Stage, plan: StagePlan) -> str:
    if plan.inlined:
        return "inline"
    loops = ", ".join(_loop_text(stage, loop) for loop in plan.loops) or "no loops"
    loops += "; streamed" if plan.streamed else ""
    site = plan.compute_at
    if site is None:
        return f"root; {loops}"
    kept = f"; store_at({_place_text(plan.store_at)})" if plan.store_at else ""
    return f"{_directive(site)}({_place_text(site)}){kept}; {loops}"


def _directive(site: Site) -> str:
    return "compute_with" if site.aligned else "compute_at"


def _place_text(place: Site | Place) -> str:
    if isinstance(place, Place):
        return place.value
    return f"{place.stage.name}, {_name(place.loop)}" if place.loop else place.stage.name


def _loop_text(stage: Stage, loop: Loop) -> str:
    extent = loop.axis.extent
    kind = "" if loop.kind is LoopKind.SERIAL else f" {loop.kind.value}"
    reduced = " reduced" if loop.axis in stage.reduce_axes else ""
    return f"{_name(loop)} < {extent}{reduced}{kind}"


def _name(loop: Loop) -> str:
    return loop.axis.name if loop.step == 1 else f"{loop.axis.name} by {loop.step}"
