"""Arrays that a turn of a loop makes from others take their place, where nothing needs those.

A loop carries an array in two memories that it exchanges: one to read what the turn before has
made, and one to write. Where each element is read before another is stored at its place, one memory
is enough, and what stays as it was is not written at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tinyfuse.loops.cost import count
from tinyfuse.loops.dependence import is_kept, is_read_first
from tinyfuse.loops.ir import (
    Block,
    Buffer,
    Choice,
    For,
    If,
    Kernel,
    Statement,
    Step,
    Steps,
    Store,
    children,
    walk_statements,
)
from tinyfuse.loops.rewrite import with_buffers, with_inside
from tinyfuse.loops.steps import buffers_in, walk_steps
from tinyfuse.lower.grain import grain
from tinyfuse.lower.streaming import stream
from tinyfuse.machine import Machine
from tinyfuse.records import replace

Others = Mapping[Buffer, Buffer]


def in_place(steps: Steps, machine: Machine) -> tuple[Steps, dict[Buffer, Buffer]]:
    """The steps with few exchanges, and which buffers have become others."""
    finding = _Finding(steps)
    for node in walk_steps(steps):
        if isinstance(node, Steps):
            for old, new in node.moves:
                finding.look_at(node, old, new)
    return with_other_buffers(steps, finding.merged, machine), finding.merged


def with_other_buffers(steps: Steps, others: Others, machine: Machine) -> Steps:
    """The steps with other buffers in place of some, which may be buffers that are there."""
    return _Merging(others, machine).steps(steps) if others else steps


class _Finding:
    """merged: which buffers become others, as far as is known."""

    def __init__(self, steps: Steps) -> None:
        self.merged: dict[Buffer, Buffer] = {}
        nodes = [node for node in walk_steps(steps) if isinstance(node, Steps)]
        self.exchanges = Counter([buffer for node in nodes for buffer, _ in node.moves])
        self.uses = _uses(steps)

    def look_at(self, steps: Steps, old: Buffer, new: Buffer) -> None:
        """Merge what exchanges memory after some steps, if it can be one."""
        alone = (new, old) in steps.moves and self.exchanges[new] == 1 and new not in self.merged
        if not alone or old in self.merged or self.uses[new] > _uses(steps)[new]:
            return
        if self._can_be_one(steps, old, new):
            self.merged[new] = old

    def _can_be_one(self, steps: Steps, old: Buffer, new: Buffer) -> bool:
        """Whether, in one run of the steps, all reads of `old` come before stores in `new`."""
        stored = False
        for step in steps.body:
            read, written = [{*map(self._now, each)} for each in _read_and_written(step)]
            if old in written or (stored and old in read):
                return False
            both = new in written and old in read
            if both and not (isinstance(step, Kernel) and self._reads_first(step, old, new)):
                return False
            stored = stored or new in written
        return True

    def _now(self, buffer: Buffer) -> Buffer:
        return self.merged.get(buffer, buffer)

    def _reads_first(self, kernel: Kernel, old: Buffer, new: Buffer) -> bool:
        pairs = list(zip(kernel.parameters, kernel.function.parameters, strict=True))
        read, written = [
            [own for its, own in pairs if self._now(its) is buffer] for buffer in (old, new)
        ]
        return all(is_read_first(kernel.body, one, other) for one in read for other in written)


def _uses(steps: Steps) -> Counter[Buffer]:
    kernels = [node for node in walk_steps(steps) if isinstance(node, Kernel)]
    return Counter([buffer for kernel in kernels for buffer in kernel.parameters])


def _read_and_written(step: Step) -> tuple[set[Buffer], set[Buffer]]:
    """The buffers that a step uses, and those that it writes."""
    if isinstance(step, Kernel):
        return {*step.parameters}, {*step.written}
    inside = Steps((step,))
    kernels = [node for node in walk_steps(inside) if isinstance(node, Kernel)]
    moved = {to for node in walk_steps(inside) if isinstance(node, Steps) for to, _ in node.moves}
    return buffers_in(inside), {buffer for each in kernels for buffer in each.written} | moved


class _Merging:
    """Steps with some buffers in place of others."""

    def __init__(self, merged: Others, machine: Machine) -> None:
        self.merged, self.machine = merged, machine
        self.made: dict[Kernel, Kernel] = {}  # kernels whose function others call

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.merged.get(buffer, buffer)

    def steps(self, steps: Steps) -> Steps:
        body = tuple([made for step in steps.body for made in self.step(step)])
        moves = [(self.buffer(to), self.buffer(source)) for to, source in steps.moves]
        return Steps(body, tuple([(to, source) for to, source in moves if to is not source]))

    def step(self, step: Step) -> Sequence[Step]:
        if isinstance(step, Kernel):
            return self.kernel(step)
        if isinstance(step, Choice):
            branches = tuple(map(self.steps, step.branches))
            return [Choice(self.buffer(step.index), branches)]
        known = (step.turn, step.test, step.count)
        turn, test, count = [each and self.buffer(each) for each in known]
        return [replace(step, steps=self.steps(step.steps), turn=turn, test=test, count=count)]

    def kernel(self, kernel: Kernel) -> Sequence[Kernel]:
        parameters = tuple(map(self.buffer, kernel.parameters))
        if len({*parameters}) < len(parameters):
            return self.updating(kernel, parameters)
        if kernel.again in self.made or (kernel.again is None and parameters == kernel.parameters):
            written = frozenset(map(self.buffer, kernel.written))
            again = kernel.again and self.made[kernel.again]
            body = again.body if again else kernel.body
            made = replace(kernel, body=body, parameters=parameters, written=written, again=again)
        else:
            made = self.with_parameters(kernel, parameters)
        if kernel.again is None:
            self.made[kernel] = made
        return [made]

    def with_parameters(self, kernel: Kernel, parameters: Sequence[Buffer]) -> Kernel:
        """The kernel with other arrays, and a body of its own."""
        given = dict(zip(kernel.function.parameters, parameters, strict=True))
        body = with_buffers(kernel.body, given)
        written = frozenset(map(self.buffer, kernel.written))
        return replace(kernel, body=body, parameters=tuple(parameters), written=written, again=None)

    def updating(self, kernel: Kernel, parameters: Sequence[Buffer]) -> Sequence[Kernel]:
        """A kernel that stores in an array that it reads, without what stays as it is."""
        pairs = dict(zip(kernel.function.parameters, kernel.parameters, strict=True))
        streamed = [self.buffer(pairs[buffer]) for buffer in _streamed(kernel.body)]
        updated = [(old, new) for old in pairs for new in pairs if self._are_one(pairs, old, new)]
        body = _without_kept(kernel.body, updated)
        body = with_buffers(body, {own: self.buffer(its) for own, its in pairs.items()})
        if not body:
            return []
        if streamed:
            body = stream(body, streamed)
        counts = count(body)
        spent = counts.cost()
        return [
            replace(
                kernel,
                body=body,
                parameters=counts.parameters(),
                written=frozenset(counts.written),
                cost=spent,
                grain=grain(body, spent, self.machine),
                again=None,
            )
        ]

    def _are_one(self, pairs: Others, one: Buffer, other: Buffer) -> bool:
        return one is not other and self.buffer(pairs[one]) is self.buffer(pairs[other])


def _streamed(statements: Sequence[Statement]) -> set[Buffer]:
    stores = [each for each in walk_statements(statements) if isinstance(each, Store)]
    return {each.buffer for each in stores if each.streamed}


def _without_kept(
    statements: Sequence[Statement], updated: Sequence[tuple[Buffer, Buffer]]
) -> tuple[Statement, ...]:
    """Without stores of what is there already; what is left is not streamed."""
    kept: list[Statement] = []
    for node in statements:
        if not any(is_kept(node, old, new) for old, new in updated):
            made = with_inside(node, lambda body: _without_kept(body, updated))
            if isinstance(made, Store):
                made = replace(made, streamed=False)
            if not isinstance(made, (For, Block, If)) or children(made):
                kept.append(made)
    return tuple(kept)
