"""The meaning of loop nests: every statement run as it stands, one element at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.graph.numerics import OrderedNumerics
from tinyfuse.loops.ir import (
    Alloc,
    Block,
    Buffer,
    Choice,
    Copy,
    For,
    HalveRow,
    If,
    Kernel,
    Let,
    Local,
    Loops,
    Moves,
    Repeat,
    Row,
    Rows,
    SortRow,
    Statement,
    Step,
    Store,
    Transpose,
    While,
)
from tinyfuse.stage.expr import Cast, Const, Expr, Index, IndexTest, Load, Op
from tinyfuse.stage.index import Affine, Axis, Quotient, Term
from tinyfuse.stage.ir import Sort


def interpret_loops(
    loops: Loops, arrays: Sequence[np.ndarray], numerics: OrderedNumerics
) -> list[np.ndarray]:
    """The outputs, flat, of a program on its inputs.

    arrays: one for each input, of its size, in C order. Scratch starts out as a pattern that no
    result may depend on.
    """
    memory = {
        b: np.ascontiguousarray(a).reshape(-1) for b, a in zip(loops.inputs, arrays, strict=True)
    }
    for buffer in (*loops.outputs, *(buffer for buffer, _ in loops.scratch)):
        memory[buffer] = undefined(buffer)
    results = [memory[buffer] for buffer in loops.outputs]
    with np.errstate(all="ignore"):
        _steps(loops.body, (), memory, numerics)
    return results


def _steps(
    body: Sequence[Step],
    moves: Moves,
    memory: dict[Buffer, np.ndarray],
    numerics: OrderedNumerics,
) -> None:
    for step in body:
        if isinstance(step, Kernel):
            given = zip(step.function.parameters, step.parameters, strict=True)
            _Run({own: memory[buffer] for own, buffer in given}, numerics).block(step.body)
        elif isinstance(step, Choice):
            chosen = min(max(int(memory[step.index][0]), 0), len(step.branches) - 1)
            branch = step.branches[chosen]
            _steps(branch.body, branch.moves, memory, numerics)
        else:
            _repeat(step, memory, numerics)
    memory.update({to: memory[source] for to, source in moves})


def _repeat(step: Repeat, memory: dict[Buffer, np.ndarray], numerics: OrderedNumerics) -> None:
    turn = 0
    count = memory[step.count][0] if step.count else step.extent or 0
    while memory[step.test][0] if step.test else turn < count:
        if step.turn:
            memory[step.turn][0] = turn
        _steps(step.steps.body, step.steps.moves, memory, numerics)
        turn += 1


def undefined(buffer: Buffer) -> np.ndarray:
    """Memory of a buffer before anything is stored: bytes that make a wrong read show."""
    if buffer.dtype == np.bool_:
        return np.zeros(buffer.size, np.bool_)
    return np.full(buffer.nbytes, 0xA5, np.uint8).view(buffer.dtype)


class _Run:
    def __init__(self, memory: dict[Buffer, np.ndarray], numerics: OrderedNumerics):
        self.memory, self.numerics = memory, numerics
        self.counters: dict[str, int] = {}
        self.locals: dict[Local, np.generic] = {}

    def block(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: Statement) -> None:
        if isinstance(node, For):
            start, extent = node.variable.start, node.variable.extent
            count = extent if node.count is None else int(self.value(node.count, {}))
            for position in range(start, start + count):
                self.counters[node.variable.name] = position
                self.block(node.body)
        elif isinstance(node, While):
            while self.value(node.test, {}):
                self.block(node.body)
        elif isinstance(node, Block):
            self.block(node.body)
        elif isinstance(node, If):
            self.block(node.then if self.value(node.test, {}) else node.otherwise)
        elif isinstance(node, Let):
            self.locals[node.local] = self.value(node.value, {})
        elif isinstance(node, Alloc):
            self.memory[node.buffer] = undefined(node.buffer)
        elif isinstance(node, SortRow):
            self.sort(node)
        elif isinstance(node, HalveRow):
            self.halve(node)
        elif isinstance(node, Transpose):
            block = self.positions(node.block, node.columns, node.rows)
            to = self.positions(node.to, node.rows, node.columns)
            self.memory[node.to.buffer][to] = self.memory[node.block.buffer][block.T]
        elif isinstance(node, Copy):
            self.elements(node.to, node.extent)[...] = self.elements(node.row, node.extent)
        elif isinstance(node, Store):
            known: dict[int, np.generic] = {}
            value = self.value(node.value, known)
            position = self.index(node.position)
            if node.offset is not None:
                position += int(self.value(node.offset, known))
            self.memory[node.buffer][position] = value

    def sort(self, node: SortRow) -> None:
        self.memory[node.work.buffer][...] = undefined(node.work.buffer)
        row = self.elements(node.row, node.extent)
        sorted_ = np.sort if node.sort is Sort.ELEMENTS else np.argsort
        self.elements(node.to, node.extent)[...] = sorted_(row, kind="stable")

    def halve(self, node: HalveRow) -> None:
        row, half = self.elements(node.row, node.extent), node.extent // 2
        while half:
            row[:half] = self.numerics.scalar("add", [row[:half], row[half : 2 * half]], row.dtype)
            half //= 2

    def positions(self, rows: Rows, count: int, length: int) -> np.ndarray:
        """The positions, int64[count, length], of the elements of so many rows."""
        first = self.index(rows.position)
        return first + rows.step * np.arange(count)[:, None] + np.arange(length)

    def elements(self, row: Row, extent: int) -> np.ndarray:
        first = self.index(row.position)
        return self.memory[row.buffer][first : first + extent]

    def value(self, node: Expr, known: dict[int, np.generic]) -> np.generic:
        """The value of an expression; shared parts once, and of a select only the chosen branch."""
        if id(node) not in known:
            known[id(node)] = self._value(node, known)
        return known[id(node)]

    def _value(self, node: Expr, known: dict[int, np.generic]) -> np.generic:
        if isinstance(node, Const):
            return node.value
        if isinstance(node, Local):
            return self.locals[node]
        if isinstance(node, Load):
            position = self.index(node.indices[0])
            position += sum(int(self.value(part, known)) for part in node.data)
            assert position >= 0, f"{node.source.name}[{position}]"
            return self.memory[node.source][position]
        if isinstance(node, Index):
            return np.int64(self.index(node.index))
        if isinstance(node, IndexTest):
            return np.bool_(self.test(node))
        if isinstance(node, Cast):
            return self.numerics.cast(self.value(node.operand, known), node.dtype)[()]
        assert isinstance(node, Op)
        return self.operation(node, known)

    def operation(self, node: Op, known: dict[int, np.generic]) -> np.generic:
        if node.name == "select":
            return self.value(node.operands[1 if self.value(node.operands[0], known) else 2], known)
        values = [self.value(operand, known) for operand in node.operands]
        if node.name == "fma":
            return self.numerics.fma(*values)[()]
        return self.numerics.scalar(node.name, values, node.dtype)[()]

    def test(self, test: IndexTest) -> bool:
        index = self.index(test.index)
        return (test.low is None or index >= test.low) and (test.high is None or index < test.high)

    def index(self, index: Affine) -> int:
        total = index.constant
        for term, coefficient in index.terms:
            total += coefficient * self.term(term)
        return total

    def term(self, term: Term) -> int:
        if isinstance(term, Axis):
            return self.counters[term.name]
        inner = self.index(term.index)
        return inner // term.divisor if isinstance(term, Quotient) else inner % term.divisor
