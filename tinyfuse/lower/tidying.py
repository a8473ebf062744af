"""Statements of a kernel that is made of several, as one would write them who knows them all.

Each kernel that becomes part of another one has named, stored and declared what it needed by
itself. Here a place that is the number of a turn is written as such, a scalar that one statement
after the other reads is no variable, and others are declared where they get their first value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from tinyfuse.dtypes import BOOL
from tinyfuse.loops.ir import (
    Alloc,
    Block,
    Buffer,
    For,
    If,
    Let,
    Scope,
    Statement,
    Store,
    While,
    children,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import rows_of, values_of, with_inside
from tinyfuse.records import replace
from tinyfuse.stage.expr import Cast, Const, Expr, Index, Load, Op, rewrite, walk
from tinyfuse.stage.index import Affine

Statements = tuple[Statement, ...]

MOST_NODES = 12  # of an expression that becomes part of another one
NEAR = 8  # statements that are between them, at most


def tidied(body: Sequence[Statement]) -> Statements:
    """The statements of a kernel, with the same meaning."""
    return _declared_late(_forwarded(_flat(_placed(tuple(body), {}))))


# -- places


def _placed(body: Statements, known: dict[Expr, Expr]) -> Statements:
    """With the names of indices as what they stand for, and elements where an index says."""
    found: list[Statement] = []
    known = dict(known)
    for statement in body:
        if isinstance(statement, Let) and isinstance(statement.value, Index):
            known[statement.local] = statement.value
        else:
            changed = _with_places(statement, known)
            found.append(with_inside(changed, lambda inner: _placed(inner, known)))
    return tuple(found)


def _with_places(node: Statement, known: dict[Expr, Expr]) -> Statement:
    def new(value: Expr) -> Expr:
        return rewrite(value, lambda leaf: _place(known.get(leaf, leaf)), known=known)

    if isinstance(node, Store):
        offset = None if node.offset is None else new(node.offset)
        changed = replace(node, value=new(node.value), offset=offset)
        if isinstance(offset, Index) and _is_inside(node.buffer, node.position + offset.index):
            return replace(changed, position=node.position + offset.index, offset=None)
        return changed
    if isinstance(node, Let):
        return replace(node, value=new(node.value))
    if isinstance(node, (If, While)):
        return replace(node, test=new(node.test))
    if isinstance(node, For) and node.count is not None:
        return replace(node, count=new(node.count))
    return node


def _place(node: Expr) -> Expr:
    if not isinstance(node, Load) or not node.data or not isinstance(node.data[0], Index):
        return node
    position = node.indices[0] + node.data[0].index
    return Load(node.source, (position,)) if _is_inside(node.source, position) else node


def _is_inside(buffer: Buffer, position: Affine) -> bool:
    low, high = position.interval()
    return low >= 0 and high < buffer.size


# -- blocks


def _flat(body: Statements) -> Statements:
    """Without blocks whose names are no others'."""
    found: list[Statement] = []
    names: set[str] = set()
    for statement in [with_inside(each, _flat) for each in body]:
        inside = statement.body if isinstance(statement, Block) else (statement,)
        own = [*_names(inside)]
        if names.isdisjoint(own) and (len(body) == 1 or not _has_arrays(inside)):
            found += inside
        else:
            found.append(statement)
        names.update(own)
    return tuple(found)


def _names(body: Sequence[Statement]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, Let):
            yield statement.local.name
        elif isinstance(statement, Alloc):
            yield statement.buffer.name


def _has_arrays(body: Sequence[Statement]) -> bool:
    """Whether there are arrays whose memory may be that of others afterwards."""
    return any(isinstance(each, Alloc) and each.buffer.size > 1 for each in body)


# -- scalars that are read once


def _forwarded(body: Statements) -> Statements:
    """With registers that one statement reads once as the value that they were given."""
    return _Forwarding(body).body


class _Forwarding:
    """reads, writes: how often each buffer is there."""

    def __init__(self, body: Statements) -> None:
        self.reads, self.writes = Counter(_reads(body)), Counter(_writes(body))
        self.body = self.without_unread(self.block(body))

    def block(self, body: Statements) -> Statements:
        found = [with_inside(statement, self.block) for statement in body]
        at = 0
        while at < len(found):
            reader = self.reader(found, at)
            if reader is None:
                at += 1
                continue
            store = found.pop(at)
            assert isinstance(store, Store)
            found[reader - 1] = _with_value(found[reader - 1], store)
            self.reads[store.buffer] -= 1
            self.writes[store.buffer] -= 1
            at = max(at - 1, 0)
        return tuple(found)

    def reader(self, body: Sequence[Statement], at: int) -> int | None:
        """The statement that alone reads what one stores."""
        store = body[at]
        if not isinstance(store, Store) or store.buffer.scope is not Scope.REGISTER:
            return None
        found = _reader(body, at, store)
        if found is None or [*_reads((body[found],))].count(store.buffer) > 1:
            return None
        replaced = store.buffer in _writes((body[found],))
        once = self.reads[store.buffer] == self.writes[store.buffer] == 1
        return found if replaced or once else None

    def without_unread(self, body: Statements) -> Statements:
        kept = [each for each in body if not _declares(each) or self.writes[_buffer(each)]]
        return tuple([with_inside(each, self.without_unread) for each in kept])


