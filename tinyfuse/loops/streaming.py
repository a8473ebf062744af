"""Streamed stores: rows of elements that go to memory past the caches."""

from __future__ import annotations

from tinyfuse.loops.ir import For, Let, Scope, Store
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Load, walk

# Bytes of a row from which on streaming it pays: the lines at its ends are stored as others are.
LEAST_ROW = 1024


def can_stream(loop: For, store: Store) -> bool:
    """Whether the loop does nothing but compute scalars and store rows, this one's long enough.

    Elements of a streamed row are stored some time after they were computed, so nothing else in
    the loop may store to its buffer or read from it.
    """
    buffer, variable = store.buffer, loop.variable
    if buffer.scope not in (Scope.ARGUMENT, Scope.SCRATCH) or store.offset is not None:
        return False
    if variable.extent * buffer.dtype.itemsize < LEAST_ROW:
        return False
    row = store.position - variable
    if row.depends_on(variable) or not all(isinstance(node, (Let, Store)) for node in loop.body):
        return False
    others = [node.buffer for node in loop.body if isinstance(node, Store) and node is not store]
    return buffer not in others and not any(
        isinstance(part, Load) and part.source is buffer
        for node in loop.body
        for value in values_of(node)
        for part in walk(value)
    )
