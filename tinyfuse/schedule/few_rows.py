"""Products of a few rows with a large matrix go through it once, in long pieces of its rows.

What is multiplied there takes less time than memory does. In tiles of registers, which are narrow,
each row would be met in short pieces, and processors ask too late for the next one. So a piece of
several rows of the matrix is added to each of the few rows of the result, which stay in the
innermost cache.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinyfuse.loops.ir import LoopKind
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import ROWS, is_even, row_part
from tinyfuse.schedule.pairs import few_rows, pair_of
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage


def stream_few_rows(
    schedule: Schedule, decisions: Sequence[Decision], machine: Machine, alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Let products of a few rows of a schedule of the planner's read a large matrix row by row.

    decisions: on all stages. alone: names of stages that stay as they are.
    """
    known = {decision.producer: decision for decision in decisions}
    plans = dict(schedule.places.plans)
    for stage in schedule.places.kernels:
        if stage.name not in alone and few_rows(schedule.places, stage, machine):
            pair = pair_of(schedule.places, stage, machine)
            assert pair is not None
            plans[stage] = replace(plans[stage], loops=_loops(stage, *pair, machine))
            reason = f"each row of what its {pair[0].extent} rows are multiplied with is read once"
            known[stage.name] = replace(known[stage.name], reason=reason)
    schedule = Schedule(schedule.stages, plans, "few rows")
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _loops(stage: Stage, rows: Axis, columns: Axis, machine: Machine) -> tuple[Loop, ...]:
    *outer, row = stage.reduce_axes
    others = [Loop(axis) for axis in stage.axes if axis not in (rows, columns)]
    even = [loop for loop in others if is_even(stage, loop, machine.cores)]
    threads = 1 if even else machine.cores
    width = row_part(columns.extent, stage.dtype.itemsize * rows.extent, threads)
    loops = [*others, Loop(columns, width), *map(Loop, outer)]
    if machine.cores > 1:
        shared = next(iter(even), loops[len(others)])
        loops.remove(shared)
        loops.insert(0, replace(shared, kind=LoopKind.PARALLEL))
    inner = [Loop(rows, 1, LoopKind.UNROLL), Loop(row, 1, LoopKind.UNROLL)]
    return (*loops, Loop(row, ROWS), Loop(columns, 1, LoopKind.VECTOR), *inner)
