"""Lowering programs with loops: each part by itself, then the loops around their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tinyfuse.loops.ir import Buffer, Choice, Kernel, Loops, Moves, Repeat, Scope, Step, Steps
from tinyfuse.loops.steps import buffers_in, walk_steps
from tinyfuse.lower.in_place import in_place, with_other_buffers
from tinyfuse.lower.loop_kernels import with_loop_kernels
from tinyfuse.lower.lower import lower
from tinyfuse.lower.scratch import placed_for
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage import program as p
from tinyfuse.stage.program import Array, Program, Segment

Span = tuple[int, int]  # the first and the last of the steps, in the order of the text


def lower_program(
    program: Program, schedules: Mapping[Segment, Schedule], machine: Machine
) -> Loops:
    """The loop nests of all parts, with the loops around them.

    Raises ScheduleError as `lower`.
    """
    if program.alone is not None:
        return lower(schedules[program.segments[0]], machine)
    return _Lowering(program, schedules, machine).loops()


class _Lowering:
    def __init__(
        self, program: Program, schedules: Mapping[Segment, Schedule], machine: Machine
    ) -> None:
        self.program, self.schedules, self.machine = program, schedules, machine
        self.buffers: dict[Array, Buffer] = {}
        self.own: dict[Buffer, None] = {}  # the buffers of one part alone
        self.taken = {array.itself().name for array in _arrays(program)}
        self.arguments = {array.itself() for array in program.inputs}

    def loops(self) -> Loops:
        inputs = tuple(map(self.buffer, self.program.inputs))
        steps, merged = in_place(self._steps(self.program.block), self.machine)
        given = [merged.get(each, each) for each in map(self.buffer, self.program.outputs)]
        self.taken.update([buffer.name for buffer in self.own])
        steps = with_loop_kernels(
            _only_read_turns(steps), self.program.name, self.taken, inputs, given
        )
        ends = _ends(steps)
        results = {each: ends.get(each, each) for each in given}
        renamed = {each: replace(each, scope=Scope.ARGUMENT) for each in results.values()}
        outputs = tuple([renamed[results[each]] for each in given])
        steps = with_other_buffers(steps, renamed, self.machine)
        kernels = tuple([node for node in walk_steps(steps) if isinstance(node, Kernel)])
        lives = _Lifetimes(steps, set(self.own)).joined()
        buffers = [*self.buffers.values(), *self.own]
        hidden = {*merged, *renamed}
        scratch = [b for b in buffers if b.scope is Scope.SCRATCH and b not in hidden]
        placed, size = placed_for(lives, scratch)
        return Loops(self.program.name, inputs, outputs, kernels, placed, size, steps)

    def buffer(self, array: Array) -> Buffer:
        array = array.itself()
        if array not in self.buffers:
            scope = Scope.ARGUMENT if array in self.arguments else Scope.SCRATCH
            known = array.name, array.dtype, array.size
            self.buffers[array] = Buffer(*known, scope, constant=array.constant)
        return self.buffers[array]

    def _steps(self, block: p.Block) -> Steps:
        body = tuple([made for step in block.steps for made in self._step(step)])
        moved = [(to, source) for to, source in block.moves if to.size]
        moves = tuple([(self.buffer(to), self.buffer(source)) for to, source in moved])
        return Steps(body, moves)

    def _step(self, step: p.Step) -> Sequence[Step]:
        if isinstance(step, Segment):
            return self._part(step)
        if isinstance(step, p.Choice):
            branches = tuple([self._steps(branch) for branch in step.branches])
            return [Choice(self.buffer(step.index), branches)]
        known = (step.turn, step.test, step.count)
        turn, test, count = [self.buffer(each) if each else None for each in known]
        return [Repeat(self._steps(step.body), step.extent, turn, test, count)]

    def _part(self, segment: Segment) -> Sequence[Step]:
        schedule = self.schedules[segment]
        stages = schedule.stages
        pairs = [*zip(stages.inputs, segment.reads, strict=True)]
        pairs += zip(stages.outputs, segment.writes, strict=True)
        given = {stage: self.buffer(array) for stage, array in pairs}
        loops = lower(schedule, self.machine, given, self.taken)
        own = [buffer for buffer, _ in loops.scratch if buffer not in given.values()]
        self.own.update(dict.fromkeys(own))
        self.taken.update([buffer.name for buffer in own])
        self.taken.update([kernel.name for kernel in loops.kernels])
        return loops.kernels


def _arrays(program: Program) -> Iterator[Array]:
    yield from (*program.inputs, *program.outputs)
    for part in program.segments:
        yield from (*part.reads, *part.writes)


def _ends(steps: Steps) -> dict[Buffer, Buffer]:
    """For each buffer the one whose memory it has after some steps; only where it is another one.

    What data decides is left out: outputs lie in no such buffers.
    """
    ends: dict[Buffer, Buffer] = {}
    for step in steps.body:
        if isinstance(step, Repeat) and step.extent is not None and not step.count:
            _then(ends, _powered(_ends(step.steps), step.extent))
    _then(ends, dict(steps.moves))
    return ends


def _then(ends: dict[Buffer, Buffer], more: Mapping[Buffer, Buffer]) -> None:
    """Exchange once more."""
    after = {to: ends.get(source, source) for to, source in more.items()}
    ends.update(after)


def _powered(ends: Mapping[Buffer, Buffer], times: int) -> dict[Buffer, Buffer]:
    """The same exchange so many times: along each cycle."""
    result: dict[Buffer, Buffer] = {}
    for start in ends:
        cycle = [start]
        while ends[cycle[-1]] is not start:
            cycle.append(ends[cycle[-1]])
        result[start] = cycle[times % len(cycle)]
    return result


def _only_read_turns(steps: Steps) -> Steps:
    """Loops whose number nobody reads do not store it."""
    body: list[Step] = []
    for step in steps.body:
        if isinstance(step, Repeat):
            inner = _only_read_turns(step.steps)
            turn = step.turn if step.turn in buffers_in(inner) else None
            body.append(replace(step, steps=inner, turn=turn))
        elif isinstance(step, Choice):
            branches = tuple(map(_only_read_turns, step.branches))
            body.append(replace(step, branches=branches))
        else:
            body.append(step)
    return Steps(tuple(body), steps.moves)


class _Lifetimes:
    """The first and the last use of each buffer, in the order of the text.

    inner: buffers that only one part uses, all in one turn. What others hold is there in the next
    turn too: it lives as long as the outermost loop around.
    """

    def __init__(self, steps: Steps, inner: set[Buffer]) -> None:
        self.inner = inner
        self.now = 0
        self.lives: dict[Buffer, Span] = {}
        self.together: list[Moves] = []
        self._visit(steps, None)

    def joined(self) -> dict[Buffer, Span]:
        """Buffers that exchange their memory live as long as all of them."""
        changed = True
        while changed:
            changed = False
            for moves in self.together:
                members = [buffer for to, source in moves for buffer in (to, source)]
                known = [self.lives[buffer] for buffer in members if buffer in self.lives]
                if not known:
                    continue
                span = min(first for first, _ in known), max(last for _, last in known)
                for buffer in members:
                    changed = changed or self.lives.get(buffer) != span
                    self.lives[buffer] = span
        return self.lives

    def _visit(self, steps: Steps, loop: list[Buffer] | None) -> None:
        for step in steps.body:
            self.now += 1
            if isinstance(step, Kernel):
                for buffer in step.parameters:
                    self._use(buffer, loop)
            elif isinstance(step, Choice):
                self._use(step.index, loop)
                for branch in step.branches:
                    self._visit(branch, loop)
            else:
                self._repeat(step, loop)
        if steps.moves:
            self.together.append(steps.moves)

    def _repeat(self, step: Repeat, loop: list[Buffer] | None) -> None:
        start = self.now
        used: list[Buffer] = [] if loop is None else loop
        for buffer in (*([step.turn] if step.turn else []), *step.decides):
            self._use(buffer, used)
        self._visit(step.steps, used)
        if loop is None:
            for buffer in used:
                first, last = self.lives[buffer]
                self.lives[buffer] = min(first, start), max(last, self.now)

    def _use(self, buffer: Buffer, loop: list[Buffer] | None) -> None:
        first, _ = self.lives.get(buffer, (self.now, self.now))
        self.lives[buffer] = first, self.now
        if loop is not None and buffer not in self.inner:
            loop.append(buffer)
