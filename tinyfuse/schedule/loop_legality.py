"""What the loops of a stage may not be: each check refuses one kind that would compute wrongly."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import SHARED, LoopKind
from tinyfuse.schedule.places import Loop, Places, StagePlan
from tinyfuse.stage.ir import Order, Sort, Stage

# (places of a schedule, the directive that made it) -> nothing, or ScheduleError.
Check = Callable[[Places, str], None]

MOST_UNROLLED = 64  # steps

# Why a stage is computed in whole rows: it is sorted in some way, or a scan.
WHOLE_ROWS = {
    None: "each element needs the one before it",
    Sort.ELEMENTS: "its rows are sorted as a whole",
    Sort.POSITIONS: "its rows are sorted as a whole",
}


def of(directive: str, stage: Stage) -> str:
    """The directive, and the stage that it does not name."""
    return directive if f"({stage.name})" in directive else f"{directive}: {stage.name}"


def _check_axes(places: Places, directive: str) -> None:
    """Every element is computed, and by one loop: the loops over an axis differ in their steps, and
    the innermost one goes by single elements."""
    for stage, plan in places.plans.items():
        axes = (*stage.axes, *stage.reduce_axes)
        parts = [(loop.axis, loop.step) for loop in plan.loops]
        for axis, step in dict.fromkeys([*parts, *[(axis, 1) for axis in axes]]):
            count = parts.count((axis, step))
            if axis not in axes or count != 1:
                wanted = "one" if axis in axes else "none: it is no axis of it"
                raise ScheduleError(
                    f"{of(directive, stage)} would have {count} loops over {axis.name} in steps of"
                    f" {step}, not {wanted}"
                )


def _check_parts(places: Places, directive: str) -> None:
    """The parts of a split axis lie in one another."""
    for stage, plan in places.plans.items():
        for axis in (*stage.axes, *stage.reduce_axes):
            steps = [loop.step for loop in plan.loops if loop.axis is axis]
            if steps != sorted(steps, reverse=True):
                raise ScheduleError(
                    f"{of(directive, stage)}: the inner part of {axis.name} would lie outside its"
                    f" outer part"
                )


def _check_summation(places: Places, directive: str) -> None:
    """Reductions run in the order that their meaning says."""
    for stage, plan in places.plans.items():
        reduced = [
            stage.reduce_axes.index(loop.axis)
            for loop in plan.loops
            if loop.axis in stage.reduce_axes
        ]
        if reduced != sorted(reduced):
            raise ScheduleError(f"{of(directive, stage)}: the order of summation would change")
        if stage.order is not Order.SERIAL and len(reduced) > 1:
            raise ScheduleError(f"{of(directive, stage)}: the rounds of a tree cannot be split")


def _check_shifts(places: Places, directive: str) -> None:
    """Elements are computed a second time only where that gives the same again."""
    for stage, plan in places.plans.items():
        for place, loop in enumerate(plan.loops):
            if not loop.shifted:
                continue
            at = f"{of(directive, stage)}: the last step of {loop.axis.name} by {loop.step}"
            started = any(outer.axis in stage.reduce_axes for outer in plan.loops[:place])
            if loop.axis in stage.reduce_axes or started or stage.row_axis or stage.scatter:
                raise ScheduleError(f"{at} would take elements into account twice")
            if stage.order is not Order.SERIAL:
                raise ScheduleError(f"{at} would combine elements in place twice")
            if loop.kind in SHARED:
                raise ScheduleError(f"{at} would compute elements that another thread computes")


def _check_pads(places: Places, directive: str) -> None:
    """Past the end there are elements that nothing else depends on."""
    for stage, plan in places.plans.items():
        for loop in plan.loops:
            if not loop.padded:
                continue
            at = f"{of(directive, stage)}: the last step of {loop.axis.name} by {loop.step}"
            if loop.axis not in stage.axes:
                raise ScheduleError(f"{at} would take elements into account that are not there")
            if stage.row_axis or stage.scatter or stage.order is not Order.SERIAL:
                raise ScheduleError(f"{at} would change elements that others depend on")
            if loop.shifted:
                raise ScheduleError(f"{at} cannot both begin earlier and go on past the end")


def _check_fused(places: Places, directive: str) -> None:
    """Loops are one over independent elements, with nothing in between."""
    for stage, plan in places.plans.items():
        for loop, inner in pairwise((*plan.loops, None)):
            if loop is None or not loop.fused:
                continue
            at = f"{of(directive, stage)}: {loop.axis.name} by {loop.step} is fused with the next"
            if inner is None:
                raise ScheduleError(f"{at} loop, but there is none")
            if any(
                each.axis not in stage.axes or each.axis is stage.row_axis or stage.scatter
                for each in (loop, inner)
            ):
                raise ScheduleError(f"{at} one, and their elements depend on each other")
            if inner.axis is loop.axis:
                raise ScheduleError(f"{at} one, which is over the same axis")
            kinds = (LoopKind.SERIAL, *SHARED)
            if loop.kind not in kinds or inner.kind is not LoopKind.SERIAL:
                raise ScheduleError(f"{at} one, but they run in different ways")
            if loop.shifted or inner.shifted:
                raise ScheduleError(f"{at} one, of which a last step begins earlier")
            if (stage, loop) in places.sites:
                raise ScheduleError(f"{at} one, and something is computed or kept in between")


def _check_parallel(places: Places, directive: str) -> None:
    """Threads share the outermost loop only, over elements that are independent."""
    for stage, plan in places.plans.items():
        for place, loop in enumerate(plan.loops):
            if loop.kind not in SHARED:
                continue
            words = "parallel" if loop.kind is LoopKind.PARALLEL else "bind"
            attempt = f"{words}({stage.name}, {loop.axis.name})"
            if stage.scatter:
                raise ScheduleError(f"{attempt}: its elements are put in one after the other")
            if place or loop.axis in stage.reduce_axes:
                raise ScheduleError(
                    f"{attempt}: only the outermost loop over independent elements can be shared"
                    f" by threads"
                )


def _check_vectors(places: Places, directive: str) -> None:
    """Lanes are the innermost loop, over elements that are independent."""
    for stage, plan in places.plans.items():
        for place, loop in enumerate(plan.loops):
            if loop.kind is LoopKind.VECTOR and (
                loop.axis in stage.reduce_axes
                or any(inner.kind is not LoopKind.UNROLL for inner in plan.loops[place + 1 :])
            ):
                raise ScheduleError(
                    f"vectorize({stage.name}, {loop.axis.name}): only the innermost loop over"
                    f" independent elements can be vectorized"
                )


def _check_unrolled(places: Places, directive: str) -> None:
    """The text of an unrolled loop has a bound."""
    for stage, plan in places.plans.items():
        for loop in plan.loops:
            if loop.kind is LoopKind.UNROLL and _steps(plan, loop) > MOST_UNROLLED:
                raise ScheduleError(
                    f"unroll({stage.name}): the loop has {_steps(plan, loop)} steps, more than"
                    f" {MOST_UNROLLED}; split it first"
                )


def _steps(plan: StagePlan, loop: Loop) -> int:
    """How many steps a loop has: to the end of its axis, or of the next larger step."""
    steps = [known.step for known in plan.loops if known.axis is loop.axis]
    whole = min([step for step in steps if step > loop.step], default=loop.axis.extent)
    return -(-whole // loop.step)


def _check_scans(places: Places, directive: str) -> None:
    """A scan goes along its axis in order."""
    for stage, plan in places.plans.items():
        for loop in plan.loops:
            if loop.axis is stage.scan and loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLL):
                raise ScheduleError(
                    f"{of(directive, stage)}: each element needs the one before it along"
                    f" {loop.axis.name}, whose steps run in order"
                )


def _check_sorts(places: Places, directive: str) -> None:
    """A row is sorted as a whole."""
    for stage, plan in places.plans.items():
        if not stage.sort:
            continue
        axis = stage.axes[-1]
        inside = [loop.axis is axis for loop in plan.loops]
        if inside != sorted(inside) or any(
            loop.axis is axis and loop.kind in SHARED for loop in plan.loops
        ):
            raise ScheduleError(
                f"{of(directive, stage)}: its rows are sorted as a whole, so the loops over"
                f" {axis.name} are the innermost ones, and no threads share them"
            )


LOOP_CHECKS: dict[str, Check] = {
    "axes": _check_axes,
    "parts": _check_parts,
    "summation": _check_summation,
    "shifts": _check_shifts,
    "pads": _check_pads,
    "fused loops": _check_fused,
    "parallel": _check_parallel,
    "vectors": _check_vectors,
    "unrolled": _check_unrolled,
    "scans": _check_scans,
    "sorts": _check_sorts,
}
