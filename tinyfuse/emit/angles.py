"""The C of loops over sines, cosines and tangents of float64: seldom is an angle so large that what
is left of it takes a table of the digits of 1 / pi.

Functions for angles below that give the same bits in a third of the time. So a loop looks through
its angles first, block by block, and takes these where all are such.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Protocol

import numpy as np

from tinyfuse.dtypes import FLOAT64
from tinyfuse.emit.scalar import ANGULAR
from tinyfuse.loops.ir import Alloc, Buffer, For, Let, Local, Scope, Store
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import values_of, with_values
from tinyfuse.stage.analysis import point_cost
from tinyfuse.stage.expr import Expr, Load, Op, always_run, rewrite, walk
from tinyfuse.stage.index import Affine

# Steps of a loop from which on it looks, and of a block: what they read stays in the first cache.
LEAST_STEPS = 16
BLOCK_STEPS = 1024
# What an angle may take, in additions, to be computed once more; what all of a loop may.
CHEAP = 12
CHEAP_TOGETHER = 24
_TRUTHS = np.dtype(np.uint64)


class KernelText(Protocol):
    """What writes the function around the loop. taken: names that have a meaning in it."""

    taken: set[str]

    def plain_steps(self, node: For, first: str, last: str) -> list[str]: ...
    def value(self, node: Expr) -> str: ...


def lines_with_angles(loop: For, kernel: KernelText, first: str, last: str) -> list[str] | None:
    """The lines of a loop from one step to another; None for one that need not look."""
    angles = angles_of(loop)
    if not angles:
        return None
    taken = {*kernel.taken, loop.variable.name}
    blocked = loop.variable.extent > BLOCK_STEPS or loop.count is not None
    begin, end = first, last
    if blocked:
        begin, end = (unused(f"{loop.variable.name}_{word}", taken) for word in ("from", "to"))
    large = Buffer(unused("large", taken), _TRUTHS, 1, Scope.REGISTER)
    different = {kernel.value(angle): angle for angle in angles.values()}
    looking, usual = _looking(loop, large, different.values()), _usual(loop, angles)
    lines = [
        f"uint64_t {large.name} = 0;",
        *kernel.plain_steps(looking, begin, end),
        f"if (__builtin_expect({large.name}, 0))",
        *_indented(kernel.plain_steps(loop, begin, end)),
        "else",
        *_indented(kernel.plain_steps(usual, begin, end)),
    ]
    head = "{"
    if blocked:
        head = f"for (long {begin} = {first}; {begin} < {last}; {begin} += {BLOCK_STEPS}) {{"
        most = f"{begin} + {BLOCK_STEPS} < {last}"
        lines.insert(0, f"const long {end} = {most} ? {begin} + {BLOCK_STEPS} : {last};")
    return [head, *_indented(lines), "}"]


def angles_of(loop: For) -> dict[Op, Expr]:
    """The functions in each step of a loop whose angles are cheap, with these angles."""
    if loop.variable.extent < LEAST_STEPS:
        return {}
    if not all(isinstance(statement, (Alloc, Let, Store)) for statement in loop.body):
        return {}
    found: dict[Op, Expr] = {}
    own: dict[Local | Buffer, Expr] = {}  # what names and registers stand for in a step

    def known(leaf: Expr) -> Expr:
        if isinstance(leaf, Local):
            return own.get(leaf, leaf)
        return own.get(leaf.source, leaf) if isinstance(leaf, Load) else leaf

    left = CHEAP_TOGETHER
    for statement in loop.body:
        for value in values_of(statement):
            always = always_run(value)
            for node in walk(value):
                if not (isinstance(node, Op) and node in always and _turns(node)):
                    continue
                angle = rewrite(node.operands[0], known)
                spent = 0 if angle in found.values() else point_cost(angle)
                if spent <= min(CHEAP, left):
                    found[node] = angle
                    left -= spent
        if isinstance(statement, Let):
            own[statement.local] = rewrite(statement.value, known)
        elif isinstance(statement, Store) and _is_named(statement, loop):
            own[statement.buffer] = rewrite(statement.value, known)
    stored = {statement.buffer for statement in loop.body if isinstance(statement, Store)}
    return {node: angle for node, angle in found.items() if _is_there_before(angle, stored, own)}


def _is_named(store: Store, loop: For) -> bool:
    """Whether it gives a register of one step its only value."""
    own = [each.buffer for each in loop.body if isinstance(each, Alloc)]
    stored = [each.buffer for each in loop.body if isinstance(each, Store)]
    named = store.buffer in own and store.buffer.scope is Scope.REGISTER
    return named and stored.count(store.buffer) == 1


def _turns(node: Op) -> bool:
    return node.name in ANGULAR and node.dtype == FLOAT64


def _is_there_before(angle: Expr, stored: set[Buffer], own: dict[Local | Buffer, Expr]) -> bool:
    """Whether an angle can be computed before the steps of a loop that stores into these."""
    return not any(
        (isinstance(node, Load) and node.source in stored)
        or (isinstance(node, Local) and node in own)
        for node in walk(angle)
    )


def _looking(loop: For, large: Buffer, angles: Iterable[Expr]) -> For:
    """A loop that finds out whether an angle is large."""
    before: Expr = Load(large, (Affine(),))
    found: list[Expr] = [Op("is_large_angle", (angle,), _TRUTHS) for angle in angles]
    value = reduce(_either, [before, reduce(_either, found)])
    return For(loop.variable, loop.kind, (Store(large, Affine(), value),), loop.count)


def _either(one: Expr, other: Expr) -> Expr:
    return Op("bitwise_or", (one, other), _TRUTHS)


def _usual(loop: For, angles: dict[Op, Expr]) -> For:
    known: dict[Expr, Expr] = {
        node: Op(f"{node.name}_small", node.operands, node.dtype) for node in angles
    }
    body = [
        each if isinstance(each, Alloc) else with_values([each], known)[0] for each in loop.body
    ]
    return For(loop.variable, loop.kind, tuple(body), loop.count)


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
