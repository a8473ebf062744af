"""What a step of a loop transposes first, or stores last, is asked for in the turns of a long loop.

Processors foresee where a loop goes that they have just seen going there. A tile that is loaded,
taken through all of other arrays, and stored is none of that: its rows would be waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import (
    For,
    If,
    LoopKind,
    Prefetch,
    Row,
    Rows,
    Statement,
    Store,
    Transpose,
    children,
    walk_statements,
)
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import with_inside
from tinyfuse.lower.tiles import comes_from_far
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import IndexTest
from tinyfuse.stage.index import Axis, affine

# Turns of a loop that a block is asked for in, and loops that each goes through, at least.
LEAST_TURNS = 4
LEAST_DEPTH = 4


@dataclass(frozen=True, slots=True)
class _Block:
    """So many rows of a buffer, of so many elements."""

    rows: Rows
    count: int
    extent: int


def with_blocks_ahead(statements: Sequence[Statement], machine: Machine) -> tuple[Statement, ...]:
    """Ask in long loops for the blocks of far arrays that are needed after them."""
    return tuple([_visited(statement, machine) for statement in statements])


def _visited(node: Statement, machine: Machine) -> Statement:
    found = _asking(node, machine) if isinstance(node, For) else None
    return found or with_inside(node, lambda body: with_blocks_ahead(body, machine))


def _asking(node: For, machine: Machine) -> For | None:
    """A loop with what its steps ask for; None where there is nothing to ask for."""
    long = [each for each in node.body if isinstance(each, For) and _is_long(each)]
    if len(long) != 1:
        return None
    (turns,) = long
    at = node.body.index(turns)
    before, after = node.body[:at], node.body[at + 1 :]
    blocks = [*map(_stored, after), *[_next_read(each, node.variable) for each in before]]
    far = [block for block in blocks if block and _fits(block, machine)]
    taken = {each.variable.name for each in walk_statements([node]) if isinstance(each, For)}
    asked = [_share(block, turns.variable, taken) for block in far]
    body = (*before, replace(turns, body=(*asked, *turns.body)), *after)
    return replace(node, body=body) if asked else None


def _is_long(node: For) -> bool:
    return node.variable.extent >= LEAST_TURNS and _depth(node) >= LEAST_DEPTH


def _depth(node: Statement) -> int:
    """How many loops stand inside one another."""
    return max(map(_depth, children(node)), default=0) + isinstance(node, For)


def _next_read(node: Statement, variable: Axis) -> _Block | None:
    """What the next step of a loop transposes."""
    step = node.block.position.coefficient(variable) if isinstance(node, Transpose) else 0
    if not isinstance(node, Transpose) or not step:
        return None
    rows = Rows(node.block.buffer, node.block.position + step, node.block.step)
    return _Block(rows, node.columns, node.rows)


def _stored(node: Statement) -> _Block | None:
    """The rows that two loops, one right inside the other, store."""
    inner = node.body[0] if isinstance(node, For) and len(node.body) == 1 else None
    if not isinstance(node, For) or not isinstance(inner, For) or len(inner.body) > 1:
        return None
    store, across, along = inner.body[0], node.variable, inner.variable
    if not isinstance(store, Store) or store.offset is not None or store.streamed:
        return None
    step = store.position.coefficient(across)
    if store.position.coefficient(along) != 1 or step < along.extent:
        return None
    start = store.position.substitute({axis: affine(axis.start) for axis in (across, along)})
    return _Block(Rows(store.buffer, start, step), across.extent, along.extent)


def _fits(block: _Block, machine: Machine) -> bool:
    """Whether a block of the memory of the program leaves half of the first cache to others."""
    nbytes = block.count * block.extent * block.rows.buffer.dtype.itemsize
    return comes_from_far(block.rows.buffer, machine) and 2 * nbytes <= machine.l1


def _share(block: _Block, turn: Axis, taken: set[str]) -> Statement:
    """What a turn asks for: as many rows of a block as leave none after the last turn."""
    count = -(-block.count // turn.extent)
    names = {axis.name for axis in block.rows.position.axes()}
    row = Axis(unused("r", taken | names), count)
    first = turn - turn.start
    number = first * count + row if count > 1 else first
    place = Row(block.rows.buffer, block.rows.position + number * block.rows.step)
    asked: Statement = Prefetch(place, block.extent)
    if count > 1:
        asked = For(row, LoopKind.SERIAL, (asked,))
    enough = -(-block.count // count)
    return asked if enough == turn.extent else If(IndexTest(first, None, enough), (asked,), ())
