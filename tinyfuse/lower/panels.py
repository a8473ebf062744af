"""Pieces of long rows are asked for before tiles in registers, or copies for these, need them.

Where columns lie side by side in rows that are far apart, a tile goes through a few lines of memory
of each row. Processors do not foresee those of the next tile, or of the next rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinyfuse.loops.ir import Buffer, For, LoopKind, Prefetch, Row, Scope, Statement, Store
from tinyfuse.loops.rewrite import values_of, with_inside
from tinyfuse.loops.vectors import is_along
from tinyfuse.lower.tiles import APART, comes_from_far
from tinyfuse.machine import LINE_BYTES, Machine
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine, Axis, affine

# Rows ahead of its own that a loop asks for which copies pieces of them, and bytes of such a piece.
ROWS_AHEAD = 32
LONGEST_PIECE = 1 << 9


def with_next_panels(
    statements: Sequence[Statement], machine: Machine, around: tuple[Axis, ...] = ()
) -> tuple[Statement, ...]:
    """Ask for pieces of the rows of arrays larger than the L2.

    Where tiles take a piece of each row into sums, for those of the next tile along the rows; where
    the pieces are copied, for those of later rows. around: the variables of the loops around.
    """
    return tuple([_visited(statement, machine, around) for statement in statements])


def _visited(node: Statement, machine: Machine, around: tuple[Axis, ...]) -> Statement:
    if not isinstance(node, For):
        return with_inside(node, lambda body: with_next_panels(body, machine, around))
    asked = [*_of_next_tile(node, machine, around), *_of_later_rows(node, machine)]
    if asked:
        return For(node.variable, node.kind, (*asked, *node.body))
    inside = (*around, node.variable)
    return with_inside(node, lambda body: with_next_panels(body, machine, inside))


def _of_next_tile(node: For, machine: Machine, around: Sequence[Axis]) -> list[Prefetch]:
    """What a step of a sum into tiles asks for: what the same step reads for the next tile."""
    found: dict[tuple[Buffer, Affine], Prefetch] = {}
    for columns, load in _taken_into_tiles(node):
        place = load.indices[0]
        length = place.coefficient(node.variable)
        moves = [place.coefficient(axis) for axis in around if axis.extent > 1]
        steps = [step for step in moves if columns.extent <= step < length]
        if steps and _is_apart(load, length, machine):
            # Arrays begin anywhere in a line: this is the last element of the first one that may
            # not have been asked for with the tile before.
            first = _at_start(place, columns) + (steps[0] + _line(load) - 1)
            row = Row(load.source, first)
            found[row.buffer, row.position] = Prefetch(row, columns.extent, far=True)
    return list(found.values())


def _taken_into_tiles(node: For) -> Iterator[tuple[Axis, Load]]:
    """What lies along vectors of what a loop takes into tiles, if it does no more than that: each
    with the variable of its loop over vectors."""
    vectors = [each for each in node.body if isinstance(each, For)]
    if node.kind is not LoopKind.SERIAL or len(vectors) < len(node.body):
        return
    if all(_is_of_tile(each) for each in vectors):
        for inner in vectors:
            values = [value for statement in inner.body for value in values_of(statement)]
            loads = [each for value in values for each in walk(value) if isinstance(each, Load)]
            for load in loads:
                if not load.data and is_along(load.indices[0], inner.variable):
                    yield inner.variable, load


def _is_of_tile(node: For) -> bool:
    stores = [each for each in node.body if isinstance(each, Store)]
    return any(store.buffer.scope is Scope.VECTORS for store in stores)


def _of_later_rows(node: For, machine: Machine) -> list[Prefetch]:
    """What a step of a loop that copies short pieces of rows asks for."""
    axes, load = _copied(node)
    if load is None or load.data:
        return []
    place, extent = load.indices[0], 1
    for axis in reversed(axes):  # side by side, in panels or not
        if place.coefficient(axis) != extent:
            return []
        extent, place = extent * axis.extent, _at_start(place, axis)
    length = place.coefficient(node.variable)
    if extent * load.dtype.itemsize > LONGEST_PIECE or not _is_apart(load, length, machine):
        return []
    row = Row(load.source, place + ROWS_AHEAD * length)
    return [Prefetch(row, extent + _line(load) - 1, far=True)]


def _copied(node: For) -> tuple[list[Axis], Load | None]:
    """The variables of the loops inside one, and what these copy, if that is all they do."""
    axes, body = [], node.body
    while len(body) == 1 and isinstance(body[0], For):
        axes.append(body[0].variable)
        body = body[0].body
    store = body[0]
    if len(body) > 1 or not isinstance(store, Store) or not isinstance(store.value, Load):
        return axes, None
    whole = axes and is_along(store.position, axes[-1])  # else it is a transpose
    return axes, store.value if whole else None


def _is_apart(load: Load, length: int, machine: Machine) -> bool:
    """Whether rows of so many elements are in memory, and long."""
    return length * load.dtype.itemsize > APART and comes_from_far(load.source, machine)


def _at_start(place: Affine, axis: Axis) -> Affine:
    return place.substitute({axis: affine(axis.start)})


def _line(load: Load) -> int:
    """The elements of a line of memory."""
    return LINE_BYTES // load.dtype.itemsize