def _reader(body: Sequence[Statement], at: int, store: Store) -> int | None:
    """The statement that may have the value of a store in place of what it stores."""
    nodes = [*walk(store.value)]
    if len(nodes) > MOST_NODES:
        return None
    needed = {node.source for node in nodes if isinstance(node, Load)}
    for later, statement in enumerate(body[at + 1 : at + 1 + NEAR], at + 1):
        if any(load.source is store.buffer for load in _loads(statement)):
            return later if isinstance(statement, (Let, Store, If)) else None
        inside = {store.buffer, *needed}
        if not inside.isdisjoint(_writes((statement,))) or store.buffer in _reads((statement,)):
            return None
    return None


def _with_value(node: Statement, store: Store) -> Statement:
    def new(value: Expr) -> Expr:
        return rewrite(value, lambda leaf: store.value if _is_of(leaf, store.buffer) else leaf)

    if isinstance(node, If):
        return _by_truth(replace(node, test=new(node.test)))
    if isinstance(node, Let):
        return replace(node, value=new(node.value))
    assert isinstance(node, Store)
    offset = None if node.offset is None else new(node.offset)
    return replace(node, value=new(node.value), offset=offset)


def _is_of(leaf: Expr, buffer: Buffer) -> bool:
    return isinstance(leaf, Load) and leaf.source is buffer


def _by_truth(node: If) -> If:
    """A choice by the number of a bool, by that bool."""
    test = node.test
    if not isinstance(test, Op) or test.name != "less_equal":
        return node
    number, limit = test.operands
    known = isinstance(limit, Const) and limit.value == 0
    if not known or not isinstance(number, Cast) or number.operand.dtype != BOOL:
        return node
    return If(number.operand, node.otherwise, node.then)


def _loads(statement: Statement) -> list[Load]:
    """What a statement itself loads."""
    values = values_of(statement)
    return [node for value in values for node in walk(value) if isinstance(node, Load)]


def _reads(body: Sequence[Statement]) -> Iterator[Buffer]:
    for statement in walk_statements(body):
        yield from [load.source for load in _loads(statement)]
        yield from [rows.buffer for rows in rows_of(statement)]


def _writes(body: Sequence[Statement]) -> Iterator[Buffer]:
    for statement in walk_statements(body):
        yield from written_by(statement)


# -- declarations


def _declared_late(body: Statements) -> Statements:
    """With each register declared where it is first used: by what gives it its value, if that is
    in the same list of statements."""
    return _Declarations(body).block(body, ())


class _Declarations:
    def __init__(self, body: Statements) -> None:
        self.used: dict[Statement, set[Buffer]] = {}  # in each statement
        for statement in reversed([*walk_statements(body)]):
            inside = [self.used[each] for each in children(statement)]
            self.used[statement] = {*_own(statement)}.union(*inside)

    def block(self, body: Statements, waiting: Collection[Buffer]) -> Statements:
        """waiting: registers that are to be declared in it, where it uses them."""
        own = [_buffer(each) for each in body if _declares(each)]
        rest = [each for each in body if not _declares(each)]
        here: dict[Statement, list[Statement]] = {}
        inside: dict[Statement, list[Buffer]] = {}
        for buffer in (*waiting, *own):
            users = [each for each in rest if buffer in self.used[each]]
            if not users:
                continue
            if len(users) == 1 and self.is_for_inside(users[0], buffer):
                inside.setdefault(users[0], []).append(buffer)
            else:
                here.setdefault(users[0], []).append(Alloc(buffer))
        found: list[Statement] = []
        for each in rest:
            found += here.get(each, ())
            found.append(with_inside(each, partial(self.block, waiting=inside.get(each, ()))))
        return tuple(found)

    def is_for_inside(self, node: Statement, buffer: Buffer) -> bool:
        """Whether a register has its value only in parts of a statement."""
        if not children(node) or buffer in _own(node):
            return False
        parts = (node.then, node.otherwise) if isinstance(node, If) else (children(node),)
        return all(self.is_given(part, buffer) for part in parts if self.uses(part, buffer))

    def uses(self, body: Statements, buffer: Buffer) -> bool:
        return any(buffer in self.used[each] for each in body)

    def is_given(self, body: Statements, buffer: Buffer) -> bool:
        """Whether statements give a register a value before they read it."""
        first, *others = [each for each in body if buffer in self.used[each]]
        if isinstance(first, Store):
            return first.buffer is buffer and all(at.source is not buffer for at in _loads(first))
        if not others:
            return self.is_for_inside(first, buffer)
        if isinstance(first, Block):
            return self.is_given(first.body, buffer)
        if isinstance(first, If) and buffer not in _own(first):
            parts = (first.then, first.otherwise)
            return all(self.uses(part, buffer) and self.is_given(part, buffer) for part in parts)
        return False


def _declares(statement: Statement) -> bool:
    return isinstance(statement, Alloc) and statement.buffer.scope is Scope.REGISTER


def _buffer(declaration: Statement) -> Buffer:
    assert isinstance(declaration, Alloc)
    return declaration.buffer


def _own(statement: Statement) -> list[Buffer]:
    """What a statement itself reads and writes."""
    rows = [each.buffer for each in rows_of(statement)]
    return [*[load.source for load in _loads(statement)], *rows, *written_by(statement)]
