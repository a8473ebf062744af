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
from tinyfuse.stage.copies import CacheRead, changes, copies
from tinyfuse.stage.expr import Expr, IndexTest, Load, Op, depends_on, walk
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Order, Stage

# Rows and vectors of columns of a tile, by the registers that a processor has: with what they are
# computed from, they fill these. With them the time for an element, as tall ones load more. Then
# the vectors for two rows, three, and so on.
SHAPES = {
    32: ((6, 4, 1.0), (12, 2, 1.03), (24, 1, 1.15)),
    16: ((6, 2, 1.0), (12, 1, 1.15)),
}
FOR_FEW = {32: (8, 8, 6, 4), 16: (4, 4, 2, 2)}
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
# Rows that meet each column, below which tiles, and copies of columns that lie side by side, are
# not worth their while.
LEAST_ROWS = 2
PACKED_ROWS = 16


@dataclass(frozen=True, slots=True)
class Panels:
    """A copy of what a reduction reads along one of its axes, so that so many elements along it lie
    side by side. place: of that axis among the source's. movable: whether each panel may be copied
    where it is needed."""

    source: Stage
    axis: Axis
    place: int
    width: int
    movable: bool


@dataclass(frozen=True, slots=True)
class Tile:
    """A reduction that is computed in tiles, and the stage in whose loops: itself, or one that
    takes each element as it is computed.

    rows, columns: axes of the latter. around: its loops that stay, with what is computed in them.
    panels: what is copied in panels of the rows or the columns, which are given.
    """

    reduction: Stage
    root: Stage
    rows: Axis
    columns: Axis
    height: int
    width: int
    around: tuple[Loop, ...]
    panels: tuple[Panels, ...]

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
    made = next(each for each in changes(schedule.stages) if each.name == added.name)
    assert isinstance(made, CacheRead)
    panels = next(each for each in tile.panels if each.source.name == made.source.name)
    reason = (
        f"{tile.reduction.name} reads it along {panels.axis.name}, {panels.width} at a time:"
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
    count = _rows_at_once(places, root, own[rows], around)
    if count < LEAST_ROWS:
        return None
    height, width = tile_shape(places, stage, count, machine)
    if count < height:
        return None
    if any(loop.axis is own[columns] and loop.step != width for loop in around):
        return None
    loads = list(reads_through(stage, places.inlined))
    lanes = machine.vector_bytes // stage.dtype.itemsize
    packed = rows.extent >= PACKED_ROWS and columns.extent > width
    of_columns = _panels(loads, columns, width, packed or columns.extent < lanes)
    of_rows = _panels(_across(loads, rows, stage.reduce_axes[-1]), rows, height, True)
    if of_columns is None:
        return None
    return Tile(
        stage, root, own[rows], own[columns], height, width, around, (*of_columns, *(of_rows or ()))
    )


def meets_pairs(places: Places, stage: Stage) -> bool:
    """Whether a stage is a chain for each pair of a row and a column, and long enough."""
    if not stage.reduce_axes or stage.order is not Order.SERIAL or stage.scatter:
        return False
    if len(stage.axes) < 2 or places.plans[stage].inlined or _visits(stage) < LEAST_VISITS:
        return False
    if any(reader.order is Order.HALVING for reader in places.readers[stage]):
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
        _decides(node, rows, columns)
        for each in with_inlined(stage, inlined)
        for expression in each.expressions
        for node in walk(expression)
    )


def _decides(node: Expr, rows: Axis, columns: Axis) -> bool:
    """Whether data or the place in a tile decides what is computed."""
    if isinstance(node, IndexTest):
        return depends_on(node, rows) or depends_on(node, columns)
    return isinstance(node, Load) and bool(node.data)


def _panels(
    loads: Sequence[Load], axis: Axis, width: int, side_by_side: bool
) -> tuple[Panels, ...] | None:
    """What is read along an axis and worth a copy; None where a copy would not help.

    side_by_side: whether also where it lies side by side, in rows that are long.
    """
    found: dict[Stage, Panels] = {}
    along = [load for load in loads if depends_on(load, axis)]
    for load in along:
        if side_by_side or place_of(load).coefficient(axis) != 1:
            others = [other for other in along if other.source is load.source]
            places = [[only_axis(i) for i in other.indices] for other in others]
            if any(place.count(axis) != 1 or place != places[0] for place in places):
                return None
            movable = None not in places[0]
            found[load.source] = Panels(load.source, axis, places[0].index(axis), width, movable)
    return tuple(found.values())


