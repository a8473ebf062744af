"""Exponentials of a row below one number, as a softmax has them: they take less time together."""

from __future__ import annotations

from tinyfuse.dtypes import FLOAT32
from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE
from tinyfuse.loops.divisions import is_in_row
from tinyfuse.loops.invariants import varying_in
from tinyfuse.loops.ir import For, Let, Local, Store
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Load, Op, always_run, walk

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
