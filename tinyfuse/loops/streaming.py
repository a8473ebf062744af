"""Streamed stores: rows of elements that go to memory past the caches."""

from __future__ import annotations

from tinyfuse.loops.ir import Buffer, For, Let, Row, Scope, Store
from tinyfuse.loops.rewrite import values_of
from tinyfuse.machine import LINE_BYTES, MIB
from tinyfuse.stage.analysis import point_cost
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine

# Bytes of a block, which is computed on the stack before it is stored: few, so that loads and
# stores go on at once. `streamed_stores.h` counts on it.
BLOCK = 1024
# Bytes of a row from which on streaming it pays: the lines at its ends are stored as others are.
LEAST_ROW = 4096
# The same where rows are whole lines: memory is written several lines at a time.
LEAST_LINES = 2 * LINE_BYTES
# What computing an element takes, in additions, so that memory would be idle meanwhile: a logarithm
# or an exponential, at least.
LONG_COMPUTATION = 12
# Bytes of an array from which on no core's own caches hold it.
LARGE = 4 * MIB


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


def read_ahead(loop: For) -> list[Row]:
    """What a loop reads side by side of large arrays, if memory would be idle while it computes.

    Of parts of an array that lie around each other, the one that is read first.
    """
    values = [value for node in loop.body for value in values_of(node)]
    if sum(map(point_cost, values)) < LONG_COMPUTATION:
        return []
    found: dict[object, Row] = {}
    for node in dict.fromkeys(node for value in values for node in walk(value)):
        if isinstance(node, Load) and not node.data and _is_row_of_memory(loop, node):
            buffer, position = node.source, node.indices[0]
            row = found.setdefault((buffer, position.terms), Row(buffer, position))
            if position.constant > row.position.constant:
                found[buffer, position.terms] = Row(buffer, position)
    return [*found.values()]


def _is_row_of_memory(loop: For, load: Load) -> bool:
    buffer, row = load.source, load.indices[0] - loop.variable
    in_memory = buffer.scope in (Scope.ARGUMENT, Scope.SCRATCH) and buffer.nbytes >= LARGE
    return in_memory and not row.depends_on(loop.variable)


def _is_whole_lines(row: Affine, size: int, buffer: Buffer) -> bool:
    """Whether each row begins and ends where a line does, if the buffer begins at one."""
    itemsize = buffer.dtype.itemsize
    starts = [row.constant, *[coefficient for _, coefficient in row.terms]]
    return size % LINE_BYTES == 0 and all(start * itemsize % LINE_BYTES == 0 for start in starts)
