"""The names of locals as text: as given, made unique where one block would declare two."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import Block, For, If, Let, Local, Statement, walk_statements


def local_names(statements: Sequence[Statement]) -> dict[Local, str]:
    """A name for each local, no two alike in one block nor equal to a loop variable."""
    variables = {s.variable.name for s in walk_statements(statements) if isinstance(s, For)}
    names: dict[Local, str] = {}
    blocks: list[Sequence[Statement]] = [statements]
    while blocks:
        block, taken = blocks.pop(), set(variables)
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
