"""Lowering: stages and a schedule become loop nests.

Everything rests on ranges: for each axis of a stage an affine base and a constant extent. Opening a
loop narrows one range; a point is reached when every extent is 1; the region that a producer must
cover is the image of its consumer's ranges under the consumer's index expressions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from itertools import chain
from math import prod
from types import MappingProxyType

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.cost import count
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    Kernel,
    Loops,
    Prefetch,
    Row,
    Scope,
    Statement,
    Store,
)
from tinyfuse.loops.names import unused
from tinyfuse.lower.ahead import with_blocks_ahead
from tinyfuse.lower.alike import Form, Key, Known, form_of
from tinyfuse.lower.bindings import bindings, with_bindings
from tinyfuse.lower.bounds import Range, Ranges, changes, whole
from tinyfuse.lower.chains import ChainLowering
from tinyfuse.lower.collapse import collapse
from tinyfuse.lower.coverage import Coverage
from tinyfuse.lower.grain import grain
from tinyfuse.lower.guards import Guards
from tinyfuse.lower.hoist import hoist
from tinyfuse.lower.panels import with_next_panels
from tinyfuse.lower.point import Point
from tinyfuse.lower.reads import Reads, reads_of
from tinyfuse.lower.regions import Regions
from tinyfuse.lower.registers import require_registers, with_registers
from tinyfuse.lower.rows_in_results import with_rows_in_results
from tinyfuse.lower.rows_of_joined import with_rows_in_joined
from tinyfuse.lower.scratch import plan_scratch
from tinyfuse.lower.sharing import place_over, shares
from tinyfuse.lower.storage import Names, Storage, parts_of, whole_lines
from tinyfuse.lower.streaming import stream
from tinyfuse.lower.tiles import with_prefetches
from tinyfuse.lower.transposes import with_transposes
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.places import STACK_LIMIT, Loop, Site
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.expr import Expr, Load
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Order, Stage, sources_of


def lower(
    schedule: Schedule,
    machine: Machine,
    arrays: Mapping[Stage, Buffer] = MappingProxyType({}),
    taken: Collection[str] = (),
) -> Loops:
    """The loop nests of a scheduled program, one kernel for each stage computed at the root.

    arrays: buffers of some inputs and outputs; an input and an output can have the same. taken:
    names that kernels and other buffers must not have.
    Raises ScheduleError where what a stage computed inside another one needs is no constant
    region, or too large for a thread's stack.
    """
    bound = bindings(schedule)
    lowering = _Lowering(schedule.unbound(), machine, arrays, taken)
    lowering.apart = frozenset(bound if machine.device else ())
    return with_bindings(lowering.program(), bound)


class _Lowering(ChainLowering):
    def __init__(
        self,
        schedule: Schedule,
        machine: Machine,
        arrays: Mapping[Stage, Buffer],
        taken: Collection[str],
    ):
        self.schedule, self.machine, self.arrays = schedule, machine, arrays
        self.taken = set(taken)
        self.stages = schedule.stages
        self.apart: frozenset[str] = frozenset()  # stages whose loops become no longer ones
        self.storage: dict[Stage, Storage] = {}
        self.reads: dict[Stage, Reads] = {}
        self.places = schedule.places
        self.regions = Regions(self.places, self.reads)
        # An inlined stage names a local, a stored one its buffer.
        self.stored = [s for s in self.stages.stages if not schedule[s].inlined]
        halved = [s for s in self.stored if s.order is Order.HALVING]
        self.lanes = {s.reads()[0].source for s in halved}  # whose last axis is halved to one
        self.guards = Guards()
        self.known: dict[Key, Known] = {}
        self.reserved = {s.name for s in (*self.stages.inputs, *self.stored)}
        self.reserved.update(buffer.name for buffer in arrays.values())
        self.names = Names(self.reserved)
        self.loop_stack: list[Axis] = []
        self.counters: dict[tuple[Stage, Loop], Axis | None] = {}
        self.own_buffers: dict[str, Buffer] = {}

    def program(self) -> Loops:
        buffers = self._root_buffers()
        roots = list(self.places.kernels)
        for stage in roots:
            if not _size(stage):  # which computes nothing: what is kept of others has to be empty
                Coverage(self.places, stage).check_kernel()
        kernels = tuple([self._kernel(stage) for stage in roots if _size(stage)])
        scratch, scratch_bytes = plan_scratch(
            kernels, [b for b in (*buffers, *self.own_buffers.values()) if b.scope is Scope.SCRATCH]
        )
        return Loops(
            self.stages.name,
            tuple(self.storage[s].buffer for s in self.stages.inputs),
            tuple(self.storage[s].buffer for s in self.stages.outputs),
            kernels,
            scratch,
            scratch_bytes,
        )

    def _root_buffers(self) -> list[Buffer]:
        buffers = []
        arguments = {*self.stages.inputs, *self.stages.outputs}
        for stage in (*self.stages.inputs, *self.stored):
            if stage.is_input or self.places.storage(stage) is None:
                scope = Scope.ARGUMENT if stage in arguments else Scope.SCRATCH
                region = {axis: whole(axis) for axis in stage.axes}
                buffers.append(self._store_region(stage, scope, region))
        return buffers

    def _store_region(self, stage: Stage, scope: Scope, region: Ranges) -> Buffer:
        extents, ring = [region[axis].extent for axis in stage.axes], None
        plan = self.places.plans.get(stage)
        if plan and plan.ring:
            ring = stage.axes.index(plan.ring[0])
            extents[ring] = plan.ring[1]
        layout, parts = plan.layout if plan else None, None
        if layout is not None:
            parts = parts_of(stage.axes, extents, layout)
        lead = 0
        if scope is Scope.STACK and extents and not parts and not self.machine.device:
            extents, lead = whole_lines(
                extents, stage.dtype.itemsize, self._first_test(stage, region)
            )
        size = lead + prod([part.extent for part in parts] if parts else extents)
        buffer = self.arrays.get(stage)
        if buffer is None:
            name = self._buffer_name(stage, scope)
            buffer = Buffer(name, stage.dtype, size, scope, constant=stage.constant)
        origin = tuple([region[axis].base for axis in stage.axes])
        if not any(start.terms or start.constant for start in origin):
            origin = ()
        self.storage[stage] = Storage(buffer, origin, tuple(extents), ring, parts, lead)
        return buffer

    def _first_test(self, stage: Stage, region: Ranges) -> int:
        """How far in a region's rows the first test is that decides what is computed there."""
        axis, tests = stage.axes[-1], chain.from_iterable(self.reads[stage].conditions)
        start = region[axis].base
        cuts = [cut for test in tests for cut in changes(test, axis, region)]
        inside = [cut - start.constant for cut in cuts if start.is_constant]
        return min([cut for cut in inside if cut > 0], default=0)

    def _buffer_name(self, stage: Stage, scope: Scope) -> str:
        """A name that no other stage has, and no other array of the program."""
        if scope is Scope.ARGUMENT:
            return stage.name
        others = self.taken if scope is Scope.SCRATCH else set[str]()
        others = others | (self.reserved - {stage.name})
        others.update([buffer.name for buffer in self.arrays.values()])
        name = unused(stage.name, others)
        if scope is Scope.SCRATCH:
            self.taken.add(name)
            self.reserved.add(name)
        return name

    def _kernel(self, stage: Stage) -> Kernel:
        form = form_of(self.places, stage, self.lanes)
        key = (*form.key, self._shared_arrays(form))
        known = self.known.get(key)
        if known:
            return known.again(form, self._buffers(form), self._kernel_name(stage))
        kernel = self._lowered(stage)
        buffers = self._buffers(form)
        if {*buffers.values()}.issuperset(kernel.parameters):
            self.known[key] = Known(kernel, form, buffers)
        return kernel

    def _shared_arrays(self, form: Form) -> Key:
        """Which of its stages lie in one array: for each the first one that does."""
        arrays = [self.arrays.get(stage) for stage in form.stages]
        return tuple([arrays.index(array) if array else None for array in arrays])

    def _buffers(self, form: Form) -> dict[Stage, Buffer]:
        return {stage: self.storage[stage].buffer for stage in form.stages if stage in self.storage}

    def _kernel_name(self, stage: Stage) -> str:
        return unused(f"{self.stages.name}_{stage.name}", self.taken)

    def _lowered(self, stage: Stage) -> Kernel:
        self.names = Names(self.reserved)
        self.coverage = Coverage(self.places, stage)
        for member in (stage, *self.places.inside(Site(stage, None))):
            self.reads[member] = reads_of(self.schedule, member.expressions)
        statements = self._produce(stage, {axis: whole(axis) for axis in stage.axes})
        self.coverage.check_kernel()
        computed = self._computed(stage)
        body = hoist(statements if stage.name in self.apart else collapse(statements))
        streamed = [self.storage[s].buffer for s in computed if self.schedule[s].streamed]
        if streamed:
            body = stream(body, streamed)
        if not self.machine.device:
            body = with_next_panels(with_registers(body, self.machine), self.machine)
        for each in computed:
            if self.schedule[each].registers:
                require_registers(body, self.storage[each].buffer.name, self.machine)
        if not self.machine.device:
            body = with_transposes(with_prefetches(body, self.machine), self.machine)
            body = with_blocks_ahead(body, self.machine)
        counts = count(body)
        spent = counts.cost()
        return Kernel(
            self._kernel_name(stage),
            body if self.machine.device else with_rows_in_results(with_rows_in_joined(body)),
            counts.parameters(),
            frozenset(counts.written),
            tuple(s.name for s in computed),
            spent,
            sources_of(computed),
            grain(body, spent, self.machine),
        )

    def _computed(self, stage: Stage) -> list[Stage]:
        """All stages that a nest computes, producers first."""
        found = {stage: None}
        pending = [stage]
        while pending:
            inner = pending.pop()
            found.update(dict.fromkeys(self.reads[inner].inlined))
            for producer in self.places.attached.get(inner, ()):
                found[producer] = None
                pending.append(producer)
        return [s for s in self.stages.stages if s in found]

    # --- one stage --------------------------------------------------------------------------------

    def _produce(
        self, stage: Stage, region: Ranges, around: Mapping[Stage, Ranges] = {}
    ) -> list[Statement]:
        """Statements that compute a region of a stage into its storage; of one that is reduced in
        loops around, what their ranges say."""
        ranges = {**region, **self.regions.reduced(stage, around)}
        loops, site = self.schedule[stage].loops, Site(stage, None)
        if self.places.is_joined(stage):
            return self._with_attached(site, ranges, lambda: self._more(stage, ranges, loops))
        self.coverage.computed(stage, region)
        if self.places.is_carried(stage):
            return []  # as the step before left it
        return self._versions(
            stage,
            ranges,
            lambda: self._with_attached(site, ranges, lambda: self._own(stage, ranges)),
        )

    def _own(self, stage: Stage, ranges: Ranges) -> list[Statement]:
        """The loops of a stage itself."""
        loops = self.schedule[stage].loops
        reduced = [place for place, loop in enumerate(loops) if loop.axis in stage.reduce_axes]
        if stage.scatter:
            return self._scattered(stage, ranges)
        if stage.scan:
            return self._scanned(stage, stage.scan, ranges)
        if stage.sort:
            return self._sorted(stage, stage.sort, ranges)
        if not reduced:
            return self._nest(stage, loops, ranges, lambda point: self._element(stage, point))
        depth = reduced[0]
        combine = self._chain if stage.order is Order.SERIAL else self._tree
        return self._nest(
            stage, loops[:depth], ranges, lambda inner: combine(stage, loops[depth:], inner)
        )

    def _element(self, stage: Stage, ranges: Ranges) -> list[Statement]:
        position = self._position(stage, ranges)
        return self._computation(stage, ranges, self.storage[stage].buffer, position)

    def _scattered(self, stage: Stage, ranges: Ranges) -> list[Statement]:
        """Copy what is there before, then put the elements in, one after the other."""
        storage, scatter, loops = self.storage[stage], stage.scatter, self.schedule[stage].loops
        assert scatter is not None
        updated = (*stage.reduce_axes, *stage.updated_axes)
        rest = [affine(0)] * len(scatter.targets)

        def start(point: Ranges) -> list[Statement]:
            position = self._position(stage, point)
            return self._computation(stage, point, storage.buffer, position, scatter.start)

        def put(point: Ranges) -> list[Statement]:
            indices = [*rest, *(point[axis].base for axis in stage.updated_axes)]
            position = storage.position(indices)
            targets = scatter.targets
            return self._computation(stage, point, storage.buffer, position, targets=targets)

        first = [loop for loop in loops if loop.axis in stage.axes]
        second = [loop for loop in loops if loop.axis in updated]
        second.sort(key=lambda loop: loop.axis not in stage.reduce_axes)
        return self._nest(stage, first, ranges, start) + self._nest(stage, second, ranges, put)

    def _computation(
        self,
        stage: Stage,
        ranges: Ranges,
        buffer: Buffer,
        position: Affine,
        expression: Expr | None = None,
        targets: tuple[Expr, ...] = (),
        so_far: Load | None = None,
    ) -> list[Statement]:
        """Store an expression of the stage's, its body if none is given, at a point.

        Nothing is done where that stands there already. targets: what the place depends on besides.
        so_far: where the value so far is, if not at the same place.
        """
        expression = expression or stage.body
        assert expression is not None
        mark = len(self.names.active)
        point = self._point()
        values = {axis: r.base for axis, r in ranges.items()}
        offset = self._offset(stage, point, targets, values) if targets else None
        target = Load(buffer, (position,), () if offset is None else (offset,))
        value = point.value(expression, values, so_far or target)
        del self.names.active[mark:]
        if value is target or _is_there(value, target):
            return []
        return [*point.lets, Store(buffer, position, value, offset)]

    def _offset(
        self, stage: Stage, point: Point, targets: tuple[Expr, ...], values: Mapping[Axis, Affine]
    ) -> Expr:
        places = [point.value(target, values) for target in targets]
        return point.named("place", self.storage[stage].offset(places))

    def _address(self, load: Load) -> Load:
        return self.storage[load.source].load(load.indices, load.data)

    def _position(self, stage: Stage, ranges: Ranges) -> Affine:
        return self.storage[stage].position([ranges[axis].base for axis in stage.axes])

    # --- stages computed inside a loop of another -------------------------------------------------

    def _prefetched(self, stage: Stage, loop: Loop, ranges: Ranges) -> list[Statement]:
        plan = self.schedule[stage].prefetch
        if plan is None or plan.at != loop or plan.ahead.loop is None:
            return []
        counter = self.counters.get((plan.ahead.stage, plan.ahead.loop))
        read = self.regions.of_source(stage, plan.source, ranges)
        if counter is None or read is None or any(range_.extent > 1 for range_ in read[:-1]):
            return []  # one step alone, or rows apart from each other
        if not read[-1].extent:
            return []
        later = {counter: counter + plan.distance}
        places = [range_.base.substitute(later) for range_ in read]
        storage = self.storage[plan.source]
        return [Prefetch(Row(storage.buffer, storage.position(places)), read[-1].extent)]

    def _attached(
        self,
        site: Site,
        ranges: Ranges,
        kept: Mapping[Stage, Ranges],
        computed: Mapping[Stage, Ranges],
    ) -> list[Statement]:
        statements = self._allocated(
            site,
            {
                producer: region
                for producer, region in kept.items()
                if _is_at(self.places.storage(producer), site) and _elements(region)
            },
        )
        for producer, region in computed.items():
            if _is_at(self.places.plans[producer].compute_at, site) and _elements(region):
                statements += self._produce(producer, region, {site.stage: ranges})
        return statements

    def _allocated(self, site: Site, regions: Mapping[Stage, Ranges]) -> list[Statement]:
        """Memory for these regions, on the stack or in registers; large ones share it."""
        buffers = {
            stage: self._store_region(stage, self._scope(stage, region), region)
            for stage, region in regions.items()
        }
        sizes = {stage: buffer.size for stage, buffer in buffers.items()}
        statements: list[Statement] = []
        for share in shares(self.places, site, sizes, partial(self._over, regions)):
            buffer = buffers[share.stages[0]]
            if len(share.stages) > 1:
                name = self.names.fresh("_and_".join(stage.name for stage in share.stages[:2]))
                buffer = Buffer(name, share.dtype, share.size, Scope.STACK)
                for stage in share.stages:
                    own = self.storage[stage]
                    lead = own.lead + share.lead(stage)
                    self.storage[stage] = replace(own, buffer=buffer, lead=lead)
            if buffer.nbytes > STACK_LIMIT:
                raise ScheduleError(
                    f"compute_at({share.stages[0].name}, {site.stage.name}): {buffer.nbytes} bytes"
                    f" are more than the {STACK_LIMIT} that fit a thread's stack; use a loop"
                    f" further in"
                )
            statements.append(Alloc(buffer))
        return statements

    def _over(self, regions: Mapping[Stage, Ranges], stage: Stage, source: Stage) -> int | None:
        """How far from the first element of another one a stage can begin; see `place_over`."""
        if self.places.attached.get(stage):
            return None
        values = {axis: _point_of(axis, range_) for axis, range_ in regions[stage].items()}
        loads = [load for load in self.reads[stage].loads if load.source is source]
        plan, own, other = self.places.plans[stage], self.storage[stage], self.storage[source]
        return place_over(stage, plan, loads, values, own, other, bool(self.machine.device))

    def _scope(self, stage: Stage, region: Ranges) -> Scope:
        single = all(range_.extent == 1 for range_ in region.values())
        return Scope.REGISTER if single and not self.places.plans[stage].ring else Scope.STACK


def _point_of(axis: Axis, range_: Range) -> Affine:
    """Any position of a range, in terms of the axis."""
    return range_.base if range_.extent == 1 else range_.base + Axis(axis.name, range_.extent)


def _is_there(value: Expr, target: Load) -> bool:
    """Whether a value is what stands at a place already."""
    return (
        isinstance(value, Load)
        and value.source is target.source
        and value.indices == target.indices
        and not value.data
        and not target.data
    )


def _is_at(place: Site | None, site: Site) -> bool:
    return place is not None and place.stage is site.stage and place.loop == site.loop


def _elements(region: Ranges) -> int:
    return prod(range_.extent for range_ in region.values())


def _size(stage: Stage) -> int:
    return prod(stage.shape)
