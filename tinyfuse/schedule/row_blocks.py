"""Products inside the rows of another stage are computed for several rows at a time.

Where a kernel goes by rows, as a layer norm after a matrix product does, or one product after
another, a product for a single row would go through a whole matrix for each. For a block of rows it
is computed in tiles, and what reads it follows row by row while the block is in the caches.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from tinyfuse.loops.ir import LoopKind
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.pairs import along, pair_of, takes_each_element, tile_of
from tinyfuse.schedule.places import REGION_LIMIT, Loop, Places, Site, StagePlan
from tinyfuse.schedule.register_tiles import STEPS_PER_CORE
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.tile_shapes import SHAPES, tile_shape
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage

# Rows of a block, at most; and those of tiles, of which it is a multiple.
ROWS = 48
LEAST, OTHER = 6, 8
# Blocks for each core, so that threads end together; and how much later the last may end than with
# blocks of another size.
BLOCKS_PER_CORE = 2
LATER = 1.2


@dataclass(frozen=True, slots=True)
class Blocks:
    """A loop over rows that goes by blocks, and what is computed for a block at a time.

    root: the stage whose loop it is.
    """

    root: Stage
    loop: Loop
    rows: int
    moved: tuple[Stage, ...]


def block_rows(
    schedule: Schedule, decisions: Sequence[Decision], machine: Machine, alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Let products of a schedule of the planner's take blocks of rows.

    decisions: on all stages. alone: names of stages that stay as they are.
    """
    known = {decision.producer: decision for decision in decisions}
    for root in list(schedule.places.kernels):
        attached = schedule.places.attached.get(root, [])
        if not attached or any(stage.name in alone for stage in (root, *attached)):
            continue
        width = _common_width(schedule.places, root, machine)
        blocks = None if width else _blocks(schedule.places, root, machine)
        if blocks and not _has_tiles(_blocked(schedule, blocks), blocks, machine):
            blocks = None
        if width:
            schedule, changed = _by_columns(schedule, root, width, machine), attached
            reason = f"one kernel computes it and {root.name}, {width} columns of each at a time"
        elif blocks:
            schedule, changed = _blocked(schedule, blocks), [*blocks.moved]
            reason = f"{root.name} goes by rows, {blocks.rows} of which it is computed for at once"
        else:
            changed, before = _apart(schedule, root, machine), schedule
            schedule = _with_own_kernels(schedule, changed, machine)
            for stage in sorted(changed, key=lambda each: root in before.readers(each)):
                schedule = _with_reader(schedule, stage, machine)
            reason = f"in the loops of {root.name} there would be no tiles of it"
            changed += [each for each in attached if _goes_with(schedule, each, changed)]
        for stage in changed:
            known[stage.name] = replace(known[stage.name], reason=reason)
            if schedule[stage].compute_at is None:
                known[stage.name] = replace(known[stage.name], action="store")
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _has_tiles(blocked: Schedule, blocks: Blocks, machine: Machine) -> bool:
    """Whether a product that is computed for a block, or what reads it, is computed in tiles."""
    return any(tile_of(blocked, stage, machine) for stage in (*blocks.moved, blocks.root))


def _apart(schedule: Schedule, root: Stage, machine: Machine) -> list[Stage]:
    """The products in the loops of a stage that can be computed in tiles, but not there."""
    places = schedule.places
    return [
        stage
        for stage in places.attached[root]
        if pair_of(places, stage, machine)
        and tile_of(schedule, stage, machine) is None
        and not places.attached.get(stage)
        and not any(places.plans[source].compute_at for source in places.sources[stage])
    ]


def _with_own_kernels(schedule: Schedule, stages: Sequence[Stage], machine: Machine) -> Schedule:
    plans = dict(schedule.places.plans)
    for stage in stages:
        first, *rest = [*map(Loop, stage.axes), *map(Loop, stage.reduce_axes)]
        kind = LoopKind.PARALLEL if machine.cores > 1 else LoopKind.SERIAL
        plans[stage] = StagePlan((replace(first, kind=kind), *rest))
    return Schedule(schedule.stages, plans, "own kernels") if stages else schedule


