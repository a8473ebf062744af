"""Products that are pooled are computed for a row of the pool at a time.

Where windows that do not overlap are reduced of a product, as in the pooling after a convolution,
the rows that a row of the result needs of the product are computed in tiles, and reduced while they
are in the caches: the product is never stored.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from tinyfuse.loops.ir import LoopKind
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import reads_through
from tinyfuse.schedule.pairs import along, pair_of
from tinyfuse.schedule.places import REGION_LIMIT, Loop, Places, Site
from tinyfuse.schedule.register_tiles import STEPS_PER_CORE
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.tile_shapes import tile_shape
from tinyfuse.schedule.turned import (
    computed_along,
    has_lanes,
    in_lanes_of,
    is_transposed,
    laid_out,
)
from tinyfuse.stage.analysis import only_axis
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage


@dataclass(frozen=True, slots=True)
class Pool:
    """A product, the stage in whose kernel it is pooled, the rows of that one, and of its columns
    how many are computed at a time: all where they are its last axis."""

    product: Stage
    root: Stage
    rows: Axis
    columns: Axis
    width: int


def pool_rows(
    schedule: Schedule, decisions: Sequence[Decision], machine: Machine, alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Compute products of a schedule of the planner's where they are pooled.

    decisions: on all stages. alone: names of stages that stay as they are.
    """
    known = {decision.producer: decision for decision in decisions}
    for product in schedule.stages.stages:
        product = schedule.current(product)  # of the schedule as it is by now
        pool = None if product.name in alone else _pool(schedule.places, product, machine)
        if pool and pool.root.name not in alone:
            schedule = _pooled(schedule, pool, machine)
            reason = f"{pool.root.name} reduces what a row of it needs, while it is in the caches"
            known[product.name] = replace(known[product.name], action="compute_at", reason=reason)
            for local in [each for each in schedule.stages.stages if each.name not in known]:
                known[local.name] = in_lanes_of(product, pool.columns, local, pool.root)
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _pool(places: Places, product: Stage, machine: Machine) -> Pool | None:
    """Where a product could be computed as it is pooled; None if it is not."""
    pair = pair_of(places, product, machine)
    if pair is None or product in places.outputs or places.attached.get(product):
        return None
    root, *others = {places.chain(reader)[-1]: None for reader in places.readers[product]} or [None]
    if root is None or others:  # None where all that reads it is behind tests that always fail
        return None
    if places.plans[product].compute_at or len(root.axes) != len(product.axes):
        return None
    place = product.axes.index(pair[1])
    columns = root.axes[place]
    inside = (columns, root.axes[-1])
    found = [axis for axis in root.axes if axis.extent > 1 and axis not in inside]
    rows = next((axis for axis in found if _is_pooled(places, product, root, axis, place)), None)
    if rows is None or rows.extent < STEPS_PER_CORE * machine.cores:
        return None
    width = tile_shape(places, product, pair[0].extent, columns.extent, machine)[1]
    width = columns.extent if columns is root.axes[-1] else width
    held = math.prod(product.shape) // rows.extent // columns.extent * width
    if held * product.dtype.itemsize > min(REGION_LIMIT, machine.l2 // 2):
        return None
    return Pool(product, root, rows, columns, width)


def _is_pooled(places: Places, product: Stage, root: Stage, rows: Axis, columns: int) -> bool:
    """Whether each row of a kernel reads rows of a product that no other row of it reads, and
    these alone decide which, of all columns."""
    for reader in places.readers[product]:
        own = along(reader, root, rows)
        same = along(reader, root, root.axes[columns])
        loads = [x for x in reads_through(reader, places.inlined) if x.source is product]
        if own is None or same is None or any(load.data for load in loads):
            return False
        if any(only_axis(load.indices[columns]) is not same for load in loads):
            return False
        if not reader.reduce_axes or not _are_apart(loads, own):
            return False
    return True


def _are_apart(loads: Sequence[Load], rows: Axis) -> bool:
    """Whether several rows are read for one, and none of them for another one."""
    moving = [index for load in loads for index in load.indices if rows in index.axes()]
    steps = {index.coefficient(rows) for index in moving}
    if len(moving) != len(loads) or len(steps) != 1:
        return False
    step = steps.pop()
    read = [index.interval() for index in moving]  # in all rows
    within = max(last for _, last in read) - min(first for first, _ in read)
    return step > 1 and within - step * (rows.extent - 1) < step


def _pooled(schedule: Schedule, pool: Pool, machine: Machine) -> Schedule:
    root, places, plans = pool.root, schedule.places, dict(schedule.places.plans)
    kind = LoopKind.PARALLEL if machine.cores > 1 else LoopKind.SERIAL
    split = pool.columns is not root.axes[-1]
    moved = (pool.rows, pool.columns, root.axes[-1])
    outer = [Loop(pool.rows, 1, kind), *[Loop(axis) for axis in root.axes if axis not in moved]]
    outer += [Loop(pool.columns, pool.width)] if split else []
    done = [loop.axis for loop in outer if loop.step == 1]
    inner = [_serial(loop) for loop in plans[root].loops if loop.axis not in done]
    lanes = split and _is_in_lanes(places, pool, machine)
    inner = _with_lanes(inner, root, pool.columns) if lanes else inner
    site = Site(root, outer[-1])
    plans[root] = replace(plans[root], loops=(*outer, *inner))
    for stage in places.attached.get(root, ()):
        old = plans[stage].compute_at
        assert old is not None
        loop = inner[0] if split else outer[-1]
        plans[stage] = replace(plans[stage], compute_at=replace(old, loop=loop))
    loops = tuple(map(_serial, plans[pool.product].loops))
    plans[pool.product] = replace(plans[pool.product], loops=loops, compute_at=site)
    schedule = Schedule(schedule.stages, plans, "pool rows")
    return _computed_in_lanes(schedule, pool, len(outer)) if lanes else schedule


def _is_in_lanes(places: Places, pool: Pool, machine: Machine) -> bool:
    """Whether the pool's columns can be lanes of vectors as well, and what they give be transposed
    as it is written."""
    pooling = places.attached.get(pool.root, ())
    known = (pool.product, *pooling)
    for stage in (pool.root, *pooling):
        own = along(stage, pool.root, pool.columns)
        if own is None or not has_lanes(places, stage, own, known):
            return False
    rows = pool.root.axes[-1].extent
    return is_transposed(pool.root, rows, pool.width, machine)


def _with_lanes(loops: Sequence[Loop], stage: Stage, columns: Axis) -> list[Loop]:
    """Loops with that over the columns inside of those over all other axes, right around what is
    reduced: the C compiler writes that out, and makes vectors of the columns."""
    own = [Loop(loop.axis) for loop in loops if loop.axis not in (columns, *stage.reduce_axes)]
    reduced = [loop for loop in loops if loop.axis in stage.reduce_axes]
    return [*own, Loop(columns), *reduced]


def _computed_in_lanes(schedule: Schedule, pool: Pool, depth: int) -> Schedule:
    place = pool.root.axes.index(pool.columns)
    for stage in schedule.places.attached[pool.root]:
        if stage is not pool.product:
            plans = dict(schedule.places.plans)
            loops = _with_lanes(plans[stage].loops, stage, stage.axes[place])
            plans[stage] = replace(plans[stage], loops=tuple(loops))
            schedule = Schedule(schedule.stages, plans, "pool rows")
        schedule = laid_out(schedule, stage, place)
    return computed_along(schedule, pool.root, pool.columns, depth)


def _serial(loop: Loop) -> Loop:
    return replace(loop, kind=LoopKind.SERIAL) if loop.kind is LoopKind.PARALLEL else loop
