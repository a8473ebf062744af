"""Buffers of a kernel that live in vector registers: the tiles in which sums accumulate.

C compilers keep a small array in registers in some loop nests and not in others that look alike. So
an array all of whose elements are used vector by vector, at places known beforehand, becomes as
many variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tinyfuse.dtypes import BOOL
from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    Let,
    Local,
    LoopKind,
    Scope,
    Statement,
    Store,
    children,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import substitute_axes, values_of, with_inside
from tinyfuse.loops.vectors import has_vectors, is_along
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.stage.expr import Const, Expr, Load, Op, depends_on, is_guard, rewrite, walk
from tinyfuse.stage.index import Affine, affine

# Registers that hold what is combined with a tile, not the tile itself.
OTHERS = 4
# Steps of a loop over rows of a tile that may be written out.
MOST_ROWS = 32


def with_registers(statements: Sequence[Statement], machine: Machine) -> tuple[Statement, ...]:
    """The statements with every buffer in vector registers that can be."""
    found: dict[Buffer, Buffer] = {}
    for statement in walk_statements(statements):
        if isinstance(statement, Alloc) and _fits(statement.buffer, machine):
            lanes = machine.vector_bytes // statement.buffer.dtype.itemsize
            found[statement.buffer] = replace(statement.buffer, scope=Scope.VECTORS, lanes=lanes)
    if not found:
        return tuple(statements)
    written_out = _written_out(statements, found)
    users = _users(written_out)
    found = {b: tile for b, tile in found.items() if _suits(users, b, {b: tile})}
    return _renamed(_written_out(statements, found), found) if found else tuple(statements)


def require_registers(statements: Sequence[Statement], name: str, machine: Machine) -> None:
    """Raise ScheduleError where buffers of this name are not all in vector registers."""
    allocated = [s.buffer for s in walk_statements(statements) if isinstance(s, Alloc)]
    buffers = [buffer for buffer in allocated if buffer.name == name]
    for buffer in buffers:
        if buffer.scope is Scope.VECTORS:
            continue
        vectors = -(-buffer.nbytes // machine.vector_bytes)
        if vectors > machine.vector_registers - OTHERS:
            reason = (
                f"{vectors} vectors are more than the {machine.vector_registers - OTHERS} that"
                f" {machine.vector_registers} registers hold beside what they are computed from"
            )
        else:
            reason = (
                "not all its elements are used vector by vector, at places known beforehand, in"
                " operations that vectors have"
            )
        raise ScheduleError(f"cache_write({name}, registers): {reason}")
    if not buffers:
        raise ScheduleError(f"cache_write({name}, registers): it is in the program's memory")


def _fits(buffer: Buffer, machine: Machine) -> bool:
    """Whether a buffer is a tile of vectors that the registers hold beside others."""
    if buffer.scope is not Scope.STACK:
        return False
    vectors, rest = divmod(buffer.nbytes, machine.vector_bytes)
    return not rest and 1 < vectors <= machine.vector_registers - OTHERS


# --- rows -----------------------------------------------------------------------------------------


def _written_out(
    statements: Sequence[Statement], tiles: dict[Buffer, Buffer]
) -> tuple[Statement, ...]:
    """The statements with loops over the rows of tiles written out, so that places are known."""
    return tuple([each for statement in statements for each in _rows(statement, tiles)])


def _rows(node: Statement, tiles: dict[Buffer, Buffer]) -> list[Statement]:
    if not isinstance(node, For) or not _goes_through_rows(node, tiles):
        return [with_inside(node, lambda body: _written_out(body, tiles))]
    variable = node.variable
    steps = range(variable.start, variable.start + variable.extent)
    return [
        each
        for step in steps
        for statement in substitute_axes(node.body, {variable: affine(step)})
        for each in _rows(statement, tiles)
    ]


def _goes_through_rows(node: For, tiles: dict[Buffer, Buffer]) -> bool:
    """Whether each step of a loop, with one over vectors alone inside, uses one row of a tile."""
    if len(node.body) > 1 or not isinstance(node.body[0], For):
        return False
    if node.kind is LoopKind.PARALLEL or node.variable.extent > MOST_ROWS:
        return False
    places = [place for buffer, place in _uses(node.body) if buffer in tiles]
    return bool(places) and all(place.depends_on(node.variable) for place in places)


def _uses(statements: Sequence[Statement]) -> Iterator[tuple[Buffer, Affine]]:
    """The elements that statements read and store."""
    for statement in walk_statements(statements):
        if isinstance(statement, Store):
            yield statement.buffer, statement.position
        for value in values_of(statement):
            for node in walk(value):
                if isinstance(node, Load):
                    yield node.source, node.indices[0]


# --- vectors --------------------------------------------------------------------------------------


# For each buffer the loops right around what uses it; None for what is in no loop's body.
Users = dict[Buffer, list[For | None]]


def _users(statements: Sequence[Statement]) -> Users:
    found: Users = {}
    pending: list[tuple[For | None, Sequence[Statement]]] = [(None, statements)]
    while pending:
        loop, body = pending.pop()
        for each in body:
            for buffer in _touched(each):
                found.setdefault(buffer, []).append(loop)
            pending.append((each if isinstance(each, For) else None, children(each)))
    return found


def _suits(users: Users, tile: Buffer, tiles: dict[Buffer, Buffer]) -> bool:
    """Whether a tile is used in loops over vectors alone, in ways that vectors can be."""
    loops = dict.fromkeys(users.get(tile, ()))
    return all(loop is not None and _is_of_vectors(loop, tiles) for loop in loops)


def _touched(statement: Statement) -> set[Buffer]:
    """The buffers that a statement, without those inside it, reads or writes."""
    loads = (node for value in values_of(statement) for node in walk(value))
    read = {node.source for node in loads if isinstance(node, Load)}
    rows = [getattr(statement, name, None) for name in ("row", "to", "work")]
    return {*read, *written_by(statement), *[row.buffer for row in rows if row is not None]}


def _is_of_vectors(loop: For, tiles: dict[Buffer, Buffer]) -> bool:
    """Whether the steps of a loop that uses tiles can be taken a vector at a time: they are
    independent, and use whole vectors of tiles."""
    if loop.kind is not LoopKind.VECTOR:
        return False
    stores = [s for s in loop.body if isinstance(s, Store)]
    own = {s.local for s in loop.body if isinstance(s, Let)}
    if len(stores) + len(own) < len(loop.body):
        return False
    used = [tiles[buffer] for buffer, _ in _uses(loop.body) if buffer in tiles]
    width, dtype = used[0].lanes, used[0].dtype
    if any(tile.dtype != dtype for tile in used):
        return False
    start = {loop.variable: affine(loop.variable.start)}
    for buffer, place in _uses(loop.body):
        first = place.substitute(start)
        along = is_along(place, loop.variable)
        if buffer in tiles and (not along or first.terms or first.constant % width):
            return False
    if any(s.offset or s.streamed or not is_along(s.position, loop.variable) for s in stores):
        return False
    if loop.variable.extent % width:  # of the last vector a part is copied, no more
        copied = [s.value for s in stores if s.buffer not in tiles and isinstance(s.value, Load)]
        return len(copied) == len(loop.body) and all(load.source in tiles for load in copied)
    values = [value for statement in loop.body for value in values_of(statement)]
    return all(_has_vectors(value, loop, dtype) for value in values)


def _has_vectors(value: Expr, loop: For, dtype: np.dtype) -> bool:
    """Whether vectors hold an expression in the steps of a loop."""
    tests = {part for node in walk(value) if is_guard(node) for part in walk(node.parts[0])}
    if any(depends_on(test, loop.variable) or test.dtype != BOOL for test in tests):
        return False
    for node in walk(value):
        if node in tests:
            continue
        if node.dtype != dtype:
            return False
        if isinstance(node, Load):
            place = node.indices[0]
            varies = place.depends_on(loop.variable)
            if node.data or (varies and not is_along(place, loop.variable)):
                return False
        elif isinstance(node, Op):
            if not is_guard(node) and not has_vectors(node.name, dtype):
                return False
        elif not isinstance(node, (Const, Local)):
            return False
    return True


# --- the buffers ----------------------------------------------------------------------------------


def _renamed(statements: Sequence[Statement], tiles: dict[Buffer, Buffer]) -> tuple[Statement, ...]:
    """The statements with tiles in place of the buffers that they stand for."""

    def leaf(node: Expr) -> Expr:
        known = isinstance(node, Load) and node.source in tiles
        return Load(tiles[node.source], node.indices) if known else node  # type: ignore[attr-defined]

    def renamed(node: Statement) -> Statement:
        if isinstance(node, Alloc) and node.buffer in tiles:
            return Alloc(tiles[node.buffer])
        if isinstance(node, Let):
            return replace(node, value=rewrite(node.value, leaf))
        if isinstance(node, Store):
            buffer = tiles.get(node.buffer, node.buffer)
            return replace(node, buffer=buffer, value=rewrite(node.value, leaf))
        return with_inside(node, lambda body: tuple(map(renamed, body)))

    return tuple(map(renamed, statements))