def _across(loads: Sequence[Load], rows: Axis, reduced: Axis) -> list[Load]:
    """What is read along the rows, where these lie side by side and what is summed does not."""
    places = [(load, place_of(load)) for load in loads if depends_on(load, rows)]
    return [
        load for load, at in places if at.coefficient(rows) == 1 and at.coefficient(reduced) > 1
    ]


def _visits(stage: Stage) -> int:
    return math.prod([axis.extent for axis in (*stage.axes, *stage.reduce_axes)])


def tile_shape(places: Places, stage: Stage, rows: int, machine: Machine) -> tuple[int, int]:
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
    """Whether there are vector registers, and instructions, for an expression.

    Loops are cut where a test of an index changes: it is none of them.
    """
    if isinstance(body, Op) and body.name == "select" and isinstance(body.operands[0], IndexTest):
        body = body.operands[1]
    nodes = walk(body)
    return all(node.dtype in FLOATING and node.dtype == body.dtype for node in nodes) and all(
        node.name in VECTOR_OPS for node in nodes if isinstance(node, Op)
    )


def _in_registers(stage: Stage, rows: int, lanes: int, machine: Machine) -> tuple[int, int]:
    """The tile that leaves the least over at the edges, and whose panels fit the L2 cache."""
    columns, registers = stage.axes[-1].extent, machine.vector_registers
    length = math.prod([axis.extent for axis in stage.reduce_axes])
    if rows - 2 < len(FOR_FEW[registers]):
        vectors = min(FOR_FEW[registers][rows - 2], max(1, -(-columns // lanes)))
        return rows, vectors * lanes

    def time(shape: tuple[int, int, float]) -> float:
        height, vectors, each = shape
        return each * -(-rows // height) * height * -(-columns // (vectors * lanes)) * vectors

    most = machine.l2 // (2 * length * lanes * stage.dtype.itemsize)  # vectors of a panel
    shapes = [shape for shape in SHAPES[registers] if shape[0] <= rows] or SHAPES[registers][:1]
    height, vectors, _ = min([s for s in shapes if s[1] <= most] or shapes[-1:], key=time)
    return height, vectors * lanes


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
    for panels in tile.panels:
        schedule = _with_panels(schedule, tile, panels, machine)
    return _padded(schedule, tile)


def _outer(tile: Tile, machine: Machine) -> list[Loop]:
    """The loops over tiles: columns first, whose panel then serves all rows, unless threads would
    share too few of them."""
    rows, columns = Loop(tile.rows, tile.height), Loop(tile.columns, tile.width)
    loops = [Loop(axis) for axis in tile.root.axes[:-2] if axis not in _axes(tile.around)]
    if tile.columns in _axes(tile.around):
        return [*tile.around, *loops, _shifted(rows)]
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


def _with_panels(schedule: Schedule, tile: Tile, panels: Panels, machine: Machine) -> Schedule:
    """With a copy in panels: panel by panel as it is needed where all that meets it follows, of all
    of it before where that does not."""
    summed, width = _summed(schedule, tile), panels.width
    along = summed.axes[tile.reduction.axes.index(panels.axis)]
    schedule = schedule.cache_read(summed, panels.source, along=along)
    copy = schedule.stage(changes(schedule.stages)[-1].name)
    schedule = schedule.split(copy, copy.axes[panels.place], width, tail="pad")
    copy = schedule.current(copy)
    outer, others = Loop(copy.axes[panels.place], width), [*copy.axes]
    others.remove(outer.axis)
    schedule = schedule.layout(copy, outer, *others, outer.axis)
    place = _where_needed(schedule, tile, panels)
    if place and panels.movable and tile.panel <= machine.l2 // 2:
        return schedule.compute_at(copy, schedule.current(tile.root), place)
    if machine.cores > 1 and math.prod(copy.shape) >= PARALLEL_ELEMENTS:
        schedule = schedule.reorder(copy, outer, *copy.axes).parallel(copy, outer)
    return schedule


def _where_needed(schedule: Schedule, tile: Tile, panels: Panels) -> Loop | None:
    """The loop in each step of which all that meets one panel follows, if there is one."""
    root, places = schedule.current(tile.root), schedule.places
    own = dict(zip(tile.reduction.axes, tile.root.axes, strict=True))[panels.axis]
    site = places.plans[root].compute_at
    outside = places.plans[site.stage].loops[: places.depth(site)] if site else ()
    aligned = site.aligned if site else ()
    if any(loop.step != panels.width or (own, loop.axis) not in aligned for loop in outside):
        return None
    first = next(loop for loop in schedule[root].loops if loop.axis in (tile.rows, tile.columns))
    whole = all(loop.axis is own for loop in tile.around)
    return schedule.find(root, first) if whole and first.axis is own else None


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
