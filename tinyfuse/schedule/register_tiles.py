"""Sums over pairs of rows are computed tile by tile, in vectors and in registers.

Where every row of one array meets every row of another one, as in pairwise distances, each element
of the result is a chain of operations that wait for each other, along rows that lie apart in
memory. A tile of the result is computed at a time instead: its columns side by side, for which the
rows of one array are copied with their columns next to each other, and as many chains as the
processor has registers for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.copying import rolled
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import PARALLEL_ELEMENTS, place_of, reads_through, with_inlined
from tinyfuse.schedule.places import Loop, Places, Site
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.analysis import only_axis, point_cost
from tinyfuse.stage.copies import changes, copies
from tinyfuse.stage.expr import IndexTest, Load, depends_on, walk
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Order, Stage

# Vectors of columns in a tile, at least, and columns: the C compiler writes shorter loops out
# before it makes vectors.
VECTORS = 2
LEAST_WIDTH = 32
# Operations of an element, in additions, that may be written out for each row of a tile.
ROW_BUDGET = 16
# Tiles for each core from which on threads share them.
TILES_PER_CORE = 2
# Elements visited, and elements of a chain, below which copies are not worth their while.
LEAST_VISITS = 1 << 14
LEAST_LENGTH = 8
# Rows that meet each column, below which a copy of the columns is not worth its while.
LEAST_ROWS = 8


@dataclass(frozen=True, slots=True)
class Tile:
    """A reduction that is computed in tiles, and the stage in whose loops: itself, or one that
    takes each element as it is computed.

    rows, columns: axes of the latter. copied: what is read along the columns across its rows, with
    the place of the axis that the columns go along.
    """

    reduction: Stage
    root: Stage
    rows: Axis
    columns: Axis
    height: int
    width: int
    copied: tuple[tuple[Stage, int], ...]


def tile_reductions(
    schedule: Schedule, decisions: Sequence[Decision], machine: Machine, alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Tile what a schedule of the planner's computes one element after the other.

    decisions: on all stages. What is returned has those on the stages that are added as well.
    alone: names of stages that stay as they are.
    """
    known = {decision.producer: decision for decision in decisions}
    for stage in schedule.stages.stages:
        tile = _tile(schedule, schedule.current(stage), machine)
        if tile is not None and tile.reduction.name not in alone:
            schedule = _tiled(schedule, tile, machine)
            for added in schedule.stages.stages:
                if added.name not in known:
                    known[added.name] = _decision(schedule, added, tile)
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _decision(schedule: Schedule, added: Stage, tile: Tile) -> Decision:
    readers = tuple([reader.name for reader in schedule.readers(added)])
    if added.name not in copies(schedule.stages):
        reason = f"a tile of {tile.height} by {tile.width} is computed in registers, then written"
        return Decision(added.name, readers, "cache_write", reason)
    reason = (
        f"{tile.reduction.name} reads it along {tile.columns.name}, {tile.width} at a time:"
        " copied, they lie side by side"
    )
    return Decision(added.name, readers, "cache_read", reason)


# --- which ----------------------------------------------------------------------------------------


