"""What the next step of a loop needs is asked for during this one.

Processors foresee by themselves what lies side by side, within a page of memory. They do not where
each step goes through a tile, a few lines of memory of each of many rows; and where each goes
several times through a row, they lose the time of all passes but the first one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tinyfuse.graph.orders import LANES
from tinyfuse.loops.ir import (
    Block,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Prefetch,
    Row,
    Scope,
    Statement,
    Store,
    walk_statements,
)
from tinyfuse.loops.rewrite import values_of
from tinyfuse.machine import Machine
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine, Axis, affine

# Bytes from the start of one row to that of the next one, from which on rows lie apart.
APART = 1024
# Bytes of a row that is asked for a step ahead, so that it is still in the L1 in that step.
SHORTEST_ROW, LONGEST_ROW = 1 << 10, 1 << 14
# Bytes of a tile of one array, at most: those of this step and of the next one fit the L1.
LARGEST_TILE = 1 << 13


def with_prefetches(statements: Sequence[Statement], machine: Machine) -> tuple[Statement, ...]:
    """Ask in each step of a loop over tiles for the next tile of arrays larger than the L2."""
    return tuple([_visited(statement, machine) for statement in statements])


def _visited(node: Statement, machine: Machine) -> Statement:
    if isinstance(node, Block):
        return Block(with_prefetches(node.body, machine))
    if isinstance(node, If):
        then, otherwise = (with_prefetches(part, machine) for part in (node.then, node.otherwise))
        return If(node.test, then, otherwise)
    if not isinstance(node, For):
        return node
    tile = _tile(node)
    if tile is None:
        return _with_next_row(node, machine)
    fetches = _of_next_tile(node.variable, tile, machine)
    return For(node.variable, node.kind, (*fetches, *node.body))


@dataclass(frozen=True, slots=True)
class _Tile:
    """Two loops, one right inside the other, and all that is read and stored there."""

    rows: Axis
    columns: Axis
    places: tuple[tuple[Buffer, Affine], ...]


def _tile(node: For) -> _Tile | None:
    """The tile that each step of a loop goes through, if that is all it does."""
    rows = node.body[0]
    if len(node.body) > 1 or not isinstance(rows, For) or len(rows.body) > 1:
        return None
    columns = rows.body[0]
    if not isinstance(columns, For) or not all(isinstance(s, (Let, Store)) for s in columns.body):
        return None
    places = dict.fromkeys(place for statement in columns.body for place in _places(statement))
    return _Tile(rows.variable, columns.variable, tuple(places))


def _places(statement: Statement) -> Iterator[tuple[Buffer, Affine]]:
    """The elements that a statement reads and stores, but where data decides which."""
    for value in values_of(statement):
        for node in walk(value):
            if isinstance(node, Load) and not node.data:
                yield node.source, node.indices[0]
    if isinstance(statement, Store) and statement.offset is None:
        yield statement.buffer, statement.position


def _of_next_tile(variable: Axis, tile: _Tile, machine: Machine) -> list[Statement]:
    """Loops over the rows of what the next step needs of each array, if these lie apart."""
    found: dict[int, list[Prefetch]] = {}
    seen = set()
    for buffer, position in tile.places:
        rows = _rows(buffer, position, tile)
        if buffer in seen or rows is None or not _comes_from_far(buffer, machine):
            continue
        along, across = rows
        step = position.coefficient(variable)
        if step and along.extent * across.extent * buffer.dtype.itemsize <= LARGEST_TILE:
            seen.add(buffer)
            turn = affine(Axis(tile.rows.name, across.extent))
            values = {along: affine(along.start), across: turn + across.start}
            row = Row(buffer, (position + step).substitute(values))
            found.setdefault(across.extent, []).append(Prefetch(row, along.extent))
    return [
        For(Axis(tile.rows.name, extent), LoopKind.SERIAL, tuple(fetches))
        for extent, fetches in found.items()
    ]


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


def _comes_from_far(buffer: Buffer, machine: Machine) -> bool:
    return buffer.scope in (Scope.ARGUMENT, Scope.SCRATCH) and buffer.nbytes > machine.l2


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """What each step of a loop reads of a buffer: so many elements, side by side."""

    buffer: Buffer
    first: Affine
    extent: int


def _with_next_row(node: For, machine: Machine) -> Statement:
    """Ask for the rows of the next step, bit by bit, in the last loop that goes along them."""
    body: Sequence[Statement] = node.body
    rows = _rows_read(node, machine) if any(isinstance(s, For) for s in body) else []
    found: dict[For, list[Statement]] = {}
    for row in rows:
        loop, place = _loop_along(node, row.extent) or (None, None)
        if loop is not None and place is not None:
            step = row.first.coefficient(node.variable)
            ahead = Prefetch(Row(row.buffer, row.first + place + step), 1)
            found.setdefault(loop, []).append(ahead)
    if not found:
        return For(node.variable, node.kind, with_prefetches(node.body, machine))
    return For(node.variable, node.kind, _with(body, found))


def _with(
    statements: Sequence[Statement], found: Mapping[For, list[Statement]]
) -> tuple[Statement, ...]:
    """A copy in which some loops begin each step with other statements."""
    return tuple(
        [
            For(each.variable, each.kind, (*found.get(each, ()), *_with(each.body, found)))
            if isinstance(each, For)
            else each
            for each in statements
        ]
    )


def _rows_read(node: For, machine: Machine) -> list[_Row]:
    """The rows of far arrays that each step of a loop goes through, several times, and no other."""
    positions: dict[Buffer, list[Affine]] = {}
    for statement in walk_statements(node.body):
        for buffer, position in dict.fromkeys(_places(statement)):
            if _comes_from_far(buffer, machine):
                positions.setdefault(buffer, []).append(position)
    inner = {s.variable for s in walk_statements(node.body) if isinstance(s, For)}
    several = {buffer: found for buffer, found in positions.items() if len(found) > 1}
    rows = [_hull(buffer, found, inner) for buffer, found in several.items()]
    cut = [_cut(row, row.first.coefficient(node.variable)) for row in rows if row]
    return [row for row in cut if row]


def _cut(row: _Row, step: int) -> _Row | None:
    """A row that ends where that of the next step begins; None where rows overlap, or are short.

    Lanes behind the end of a row are none of it: a test rules them out.
    """
    extent = step if step < row.extent < step + LANES.lanes else row.extent
    fits = SHORTEST_ROW <= extent * row.buffer.dtype.itemsize <= LONGEST_ROW
    return replace(row, extent=extent) if fits and extent <= step else None


def _hull(buffer: Buffer, positions: Sequence[Affine], inner: Collection[Axis]) -> _Row | None:
    """The elements from the first to the last one that inner loops read; None where that varies."""
    first = last = None
    for position in dict.fromkeys(positions):
        if any(not isinstance(term, Axis) for term, _ in position.terms):
            return None
        outside = position.substitute({axis: affine(0) for axis in inner})
        low, high = (position - outside).interval()
        if first is None or last is None:
            first, last = outside + low, outside + high
        apart = outside - first
        if not apart.is_constant:
            return None
        last = last + max(0, (outside + high - last).constant)
        first = first + min(0, (outside + low - first).constant)
    if first is None or last is None:
        return None
    return _Row(buffer, first, (last - first).constant + 1)


def _loop_along(node: For, extent: int) -> tuple[For, Affine] | None:
    """The last innermost loop that goes once along so many elements, side by side, and where in
    them it is."""
    found = None
    pending: list[tuple[For, tuple[Axis, ...]]] = [
        (s, (s.variable,)) for s in node.body if isinstance(s, For)
    ]
    while pending:
        loop, around = pending.pop(0)
        inside = [s for s in loop.body if isinstance(s, For)]
        pending = [(s, (*around, s.variable)) for s in inside] + pending
        if not inside:
            place = next(
                (p for s in loop.body for _, p in _places(s) if _goes_along(p, around, extent)),
                None,
            )
            if place is not None:
                found = loop, _moving_part(place, around)
    return found


def _moving_part(position: Affine, axes: Sequence[Axis]) -> Affine:
    moving = affine(0)
    for axis in axes:
        moving = moving + (affine(axis) - axis.start) * position.coefficient(axis)
    return moving


def _goes_along(position: Affine, axes: Sequence[Axis], extent: int) -> bool:
    """Whether loops over these axes, from the outside in, go along so many elements in order."""
    length = 1
    for axis in reversed(axes):
        if position.coefficient(axis) != length:
            return False
        length *= axis.extent
    return length == extent
