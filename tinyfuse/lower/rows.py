"""Lowering of what is computed row by row: scans and sorts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import prod

import numpy as np

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import Alloc, Buffer, Row, Scope, SortRow, Statement, Store
from tinyfuse.loops.sorting import block_for, work_type
from tinyfuse.lower.bounds import Range, Ranges
from tinyfuse.lower.nest import NestLowering
from tinyfuse.lower.storage import Storage
from tinyfuse.machine import Machine
from tinyfuse.schedule.places import STACK_LIMIT, Loop
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.expr import Expr, Load, substitute_leaf
from tinyfuse.stage.index import Affine, Axis, affine, flat_index
from tinyfuse.stage.ir import Sort, Stage

# Bytes of memory to sort a row in that are on the stack rather than in the scratch memory.
ROW_ON_STACK = 1 << 15


class RowLowering(NestLowering):
    """The statements of scans and sorts, in loops that `lower` makes."""

    machine: Machine
    schedule: Schedule
    storage: dict[Stage, Storage]
    reserved: set[str]
    own_buffers: dict[str, Buffer]  # in the scratch memory, but of no stage

    @abstractmethod
    def _computation(
        self,
        stage: Stage,
        ranges: Ranges,
        buffer: Buffer,
        position: Affine,
        expression: Expr | None = None,
        targets: tuple[Expr, ...] = (),
        so_far: Load | None = None,
    ) -> list[Statement]: ...

    @abstractmethod
    def _address(self, load: Load) -> Load: ...

    @abstractmethod
    def _position(self, stage: Stage, ranges: Ranges) -> Affine: ...

    def _scanned(self, stage: Stage, scan: Axis, ranges: Ranges) -> list[Statement]:
        """Each element after the one before it, which is kept in a register where no other loop
        runs in between."""
        loops = self.schedule[stage].loops
        depth = next(place for place, loop in enumerate(loops) if loop.axis is scan)
        buffer = self.storage[stage].buffer

        def element(point: Ranges) -> list[Statement]:
            position = self._position(stage, point)
            before = {**point, scan: Range(point[scan].base - 1, 1)}
            so_far = Load(buffer, (self._position(stage, before),))
            return self._computation(stage, point, buffer, position, so_far=so_far)

        def row(inner: Ranges) -> list[Statement]:
            register = Buffer(self.names.fresh(f"{stage.name}_acc"), stage.dtype, 1, Scope.REGISTER)
            total, zero = Load(register, (Affine(),)), Affine()

            def element(point: Ranges) -> list[Statement]:
                store = Store(buffer, self._position(stage, point), total)
                return [*self._computation(stage, point, register, zero), store]

            return [Alloc(register), *self._nest(stage, loops[depth:], inner, element)]

        if all(loop.axis is scan for loop in loops[depth:]):
            return self._nest(stage, loops[:depth], ranges, row)
        return self._nest(stage, loops, ranges, element)

    def _sorted(self, stage: Stage, sort: Sort, ranges: Ranges) -> list[Statement]:
        """Row after row: its elements, where they do not lie in memory as they are, then sorted."""
        loops, axis = self.schedule[stage].loops, stage.axes[-1]
        depth = next(place for place, loop in enumerate(loops) if loop.axis is axis)
        assert stage.body is not None
        own = stage.body.dtype
        block = None
        if not self.machine.device:
            block = block_for(sort, own, axis.extent, self.machine.vector_bytes)
        dtype, count = work_type(sort, own, axis.extent, block)

        def row(inner: Ranges) -> list[Statement]:
            start = {**inner, axis: Range(affine(0), 1)}
            to = Row(self.storage[stage].buffer, self._position(stage, start))
            source, statements = self._row_in_memory(stage, start), list[Statement]()
            if source is None:
                source = to
                if sort is Sort.POSITIONS:
                    source = self._own_row(stage, "row", own, axis.extent, start, statements)
                statements += self._filled(stage, loops[depth:], inner, source)
            work = self._own_row(stage, "work", dtype, count, start, statements)
            return [*statements, SortRow(sort, source, to, work, axis.extent, block)]

        return self._nest(stage, loops[:depth], ranges, row)

    def _filled(
        self, stage: Stage, loops: Sequence[Loop], ranges: Ranges, row: Row
    ) -> list[Statement]:
        """Compute a row of the body."""
        axis = stage.axes[-1]
        return self._nest(
            stage,
            loops,
            ranges,
            lambda point: self._computation(
                stage, point, row.buffer, row.position + point[axis].base
            ),
        )

    def _row_in_memory(self, stage: Stage, start: Ranges) -> Row | None:
        """Where the row of the body that begins here lies, if it lies there in one piece."""
        load, axis = stage.body, stage.axes[-1]
        if not isinstance(load, Load) or load.data or not self._is_whole(load.source):
            return None
        values = {at: range_.base for at, range_ in start.items() if at is not axis}
        (position,) = self._address(substitute_leaf(load, values)).indices  # type: ignore[arg-type]
        rest = position - axis
        return None if rest.depends_on(axis) else Row(self.storage[load.source].buffer, rest)

    def _is_whole(self, source: Stage) -> bool:
        """Whether all of a stage is in memory before the kernel at hand runs."""
        plan = None if source.is_input else self.schedule[source]
        return plan is None or not (plan.inlined or plan.compute_at)

    def _own_row(
        self,
        stage: Stage,
        suffix: str,
        dtype: np.dtype,
        size: int,
        start: Ranges,
        statements: list[Statement],
    ) -> Row:
        """Memory for each row, of so many elements: on the stack if it is little."""
        at_root = self.schedule[stage].compute_at is None
        if at_root and size * dtype.itemsize > ROW_ON_STACK:
            name = f"{stage.name}_{suffix}"
            number = flat_index([start[axis].base for axis in stage.axes[:-1]], stage.shape[:-1])
            buffer = self._scratch_buffer(name, dtype, prod(stage.shape[:-1]) * size)
            return Row(buffer, number * size)
        buffer = Buffer(self.names.fresh(f"{stage.name}_{suffix}"), dtype, size, Scope.STACK)
        if buffer.nbytes > STACK_LIMIT:
            raise ScheduleError(
                f"compute_at({stage.name}): to sort a row takes {buffer.nbytes} bytes, which are"
                f" more than the {STACK_LIMIT} that fit a thread's stack"
            )
        statements.append(Alloc(buffer))
        return Row(buffer, affine(0))

    def _scratch_buffer(self, name: str, dtype: np.dtype, size: int) -> Buffer:
        """Scratch memory that no stage is stored in, the same each time it is asked for."""
        if name not in self.own_buffers:
            fresh = self.names.fresh(name)
            self.reserved.add(fresh)
            self.own_buffers[name] = Buffer(fresh, dtype, size, Scope.SCRATCH)
        return self.own_buffers[name]
