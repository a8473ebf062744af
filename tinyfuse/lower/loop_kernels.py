"""Loops whose turns do little are one kernel each: no call in a turn, and scalars in registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeGuard

import numpy as np

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.loops.cost import count
from tinyfuse.loops.ir import (
    Alloc,
    Block,
    Buffer,
    Choice,
    For,
    If,
    Kernel,
    Let,
    Local,
    LoopKind,
    Moves,
    Repeat,
    Scope,
    Statement,
    Step,
    Steps,
    Store,
    While,
    walk_statements,
)
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import with_buffers, with_inside
from tinyfuse.loops.steps import map_kernels, walk_steps
from tinyfuse.lower.tidying import tidied
from tinyfuse.records import replace
from tinyfuse.stage.expr import Const, Expr, Index, Load, Op
from tinyfuse.stage.index import Affine, Axis, affine

MOST_STATEMENTS = 400  # of a kernel: C compilers need longer than in proportion
MOST_BYTES = 4096  # of an array on the stack
ALL_BYTES = 1 << 14  # of all such arrays of a kernel


def with_loop_kernels(
    steps: Steps,
    name: str,
    taken: set[str],
    inputs: Collection[Buffer],
    outputs: Collection[Buffer],
) -> Steps:
    """The steps with each outermost loop that can be one kernel as one.

    taken: names that kernels and buffers must not have. inputs, outputs: buffers with values
    before, or after.
    """
    uses, written = Counter(_buffers(steps)), Counter(_written(steps))
    uses.update(outputs)
    written.update(inputs)

    def visit(steps: Steps) -> Steps:
        return Steps(tuple([changed(step) for step in steps.body]), steps.moves)

    def changed(step: Step) -> Step:
        if isinstance(step, Choice):
            return replace(step, branches=tuple(map(visit, step.branches)))
        if isinstance(step, Kernel):
            return step
        if not _can_be_a_kernel(step):
            return replace(step, steps=visit(step.steps))
        return _LoopKernel(step, uses, written, taken).kernel(name)

    return _with_functions(visit(steps))


def _with_functions(steps: Steps) -> Steps:
    """Kernels whose function went into a loop get one of their own, the first for all."""
    kernels = [node for node in walk_steps(steps) if isinstance(node, Kernel)]
    there = {kernel for kernel in kernels if kernel.again is None}
    made: dict[Kernel, Kernel] = {}

    def changed(kernel: Kernel) -> Kernel:
        function = kernel.again
        if function is None or function in there:
            return kernel
        if function in made:
            return replace(kernel, body=made[function].body, again=made[function])
        given = dict(zip(function.parameters, kernel.parameters, strict=True))
        made[function] = replace(kernel, body=with_buffers(kernel.body, given), again=None)
        return made[function]

    return map_kernels(steps, lambda kernel: (changed(kernel),))


def _buffers(steps: Steps) -> list[Buffer]:
    """The buffers of all kernels, loops, choices and exchanges, as often as they are there."""
    found: list[Buffer | None] = []
    for node in walk_steps(steps):
        if isinstance(node, Kernel):
            found += node.parameters
        elif isinstance(node, Steps):
            found += [to for to, _ in node.moves]
        else:
            found += [node.index] if isinstance(node, Choice) else [node.turn, *node.decides]
    return [buffer for buffer in found if buffer]


def _written(steps: Steps) -> list[Buffer]:
    kernels = [node for node in walk_steps(steps) if isinstance(node, Kernel)]
    return [buffer for kernel in kernels for buffer in kernel.written]


def _can_be_a_kernel(loop: Repeat) -> bool:
    """Whether all that a loop runs is serial and short, and it exchanges scalars alone."""
    statements = 0
    for node in walk_steps(loop.steps):
        if isinstance(node, Steps) and any(to.size > 1 for to, _ in node.moves):
            return False
        if isinstance(node, Repeat) and node.extent == 0:
            return False
        if isinstance(node, Kernel):
            statements += len(list(walk_statements(node.body)))
            if node.parallel:
                return False
    return loop.extent != 0 and 0 < statements <= MOST_STATEMENTS


class _LoopKernel:
    """uses, written: how often buffers are there, and written, in the whole program."""

    def __init__(
        self, loop: Repeat, uses: Counter[Buffer], written: Counter[Buffer], taken: set[str]
    ) -> None:
        self.loop, self.taken = loop, taken
        self.allocated: list[Statement] = []
        self.before: list[Statement] = []
        self.after: list[Statement] = []
        self.own: dict[Buffer, Buffer] = {}
        self.turns: dict[Buffer, Expr] = {}
        around = Steps((loop,))
        mine, own_writes = Counter(_buffers(around)), Counter(_written(around))
        room = ALL_BYTES
        for buffer in mine:
            inside = mine[buffer] == uses[buffer] and buffer.scope is Scope.SCRATCH
            if buffer.size == 1:
                elsewhere = written[buffer] > own_writes[buffer]
                self._keep(buffer, inside, elsewhere, own_writes[buffer] > 0)
            elif inside and buffer.nbytes <= min(MOST_BYTES, room):
                room -= buffer.nbytes
                self._allocate(buffer, Scope.STACK, buffer.name)

    def _keep(self, buffer: Buffer, inside: bool, elsewhere: bool, written: bool) -> None:
        """Keep a scalar in a register; one that is used after the loop is stored there.

        elsewhere: whether something else writes it, so that it may have a value before.
        """
        if not inside and not written:
            return
        name = buffer.name if inside else unused(f"{buffer.name}_now", self.taken)
        register = self._allocate(buffer, Scope.REGISTER, name)
        if elsewhere:
            self.before.append(Store(register, Affine(), _scalar(buffer)))
        if not inside:
            self.after.append(Store(buffer, Affine(), _scalar(register)))

    def _allocate(self, buffer: Buffer, scope: Scope, name: str) -> Buffer:
        made = self.own[buffer] = replace(buffer, name=name, scope=scope)
        self.allocated.append(Alloc(made))
        return made

    def kernel(self, program: str) -> Kernel:
        kernels = [node for node in walk_steps(self.loop.steps) if isinstance(node, Kernel)]
        inside = self.repeat(self.loop)
        body = tidied((*self._declared(inside), *inside, *self.after))
        counts = count(body)
        return Kernel(
            unused(f"{program}_loop", self.taken),
            body,
            counts.parameters(),
            frozenset(counts.written),
            tuple(dict.fromkeys([stage for kernel in kernels for stage in kernel.stages])),
            counts.cost(),
            tuple(dict.fromkeys([source for kernel in kernels for source in kernel.sources])),
        )

    def _declared(self, inside: Sequence[Statement]) -> list[Statement]:
        """The buffers of the kernel that are used, with what is in them before."""
        used = count(inside)
        found: list[Statement] = []
        for each in self.allocated:
            assert isinstance(each, Alloc)
            if each.buffer in used.read or each.buffer in used.written:
                found.append(each)
                found += [s for s in self.before if s.buffer is each.buffer]  # type: ignore[union-attr]
        return found

    # -- steps as statements

    def steps(self, steps: Steps) -> tuple[Statement, ...]:
        body = [statement for step in steps.body for statement in self.step(step)]
        return (*body, *self.moves(steps.moves))

    def step(self, step: Step) -> Sequence[Statement]:
        if isinstance(step, Kernel):
            return self.nest(step)
        return self.repeat(step) if isinstance(step, Repeat) else self.choice(step)

    def nest(self, kernel: Kernel) -> Sequence[Statement]:
        pairs = list(zip(kernel.function.parameters, kernel.parameters, strict=True))
        given = {mine: self.own.get(its, its) for mine, its in pairs}
        turns: dict[Buffer | Local, Expr] = {
            mine: self.turns[its] for mine, its in pairs if its in self.turns
        }
        body = _not_streamed(with_buffers(kernel.body, given, turns))
        names = any(isinstance(statement, (Let, Alloc)) for statement in body)
        return [Block(body)] if names else body

    def repeat(self, loop: Repeat) -> Sequence[Statement]:
        if loop.test:
            return [While(self.scalar(loop.test), self.steps(loop.steps))]
        assert loop.extent
        name = loop.turn.name if loop.turn else unused("turn", self.taken)
        name = unused(name, _variables(loop.steps))
        axis = Axis(name, loop.extent)
        if loop.turn:
            self.turns[loop.turn] = Index(affine(axis))
        body = self.steps(loop.steps)
        if not loop.count:
            return [For(axis, LoopKind.SERIAL, body)]
        turns = self.scalar(loop.count)
        if _is_register(turns) and turns.source not in _written(loop.steps):
            return [For(axis, LoopKind.SERIAL, body, turns)]
        count = Local(f"{name}_count", INT64)
        counted = For(axis, LoopKind.SERIAL, body, count)
        return [Block((Let(count, turns), counted))]

    def choice(self, choice: Choice) -> Sequence[Statement]:
        *tested, last = choice.branches
        found: tuple[Statement, ...] = self.steps(last)
        for at, branch in reversed(list(enumerate(tested))):
            operands = (self.scalar(choice.index), Const(np.int64(at)))
            found = (If(Op("less_equal", operands, BOOL), self.steps(branch), found),)
        return found

    def scalar(self, buffer: Buffer) -> Expr:
        return self.turns.get(buffer) or _scalar(self.own.get(buffer, buffer))

    def moves(self, moves: Moves) -> Sequence[Statement]:
        """Scalars that each get the value of another."""
        kept = [(Local(f"{to.name}_next", to.dtype), to, source) for to, source in moves]
        named = [Let(local, self.scalar(source)) for local, _, source in kept]
        stores = [Store(self.own.get(to, to), Affine(), local) for local, to, _ in kept]
        return [Block((*named, *stores))] if kept else []


def _variables(steps: Steps) -> set[str]:
    """The names of the loops in kernels."""
    kernels = [node.function for node in walk_steps(steps) if isinstance(node, Kernel)]
    inside = [each for kernel in kernels for each in walk_statements(kernel.body)]
    return {each.variable.name for each in inside if isinstance(each, For)}


def _not_streamed(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """What a turn stores, the next one may read."""
    found: list[Statement] = []
    for node in statements:
        if isinstance(node, Store) and node.streamed:
            found.append(replace(node, streamed=False))
        else:
            found.append(with_inside(node, _not_streamed))
    return tuple(found)


def _is_register(value: Expr) -> TypeGuard[Load]:
    return isinstance(value, Load) and value.source.scope is Scope.REGISTER


def _scalar(buffer: Buffer) -> Load:
    return Load(buffer, (Affine(),))
