"""Streamed stores: rows of elements that go to memory past the caches."""

from __future__ import annotations

from tinyfuse.loops.ir import Buffer, For, Let, Scope, Store
from tinyfuse.loops.rewrite import values_of
from tinyfuse.machine import LINE_BYTES
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine

# Bytes of a block, which is computed on the stack before it is stored: few, so that loads and
# stores go on at once. `streamed_stores.h` counts on it.
BLOCK = 1024
# Bytes of a row from which on streaming it pays: the lines at its ends are stored as others are.
LEAST_ROW = 4096
# The same where rows are whole lines: memory is written several lines at a time.
LEAST_LINES = 2 * LINE_BYTES


def can_stream(loop: For, store: Store) -> bool:
    """Whether the loop does nothing but compute scalars and store rows, this one's long enough.

    Elements of a streamed row are stored some time after they were computed, so nothing else in
    the loop may store to its buffer or read from it.
    """
    buffer, variable = store.buffer, loop.variable
    if buffer.scope not in (Scope.ARGUMENT, Scope.SCRATCH) or store.offset is not None:
        return False
    row, size = store.position - variable, variable.extent * buffer.dtype.itemsize
    if size < (LEAST_LINES if _is_whole_lines(row, size, buffer) else LEAST_ROW):
        return False
    if row.depends_on(variable) or not all(isinstance(node, (Let, Store)) for node in loop.body):
        return False
    others = [node.buffer for node in loop.body if isinstance(node, Store) and node is not store]
    return buffer not in others and not any(
        isinstance(part, Load) and part.source is buffer
        for node in loop.body
        for value in values_of(node)
        for part in walk(value)
    )


def _is_whole_lines(row: Affine, size: int, buffer: Buffer) -> bool:
    """Whether each row begins and ends where a line does, if the buffer begins at one."""
    itemsize = buffer.dtype.itemsize
    starts = [row.constant, *[coefficient for _, coefficient in row.terms]]
    return size % LINE_BYTES == 0 and all(start * itemsize % LINE_BYTES == 0 for start in starts)
