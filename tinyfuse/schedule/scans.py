"""Running sums of several rows at a time.

Each element of a running sum of floating-point numbers waits for the one before. Rows do not wait
for each other, so a few of them go side by side, as many as their additions take cycles.
"""

from __future__ import annotations

from tinyfuse.loops.ir import LoopKind
from tinyfuse.records import replace
from tinyfuse.schedule.places import Loop, Places
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.ir import Stage

# Rows side by side. More would be as many streams of memory, whose lines push each other out of the
# caches where rows begin at multiples of a page.
WIDTH = 4
# Elements of a row from which on it is worth while.
LEAST_LENGTH = 32


def scan_side_by_side(schedule: Schedule) -> Schedule:
    """Let the rows of each kernel that is a running sum along them go side by side."""
    plans = dict(schedule.places.plans)
    for root in schedule.places.kernels:
        loops = _loops(schedule.places, root)
        if loops:
            plans[root] = replace(plans[root], loops=loops)
    same = plans == schedule.places.plans
    return schedule if same else Schedule(schedule.stages, plans, "scan side by side")


def _loops(places: Places, root: Stage) -> tuple[Loop, ...] | None:
    """Those of a stage that goes along its last axis alone, in a kernel of its own."""
    loops = places.plans[root].loops
    if len(loops) < 2 or root.dtype.kind != "f" or places.attached.get(root):
        return None
    *outer, rows, along = loops
    if along.axis is not root.scan or along.axis is not root.axes[-1] or rows.step != 1:
        return None
    if rows.axis.extent < 2 * WIDTH or along.axis.extent < LEAST_LENGTH:
        return None
    side = Loop(rows.axis, 1, LoopKind.UNROLL)
    return (*outer, replace(rows, step=WIDTH), along, side)