def _goes_with(schedule: Schedule, stage: Stage, products: Collection[Stage]) -> bool:
    """Whether a stage has one of some products in its kernel."""
    return any(each in products for each in schedule.places.attached.get(stage, ()))


def _with_reader(schedule: Schedule, product: Stage, machine: Machine) -> Schedule:
    """With what takes each element of a product in a kernel with it, if that is in tiles then, and
    nothing else in the kernel that it leaves needs it."""
    places, plans = schedule.places, dict(schedule.places.plans)
    readers = places.readers[product]
    if len(readers) != 1 or places.attached.get(readers[0]):
        return schedule
    (reader,) = readers
    if reader.reduce_axes or reader.row_axis or reader.scatter or reader.scan:
        return schedule
    group = places.chain(reader)[-1]
    others = {group, *places.attached.get(group, ())} - {reader}
    if not others.isdisjoint([*places.sources[reader], *places.readers[reader]]):
        return schedule
    shared = next((axis for axis in reader.axes if axis.extent > 1), reader.axes[0])
    kind = LoopKind.PARALLEL if machine.cores > 1 else LoopKind.SERIAL
    first, rest = Loop(shared, 1, kind), [Loop(a) for a in reader.axes if a is not shared]
    plans[reader] = StagePlan((first, *rest))
    axes = (*product.axes, *product.reduce_axes)
    plans[product] = StagePlan(tuple(map(Loop, axes)), compute_at=Site(reader, first))
    together = Schedule(schedule.stages, plans, "own kernels")
    is_taken = takes_each_element(together.places, reader, product)
    return together if is_taken and tile_of(together, product, machine) else schedule


def _common_width(places: Places, root: Stage, machine: Machine) -> int:
    """How many columns tiles have of several products of one kernel that do not need each other, if
    there are such alone and threads can share the columns; else 0."""
    others = places.attached.get(root, [])
    products = [root, *others]
    pairs = [pair_of(places, stage, machine) for stage in products]
    if not others or any(
        pair is None or pair[1] is not stage.axes[-1]
        for pair, stage in zip(pairs, products, strict=True)
    ):
        return 0
    if any(len(stage.axes) != 2 or stage.shape != root.shape for stage in products):
        return 0
    if any(other in places.sources[stage] for stage in products for other in products):
        return 0
    rows, columns = root.shape
    widths = {tile_shape(places, stage, rows, columns, machine)[1] for stage in products}
    wanted = STEPS_PER_CORE * machine.cores * max(widths) if machine.cores > 1 else 0
    return widths.pop() if len(widths) == 1 and columns >= wanted else 0


def _by_columns(schedule: Schedule, root: Stage, width: int, machine: Machine) -> Schedule:
    """Products of one kernel side by side, so many columns of each at a time."""
    rows, columns = root.axes
    kind = LoopKind.PARALLEL if machine.cores > 1 else LoopKind.SERIAL
    shared = Loop(columns, width, kind)
    plans = dict(schedule.places.plans)
    inner = [Loop(rows), *map(Loop, root.reduce_axes), Loop(columns, 1, LoopKind.VECTOR)]
    plans[root] = replace(plans[root], loops=(shared, *inner))
    for stage in schedule.places.attached[root]:
        site = Site(root, shared, ((stage.axes[1], columns),))
        plans[stage] = replace(plans[stage], compute_at=site)
    return Schedule(schedule.stages, plans, "columns")