def _tile(schedule: Schedule, stage: Stage, machine: Machine) -> Tile | None:
    """How a stage could be computed in tiles; None if it is no such reduction."""
    places, root = schedule.places, _root(schedule.places, stage)
    if root is None or not _runs_along_rows(places, stage) or len(stage.axes) < 2:
        return None
    inlined = places.inlined
    loads = list(reads_through(stage, inlined))
    *_, rows, columns = stage.axes
    if _visits(stage) < LEAST_VISITS or not _are_pairs(loads, stage, inlined):
        return None
    lanes = machine.vector_bytes // stage.dtype.itemsize
    width = max(LEAST_WIDTH, VECTORS * lanes)
    height = _height(schedule, stage, machine, width // lanes)
    if rows.extent < max(LEAST_ROWS, height) or columns.extent < lanes:
        return None
    if places.plans[root].compute_at:
        height = 1
    if math.prod([axis.extent for axis in stage.reduce_axes]) < LEAST_LENGTH:
        return None
    copied = _across(loads, columns)
    if copied is None:
        return None
    own = dict(zip(stage.axes, root.axes, strict=True))
    return Tile(stage, root, own[rows], own[columns], height, width, copied)


def _root(places: Places, stage: Stage) -> Stage | None:
    """The stage in whose loops a reduction runs, if they can be tiled."""
    plan = places.plans[stage]
    if plan.inlined or places.attached.get(stage):
        return None
    if plan.compute_at is None:
        return stage
    root = plan.compute_at.stage
    if places.attached[root] != [stage] or places.readers[stage] != [root]:
        return stage if _computes_rows(places, stage) else None
    if root.reduce_axes or root.row_axis or root.scatter or places.plans[root].compute_at:
        return stage if _computes_rows(places, stage) else None
    inlined = places.inlined
    loads = [load for load in reads_through(root, inlined) if load.source is stage]
    same = all(tuple(map(only_axis, load.indices)) == root.axes for load in loads)
    return root if same and root.shape == stage.shape else None


def _computes_rows(places: Places, stage: Stage) -> bool:
    """Whether a stage computes whole rows at a time in the loops of another one."""
    site = places.plans[stage].compute_at
    assert site is not None
    loops = places.plans[site.stage].loops[: places.depth(site)]
    around = {loop.axis for loop in loops if loop.axis.extent > 1}
    return len(around) < sum(axis.extent > 1 for axis in stage.axes)


def _runs_along_rows(places: Places, stage: Stage) -> bool:
    """Whether a stage is a chain whose innermost loops all reduce."""
    if not stage.reduce_axes or stage.order is not Order.SERIAL or stage.scatter:
        return False
    if any(reader.order is not Order.SERIAL for reader in places.readers[stage]):
        return False
    loops = [loop.axis for loop in places.plans[stage].loops]
    return loops == [*stage.axes, *stage.reduce_axes]


def _are_pairs(loads: Sequence[Load], stage: Stage, inlined: Container[Stage]) -> bool:
    """Whether every row meets every column: nothing that is read depends on both, but something on
    each, and neither data nor the place decides what."""
    rows, columns = stage.axes[-2:]
    used = [{axis for index in load.indices for axis in index.axes()} for load in loads]
    if any(load.data for load in loads) or any({rows, columns} <= axes for axes in used):
        return False
    reduced = [axes for axes in used if axes.intersection(stage.reduce_axes)]
    return all(any(axis in axes for axes in reduced) for axis in (rows, columns)) and not any(
        isinstance(node, IndexTest) or (isinstance(node, Load) and node.data)
        for each in with_inlined(stage, inlined)
        for expression in each.expressions
        for node in walk(expression)
    )


def _across(loads: Sequence[Load], columns: Axis) -> tuple[tuple[Stage, int], ...] | None:
    """What is read along the columns, but not side by side; None where a copy would not help."""
    found: dict[Stage, int] = {}
    along = [load for load in loads if depends_on(load, columns)]
    for load in along:
        if place_of(load).coefficient(columns) != 1:
            others = [other for other in along if other.source is load.source]
            places = [[only_axis(i) for i in other.indices] for other in others]
            if any(place.count(columns) != 1 or place != places[0] for place in places):
                return None
            found[load.source] = places[0].index(columns)
    return tuple(found.items())


def _visits(stage: Stage) -> int:
    return math.prod([axis.extent for axis in (*stage.axes, *stage.reduce_axes)])


def _height(schedule: Schedule, stage: Stage, machine: Machine, vectors: int) -> int:
    """Rows of a tile of so many vectors each: as many as half of the registers hold, or one where
    the text would be long."""
    inlined = schedule.places.inlined
    bodies = [each.body for each in with_inlined(stage, inlined)]
    if sum(point_cost(body) for body in bodies if body is not None) > ROW_BUDGET:
        return 1
    return max(1, machine.vector_registers // (2 * vectors))


# --- how ------------------------------------------------------------------------------------------


def _tiled(schedule: Schedule, tile: Tile, machine: Machine) -> Schedule:
    """The schedule with a reduction in tiles."""
    root, reduction = tile.root, tile.reduction
    at_root = schedule[root].compute_at is None
    outer, inner = _outer(tile, machine if at_root else replace(machine, cores=1)), _inner(tile)
    plans = dict(schedule.places.plans)
    if root is not reduction:
        own = dict(zip(root.axes, reduction.axes, strict=True))
        summed = [Loop(own.get(each.axis, each.axis), each.step, each.kind) for each in inner]
        around = [Loop(own[each.axis], each.step) for each in outer]
        plans[reduction] = replace(
            plans[reduction], loops=(*around, *summed), compute_at=Site(root, outer[-1])
        )
        inner = [rolled(each) for each in inner if each.axis in root.axes]
    plans[root] = replace(plans[root], loops=(*outer, *inner))
    schedule = Schedule(schedule.stages, plans, "tile")
    if root is reduction or tile.columns.extent % tile.width:
        schedule = schedule.cache_write(root, outer[-1])
    for source, place in tile.copied:
        schedule = _with_copy(schedule, tile, source, place, machine)
    return _padded(schedule, tile)


def _outer(tile: Tile, machine: Machine) -> list[Loop]:
    """The loops over tiles: rows first, so that rows of the result are written one after the other,
    unless there are too few for the threads."""
    rows, columns = Loop(tile.rows, tile.height), Loop(tile.columns, tile.width)
    wanted = TILES_PER_CORE * machine.cores
    by_columns = _steps(rows) < wanted <= _steps(columns)
    tiles = [columns, rows] if by_columns else [rows, columns]
    loops = [*map(Loop, tile.root.axes[:-2]), *tiles]
    if machine.cores > 1 and _visits(tile.reduction) >= PARALLEL_ELEMENTS:
        shared = next(loop for loop in loops if loop.axis.extent > 1)
        loops.remove(shared)
        loops = [replace(shared, kind=LoopKind.PARALLEL), *loops]
    return [_shifted(loop) if loop.axis is tile.rows else loop for loop in loops]


def _steps(loop: Loop) -> int:
    return -(-loop.axis.extent // loop.step)


def _shifted(loop: Loop) -> Loop:
    """With steps of one size, if threads do not share them."""
    uneven = loop.axis.extent % loop.step and loop.kind is LoopKind.SERIAL
    return replace(loop, shifted=True) if uneven else loop


def _inner(tile: Tile) -> list[Loop]:
    """The loops of a tile of sums."""
    rows = [] if tile.height == 1 else [Loop(tile.rows, 1, LoopKind.UNROLL)]
    reduced = map(Loop, tile.reduction.reduce_axes)
    return [*reduced, *rows, Loop(tile.columns, 1, LoopKind.VECTOR)]


def _with_copy(
    schedule: Schedule, tile: Tile, source: Stage, place: int, machine: Machine
) -> Schedule:
    """With a copy of a source in panels, as wide as a tile, of the axis that columns go along."""
    summed = _summed(schedule, tile)
    schedule = schedule.cache_read(summed, source, along=summed.axes[-1])
    copy = schedule.stage(changes(schedule.stages)[-1].name)
    schedule = schedule.split(copy, copy.axes[place], tile.width, tail="pad")
    copy = schedule.current(copy)
    panels = Loop(copy.axes[place], tile.width)
    if machine.cores > 1 and math.prod(copy.shape) >= PARALLEL_ELEMENTS:
        schedule = schedule.reorder(copy, panels, *copy.axes).parallel(copy, panels)
    return schedule.layout(
        copy, *copy.axes[:place], panels, *copy.axes[place + 1 :], copy.axes[place]
    )


def _summed(schedule: Schedule, tile: Tile) -> Stage:
    """The stage that computes the sums of a tile."""
    attached = schedule.places.attached[schedule.current(tile.root)]
    return next(stage for stage in attached if stage.reduce_axes)


def _padded(schedule: Schedule, tile: Tile) -> Schedule:
    """With whole tiles at the end of the columns, of all that is there past the end."""
    for stage in schedule.places.attached[schedule.current(tile.root)]:
        try:
            stage = schedule.current(stage)
            schedule = schedule.pad(stage, Loop(stage.axes[-1], tile.width))
        except ScheduleError:
            break
    return schedule
