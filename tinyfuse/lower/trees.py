"""Lowering of trees: pairs of values that are combined, round after round, until one is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyfuse.loops.halving import can_halve
from tinyfuse.loops.ir import For, HalveRow, LoopKind, Row, Statement, Store
from tinyfuse.lower.bounds import Ranges
from tinyfuse.lower.pieces import rounds
from tinyfuse.lower.rows import RowLowering
from tinyfuse.schedule.places import Loop
from tinyfuse.stage.expr import Load, Op
from tinyfuse.stage.index import Affine, Axis, IndexLike, affine
from tinyfuse.stage.ir import Stage


class TreeLowering(RowLowering):
    """The statements that combine what lies side by side in memory, in place."""

    def _tree(self, stage: Stage, loops: Sequence[Loop], ranges: Ranges) -> list[Statement]:
        """Combine pairs in place, round after round; the first element is the result."""
        body, axis = stage.body, stage.reduce_axes[0]
        assert isinstance(body, Op)
        assert isinstance(body.operands[1], Load)
        load, free = body.operands[1], [loop for loop in loops if loop.axis is not axis]
        source = self.storage[load.source]

        def at(point: Ranges, place: IndexLike) -> Load:
            values = {**{a: r.base for a, r in point.items()}, axis: affine(place)}
            return source.load([index.substitute(values) for index in load.indices])

        def result(point: Ranges) -> list[Statement]:
            return [Store(self.storage[stage].buffer, self._position(stage, point), at(point, 0))]

        first, each = (at(ranges, place).indices[0] for place in (0, axis))
        if not free and each == first + axis and can_halve(body.dtype, axis.extent, body.name):
            return [HalveRow(Row(source.buffer, first), axis.extent), *result(ranges)]
        combined = self._rounds(stage, free, ranges, at)
        return combined + self._nest(stage, free, ranges, result, bare=True)

    def _rounds(
        self,
        stage: Stage,
        free: Sequence[Loop],
        ranges: Ranges,
        at: Callable[[Ranges, IndexLike], Load],
    ) -> list[Statement]:
        """The loops that combine pairs. at: what a tree reads at a place along its own axis."""
        body, axis = stage.body, stage.reduce_axes[0]
        assert isinstance(body, Op)
        source = self.storage[stage.reads()[0].source]
        statements: list[Statement] = []
        for pairs, step, distance in rounds(stage.order, axis.extent):
            mark = len(self.names.active)
            pair = Axis(self.names.fresh(axis.name), pairs) if pairs > 1 else None
            near = affine(pair) * step if pair else Affine()

            def combine(
                point: Ranges, near: Affine = near, distance: int = distance
            ) -> list[Statement]:
                left, right = at(point, near), at(point, near + distance)
                value = Op(body.name, (left, right), body.dtype)
                return [Store(source.buffer, left.indices[0], value)]

            inner = self._nest(stage, free, ranges, combine, bare=True)
            kind = LoopKind.SERIAL if free else LoopKind.VECTOR
            statements += [For(pair, kind, tuple(inner))] if pair else inner
            del self.names.active[mark:]
        return statements
