"""Sorting of long rows on a device: all elements of a row at once.

In each run of 32 elements one goes where the number of those before it says. Two runs are merged by
a search of each element in the other run, by halves (D. E. Knuth, The Art of Computer Programming,
volume 3, 5.2 and 5.2.4). Elements move as they are, so that equal ones stay in their order, signs
of zeros as well.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    If,
    LoopKind,
    Scope,
    SortRow,
    Statement,
    Store,
)
from tinyfuse.stage.expr import Cast, Const, Expr, Index, IndexTest, Load, Op
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Sort

# Elements of the runs that threads begin with.
RUN = 32
# Elements of a row that a thread sorts by itself: it has registers for no more.
MOST_ALONE = 16


def sorted_row(node: SortRow) -> list[Statement]:
    """The sorting of a row as loops of independent steps, and the buffers that they need."""
    sorting = _Sorting(node)
    made = [sorting.in_runs()]
    width = RUN
    while width < node.extent:
        made.append(sorting.merged(width))
        width *= 2
    return [*sorting.declared(), *made, sorting.result()]


class _Sorting:
    """Items move between two rows of the block: elements, and with them their positions."""

    def __init__(self, node: SortRow) -> None:
        self.node, self.extent, self.turn = node, node.extent, 0
        self.positions = node.sort is Sort.POSITIONS
        dtype = node.row.buffer.dtype
        self.value = Buffer("item", dtype, 1, Scope.REGISTER)
        self.next = Buffer("other_item", dtype, 1, Scope.REGISTER)
        self.before = Buffer("before", INT64, 1, Scope.REGISTER)
        self.tried = Buffer("tried", INT64, 1, Scope.REGISTER)
        self.item, self.other = _value(self.value), _value(self.next)
        self.count, self.more = _value(self.before), _value(self.tried)
        self.rows = [Buffer(f"items_{at}", dtype, self.extent, Scope.STACK) for at in (1, 2)]
        self.places = [Buffer(f"places_{at}", INT64, self.extent, Scope.STACK) for at in (1, 2)]

    def declared(self) -> list[Statement]:
        used = [*self.rows, *(self.places if self.positions else [])]
        return [Alloc(buffer) for buffer in used]

    def in_runs(self) -> Statement:
        """How many elements of its run come before each one."""
        element, other = Axis("element", self.extent), Axis("other", min(RUN, self.extent))
        first, row = affine(element) // RUN * RUN, self.node.row
        its = Load(row.buffer, (row.position + first + other,))
        is_before = self.is_before(its, IndexTest(first + other - element, None, 0))
        count: Statement = _set(self.before, Op("add", (self.count, Cast(is_before, INT64)), INT64))
        if self.extent % RUN:
            count = If(IndexTest(first + other, None, self.extent), (count,), ())
        search = For(other, LoopKind.SERIAL, (count,))
        item = Load(row.buffer, (row.position + element,))
        return self.moved(element, item, Index(affine(element)), [search], first)

    def merged(self, width: int) -> Statement:
        """Runs of so many elements two by two: those of one are searched in the other."""
        element, step = Axis("element", self.extent), Axis("step", width.bit_length())
        pair, within = affine(element) // (2 * width) * (2 * width), affine(element) % width
        second = affine(element) // width % 2  # whether it is of the second run of its pair
        first = pair + width - second * width  # of the other run
        source, here = self.rows[self.turn], (affine(element),)
        item, place = Load(source, here), Load(self.places[self.turn], here)
        its = Load(source, (first - 1,), (self.more,))
        is_before = self.is_before(self.other, IndexTest(second, 1, None))
        count = If(is_before, (_set(self.before, self.more),), ())
        search: tuple[Statement, ...] = (_set(self.next, its), count)
        most = Op("less_equal", (self.more, Const(np.int64(width))), BOOL)
        if self.extent % (2 * width):
            last = Op("add", (Index(first), self.more), INT64)
            there = Op("less_equal", (last, Const(np.int64(self.extent))), BOOL)
            most = Op("logical_and", (most, there), BOOL)
        half = Op("right_shift", (Const(np.int64(width)), Index(affine(step))), INT64)
        more = _set(self.tried, Op("add", (self.count, half), INT64))
        made = [Alloc(self.tried), Alloc(self.next)]
        loop = For(step, LoopKind.SERIAL, (more, If(most, search, ())))
        self.turn = 1 - self.turn
        return self.moved(element, item, place, [*made, loop], pair + within)

    def result(self) -> Statement:
        """What is asked for, where it is wanted."""
        element, to = Axis("element", self.extent), self.node.to
        rows = self.places if self.positions else self.rows
        kept = Load(rows[self.turn], (affine(element),))
        store = Store(to.buffer, to.position + element, kept)
        return For(element, LoopKind.SERIAL, (store,))

    def is_before(self, its: Expr, first: Expr) -> Expr:
        """Whether another value comes before the item: also an equal one, if it is the first."""
        return Op(
            "select", (first, _is_not(_is_less(self.item, its)), _is_less(its, self.item)), BOOL
        )

    def moved(
        self, element: Axis, item: Expr, place: Expr, search: list[Statement], first: Affine
    ) -> Statement:
        """Each item where those before it say, counted from a place on. No two go to one place."""
        stores = [Store(self.rows[self.turn], first, self.item, self.count)]
        if self.positions:
            stores.append(Store(self.places[self.turn], first, place, self.count))
        zero = _set(self.before, Const(np.int64(0)))
        declared = (Alloc(self.value), _set(self.value, item), Alloc(self.before), zero)
        return For(element, LoopKind.PARALLEL, (*declared, *search, *stores))


def _set(register: Buffer, value: Expr) -> Store:
    return Store(register, Affine(), value)


def _value(register: Buffer) -> Load:
    return Load(register, (Affine(),))


def _is_less(one: Expr, other: Expr) -> Expr:
    """Whether one value is sorted before another: NaN comes last."""
    less = Op("less", (one, other), BOOL)
    if one.dtype.kind != "f":
        return less
    is_number, is_nan = Op("equal", (one, one), BOOL), Op("not_equal", (other, other), BOOL)
    return Op("logical_or", (less, Op("logical_and", (is_number, is_nan), BOOL)), BOOL)


def _is_not(value: Expr) -> Expr:
    return Op("logical_not", (value,), BOOL)
