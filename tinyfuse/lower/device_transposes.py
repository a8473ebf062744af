"""What is read across the order in which it is written, by way of tiles in shared memory.

Neighbouring threads store neighbouring elements. Where they would load elements that are far apart,
a block first copies a tile in the order in which it lies in memory; its rows are one element longer
than they need be, so that both rows and columns lie in different banks.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Scope,
    Statement,
    Store,
    written_by,
)
from tinyfuse.loops.rewrite import substitute_axes, values_of, with_values
from tinyfuse.lower.device_nests import Arranged
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import Expr, IndexTest, Load, always_run, substitute
from tinyfuse.stage.index import Affine, Axis, affine

SIDE = 32  # elements of a tile along both axes
ROW = SIDE + 1  # elements of a row of a tile in memory


@dataclass(frozen=True, eq=False, slots=True)
class Transposed:
    """rows: the axis along which what is loaded lies in memory. columns: that of what is stored.
    around: all other loops. loads: what goes through tiles."""

    around: tuple[For, ...]
    rows: Axis
    columns: Axis
    loads: tuple[Load, ...]
    body: tuple[Statement, ...]

    @property
    def blocks(self) -> tuple[Axis, Axis]:
        first, second = (
            Axis(f"{axis.name}_block", -(-axis.extent // SIDE))
            for axis in (self.rows, self.columns)
        )
        return first, second


def transposed(nest: Arranged) -> Transposed | None:
    """What a nest loads across the order in which it stores; None where there is no such thing."""
    if nest.serial or not all(isinstance(each, (Let, Store)) for each in nest.body):
        return None
    stores = [each for each in nest.body if isinstance(each, Store)]
    axes = [loop.variable for loop in nest.shared if loop.variable.extent >= SIDE]
    along = [axis for axis in axes if all(_is_along(each, axis) for each in stores)]
    if len(along) != 1:
        return None
    found = {axis: _across(nest.body, axis, along[0]) for axis in axes if axis is not along[0]}
    rows = next((axis for axis, loads in found.items() if loads), None)
    if rows is None or rows.start or along[0].start:
        return None
    around = tuple([each for each in nest.shared if each.variable not in (rows, along[0])])
    return Transposed(around, rows, along[0], tuple(found[rows]), nest.body)


def _is_along(store: Store, axis: Axis) -> bool:
    return store.offset is None and store.position.coefficient(axis) == 1


def _across(body: Sequence[Statement], rows: Axis, columns: Axis) -> list[Load]:
    """The loads that lie along the rows, and far apart along the columns."""
    written = {buffer for each in body for buffer in written_by(each)}
    loads = [
        node
        for each in body
        for value in values_of(each)
        for node in always_run(value)
        if isinstance(node, Load) and not node.data and node.source not in written
    ]
    return [
        load
        for load in dict.fromkeys(loads)
        if load.source.scope in (Scope.ARGUMENT, Scope.SCRATCH)
        and load.indices[0].coefficient(rows) == 1
        and abs(load.indices[0].coefficient(columns)) >= SIDE
    ]


def lowered(found: Transposed) -> tuple[tuple[For, ...], tuple[Statement, ...]]:
    """(the loops that blocks share, the statements of a block)."""
    first, second = found.blocks
    row, column = Axis("row", SIDE), Axis("column", SIDE)
    values = {
        found.rows: affine(first) * SIDE + row,
        found.columns: affine(second) * SIDE + column,
    }
    place = affine(column) * ROW + row
    tiles: dict[Load, Buffer] = {}
    for number, load in enumerate(found.loads):
        tiles[load] = Buffer(f"tile_{number}", load.dtype, SIDE * ROW, Scope.SHARED)
    copies = [Store(tile, place, substitute(load, values)) for load, tile in tiles.items()]
    known: dict[Expr, Expr] = {load: Load(tile, (place,)) for load, tile in tiles.items()}
    body = substitute_axes(with_values(found.body, known), values)
    loops = (*found.around, *[For(axis, LoopKind.BLOCKS, ()) for axis in (first, second)])
    statements: list[Statement] = [Alloc(tile) for tile in tiles.values()]
    statements.append(_shared((column, row), _guarded(found, values, copies)))
    statements.append(_shared((row, column), _guarded(found, values, body)))
    return loops, tuple(statements)


def _guarded(
    found: Transposed, values: dict[Axis, Affine], body: Sequence[Statement]
) -> tuple[Statement, ...]:
    """Statements for the elements that there are."""
    made = tuple(body)
    for axis in (found.columns, found.rows):
        if axis.extent % SIDE:
            made = (If(IndexTest(values[axis], None, axis.extent), made, ()),)
    return made


def _shared(axes: Sequence[Axis], body: tuple[Statement, ...]) -> Statement:
    for axis in reversed(axes):
        body = (For(axis, LoopKind.THREADS, body),)
    return body[0]
