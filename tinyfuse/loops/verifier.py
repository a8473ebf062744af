"""Checks that loop nests are well formed: names, dtypes, and every address inside its buffer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.errors import VerificationError
from tinyfuse.loops.halving import can_halve
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
    Repeat,
    SortRow,
    Statement,
    Steps,
    Store,
    Sync,
    Transpose,
    While,
)
from tinyfuse.loops.rewrite import values_of
from tinyfuse.loops.sorting import work_type
from tinyfuse.loops.steps import walk_steps
from tinyfuse.loops.streaming import can_stream
from tinyfuse.loops.transposes import LANES
from tinyfuse.stage.bounds import Facts
from tinyfuse.stage.expr import Expr, Index, IndexTest, Load, always_run, walk
from tinyfuse.stage.index import Affine
from tinyfuse.stage.ir import Sort


def verify_loops(loops: Loops) -> None:
    """Raise `VerificationError` where a statement cannot mean anything."""
    buffers = [*loops.inputs, *loops.outputs, *(buffer for buffer, _ in loops.scratch)]
    _check(
        len({b.name for b in buffers}) == len(set(buffers)), f"{loops.name}: buffers share a name"
    )
    for buffer, offset in loops.scratch:
        fits = offset >= 0 and offset + buffer.nbytes <= loops.scratch_bytes
        _check(fits, f"{loops.name}: {buffer.name} lies outside the scratch memory")
    verified: set[Kernel] = set()
    for kernel in loops.kernels:
        if kernel.again:
            _verify_again(kernel, verified, set(buffers) - set(loops.inputs))
        else:
            parameters = set(kernel.parameters)
            unknown = parameters.difference(buffers)
            _check(not unknown, f"kernel {kernel.name}: {unknown} are no arrays of the program")
            _Scope(kernel, parameters, set(loops.inputs)).block(
                kernel.body, frozenset(), outermost=True
            )
        verified.add(kernel)
    if loops.steps:
        _verify_steps(loops, loops.steps, set(buffers))


def _verify_steps(loops: Loops, steps: Steps, buffers: set[Buffer]) -> None:
    """Loops and choices run all kernels, in their order, and exchange memory of one size."""
    for node in walk_steps(steps):
        if isinstance(node, Steps):
            _verify_moves(loops, node.moves, buffers)
        elif isinstance(node, Choice):
            _verify_control(loops, node.index, INT64, buffers)
        elif isinstance(node, Repeat):
            known = node.extent is None or node.extent >= 0
            _check(known, f"{loops.name}: a loop of {node.extent} turns")
            _check((node.test is None) != (node.extent is None), f"{loops.name}: an endless loop")
            _verify_control(loops, node.turn, INT64, buffers)
            _verify_control(loops, node.test, BOOL, buffers)
            _verify_control(loops, node.count, INT64, buffers)
    kernels = [node for node in walk_steps(steps) if isinstance(node, Kernel)]
    same = [*map(id, kernels)] == [*map(id, loops.kernels)]
    _check(same, f"{loops.name}: its steps are not its kernels in their order")
    _verify_order(loops, steps, {*loops.inputs})


def _verify_order(loops: Loops, steps: Steps, given: set[Buffer]) -> set[Buffer]:
    """What decides about loops and choices has been written. given: the buffers that hold something
    before the steps; what is returned are those after them, whatever data decides."""
    known = set(given)
    for step in steps.body:
        if isinstance(step, Kernel):
            known |= step.written
        elif isinstance(step, Choice):
            _require_written(loops, step.index, known)
            known = set.intersection(*(_verify_order(loops, each, known) for each in step.branches))
        else:
            for decisive in step.decides:
                _require_written(loops, decisive, known)
            inside = _verify_order(loops, step.steps, {*known, *([step.turn] if step.turn else ())})
            _require_written(loops, step.test, _written_in(step.steps))
            known = inside if step.extent and not step.count else known
    moved = {to for to, _ in steps.moves}
    return (known - moved) | {to for to, source in steps.moves if source in known}


def _written_in(steps: Steps) -> set[Buffer]:
    """All that is written somewhere in steps, or exchanged."""
    written: set[Buffer] = set()
    for node in walk_steps(steps):
        if isinstance(node, Kernel):
            written |= node.written
        elif isinstance(node, Steps):
            written.update([to for to, _ in node.moves])
    return written


def _require_written(loops: Loops, buffer: Buffer | None, written: set[Buffer]) -> None:
    decided = buffer is None or buffer in written
    _check(decided, f"{loops.name}: nobody writes {buffer and buffer.name}, which decides")


def _verify_control(
    loops: Loops, buffer: Buffer | None, dtype: np.dtype, buffers: set[Buffer]
) -> None:
    if buffer:
        fits = buffer in buffers and (buffer.dtype, buffer.size) == (dtype, 1)
        _check(fits, f"{loops.name}: {buffer.name} cannot decide about a loop or a choice")


def _verify_moves(loops: Loops, moves: Moves, buffers: set[Buffer]) -> None:
    given, taken = [{*side} for side in zip(*moves, strict=True)] if moves else (set(), set())
    whole = given == taken and len(given) == len(moves)
    _check(whole, f"{loops.name}: buffers lose their memory")
    for to, source in moves:
        alike = (to.dtype, to.size) == (source.dtype, source.size)
        known = {to, source} <= buffers - set(loops.inputs)
        _check(alike and known, f"{loops.name}: {to.name} cannot have the memory of {source.name}")


def _verify_again(kernel: Kernel, earlier: set[Kernel], writable: set[Buffer]) -> None:
    """A kernel that calls the function of another."""
    function, name = kernel.function, f"kernel {kernel.name}"
    _check(function in earlier, f"{name} calls a function that comes later")
    _check(kernel.body is function.body, f"{name} has a body of its own")
    pairs = [*zip(function.parameters, kernel.parameters, strict=True)]
    for own, given in pairs:
        alike = (own.dtype, own.size) == (given.dtype, given.size)
        _check(alike, f"{name}: {given.name} stands for {own.name}, which is of another type")
    written = {given for own, given in pairs if own in function.written}
    _check(written == kernel.written, f"{name} writes {written}, not {set(kernel.written)}")
    _check(written <= writable, f"{name} writes an input")
    _check(len({*kernel.parameters}) == len(pairs), f"{name} is given an array twice")


class _Scope:
    def __init__(self, kernel: Kernel, buffers: set[Buffer], inputs: set[Buffer]):
        self.kernel, self.inputs = kernel, inputs
        self.buffers = buffers
        self.locals: set[Local] = set()
        self.rows: set[Store] = set()  # what may be streamed
        self.facts = Facts()  # what the tests around say

    def block(
        self, body: Sequence[Statement], variables: frozenset[str], outermost: bool = False
    ) -> None:
        """Check statements in which the loop variables named are in scope."""
        buffers, names = set(self.buffers), set(self.locals)
        for statement in body:
            self.statement(statement, variables, outermost)
        self.buffers, self.locals = buffers, names

    def statement(self, node: Statement, variables: frozenset[str], outermost: bool) -> None:
        for value in values_of(node):
            self.value(value, variables)
        if isinstance(node, For):
            self.loop(node, variables, outermost)
        elif isinstance(node, While):
            self.same_dtype("a test", BOOL, node.test)
            self.block(node.body, variables)
        elif isinstance(node, Block):
            self.block(node.body, variables)
        elif isinstance(node, If):
            self.choice(node, variables)
        elif isinstance(node, Let):
            self.same_dtype(node.local.name, node.local.dtype, node.value)
            self.locals.add(node.local)
        elif isinstance(node, Alloc):
            self.check(node.buffer not in self.buffers, f"{node.buffer.name} is allocated twice")
            self.buffers.add(node.buffer)
        elif isinstance(node, SortRow):
            self.sort(node, variables)
        elif isinstance(node, HalveRow):
            self.halve(node, variables)
        elif isinstance(node, Transpose):
            self.transpose(node, variables)
        elif isinstance(node, Prefetch):
            self.address(node.row.buffer, node.row.position, variables, guarded=True)
        elif isinstance(node, Copy):
            self.check(node.to.buffer not in self.inputs, f"{node.to.buffer.name} is an input")
            for row in (node.row, node.to):
                for position in (row.position, row.position + (node.extent - 1)):
                    self.address(row.buffer, position, variables, guarded=False)
        elif isinstance(node, Combine):
            self.check(node.buffer in self.buffers, f"{node.buffer.name} is not there")
        elif isinstance(node, Sync):
            self.check(self.kernel.threads > 0, "there are no threads to wait for")
        else:
            self.store(node, variables)

    def choice(self, node: If, variables: frozenset[str]) -> None:
        """Check both parts, each where the test does, or does not, hold."""
        known = self.facts
        for part, holds in ((node.then, True), (node.otherwise, False)):
            self.facts = known.where(node.test, holds)
            self.block(part, variables)
        self.facts = known

    def loop(self, node: For, variables: frozenset[str], outermost: bool) -> None:
        name = node.variable.name
        self.check(name not in variables, f"two loops around one another are named {name}")
        self.check(node.variable.extent > 0, f"the loop over {name} has no steps")
        if node.count is not None:
            self.same_dtype("the number of steps", INT64, node.count)
            self.check(node.kind is LoopKind.SERIAL, f"data counts the steps of {name}")
        alone = outermost and node is self.kernel.parallel
        self.check(
            alone or node.kind is not LoopKind.PARALLEL,
            f"the parallel loop {name} is not outermost",
        )
        stores = [statement for statement in node.body if isinstance(statement, Store)]
        self.rows.update(store for store in stores if can_stream(node, store))
        self.block(node.body, variables | {name})

    def store(self, node: Store, variables: frozenset[str]) -> None:
        self.check(node.buffer not in self.inputs, f"{node.buffer.name} is an input and written")
        self.check(
            not node.streamed or node in self.rows,
            f"{node.buffer.name} is streamed, but not as a row by the innermost loop alone",
        )
        self.same_dtype(node.buffer.name, node.buffer.dtype, node.value)
        self.address(node.buffer, node.position, variables, guarded=node.offset is not None)

    def sort(self, node: SortRow, variables: frozenset[str]) -> None:
        row, to, work = node.row.buffer, node.to.buffer, node.work.buffer
        dtype, count = work_type(node.sort, row.dtype, node.extent, node.block)
        result = row.dtype if node.sort is Sort.ELEMENTS else INT64
        self.check(to.dtype == result, f"{to.name} is {to.dtype}, not {result}")
        self.check(work.dtype == dtype, f"{work.name} is {work.dtype}, not {dtype}")
        self.check(work is not row and work is not to, f"{work.name} is sorted and used for that")
        for written in (to, work):
            self.check(written not in self.inputs, f"{written.name} is an input and written")
        for each, extent in ((node.row, node.extent), (node.to, node.extent), (node.work, count)):
            self.address(each.buffer, each.position, variables, guarded=False)
            last = each.position + (extent - 1)
            self.address(each.buffer, last, variables, guarded=False)

    def halve(self, node: HalveRow, variables: frozenset[str]) -> None:
        buffer, extent = node.row.buffer, node.extent
        self.check(buffer not in self.inputs, f"{buffer.name} is an input and written")
        self.check(can_halve(buffer.dtype, extent), f"{buffer.name} cannot be halved as a row")
        for position in (node.row.position, node.row.position + (extent - 1)):
            self.address(buffer, position, variables, guarded=False)

    def transpose(self, node: Transpose, variables: frozenset[str]) -> None:
        buffer, to = node.block.buffer, node.to.buffer
        self.check(to not in self.inputs, f"{to.name} is an input and written")
        self.check(to is not buffer, f"{to.name} is transposed onto itself")
        self.check(to.dtype == buffer.dtype, f"{to.name} is {to.dtype}, not {buffer.dtype}")
        self.check(node.to.step >= node.columns, f"rows of {to.name} overlap")
        known = node.lanes in LANES[buffer.dtype.itemsize]
        self.check(
            known and node.lanes <= min(node.rows, node.columns),
            f"{buffer.name} is no block of {node.lanes} lanes",
        )
        blocks = ((node.block, node.columns, node.rows), (node.to, node.rows, node.columns))
        for rows, count, length in blocks:
            for position in (rows.position, rows.last(count, length)):
                self.address(rows.buffer, position, variables, guarded=False)

    def value(self, root: Expr, variables: frozenset[str]) -> None:
        always = always_run(root)
        for node in walk(root):
            if isinstance(node, Local):
                self.check(node in self.locals, f"{node.name} is read before it is named")
            elif isinstance(node, Load):
                self.check(len(node.indices) == 1, f"{node.source.name} is read at several indices")
                guarded = bool(node.data) or node not in always
                self.address(node.source, node.indices[0], variables, guarded)
            elif isinstance(node, (Index, IndexTest)):
                self.index(node.index, variables)

    def address(
        self, buffer: Buffer, index: Affine, variables: frozenset[str], guarded: bool
    ) -> None:
        self.check(buffer in self.buffers, f"{buffer.name} is used where it does not exist")
        self.index(index, variables)
        low, high = self.facts.interval(index) if self.facts.sums else index.interval()
        inside = guarded or (low >= 0 and high < buffer.size)
        self.check(
            inside, f"{buffer.name}[{index}] runs from {low} to {high}, of {buffer.size} elements"
        )

    def index(self, index: Affine, variables: frozenset[str]) -> None:
        for axis in index.axes():
            self.check(axis.name in variables, f"{index} uses {axis.name} outside its loop")

    def same_dtype(self, name: str, dtype: object, value: Expr) -> None:
        self.check(dtype == value.dtype, f"{name} is {dtype} but is given {value.dtype}")

    def check(self, holds: bool, message: str) -> None:
        _check(holds, f"kernel {self.kernel.name}: {message}")


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise VerificationError(message)
