"""Conversions of rows from and to float16: processors convert a vector of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.dtypes import FLOAT16, FLOAT32
from tinyfuse.loops.divisions import is_along, is_in_row
from tinyfuse.loops.ir import For, Let, Statement, Store, written_by
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Cast, Expr, Load, always_run, walk

# Elements of a row from which on it pays: those of a vector.
LEAST_ROW = 16


def converts_rows(loop: For) -> bool:
    """Whether a loop converts rows of elements that lie side by side."""
    if loop.count is not None or loop.variable.extent < LEAST_ROW:
        return False
    if not all(isinstance(statement, (Let, Store)) for statement in loop.body):
        return False
    return bool(widened(loop, loop.body) or narrowed(loop, loop.body))


def converted_alone(loop: For, body: Sequence[Statement]) -> Store | None:
    """What a loop stores if all that it does is to convert one row into another one."""
    store = body[0]
    if len(body) > 1 or not isinstance(store, Store) or not _is_along(store, loop):
        return None
    value = store.value
    converts = _converts(value, FLOAT16, FLOAT32) or _converts(value, FLOAT32, FLOAT16)
    if not converts or not is_in_row(value.parts[0], loop):
        return None
    return None if operand_row(value).source is store.buffer else store


def widened(loop: For, body: Sequence[Statement]) -> list[Expr]:
    """The conversions to float32, in each step of a loop, of a row that the loop does not write.

    body: its statements, or those that stand for them.
    """
    written = {buffer for statement in body for buffer in written_by(statement)}
    nodes = [
        node
        for statement in body
        for value in values_of(statement)
        for node in always_run(value)
        if _converts(node, FLOAT16, FLOAT32) and is_in_row(node.parts[0], loop)
    ]
    return [node for node in nodes if operand_row(node).source not in written]


def narrowed(loop: For, body: Sequence[Statement]) -> list[Store]:
    """The statements that store a row of conversions to float16, where the loop does not read."""
    read = {
        node.source
        for statement in body
        for value in values_of(statement)
        for node in walk(value)
        if isinstance(node, Load)
    }
    stores = [each for each in body if isinstance(each, Store)]
    written = [store.buffer for store in stores]
    return [
        store
        for store in stores
        if _converts(store.value, FLOAT32, FLOAT16)
        and _is_along(store, loop)
        and store.buffer not in read
        and written.count(store.buffer) == 1
    ]


def operand_row(conversion: Expr) -> Load:
    """The element that is converted."""
    (load,) = conversion.parts
    assert isinstance(load, Load)
    return load


def _is_along(store: Store, loop: For) -> bool:
    return store.offset is None and is_along(store.position, loop)


def _converts(node: Expr, from_dtype: np.dtype, to_dtype: np.dtype) -> bool:
    return isinstance(node, Cast) and (node.operand.dtype, node.dtype) == (from_dtype, to_dtype)
