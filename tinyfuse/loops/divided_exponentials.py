"""Rows of exponentials that quotients take the place of, as a softmax has them.

How small the exponentials are is known from computing them, and that they are from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tinyfuse.loops.divisions import division_in_place
from tinyfuse.loops.exponentials import exponentials_alone, first_of
from tinyfuse.loops.ir import Buffer, For, Statement, Store, walk_statements, written_by
from tinyfuse.stage.index import Affine

_ARow = tuple[Buffer, Affine, int]


def divided_exponentials(block: Sequence[Statement]) -> dict[For, For]:
    """The loops of a block that divide a row of exponentials, each with the one that stores it."""
    loops = [each for each in block if isinstance(each, For) and each.count is None]
    divisions = [loop for loop in loops if division_in_place(loop)]
    found = {loop: _stored_by(_row(loop), block[: block.index(loop)]) for loop in divisions}
    return {loop: source for loop, source in found.items() if source}


def _stored_by(row: _ARow, before: Sequence[Statement]) -> For | None:
    """The loop that stores a row of exponentials, and after which nothing is stored there."""
    for statement in reversed(before):
        if any(row[0] in written_by(node) for node in walk_statements([statement])):
            return statement if _is_of_exponentials(statement, row) else None
    return None


def _is_of_exponentials(node: Statement, row: _ARow) -> TypeGuard[For]:
    if not isinstance(node, For) or node.count is not None or not exponentials_alone(node):
        return False
    return _row(node) == row


def _row(loop: For) -> _ARow:
    """The row that a loop stores."""
    store = loop.body[0]
    assert isinstance(store, Store)
    return store.buffer, first_of(store.buffer, store.position, loop).position, loop.variable.extent
