"""The names of locals as text: as given, made unique where one block would declare two."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import Alloc, Block, For, If, Kernel, Let, Local, Statement, walk_statements


def local_names(kernel: Kernel) -> dict[Local, str]:
    """A name for each local, no two alike in one block nor that of a loop variable or a buffer."""
    others = {buffer.name for buffer in kernel.parameters}
    for statement in walk_statements(kernel.body):
        if isinstance(statement, For):
            others.add(statement.variable.name)
        elif isinstance(statement, Alloc):
            others.add(statement.buffer.name)
    names: dict[Local, str] = {}
    blocks: list[Sequence[Statement]] = [kernel.body]
    while blocks:
        block, taken = blocks.pop(), set(others)
        for statement in block:
            if isinstance(statement, Let):
                names[statement.local] = _unused(statement.local.name, taken)
            elif isinstance(statement, (For, Block)):
                blocks.append(statement.body)
            elif isinstance(statement, If):
                blocks += [statement.then, statement.otherwise]
    return names


def _unused(base: str, taken: set[str]) -> str:
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name)
    return name
