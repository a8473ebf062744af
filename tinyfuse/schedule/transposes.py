"""What a stage reads across its rows is copied tile by tile, so that it lies as the stage does.

Each row of the stage would touch as many lines of memory as it has elements. Of a tile of both only
few lines are touched, each as a whole, and `lower.transposes` copies it in vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinyfuse.loops.ir import LoopKind
from tinyfuse.loops.transposes import lanes_for
from tinyfuse.machine import LINE_BYTES, Machine
from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import SQUARE, loads_through, place_of, with_inlined
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.analysis import only_axis
from tinyfuse.stage.copies import changes, is_along
from tinyfuse.stage.expr import IndexTest, Load, walk
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Stage

# Rows and columns of a block from which on a copy is worth its while.
LEAST_EXTENT = 8
# Tiles for each core from which on threads share them.
TILES_PER_CORE = 2


@dataclass(frozen=True, slots=True)
class Across:
    """What a stage reads along its last axis that lies along another one, its rows.

    index: the axis of the source that lies so, where the same source is read otherwise as well.
    """

    load: Load
    rows: Axis
    index: Axis | None


@dataclass(frozen=True, slots=True)
class Tile:
    """`size` rows and columns of a stage, and what is copied."""

    stage: Stage
    rows: Axis
    columns: Axis
    size: int
    copied: tuple[Across, ...]


def copy_transposed(
    schedule: Schedule, decisions: Sequence[Decision], machine: Machine, alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Copy what stages at the root read across their rows.

    decisions: on all stages. What is returned has those on the stages that are added as well.
    alone: names of stages that stay as they are.
    """
    known = {decision.producer: decision for decision in decisions}
    for stage in schedule.stages.stages:
        tile = _tile(schedule, schedule.current(stage), machine)
        if tile is not None and stage.name not in alone:
            schedule = _tiled(schedule, tile, machine)
            for each in tile.copied:
                schedule, copy = _with_copy(schedule, tile, each)
                known[copy.name] = _decision(copy, tile)
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _decision(copy: Stage, tile: Tile) -> Decision:
    reason = (
        f"{tile.stage.name} reads it along {tile.columns.name}, across its rows:"
        f" {tile.size} by {tile.size} elements at a time are copied, and lie along it"
    )
    return Decision(copy.name, (tile.stage.name,), "cache_read", reason)


# --- which ----------------------------------------------------------------------------------------


