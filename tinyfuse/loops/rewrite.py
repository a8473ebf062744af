"""Copies of statements with their indices or values replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from tinyfuse.loops.ir import (
    Alloc,
    Block,
    Buffer,
    Combine,
    Copy,
    For,
    HalveRow,
    If,
    Let,
    Local,
    Prefetch,
    Row,
    Rows,
    SortRow,
    Statement,
    Store,
    Sync,
    Transpose,
    While,
    walk_statements,
)
from tinyfuse.records import replace
from tinyfuse.stage.expr import Expr, Index, IndexTest, Load, rewrite, substitute, walk
from tinyfuse.stage.index import Affine, Axis

Place = TypeVar("Place", Row, Rows)


def substitute_axes(
    statements: Sequence[Statement], values: Mapping[Axis, Affine]
) -> tuple[Statement, ...]:
    """A copy with loop variables replaced in all indices."""
    return tuple(_substituted(statement, values) for statement in statements)


def _substituted(node: Statement, values: Mapping[Axis, Affine]) -> Statement:
    if isinstance(node, For):
        count = None if node.count is None else substitute(node.count, values)
        return For(node.variable, node.kind, substitute_axes(node.body, values), count)
    if isinstance(node, While):
        return While(substitute(node.test, values), substitute_axes(node.body, values))
    if isinstance(node, Block):
        return Block(substitute_axes(node.body, values))
    if isinstance(node, If):
        test = substitute(node.test, values)
        return If(test, substitute_axes(node.then, values), substitute_axes(node.otherwise, values))
    if isinstance(node, Let):
        return Let(node.local, substitute(node.value, values))
    if isinstance(node, Store):
        offset = None if node.offset is None else substitute(node.offset, values)
        position = node.position.substitute(values)
        return Store(node.buffer, position, substitute(node.value, values), offset, node.streamed)
    if isinstance(node, SortRow):
        row, to, work = (_moved(row, values) for row in (node.row, node.to, node.work))
        return SortRow(node.sort, row, to, work, node.extent, node.block)
    if isinstance(node, (HalveRow, Prefetch)):
        return replace(node, row=_moved(node.row, values))
    if isinstance(node, Copy):
        return Copy(_moved(node.row, values), _moved(node.to, values), node.extent)
    if isinstance(node, Transpose):
        blocks = (_moved(node.block, values), _moved(node.to, values))
        return Transpose(*blocks, node.rows, node.columns, node.lanes)
    return node


def _moved(rows: Place, values: Mapping[Axis, Affine]) -> Place:
    return replace(rows, position=rows.position.substitute(values))


def with_values(
    statements: Sequence[Statement], known: Mapping[Expr, Expr]
) -> tuple[Statement, ...]:
    """A copy of scalars and stores with some expressions replaced by others."""
    return tuple([_with_values(statement, known) for statement in statements])


def _with_values(node: Statement, known: Mapping[Expr, Expr]) -> Statement:
    def new(value: Expr) -> Expr:
        return rewrite(value, lambda leaf: leaf, known=known)

    if isinstance(node, Let):
        return Let(node.local, new(node.value))
    assert isinstance(node, Store)
    offset = None if node.offset is None else new(node.offset)
    return Store(node.buffer, node.position, new(node.value), offset, node.streamed)


def with_inside(
    node: Statement, change: Callable[[tuple[Statement, ...]], tuple[Statement, ...]]
) -> Statement:
    """A statement with all lists of statements inside it changed; itself if none is another one."""
    if isinstance(node, If):
        then, otherwise = change(node.then), change(node.otherwise)
        same = then == node.then and otherwise == node.otherwise
        return node if same else If(node.test, then, otherwise)
    if not isinstance(node, (For, While, Block)):
        return node
    body = change(node.body)
    if body == node.body:
        return node
    return replace(node, body=body)


def with_buffers(
    statements: Sequence[Statement],
    new: Mapping[Buffer, Buffer],
    values: Mapping[Buffer | Local, Expr] = {},
    moved: Mapping[Buffer, Callable[[Affine], Affine]] = {},
) -> tuple[Statement, ...]:
    """A copy that uses other buffers; values: what some are, in place of loads and names. moved:
    for some of the old buffers where in the new one the element of a place is."""

    return _OtherBuffers(new, values, moved).block(statements)


class _OtherBuffers:
    """Copies statements with other buffers: see `with_buffers`."""

    def __init__(
        self,
        new: Mapping[Buffer, Buffer],
        values: Mapping[Buffer | Local, Expr],
        moved: Mapping[Buffer, Callable[[Affine], Affine]],
    ):
        self.new, self.values, self.moved = new, values, moved

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(map(self.copied, body))

    def nested(self, node: For | While | Block | If) -> Statement:
        if isinstance(node, For):
            count = None if node.count is None else self.value(node.count)
            return For(node.variable, node.kind, self.block(node.body), count)
        if isinstance(node, While):
            return While(self.value(node.test), self.block(node.body))
        if isinstance(node, Block):
            return Block(self.block(node.body))
        return If(self.value(node.test), self.block(node.then), self.block(node.otherwise))

    def copied(self, node: Statement) -> Statement:
        if isinstance(node, (For, While, Block, If)):
            return self.nested(node)
        if isinstance(node, Let):
            return Let(node.local, self.value(node.value))
        if isinstance(node, Sync):
            return node
        if isinstance(node, (Alloc, Combine)):
            return replace(node, buffer=self.buffer(node.buffer))
        if isinstance(node, Store):
            offset = None if node.offset is None else self.value(node.offset)
            position = self.place(node.buffer, node.position)
            value = self.value(node.value)
            return Store(self.buffer(node.buffer), position, value, offset, node.streamed)
        if isinstance(node, SortRow):
            rows = (self.there(node.row), self.there(node.to), self.there(node.work))
            return SortRow(node.sort, *rows, node.extent, node.block)
        if isinstance(node, Copy):
            return Copy(self.there(node.row), self.there(node.to), node.extent)
        if isinstance(node, Transpose):
            places = (self.there(node.block), self.there(node.to))
            return Transpose(*places, node.rows, node.columns, node.lanes)
        return replace(node, row=self.there(node.row))

    def buffer(self, old: Buffer) -> Buffer:
        return self.new.get(old, old)

    def place(self, buffer: Buffer, position: Affine) -> Affine:
        return self.moved[buffer](position) if buffer in self.moved else position

    def there(self, rows: Place) -> Place:
        position = self.place(rows.buffer, rows.position)
        return replace(rows, buffer=self.buffer(rows.buffer), position=position)

    def value(self, root: Expr) -> Expr:
        return rewrite(root, self.leaf)

    def leaf(self, node: Expr) -> Expr:
        if isinstance(node, Local):
            return self.values.get(node, node)
        if not isinstance(node, Load):
            return node
        old = node.source
        if old in self.values:
            return self.values[old]
        buffer = self.buffer(old)
        if buffer is old and old not in self.moved:
            return node
        return Load(buffer, tuple([self.place(old, at) for at in node.indices]), node.data)


def rows_of(statement: Statement) -> tuple[Row | Rows, ...]:
    """The rows of buffers that a statement takes as wholes, in the order of its fields."""
    if isinstance(statement, SortRow):
        return (statement.row, statement.to, statement.work)
    if isinstance(statement, Transpose):
        return (statement.block, statement.to)
    if isinstance(statement, Copy):
        return (statement.row, statement.to)
    return (statement.row,) if isinstance(statement, (HalveRow, Prefetch)) else ()


def values_of(statement: Statement) -> tuple[Expr, ...]:
    """The scalar expressions directly in a statement."""
    if isinstance(statement, Store) and statement.offset is not None:
        return (statement.offset, statement.value)
    if isinstance(statement, (Let, Store)):
        return (statement.value,)
    if isinstance(statement, For):
        return () if statement.count is None else (statement.count,)
    return (statement.test,) if isinstance(statement, (If, While)) else ()


def indices_of(statements: Sequence[Statement]) -> Iterator[Affine]:
    """Every index in the statements: addresses, tests, indices used as values."""
    for statement in walk_statements(statements):
        if isinstance(statement, Store):
            yield statement.position
        yield from (rows.position for rows in rows_of(statement))
        for value in values_of(statement):
            for node in walk(value):
                if isinstance(node, Load):
                    yield from node.indices
                elif isinstance(node, (Index, IndexTest)):
                    yield node.index
