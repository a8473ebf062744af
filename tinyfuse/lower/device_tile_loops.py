"""Tiles of the results of sums as loops: what the threads of a block copy, sum and store.

What the next steps read is loaded into registers while these are done. Rows, and columns where
what is stored allows it, are taken 16 bytes at a time, side by side: one load of shared memory in
place of four.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    Copy,
    For,
    If,
    LoopKind,
    Row,
    Scope,
    Statement,
    Store,
)
from tinyfuse.loops.rewrite import substitute_axes, with_buffers
from tinyfuse.lower.device_nests import Arranged, nested
from tinyfuse.lower.device_tiles import SIDE, THREADS, Tile, depends
from tinyfuse.lower.device_vectors import DTYPES, VECTOR_BYTES, vectors
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import Const, Expr, IndexTest, Load, rewrite, substitute, walk
from tinyfuse.stage.index import Affine, Axis, affine, flat_index

BANKS = 32  # of shared memory, each of 4 bytes
SECTOR = 8  # elements of 4 bytes that are loaded at once at least

Elements = tuple[list[Axis], list[Axis], Affine, Affine, Affine]


@dataclass(frozen=True, eq=False, slots=True)
class Last:
    """What is done with several sums whose columns lie side by side. group: their number among
    such; lane: a column among them, a loop in the body."""

    group: Axis
    lane: Axis
    body: tuple[Statement, ...]


def _last(tile: Tile) -> Last | None:
    """None where what is done with the sums does not load and store what lies side by side."""
    found = vectors(Arranged((For(tile.columns, LoopKind.SERIAL, ()),), (), 1, tile.after), ())
    if found is None:
        return None
    nest, body = found
    (lane,) = [each.variable for each in body if isinstance(each, For)]
    return Last(nest.shared[-1].variable, lane, body)


def _at_once(part: Expr, row: Row, lane: Axis) -> tuple[Expr, list[Statement]]:
    """(an element of those side by side in shared memory, what loads all of them at once)."""
    width = lane.extent
    own = Buffer(f"{row.buffer.name}_{width}", part.dtype, width, Scope.STACK)
    first = replace(row, position=row.position - lane)
    return Load(own, (affine(lane),)), [Alloc(own), Copy(first, Row(own, Affine()), width)]


def _ahead(buffer: Buffer, tile: Tile) -> Buffer:
    """Registers of all threads for what the next steps read."""
    size = tile.steps * tile.side
    return replace(buffer, name=f"next_{buffer.name}", size=size, scope=Scope.LOCAL)


class TileLowering:
    """The statements of one tile, for 256 threads. loads_ahead: whether there are registers for
    what the next steps read, besides the sums."""

    def __init__(self, tile: Tile, loads_ahead: bool) -> None:
        self.tile, self.loads_ahead = tile, loads_ahead
        side = tile.side
        self.row_block, self.column_block = (
            Axis(f"{axis.name}_block", -(-axis.extent // side))
            for axis in (tile.rows, tile.columns)
        )
        size = side * side
        self.locals = {
            buffer: replace(buffer, size=size, scope=Scope.LOCAL) for buffer in tile.accumulators
        }
        self.last, self.wide = self.widths()
        self.lanes: dict[bool, Axis] = {}  # of rows, of columns (True) that lie side by side
        self.threads, self.unrolled_axes, self.row, self.column, self.own = (
            self.elements_of_thread()
        )
        self.places: dict[Axis, Affine] = {
            tile.rows: affine(self.row_block) * side + self.row,
            tile.columns: affine(self.column_block) * side + self.column,
        }

    def widths(self) -> tuple[Last | None, tuple[int, int]]:
        """(how several columns are finished at a time, if they can be; how many rows, and columns,
        of a thread lie side by side)."""
        parts = self.tile.parts
        widths = {VECTOR_BYTES // part.dtype.itemsize for part in parts}
        if len(widths) > 1 or any(part.dtype.name not in DTYPES for part in parts):
            return None, (1, 1)
        width, last = widths.pop(), _last(self.tile)
        return (last, (width, width)) if last and last.lane.extent == width else (None, (width, 1))

    def elements_of_thread(self) -> Elements:
        """(axes of the threads, axes of the elements of each, the row and the column in the tile,
        the place among all accumulators)."""
        down, across = Axis("ty", SIDE), Axis("tx", SIDE)
        rows, row = self.elements_along("row", down, self.wide[0])
        columns, column = self.elements_along("column", across, self.wide[1])
        axes = (down, across, *rows, *columns)
        own = flat_index(axes, [axis.extent for axis in axes])
        return [down, across], [*rows, *columns], row, column, own

    def elements_along(self, name: str, thread: Axis, width: int) -> tuple[list[Axis], Affine]:
        """(axes of a thread's rows or columns, which of the tile's that is)."""
        group, columns = Axis(name, self.tile.each // width), name == "column"
        if width == 1:
            return [group], affine(group) * SIDE + thread
        lane = self.last.lane if columns and self.last else Axis(f"{name}_lane", width)
        self.lanes[columns] = lane
        return [group, lane], (affine(group) * SIDE + thread) * width + lane

    @property
    def outer(self) -> tuple[For, ...]:
        """The loops that blocks share."""
        axes = (self.row_block, self.column_block)
        return (*self.tile.around, *[For(axis, LoopKind.BLOCKS, ()) for axis in axes])

    def statements(self) -> tuple[Statement, ...]:
        tile, whole = self.tile, self.tile.along.extent // self.tile.steps
        shared = {part: self.memory(number, part) for number, part in enumerate(tile.parts)}
        ahead = {part: _ahead(buffer, tile) for part, buffer in shared.items()}
        made = [*self.locals.values(), *shared.values(), *ahead.values()]
        group = Axis(f"{tile.along.name}_outer", whole)
        body: tuple[Statement, ...] = (self.turns(group, shared, ahead),)
        if self.loads_ahead:
            body = (*self.loaded(ahead, Affine()), *body)
        rest = tile.along.extent % tile.steps
        if rest:
            body += self.steps(shared, affine(whole * tile.steps), rest)
        if tile.outer:
            body = (nested(tile.outer, LoopKind.SERIAL, body),)
        start = self.elements(tile.before)
        return (*map(Alloc, made), *([start] if tile.before else []), *body, self.end())

    def turns(
        self, group: Axis, shared: Mapping[Expr, Buffer], ahead: Mapping[Expr, Buffer]
    ) -> Statement:
        """Put what has been loaded where all threads see it, load what comes next, do the steps."""
        here, following = affine(group), affine(group) + 1
        stored = [self.moved(part, ahead[part], shared[part]) for part in shared]
        step = Axis(self.tile.along.name, self.tile.steps)
        summed = self.elements((self.summed(shared, step),), bare=True)
        if not self.loads_ahead:
            loaded = self.loaded(ahead, here * self.tile.steps)
            return For(group, LoopKind.SERIAL, (*loaded, *stored, summed))
        if group.extent > 1:
            test = IndexTest(following, None, group.extent)
            stored.append(If(test, tuple(self.loaded(ahead, following * self.tile.steps)), ()))
        return For(group, LoopKind.SERIAL, (*stored, summed))

    def loaded(self, ahead: Mapping[Expr, Buffer], first: Affine) -> list[Statement]:
        """Load what some steps read into registers."""
        return [self.moved(part, None, buffer, first) for part, buffer in ahead.items()]

    def moved(
        self, part: Expr, source: Buffer | None, target: Buffer, first: Affine | None = None
    ) -> Statement:
        """What some steps read, each thread the same elements: from the device's memory (None) to
        registers, or from these to shared memory."""
        threads, turns, step, place, own = self.shares(part)
        if first is None:
            assert source is not None
            store = Store(target, self.at(part, step, place), Load(source, (own,)))
            body: tuple[Statement, ...] = (store,)
        else:
            body = self.fetched(part, target, own, first + step, place)
        return nested_over(threads, LoopKind.THREADS, (nested_over(turns, LoopKind.UNROLL, body),))

    def shares(self, part: Expr) -> tuple[list[Axis], list[Axis], Affine, Affine, Affine]:
        """(axes of the threads, axes of the elements that each copies, the step and the place of
        an element, its number among those of all threads): neighbours copy what lies side by
        side in memory, and to different banks."""
        steps, side = self.tile.steps, self.tile.side
        lines, length = (side, steps) if self.by_steps(part) else (steps, side)
        across = Axis("tx", min(length, SECTOR) if self.by_steps(part) else length)
        down = Axis("ty", THREADS // across.extent)
        turn, again = Axis("turn", lines // down.extent), Axis("again", length // across.extent)
        turns = [axis for axis in (turn, again) if axis.extent > 1]
        axes = (down, across, *turns)
        own = flat_index(axes, [axis.extent for axis in axes])
        line = flat_index((turn, down), (turn.extent, down.extent))
        element = flat_index((again, across), (again.extent, across.extent))
        step, place = (element, line) if self.by_steps(part) else (line, element)
        return [down, across], turns, step, place, own

    def memory(self, number: int, part: Expr) -> Buffer:
        return Buffer(
            f"tile_{number}", part.dtype, self.tile.steps * self.length(part), Scope.SHARED
        )

    def length(self, part: Expr) -> int:
        """Elements from one step to the next in shared memory: padded where neighbouring threads
        store different steps, so that these lie in different banks."""
        return self.tile.side + (BANKS // SECTOR if self.by_steps(part) else 0)

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
        loads: dict[bool, list[Statement]] = {False: [], True: []}  # of rows, of columns
        for part, buffer in shared.items():
            columns = depends(part, self.tile)[1]
            there = self.at(part, affine(step), self.column if columns else self.row)
            known[part] = Load(buffer, (there,))
            if columns in self.lanes:
                known[part], loaded = _at_once(part, Row(buffer, there), self.lanes[columns])
                loads[columns] += loaded
        sums: tuple[Statement, ...] = tuple(
            replace(each, value=rewrite(each.value, lambda leaf: leaf, None, known))
            for each in self.tile.sums
        )
        if not self.lanes:
            return For(step, LoopKind.SERIAL, self.unrolled(sums))
        row, column = [axis for axis in self.unrolled_axes if axis not in self.lanes.values()]
        inner = nested_over([*self.lanes.values()], LoopKind.UNROLL, sums)
        across = For(column, LoopKind.UNROLL, (*loads[True], inner))
        return nested_over([step, row], LoopKind.UNROLL, (*loads[False], across))

    def copied(self, part: Expr, buffer: Buffer, first: Affine, count: int) -> Statement:
        step, place = Axis("step", count), Axis("place", self.tile.side)
        there = self.at(part, affine(step), affine(place))
        body = self.fetched(part, buffer, there, first + step, affine(place))
        order = (place, step) if self.by_steps(part) else (step, place)
        return nested_over(order, LoopKind.THREADS, body)

    def fetched(
        self, part: Expr, target: Buffer, there: Affine, step: Affine, place: Affine
    ) -> tuple[Statement, ...]:
        """Store one element of what the sums read; 0 beyond the last row or column."""
        tile = self.tile
        columns = depends(part, tile)[1]
        axis, block = (tile.columns, self.column_block) if columns else (tile.rows, self.row_block)
        where = affine(block) * tile.side + place
        store = Store(target, there, substitute(part, {axis: where, tile.along: step}))
        if not axis.extent % tile.side:
            return (store,)
        zero = replace(store, value=Const(part.dtype.type(0)))
        return (If(IndexTest(where, None, axis.extent), (store,), (zero,)),)

    def end(self) -> Statement:
        """What is done with the sums."""
        if self.last is None:
            return self.elements(self.guarded(self.tile.after))
        last = self.last
        first = self.places[self.tile.columns] - last.lane
        body = substitute_axes(last.body, {last.group: first // last.lane.extent})
        body = self.guarded(body, {self.tile.columns: first + (last.lane.extent - 1)})
        axes = [axis for axis in self.unrolled_axes if axis is not last.lane]
        return self.elements((nested_over(axes, LoopKind.UNROLL, body),), bare=True)

    def guarded(
        self, body: Sequence[Statement], others: Mapping[Axis, Affine] | None = None
    ) -> tuple[Statement, ...]:
        """What is done for the elements that there are. others: which have to be, if not those of
        `places`."""
        made, places = tuple(body), {**self.places, **(others or {})}
        for axis in (self.tile.columns, self.tile.rows):
            if axis.extent % self.tile.side:
                made = (If(IndexTest(places[axis], None, axis.extent), made, ()),)
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
