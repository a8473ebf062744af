"""Loop nests: statements over flat buffers, in the order they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from tinyfuse.loops.sorting import NetworkBlock
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import Expr
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Sort

if TYPE_CHECKING:
    from tinyfuse.loops.cost import Cost
    from tinyfuse.source import Source


class Scope(Enum):
    """Where a buffer lives: the caller's arrays, the scratch memory, or inside one kernel."""

    ARGUMENT = "argument"
    SCRATCH = "scratch"
    STACK = "stack"
    REGISTER = "register"  # one element
    VECTORS = "vectors"  # in vector registers
    SHARED = "shared"  # by the threads of a block, on a device
    LOCAL = "local"  # so many elements for each thread of a block, one thread's after another's


class LoopKind(Enum):
    """How the steps of a loop run: all but PARALLEL ones in order; BLOCKS, THREADS and GRID ones on
    a device, in no order: each in a block of threads, by the threads of a block, by all threads.
    WARPS ones are shared by the warps of a block: all lanes of one together do a step, which halves
    rows, then what one thread does.
    Those of the last kinds are steps of sums that tensor cores do, for all threads of a warp at
    once, of operands that are numbers of that format.

    Loops of one of these kinds that stand right inside each other are one loop over all steps.
    """

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTOR = "vector"
    UNROLL = "unroll"
    BLOCKS = "blocks"
    THREADS = "threads"
    WARPS = "warps"
    GRID = "grid"
    TF32 = "tf32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


ON_DEVICE = (LoopKind.BLOCKS, LoopKind.THREADS, LoopKind.WARPS, LoopKind.GRID)
# Those whose steps the threads of one block share.
OF_BLOCK = (LoopKind.THREADS, LoopKind.WARPS)
# How the outermost loop of a kernel can be shared.
SHARED = (LoopKind.PARALLEL, LoopKind.BLOCKS, LoopKind.GRID)
# Steps of a sum that one instruction of a tensor core does.
TENSOR_STEPS = {LoopKind.TF32: 8, LoopKind.BFLOAT16: 16, LoopKind.FLOAT16: 16}


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """`size` elements of one dtype. lanes: of each vector, where they are in vector registers.
    constant: whether they are an argument's that are the same at every call."""

    name: str
    dtype: np.dtype
    size: int
    scope: Scope
    lanes: int = 1
    constant: bool = False

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<buffer {self.name}>"


@dataclass(frozen=True, eq=False, slots=True)
class Local(Expr):
    """A scalar that a `Let` before it in the same block or an outer one has named."""

    name: str
    dtype: np.dtype


@dataclass(frozen=True, eq=False, slots=True)
class For:
    """Runs the body for every value of the variable, in ascending order unless parallel.

    count: how many of them, where only a call knows; at most the extent.
    """

    variable: Axis
    kind: LoopKind
    body: tuple[Statement, ...]
    count: Expr | None = None


@dataclass(frozen=True, eq=False, slots=True)
class If:
    """Runs one part or the other: where the parts of a parallel loop differ, or by data.

    test: an IndexTest, or another bool.
    """

    test: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True, eq=False, slots=True)
