"""Divisions by a number that a row of elements shares: a row at a time, they take less time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.dtypes import FLOAT32
from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE
from tinyfuse.loops.invariants import Varying, varying_in
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
from tinyfuse.stage.expr import Const, Expr, Load, Op, always_run, walk

# Elements of a row from which on it pays: some are looked at and added up for each block.
LEAST_ROW = 256


def shared_divisions(loop: For) -> list[Op]:
    """The divisions in each step of a loop over a row whose divisor is the same in all of them.

    None depends on another. In a loop with any, no statement reads what it or another one stores.
    """
    varying = varying_in(loop)
    if varying is None or loop.variable.extent < LEAST_ROW or not _is_row(loop.body):
        return []
    found: list[Op] = []
    depending: set[Expr] = set()  # on those found
    named: set[Expr] = set()  # within the loop
    for statement in loop.body:
        for value in values_of(statement):
            always = always_run(value)
            for node in walk(value):
                varying.look_at(node)
                if node in depending or not depending.isdisjoint(node.parts):
                    depending.add(node)
                elif node in always and isinstance(node, Op) and _is_shared(node, varying, named):
                    found.append(node)
                    depending.add(node)
        if isinstance(statement, Let):
            named.add(statement.local)
            varying.name(statement.local, statement.value)
            if statement.value in depending:
                depending.add(statement.local)
    return found


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


def needed(statements: Sequence[Statement]) -> list[Statement]:
    """The statements without scalars that are named and not used after that."""
    kept: list[Statement] = []
    used: set[Expr] = set()
    for statement in reversed(statements):
        if not isinstance(statement, Let) or statement.local in used:
            kept.append(statement)
            used.update([node for value in values_of(statement) for node in walk(value)])
    return kept[::-1]


def _is_row(body: Sequence[Statement]) -> bool:
    written = {statement.buffer for statement in body if isinstance(statement, Store)}
    return all(isinstance(statement, (Let, Store)) for statement in body) and not any(
        isinstance(node, Load) and node.source in written
        for statement in body
        for value in values_of(statement)
        for node in walk(value)
    )


def _is_shared(node: Op, varying: Varying, named: set[Expr]) -> bool:
    if node.name != "divide" or node.dtype != FLOAT32:
        return False
    dividend, divisor = node.operands
    if divisor in varying.found or dividend not in varying.found:
        return False
    if not named.isdisjoint(walk(divisor)):
        return False
    return not isinstance(divisor, Const) or np.frexp(divisor.value)[0] != 0.5  # else it multiplies
