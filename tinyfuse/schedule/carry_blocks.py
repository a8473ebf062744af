"""Sums over blocks that are scaled as a running value moves on are computed in one kernel.

In each step of the sums' loop one block of everything is computed, for a tile of rows; all that is
kept from step to step is the last value of the scan, and the sums. Rows lie side by side in
vectors, so that nothing is combined across them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.carried import Carried, Readers
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.edits import root_plan, with_loop
from tinyfuse.schedule.loop_order import place_of, reads_through, with_inlined
from tinyfuse.schedule.places import Loop, Site, StagePlan
from tinyfuse.schedule.register_tiles import STEPS_PER_CORE
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.tile_shapes import fits_vectors
from tinyfuse.stage.analysis import consumers
from tinyfuse.stage.expr import Load, depends_on, is_select
from tinyfuse.stage.index import Axis, affine
from tinyfuse.stage.ir import Order, Stage

# Rows of a tile of everything.
ROWS = 64
# By the registers that a processor has, the rows and the vectors of columns of a tile of products.
SHAPES = {32: (8, 2), 16: (4, 2)}


def carry_blocks(
    schedule: Schedule,
    decisions: Sequence[Decision],
    machine: Machine,
    found: Sequence[Carried],
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Compute each in one kernel, block by block.

    decisions: on all stages. What is returned has those on the stages that are added as well.
    """
    known = {decision.producer: decision for decision in decisions}
    for carried in found:
        if any(stage not in schedule.places.plans for stage in carried.stages):
            raise ScheduleError(f"{carried.root.name} reads copies that are made otherwise")
        schedule = _Nest(schedule, carried, machine).scheduled()
        for stage in schedule.stages.stages:
            known[stage.name] = _decision(schedule, stage, carried, known.get(stage.name))
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _decision(
    schedule: Schedule, stage: Stage, carried: Carried, before: Decision | None
) -> Decision:
    root = schedule.current(carried.root)
    inside = not schedule[stage].inlined and root in schedule.places.chain(stage)[1:]
    if before is not None and not inside:
        return before
    readers = tuple([reader.name for reader in schedule.readers(stage)])
    reason = f"online softmax: {root.name} takes blocks of {carried.blocks.name}, some rows at once"
    return Decision(stage.name, readers, "compute_at", reason)