class While:
    """Runs the body as long as a bool is true."""

    test: Expr
    body: tuple[Statement, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Statements whose names and buffers end with them."""

    body: tuple[Statement, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Let:
    """Names a scalar for the rest of the block."""

    local: Local
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Alloc:
    """Makes a buffer of the kernel for the rest of the block, its elements undefined."""

    buffer: Buffer


@dataclass(frozen=True, eq=False, slots=True)
class Store:
    """`buffer[position + offset] = value`; the offset is data, an int64.

    streamed: part of a row that goes to memory past the caches; see `streaming.can_stream`.
    """

    buffer: Buffer
    position: Affine
    value: Expr
    offset: Expr | None = None
    streamed: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Row:
    """Elements of a buffer, one after the other from a position on."""

    buffer: Buffer
    position: Affine


@dataclass(frozen=True, eq=False, slots=True)
class SortRow:
    """Stores the `extent` elements of a row sorted, or their positions, into another or the same.

    work: memory for that, undefined before and afterwards; see `sorting.work_type`. block: what is
    sorted at once in registers; None: nothing is.
    """

    sort: Sort
    row: Row
    to: Row
    work: Row
    extent: int
    block: NetworkBlock | None = None


@dataclass(frozen=True, eq=False, slots=True)
class HalveRow:
    """Adds the second half of a row to the first, element by element, then that one's halves, and
    so on. The first of the `extent` elements, a power of two, is then the sum of all."""

    row: Row
    extent: int


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Rows of a buffer whose first elements are `step` elements apart, from a position on."""

    buffer: Buffer
    position: Affine
    step: int

    def last(self, rows: int, columns: int) -> Affine:
        """The position of the last element of so many rows of so many columns."""
        return self.position + (self.step * (rows - 1) + columns - 1)


@dataclass(frozen=True, eq=False, slots=True)
class Transpose:
    """Stores the columns of a block of one buffer as the rows of a block of another: `rows` of
    them, of `columns` elements each.

    lanes: elements of a vector; as many vectors are transposed at a time. There are no fewer rows
    or columns.
    """

    block: Rows
    to: Rows
    rows: int
    columns: int
    lanes: int


@dataclass(frozen=True, eq=False, slots=True)
class Prefetch:
    """Asks for the `extent` elements of a row ahead of their use; those outside of the buffer are
    ignored. It changes nothing. far: into the second cache, as the first has no room."""

    row: Row
    extent: int
    far: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Copy:
    """Copies the `extent` elements of a row to another one: 16 bytes, at places of 16 bytes."""

    row: Row
    to: Row
    extent: int


@dataclass(frozen=True, eq=False, slots=True)
class Combine:
    """Combines the values of a register that the threads of a block each have, so that all have the
    result. Where one thread has gone through all steps, that is its value already.

    name: of an operation whose order does not matter, by which equal values stay what they are.
    """

    buffer: Buffer
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Sync:
    """Waits until all threads of the block have come here."""


Statement = (
    For
    | While
    | If
    | Block
    | Let
    | Alloc
    | Store
    | SortRow
    | HalveRow
    | Transpose
    | Prefetch
    | Copy
    | Combine
    | Sync
)


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """One loop nest: one call of a C function.

    parameters: the buffers it uses that are not its own, those that it writes last.
    stages: the names of the stages it computes, inlined ones too. A parallel kernel is one
    parallel loop, after scalars that each thread computes for itself; `grain` is the least number
    of its steps that a thread takes at a time. again: an earlier kernel whose function this one
    calls: the body is that one's, with these parameters, in their order, in place of its own.
    blocks, threads: on a device how many blocks of how many threads run it; threads: 0 elsewhere.
    bound: who shares the steps of its outermost loop on a device, where a schedule says that.
    at_once: of these blocks a multiprocessor is to hold so many, where that is said. fitted: what
    was done so that the values of a thread fit its registers.
    """

    name: str
    body: tuple[Statement, ...]
    parameters: tuple[Buffer, ...]
    written: frozenset[Buffer]
    stages: tuple[str, ...]
    cost: Cost
    sources: tuple[Source, ...] = ()
    grain: int = 1
    again: Kernel | None = None
    blocks: int = 1
    threads: int = 0
    bound: LoopKind | None = None
    at_once: int = 0
    fitted: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {', '.join(self.stages)}>"

    @property
    def function(self) -> Kernel:
        """The kernel that the body and its buffers belong to."""
        return self.again or self

    @property
    def parallel(self) -> For | None:
        """The loop that threads share, where there is one."""
        return parallel_loop(self.body)


# Which buffer has from now on the memory of which other one: whole cycles, all at once.
Moves = tuple[tuple[Buffer, Buffer], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    """Kernels, and loops and choices around others; then buffers that exchange their memory."""

    body: tuple[Step, ...]
    moves: Moves = ()


@dataclass(frozen=True, eq=False, slots=True)
class Repeat:
    """Runs steps `extent` times, or as long as `test` (one bool) is true.

    turn: is given the number of the turn (one int64), if anything reads it. count: says how many
    turns there are (one int64), at most `extent`.
    """

    steps: Steps
    extent: int | None = None
    turn: Buffer | None = None
    test: Buffer | None = None
    count: Buffer | None = None

    @property
    def decides(self) -> tuple[Buffer, ...]:
        """The buffers that decide how many turns there are."""
        return tuple([each for each in (self.test, self.count) if each])


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """Runs the branch of the number in `index` (one int64), or the nearest."""

    index: Buffer
    branches: tuple[Steps, ...]


Step = Kernel | Repeat | Choice


@dataclass(frozen=True, eq=False, slots=True)
class Loops:
    """A program: kernels in the order they run. Offsets are bytes into the scratch memory.

    steps: the same kernels with the loops and choices around them, where there are any. inputs,
    outputs, scratch: with the memory that they have in the beginning.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    scratch: tuple[tuple[Buffer, int], ...] = ()
    scratch_bytes: int = 0
    steps: Steps | None = None

    @property
    def body(self) -> tuple[Step, ...]:
        """The kernels, or the steps that they are part of."""
        return self.steps.body if self.steps else self.kernels

    @property
    def turns(self) -> dict[Kernel, int]:
        """How often each kernel runs; one turn is counted where data decides that."""
        found: dict[Kernel, int] = {}
        waiting: list[tuple[Sequence[Step], int]] = [(self.body, 1)]
        for body, times in waiting:
            for step in body:
                if isinstance(step, Kernel):
                    found[step] = times
                elif isinstance(step, Repeat):
                    inside = times if step.decides else times * (step.extent or 0)
                    waiting.append((step.steps.body, inside))
                else:
                    waiting += [(branch.body, times) for branch in step.branches]
        return found

    @property
    def shares_work(self) -> bool:
        """Whether any kernel has enough steps for a second thread."""
        loops = [(kernel.parallel, kernel.grain) for kernel in self.kernels]
        return any(loop is not None and loop.variable.extent > grain for loop, grain in loops)


def parallel_loop(body: Sequence[Statement]) -> For | None:
    """The parallel loop that a kernel's body is, but for scalars named before it."""
    if not body or not all(isinstance(statement, Let) for statement in body[:-1]):
        return None
    last = body[-1]
    return last if isinstance(last, For) and last.kind is LoopKind.PARALLEL else None


def children(statement: Statement) -> tuple[Statement, ...]:
    """The statements directly inside one."""
    if isinstance(statement, (For, While, Block)):
        return statement.body
    return statement.then + statement.otherwise if isinstance(statement, If) else ()


def written_by(statement: Statement) -> tuple[Buffer, ...]:
    """The buffers that one statement, without those inside it, writes."""
    if isinstance(statement, SortRow):
        return (statement.to.buffer, statement.work.buffer)
    if isinstance(statement, HalveRow):
        return (statement.row.buffer,)
    if isinstance(statement, (Transpose, Copy)):
        return (statement.to.buffer,)
    return (statement.buffer,) if isinstance(statement, (Store, Combine)) else ()


def walk_statements(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement, outer before inner, in order."""
    pending = [*reversed(statements)]
    while pending:
        statement = pending.pop()
        yield statement
        pending += reversed(children(statement))
