"""What is computed in vectors along another axis than the last one, and written across.

The columns of a tile are the lanes of vectors, as the channels of a convolution are, though rows of
another axis lie side by side in what is stored. What follows the sums is computed in these lanes as
well, in a local array whose columns lie side by side; `lower.transposes` writes that, whole vectors
at a time. So arrays between convolutions stay as the program has them. Channels last inside, both
ends converted, took as long as channels first throughout or longer: 1.01 to 1.02 of the time in
pairs of 3 by 3 (64, 56 by 56; 256, 14 by 14), 1.01 to 1.03 where depthwise ones are between
pointwise ones, 1.10 to 1.16 in bottlenecks, 0.97 of 16 channels and 1.7 of 8. It was 0.96 of 512
channels of 7 by 7, and with vectors of 32 bytes 0.86 of 16 channels: but its sums go through the
channels last, which gives other bits. In the order of a program that has channels first, 512
channels of 7 by 7 took 1.03 to 1.06 of the time with sums stored channels last, and 1.23 with the
padded image so, where each step from channel to channel touches all of its lines.
"""

from __future__ import annotations

from collections.abc import Container

from tinyfuse.loops.ir import LoopKind
from tinyfuse.loops.transposes import lanes_for
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.cost import stage_bytes
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import place_of, reads_through
from tinyfuse.schedule.places import Loop, Places
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.copies import changes
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage


def in_lanes_of(product: Stage, columns: Axis, local: Stage, stage: Stage) -> Decision:
    """The decision on a local array of a stage that takes what a product gives."""
    reason = (
        f"its {columns.name} lies in vectors, as in {product.name}, and is written across:"
        f" {stage.name} stays as the program has it, {stage_bytes(stage)} bytes are transposed"
    )
    return Decision(local.name, (stage.name,), "cache_write", reason)


def has_lanes(places: Places, stage: Stage, columns: Axis, local: Container[Stage]) -> bool:
    """Whether what a stage reads lies along an axis of it, or is the same along it.

    local: what is laid out as is needed.
    """
    if stage.row_axis or stage.scatter or stage.scan:
        return False
    loads = [x for x in reads_through(stage, places.inlined) if x.source not in local]
    return all(not load.data and place_of(load).coefficient(columns) in (0, 1) for load in loads)


def is_transposed(stage: Stage, rows: int, columns: int, machine: Machine) -> bool:
    """Whether blocks of so many rows and columns of a stage are written in whole vectors."""
    least = min(rows, columns)
    return lanes_for(stage.dtype.itemsize, least, machine.vector_bytes) is not None


def is_along(schedule: Schedule, stage: Stage, columns: Axis) -> bool:
    """Whether a stage's elements along an axis lie side by side in its memory."""
    layout = schedule[stage].layout
    return (layout[-1].axis if layout else stage.axes[-1]) is columns


def computed_along(schedule: Schedule, stage: Stage, columns: Axis, depth: int) -> Schedule:
    """With what a stage's loops compute, inside of so many of them, in a local array whose columns
    lie side by side, and the stage a copy of that.

    The loops inside, but for the one over the columns, the last, stay those of the local array.
    """
    place, at = stage.axes.index(columns), schedule[stage].loops[depth - 1]
    schedule = schedule.cache_write(stage, at)
    copy = schedule.current(stage)
    plan = schedule[copy]
    *others, inner = [loop for loop in plan.loops[depth:] if loop.axis is not copy.axes[place]]
    written = (Loop(copy.axes[place]), *others, replace(inner, kind=LoopKind.VECTOR))
    plans = {**schedule.places.plans, copy: replace(plan, loops=(*plan.loops[:depth], *written))}
    local = schedule.stage(changes(schedule.stages)[-1].name)
    return laid_out(type(schedule)(schedule.stages, plans, "turn"), local, place)


def laid_out(schedule: Schedule, stage: Stage, place: int) -> Schedule:
    """With the axis at a place of a stage's the innermost one in memory."""
    columns = stage.axes[place]
    return schedule.layout(stage, *[axis for axis in stage.axes if axis is not columns], columns)
