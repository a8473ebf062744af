"""Which reductions are computed in tiles, and how large these are.

Those where every row of one array meets every row, or column, of another one, as in matrix
products and pairwise distances.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from tinyfuse.machine import Machine
from tinyfuse.records import dataclass
from tinyfuse.schedule.loop_order import place_of, reads_through, with_inlined
from tinyfuse.schedule.places import Loop, Places
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.tile_shapes import (
    ROW_BUDGET,
    has_wide_tiles,
    tile_shape,
    unpacked_stages,
)
from tinyfuse.stage.analysis import axes_telling, fixed_stages, only_axis, point_cost
from tinyfuse.stage.expr import Expr, IndexTest, Load, depends_on, walk
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Order, Stage

# Elements visited, and elements of a chain, below which copies are not worth their while.
LEAST_VISITS = 1 << 14
LEAST_LENGTH = 8
# Rows that meet each column, below which tiles, and copies of columns that lie side by side, are
# not worth their while; the latter where tiles are wide as well.
LEAST_ROWS = 2
PACKED_ROWS = 16
PACKED_ROWS_OF_WIDE = 768
# Bytes between what is added up, from which on it is far apart: for wide tiles, and for others,
# which go through it that much more often.
NEAR_BYTES = 256
NEAR_BYTES_OF_NARROW = 64
# Rows so few that memory takes longer for the columns than computing with them.
FEW_ROWS = 5


@dataclass(frozen=True, slots=True)
class Panels:
    """A copy of what a reduction reads along one of its axes, `width` elements of which lie side by
    side. place: of that axis among the source's. uses: the axes along which the source is read.
    movable: whether these tell all of where, so that each panel may be copied where it is needed.
    """

    source: Stage
    axis: Axis
    place: int
    width: int
    uses: tuple[Axis, ...]
    movable: bool


@dataclass(frozen=True, slots=True)
class Tile:
    """A reduction that is computed in tiles, and the stage in whose loops: itself, or one that
    takes each element as it is computed.

    rows, columns: axes of the latter; no rows where there is a single one. around: its loops that
    stay, with what is computed in them.
    panels: what is copied in panels of the rows or the columns, which are given. converted: what is
    inlined, converts elements, and is not copied.
    """

    reduction: Stage
    root: Stage
    rows: Axis
    columns: Axis
    height: int
    width: int
    around: tuple[Loop, ...]
    panels: tuple[Panels, ...]
    converted: tuple[Stage, ...] = ()

    def panel_bytes(self, panels: Panels) -> int:
        """What is copied for one tile."""
        length = math.prod([axis.extent for axis in self.reduction.reduce_axes])
        return length * panels.width * self.reduction.dtype.itemsize


def tile_of(schedule: Schedule, stage: Stage, machine: Machine) -> Tile | None:
    """How a stage could be computed in tiles; None if it is no such reduction."""
    places = schedule.places
    root = _root(places, stage)
    if root is None:
        return None
    pair = pair_of(places, stage, machine)
    if pair is None:
        return _of_single_row(schedule, stage, root, machine)
    rows, columns = pair
    own = dict(zip(stage.axes, root.axes, strict=True))
    around = _around(places, root, stage)
    count = _at_once(places, root, own[rows], around)
    if count < LEAST_ROWS or few_rows(places, stage, machine):
        return None
    unpacked = unpacked_stages(stage, places)
    loads = list(reads_through(stage, places.inlined - unpacked))
    moving = [load for load in loads if depends_on(load, columns)]
    once = _are_constant(schedule, moving)
    once = once and (rows.extent >= PACKED_ROWS or _are_large(moving, machine))
    many = bool(unpacked) or once or _are_copied(stage, loads, rows, columns, machine)
    height, width = tile_shape(places, stage, count, columns.extent, machine, many)
    turned = columns is not stage.axes[-1]
    if count < height or (turned and height == 1):
        return None
    if _at_once(places, root, own[columns], around) not in (columns.extent, width):
        return None
    if unpacked and count < PACKED_ROWS:
        return None
    lanes = machine.vector_bytes // stage.dtype.itemsize
    packed = bool(unpacked) or (many and columns.extent > width)
    of_columns = _panels(loads, columns, width, packed or columns.extent % lanes > 0)
    across = _across(loads, rows, stage.reduce_axes[-1], machine) if height > 1 else []
    across = [load for load in across if not _is_kept(places, load.source)]
    of_rows = _panels(across, rows, height, True)
    if of_columns is None and not unpacked:
        of_columns = _panels(loads, columns, width, False)
    if of_columns is None:
        return None
    panels = (*of_columns, *(of_rows or ()))
    copied = {each.source for each in panels}
    converted = [load.source for load in loads if load.source in unpacked - copied]
    found = stage, root, own[rows], own[columns], height, width, around, panels
    return Tile(*found, tuple(dict.fromkeys(converted)))


def _of_single_row(schedule: Schedule, stage: Stage, root: Stage, machine: Machine) -> Tile | None:
    """The tile of the sums of one row with columns of a constant that the L2 cache does not hold.

    Its panels are read from end to end, which memory is fastest at.
    """
    places = schedule.places
    several = [axis for axis in stage.axes if axis.extent > 1]
    if not _is_chain(places, stage) or len(several) != 1 or several[0] is not stage.axes[-1]:
        return None
    columns, loads = stage.axes[-1], list(reads_through(stage, places.inlined))
    moving = [load for load in loads if depends_on(load, columns)]
    if any(load.data for load in loads) or not _are_constant(schedule, moving):
        return None
    if not _are_large(moving, machine) or unpacked_stages(stage, places):
        return None
    if _around(places, root, stage) or places.plans[root].compute_at:
        return None
    _, width = tile_shape(places, stage, 1, columns.extent, machine)
    panels = _panels(loads, columns, width, True)
    if panels is None:
        return None
    return Tile(stage, root, Axis("row", 1), root.axes[-1], 1, width, (), panels)


def _are_large(loads: Sequence[Load], machine: Machine) -> bool:
    """Whether the L2 cache does not hold one of what is read."""
    return any(_source_bytes(load) > machine.l2 for load in loads)


def _source_bytes(load: Load) -> int:
    return math.prod(load.source.shape) * load.dtype.itemsize


def _are_constant(schedule: Schedule, loads: Sequence[Load]) -> bool:
    """Whether all that is read is constant, so that it is copied once for all calls."""
    fixed = fixed_stages(schedule.stages)
    return all(load.source.constant or load.source in fixed for load in loads)


def _are_copied(
    stage: Stage, loads: Sequence[Load], rows: Axis, columns: Axis, machine: Machine
) -> bool:
    """Whether columns that lie side by side, but far from row to row, are copied: where that many
    rows of the other factor meet them."""
    reduced = stage.reduce_axes[-1]
    moving = [load for load in loads if depends_on(load, columns)]
    if all(_is_near(load, reduced, machine) for load in moving):
        return False
    once = all(load.source.constant for load in moving)  # so that no call waits for copies
    close = not once and all(_source_bytes(load) <= machine.l3 // 3 for load in moving)
    wide = has_wide_tiles(machine)
    return rows.extent >= (PACKED_ROWS_OF_WIDE if wide and close else PACKED_ROWS)


def _is_near(load: Load, axis: Axis, machine: Machine) -> bool:
    """Whether what is read in one step along an axis lies close to what is in the next one."""
    step = place_of(load).coefficient(axis) * load.dtype.itemsize
    return step <= (NEAR_BYTES if has_wide_tiles(machine) else NEAR_BYTES_OF_NARROW)


def few_rows(places: Places, stage: Stage, machine: Machine) -> bool:
    """Whether a stage is a kernel alone in which a few rows meet those of an array that the second
    cache does not hold, which lie side by side, and which no copy can be made of once."""
    pair = pair_of(places, stage, machine)
    if pair is None or places.plans[stage].compute_at or places.attached.get(stage):
        return False
    rows, columns = pair
    if columns is not stage.axes[-1] or not LEAST_ROWS <= rows.extent <= FEW_ROWS:
        return False
    bodies = [each.body for each in with_inlined(stage, places.inlined) if each.body]
    if sum(map(point_cost, bodies)) > ROW_BUDGET:
        return False
    moving = [load for load in reads_through(stage, places.inlined) if depends_on(load, columns)]
    if all(load.source.constant for load in moving):
        return False
    by_rows = all(place_of(load).coefficient(columns) == 1 for load in moving)
    return by_rows and _are_large(moving, machine)


def pair_of(places: Places, stage: Stage, machine: Machine) -> tuple[Axis, Axis] | None:
    """The rows and the columns of a stage that is a chain for each pair of them, and long enough.

    Columns are its last axis if they lie side by side in what is read and fill vectors, or can be
    copied so that they do; else another axis of which that holds, with the last one for rows.
    """
    if len(stage.axes) < 2 or not _is_chain(places, stage):
        return None
    loads, last = list(reads_through(stage, places.inlined)), stage.axes[-1]
    lanes = machine.vector_bytes // stage.dtype.itemsize
    others = [axis for axis in stage.axes[-2::-1] if axis.extent > 1]
    pairs = [(rows, last) for rows in others] + [(last, columns) for columns in others]
    found = [pair for pair in pairs if _are_pairs(loads, stage, places.inlined, *pair)]
    fitting = [
        (rows, columns)
        for rows, columns in found
        if _panels(loads, columns, lanes, True) is not None
        or (
            columns is last
            and last.extent % lanes == 0
            and _panels(loads, columns, lanes, False) is not None
        )
    ]
    return next(iter(fitting or [pair for pair in found if pair[1] is last]), None)


def _is_chain(places: Places, stage: Stage) -> bool:
    """Whether each element of a stage is a chain, and long enough."""
    if not stage.reduce_axes or stage.order is not Order.SERIAL or stage.scatter:
        return False
    if places.plans[stage].inlined or visits(stage) < LEAST_VISITS:
        return False
    if any(reader.order is Order.HALVING for reader in places.readers[stage]):
        return False
    return math.prod([axis.extent for axis in stage.reduce_axes]) >= LEAST_LENGTH


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
    if root.shape != stage.shape or any(load.data for load in loads):
        return False
    return all(
        only_axis(index) is axis
        for load in loads
        for index, axis in zip(load.indices, root.axes, strict=True)
        if axis.extent > 1
    )


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


def _at_once(places: Places, root: Stage, axis: Axis, around: Sequence[Loop]) -> int:
    """How many elements along an axis the loops around leave."""
    steps = [loop.step for loop in around if loop.axis is axis]
    site = places.plans[root].compute_at
    if site is not None:
        outer = places.plans[site.stage].loops[: places.depth(site)]
        steps += [_read(places, root, axis, site.stage, loop) for loop in outer]
    return min([axis.extent, *steps])


def _read(places: Places, stage: Stage, axis: Axis, root: Stage, loop: Loop) -> int:
    """How many elements along an axis of a stage a step of a loop of the root reads."""
    site = places.plans[stage].compute_at
    if along(stage, root, loop.axis) is axis:
        return loop.step
    if site is None or site.aligned:
        return axis.extent
    place, most = stage.axes.index(axis), 1
    for reader in places.readers[stage]:
        own = along(reader, root, loop.axis)
        for load in reads_through(reader, places.inlined):
            if load.source is stage:
                first, last = load.indices[place].interval()
                fixed = load.indices[place].coefficient(own) if own else 0
                saved = abs(fixed) * (loop.axis.extent - loop.step)
                most = max(most, last - first + 1 - saved)
    return most


def along(stage: Stage, root: Stage, axis: Axis) -> Axis | None:
    """The axis of a stage at the same place as one of the stage whose loops it is computed in."""
    place = root.axes.index(axis) if axis in root.axes else len(stage.axes)
    own = stage.axes[place : place + 1]
    return own[0] if own and own[0].extent == axis.extent else None


def _are_pairs(
    loads: Sequence[Load], stage: Stage, inlined: Container[Stage], rows: Axis, columns: Axis
) -> bool:
    """Whether every row meets every column: nothing that is read depends on both, but something on
    each, and neither data nor the place decides what."""
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
    moving = [load for load in loads if depends_on(load, axis)]
    for load in moving:
        if side_by_side or place_of(load).coefficient(axis) != 1:
            others = [other for other in moving if other.source is load.source]
            places = [[only_axis(i) for i in other.indices] for other in others]
            if any(place.count(axis) != 1 or place != places[0] for place in places):
                return None
            told = [axes_telling(index) for index in load.indices]
            movable, uses = all(told), tuple([each for axes in told for each in axes])
            place = places[0].index(axis)
            found[load.source] = Panels(load.source, axis, place, width, uses, movable)
    return tuple(found.values())


def _across(loads: Sequence[Load], rows: Axis, reduced: Axis, machine: Machine) -> list[Load]:
    """What is read along the rows, where these lie side by side and what is summed far apart."""
    places = [(load, place_of(load)) for load in loads if depends_on(load, rows)]
    return [
        load
        for load, at in places
        if at.coefficient(rows) == 1 and not _is_near(load, reduced, machine)
    ]


def _is_kept(places: Places, source: Stage) -> bool:
    """Whether a stage is in memory inside a loop, where a copy at the root could not read it."""
    return not source.is_input and places.storage(source) is not None


def visits(stage: Stage) -> int:
    """How many pairs of an element and something that it is made of there are."""
    return math.prod([axis.extent for axis in (*stage.axes, *stage.reduce_axes)])
