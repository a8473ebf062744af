"""Divisions of a row of elements by one number: a row at a time, they take less time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from tinyfuse.dtypes import FLOAT32
from tinyfuse.loops.invariants import Varying
from tinyfuse.loops.ir import (
    For,
    Let,
    Statement,
    Store,
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
    found = _division(loop)
    return found[1] if found and _dividend(found[1]).source is not found[0].buffer else None


def division_in_place(loop: For) -> Op | None:
    """The same of elements that each quotient takes the place of."""
    found = _division(loop)
    if found is None:
        return None
    store, node = found
    dividend = _dividend(node)
    return node if (dividend.source, *dividend.indices) == (store.buffer, store.position) else None


def _dividend(division: Op) -> Load:
    dividend = division.operands[0]
    assert isinstance(dividend, Load)
    return dividend


def _division(loop: For) -> tuple[Store, Op] | None:
    store = loop.body[0]
    if loop.variable.extent < LEAST_ROW or len(loop.body) > 1 or not isinstance(store, Store):
        return None
    node, varying = store.value, Varying(loop)
    if store.offset is not None or not is_along(store.position, loop):
        return None
    if not isinstance(node, Op) or node.name != "divide" or node.dtype != FLOAT32:
        return None
    dividend, divisor = node.operands
    if not is_in_row(dividend, loop) or any(varying.look_at(part) for part in walk(divisor)):
        return None
    multiplies = isinstance(divisor, Const) and np.frexp(divisor.value)[0] == 0.5
    return None if multiplies else (store, node)


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
