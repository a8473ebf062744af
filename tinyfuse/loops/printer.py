"""Loop nests as text: statements in order, indented by the loops around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tinyfuse.dtypes import describe
from tinyfuse.loops.ir import (
    Alloc,
    Block,
    Buffer,
    Choice,
    Combine,
    Copy,
    For,
    HalveRow,
    If,
    Kernel,
    Let,
    Local,
    LoopKind,
    Loops,
    Moves,
    Prefetch,
    Row,
    Rows,
    Scope,
    SortRow,
    Statement,
    Step,
    Store,
    Sync,
    Transpose,
    While,
)
from tinyfuse.loops.names import local_names
from tinyfuse.stage.expr import Expr, Load
from tinyfuse.stage.index import index_text
from tinyfuse.stage.printer import ATOM, NODE_TEXTS, Text, expression_lines

_PLACES = {
    Scope.REGISTER: "in a register",
    Scope.VECTORS: "in vector registers",
    Scope.STACK: "on the stack",
    Scope.SHARED: "in shared memory",
    Scope.LOCAL: "in registers of all threads",
}


def loops_text(loops: Loops) -> str:
    """The program: its arguments and scratch memory, then each kernel.

    ::

        loops scale(x: float32[64]) -> out: float32[64]
          kernel scale_out computes out
            for i < 64 vector
              out[i] = x[i] * 2.0
    """
    inputs, outputs = (", ".join(map(_given, buffers)) for buffers in (loops.inputs, loops.outputs))
    lines = [f"loops {loops.name}({inputs}) -> {outputs}".rstrip()]
    for buffer, offset in loops.scratch:
        lines.append(f"  scratch {_typed(buffer)} at byte {offset} of {loops.scratch_bytes}")
    lines += [f"  {line}" for line in _step_lines(loops.body, ())]
    return "\n".join(lines)


def _step_lines(body: Sequence[Step], moves: Moves) -> Iterator[str]:
    for step in body:
        if isinstance(step, Kernel):
            yield from kernel_lines(step)
        elif isinstance(step, Choice):
            for at, branch in enumerate(step.branches):
                yield f"where {step.index.name} is {at}"
                yield from [f"  {line}" for line in _step_lines(branch.body, branch.moves)]
        else:
            turn = f", counted in {step.turn.name}" if step.turn else ""
            times = step.count.name if step.count else step.extent
            yield f"while {step.test.name}" if step.test else f"repeat {times} times{turn}"
            yield from [f"  {line}" for line in _step_lines(step.steps.body, step.steps.moves)]
    if moves:
        yield "exchange " + ", ".join([f"{to.name} = {source.name}" for to, source in moves])


def kernel_lines(kernel: Kernel) -> list[str]:
    """One kernel: the stages it computes, then its statements, or the kernel that has the same."""
    steps = "1 step" if kernel.grain == 1 else f"{kernel.grain} steps"
    grain = f", at least {steps} to a thread" if kernel.parallel else ""
    blocks = f", in {kernel.blocks} blocks of {kernel.threads} threads" if kernel.threads else ""
    head = f"kernel {kernel.name} computes {', '.join(kernel.stages)}{grain}{blocks}"
    if kernel.again:
        return [head, f"  {again_text(kernel)}"]
    return [head, *_Lines(kernel).block(kernel.body)]


def again_text(kernel: Kernel) -> str:
    """Which function a kernel calls, and with what: `as f_y, with x_1 for x, y_1 for y`."""
    pairs = zip(kernel.parameters, kernel.function.parameters, strict=True)
    given = [f"{mine.name} for {its.name}" for mine, its in pairs if mine is not its]
    return f"as {kernel.function.name}, with {', '.join(given)}"


def loop_text(node: For) -> str:
    """The range of a loop and its kind: `1 <= i < 64 vector`."""
    variable = node.variable
    start = f"{variable.start} <= " if variable.start else ""
    kind = "" if node.kind is LoopKind.SERIAL else f" {node.kind.value}"
    end = f"{variable.start + variable.extent}" if node.count is None else "as many as there are"
    return f"{start}{variable.name} < {end}{kind}"


def _typed(buffer: Buffer) -> str:
    return f"{buffer.name}: {describe((buffer.size,), buffer.dtype)}"


def _given(buffer: Buffer) -> str:
    return f"constant {_typed(buffer)}" if buffer.constant else _typed(buffer)


def _load(node: Load, parts: Sequence[Text]) -> Text:
    places = [*(part.text for part in parts), *map(index_text, node.indices)]
    return Text(f"{node.source.name}[{' + '.join(places)}]", ATOM)


class _Lines:
    def __init__(self, kernel: Kernel):
        names = local_names(kernel)
        self.names: Mapping[Local, str] = names
        self.node_texts = {
            **NODE_TEXTS,
            Local: lambda node, parts: Text(names[node], ATOM),
            Load: _load,
        }
        self.taken = {*names.values(), *(buffer.name for buffer in kernel.parameters)}

    def block(self, statements: Sequence[Statement]) -> Iterator[str]:
        for statement in statements:
            for line in self.statement(statement):
                yield f"  {line}"

    def statement(self, node: Statement) -> Iterator[str]:
        if isinstance(node, For):
            yield f"for {loop_text(node)}"
            yield from self.block(node.body)
        elif isinstance(node, While):
            yield f"while {self.value(node.test)[-1]}"
            yield from self.block(node.body)
        elif isinstance(node, Block):
            yield "block"
            yield from self.block(node.body)
        elif isinstance(node, If):
            yield f"if {self.value(node.test)[-1]}"
            yield from self.block(node.then)
            if node.otherwise:
                yield "else"
                yield from self.block(node.otherwise)
        elif isinstance(node, Alloc):
            yield f"alloc {_typed(node.buffer)} {_PLACES[node.buffer.scope]}"
        elif isinstance(node, SortRow):
            row, to, work = (self.row(row) for row in (node.row, node.to, node.work))
            yield f"store {node.sort.value} {node.extent} elements of {row} to {to}, using {work}"
        elif isinstance(node, Prefetch):
            to = " into the second cache" if node.far else ""
            yield f"prefetch {node.extent} elements of {self.row(node.row)}{to}"
        elif isinstance(node, HalveRow):
            yield f"halve {node.extent} elements of {self.row(node.row)} to their sum"
        elif isinstance(node, Transpose):
            block, to = (f"{self.row(r)} by {r.step}" for r in (node.block, node.to))
            shape = f"{node.columns} by {node.rows}"
            yield f"transpose {shape} elements of {block} to {to}, {node.lanes} lanes"
        elif isinstance(node, Copy):
            yield f"copy {node.extent} elements of {self.row(node.row)} to {self.row(node.to)}"
        elif isinstance(node, Combine):
            yield f"combine {node.buffer.name} of all threads by {node.name}"
        elif isinstance(node, Sync):
            yield "sync"
        elif isinstance(node, Let):
            yield from self.definition(f"let {self.names[node.local]}", node.value)
        elif isinstance(node, Store):
            target = f"stream {self.element(node)}" if node.streamed else self.element(node)
            yield from self.definition(target, node.value)

    def definition(self, target: str, value: Expr) -> list[str]:
        *parts, text = self.value(value)
        return [*(f"let {part}" for part in parts), f"{target} = {text}"]

    def value(self, root: Expr) -> list[str]:
        lines, text = expression_lines(root, self.taken, self.node_texts)
        return [*lines, text]

    def row(self, row: Row | Rows) -> str:
        return f"{row.buffer.name}[{index_text(row.position)}…]"

    def element(self, node: Store) -> str:
        offset = "" if node.offset is None else f"{self.value(node.offset)[-1]} + "
        return f"{node.buffer.name}[{offset}{index_text(node.position)}]"