class _Nest:
    """The loops of one computation, all inside those of its root.

    tiled: whether rows fill vectors; else elements along keys and columns do. few: whether there
    are several rows all the same, which meet each key and each column.
    """

    def __init__(self, schedule: Schedule, carried: Carried, machine: Machine):
        self.schedule, self.carried, self.machine = schedule, carried, machine
        self.plans = dict(schedule.places.plans)
        self.height, vectors = SHAPES[machine.vector_registers]
        self.lanes = machine.vector_bytes // carried.root.dtype.itemsize
        self.width = vectors * self.lanes
        self.tiled = any(axis.extent >= self.lanes for axis in carried.rows)
        several = any(axis.extent > 1 for axis in carried.rows)
        self.depth = 0  # loops of the root around all else
        self.few = several and not self.tiled and not machine.device

    def scheduled(self) -> Schedule:
        """Raises ScheduleError where it can't be done."""
        self._free()
        self._keep_scores()
        at = self._root()
        self._sums(at)
        self._blocks()
        elements = self._elements()
        self.schedule = Schedule(self.schedule.stages, self.plans, "carry blocks")
        for stage in self.carried.scores if self.tiled or self.few else ():
            self._score_tiles(stage, elements)
        for stage in (self.carried.tops, *self.carried.inside, *elements) if self.tiled else ():
            self._turned(self.schedule.current(stage))
        return self.schedule

    def _free(self) -> None:
        """What else is computed inside these stages is computed before them, but for lanes."""
        for stage, site in self.schedule.places.seated:
            if site.stage in self.carried.stages and site.stage.order is Order.SERIAL:
                self.plans[stage] = root_plan(stage)

    def _keep_scores(self) -> None:
        """Compute what blocks read of scores once, where vectors do it as the products are made."""
        if self.machine.device or not (self.tiled or self.few):
            return
        inlined, readers = self.schedule.places.inlined, consumers(self.schedule.stages)
        kept = [_last_of_vectors(stage, readers, inlined) for stage in self.carried.scores]
        changed = [stage for stage in kept if stage in inlined and len(readers[stage]) > 1]
        if changed:
            self.plans.update({stage: root_plan(stage) for stage in changed})
            self.schedule = Schedule(self.schedule.stages, self.plans, "carry blocks")

    # --- the sums ---------------------------------------------------------------------------------

    def _root(self) -> Loop | None:
        """The loops of the root, around all and through the results; the last of those around."""
        carried, cores = self.carried, self.machine.cores
        own = carried.along(carried.root)
        outer = [axis for axis in carried.outer if axis in own and axis not in carried.rows]
        around = [Loop(own[axis]) for axis in outer]
        around += [Loop(own[axis], min(ROWS, axis.extent)) for axis in carried.rows if self.tiled]
        if cores > 1 and around:
            enough = [loop for loop in around if loop.steps >= STEPS_PER_CORE * cores]
            shared = next(iter(enough), max(around, key=lambda loop: loop.steps))
            around.remove(shared)
            around.insert(0, replace(shared, kind=LoopKind.PARALLEL))
        around = [_with_whole_steps(loop) for loop in around]
        self.depth = len(around)
        done = [loop.axis for loop in around if loop.step == 1]
        *through, last = [axis for axis in carried.root.axes if axis not in done]
        self.plans[carried.root] = StagePlan((*around, *map(Loop, through), _lanes(last)))
        return around[-1] if around else None

    def _sums(self, at: Loop | None) -> None:
        carried, leader = self.carried, self.carried.leader
        own = carried.along(leader)
        outer = [Loop(own[axis]) for axis in carried.outer if axis not in carried.rows]
        blocks = Loop(carried.blocks)
        inner = [Loop(own[axis]) for axis in carried.inner[:-1]]
        loops = (*outer, blocks, *inner, *self._tiles(leader), *self._through(leader))
        self.plans[leader] = StagePlan(loops, compute_at=Site(carried.root, at))
        before = Site(leader, outer[-1] if outer else None)
        for stage in (*carried.others, carried.scan):
            along = [(axis, own[of]) for of, axis in carried.along(stage).items()]
            step = (stage.scan or stage.reduce_axes[0], carried.blocks)
            site = Site(leader, blocks, (*along, step))
            plan = StagePlan(self._by_rows(stage), compute_at=site, store_at=Site(carried.root, at))
            if stage.scan:
                plan = replace(plan, store_at=before, ring=(stage.scan, 1))
            self.plans[stage] = plan

    def _tiles(self, stage: Stage) -> tuple[Loop, ...]:
        """Loops over tiles of products."""
        if not (self.tiled or self.few):
            return ()
        own = self.carried.along(stage)
        (rows,) = [own[axis] for axis in self.carried.rows]
        height = self.height if self.tiled else min(self.height, rows.extent)
        return Loop(own[self.carried.inner[-1]], self.width), Loop(rows, height)

    def _through(self, stage: Stage) -> tuple[Loop, ...]:
        """Loops through a tile of products, or all of them."""
        kind = LoopKind.UNROLL if self.tiled or self.few else LoopKind.SERIAL
        own = self.carried.along(stage)
        rows = [Loop(own[axis], 1, kind) for axis in self.carried.rows]
        return (*rows, _lanes(own[self.carried.inner[-1]]))

    # --- a block ----------------------------------------------------------------------------------

    def _blocks(self) -> None:
        carried, products = self.carried, self.carried.products
        step = Site(carried.leader, Loop(carried.blocks))
        for stage in (carried.tops, *carried.inside):
            loops = self._by_rows(stage)
            by_keys = self.few and loops[-1].axis not in carried.along(stage).values()
            layout = tuple([replace(loop, kind=LoopKind.SERIAL) for loop in loops])
            plan = StagePlan(loops, compute_at=step, layout=layout if by_keys else None)
            self.plans[stage] = plan
        tiles, through = self._tiles(products), self._through(products)
        others = [a for a in products.axes if a not in [loop.axis for loop in through]]
        loops = (*map(Loop, others), *tiles, *map(Loop, products.reduce_axes), *through)
        site = Site(carried.leader, self._tiles(carried.leader)[-1]) if tiles else step
        self.plans[products] = StagePlan(loops, compute_at=site)

    def _by_rows(self, stage: Stage) -> tuple[Loop, ...]:
        """Loops with those over rows innermost, or where these are few those over keys."""
        of_rows = self.carried.along(stage)
        lanes = [of_rows[axis] for axis in self.carried.rows] or [*of_rows.values()][-1:]
        if not self.tiled and len(stage.axes) > 1 + len(of_rows):
            lanes = [stage.axes[1]]
        axes = [axis for axis in (*stage.axes, *stage.reduce_axes) if axis not in lanes]
        return (*map(Loop, axes), *map(_lanes, lanes))

    def _elements(self) -> list[Stage]:
        """Let what is stored between scores and blocks be computed with these; these stages."""
        carried, places = self.carried, self.schedule.places
        users = {carried.tops, *carried.inside}
        found: list[Stage] = []
        for stage in reversed(self.schedule.stages.stages):
            if stage in carried.stages or self.plans[stage].inlined or stage in places.outputs:
                continue
            readers = places.readers[stage]
            if not carried.axes_of(stage) or not readers or not users.issuperset(readers):
                continue
            attached = places.attached.get(stage, ())
            if any(places.readers[each] != [stage] for each in attached):  # for others too
                continue
            if not (stage.reduce_axes or stage.row_axis or stage.scatter):
                found.append(stage)
                users.add(stage)
        for stage in (*found, *carried.scores):
            self._by_pairs(stage)
        return found

    def _axes(self, stage: Stage) -> tuple[list[Axis], tuple[Axis, ...], Axis]:
        """The axes of a stage of scores: others, those of rows, that of keys."""
        found = self.carried.axes_of(stage)
        if found is None:
            raise ScheduleError(f"{stage.name} has no rows and keys")
        rows, keys = found
        return [axis for axis in stage.axes if axis not in (*rows, keys)], rows, keys

    def _by_pairs(self, stage: Stage) -> None:
        """Compute what has an element for each row and key for a block at a time."""
        others, rows, keys = self._axes(stage)
        site = Site(self.carried.leader, Loop(self.carried.blocks))
        if stage.order is not Order.SERIAL:  # each element of lanes that are computed in it
            for loop in self.plans[stage].loops:
                alone = replace(loop, kind=LoopKind.SERIAL)
                self.plans = with_loop(self.plans, stage, loop, alone)
            self.plans[stage] = StagePlan(self.plans[stage].loops, compute_at=site)
            return
        order = (keys, *rows) if self.tiled else (*rows, keys)
        axes = [*others, *order[:-1], *stage.reduce_axes]
        layout = tuple(map(Loop, (*others, *order)))
        loops = [*map(Loop, axes), _lanes(order[-1])]
        self.plans[stage] = StagePlan(tuple(loops), compute_at=site, layout=layout)

    # --- tiles of scores --------------------------------------------------------------------------

    def _score_tiles(self, stage: Stage, elements: Sequence[Stage]) -> None:
        """Compute a product of scores tile by tile in registers, from a copy of what does not lie
        side by side along rows."""
        others, across, along = self._tile_axes(stage)
        taker = self._taker(stage)
        if taker is not None and taker in elements:
            self._in_tiles(taker)
            self._in_tiles(stage, taker)
            self._copied(stage, along)
            return
        self._in_tiles(stage)
        self.schedule = self.schedule.cache_write(stage, self._tile_of(stage))
        summed = self.schedule.places.attached[self.schedule.current(stage)][-1]
        own = dict(zip(stage.axes, summed.axes, strict=True))
        self.schedule = self.schedule.layout(summed, *[own[a] for a in (*others, across, along)])
        self._copied(summed, own[along])

    def _tile_axes(self, stage: Stage) -> tuple[list[Axis], Axis, Axis]:
        """The axes of a stage of scores: others, that across vectors, and that along them."""
        others, (rows, *_), keys = self._axes(stage)
        return (others, keys, rows) if self.tiled else (others, rows, keys)

    def _taker(self, stage: Stage) -> Stage | None:
        """What alone reads a product of scores, each element once, and computes in vectors."""
        places = self.schedule.places
        reader, *rest = places.readers[stage]
        loads = [x for x in reads_through(reader, places.inlined) if x.source is stage]
        if rest or [x.indices for x in loads] != [tuple(map(affine, reader.axes))]:
            return None
        bodies = [each.body for each in with_inlined(reader, places.inlined) if each.body]
        return reader if all(map(fits_vectors, bodies)) else None

    def _tile_of(self, stage: Stage) -> Loop:
        """The loop over tiles of a stage that has been put into tiles."""
        return [loop for loop in self.schedule[stage].loops if loop.step > 1][-1]

    def _in_tiles(self, stage: Stage, taker: Stage | None = None) -> None:
        """Loops over tiles of rows and keys; of another stage's, if each of these takes one."""
        others, across, along = self._tile_axes(stage)
        tiles = Loop(along, self.width), Loop(across, min(self.height, across.extent))
        inside = *map(Loop, stage.reduce_axes), Loop(across, 1, LoopKind.UNROLL), _lanes(along)
        plan = replace(self.schedule[stage], loops=(*map(Loop, others), *tiles, *inside))
        if taker is not None:
            plan = replace(plan, compute_at=Site(taker, self._tile_of(taker)))
        plans = {**self.schedule.places.plans, stage: plan}
        self.schedule = Schedule(self.schedule.stages, plans, "carry blocks")

    def _copied(self, summed: Stage, rows: Axis) -> None:
        """Let a product of scores read what is computed, or copied, for a tile of rows each; or of
        keys, where these lie along vectors."""
        inlined = self.schedule.places.inlined
        loads = [load for load in reads_through(summed, inlined) if depends_on(load, rows)]
        across = {x.source: x for x in loads if place_of(x).coefficient(rows) != 1 and not x.data}
        for load in across.values():
            if self.few or not self._is_alone(load.source, summed):
                load = self._with_copy(self.schedule.current(summed), load, rows)
            pairs = zip(load.source.axes, load.indices, strict=True)
            (axis,) = [own for own, at in pairs if at.depends_on(rows)]
            self._at_tile(load.source, axis)

    def _turned(self, stage: Stage) -> None:
        """Let what is computed of a block read copies of what lies across the rows, as masks do."""
        places, root = self.schedule.places, self.schedule.current(self.carried.root)
        for load in reads_through(stage, places.inlined):
            within = not load.source.is_input and root in places.chain(load.source)
            axes = [axis for axis in stage.axes if abs(place_of(load).coefficient(axis)) > 1]
            rows = [axis for axis in axes if self._is_lane(stage, axis)]
            if within or load.data or not rows:
                continue
            copied = self._with_copy(stage, load, rows[0])
            pairs = zip(copied.source.axes, load.indices, strict=True)
            (along,) = [own for own, at in pairs if at.depends_on(rows[0])]
            self._at(copied.source, along, self._block())
            self._turned(self.schedule.current(stage))
            return

    def _is_lane(self, stage: Stage, axis: Axis) -> bool:
        return _lanes(axis) in self.schedule[stage].loops

    def _is_alone(self, source: Stage, reader: Stage) -> bool:
        """Whether a stage in a kernel of its own is computed element by element for one reader."""
        places = self.schedule.places
        if source.is_input or source in places.outputs or places.attached.get(source):
            return False
        if source.reduce_axes or source.row_axis or source.scatter:
            return False
        return places.readers[source] == [reader] and places.plans[source].compute_at is None

    def _at_tile(self, stage: Stage, along: Axis) -> None:
        """Compute a stage for a tile of rows, which lie side by side along an axis of it."""
        root = self.schedule.current(self.carried.root)
        outer = self.schedule[root].loops[: self.depth]
        self._at(stage, along, self._block() if self.few else Site(root, outer[-1]))

    def _block(self) -> Site:
        """A step of the loop over blocks."""
        leader = self.schedule.current(self.carried.leader)
        blocks = next(x for x in self.schedule[leader].loops if x.axis in leader.reduce_axes)
        return Site(leader, blocks)

    def _at(self, stage: Stage, along: Axis, site: Site) -> None:
        """Compute a stage somewhere, so that an axis of it lies side by side there."""
        others = [axis for axis in stage.axes if axis is not along]
        layout = tuple(map(Loop, (*others, along)))
        plan = StagePlan(tuple(map(Loop, stage.axes)), compute_at=site, layout=layout)
        plans = {**self.schedule.places.plans, stage: plan}
        self.schedule = Schedule(self.schedule.stages, plans, "carry blocks")

    def _with_copy(self, summed: Stage, load: Load, rows: Axis) -> Load:
        """The load of a copy in place of one."""
        before = {stage.name for stage in self.schedule.stages.stages}
        self.schedule = self.schedule.cache_read(summed, load.source, along=rows)
        stages = self.schedule.stages.stages
        copy = next(stage for stage in stages if stage.name not in before)
        return Load(copy, load.indices)


def _last_of_vectors(stage: Stage, readers: Readers, inlined: Container[Stage]) -> Stage:
    """What inlined stages make of each element of another one alone, as far as vectors can."""
    while len(readers[stage]) == 1:
        (reader,) = readers[stage]
        loads = [load.indices for load in reader.reads() if load.source is stage]
        if reader not in inlined or loads != [tuple(map(affine, reader.axes))]:
            break
        if reader.body is None or is_select(reader.body) or not fits_vectors(reader.body):
            break
        stage = reader
    return stage


def _lanes(axis: Axis) -> Loop:
    return Loop(axis, 1, LoopKind.VECTOR)


def _with_whole_steps(loop: Loop) -> Loop:
    """With steps of one size, if threads do not share them."""
    uneven = loop.axis.extent % loop.step and loop.kind is LoopKind.SERIAL
    return replace(loop, shifted=True) if uneven else loop
