"""What loop nests do, counted: operations, bytes, what has to wait for what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

import numpy as np

from tinyfuse.graph.scalar_ops import cost
from tinyfuse.loops.ir import (
    Buffer,
    Cost,
    For,
    If,
    Let,
    Local,
    LoopKind,
    Operation,
    Scope,
    SortRow,
    Statement,
    Store,
    children,
    written_by,
)
from tinyfuse.loops.rewrite import values_of
from tinyfuse.records import dataclass, field
from tinyfuse.stage.analysis import comparisons, is_operation, operation_name
from tinyfuse.stage.expr import Expr, IndexTest, Load, axes_of, walk
from tinyfuse.stage.index import Axis

_OUTSIDE = (Scope.ARGUMENT, Scope.SCRATCH)
# Bytes of a buffer on the stack that the C compiler keeps in vector registers: 64 lanes of float64.
IN_REGISTERS = 512

Steps = Mapping[Axis, tuple[int, int]]  # the values that loop variables have in a place
Run = tuple[Statement, int, For | None]  # a statement, how often it runs, the loop directly around


@dataclass(slots=True)
class Counts:
    """How often each buffer is read and written, and the operations in between.

    accesses: bytes that move between registers and memory of any kind. chain: operations that have
    to wait for the one before them.
    """

    flops: int = 0
    accesses: int = 0
    chain: int = 0
    operations: dict[Operation, int] = field(default_factory=dict)
    read: dict[Buffer, int] = field(default_factory=dict)
    written: dict[Buffer, int] = field(default_factory=dict)
    chains: dict[For, int] = field(default_factory=dict)  # the `chain_length` of each loop

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
            self.chain,
            tuple(self.operations.items()),
        )

    def add(self, run: Run) -> None:
        statement, times, loop = run
        if isinstance(statement, Store):
            stays = loop is not None and loop.variable not in statement.position.axes()
            self.add_access(self.written, statement.buffer, times, loop if stays else None)
        elif isinstance(statement, SortRow):
            self.add_sort(statement, times)
        elif isinstance(statement, For):
            self.chains[statement] = chain_length(statement)
            self.chain += times * statement.variable.extent * self.chains[statement]
        vector = loop is None or not self.chains[loop]
        for value in values_of(statement):
            for node in walk(value):
                self.add_node(node, times, loop, vector)

    def add_access(
        self, accessed: dict[Buffer, int], buffer: Buffer, times: int, invariant_in: For | None
    ) -> None:
        """invariant_in: the innermost loop, if the element is the same for all of its steps."""
        accessed[buffer] = accessed.get(buffer, 0) + times
        if not _in_registers(buffer):
            repeats = invariant_in.variable.extent if invariant_in else 1
            self.accesses += times // repeats * buffer.dtype.itemsize

    def add_sort(self, node: SortRow, times: int) -> None:
        moved = times * node.extent
        for buffer in written_by(node):
            self.add_access(self.written, buffer, moved, None)
        self.add_access(self.read, node.row.buffer, moved, None)
        self.add_operation("sort", node.row.buffer.dtype, moved * comparisons(node.extent), False)

    def add_node(self, node: Expr, times: int, loop: For | None, vector: bool) -> None:
        if isinstance(node, Load):
            stays = loop is not None and not node.data and loop.variable not in axes_of(node)
            self.add_access(self.read, node.source, times, loop if stays else None)
        elif is_operation(node):
            self.add_operation(operation_name(node), widest(node), times, vector)

    def add_operation(self, name: str, dtype: np.dtype, times: int, vector: bool) -> None:
        operation = Operation(name, dtype, vector)
        self.operations[operation] = self.operations.get(operation, 0) + times
        self.flops += flops(name) * times


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
    """Every statement with how often it runs; where data decides, as if both parts ran each time.

    loop: the innermost one around the statements. steps: of all loops around them.
    """
    for statement in statements:
        yield statement, times, loop
        if isinstance(statement, For):
            axis = statement.variable
            inner = {**steps, axis: (axis.start, axis.start + axis.extent)}
            yield from repeated(statement.body, times * axis.extent, statement, inner)
        elif isinstance(statement, If):
            yield from _parts(statement, times, loop, steps)
        else:
            yield from repeated(children(statement), times, loop, steps)


def _parts(node: If, times: int, loop: For | None, steps: Steps) -> Iterator[Run]:
    axis = _decisive(node.test, steps)
    if axis is None:
        yield from repeated(node.then, times, loop, steps)
        yield from repeated(node.otherwise, times, loop, steps)
        return
    first, last = steps[axis]
    low, high = _chosen(node.test, axis, (first, last))
    each = times // max(1, last - first)
    yield from repeated(node.then, each * (high - low), loop, {**steps, axis: (low, high)})
    # What is left is one run of steps, but for a test in their middle: then only their number.
    rest = (high, last) if low == first else (first, last - (high - low))
    yield from repeated(
        node.otherwise, each * (last - first - (high - low)), loop, {**steps, axis: rest}
    )


def _decisive(test: Expr, steps: Steps) -> Axis | None:
    """The loop variable that alone decides a test."""
    if not isinstance(test, IndexTest) or len(test.index.terms) != 1:
        return None
    term, coefficient = test.index.terms[0]
    return term if isinstance(term, Axis) and term in steps and coefficient == 1 else None


def _chosen(test: Expr, axis: Axis, steps: tuple[int, int]) -> tuple[int, int]:
    """The steps, from one until before another, for which a test of a loop variable holds."""
    assert isinstance(test, IndexTest)
    first, last = steps
    low = first if test.low is None else test.low - test.index.constant
    high = last if test.high is None else test.high - test.index.constant
    low = min(max(low, first), last)
    return low, max(low, min(high, last))


def chain_length(loop: For) -> int:
    """How many operations of a step need the step before; 0 where steps are independent.

    Integers do not count: the C compiler may add them in any order.
    """
    if loop.kind is LoopKind.VECTOR or any(isinstance(inner, For) for inner in loop.body):
        return 0
    lets = {inner.local: inner.value for inner in loop.body if isinstance(inner, Let)}
    carried = [
        inner
        for inner in loop.body
        if isinstance(inner, Store)
        and inner.buffer.dtype.kind == "f"
        and (inner.offset is not None or loop.variable not in inner.position.axes())
    ]
    return max((_depth(store, lets) for store in carried), default=0)


def _depth(store: Store, lets: Mapping[Local, Expr]) -> int:
    """Operations between an element as it was and as it is stored, 0 where it does not matter."""
    depths: dict[Expr, int] = {}
    pending = [store.value]
    while pending:
        root = pending[-1]
        nodes = walk(root)
        missing = [lets[n] for n in nodes if isinstance(n, Local) and n in lets]
        missing = [value for value in missing if value not in depths]
        if missing:
            pending += missing
            continue
        for node in nodes:
            depths[node] = _own_depth(node, store.buffer, depths, lets)
        pending.pop()
    return max(0, depths[store.value])


_INDEPENDENT = -(1 << 60)


def _own_depth(
    node: Expr, buffer: Buffer, depths: Mapping[Expr, int], lets: Mapping[Local, Expr]
) -> int:
    if isinstance(node, Load) and node.source is buffer:
        return 0
    if isinstance(node, Local):
        return depths[lets[node]] if node in lets else _INDEPENDENT
    below = max((depths[part] for part in node.parts), default=_INDEPENDENT)
    return below + (is_operation(node) and cost(operation_name(node)) > 0)


def _in_registers(buffer: Buffer) -> bool:
    if buffer.scope is Scope.STACK:
        return buffer.nbytes <= IN_REGISTERS
    return buffer.scope is Scope.REGISTER


def _bytes(counts: dict[Buffer, int]) -> int:
    return sum(
        min(times, buffer.size) * buffer.dtype.itemsize
        for buffer, times in counts.items()
        if buffer.scope in _OUTSIDE
    )
