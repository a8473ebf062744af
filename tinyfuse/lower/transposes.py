"""Loops that only copy, across the rows of what they read, become transposes in registers.

Element by element each load, or each store, would be of another line of memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import Buffer, For, LoopKind, Rows, Statement, Store, Transpose
from tinyfuse.loops.rewrite import with_inside
from tinyfuse.loops.transposes import lanes_for
from tinyfuse.machine import Machine
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Affine, Axis


def with_transposes(statements: Sequence[Statement], machine: Machine) -> tuple[Statement, ...]:
    """Make one statement of each pair of loops that transposes a block of a buffer."""
    return tuple([_visited(statement, machine) for statement in statements])


def _visited(node: Statement, machine: Machine) -> Statement:
    found = _transpose(node, machine) if isinstance(node, For) else None
    return found or with_inside(node, lambda body: with_transposes(body, machine))


def _transpose(outer: For, machine: Machine) -> Transpose | None:
    """What two loops do, one right inside the other, if it is to transpose a block."""
    inner = outer.body[0]
    if len(outer.body) > 1 or not isinstance(inner, For) or len(inner.body) > 1:
        return None
    store = inner.body[0]
    if outer.kind is LoopKind.PARALLEL or not isinstance(store, Store):
        return None
    load = _copied(store)
    if load is None:
        return None
    for row, column in ((outer.variable, inner.variable), (inner.variable, outer.variable)):
        to = _rows(store.buffer, store.position, row, column)
        block = _rows(load.source, load.indices[0], column, row)
        if to and block and to.step >= column.extent:
            extent = min(row.extent, column.extent)
            lanes = lanes_for(store.buffer.dtype.itemsize, extent, machine.vector_bytes)
            return Transpose(block, to, row.extent, column.extent, lanes) if lanes else None
    return None


def _copied(node: Store) -> Load | None:
    """The element of another buffer that a statement stores as it is, at no place of data's."""
    load = node.value
    if not isinstance(load, Load) or load.data or load.source is node.buffer:
        return None
    return None if node.streamed or node.offset is not None else load


def _rows(buffer: Buffer, position: Affine, row: Axis, column: Axis) -> Rows | None:
    """The rows of a buffer that lie along one axis, one for each step of the other axis."""
    step = position.coefficient(row)
    rest = position - row * step - column
    if step <= 1 or rest.depends_on(row) or rest.depends_on(column):
        return None
    return Rows(buffer, rest + (row.start * step + column.start), step)
