"""Sums over pairs of rows, as matrix products are, in tiles of the result.

A block computes a tile: of what its sums read along the rows of the tile, and of what they read
along its columns, it copies a few steps at a time to shared memory, and each thread takes several
rows and columns, so that it loads less than it computes. Each sum stays one chain in its order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    If,
    LoopKind,
    Scope,
    Statement,
    Store,
)
from tinyfuse.loops.rewrite import substitute_axes, with_buffers
from tinyfuse.lower.device_nests import Arranged, nested
from tinyfuse.lower.device_registers import OTHERS, WORD
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import (
    Const,
    Expr,
    IndexTest,
    Load,
    axes_of,
    rewrite,
    substitute,
    walk,
)
from tinyfuse.stage.index import Affine, Axis, affine, flat_index

SIDE = 16  # threads of a block along rows, and along columns
BANKS = 32  # of shared memory, each of 4 bytes
# By the least extent of rows and columns: of how many of both each thread has, and steps at a time.
SHAPES = ((128, 8, 8), (32, 4, 16))
Shape = tuple[int, int, int]


@dataclass(frozen=True, eq=False, slots=True)
class Tile:
    """around: loops that each block is at one step of. rows, columns: those a tile is cut from.
    each: rows, and columns, of a thread. steps: of the sums at a time. outer: loops of the sums
    around the innermost one, `along`. before, after: what is done for each element, besides."""

    around: tuple[For, ...]
    rows: Axis
    columns: Axis
    each: int
    steps: int
    outer: tuple[For, ...]
    along: Axis
    sums: tuple[Store, ...]
    accumulators: tuple[Buffer, ...]
    before: tuple[Store, ...]
    after: tuple[Statement, ...]

    @property
    def side(self) -> int:
        return SIDE * self.each

    @property
    def registers(self) -> int:
        """Of a thread, roughly: its sums, and what one step of them needs."""
        sums = sum([_words(buffer) for buffer in self.accumulators]) * self.each**2
        parts = dict.fromkeys(part for each in self.sums for part in _staged(each.value, self))
        return sums + sum(map(_words, parts)) * self.each + OTHERS


def tile_of(nest: Arranged, room: int, shapes: Sequence[Shape] = SHAPES) -> Tile | None:
    """How to tile what a nest computes for each step; None where it is no such sum, or where no
    shape has room in so many registers."""
    loops = [each for each in nest.body if isinstance(each, For)]
    if len(loops) != 1 or nest.serial or len(nest.shared) < 2:
        return None
    chain, at = [loops[0]], nest.body.index(loops[0])
    while len(chain[-1].body) == 1 and isinstance(inner := chain[-1].body[0], For):
        chain.append(inner)
    if any(each.count is not None for each in chain):
        return None
    chain = _flattened(chain)
    sums, start = _stores(chain[-1].body), _stores(nest.body[:at])
    if sums is None or start is None:
        return None
    registers = [each.buffer for each in sums]
    made = {each.buffer for each in nest.body if isinstance(each, Alloc)}
    alone = all(buffer.scope is Scope.REGISTER for buffer in registers)
    if not alone or len({*registers}) < len(registers) or {*registers} != made:
        return None
    found = Tile(
        around=(),
        rows=nest.shared[-2].variable,
        columns=nest.shared[-1].variable,
        each=0,
        steps=0,
        outer=tuple(chain[:-1]),
        along=chain[-1].variable,
        sums=sums,
        accumulators=tuple(registers),
        before=start,
        after=tuple(nest.body[at + 1 :]),
    )
    placed = [_placed(found, nest, *pair, room, shapes) for pair in _pairs(nest)]
    return next(filter(None, placed), None)


def _flattened(chain: list[For]) -> list[For]:
    """Loops right inside each other with a longer innermost one, where that is short: over the
    steps of several of them, in their order."""
    while len(chain) > 1 and chain[-1].variable.extent < SHAPES[-1][2]:
        *others, outer, inner = chain
        if outer.variable.start or inner.variable.start:
            return chain
        first, second = outer.variable, inner.variable
        both = Axis(f"{first.name}_{second.name}", first.extent * second.extent)
        step = affine(both)
        values = {first: step // second.extent, second: step % second.extent}
        chain = [*others, replace(inner, variable=both, body=substitute_axes(inner.body, values))]
    return chain


def _stores(body: Sequence[Statement]) -> tuple[Store, ...] | None:
    """Statements that only store, besides those that make buffers."""
    found = [each for each in body if isinstance(each, Store)]
    others = [each for each in body if not isinstance(each, (Store, Alloc))]
    return None if others else tuple(found)


def _pairs(nest: Arranged) -> list[tuple[For, For]]:
    """Loops over rows and columns, the last of the nest first."""
    return [
        (rows, columns)
        for columns, rows in product(reversed(nest.shared), repeat=2)
        if nest.shared.index(rows) < nest.shared.index(columns)
    ]


def _placed(
    tile: Tile, nest: Arranged, rows: For, columns: For, room: int, shapes: Sequence[Shape]
) -> Tile | None:
    """With rows and columns, in the first shape that they and the registers have room for."""
    axes = rows.variable, columns.variable
    if tile.along.start or axes[0].start or axes[1].start:
        return None
    around = tuple([loop for loop in nest.shared if loop not in (rows, columns)])
    found = replace(tile, around=around, rows=axes[0], columns=axes[1])
    for least, each, steps in shapes:
        found = replace(found, each=each, steps=steps)
        fits = min(axis.extent for axis in axes) >= least and tile.along.extent >= steps
        if fits and found.registers <= room:
            return found if _is_pair(found) else None
    return None


def _is_pair(found: Tile) -> bool:
    """Whether what is summed is loaded along rows and along columns, and never along both."""
    sides = [_depends(part, found) for sum_ in found.sums for part in _staged(sum_.value, found)]
    both = (True, False) in sides and (False, True) in sides
    unstaged = any(
        isinstance(node, Load) and node.source not in found.accumulators and node not in inside
        for sum_ in found.sums
        for inside in [_inside(_staged(sum_.value, found))]
        for node in walk(sum_.value)
    )
    return both and not unstaged


def _inside(parts: Sequence[Expr]) -> set[Expr]:
    return {node for part in parts for node in walk(part)}


def _depends(part: Expr, tile: Tile) -> tuple[bool, bool]:
    """Whether an expression depends on the rows, and on the columns."""
    axes = {axis for node in walk(part) for axis in axes_of(node)}
    return tile.rows in axes, tile.columns in axes


def _staged(root: Expr, tile: Tile) -> list[Expr]:
    """The largest parts of what is summed that depend on rows or columns alone, not on both, and
    that something is loaded for."""
    found: list[Expr] = []
    pending = [root]
    while pending:
        node = pending.pop()
        loads = [each for each in walk(node) if isinstance(each, Load)]
        own = any(load.source in tile.accumulators for load in loads)
        if loads and not own and _depends(node, tile) != (True, True):
            found.append(node)
        else:
            pending += reversed(node.parts)
    return list(dict.fromkeys(found))


def _words(value: Buffer | Expr) -> int:
    return max(1, value.dtype.itemsize // WORD)


# --- the tile as loops ----------------------------------------------------------------------------


Elements = tuple[list[Axis], list[Axis], Affine, Affine, Affine]


class TileLowering:
    """The statements of one tile, for 256 threads."""

    def __init__(self, tile: Tile) -> None:
        self.tile = tile
        side = tile.side
        self.row_block, self.column_block = (
            Axis(f"{axis.name}_block", -(-axis.extent // side))
            for axis in (tile.rows, tile.columns)
        )
        size = side * side
        self.locals = {
            buffer: replace(buffer, size=size, scope=Scope.LOCAL) for buffer in tile.accumulators
        }
        self.threads, self.unrolled_axes, self.row, self.column, self.own = (
            self.elements_of_thread()
        )
        self.places: dict[Axis, Affine] = {
            tile.rows: affine(self.row_block) * side + self.row,
            tile.columns: affine(self.column_block) * side + self.column,
        }

    def elements_of_thread(self) -> Elements:
        """(axes of the threads, axes of the elements of each, the row and the column in the tile,
        the place among all accumulators)."""
        down, across = Axis("ty", SIDE), Axis("tx", SIDE)
        row, column = Axis("row", self.tile.each), Axis("column", self.tile.each)
        own = flat_index((down, across, row, column), (SIDE, SIDE, row.extent, column.extent))
        places = affine(row) * SIDE + down, affine(column) * SIDE + across
        return [down, across], [row, column], *places, own

    @property
    def outer(self) -> tuple[For, ...]:
        """The loops that blocks share."""
        axes = (self.row_block, self.column_block)
        return (*self.tile.around, *[For(axis, LoopKind.BLOCKS, ()) for axis in axes])

    def statements(self) -> tuple[Statement, ...]:
        tile, whole = self.tile, self.tile.along.extent // self.tile.steps
        declared = [Alloc(buffer) for buffer in self.locals.values()]
        parts = list(dict.fromkeys(p for each in tile.sums for p in _staged(each.value, tile)))
        shared = {part: self.memory(number, part) for number, part in enumerate(parts)}
        declared += [Alloc(buffer) for buffer in shared.values()]
        group = Axis(f"{tile.along.name}_outer", whole)
        inside = self.steps(shared, affine(group) * tile.steps, tile.steps)
        body: tuple[Statement, ...] = (For(group, LoopKind.SERIAL, inside),)
        rest = tile.along.extent % tile.steps
        if rest:
            body += self.steps(shared, affine(whole * tile.steps), rest)
        if tile.outer:
            body = (nested(tile.outer, LoopKind.SERIAL, body),)
        start, end = self.elements(tile.before), self.elements(self.guarded(tile.after))
        return (*declared, *([start] if tile.before else []), *body, end)

    def memory(self, number: int, part: Expr) -> Buffer:
        return Buffer(
            f"tile_{number}", part.dtype, self.tile.steps * self.length(part), Scope.SHARED
        )

    def length(self, part: Expr) -> int:
        """Elements from one step to the next in shared memory: padded where neighbouring threads
        store different steps, so that these lie in different banks."""
        return self.tile.side + (BANKS // self.tile.steps if self.by_steps(part) else 0)

    def by_steps(self, part: Expr) -> bool:
        """Whether what is loaded lies along the steps in memory, and not along rows or columns."""
        loads = [node for node in walk(part) if isinstance(node, Load)]
        return 1 in [abs(load.indices[0].coefficient(self.tile.along)) for load in loads]

    def at(self, part: Expr, step: Affine, place: Affine) -> Affine:
        """Where in shared memory a part is."""
        return step * self.length(part) + place

    def steps(
        self, shared: Mapping[Expr, Buffer], first: Affine, count: int
    ) -> tuple[Statement, ...]:
        """Copy what some steps of the sums read, then do them."""
        copies = [self.copied(part, buffer, first, count) for part, buffer in shared.items()]
        step = Axis(self.tile.along.name, count)
        return (*copies, self.elements((self.summed(shared, step),), bare=True))

    def summed(self, shared: Mapping[Expr, Buffer], step: Axis) -> Statement:
        """The steps of the sums, of what is in shared memory, for each element of a thread."""
        known: dict[Expr, Expr] = {}
        for part, buffer in shared.items():
            place = self.column if _depends(part, self.tile)[1] else self.row
            known[part] = Load(buffer, (self.at(part, affine(step), place),))
        sums = [
            replace(each, value=rewrite(each.value, lambda leaf: leaf, None, known))
            for each in self.tile.sums
        ]
        return For(step, LoopKind.SERIAL, self.unrolled(tuple(sums)))

    def copied(self, part: Expr, buffer: Buffer, first: Affine, count: int) -> Statement:
        tile = self.tile
        columns = _depends(part, tile)[1]
        axis, block = (tile.columns, self.column_block) if columns else (tile.rows, self.row_block)
        step, place = Axis("step", count), Axis("place", tile.side)
        where = affine(block) * tile.side + place
        values = {axis: where, tile.along: first + step}
        store = Store(buffer, self.at(part, affine(step), affine(place)), substitute(part, values))
        body: tuple[Statement, ...] = (store,)
        if axis.extent % tile.side:
            zero = Const(part.dtype.type(0))
            test = IndexTest(where, None, axis.extent)
            body = (If(test, body, (replace(store, value=zero),)),)
        order = (place, step) if self.by_steps(part) else (step, place)
        return nested_over(order, LoopKind.THREADS, body)

    def guarded(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """What is done for the elements that there are."""
        made = tuple(body)
        for axis in (self.tile.columns, self.tile.rows):
            if axis.extent % self.tile.side:
                made = (If(IndexTest(self.places[axis], None, axis.extent), made, ()),)
        return made

    def unrolled(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return (nested_over(self.unrolled_axes, LoopKind.UNROLL, body),)

    def elements(self, body: Sequence[Statement], bare: bool = False) -> Statement:
        """Statements by all threads, for each of their elements. bare: which say so themselves."""
        inner = tuple(body) if bare else self.unrolled(tuple(body))
        inner = substitute_axes(inner, self.places)
        moved = dict.fromkeys(self.locals, lambda _: self.own)
        inner = with_buffers(inner, self.locals, moved=moved)
        return nested_over(self.threads, LoopKind.THREADS, inner)


def nested_over(axes: Sequence[Axis], kind: LoopKind, body: tuple[Statement, ...]) -> Statement:
    """Statements in loops of one kind over axes, the outermost first."""
    for axis in reversed(axes):
        body = (For(axis, kind, body),)
    return body[0]
