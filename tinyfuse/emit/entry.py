"""The body of an entry: the calls of its kernels, with the user's loops and choices around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tinyfuse.emit.ctext import type_text
from tinyfuse.loops.ir import Buffer, Choice, Kernel, Loops, Moves, Repeat, Step
from tinyfuse.loops.names import unused


class EntryCalls:
    """The calls of the kernels, with the loops and choices around them.

    watch: the place of a watch, which is told of the moments between two kernels; where there are
    loops, of those before and after each.
    """

    def __init__(
        self,
        loops: Loops,
        tasks: Mapping[Kernel, str],
        used: dict[str, None],
        watch: int | None,
    ):
        self.loops, self.tasks, self.used, self.watch = loops, tasks, used, watch
        self.places = {kernel: at for at, kernel in enumerate(loops.kernels)}
        buffers = (*loops.inputs, *loops.outputs, *(buffer for buffer, _ in loops.scratch))
        self.taken = {buffer.name for buffer in buffers}

    def lines(self) -> list[str]:
        if self.loops.steps:
            return self.steps(self.loops.body)
        calls = [self.call(kernel) for kernel in self.loops.kernels]
        if self.watch is None:
            return calls
        moments = [self.moment(number) for number in range(len(calls) + 1)]
        return [line for pair in zip(moments, [*calls, ""], strict=True) for line in pair if line]

    def moment(self, number: int) -> str:
        return f"tf_moment(arrays[{self.watch}], {number});"

    def call(self, kernel: Kernel) -> str:
        return _call(kernel, self.tasks[kernel.function])

    def watched(self, kernel: Kernel) -> list[str]:
        """A call in a loop: with the moments before and after it."""
        if self.watch is None:
            return [self.call(kernel)]
        first = 2 * self.places[kernel]
        return [self.moment(first), self.call(kernel), self.moment(first + 1)]

    def steps(self, body: Sequence[Step], moves: Moves = ()) -> list[str]:
        lines: list[str] = []
        for step in body:
            if isinstance(step, Kernel):
                lines += self.watched(step)
            elif isinstance(step, Choice):
                lines += self.choice(step)
            else:
                lines += self.repeat(step)
        return [*lines, *[line for cycle in _cycles(moves) for line in self.exchange(cycle)]]

    def repeat(self, step: Repeat) -> list[str]:
        inside = self.steps(step.steps.body, step.steps.moves)
        if step.test:
            return _braced(f"while ({step.test.name}[0])", inside)
        name = unused("turn_number", self.taken)
        if step.turn:
            inside = [f"{step.turn.name}[0] = {name};", *inside]
        count = f"{step.count.name}[0]" if step.count else f"{step.extent}"
        lines = _braced(f"for (long {name} = 0; {name} < {count}; {name}++)", inside)
        self.taken.discard(name)
        return lines

    def choice(self, step: Choice) -> list[str]:
        *tested, _ = range(len(step.branches))
        heads = [*[f"if ({step.index.name}[0] <= {at}) {{" for at in tested], "{"]
        lines: list[str] = []
        for head, branch in zip(heads, step.branches, strict=True):
            lines.append(f"}} else {head}" if lines else head)
            lines += _indented(self.steps(branch.body, branch.moves))
        return [*lines, "}"]

    def exchange(self, cycle: Sequence[Buffer]) -> list[str]:
        """Pointers that each take the place of the one before."""
        kept = unused("kept", self.taken)
        self.taken.discard(kept)
        first, *_ = cycle
        pairs = [f"{to.name} = {source.name};" for to, source in pairwise(cycle)]
        declared = f"{type_text(first.dtype, self.used)} *{kept} = {first.name};"
        return _braced("", [declared, *pairs, f"{cycle[-1].name} = {kept};"])


def _braced(head: str, inside: Sequence[str]) -> list[str]:
    return [f"{head} {{".lstrip(), *_indented(inside), "}"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _cycles(moves: Moves) -> list[list[Buffer]]:
    """Buffers of which each gets the memory of the next, the last one that of the first."""
    sources = dict(moves)
    cycles: list[list[Buffer]] = []
    while sources:
        start = next(iter(sources))
        cycle = [start]
        while (source := sources.pop(cycle[-1])) is not start:
            cycle.append(source)
        cycles.append(cycle)
    return cycles


def _call(kernel: Kernel, task: str) -> str:
    arguments = ", ".join(buffer.name for buffer in kernel.parameters)
    if not kernel.parallel:
        return f"{kernel.function.name}({arguments});"
    extent = kernel.parallel.variable.extent
    return f"tf_run(pool, {task}, (void *[]){{{arguments}}}, {extent}, {kernel.grain});"
