"""Named scalars that do not change within a loop move in front of it."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import Buffer, For, Let, Local, Statement, walk_statements, written_by
from tinyfuse.loops.rewrite import with_inside
from tinyfuse.records import replace
from tinyfuse.stage.expr import Load, depends_on, walk


def hoist(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Move each invariant `Let` out of as many loops as possible."""
    return tuple([moved for statement in statements for moved in _hoisted(statement)])


def _hoisted(node: Statement) -> list[Statement]:
    node = with_inside(node, hoist)
    if not isinstance(node, For) or not any(isinstance(inner, Let) for inner in node.body):
        return [node]
    written = {buffer for s in walk_statements(node.body) for buffer in written_by(s)}
    outside: list[Statement] = []
    inside: list[Statement] = []
    locals_inside: set[Local] = set()
    for statement in node.body:
        if isinstance(statement, Let) and _invariant(statement, node, written, locals_inside):
            outside.append(statement)
            continue
        if isinstance(statement, Let):
            locals_inside.add(statement.local)
        inside.append(statement)
    return [*outside, replace(node, body=tuple(inside))]


def _invariant(let: Let, loop: For, written: set[Buffer], locals_inside: set[Local]) -> bool:
    return not any(
        node in locals_inside
        or depends_on(node, loop.variable)
        or (isinstance(node, Load) and node.source in written)
        for node in walk(let.value)
    )
