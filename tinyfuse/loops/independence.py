"""Which loops of a nest may run their steps in any order, or all at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tinyfuse.loops.cost import Steps
from tinyfuse.loops.dependence import Access, meet, with_loops
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    Copy,
    For,
    HalveRow,
    LoopKind,
    Row,
    Rows,
    SortRow,
    Statement,
    Store,
    Transpose,
    While,
    walk_statements,
)
from tinyfuse.loops.rewrite import values_of
from tinyfuse.loops.sorting import work_type
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine, Axis, affine

# By buffer, what is stored and what else is done there.
Accesses = Mapping[Buffer, tuple[list[Access], list[Access]]]


def span(axis: Axis) -> tuple[int, int]:
    """The values of a loop variable, from one until before another."""
    return axis.start, axis.start + axis.extent


class Nest:
    """What the steps of a loop, and those of the loops inside it, store and load.

    around: the variables of loops around it, which are the same for all steps that are compared.
    """

    def __init__(self, loop: For, around: Collection[Axis]) -> None:
        self.loop, self.around = loop, {axis.name for axis in around}
        self.unknown = any(isinstance(each, While) for each in walk_statements((loop,)))
        self.accesses = accesses((loop,), {axis: span(axis) for axis in around})

    def is_independent(self, inner: For, same: Collection[For]) -> bool:
        """Whether no two steps of a loop of the nest touch one element that one of them stores.

        same: other loops of the nest that are at one step; all the rest may be at any.
        """
        if inner.kind is LoopKind.PARALLEL:
            return True
        if self.unknown:
            return False
        fixed = {*self.around, *(loop.variable.name for loop in same)}
        moved, own = inner.variable.name, _allocated(inner)
        for buffer, (writes, others) in self.accesses.items():
            if buffer in own or not writes:
                continue
            for write in writes:
                if inner not in write.loops:
                    continue
                for other in (*writes, *others):
                    if inner in other.loops and self._may_meet(write, other, fixed, moved):
                        return False
        return True

    def _may_meet(self, write: Access, other: Access, fixed: set[str], moved: str) -> bool:
        if write.place is None or other.place is None:
            return True
        return any(meet(write, other, fixed, moved, sign) for sign in (1, -1))


def _allocated(loop: For) -> set[Buffer]:
    return {each.buffer for each in walk_statements(loop.body) if isinstance(each, Alloc)}


def accesses(statements: Sequence[Statement], steps: Steps) -> Accesses:
    """All loads and stores, by buffer. steps: the values of the loop variables around."""
    found: dict[Buffer, tuple[list[Access], list[Access]]] = {}
    for time, (statement, loops, spans) in enumerate(with_loops(statements, (), steps)):
        named = {axis.name: values for axis, values in spans.items()}
        for buffer, place, extra, stored in _touched(statement):
            access = Access(time, loops, {**named, **extra}, place)
            found.setdefault(buffer, ([], []))[0 if stored else 1].append(access)
    return found


Extra = dict[str, tuple[int, int]]
Touched = tuple[Buffer, Affine | None, Extra, bool]


def _touched(statement: Statement) -> Iterator[Touched]:
    """Each buffer that one statement touches, where, and whether it stores there."""
    for value in values_of(statement):
        for node in walk(value):
            if isinstance(node, Load):
                yield node.source, None if node.data else node.indices[0], {}, False
    if isinstance(statement, Store):
        place = statement.position if statement.offset is None else None
        yield statement.buffer, place, {}, True
    elif isinstance(statement, HalveRow):
        yield _row(statement.row, statement.extent, True)
    elif isinstance(statement, Copy):
        yield _row(statement.row, statement.extent, False)
        yield _row(statement.to, statement.extent, True)
    elif isinstance(statement, SortRow):
        yield _row(statement.row, statement.extent, False)
        yield _row(statement.to, statement.extent, True)
        dtype = statement.row.buffer.dtype
        _, count = work_type(statement.sort, dtype, statement.extent, statement.block)
        yield _row(statement.work, count, True)
    elif isinstance(statement, Transpose):
        yield _rows(statement.block, statement.columns, statement.rows, False)
        yield _rows(statement.to, statement.rows, statement.columns, True)


def _row(row: Row, extent: int, stored: bool) -> Touched:
    within = Axis("(within)", extent)
    return row.buffer, row.position + within, {within.name: span(within)}, stored


def _rows(rows: Rows, count: int, length: int, stored: bool) -> Touched:
    down, along = Axis("(down)", count), Axis("(along)", length)
    place = rows.position + affine(down) * rows.step + along
    return rows.buffer, place, {axis.name: span(axis) for axis in (down, along)}, stored
