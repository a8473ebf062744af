"""The loops of each stage in the default schedule: order, threads, vectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterator, Mapping, Sequence

from tinyfuse.loops.ir import LoopKind
from tinyfuse.machine import LINE_BYTES, Machine
from tinyfuse.schedule.places import Loop, Place, Site, StagePlan
from tinyfuse.schedule.seats import Seat
from tinyfuse.stage.analysis import comparisons, point_cost
from tinyfuse.stage.expr import IndexTest, Load, is_select
from tinyfuse.stage.index import Affine, Axis, affine, flat_index
from tinyfuse.stage.ir import Order, Stage, Stages

LINE = LINE_BYTES // 4  # elements of a cache line, for float32
# Rows that are added to the same elements in one trip, so that these are loaded and stored less.
ROWS = 4
# Bytes that rows are added to at a time: they stay in the innermost cache, and pieces of rows that
# long come from memory at its speed.
TILE_BYTES = 1 << 14
# Operations of a stage, in additions, that may be written out for each row of a trip.
ROW_BUDGET = 16

# Links of a chain that may be written out for each element: few, or the taps of a window; and their
# operations, in additions. Each element is then stored once, not read and stored for each.
FEW_LINKS = 7
TAPS = 32
TAPS_BUDGET = 32

# Rows and columns of a tile, where a stage goes through an array across its rows: each line of
# memory is then used as a whole while it is in the innermost cache.
SQUARE = 32

# A row that threads share is cut into so many parts for each, of at least so many cache lines.
PARTS_PER_CORE = 2
LEAST_PART = 4

# Elements visited, below which waking a thread costs more than it saves.
PARALLEL_ELEMENTS = 1 << 14
# How much longer the longest part of a loop may take than that of another one that is shared.
UNEVEN = 1.15


def plans(
    stages: Stages, inlined: Container[Stage], seats: Mapping[Stage, Seat], machine: Machine
) -> dict[Stage, StagePlan]:
    """The plan of every stage. seats: of those computed inside others."""
    visits = _visits(stages, seats)
    filled = {seat.stage for seat in seats.values() if _fills(seat)}
    placed = {*seats, *(seat.stage for seat in seats.values())}
    ordered = {}
    for stage in stages.stages:
        if stage.row_axis:
            ordered[stage] = _row_loops(stage, visits[stage], machine)
            continue
        is_lanes = stage in seats and seats[stage].stage.order is Order.HALVING
        loops = _ordered(stage, stage in filled)
        if machine.device:
            ordered[stage] = _shared(stage, loops, visits[stage], machine, True)
            continue
        if not is_lanes:
            loops = _by_rows(stage, loops, stage in filled, visits[stage], machine)
        if stage not in inlined and stage not in placed:
            loops = _by_tiles(stage, loops, inlined, machine)
        ordered[stage] = _shared(stage, loops, visits[stage], machine, stage in placed)
    for each in seats.values():
        for seat in (each, each.kept_at):
            if seat and seat.step > 1:
                ordered[seat.stage] = _in_steps(ordered[seat.stage], seat)
    return {
        stage: _plan(loops, stage in inlined, seats.get(stage), ordered)
        for stage, loops in ordered.items()
    }


def _plan(
    loops: tuple[Loop, ...],
    inlined: bool,
    seat: Seat | None,
    ordered: Mapping[Stage, tuple[Loop, ...]],
) -> StagePlan:
    if seat is None:
        return StagePlan(loops, inlined)
    kept: Site | Place | None = Place.ROOT if seat.at_root else None
    if seat.kept_at:
        kept = _site(seat.kept_at, ordered)
    return StagePlan(loops, inlined, _site(seat, ordered), kept, ring=seat.ring)


def _fills(seat: Seat) -> bool:
    """Whether loops of another stage stand in the innermost loop."""
    if seat.before:
        return False
    innermost = seat.axis is None or (seat.axis is seat.stage.axes[-1] and seat.step == 1)
    return innermost and not seat.is_one_element


def _in_steps(loops: tuple[Loop, ...], seat: Seat) -> tuple[Loop, ...]:
    """A loop in steps around the one over an axis, which stays the one that threads share."""
    place = next(at for at, loop in enumerate(loops) if loop.axis is seat.axis)
    if loops[place].step == seat.step:
        return loops
    shared = loops[place].kind is LoopKind.PARALLEL
    outer = Loop(loops[place].axis, seat.step, LoopKind.PARALLEL if shared else LoopKind.SERIAL)
    last = place == len(loops) - 1
    inner = Loop(loops[place].axis, 1, LoopKind.VECTOR if last else LoopKind.SERIAL)
    return (*loops[:place], outer, inner, *loops[place + 1 :])


def _site(seat: Seat, ordered: Mapping[Stage, tuple[Loop, ...]]) -> Site:
    loops = ordered[seat.stage]
    if seat.before:
        return Site(seat.stage, None, seat.aligned)
    if seat.axis is None:
        return Site(seat.stage, _enclosing(seat.stage, loops), seat.aligned)
    found = next(loop for loop in loops if loop.axis is seat.axis and loop.step == seat.step)
    return Site(seat.stage, found, seat.aligned)


def outer_axes(stage: Stage) -> tuple[Axis, ...]:
    """The axes of the default loops around all that a stage does, of a size other than 1."""
    if stage.scatter:
        return ()
    order = stage.axes if stage.row_axis else axis_order(stage)
    inner = {*stage.reduce_axes, stage.row_axis}
    outside = list(itertools.takewhile(lambda axis: axis not in inner, order))
    return tuple([axis for axis in outside if axis.extent != 1])


def _visits(stages: Stages, sites: Mapping[Stage, Seat]) -> dict[Stage, int]:
    """Elements that the nest of each stage visits, with stages inside it; 0 for the latter."""
    visits = {}
    for stage in stages.stages:
        visits[stage] = math.prod([axis.extent for axis in (*stage.axes, *stage.reduce_axes)])
    for stage in stages.stages:
        if stage in sites:
            visits[sites[stage].stage] += visits[stage]
            visits[stage] = 0
    return visits


def _ordered(stage: Stage, filled: bool) -> tuple[Loop, ...]:
    """filled: whether another stage is computed inside its loops."""
    if stage.scatter:
        return tuple(Loop(axis) for axis in (*stage.axes, *stage.reduce_axes))
    loops = [Loop(axis) for axis in axis_order(stage)]
    if loops and loops[-1].axis in stage.axes and (stage.reduce_axes or not filled):
        loops[-1] = Loop(loops[-1].axis, 1, LoopKind.VECTOR)
    return tuple(loops)


def _row_loops(stage: Stage, visits: int, machine: Machine) -> tuple[Loop, ...]:
    """Of a scan or a sort: threads share rows. A scan along an outer axis adds whole rows."""
    loops = [Loop(axis) for axis in stage.axes]
    last = loops[-1].axis
    vector = stage.sort is not None or last is not stage.scan
    if vector:
        loops[-1] = Loop(last, 1, LoopKind.VECTOR)
    work = visits * (comparisons(last.extent) if stage.sort else 1)
    if machine.cores == 1 or work < PARALLEL_ELEMENTS:
        return tuple(loops)
    rows = [loop for loop in loops[: len(loops) - vector] if loop.axis is not stage.row_axis]
    shared = next((loop for loop in rows if loop.axis.extent > 1), None)
    if shared:
        loops.remove(shared)
        return (Loop(shared.axis, 1, LoopKind.PARALLEL), *loops)
    if last is stage.row_axis:
        return tuple(loops)
    part = _part(last.extent, machine)
    return tuple([Loop(last, part, LoopKind.PARALLEL), *loops] if part else loops)


def _part(extent: int, machine: Machine) -> int:
    """How many elements of a row one thread takes, in whole cache lines; 0 if there is one part."""
    lines = -(-extent // LINE)
    part = LINE * max(LEAST_PART, -(-lines // (PARTS_PER_CORE * machine.cores)))
    return part if part < extent else 0


def _by_rows(
    stage: Stage, loops: tuple[Loop, ...], filled: bool, visits: int, machine: Machine
) -> tuple[Loop, ...]:
    """Several rows to a trip, and rows in tiles where they are long or threads can share nothing
    else, where rows are added to one another."""
    if len(loops) < 2 or loops[-1].axis not in stage.axes or stage.order is not Order.SERIAL:
        return loops
    *outer, row, column = loops
    if row.axis not in stage.reduce_axes:
        return loops
    assert stage.body is not None
    if not filled and _is_short(stage):
        free = [loop for loop in outer if loop.axis in stage.axes]
        return (*free, column, *[Loop(axis, 1, LoopKind.UNROLL) for axis in stage.reduce_axes])
    place = next(at for at, loop in enumerate([*outer, row]) if loop.axis in stage.reduce_axes)
    alone = not any(is_even(stage, loop, machine.cores) for loop in outer[:place])
    threads = machine.cores if alone and visits >= PARALLEL_ELEMENTS else 1
    width = row_part(column.axis.extent, stage.dtype.itemsize, threads)
    if width < column.axis.extent:
        outer.insert(place, Loop(column.axis, width))
    if row.axis.extent < ROWS or point_cost(stage.body) > ROW_BUDGET:
        return (*outer, row, column)
    return (*outer, Loop(row.axis, ROWS), column, Loop(row.axis, 1, LoopKind.UNROLL))


def _is_short(stage: Stage) -> bool:
    """Whether all links of a stage's chains may be written out."""
    assert stage.body is not None
    links = math.prod([axis.extent for axis in stage.reduce_axes])
    if links * point_cost(stage.body) > TAPS_BUDGET:
        return False
    indices = [index for load in stage.reads() for index in load.indices]
    slides = any(
        index.depends_on(axis) and any(map(index.depends_on, stage.reduce_axes))
        for index in indices
        for axis in stage.axes
    )
    return links <= (TAPS if slides else FEW_LINKS)