def _blocks(places: Places, root: Stage, machine: Machine) -> Blocks | None:
    attached = places.attached.get(root, [])
    found = {stage: pair_of(places, stage, machine) for stage in (root, *attached)}
    products = {stage: pair[0] for stage, pair in found.items() if pair}
    if not products or any(takes_each_element(places, root, stage) for stage in products):
        return None
    loop = _rows(places, root, products, attached)
    if loop is None:
        return None
    moved = _needed(places, products, attached, loop)
    if moved is None:
        return None
    inside = len(root.axes[: root.axes.index(loop.axis) + 1])
    row = sum(math.prod(stage.shape[inside:]) * stage.dtype.itemsize for stage in moved)
    most = min(REGION_LIMIT, machine.l2 // 2) // max(1, row)
    extent = loop.axis.extent
    most = min(ROWS, most, extent)
    heights = _heights(places, found, extent, machine)
    if loop.kind is LoopKind.PARALLEL:
        rows = _shared_block(heights, most, extent, machine)
    else:
        rows = most - most % heights[0]
    return Blocks(root, loop, rows, moved) if LEAST <= rows < extent else None


def _heights(
    places: Places,
    pairs: Mapping[Stage, tuple[Axis, Axis] | None],
    rows: int,
    machine: Machine,
) -> tuple[int, ...]:
    """The rows of tiles of which blocks are made, first those that so many rows would be in.

    pairs: stages with the rows and columns of those that are products.
    """
    shapes = [tile_shape(places, s, rows, p[1].extent, machine) for s, p in pairs.items() if p]
    known = {height for height, *_ in SHAPES[machine.vector_registers]}
    order = (OTHER, LEAST) if all(height == OTHER for height, _ in shapes) else (LEAST, OTHER)
    return tuple([height for height in order if height in known])


def _shared_block(heights: Sequence[int], most: int, extent: int, machine: Machine) -> int:
    """The rows of a block where threads share blocks: the most, in tiles of the first height, with
    which they end together; 0 where there is no room."""
    wanted = min(most, extent // (BLOCKS_PER_CORE * machine.cores))
    sizes = [
        rows
        for height in heights
        for rows in range(max(height, wanted - wanted % height), 0, -height)
        if rows <= most
    ]

    def time(rows: int) -> int:
        ends = [-(-extent // rows) * share // machine.cores for share in range(machine.cores + 1)]
        return max(min(extent, rows * end) - rows * start for start, end in pairwise(ends))

    most_time = LATER * min(map(time, sizes), default=0)
    return next((rows for rows in sizes if time(rows) <= most_time), 0)


def _rows(
    places: Places, root: Stage, products: Mapping[Stage, Axis], attached: Sequence[Stage]
) -> Loop | None:
    """The loop over rows in which the products are computed, or what the product at the root
    reads; None where it is not the same for all. products: with their rows."""
    inside = [stage for stage in products if stage is not root] or attached
    sites = [places.plans[stage].compute_at for stage in inside]
    loops = [site.loop if site else None for site in sites]
    loop = loops[0] if loops else None
    if loop is None or loop.step > 1 or any(each is not loop for each in loops):
        return None
    if loop.axis not in root.axes or loop.kind is LoopKind.VECTOR or root.row_axis or root.scatter:
        return None
    if any(along(stage, root, loop.axis) is not rows for stage, rows in products.items()):
        return None
    others = [each for each in places.plans[root].loops if each.axis is loop.axis]
    return loop if others == [loop] and loop.axis.extent > 1 else None


def _needed(
    places: Places, products: Collection[Stage], attached: Sequence[Stage], loop: Loop
) -> tuple[Stage, ...] | None:
    """The products in a loop and what they need of what is computed there; None where something
    has a place of another kind."""
    wanted = set(products)
    for stage in reversed(attached):
        if any(stage in places.sources[reader] for reader in wanted):
            wanted.add(stage)
    moved = tuple([stage for stage in attached if stage in wanted])
    for stage in moved:
        plan = places.plans[stage]
        site = plan.compute_at
        if site is None or site.loop is not loop or plan.ring or len(site.aligned) > 1:
            return None
        if plan.store_at and not site.aligned:
            return None
    return moved


def _blocked(schedule: Schedule, blocks: Blocks) -> Schedule:
    root, loop = blocks.root, blocks.loop
    block = Loop(loop.axis, blocks.rows, loop.kind)
    inner = replace(loop, kind=LoopKind.SERIAL)
    plans = dict(schedule.places.plans)
    for stage, plan in plans.items():
        site = plan.compute_at
        if site and site.stage is root and site.loop is loop:
            inside = block if stage in blocks.moved else inner
            plans[stage] = replace(plan, compute_at=replace(site, loop=inside))
    loops = [[block, inner] if each is loop else [each] for each in plans[root].loops]
    plans[root] = replace(plans[root], loops=tuple([each for pair in loops for each in pair]))
    return Schedule(schedule.stages, plans, "block rows")
