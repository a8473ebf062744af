"""What loop nests do, counted: operations, bytes, what has to wait for what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

import numpy as np

from tinyfuse.graph.scalar_ops import cost
from tinyfuse.loops.chains import NO_CHAIN, Chain, chain_of
from tinyfuse.loops.invariants import Varying, varying_in
from tinyfuse.loops.ir import (
    Block,
    Buffer,
    Copy,
    For,
    HalveRow,
    If,
    Let,
    Prefetch,
    Scope,
    SortRow,
    Statement,
    Store,
    Transpose,
    While,
    written_by,
)
from tinyfuse.loops.rewrite import values_of
from tinyfuse.machine import LINE_BYTES
from tinyfuse.records import dataclass, field
from tinyfuse.stage.analysis import comparisons, is_operation, operation_name
from tinyfuse.stage.expr import Expr, IndexTest, Load, walk
from tinyfuse.stage.index import Affine, Axis

_OUTSIDE = (Scope.ARGUMENT, Scope.SCRATCH)
# Bytes of a buffer on the stack that the C compiler keeps in vector registers: 64 lanes of float64.
IN_REGISTERS = 512
# Bytes of lines touched one by one that are still in the L1 when their next elements are needed.
REUSED = 1 << 14


class Operation(NamedTuple):
    """A kind of scalar operation.

    name: a row of `graph.scalar_ops.SCALAR_OPS`, fma, cast or sort. dtype: the
    widest of its operands and its result. vector: whether several elements are computed at once.
    """

    name: str
    dtype: np.dtype
    vector: bool = True


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a kernel does.

    flops: arithmetic operations, of any dtype; a fused multiply-add is two.
    bytes_read, bytes_written: of the caller's arrays and the scratch memory, each element once.
    accesses: bytes that are loaded and stored, each time; none where a register has them already.
    lines: bytes of the cache lines that elements lie in which are far apart, each time.
    chain: operations that have to wait for the result of the one before, in additions.
    operations: how often each kind of scalar operation is done, in order of first use; in a loop
        once where all its steps do the same.
    """

    flops: int
    bytes_read: int
    bytes_written: int
    accesses: int = 0
    lines: int = 0
    chain: int = 0
    operations: tuple[tuple[Operation, int], ...] = ()


Key = TypeVar("Key", Buffer, Operation)
Place = tuple[For | None, Buffer, Affine]  # an element of a buffer in each step of a loop
Steps = Mapping[Axis, tuple[int, int]]  # the values that loop variables have in a place
Run = tuple[Statement, int, For | None]  # a statement, how often it runs, the loop directly around


