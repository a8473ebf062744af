"""Divisions of a row of elements by one number: a row at a time, they take less time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from tinyfuse.dtypes import FLOAT32
from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE
from tinyfuse.loops.invariants import Varying
from tinyfuse.loops.ir import (
    Buffer,
    For,
    Kernel,
    Let,
    Scope,
    Statement,
    Store,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Const, Expr, Load, Op, walk
from tinyfuse.stage.index import Affine

# Elements of a row from which on it pays: some are looked at and added up for each block.
LEAST_ROW = 256


def shared_division(loop: For) -> Op | None:
    """The division that is all that a loop over a row does, of elements that lie side by side in
    memory that it does not store to, by a number that is the same in all steps.

    Among other operations processors have time to divide; to keep the quotients takes longer.
    """
    store = loop.body[0]
    if loop.variable.extent < LEAST_ROW or len(loop.body) > 1 or not isinstance(store, Store):
        return None
    node, varying = store.value, Varying(loop)
    if store.offset is not None or not is_along(store.position, loop):
        return None
    if not isinstance(node, Op) or node.name != "divide" or node.dtype != FLOAT32:
        return None
    dividend, divisor = node.operands
    if not is_in_row(dividend, loop) or dividend.source in varying.written:
        return None
    if any(varying.look_at(part) for part in walk(divisor)):
        return None
    multiplies = isinstance(divisor, Const) and np.frexp(divisor.value)[0] == 0.5
    return None if multiplies else node


def holds_fractions(buffer: Buffer, kernel: Kernel) -> bool:
    """Whether all that a kernel stores in memory of its own is from 0 to 1, or NaN."""
    if buffer.scope is not Scope.STACK:
        return False
    writers = [node for node in walk_statements(kernel.body) if buffer in written_by(node)]
    return bool(writers) and all(
        isinstance(node, Store)
        and isinstance(node.value, Op)
        and node.value.name == EXP_NONPOSITIVE
        for node in writers
    )


def is_in_row(node: Expr, loop: For) -> TypeGuard[Load]:
    """Whether a loop loads elements there that lie side by side."""
    return isinstance(node, Load) and not node.data and is_along(node.indices[0], loop)


def is_along(position: Affine, loop: For) -> bool:
    return not (position - loop.variable).depends_on(loop.variable)


def needed(statements: Sequence[Statement]) -> list[Statement]:
    """The statements without scalars that are named and not used after that."""
    kept: list[Statement] = []
    used: set[Expr] = set()
    for statement in reversed(statements):
        if not isinstance(statement, Let) or statement.local in used:
            kept.append(statement)
            used.update([node for value in values_of(statement) for node in walk(value)])
    return kept[::-1]
