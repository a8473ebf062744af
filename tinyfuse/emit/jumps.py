"""Indices that data gives, in steps that add up floating-point values one after the other.

No vectors are made of such steps. So what is done about an index that is negative, or outside, is
best behind a jump, which is seldom taken: else it takes longer than the sum does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinyfuse.loops.ir import Block, For, If, Statement, Store, walk_statements
from tinyfuse.stage.expr import Const, Expr, Load, Op, walk

LONGER = 4  # times as many statements

# What takes the place of an operation in such steps.
SELDOM = {"wrap_index": "wrap_seldom"}


def is_chain(loop: For) -> bool:
    """Whether each step makes a floating-point value of what the step before it has made of it."""
    return any(
        isinstance(node, Load) and _is_read(store, node)
        for store in _stores(loop.body)
        if _is_one_element(store, loop)
        for node in walk(store.value)
    )


def _is_read(store: Store, load: Load) -> bool:
    return (load.source, load.indices, load.data) == (store.buffer, (store.position,), ())


def _is_one_element(store: Store, loop: For) -> bool:
    same = store.offset is None and not store.position.depends_on(loop.variable)
    return same and store.buffer.dtype.kind == "f"


def _stores(statements: Sequence[Statement]) -> Iterator[Store]:
    for statement in statements:
        if isinstance(statement, Block):
            yield from _stores(statement.body)
        elif isinstance(statement, Store):
            yield statement


def is_usual(choice: If) -> bool:
    """Whether the first part is to be written as what usually comes: it is a short loop, whose time
    jumps and registers make up, beside something so long that they do not matter there."""
    loops = any(isinstance(each, For) for each in choice.then)
    return loops and LONGER * _length(choice.then) <= _length(choice.otherwise)


def _length(statements: Sequence[Statement]) -> int:
    return len([*walk_statements(statements)])


def checked_index(node: Expr) -> tuple[Expr, Expr] | None:
    """The index and the number of elements of `(index < -number) | (index >= number)`."""
    if not isinstance(node, Op) or node.name != "logical_or":
        return None
    below, above = node.operands
    if not isinstance(below, Op) or not isinstance(above, Op):
        return None
    if (below.name, above.name) != ("less", "greater_equal"):
        return None
    index, least = below.operands
    same, number = above.operands
    if not _is_same(same, index) or not isinstance(least, Const) or not isinstance(number, Const):
        return None
    is_opposite = number.dtype.kind == "i" and int(least.value) == -int(number.value)
    return (index, number) if is_opposite else None


def _is_same(one: Expr, other: Expr) -> bool:
    if isinstance(one, Load) and isinstance(other, Load) and not one.data and not other.data:
        return (one.source, one.indices) == (other.source, other.indices)
    return one is other
