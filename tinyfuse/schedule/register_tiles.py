"""Sums over pairs of rows are computed tile by tile, in vectors and in registers.

Where every row of one array meets every row, or column, of another one, as in matrix products and
pairwise distances, each element of the result is a chain of operations that wait for each other. A
tile of the result is computed at a time instead: as many chains as the processor has registers for,
side by side. What the chains read along the columns of the result is copied before, in panels as
wide as a tile, so that it lies side by side and close together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.copying import rolled
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import PARALLEL_ELEMENTS, UNEVEN, filled, time_shared
from tinyfuse.schedule.pairs import Panels, Tile, tile_of, visits
from tinyfuse.schedule.places import REGION_LIMIT, Loop, Site
from tinyfuse.schedule.schedule import Draft, Schedule
from tinyfuse.schedule.turned import (
    computed_along,
    has_lanes,
    in_lanes_of,
    is_along,
    is_transposed,
    laid_out,
)
from tinyfuse.stage.analysis import fixed_stages
from tinyfuse.stage.copies import CacheRead, changes, copies
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage

# Steps for each core from which on threads share a loop.
STEPS_PER_CORE = 2
# Bytes of narrow tiles together that are computed of the same rows.
GROUP_BYTES = 256
# How often a panel may be copied where it is needed, rather than once before.
MOST_COPIES = 5


def tile_reductions(
    schedule: Schedule, decisions: Sequence[Decision], machine: Machine, alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Tile what a schedule of the planner's computes one element after the other.

    decisions: on all stages. What is returned has those on the stages that are added as well.
    alone: names of stages that stay as they are. The directives are checked all at once; where one
    of them is refused, one by one.
    """
    draft = Draft(schedule.stages, schedule.places.plans)
    try:
        tiled, found = _all_tiled(draft, decisions, machine, alone)
        return (schedule if tiled is draft else Schedule(tiled.stages, tiled.places.plans)), found
    except ScheduleError:
        return _all_tiled(schedule, decisions, machine, alone)


