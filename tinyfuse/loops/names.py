"""The names of locals as text: as given, made unique where one block would declare two."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import (
    Alloc,
    Block,
    For,
    If,
    Kernel,
    Let,
    Local,
    Statement,
    While,
    walk_statements,
)


def local_names(kernel: Kernel) -> dict[Local, str]:
    """A name for each local, none of them that of a loop variable, a buffer, or another local in
    the same block or in one around it: a statement may use all of these."""
    others = names_in(kernel)
    names: dict[Local, str] = {}
    blocks: list[tuple[Sequence[Statement], set[str]]] = [(kernel.body, others)]
    while blocks:
        block, around = blocks.pop()
        taken = set(around)
        for statement in block:
            if isinstance(statement, Let):
                names[statement.local] = unused(statement.local.name, taken)
        blocks += [(inner, taken) for statement in block for inner in _inner_blocks(statement)]
    return names


def names_in(kernel: Kernel) -> set[str]:
    """The names of all its buffers and loop variables."""
    names = {buffer.name for buffer in kernel.parameters}
    for statement in walk_statements(kernel.body):
        if isinstance(statement, For):
            names.add(statement.variable.name)
        elif isinstance(statement, Alloc):
            names.add(statement.buffer.name)
    return names


def _inner_blocks(statement: Statement) -> tuple[Sequence[Statement], ...]:
    if isinstance(statement, (For, While, Block)):
        return (statement.body,)
    return (statement.then, statement.otherwise) if isinstance(statement, If) else ()


def unused(base: str, taken: set[str]) -> str:
    """The name with the first number behind it, if it takes one, that makes it differ."""
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name)
    return name
