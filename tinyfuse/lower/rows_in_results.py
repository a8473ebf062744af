"""Rows that a kernel keeps lie in its result, where that takes their place in the end.

A row that is computed, read again and then overwritten by what is made of it needs no memory of its
own: the lines of the result are fetched while the kernel computes, not all at once when it stores,
and the innermost cache has to hold one row less.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinyfuse.loops.divided_exponentials import divided_exponentials
from tinyfuse.loops.divisions import shared_division
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    Let,
    Scope,
    Statement,
    Store,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import rows_of, values_of, with_buffers, with_inside
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine, affine

# Elements of a row that is not in registers.
LEAST_ROW = 256


def with_rows_in_results(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements of a kernel with rows kept in what they become, where nothing reads that."""
    if not any(_is_row(node) for node in walk_statements(statements)):
        return tuple(statements)
    every = list(walk_statements(statements))
    stores = [each for node in every for each in written_by(node)]
    free = {each for each in stores if stores.count(each) == 1}.difference(_read(every))
    return _placed(statements, free)


def _is_row(node: Statement) -> bool:
    return (
        isinstance(node, Alloc)
        and node.buffer.scope is Scope.STACK
        and node.buffer.size >= LEAST_ROW
    )


def _read(statements: Sequence[Statement]) -> set[Buffer]:
    values = [value for node in statements for value in values_of(node)]
    loaded = {node.source for value in values for node in walk(value) if isinstance(node, Load)}
    return loaded | {rows.buffer for node in statements for rows in rows_of(node)}


def _placed(statements: Sequence[Statement], free: set[Buffer]) -> tuple[Statement, ...]:
    """free: results that nothing reads yet; those that get a row are taken from it."""
    block = tuple([with_inside(node, lambda body: _placed(body, free)) for node in statements])
    rows = [node.buffer for node in block if isinstance(node, Alloc) and _is_row(node)]
    for row in rows:
        block = _with_row(block, row, free)
    return block


def _with_row(
    block: tuple[Statement, ...], kept: Buffer, free: set[Buffer]
) -> tuple[Statement, ...]:
    """The block with a row in what the last statement that uses it makes of it."""
    alloc = next(node for node in block if isinstance(node, Alloc) and node.buffer is kept)
    users = [node for node in block if node is not alloc and kept in _used(node)]
    loop = users[-1] if users else None
    store = _overwriting(loop, kept, free) if isinstance(loop, For) else None
    if store is None or any(store.buffer in _used(node) for node in users[:-1]):
        return block
    assert isinstance(loop, For)
    start = store.position - loop.variable
    rest = [node for node in block if node is not alloc]
    moved = with_buffers(rest, {kept: store.buffer}, moved={kept: lambda place: start + place})
    divides = shared_division(loop) is not None
    if divides and not divided_exponentials(moved):
        return block
    free.remove(store.buffer)
    return moved


def _used(statement: Statement) -> set[Buffer]:
    every = list(walk_statements([statement]))
    return _read(every) | {each for node in every for each in written_by(node)}


def _overwriting(loop: For, kept: Buffer, free: Collection[Buffer]) -> Store | None:
    """The store of a loop that makes each element of a row of results of the one of the row that
    is kept which lies at the same place."""
    stores = [node for node in loop.body if isinstance(node, Store)]
    if len(stores) > 1 or not stores or not all(isinstance(n, (Let, Store)) for n in loop.body):
        return None
    whole = loop.count is None and (loop.variable.start, loop.variable.extent) == (0, kept.size)
    store, place = stores[0], affine(loop.variable)
    in_memory = store.buffer.scope in (Scope.ARGUMENT, Scope.SCRATCH) and store.buffer in free
    fits = store.buffer.dtype == kept.dtype and not store.streamed and store.offset is None
    along = not (store.position - loop.variable).depends_on(loop.variable)
    if not (whole and in_memory and fits and along):
        return None
    return store if all(_is_at(place, load) for load in _loads(loop, kept)) else None


def _loads(loop: For, kept: Buffer) -> list[Load]:
    values = [value for node in loop.body for value in values_of(node)]
    nodes = [node for value in values for node in walk(value)]
    return [node for node in nodes if isinstance(node, Load) and node.source is kept]


def _is_at(place: Affine, load: Load) -> bool:
    return load.indices == (place,) and not load.data
