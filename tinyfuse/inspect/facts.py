"""What a report says of a program, collected from its stages, loop nests and decisions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tinyfuse.compilation import Lowered
from tinyfuse.emit.c import kernel_texts
from tinyfuse.emit.cuda import cuda_kernel_texts
from tinyfuse.graph.ir import Var
from tinyfuse.inspect.nest import nest_lines
from tinyfuse.loops.ir import Buffer, Kernel, Loops
from tinyfuse.loops.printer import again_text
from tinyfuse.records import dataclass
from tinyfuse.schedule.cost import predicted_seconds
from tinyfuse.schedule.decisions import Decision
from tinyfuse.source import Source

USERS_CHOICE = "the schedule says so"


@dataclass(frozen=True, slots=True)
class Totals:
    """What the kernels of a program do in one call, and the memory between them in bytes.

    seconds: how long that is predicted to take, on all cores that the call may use.
    """

    kernels: int
    bytes_read: int
    bytes_written: int
    flops: int
    scratch_bytes: int
    seconds: float

    @property
    def nbytes(self) -> int:
        """Read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Arithmetic operations for each byte."""
        return self.flops / self.nbytes if self.nbytes else 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """A statement of the user's; place: `file.py:12`."""

    place: str
    statement: str


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """A kernel: the user's statements in it, its loops in short, its C, and what was decided.

    seconds: how long it is predicted to take.
    """

    kernel: Kernel
    lines: tuple[Line, ...]
    nest: tuple[str, ...]
    text: str
    decisions: tuple[Decision, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Passed:
    """An array that one kernel stores and others read, and why they are not one."""

    buffer: Buffer
    writer: Kernel
    readers: tuple[Kernel, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A program and what it would be with nothing fused.

    once: the kernels that read constants alone, and run before the first call.
    elsewhere: the decisions on stages that no kernel computes.
    written: names of the arguments and captured arrays that a call writes.
    made_by_numpy: how many results are the caller's arrays, or views, which nobody computes.
    """

    lowered: Lowered
    fused: Totals
    unfused: Totals
    kernels: tuple[KernelFacts, ...]
    once: tuple[KernelFacts, ...]
    passed: tuple[Passed, ...]
    elsewhere: tuple[Decision, ...]
    written: tuple[str, ...]
    made_by_numpy: int

    @property
    def title(self) -> str:
        traced = self.lowered.traced
        return f"{traced.name}{traced.signature}"


def facts_of(lowered: Lowered) -> Facts:
    groups, elsewhere = _grouped(lowered.all_kernels, lowered.decisions)
    parts = (lowered.once, lowered.loops) if lowered.once else (lowered.loops,)
    texts_of = cuda_kernel_texts if lowered.machine.device else kernel_texts
    texts = [text for loops in parts for text in texts_of(loops)]
    seconds = [each for loops in parts for each in kernel_seconds(lowered, loops)]
    kernels = tuple(map(_kernel_facts, lowered.all_kernels, texts, groups, seconds))
    count = len(kernels) - len(lowered.loops.kernels)
    return Facts(
        lowered,
        totals(lowered),
        totals(lowered.unfused()),
        kernels[count:],
        kernels[:count],
        tuple(_passed(lowered)),
        elsewhere,
        tuple([each.input.name or "an array" for each in lowered.traced.trace.written]),
        _made_by_numpy(lowered),
    )


def totals(lowered: Lowered) -> Totals:
    costs = [(turns, kernel.cost) for kernel, turns in lowered.loops.turns.items()]
    return Totals(
        len(costs),
        sum([turns * cost.bytes_read for turns, cost in costs]),
        sum([turns * cost.bytes_written for turns, cost in costs]),
        sum([turns * cost.flops for turns, cost in costs]),
        lowered.scratch_bytes,
        sum(kernel_seconds(lowered, lowered.loops)),
    )


def kernel_seconds(lowered: Lowered, loops: Loops) -> list[float]:
    """How long each kernel of a program's loops is predicted to take, in all of its turns."""
    threads, turns = lowered.options.threads or lowered.machine.cores, loops.turns
    return [
        turns[kernel] * predicted_seconds(kernel, lowered.machine, threads)
        for kernel in loops.kernels
    ]


def _kernel_facts(
    kernel: Kernel, text: str, decisions: tuple[Decision, ...], seconds: float
) -> KernelFacts:
    lines, nest = lines_of(kernel.sources), nest_lines(kernel.body)
    if kernel.again:  # whose text stands there already
        nest, text = [again_text(kernel)], f"// {again_text(kernel)}"
    return KernelFacts(kernel, tuple(lines), tuple(nest), text, decisions, seconds)


def lines_of(sources: Iterable[Source]) -> list[Line]:
    """The statements, each once; of what cannot be read only the place."""
    lines = [
        Line(f"{os.path.basename(source.file)}:{source.line}", source.statement)
        for source in sources
    ]
    return list(dict.fromkeys(lines))


def _grouped(
    kernels: Sequence[Kernel], decisions: Sequence[Decision]
) -> tuple[list[tuple[Decision, ...]], tuple[Decision, ...]]:
    """For each kernel the decisions on its stages, and the decisions on stages of none.

    A stage that several kernels compute for themselves is told of in the first.
    """
    place: dict[str, int] = {}
    for at, kernel in enumerate(kernels):
        for name in kernel.stages:
            place.setdefault(name, at)
    groups: list[list[Decision]] = [[] for _ in kernels]
    elsewhere: list[Decision] = []
    for decision in decisions:
        at = place.get(decision.producer, -1)
        (elsewhere if at < 0 else groups[at]).append(decision)
    return list(map(tuple, groups)), tuple(elsewhere)


def _passed(lowered: Lowered) -> list[Passed]:
    reasons = {decision.producer: decision.reason for decision in lowered.decisions}
    writers: dict[Buffer, Kernel] = {}
    readers: dict[Buffer, list[Kernel]] = {}
    for kernel in lowered.all_kernels:
        for buffer in kernel.parameters:
            if buffer in writers:
                readers.setdefault(buffer, []).append(kernel)
            elif buffer in kernel.written:
                writers[buffer] = kernel
    return [
        Passed(buffer, writers[buffer], tuple(later), reasons.get(buffer.name, USERS_CHOICE))
        for buffer, later in readers.items()
    ]


def _made_by_numpy(lowered: Lowered) -> int:
    """Results that are arguments, captured arrays, views, or known without computing."""
    slots = lowered.plan.slots
    computed = [
        output.shared is None and isinstance(output.atom, Var) and output.atom in slots
        for output in lowered.traced.trace.outputs
    ]
    return computed.count(False)
