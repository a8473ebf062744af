"""Lowering of chains: reductions in ascending order, one element after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from tinyfuse.loops.ir import Alloc, Buffer, If, LoopKind, Scope, Statement, Store
from tinyfuse.lower.bounds import Range, Ranges
from tinyfuse.lower.point import Point
from tinyfuse.lower.reads import condition_before, reads_of
from tinyfuse.lower.trees import TreeLowering
from tinyfuse.records import replace
from tinyfuse.schedule.places import Loop, Places
from tinyfuse.stage.expr import Const, Expr, Load
from tinyfuse.stage.index import Affine
from tinyfuse.stage.ir import Stage


class ChainLowering(TreeLowering):
    """The statements that start chains and go on with them, in loops that `lower` makes."""

    places: Places

    @abstractmethod
    def _element(self, stage: Stage, ranges: Ranges) -> list[Statement]: ...

    def _chain(self, stage: Stage, loops: Sequence[Loop], ranges: Ranges) -> list[Statement]:
        """Initialize and update in ascending order; a single element is kept in a register."""
        assert stage.init is not None
        start, begun = Const(stage.init), self._begun(stage, ranges)
        free = [loop for loop in loops if loop.axis not in stage.reduce_axes]
        if any(ranges[loop.axis].extent > 1 for loop in free):
            return [*begun, *self._start(stage, loops, ranges), *self._more(stage, ranges, loops)]
        buffer, zero = self.storage[stage].buffer, Affine()
        if buffer.scope is Scope.REGISTER:
            return [*begun, Store(buffer, zero, start), *self._links(stage, loops, ranges, buffer)]
        register = Buffer(self.names.fresh(f"{stage.name}_acc"), stage.dtype, 1, Scope.REGISTER)
        total = Load(register, (zero,))
        return [
            *begun,
            Alloc(register),
            Store(register, zero, start),
            *self._links(stage, loops, ranges, register),
            Store(buffer, self._position(stage, ranges), total),
        ]

    def _begun(self, leader: Stage, ranges: Ranges) -> list[Statement]:
        """Where what is reduced in the leader's loops starts."""
        statements: list[Statement] = []
        for stage in self.places.joined(leader):
            region = self.regions.along(stage, ranges)
            self.coverage.computed(stage, region)
            statements += self._start(stage, self.schedule[stage].loops, region)
        for stage in self.places.carried(leader):
            statements += self._first(stage, self.regions.along(stage, ranges))
        return statements

    def _first(self, stage: Stage, region: Ranges) -> list[Statement]:
        """Store the first position of a scan, which reads nothing."""
        assert stage.scan is not None
        return self._at_position(stage, {**region, stage.scan: Range(Affine(), 1)})

    def _moved_on(self, leader: Stage, loop: Loop, ranges: Ranges) -> list[Statement]:
        """At the end of a step of the leader's loop, the next position of the scans in it."""
        statements: list[Statement] = []
        for stage in self.places.carried(leader):
            site = self.places.plans[stage].compute_at
            if site is not None and site.loop == loop and stage.scan is not None:
                region = self.regions.along(stage, ranges)
                after = Range(region[stage.scan].base + 1, 1)
                statements += self._at_position(stage, {**region, stage.scan: after})
        return statements

    def _at_position(self, stage: Stage, region: Ranges) -> list[Statement]:
        loops = [loop for loop in self.schedule[stage].loops if loop.axis is not stage.scan]
        return self._nest(stage, loops, region, lambda point: self._element(stage, point))

    def _start(self, stage: Stage, loops: Sequence[Loop], ranges: Ranges) -> list[Statement]:
        """Store what a chain starts from, for each of its elements."""
        assert stage.init is not None
        buffer, start = self.storage[stage].buffer, Const(stage.init)

        def initialize(point: Ranges) -> list[Statement]:
            return [Store(buffer, self._position(stage, point), start)]

        free = [loop for loop in loops if loop.axis not in stage.reduce_axes]
        rolled = [replace(loop, kind=_rolled(loop.kind)) for loop in free]
        return self._nest(stage, rolled, ranges, initialize, bare=True)

    def _more(self, stage: Stage, ranges: Ranges, loops: Sequence[Loop]) -> list[Statement]:
        """Take more elements into what a chain has reduced so far, where that is stored."""
        buffer = self.storage[stage].buffer

        def update(point: Ranges) -> list[Statement]:
            return self._computation(stage, point, buffer, self._position(stage, point))

        return self._nest(stage, loops, ranges, update)

    def _links(
        self, stage: Stage, loops: Sequence[Loop], ranges: Ranges, register: Buffer
    ) -> list[Statement]:
        """The chain in a register; not at all where a condition says so that no loop changes."""
        condition, body = condition_before(stage)
        assert stage.body is not None
        bound = self.places.joined(stage) or (condition and self._waits(condition, stage, loops))
        if bound:
            condition, body = None, stage.body

        def update(point: Ranges) -> list[Statement]:
            return self._computation(stage, point, register, Affine(), body)

        if condition is None:
            return self._nest(stage, loops, ranges, update)
        mark = len(self.names.active)
        point = self._point()
        value = point.value(condition, {axis: r.base for axis, r in ranges.items()})
        with self.coverage.condition():
            links = self._nest(stage, loops, ranges, update)
        del self.names.active[mark:]
        return [*point.lets, If(value, tuple(links), ())]

    def _waits(self, condition: Expr, stage: Stage, loops: Sequence[Loop]) -> bool:
        """Whether a condition needs what is computed inside one of a stage's loops."""
        sources = [load.source for load in reads_of(self.schedule, [condition]).loads]
        sites = [self.schedule[s].compute_at for s in sources if not s.is_input]
        return any(at and at.stage is stage and at.loop in loops for at in sites)

    def _point(self) -> Point:
        innermost = self.loop_stack[-1] if self.loop_stack else None
        return Point(
            self.places.inlined, self._address, self.names.fresh, innermost, self.guards.known
        )


def _rolled(kind: LoopKind) -> LoopKind:
    return LoopKind.SERIAL if kind is LoopKind.UNROLL else kind