def row_part(extent: int, itemsize: int, threads: int) -> int:
    """How many elements of a row are added to at a time, in whole cache lines: so many, of this
    size, as stay in the innermost cache, in even parts of which each thread has as many."""
    count = threads * max(1, -(-extent * itemsize // (threads * TILE_BYTES)))
    return LINE * max(LEAST_PART, -(-extent // (count * LINE)))


def _by_tiles(
    stage: Stage, loops: tuple[Loop, ...], inlined: Container[Stage], machine: Machine
) -> tuple[Loop, ...]:
    """Tile by tile over the last axis and the one along which something read lies in rows."""
    if stage.reduce_axes or stage.scatter or len(loops) < 2:
        return loops
    column, lines = loops[-1], machine.l1 // (2 * LINE_BYTES)
    row = _across(stage, column.axis, inlined)
    if row is None or column.axis.extent < lines or row.extent < SQUARE:
        return loops
    place = next(at for at, loop in enumerate(loops) if loop.axis is row)
    tiles = Loop(row, SQUARE), Loop(column.axis, SQUARE)
    return (*loops[:place], *loops[place + 1 : -1], *tiles, loops[place], column)


def _across(stage: Stage, column: Axis, inlined: Container[Stage]) -> Axis | None:
    """The axis of a stage along which rows of what it reads lie that it goes through across."""
    for load in reads_through(stage, inlined):
        place = place_of(load)
        if abs(_stride(place, column)) >= LINE:
            row = next((axis for axis in stage.axes if abs(_stride(place, axis)) == 1), None)
            if row is not None:
                return row
    return None


def reads_through(stage: Stage, inlined: Container[Stage]) -> Iterator[Load]:
    """What a stage reads from memory, itself or through what is inlined into it."""
    return (load for load in loads_through(stage, inlined) if load.source not in inlined)


def loads_through(stage: Stage, inlined: Container[Stage]) -> Iterator[Load]:
    """The same, and the loads of what is inlined, each place of it once."""
    pending = [*stage.reads()]
    seen: set[tuple[Stage, tuple[Affine, ...]]] = set()
    while pending:
        load = pending.pop()
        if load.source not in inlined:
            yield load
        elif (load.source, load.indices) not in seen:
            seen.add((load.source, load.indices))
            yield load
            pairs = zip(load.source.axes, load.places, strict=True)
            values = {axis: place for axis, place in pairs if place is not None}
            pending += [_moved(inner, values) for inner in load.source.reads()]


def with_inlined(stage: Stage, inlined: Container[Stage]) -> list[Stage]:
    """A stage, and what is inlined into it."""
    found = {stage: None}
    pending = [stage]
    while pending:
        for load in pending.pop().reads():
            if load.source in inlined and load.source not in found:
                found[load.source] = None
                pending.append(load.source)
    return list(found)


def _moved(load: Load, values: Mapping[Axis, Affine]) -> Load:
    indices = tuple([index.substitute(values) for index in load.indices])
    return Load(load.source, indices, load.data)


def axis_order(stage: Stage) -> tuple[Axis, ...]:
    """Free axes, then reduced ones; but the last free axis innermost where that suits the reads."""
    if not stage.reduce_axes or not stage.axes or stage.axes[-1].extent == 1:
        return (*stage.axes, *stage.reduce_axes)
    places = [place_of(load) for load in stage.reads()]
    if _stride_cost(places, stage.axes[-1]) > _stride_cost(places, stage.reduce_axes[-1]):
        return (*stage.axes, *stage.reduce_axes)
    return (*stage.axes[:-1], *stage.reduce_axes, stage.axes[-1])


def place_of(load: Load) -> Affine:
    """Where in the memory of its source a load reads, in elements, but for what data decides."""
    if not load.data:
        return flat_index(load.indices, load.source.shape)
    places = [affine(0) if place is None else place for place in load.places]
    return flat_index(places, load.source.shape)


def _stride_cost(places: Sequence[Affine], axis: Axis) -> int:
    """Cache lines, in sixteenths, that one step along an axis moves on at these places."""
    return sum([min(LINE, abs(_stride(place, axis))) for place in places])


def _stride(place: Affine, axis: Axis) -> int:
    """How many elements of memory a step along an axis passes; a line where a division hides it."""
    for term, _ in place.terms:
        if not isinstance(term, Axis) and term.index.depends_on(axis):
            return LINE
    return place.coefficient(axis)


def _shared(
    stage: Stage, loops: tuple[Loop, ...], visits: int, machine: Machine, fixed: bool
) -> tuple[Loop, ...]:
    """Mark the outermost loop parallel where it runs over independent elements; or one further
    inside, where its parts are uneven and their order is not fixed."""
    if machine.cores < 2 or visits < PARALLEL_ELEMENTS or stage.scatter:
        return loops
    several = [loop for loop in loops if loop.axis.extent > 1]
    free = list(itertools.takewhile(lambda loop: loop.axis not in stage.reduce_axes, several))
    if not free:
        return loops
    even = [loop for loop in free if is_even(stage, loop, machine.cores)]
    inside = [loop for loop in even if loop.kind is LoopKind.SERIAL] if not fixed else []
    first = free[0] if free[0] in even else next(iter(inside), free[0])
    rest = [loop for loop in loops if loop is not first]
    return (Loop(first.axis, first.step, LoopKind.PARALLEL), *rest)


def is_even(stage: Stage, loop: Loop, cores: int) -> bool:
    """Whether threads that share a loop do not wait for each other at the end of a chain."""
    steps = filled(stage, loop)
    whole = steps == loop.steps or time_shared(loop.steps, steps, cores) <= UNEVEN / cores
    return whole and loop.axis.extent > 1


def time_shared(steps: int, filled: float, cores: int) -> float:
    """What the longest part of a shared loop takes, of the time for all of it."""
    return -(-steps // cores) / filled


def filled(stage: Stage, loop: Loop) -> float:
    """How many steps of a loop would take as long as all do: the last block of a chain is short."""
    test = stage.body.parts[0] if stage.body and is_select(stage.body) else None
    if not isinstance(test, IndexTest) or test.high is None or loop.step > 1:
        return loop.steps
    length = test.index.coefficient(loop.axis)
    inside = math.prod([axis.extent for axis in stage.reduce_axes])
    return min(loop.steps, test.high / length) if length >= inside > 1 else loop.steps


def _enclosing(reader: Stage, loops: tuple[Loop, ...]) -> Loop | None:
    """The innermost loop of a reader around those that reduce."""
    outside = []
    for loop in loops:
        if loop.axis in reader.reduce_axes:
            break
        outside.append(loop)
    return outside[-1] if outside else None


def goes_one_by_one(stage: Stage) -> bool:
    """Whether a stage's innermost loop takes elements in an order that no vectors have."""
    if stage.scan:
        return stage.scan is stage.axes[-1]
    return runs_along_rows(stage) and stage.dtype.kind == "f"


def runs_along_rows(stage: Stage) -> bool:
    """Whether a stage is a chain whose innermost loop reduces."""
    chain = bool(stage.reduce_axes) and stage.order is Order.SERIAL and not stage.scatter
    return chain and axis_order(stage)[-1] in stage.reduce_axes
