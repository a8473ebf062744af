"""Rows that a kernel keeps only to put them beside others are stored there at once.

What is concatenated of pieces that one loop computes would be stored twice, and loaded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    LoopKind,
    Scope,
    Statement,
    Store,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import rows_of, values_of, with_buffers, with_inside
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine, affine


def with_rows_in_joined(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements without rows that are copied, whole and in order, to another buffer."""
    block = tuple([with_inside(node, with_rows_in_joined) for node in statements])
    rows = [node.buffer for node in block if isinstance(node, Alloc)]
    if not any(row.scope is Scope.STACK for row in rows) or len(block) < 3:
        return block
    used = [_Used(node) for node in block]
    stores = {row: _place(block, used, row) for row in rows if row.scope is Scope.STACK}
    known = {row: store for row, store in stores.items() if store is not None}
    found = {row: store for row, store in known.items() if store.buffer not in known}
    if not found:
        return block
    rest = [node for node in block if not _is_left_out(node, found)]
    return with_buffers(
        rest,
        {row: store.buffer for row, store in found.items()},
        moved={row: partial(_moved, store) for row, store in found.items()},
    )


def _moved(copy: Store, place: Affine) -> Affine:
    """Where an element goes that lies at a place of a row."""
    assert isinstance(copy.value, Load)
    (variable,) = copy.value.indices
    return copy.position - variable + place


def _is_left_out(node: Statement, found: Mapping[Buffer, Store]) -> bool:
    if isinstance(node, Alloc):
        return node.buffer in found
    return isinstance(node, For) and any(store is node.body[0] for store in found.values())


class _Used:
    """The buffers that a statement, with all inside it, reads, stores elements of, and writes
    otherwise."""

    def __init__(self, node: Statement) -> None:
        every = list(walk_statements([node]))
        values = (part for each in every for value in values_of(each) for part in walk(value))
        self.read = {part.source for part in values if isinstance(part, Load)}
        self.read |= {rows.buffer for each in every for rows in rows_of(each)}
        stores = [each for each in every if isinstance(each, Store) and each.offset is None]
        self.stored = {each.buffer for each in stores}
        others = [each for each in every if each not in stores]
        self.read |= {buffer for each in others for buffer in written_by(each)}


def _place(block: Sequence[Statement], used: Sequence[_Used], row: Buffer) -> Store | None:
    """The copy of a row, where what computes it can store its elements there."""
    readers = [at for at, each in enumerate(used) if row in each.read]
    writers = [at for at, each in enumerate(used) if row in each.stored]
    if len(readers) != 1 or not writers or writers[-1] >= readers[0]:
        return None
    store = _copy_of(block[readers[0]], row)
    if store is None:
        return None
    start, end = writers[0], readers[0]
    if any(store.buffer in each.read for each in used[start:end]):
        return None
    if any(isinstance(node, Alloc) and node.buffer is store.buffer for node in block[start:end]):
        return None  # it is not there yet
    others = [block[at] for at in range(start, end) if store.buffer in used[at].stored]
    return store if all(_is_beside(node, store, row.size) for node in others) else None


def _is_beside(node: Statement, store: Store, size: int) -> bool:
    """Whether a statement stores one row that does not meet another one, of this size."""
    if not isinstance(node, For) or len(node.body) != 1 or node.count is not None:
        return False
    other, loop = node.body[0], node.variable
    if not isinstance(other, Store) or other.buffer is not store.buffer or other.offset is not None:
        return False
    assert isinstance(store.value, Load)
    (variable,) = store.value.indices
    first = other.position - loop
    gap = first + loop.start - (store.position - variable)
    if first.depends_on(loop) or not gap.is_constant:
        return False
    return gap.constant >= size or gap.constant + loop.extent <= 0


def _copy_of(loop: Statement, row: Buffer) -> Store | None:
    """The store of a loop that copies a row from its first element to its last one."""
    if not isinstance(loop, For) or loop.kind is LoopKind.PARALLEL or len(loop.body) > 1:
        return None
    store = loop.body[0]
    if not isinstance(store, Store) or store.streamed or store.offset is not None:
        return None
    whole = loop.count is None and (loop.variable.start, loop.variable.extent) == (0, row.size)
    along = not (store.position - loop.variable).depends_on(loop.variable)
    in_memory = store.buffer.scope not in (Scope.REGISTER, Scope.VECTORS)
    same = store.buffer.dtype == row.dtype and in_memory
    load = store.value
    if not (isinstance(load, Load) and load.source is row and not load.data):
        return None
    at_variable = load.indices == (affine(loop.variable),)
    return store if whole and along and same and at_variable else None
