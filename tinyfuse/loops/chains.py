"""Loops whose steps have to wait for each other: sums in a register, scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tinyfuse.graph.scalar_ops import cost
from tinyfuse.loops.ir import For, Let, Local, LoopKind, Store
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.analysis import is_operation, operation_name
from tinyfuse.stage.expr import Expr, Load, Op, walk

# Steps of a loop that are so few that the processor begins with its next run meanwhile.
OVERLAPPING = 32


class Chain(NamedTuple):
    """length: the operations of each step, in additions, that need the step before. vector: whether
    the C compiler computes the others, if any, for several steps at once."""

    length: int
    vector: bool


NO_CHAIN = Chain(0, True)


def chain_of(loop: For) -> Chain:
    """The chain that an innermost loop is. Integers are none: they may be added in any order."""
    if loop.kind is LoopKind.VECTOR or any(isinstance(inner, For) for inner in loop.body):
        return NO_CHAIN
    carried = [inner for inner in loop.body if isinstance(inner, Store) and _stays(inner, loop)]
    if not carried:
        return NO_CHAIN
    if loop.variable.extent < OVERLAPPING:
        return Chain(0, vector=False)
    lets = {inner.local: inner.value for inner in loop.body if isinstance(inner, Let)}
    length = max(_length(store, lets) for store in carried)
    return Chain(length, vector=all(_is_sum(store, loop) for store in carried))


def _stays(store: Store, loop: For) -> bool:
    """Whether every step of the loop may store to the same place."""
    fixed = store.offset is not None or not store.position.depends_on(loop.variable)
    return fixed and store.buffer.dtype.kind == "f"


def _is_sum(store: Store, loop: For) -> bool:
    """Whether all that a loop does with what it stores is to add something to it."""
    value = store.value
    if not isinstance(value, Op) or value.name != "add":
        return False
    loads = [
        node
        for statement in loop.body
        for root in values_of(statement)
        for node in walk(root)
        if isinstance(node, Load) and node.source is store.buffer
    ]
    return len(loads) == 1 and loads[0] in value.operands


def _length(store: Store, lets: Mapping[Local, Expr]) -> int:
    """What lies between an element as it was and as it is stored, in additions."""
    lengths: dict[Expr, int] = {}  # of the nodes that depend on it
    for node in _with_named(store.value, lets):
        below = [lengths[part] for part in node.parts if part in lengths]
        if isinstance(node, Local) and lets.get(node) in lengths:
            below = [lengths[lets[node]]]
        if isinstance(node, Load) and node.source is store.buffer:
            lengths[node] = 0
        elif below:
            own = cost(operation_name(node)) if is_operation(node) else 0
            lengths[node] = max(below) + own
    return lengths.get(store.value, 0)


def _with_named(root: Expr, lets: Mapping[Local, Expr]) -> Sequence[Expr]:
    """The nodes of all named scalars, in the order of their names, then those of an expression."""
    return [node for value in (*lets.values(), root) for node in walk(value)]
