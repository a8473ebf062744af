"""Which reductions are computed in tiles, and how large these are.

Those where every row of one array meets every row, or column, of another one, as in matrix
products and pairwise distances.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from tinyfuse.dtypes import BOOL
from tinyfuse.loops.vectors import has_vectors
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass
from tinyfuse.schedule.loop_order import place_of, reads_through, with_inlined
from tinyfuse.schedule.places import REGION_LIMIT, Loop, Places
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.analysis import axes_telling, fixed_stages, only_axis, point_cost
from tinyfuse.stage.expr import Cast, Expr, IndexTest, Load, Op, depends_on, walk
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Order, Stage

# By the registers that a processor has: rows of a tile and vectors of its columns, which with what
# they are computed from fill these; and the time for an element beside that of the first, as tall
# tiles load more.
SHAPES = {
    32: (
        *((6, 4, 1.0), (5, 4, 1.01), (8, 3, 1.03), (8, 2, 1.05)),
        *((12, 2, 1.03), (14, 2, 1.03), (24, 1, 1.15)),
    ),
    16: ((6, 2, 1.0), (12, 1, 1.15)),
}
# The same where the innermost loop of a chain is short, as over the taps of a convolution: gcc
# writes it out and then holds more values at a time than one step needs.
SHAPES_OF_SHORT = {
    32: ((8, 2, 1.0), (7, 2, 1.03), (6, 2, 1.06), (8, 1, 1.12)),
    16: SHAPES[16],
}
SHORT = 16
# The vectors of columns where there are two rows, three, and so on.
FOR_FEW = {32: (8, 8, 6, 4), 16: (4, 4, 2, 2)}
# Columns of a tile that lies in an array: the C compiler writes shorter loops out before it makes
# vectors.
LEAST_WIDTH = 32
# Operations of an element, in additions, that may be written out for each row of a tile.
ROW_BUDGET = 16
# Elements visited, and elements of a chain, below which copies are not worth their while.
LEAST_VISITS = 1 << 14
LEAST_LENGTH = 8
# Rows that meet each column, below which tiles, and copies of columns that lie side by side, are
# not worth their while; the latter where a row of a tile is many bytes as well.
LEAST_ROWS = 2
PACKED_ROWS = 16
PACKED_ROWS_OF_WIDE = 768
WIDE_BYTES = 256
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

    rows, columns: axes of the latter. around: its loops that stay, with what is computed in them.
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
        return None
    rows, columns = pair
    own = dict(zip(stage.axes, root.axes, strict=True))
    around = _around(places, root, stage)
    count = _at_once(places, root, own[rows], around)
    if count < LEAST_ROWS or few_rows(places, stage, machine):
        return None
    unpacked = _unpacked(stage, places)
    loads = list(reads_through(stage, places.inlined - unpacked))
    once = _are_constant(schedule, loads, columns) and rows.extent >= PACKED_ROWS
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


def _are_constant(schedule: Schedule, loads: Sequence[Load], columns: Axis) -> bool:
    """Whether the columns are those of constants, which are copied once for all calls."""
    fixed = fixed_stages(schedule.stages)
    moving = [load.source for load in loads if depends_on(load, columns)]
    return all(source.constant or source in fixed for source in moving)


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
    close = not once and all(
        math.prod(each.source.shape) * each.dtype.itemsize <= machine.l3 // 3 for each in moving
    )
    wide = _has_wide_tiles(machine)
    return rows.extent >= (PACKED_ROWS_OF_WIDE if wide and close else PACKED_ROWS)


def _is_near(load: Load, axis: Axis, machine: Machine) -> bool:
    """Whether what is read in one step along an axis lies close to what is in the next one."""
    step = place_of(load).coefficient(axis) * load.dtype.itemsize
    return step <= (NEAR_BYTES if _has_wide_tiles(machine) else NEAR_BYTES_OF_NARROW)


def _has_wide_tiles(machine: Machine) -> bool:
    """Whether a row of a tile is several lines of memory."""
    return SHAPES[machine.vector_registers][0][1] * machine.vector_bytes >= WIDE_BYTES


def _unpacked(stage: Stage, places: Places) -> frozenset[Stage]:
    """What is inlined into a stage and only converts numbers: better once, while they are copied,
    than at each use."""
    return frozenset([each for each in with_inlined(stage, places.inlined) if _converts(each)])


def _converts(stage: Stage) -> bool:
    body = stage.body
    if not isinstance(body, Cast) or not isinstance(body.operand, Load):
        return False
    return BOOL not in (body.dtype, body.operand.dtype)


def few_rows(places: Places, stage: Stage, machine: Machine) -> bool:
    """Whether a stage is a kernel alone in which a few rows meet those of an array that the second
    cache does not hold, which lie side by side."""
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
    large = [math.prod(each.source.shape) * each.dtype.itemsize > machine.l2 for each in moving]
    return all(place_of(load).coefficient(columns) == 1 for load in moving) and any(large)


def pair_of(places: Places, stage: Stage, machine: Machine) -> tuple[Axis, Axis] | None:
    """The rows and the columns of a stage that is a chain for each pair of them, and long enough.

    Columns are its last axis if they lie side by side in what is read and fill vectors, or can be
    copied so that they do; else another axis of which that holds, with the last one for rows.
    """
    if not stage.reduce_axes or stage.order is not Order.SERIAL or stage.scatter:
        return None
    if len(stage.axes) < 2 or places.plans[stage].inlined or visits(stage) < LEAST_VISITS:
        return None
    if any(reader.order is Order.HALVING for reader in places.readers[stage]):
        return None
    if math.prod([axis.extent for axis in stage.reduce_axes]) < LEAST_LENGTH:
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


def tile_shape(
    places: Places, stage: Stage, rows: int, columns: int, machine: Machine, copied: bool = True
) -> tuple[int, int]:
    """Rows and columns of a tile: those that the registers hold where vectors are computed; else
    as many as half of them, or one row where the text would be long.

    copied: whether the columns are copied in panels.
    """
    lanes = machine.vector_bytes // stage.dtype.itemsize
    inside = with_inlined(stage, places.inlined - _unpacked(stage, places))
    bodies = [each.body for each in inside if each.body]
    if all(fits_vectors(body) for body in bodies):
        return _in_registers(stage, rows, columns, lanes, machine, copied)
    width = max(LEAST_WIDTH, 2 * lanes)
    if sum(map(point_cost, bodies)) > ROW_BUDGET:
        return 1, width
    return max(1, machine.vector_registers * lanes // (2 * width)), width


def fits_vectors(body: Expr) -> bool:
    """Whether there are vector registers, and instructions, for an expression.

    Loops are cut where a test of an index changes: it is none of them.
    """
    if isinstance(body, Op) and body.name == "select" and isinstance(body.operands[0], IndexTest):
        body = body.operands[1]
    nodes = walk(body)
    return all(node.dtype == body.dtype for node in nodes) and all(
        has_vectors(node.name, body.dtype) for node in nodes if isinstance(node, Op)
    )


def _in_registers(
    stage: Stage, rows: int, columns: int, lanes: int, machine: Machine, copied: bool
) -> tuple[int, int]:
    """The tile that leaves the least over at the edges, and whose panels, if they are copied, fit
    the L2 cache and a thread's stack."""
    registers = machine.vector_registers
    length = math.prod([axis.extent for axis in stage.reduce_axes])
    if rows - 2 < len(FOR_FEW[registers]):
        vectors = min(FOR_FEW[registers][rows - 2], max(1, -(-columns // lanes)))
        return rows, vectors * lanes

    def time(shape: tuple[int, int, float]) -> float:
        height, vectors, each = shape
        return each * -(-rows // height) * height * -(-columns // (vectors * lanes)) * vectors

    largest = min(REGION_LIMIT, machine.l2 // 2)
    most = largest // (length * lanes * stage.dtype.itemsize)  # vectors of a panel
    inner = [axis.extent for axis in stage.reduce_axes if axis.extent > 1]
    known = (SHAPES_OF_SHORT if len(inner) > 1 and inner[-1] <= SHORT else SHAPES)[registers]
    shapes = [shape for shape in known if shape[0] <= rows] or known[:1]
    fitting = [shape for shape in shapes if not copied or shape[1] <= most]
    height, vectors, _ = min(fitting or shapes[-1:], key=time)
    return height, vectors * lanes
