"""Sums over pairs of rows are computed tile by tile, in vectors and in registers.

Where every row of one array meets every row, or column, of another one, as in matrix products and
pairwise distances, each element of the result is a chain of operations that wait for each other. A
tile of the result is computed at a time instead: as many chains as the processor has registers for,
side by side. What the chains read along the columns of the result is copied before, in panels as
wide as a tile, so that it lies side by side and close together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence

from tinyfuse.dtypes import FLOATING
from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.loops.vectors import VECTOR_OPS
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.copying import rolled
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import PARALLEL_ELEMENTS, place_of, reads_through, with_inlined
from tinyfuse.schedule.places import Loop, Places, Site
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.analysis import only_axis, point_cost
from tinyfuse.stage.copies import changes, copies
from tinyfuse.stage.expr import Expr, IndexTest, Load, Op, depends_on, walk
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Order, Stage

# Rows and vectors of columns of a tile, by the registers that a processor has: with what they are
# computed from, they fill these.
SHAPES = {32: ((6, 4), (12, 2)), 16: ((6, 2), (12, 1))}
# Columns of a tile that lies in an array: the C compiler writes shorter loops out before it makes
# vectors.
LEAST_WIDTH = 32
# Operations of an element, in additions, that may be written out for each row of a tile.
ROW_BUDGET = 16
# Steps for each core from which on threads share a loop.
STEPS_PER_CORE = 2
# Elements visited, and elements of a chain, below which copies are not worth their while.
LEAST_VISITS = 1 << 14
LEAST_LENGTH = 8
# Rows that meet each column, below which a copy of the columns is not worth its while: of those
# that lie across, of those that lie side by side.
LEAST_ROWS = 8
PACKED_ROWS = 32


@dataclass(frozen=True, slots=True)
class Tile:
    """A reduction that is computed in tiles, and the stage in whose loops: itself, or one that
    takes each element as it is computed.

    rows, columns: axes of the latter. around: its loops that stay, with what is computed in them.
    copied: what is read along the columns, with the place of the axis that the columns go along.
    """

    reduction: Stage
    root: Stage
    rows: Axis
    columns: Axis
    height: int
    width: int
    around: tuple[Loop, ...]
    copied: tuple[tuple[Stage, int], ...]

    @property
    def panel(self) -> int:
        """Bytes of a panel of each copy: what a tile reads along the columns."""
        length = math.prod([axis.extent for axis in self.reduction.reduce_axes])
        return length * self.width * self.reduction.dtype.itemsize


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
    places = schedule.places
    root = _root(places, stage)
    if root is None or not meets_pairs(places, stage):
        return None
    rows, columns = stage.axes[-2:]
    own = dict(zip(stage.axes, root.axes, strict=True))
    around = _around(places, root, stage)
    if any(loop.axis is own[columns] for loop in around):
        return None
    count = _rows_at_once(places, root, own[rows], around)
    height, width = _shape(places, stage, count, machine)
    lanes = machine.vector_bytes // stage.dtype.itemsize
    if rows.extent < LEAST_ROWS or count < height or columns.extent < lanes:
        return None
    loads = list(reads_through(stage, places.inlined))
    copied = _along(loads, columns, rows.extent >= PACKED_ROWS and columns.extent > width)
    if copied is None:
        return None
    return Tile(stage, root, own[rows], own[columns], height, width, around, copied)


def meets_pairs(places: Places, stage: Stage) -> bool:
    """Whether a stage is a chain for each pair of a row and a column, and long enough."""
    if not stage.reduce_axes or stage.order is not Order.SERIAL or stage.scatter:
        return False
    if len(stage.axes) < 2 or places.plans[stage].inlined or _visits(stage) < LEAST_VISITS:
        return False
    if any(reader.order is not Order.SERIAL for reader in places.readers[stage]):
        return False
    if math.prod([axis.extent for axis in stage.reduce_axes]) < LEAST_LENGTH:
        return False
    return _are_pairs(list(reads_through(stage, places.inlined)), stage, places.inlined)


def _root(places: Places, stage: Stage) -> Stage | None:
    """The stage in whose loops a reduction runs, if they can be tiled."""
    site = places.plans[stage].compute_at
    if site is None:
        return stage
    if takes_each_element(places, site.stage, stage):
        return site.stage
    return stage if _computes_rows(places, stage) else None


def takes_each_element(places: Places, root: Stage, stage: Stage) -> bool:
    """Whether a stage at the root does no more than take each element of another one as it is
    computed."""
    if places.attached.get(root) != [stage] or places.readers[stage] != [root]:
        return False
    if root.reduce_axes or root.row_axis or root.scatter or places.plans[root].compute_at:
        return False
    if places.attached.get(stage):
        return False
    loads = [load for load in reads_through(root, places.inlined) if load.source is stage]
    same = all(tuple(map(only_axis, load.indices)) == root.axes for load in loads)
    return same and root.shape == stage.shape


def _computes_rows(places: Places, stage: Stage) -> bool:
    """Whether a stage computes whole rows at a time in the loops of another one."""
    site = places.plans[stage].compute_at
    assert site is not None
    loops = places.plans[site.stage].loops[: places.depth(site)]
    around = {loop.axis for loop in loops if loop.axis.extent > 1 and loop.step == 1}
    return len(around) < sum(axis.extent > 1 for axis in stage.axes)


def _around(places: Places, root: Stage, reduction: Stage) -> tuple[Loop, ...]:
    """The loops of a stage in which another one than the reduction is computed."""
    others = [each for each in places.attached.get(root, ()) if each is not reduction]
    sites = [places.plans[each].compute_at for each in others]
    depths = [places.depth(site) for site in sites if site]
    return places.plans[root].loops[: max(depths, default=0)]


def _rows_at_once(places: Places, root: Stage, rows: Axis, around: Sequence[Loop]) -> int:
    """How many rows the loops around leave."""
    steps = [loop.step for loop in around if loop.axis is rows]
    site = places.plans[root].compute_at
    if site is not None:
        outer = places.plans[site.stage].loops[: places.depth(site)]
        steps += [loop.step for loop in outer if along(root, site.stage, loop.axis) is rows]
    return min([rows.extent, *steps])


def along(stage: Stage, root: Stage, axis: Axis) -> Axis | None:
    """The axis of a stage at the same place as one of the stage whose loops it is computed in."""
    place = root.axes.index(axis) if axis in root.axes else len(stage.axes)
    own = stage.axes[place : place + 1]
    return own[0] if own and own[0].extent == axis.extent else None


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


def _along(
    loads: Sequence[Load], columns: Axis, side_by_side: bool
) -> tuple[tuple[Stage, int], ...] | None:
    """What is read along the columns and worth a copy; None where a copy would not help.

    side_by_side: whether also where columns lie side by side, as rows are long.
    """
    found: dict[Stage, int] = {}
    along = [load for load in loads if depends_on(load, columns)]
    for load in along:
        if side_by_side or place_of(load).coefficient(columns) != 1:
            others = [other for other in along if other.source is load.source]
            places = [[only_axis(i) for i in other.indices] for other in others]
            if any(place.count(columns) != 1 or place != places[0] for place in places):
                return None
            found[load.source] = places[0].index(columns)
    return tuple(found.items())


def _visits(stage: Stage) -> int:
    return math.prod([axis.extent for axis in (*stage.axes, *stage.reduce_axes)])


def _shape(places: Places, stage: Stage, rows: int, machine: Machine) -> tuple[int, int]:
    """Rows and columns of a tile: those that the registers hold where vectors are computed; else
    as many as half of them, or one row where the text would be long."""
    lanes = machine.vector_bytes // stage.dtype.itemsize
    bodies = [each.body for each in with_inlined(stage, places.inlined) if each.body]
    if all(_has_vectors(body) for body in bodies):
        return _in_registers(stage, rows, lanes, machine)
    width = max(LEAST_WIDTH, 2 * lanes)
    if sum(map(point_cost, bodies)) > ROW_BUDGET:
        return 1, width
    return max(1, machine.vector_registers * lanes // (2 * width)), width


def _has_vectors(body: Expr) -> bool:
    """Whether there are vector registers, and instructions, for an expression."""
    nodes = walk(body)
    return all(node.dtype in FLOATING and node.dtype == body.dtype for node in nodes) and all(
        node.name in VECTOR_OPS for node in nodes if isinstance(node, Op)
    )


def _in_registers(stage: Stage, rows: int, lanes: int, machine: Machine) -> tuple[int, int]:
    """The tile that leaves the least over at the edges, and whose panels fit the L2 cache."""
    columns = stage.axes[-1].extent
    length = math.prod([axis.extent for axis in stage.reduce_axes])

    def computed(shape: tuple[int, int]) -> int:
        height, width = shape
        return -(-rows // height) * height * -(-columns // width) * width

    shapes = [(height, vectors * lanes) for height, vectors in SHAPES[machine.vector_registers]]
    fitting = [s for s in shapes if length * s[1] * stage.dtype.itemsize <= machine.l2 // 2]
    return min([s for s in fitting if s[0] <= rows] or shapes[-1:], key=computed)


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
    place = plans[reduction].loops[len(outer) - 1]
    schedule = schedule.cache_write(reduction, place)
    for source, along in tile.copied:
        schedule = _with_copy(schedule, tile, source, along, machine)
    return _padded(schedule, tile)


def _outer(tile: Tile, machine: Machine) -> list[Loop]:
    """The loops over tiles: columns first, whose panel then serves all rows, unless threads would
    share too few of them."""
    rows, columns = Loop(tile.rows, tile.height), Loop(tile.columns, tile.width)
    loops = [Loop(axis) for axis in tile.root.axes[:-2] if axis not in _axes(tile.around)]
    wanted = STEPS_PER_CORE * machine.cores
    few = machine.cores > 1 and not (loops or tile.around) and _steps(columns) < wanted
    loops += [rows, columns] if few else [columns, rows]
    shares = machine.cores > 1 and _visits(tile.reduction) >= PARALLEL_ELEMENTS
    if shares and not tile.around:
        shared = next(loop for loop in loops if loop.axis.extent > 1)
        loops.remove(shared)
        loops = [replace(shared, kind=LoopKind.PARALLEL), *loops]
    return [*tile.around, *[_shifted(loop) if loop.same(rows) else loop for loop in loops]]


def _axes(loops: Sequence[Loop]) -> list[Axis]:
    return [loop.axis for loop in loops]


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
    """With a copy of a source in panels, as wide as a tile, of the axis that columns go along:
    panel by panel as it is needed where all rows follow, of all of it before where they do not."""
    summed = _summed(schedule, tile)
    schedule = schedule.cache_read(summed, source, along=summed.axes[-1])
    copy = schedule.stage(changes(schedule.stages)[-1].name)
    schedule = schedule.split(copy, copy.axes[place], tile.width, tail="pad")
    copy = schedule.current(copy)
    panels, others = Loop(copy.axes[place], tile.width), [*copy.axes]
    others.remove(panels.axis)
    schedule = schedule.layout(copy, panels, *others, panels.axis)
    root = schedule.current(tile.root)
    loops = [loop for loop in schedule[root].loops if loop.axis.extent > 1]
    if schedule[root].compute_at is None and not tile.around and tile.panel <= machine.l2 // 2:
        columns = next(loop for loop in loops if loop.same(Loop(tile.columns, tile.width)))
        if tile.rows not in _axes(loops[: loops.index(columns)]):
            return schedule.compute_at(copy, root, columns)
    if machine.cores > 1 and math.prod(copy.shape) >= PARALLEL_ELEMENTS:
        schedule = schedule.reorder(copy, panels, *copy.axes).parallel(copy, panels)
    return schedule


def _summed(schedule: Schedule, tile: Tile) -> Stage:
    """The stage that computes the sums of a tile."""
    return schedule.places.attached[schedule.current(tile.reduction)][-1]


def _padded(schedule: Schedule, tile: Tile) -> Schedule:
    """With whole tiles at the end of the columns, of all that is there past the end."""
    reduction = schedule.current(tile.reduction)
    kept = reduction in schedule.places.outputs
    for stage in [_summed(schedule, tile), *([] if kept else [reduction])]:
        try:
            stage = schedule.current(stage)
            schedule = schedule.pad(stage, Loop(stage.axes[-1], tile.width))
        except ScheduleError:
            break
    return schedule
