"""Exponentials of a row below one number, as a softmax has them: they take less time together."""

from __future__ import annotations

from tinyfuse.dtypes import FLOAT32
from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE
from tinyfuse.loops.divisions import is_along, is_in_row
from tinyfuse.loops.invariants import varying_in
from tinyfuse.loops.ir import Buffer, For, Let, Local, Row, Store
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Load, Op, always_run, walk
from tinyfuse.stage.index import Affine

# Elements of a row from which on it pays: the largest of their sizes is found for each row.
LEAST_ROW = 64


def exponentials_below(loop: For) -> list[Op]:
    """The exponentials, in each step of a loop over a row, of `element - top`: the elements lie
    side by side in memory that the loop does not store to, and top is the same in all steps."""
    varying = varying_in(loop)
    if varying is None or loop.variable.extent < LEAST_ROW:
        return []
    if not all(isinstance(statement, (Let, Store)) for statement in loop.body):
        return []
    found: dict[Op, None] = {}
    named: set[Local] = set()
    for statement in loop.body:
        for value in values_of(statement):
            always = always_run(value)
            for node in walk(value):
                varying.look_at(node)
                if node in always and isinstance(node, Op) and _is_below(node, loop):
                    top = node.operands[0].parts[1]
                    if top not in varying.found and named.isdisjoint(walk(top)):
                        found[node] = None
        if isinstance(statement, Let):
            named.add(statement.local)
            varying.name(statement.local, statement.value)
    return [node for node in found if row_of(node).source not in varying.written]


def exponentials_alone(loop: For) -> tuple[Row, Op] | None:
    """Where the exponentials of such a loop go, side by side, if that is all that it does; and
    what they are."""
    found = exponentials_below(loop)
    store = loop.body[0]
    if not found or len(loop.body) > 1 or not isinstance(store, Store) or store.value != found[0]:
        return None
    if store.offset is not None or not is_along(store.position, loop):
        return None
    return first_of(store.buffer, store.position, loop), found[0]


def first_of(buffer: Buffer, position: Affine, loop: For) -> Row:
    """The row that a loop goes along, from its first element on."""
    return Row(buffer, position.substitute({loop.variable: loop.variable.start}))


def row_of(node: Op) -> Load:
    """The element of whose difference this is the exponential."""
    load = node.operands[0].parts[0]
    assert isinstance(load, Load)
    return load


def _is_below(node: Op, loop: For) -> bool:
    if node.name != EXP_NONPOSITIVE or node.dtype != FLOAT32:
        return False
    difference = node.operands[0]
    if not isinstance(difference, Op) or difference.name != "subtract":
        return False
    return is_in_row(difference.operands[0], loop)