@dataclass(slots=True)
class Counts:
    """How often each buffer is read and written, and the operations in between.

    accesses, lines, chain, operations: as of a `Cost`.
    """

    flops: int = 0
    accesses: int = 0
    lines: int = 0
    chain: int = 0
    operations: dict[Operation, int] = field(default_factory=dict)
    read: dict[Buffer, int] = field(default_factory=dict)
    written: dict[Buffer, int] = field(default_factory=dict)
    chains: dict[For | None, Chain] = field(default_factory=lambda: {None: NO_CHAIN})
    varying: dict[For | None, Varying | None] = field(default_factory=lambda: {None: None})
    loaded: set[Place] = field(default_factory=set)  # what is in a register then
    stored: set[Place] = field(default_factory=set)

    def parameters(self) -> tuple[Buffer, ...]:
        """The buffers from outside, in order of first use, those that are written last."""
        outside = [b for b in {**self.read, **self.written} if b.scope in _OUTSIDE]
        return tuple(sorted(outside, key=lambda buffer: buffer in self.written))

    def cost(self) -> Cost:
        return Cost(
            self.flops,
            _bytes(self.read),
            _bytes(self.written),
            self.accesses,
            self.lines,
            self.chain,
            tuple(self.operations.items()),
        )

    def add(self, run: Run) -> None:
        statement, times, loop = run
        for value in values_of(statement):
            self.add_value(value, times, loop)
        if isinstance(statement, Store):
            self.add_store(statement, times, loop)
        elif isinstance(statement, For):
            chain = self.chains[statement] = chain_of(statement)
            self.varying[statement] = varying_in(statement)
            steps = 1 if statement.count is not None else statement.variable.extent
            self.chain += times * steps * chain.length
        elif isinstance(statement, Let):
            varying = self.varying[loop]
            if varying:
                varying.name(statement.local, statement.value)
        elif isinstance(statement, SortRow):
            self.add_sort(statement, times)
        elif isinstance(statement, HalveRow):
            self.add_halving(statement, times)
        elif isinstance(statement, Transpose):
            self.add_transpose(statement, times * statement.rows * statement.columns)
        elif isinstance(statement, Copy):
            _add(self.read, statement.row.buffer, times * statement.extent)
            _add(self.written, statement.to.buffer, times * statement.extent)
            self.accesses += times * statement.extent * statement.row.buffer.dtype.itemsize
        elif isinstance(statement, Prefetch):
            _add(self.read, statement.row.buffer, 0)  # it is a parameter, also if nothing is read

    def add_value(self, value: Expr, times: int, loop: For | None) -> None:
        varying, vector = self.varying[loop], self.chains[loop].vector
        for node in walk(value):
            once = varying is not None and not varying.look_at(node)
            if isinstance(node, Load):
                self.add_load(node, times, loop)
            elif is_operation(node):
                repeats = loop.variable.extent if once and loop else 1
                self.add_operation(operation_name(node), widest(node), times, vector, repeats)

    def add_store(self, node: Store, times: int, loop: For | None) -> None:
        _add(self.written, node.buffer, times)
        at_data = node.offset is not None
        place = (loop, node.buffer, node.position)
        if at_data or place not in self.stored:
            self.stored.add(place)
            self.loaded.add(place)
            self.add_access(place, at_data, times)

    def add_load(self, node: Load, times: int, loop: For | None) -> None:
        _add(self.read, node.source, times)
        place = (loop, node.source, node.indices[0])
        if node.data or place not in self.loaded:
            self.loaded.add(place)
            self.add_access(place, bool(node.data), times)

    def add_access(self, place: Place, at_data: bool, times: int) -> None:
        """Count the bytes that a load or store moves."""
        loop, buffer, position = place
        if _in_registers(buffer):
            return
        apart = LINE_BYTES if at_data else _stride(position, loop) * buffer.dtype.itemsize
        if loop is not None and not apart:
            self.accesses += times // loop.variable.extent * buffer.dtype.itemsize
        elif at_data or (loop is not None and _leaves_lines(loop, apart)):
            self.lines += times * LINE_BYTES
        else:
            self.accesses += times * min(LINE_BYTES, apart)

    def add_sort(self, node: SortRow, times: int) -> None:
        moved = times * node.extent
        for buffer in written_by(node):
            _add(self.written, buffer, moved)
            self.accesses += moved * buffer.dtype.itemsize
        _add(self.read, node.row.buffer, moved)
        self.accesses += moved * node.row.buffer.dtype.itemsize
        self.add_operation("sort", node.row.buffer.dtype, moved * comparisons(node.extent), False)

    def add_halving(self, node: HalveRow, times: int) -> None:
        sums, buffer = times * (node.extent - 1), node.row.buffer
        _add(self.read, buffer, 2 * sums)
        _add(self.written, buffer, sums)
        self.add_operation("add", buffer.dtype, sums, True)

    def add_transpose(self, node: Transpose, moved: int) -> None:
        _add(self.read, node.block.buffer, moved)
        _add(self.written, node.to.buffer, moved)
        for buffer in (node.block.buffer, node.to.buffer):
            if not _in_registers(buffer):
                self.accesses += moved * buffer.dtype.itemsize

    def add_operation(
        self, name: str, dtype: np.dtype, times: int, vector: bool, repeats: int = 1
    ) -> None:
        """repeats: how many times over the C compiler takes the same result."""
        self.flops += flops(name) * times
        _add(self.operations, Operation(name, dtype, vector), times // repeats)


def _add(counts: dict[Key, int], key: Key, times: int) -> None:
    counts[key] = counts.get(key, 0) + times


def _leaves_lines(loop: For, apart: int) -> bool:
    """Whether each step touches another line, and too many for the next run of the loop to find."""
    return apart >= LINE_BYTES and loop.variable.extent * LINE_BYTES > REUSED


def _stride(position: Affine, loop: For | None) -> int:
    """How many elements apart the accesses of two steps are; a line where a division hides it."""
    if loop is None:
        return 1
    step = abs(position.coefficient(loop.variable))
    return step or (LINE_BYTES if position.depends_on(loop.variable) else 0)


def widest(node: Expr) -> np.dtype:
    """The dtype whose elements take most room in vectors, of an operation's operands and result."""
    return max([node.dtype, *[part.dtype for part in node.parts]], key=_itemsize)


def flops(name: str) -> int:
    """How many arithmetic operations one is: none for what converts or only moves a value."""
    return 2 if name == "fma" else int(name != "cast" and cost(name) > 0)


_itemsize = attrgetter("itemsize")


def count(statements: Sequence[Statement]) -> Counts:
    """What one run of the statements does."""
    counts = Counts()
    for run in repeated(statements):
        counts.add(run)
    return counts


def repeated(
    statements: Sequence[Statement],
    times: int = 1,
    loop: For | None = None,
    steps: Steps = {},  # noqa: B006
) -> Iterator[Run]:
    """Every statement with how often it runs; where data decides, as if both parts ran each time,
    and the turns of a loop once.

    loop: the innermost one around the statements. steps: of all loops around them.
    """
    for statement in statements:
        yield statement, times, loop
        if isinstance(statement, For):
            axis = statement.variable
            inner = {**steps, axis: (axis.start, axis.start + axis.extent)}
            inside = times if statement.count is not None else times * axis.extent
            yield from repeated(statement.body, inside, statement, inner)
        elif isinstance(statement, If):
            yield from _parts(statement, times, loop, steps)
        elif isinstance(statement, (While, Block)):
            yield from repeated(statement.body, times, loop, steps)


def _parts(node: If, times: int, loop: For | None, steps: Steps) -> Iterator[Run]:
    axis = decisive_axis(node.test, steps)
    if axis is None:
        yield from repeated(node.then, times, loop, steps)
        yield from repeated(node.otherwise, times, loop, steps)
        return
    first, last = steps[axis]
    low, high = chosen_steps(node.test, axis, (first, last))
    each = times // max(1, last - first)
    yield from repeated(node.then, each * (high - low), loop, {**steps, axis: (low, high)})
    # What is left is one run of steps, but for a test in their middle: then only their number.
    rest = (high, last) if low == first else (first, last - (high - low))
    yield from repeated(
        node.otherwise, each * (last - first - (high - low)), loop, {**steps, axis: rest}
    )


def decisive_axis(test: Expr, steps: Steps) -> Axis | None:
    """The loop variable that alone decides a test."""
    if not isinstance(test, IndexTest) or len(test.index.terms) != 1:
        return None
    term, coefficient = test.index.terms[0]
    return term if isinstance(term, Axis) and term in steps and coefficient == 1 else None


def chosen_steps(test: Expr, axis: Axis, steps: tuple[int, int]) -> tuple[int, int]:
    """The steps, from one until before another, for which a test of a loop variable holds."""
    assert isinstance(test, IndexTest)
    first, last = steps
    low = first if test.low is None else test.low - test.index.constant
    high = last if test.high is None else test.high - test.index.constant
    low = min(max(low, first), last)
    return low, max(low, min(high, last))


def _in_registers(buffer: Buffer) -> bool:
    if buffer.scope is Scope.STACK:
        return buffer.nbytes <= IN_REGISTERS
    return buffer.scope in (Scope.REGISTER, Scope.VECTORS)


def _bytes(counts: dict[Buffer, int]) -> int:
    return sum(
        min(times, buffer.size) * buffer.dtype.itemsize
        for buffer, times in counts.items()
        if buffer.scope in _OUTSIDE
    )