def _tile(schedule: Schedule, stage: Stage, machine: Machine) -> Tile | None:
    """The tile of a stage in whose loops no other one is computed; None if it reads nothing across
    its rows."""
    places, plan = schedule.places, schedule[stage]
    if plan.inlined or plan.compute_at or not stage.axes:
        return None
    if any(loop is not None for each, loop in places.sites if each is stage):
        return None
    if stage.reduce_axes or stage.row_axis or stage.scatter or _has_edges(schedule, stage):
        return None
    columns, found = stage.axes[-1], _across(schedule, stage)
    if not found:
        return None
    rows = found[0].rows
    sizes = [stage.dtype.itemsize, *[each.load.dtype.itemsize for each in found]]
    size, least = max(SQUARE, LINE_BYTES // min(sizes)), min(rows.extent, columns.extent)
    copied = [
        each
        for each in found
        if each.rows is rows and lanes_for(each.load.dtype.itemsize, least, machine.vector_bytes)
    ]
    if not copied or least < LEAST_EXTENT:
        return None
    return Tile(stage, rows, columns, size, tuple(copied))


def _has_edges(schedule: Schedule, stage: Stage) -> bool:
    """Whether the place of an element decides what is read for it."""
    return any(
        isinstance(node, IndexTest)
        for each in with_inlined(stage, schedule.places.inlined)
        for expression in each.expressions
        for node in walk(expression)
    )


def _across(schedule: Schedule, stage: Stage) -> list[Across]:
    """What a stage reads across rows, each of a source of which it reads nothing else so."""
    inlined, found = schedule.places.inlined, []
    loads = {(load.source, load.indices): load for load in loads_through(stage, inlined)}
    for load in loads.values():
        rows = None if load.source in inlined else _rows(load, stage)
        if rows is None or _computed_elsewhere(schedule, stage, load.source):
            continue
        others = [o for o in loads.values() if o.source is load.source and o is not load]
        pairs = zip(load.source.axes, load.indices, strict=True)
        index = next(axis for axis, place in pairs if place.depends_on(rows))
        if not others:
            found.append(Across(load, rows, None))
        elif not any(is_along(o, rows, index) for o in others) and _is_told_apart(load, loads):
            found.append(Across(load, rows, index))
    return found


def _computed_elsewhere(schedule: Schedule, stage: Stage, source: Stage) -> bool:
    """Whether something that reads a source is inlined into this stage and another one, which
    would read the copy as well."""
    readers = [s for s in with_inlined(stage, schedule.places.inlined) if _reads(s, source)]
    return any(len(schedule.places.hosts[s]) > 1 for s in readers if s is not stage)


def _is_told_apart(load: Load, places: Collection[tuple[Stage, tuple[Affine, ...]]]) -> bool:
    """Whether each inlined stage that reads the source of a load is itself read at one place."""
    readers = [stage for stage, _ in places if _reads(stage, load.source)]
    return len(set(readers)) == len(readers)


def _reads(stage: Stage, source: Stage) -> bool:
    return not stage.is_input and any(load.source is source for load in stage.reads())


def _rows(load: Load, stage: Stage) -> Axis | None:
    """The axis along which the rows lie that a load goes through across, if it does.

    Where data decides the place, also of what is inlined, it is along an axis of no stage.
    """
    moving = [index - index.constant for index in load.indices if not index.is_constant]
    axes = [axis for axis in map(only_axis, moving) if axis and axis in stage.axes]
    if load.data or len(axes) < len(moving) or len(set(axes)) < len(axes):
        return None
    place = place_of(load)
    if place.coefficient(stage.axes[-1]) <= 1:
        return None
    return next((axis for axis in axes if place.coefficient(axis) == 1), None)


# --- how ------------------------------------------------------------------------------------------


def _tiled(schedule: Schedule, tile: Tile, machine: Machine) -> Schedule:
    """The schedule with the loops of a stage in tiles."""
    plan = schedule[tile.stage]
    rows, columns = Loop(tile.rows, tile.size), Loop(tile.columns, tile.size)
    wanted = TILES_PER_CORE * machine.cores
    is_shared = any(loop.kind is LoopKind.PARALLEL for loop in plan.loops)
    by_columns = is_shared and rows.steps < wanted <= columns.steps
    others = [Loop(axis) for axis in tile.stage.axes if axis not in (tile.rows, tile.columns)]
    outer = [*others, *([columns, rows] if by_columns else [rows, columns])]
    if is_shared:
        shared = next((loop for loop in outer if loop.steps > 1), outer[0])
        outer.remove(shared)
        outer.insert(0, replace(shared, kind=LoopKind.PARALLEL))
    loops = (*outer, Loop(tile.rows), Loop(tile.columns, 1, LoopKind.VECTOR))
    plans = {**schedule.places.plans, tile.stage: replace(plan, loops=loops)}
    return Schedule(schedule.stages, plans, "tile")


def _with_copy(schedule: Schedule, tile: Tile, across: Across) -> tuple[Schedule, Stage]:
    """With a copy of what is read in a tile, its axes in the order of the stage's."""
    stage, load = schedule.current(tile.stage), across.load
    along = tile.rows if across.index else None
    innermost = [loop for loop in schedule[stage].loops if loop.step == tile.size][-1]
    schedule = schedule.cache_read(stage, load.source, innermost, along, across.index)
    copy = schedule.stage(changes(schedule.stages)[-1].name)
    places = {axis: at for at, index in enumerate(load.indices) for axis in index.axes()}
    order = [places[axis] for axis in tile.stage.axes if axis in places]
    fixed = [at for at in range(len(copy.axes)) if at not in order]
    return schedule.layout(copy, *[copy.axes[at] for at in (*fixed, *order)]), copy
