"""What a kernel does, counted from its loops: operations, bytes, work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.loops.ir import Buffer, For, If, Kernel, Scope, Statement, Store
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Const, Expr, Index, IndexTest, Load, Op, walk

_MOVES = frozenset(("select", "positive", "conjugate"))


@dataclass(frozen=True, slots=True)
class Cost:
    """flops: arithmetic operations, of any dtype; a fused multiply-add is two.

    bytes_read, bytes_written: of the caller's arrays and the scratch memory, each element once.
    """

    flops: int
    bytes_read: int
    bytes_written: int


def cost(kernel: Kernel) -> Cost:
    """What one run of the kernel does."""
    flops = 0
    read: dict[Buffer, int] = {}
    written: dict[Buffer, int] = {}
    for statement, times in counted(kernel.body):
        if isinstance(statement, Store):
            written[statement.buffer] = written.get(statement.buffer, 0) + times
        for value in values_of(statement):
            flops += times * operations(value)
            for node in walk(value):
                if isinstance(node, Load):
                    read[node.source] = read.get(node.source, 0) + times
    return Cost(flops, _bytes(read), _bytes(written))


def work(statements: Sequence[Statement]) -> int:
    """The time of one run, in additions: loads and stores count as one each."""
    total = 0
    for statement, times in counted(statements):
        total += times * (isinstance(statement, Store) + sum(map(_weight, values_of(statement))))
    return total


def counted(statements: Sequence[Statement], times: int = 1) -> Iterator[tuple[Statement, int]]:
    """Every statement with how often it runs; of an If, the longer part for most of the time."""
    for statement in statements:
        yield statement, times
        if isinstance(statement, For):
            yield from counted(statement.body, times * statement.variable.extent)
        elif isinstance(statement, If):
            yield from counted(statement.then, times)
            yield from counted(statement.otherwise, times)


def operations(root: Expr) -> int:
    """The arithmetic operations of one evaluation."""
    names = [node.name for node in walk(root) if isinstance(node, Op)]
    return sum(2 if name == "fma" else name not in _MOVES for name in names)


def _weight(root: Expr) -> int:
    return sum(_weight_of(node) for node in walk(root))


def _weight_of(node: Expr) -> int:
    if isinstance(node, Op):
        return SCALAR_OPS[node.name].cost if node.name in SCALAR_OPS else 1
    return 0 if isinstance(node, (Const, Index, IndexTest)) else 1


def _bytes(counts: dict[Buffer, int]) -> int:
    outside = (Scope.ARGUMENT, Scope.SCRATCH)
    return sum(
        min(times, buffer.size) * buffer.dtype.itemsize
        for buffer, times in counts.items()
        if buffer.scope in outside
    )