def _all_tiled(
    schedule: Schedule, decisions: Sequence[Decision], machine: Machine, alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    known = {decision.producer: decision for decision in decisions}
    stack: Counter[str] = Counter()  # bytes of the panels that each kernel copies
    for stage in schedule.stages.stages:
        tile = tile_of(schedule, schedule.current(stage), machine)
        if tile is not None and tile.reduction.name not in alone:
            for converted in tile.converted:
                schedule, known = _with_stored(schedule, known, converted)
            schedule = _tiled(schedule, tile, machine, stack)
            for added in schedule.stages.stages:
                if added.name not in known:
                    known[added.name] = _decision(schedule, added, tile)
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _with_stored(
    schedule: Schedule, known: dict[str, Decision], stage: Stage
) -> tuple[Schedule, dict[str, Decision]]:
    """With a stored stage that was inlined, where what it reads is there by then."""
    try:
        schedule = schedule.store(stage)
    except ScheduleError:
        return schedule, known
    reason = "each element is converted once, not again for every tile"
    return schedule, {
        **known,
        stage.name: replace(known[stage.name], action="store", reason=reason),
    }


def _decision(schedule: Schedule, added: Stage, tile: Tile) -> Decision:
    readers = tuple([reader.name for reader in schedule.readers(added)])
    if added.name not in copies(schedule.stages):
        if not added.reduce_axes and tile.root is not tile.reduction:
            return in_lanes_of(tile.reduction, tile.columns, added, tile.root)
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


# --- how ------------------------------------------------------------------------------------------


def _tiled(schedule: Schedule, tile: Tile, machine: Machine, stack: Counter[str]) -> Schedule:
    """The schedule with a reduction in tiles. stack: what panels take of each kernel's."""
    root, reduction = tile.root, tile.reduction
    at_root = schedule[root].compute_at is None
    outer, inner = _outer(tile, machine if at_root else replace(machine, cores=1)), _inner(tile)
    plans = dict(schedule.places.plans)
    if root is not reduction:
        own = dict(zip(root.axes, reduction.axes, strict=True))
        loops = [Loop(own[each.axis], each.step) for each in outer]
        loops += [Loop(own.get(each.axis, each.axis), each.step, each.kind) for each in inner]
        plans[reduction] = replace(
            plans[reduction], loops=tuple(loops), compute_at=Site(root, outer[-1])
        )
        inner = _written(tile)
    plans[root] = replace(plans[root], loops=(*outer, *inner))
    schedule = type(schedule)(schedule.stages, plans, "tile")
    turned = tile.columns is not root.axes[-1]
    if turned:
        schedule = _in_lanes(schedule, tile, len(outer), machine)
    summed = _summed(schedule, tile)
    if turned and root is not reduction:
        schedule = _by_rows(schedule, tile)
    schedule = schedule.cache_write(summed, schedule[summed].loops[len(outer) - 1])
    if turned:
        schedule = _by_rows(schedule, tile)
    for panels in tile.panels:
        schedule = _with_panels(schedule, tile, panels, machine, stack)
    return _padded(schedule, tile)


def _written(tile: Tile) -> list[Loop]:
    """The loops in which what a tile holds is written: along the last axis inside."""
    inner = [rolled(each) for each in _inner(tile) if each.axis in tile.root.axes]
    if tile.columns is tile.root.axes[-1]:
        return inner
    return [Loop(tile.columns), Loop(tile.rows, 1, LoopKind.VECTOR)]


def _in_lanes(schedule: Schedule, tile: Tile, depth: int, machine: Machine) -> Schedule:
    """With what follows the sums of a tile in lanes of its columns too, if all that it reads lies
    along these, and whole vectors are transposed as they are written.

    depth: how many loops of the root are around a tile.
    """
    root, reduction = tile.root, tile.reduction
    wanted = root is reduction or (
        has_lanes(schedule.places, root, tile.columns, (reduction,))
        and is_transposed(root, tile.height, tile.width, machine)
    )
    if not wanted or is_along(schedule, root, tile.columns):
        return schedule
    plan = schedule[root]
    if root is not reduction:
        loops = (*plan.loops[:depth], Loop(tile.rows), Loop(tile.columns, 1, LoopKind.VECTOR))
        plans = {**schedule.places.plans, root: replace(plan, loops=loops)}
        schedule = type(schedule)(schedule.stages, plans, "tile")
    return computed_along(schedule, root, tile.columns, depth)


def _by_rows(schedule: Schedule, tile: Tile) -> Schedule:
    """With the columns of the stage that computes the sums side by side in memory."""
    return laid_out(schedule, _summed(schedule, tile), tile.root.axes.index(tile.columns))


def _outer(tile: Tile, machine: Machine) -> list[Loop]:
    """The loops over tiles: columns first, whose panel then serves all rows, unless threads would
    share too few of them."""
    rows, columns = Loop(tile.rows, tile.height), Loop(tile.columns, tile.width)
    others = (*_axes(tile.around), tile.rows, tile.columns)
    loops = [Loop(axis) for axis in tile.root.axes if axis not in others]
    if tile.columns in _axes(tile.around):
        inner = [] if any(map(rows.same, tile.around)) else [_shifted(rows)]
        return [*tile.around, *loops, *inner]
    wanted = STEPS_PER_CORE * machine.cores
    few = machine.cores > 1 and not (loops or tile.around) and columns.steps < wanted
    group = None if few or tile.around else _group(tile, machine)
    loops += [rows, columns] if few else [group, rows, columns] if group else [columns, rows]
    loops = [loop for loop in loops if loop.axis in tile.root.axes]
    loops = [loop for loop in loops if not any(map(loop.same, tile.around))]
    shares = machine.cores > 1 and visits(tile.reduction) >= PARALLEL_ELEMENTS
    if shares and not tile.around:
        shared = _shared(loops, tile, machine.cores)
        loops.remove(shared)
        loops = [replace(shared, kind=LoopKind.PARALLEL), *loops]
    return [*tile.around, *[_shifted(loop) if loop.same(rows) else loop for loop in loops]]


def _shared(loops: Sequence[Loop], tile: Tile, cores: int) -> Loop:
    """The loop that threads share: the first one, unless another one has far more even parts, but
    none over rows, as each thread would go through all columns, and no part of another loop."""
    whole = {loop.axis: loop for loop in reversed(loops)}
    own = dict(zip(tile.root.axes, tile.reduction.axes, strict=True))
    many = [loop for loop in loops if loop.axis.extent > 1 and whole[loop.axis] is loop]
    many = [loop for loop in many if loop is many[0] or loop.axis is not tile.rows]

    def time(loop: Loop) -> float:
        steps = filled(tile.reduction, Loop(own[loop.axis], loop.step))
        return time_shared(loop.steps, steps, cores)

    best = min(many, key=time)
    return best if time(many[0]) > UNEVEN * time(best) else many[0]


def _group(tile: Tile, machine: Machine) -> Loop | None:
    """Several narrow tiles beside each other, for which the columns are copied in longer pieces and
    the rows read once."""
    itemsize = tile.reduction.dtype.itemsize
    length = math.prod([axis.extent for axis in tile.reduction.reduce_axes])
    wanted = STEPS_PER_CORE * machine.cores if machine.cores > 1 else 1
    for count in range(GROUP_BYTES // (tile.width * itemsize), 1, -1):
        group = Loop(tile.columns, count * tile.width)
        fits = length * group.step * itemsize <= min(REGION_LIMIT, machine.l2 // 2)
        if fits and tile.columns.extent % group.step == 0 and group.steps >= wanted:
            return group
    return None


def _axes(loops: Sequence[Loop]) -> list[Axis]:
    return [loop.axis for loop in loops]


def _shifted(loop: Loop) -> Loop:
    """With steps of one size, if threads do not share them."""
    uneven = loop.axis.extent % loop.step and loop.kind is LoopKind.SERIAL
    return replace(loop, shifted=True) if uneven else loop


def _inner(tile: Tile) -> list[Loop]:
    """The loops of a tile of sums."""
    rows = [] if tile.height == 1 else [Loop(tile.rows, 1, LoopKind.UNROLL)]
    reduced = map(Loop, tile.reduction.reduce_axes)
    return [*reduced, *rows, Loop(tile.columns, 1, LoopKind.VECTOR)]


def _with_panels(
    schedule: Schedule, tile: Tile, panels: Panels, machine: Machine, stack: Counter[str]
) -> Schedule:
    """With a copy in panels: panel by panel as it is needed where all that meets it follows and
    there is room on the stack, else of all of it before, as where other sums read the same through
    an inlined stage."""
    summed, width = _summed(schedule, tile), panels.width
    along = summed.axes[tile.reduction.axes.index(panels.axis)]
    schedule = schedule.cache_read(summed, panels.source, along=along)
    copy = schedule.stage(changes(schedule.stages)[-1].name)
    schedule = schedule.split(copy, copy.axes[panels.place], width, tail="pad")
    copy = schedule.current(copy)
    outer, others = Loop(copy.axes[panels.place], width), [*copy.axes]
    others.remove(outer.axis)
    schedule = schedule.layout(copy, outer, *others, outer.axis)
    fixed = copy in fixed_stages(schedule.stages)
    root, place = (
        schedule.current(tile.root),
        None if fixed else _where_needed(schedule, tile, panels),
    )
    kernel = schedule.places.chain(root)[-1].name
    held = stack[kernel] + tile.panel_bytes(panels)
    alone = schedule.readers(copy) == (schedule.current(summed),)
    if place and alone and panels.movable and held <= min(REGION_LIMIT, machine.l2 // 2):
        stack[kernel] = held
        return schedule.compute_at(copy, root, place)
    if machine.cores > 1 and math.prod(copy.shape) >= PARALLEL_ELEMENTS:
        if panels.place:  # rows are read one after the other
            return schedule.parallel(copy, copy.axes[0])
        schedule = schedule.reorder(copy, outer, *copy.axes).parallel(copy, outer)
    return schedule


def _where_needed(schedule: Schedule, tile: Tile, panels: Panels) -> Loop | None:
    """The loop in each step of which all that meets one panel follows, if there is one."""
    root, places = schedule.current(tile.root), schedule.places
    own = dict(zip(tile.reduction.axes, tile.root.axes, strict=True))
    axis, used = own[panels.axis], [own.get(each) for each in panels.uses]
    site = places.plans[root].compute_at
    outside = places.plans[site.stage].loops[: places.depth(site)] if site else ()
    aligned = site.aligned if site else ()
    again = [loop for loop in outside if (axis, loop.axis) not in aligned]
    again += [loop for loop in tile.around if loop.axis is not axis]
    if math.prod(loop.steps for loop in again) > MOST_COPIES:
        return None
    waiting = {axis, *used} & {loop.axis for loop in schedule[root].loops if loop.axis.extent > 1}
    for loop in schedule[root].loops:
        if loop.axis is axis and loop.step % panels.width:
            return None
        waiting.discard(loop.axis)
        if not waiting:
            return loop
        if loop not in again and loop.axis.extent > 1 and loop.axis not in (axis, *used):
            return None
    return None


def _chain(schedule: Schedule, tile: Tile) -> list[Stage]:
    """The stage that computes the sums of a tile, and those through which they are written."""
    chain = [schedule.current(tile.reduction)]
    while not chain[0].reduce_axes:
        chain.insert(0, schedule.places.attached[chain[0]][-1])
    return chain


def _summed(schedule: Schedule, tile: Tile) -> Stage:
    return _chain(schedule, tile)[0]


def _padded(schedule: Schedule, tile: Tile) -> Schedule:
    """With whole tiles at the end of the columns, of all that is there past the end."""
    place = tile.root.axes.index(tile.columns)
    for stage in _chain(schedule, tile):
        if stage in schedule.places.outputs:
            break
        try:
            stage = schedule.current(stage)
            schedule = schedule.pad(stage, Loop(stage.axes[place], tile.width))
        except ScheduleError:
            break
    return schedule
