"""What loop nests do, counted: operations, bytes, work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.loops.ir import (
    Buffer,
    Cost,
    For,
    HalveRow,
    Scope,
    SortRow,
    Statement,
    Store,
    children,
    written_by,
)
from tinyfuse.loops.rewrite import values_of
from tinyfuse.records import dataclass, field
from tinyfuse.stage.analysis import comparisons
from tinyfuse.stage.expr import Const, Expr, Index, IndexTest, Load, Op, walk

_MOVES = frozenset(("select", "positive", "conjugate"))
COMPARISON = 8  # and what follows from it, in additions of vector code
_OUTSIDE = (Scope.ARGUMENT, Scope.SCRATCH)


@dataclass(slots=True)
class Counts:
    """How often each buffer is read and written, and the arithmetic operations in between.

    work: the time, in additions; loads and stores count as one each.
    """

    flops: int = 0
    work: int = 0
    read: dict[Buffer, int] = field(default_factory=dict)
    written: dict[Buffer, int] = field(default_factory=dict)

    def parameters(self) -> tuple[Buffer, ...]:
        """The buffers from outside, in order of first use, those that are written last."""
        outside = [b for b in {**self.read, **self.written} if b.scope in _OUTSIDE]
        return tuple(sorted(outside, key=lambda buffer: buffer in self.written))

    def cost(self) -> Cost:
        return Cost(self.flops, _bytes(self.read), _bytes(self.written))

    def add(self, statement: Statement, times: int) -> None:
        if isinstance(statement, Store):
            self.written[statement.buffer] = self.written.get(statement.buffer, 0) + times
            self.work += times
        elif isinstance(statement, SortRow):
            self.add_sort(statement, times)
        elif isinstance(statement, HalveRow):
            self.add_halving(statement, times)
        for value in values_of(statement):
            for node in walk(value):
                self.add_node(node, times)

    def add_sort(self, node: SortRow, times: int) -> None:
        moved = times * node.extent
        for buffer in written_by(node):
            self.written[buffer] = self.written.get(buffer, 0) + moved
        self.read[node.row.buffer] = self.read.get(node.row.buffer, 0) + moved
        self.flops += moved * comparisons(node.extent)
        self.work += moved * comparisons(node.extent) * COMPARISON

    def add_halving(self, node: HalveRow, times: int) -> None:
        sums, buffer = times * (node.extent - 1), node.row.buffer
        self.read[buffer] = self.read.get(buffer, 0) + 2 * sums
        self.written[buffer] = self.written.get(buffer, 0) + sums
        self.flops += sums
        self.work += 4 * sums

    def add_node(self, node: Expr, times: int) -> None:
        if isinstance(node, Op):
            self.flops += times * (2 if node.name == "fma" else node.name not in _MOVES)
            self.work += times * (SCALAR_OPS[node.name].cost if node.name in SCALAR_OPS else 1)
        elif isinstance(node, Load):
            self.read[node.source] = self.read.get(node.source, 0) + times
            self.work += times
        elif not isinstance(node, (Const, Index, IndexTest)):
            self.work += times


def count(statements: Sequence[Statement]) -> Counts:
    """What one run of the statements does."""
    counts = Counts()
    for statement, times in repeated(statements, 1):
        counts.add(statement, times)
    return counts


def repeated(statements: Sequence[Statement], times: int) -> Iterator[tuple[Statement, int]]:
    """Every statement with how often it runs; of an If, as if both parts ran each time."""
    for statement in statements:
        yield statement, times
        if isinstance(statement, For):
            yield from repeated(statement.body, times * statement.variable.extent)
        else:
            yield from repeated(children(statement), times)


def _bytes(counts: dict[Buffer, int]) -> int:
    return sum(
        min(times, buffer.size) * buffer.dtype.itemsize
        for buffer, times in counts.items()
        if buffer.scope in _OUTSIDE
    )
