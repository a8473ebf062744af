"""What the next step of a loop needs is asked for during this one.

Processors foresee by themselves what lies side by side, but not the next tile: a few lines of
memory of each of many rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    Let,
    LoopKind,
    Prefetch,
    Row,
    Scope,
    Statement,
    Store,
)
from tinyfuse.loops.rewrite import values_of, with_inside
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine, Axis, affine

# Bytes from the start of one row to that of the next one, from which on rows lie apart.
APART = 1024
# Bytes of a tile of one array, at most: those of this step and of the next one fit the L1.
LARGEST_TILE = 1 << 13


def with_prefetches(statements: Sequence[Statement], machine: Machine) -> tuple[Statement, ...]:
    """Ask in each step of a loop over tiles for the next tile of arrays larger than the L2."""
    return tuple([_visited(statement, machine) for statement in statements])


def _visited(node: Statement, machine: Machine) -> Statement:
    tiles = _tiles(node) if isinstance(node, For) else []
    if not tiles or not isinstance(node, For):
        return with_inside(node, lambda body: with_prefetches(body, machine))
    *before, last = node.body
    assert isinstance(last, For)
    fetches = _of_next_tiles(node.variable, tiles, machine)
    own = fetches.pop(last.variable, [])
    loops = [For(rows, LoopKind.SERIAL, tuple(each)) for rows, each in fetches.items()]
    last = For(last.variable, last.kind, (*own, *last.body))
    return For(node.variable, node.kind, (*loops, *before, last))


@dataclass(frozen=True, slots=True)
class _Tile:
    """Two loops, one right inside the other, and all that is read and stored there."""

    rows: Axis
    columns: Axis
    places: tuple[tuple[Buffer, Affine], ...]


def _tiles(node: For) -> list[_Tile]:
    """The tiles that each step of a loop goes through, if that is all it does."""
    tiles = [_tile(inner) for inner in node.body if not isinstance(inner, (Alloc, Let))]
    return [tile for tile in tiles if tile] if all(tiles) else []


def _tile(rows: Statement) -> _Tile | None:
    """The tile that two loops go through, one right inside the other."""
    if not isinstance(rows, For):
        return None
    *lets, columns = rows.body
    if not isinstance(columns, For) or not all(isinstance(s, Let) for s in lets):
        return None
    if not all(isinstance(s, (Let, Store)) for s in columns.body):
        return None
    places = dict.fromkeys(place for s in (*lets, *columns.body) for place in _places(s))
    return _Tile(rows.variable, columns.variable, tuple(places))


def _places(statement: Statement) -> Iterator[tuple[Buffer, Affine]]:
    """The elements that a statement reads and stores, but where data decides which, and but those
    that go past the caches."""
    for value in values_of(statement):
        for node in walk(value):
            if isinstance(node, Load) and not node.data:
                yield node.source, node.indices[0]
    if isinstance(statement, Store) and statement.offset is None and not statement.streamed:
        yield statement.buffer, statement.position


def _of_next_tiles(
    variable: Axis, tiles: Sequence[_Tile], machine: Machine
) -> dict[Axis, list[Statement]]:
    """The rows of what the next step needs of each array, if these lie apart, by the loops over
    them: that of the last tile's rows where there are as many."""
    last = tiles[-1].rows
    turns = {last.extent: last}
    found: dict[Axis, list[Statement]] = {}
    seen = set()
    for tile in tiles:
        for buffer, position in tile.places:
            rows = _rows(buffer, position, tile)
            if rows is None or not comes_from_far(buffer, machine):
                continue
            along, across = rows
            if (buffer, along) in seen:
                continue
            step = position.coefficient(variable)
            if step and along.extent * across.extent * buffer.dtype.itemsize <= LARGEST_TILE:
                seen.add((buffer, along))
                turn = turns.setdefault(across.extent, Axis(last.name, across.extent))
                values = {along: affine(along.start), across: turn + (across.start - turn.start)}
                row = Row(buffer, (position + step).substitute(values))
                found.setdefault(turn, []).append(Prefetch(row, along.extent))
    return found


def _rows(buffer: Buffer, position: Affine, tile: _Tile) -> tuple[Axis, Axis] | None:
    """The axes along the rows of a tile of a buffer, and across; None where there are no rows that
    lie apart."""
    if any(not isinstance(term, Axis) for term, _ in position.terms):
        return None
    for along, across in ((tile.columns, tile.rows), (tile.rows, tile.columns)):
        distance = abs(position.coefficient(across)) * buffer.dtype.itemsize
        if position.coefficient(along) == 1 and distance >= APART:
            return along, across
    return None


def comes_from_far(buffer: Buffer, machine: Machine) -> bool:
    """Whether a buffer is in memory, and larger than the second cache."""
    return buffer.scope in (Scope.ARGUMENT, Scope.SCRATCH) and buffer.nbytes > machine.l2
