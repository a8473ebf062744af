"""Elements that lie side by side, 16 bytes at a time: fewer and longer loads and stores."""

from __future__ import annotations

from collections.abc import Collection

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    Copy,
    For,
    Let,
    LoopKind,
    Row,
    Scope,
    Statement,
    Store,
    written_by,
)
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import substitute_axes, values_of, with_values
from tinyfuse.lower.device_nests import Arranged
from tinyfuse.records import replace
from tinyfuse.stage.expr import Expr, Load, always_run, walk
from tinyfuse.stage.index import Affine, Axis, affine

VECTOR_BYTES = 16
DTYPES = ("float32", "float64", "int32", "uint32")
# Rows that a thread may hold at once: their elements all live until they are used.
MOST_ROWS = 8

Place = tuple[Buffer, Affine]


def vectors(
    nest: Arranged, taken: Collection[str]
) -> tuple[Arranged, tuple[Statement, ...]] | None:
    """(the loops, the statements of a step) of a nest whose steps do 16 bytes along its last axis;
    None where not all that lies along it lies at such places. taken: names of buffers."""
    axis = nest.shared[-1].variable
    if nest.serial or axis.start or not all(isinstance(each, (Let, Store)) for each in nest.body):
        return None
    rows = _rows(nest, axis)
    if rows is None or not 0 < len(rows) <= MOST_ROWS:
        return None
    lanes = {VECTOR_BYTES // buffer.dtype.itemsize for buffer, _ in rows}
    count = lanes.pop()
    if lanes or axis.extent % count or not all(_fits(*row, axis, count) for row in rows):
        return None
    return _widened(nest, axis, rows, count, set(taken))


def _rows(nest: Arranged, axis: Axis) -> list[Place] | None:
    """What is loaded or stored side by side along an axis."""
    found: dict[Place, None] = {}
    stored = {buffer for each in nest.body for buffer in written_by(each)}
    for each in nest.body:
        for value in values_of(each):
            always = always_run(value)
            for node in walk(value):
                if not isinstance(node, Load):
                    continue
                (place,) = node.indices
                if node.data or not place.depends_on(axis):
                    if node.source in stored:
                        return None
                    continue
                if node not in always:
                    return None
                found[node.source, place] = None
        if isinstance(each, Store):
            if each.offset is not None:
                return None
            found[each.buffer, each.position] = None
    places = [place for buffer, place in found if buffer in stored]
    return None if len(places) > len({*stored}) else list(found)


def _fits(buffer: Buffer, place: Affine, axis: Axis, count: int) -> bool:
    """Whether elements of this place lie side by side along the axis, beginning at 16 bytes."""
    outside = buffer.scope in (Scope.ARGUMENT, Scope.SCRATCH)
    if not outside or buffer.dtype.name not in DTYPES or place.coefficient(axis) != 1:
        return False
    rest = place - axis
    factors = [rest.constant, *[factor for _, factor in rest.terms]]
    return not rest.depends_on(axis) and all(factor % count == 0 for factor in factors)


def _widened(
    nest: Arranged, axis: Axis, rows: list[Place], count: int, taken: set[str]
) -> tuple[Arranged, tuple[Statement, ...]]:
    group = Axis(axis.name, axis.extent // count)
    lane = Axis("lane", count)
    first = {axis: affine(group) * count}
    stored = {buffer for each in nest.body for buffer in written_by(each)}
    read = _read_first(nest.body)
    own: dict[Place, Buffer] = {}
    for buffer, place in rows:
        name = unused(f"{buffer.name}_{count}", taken)
        own[buffer, place] = Buffer(name, buffer.dtype, count, Scope.STACK)
    body = [_in_lanes(each, own, lane) for each in nest.body]
    inside = substitute_axes(body, {axis: affine(group) * count + lane})
    before: list[Statement] = [Alloc(buffer) for buffer in own.values()]
    after: list[Statement] = []
    for (buffer, place), row in own.items():
        there, here = Row(buffer, place.substitute(first)), Row(row, Affine())
        if (buffer, place) in read:
            before.append(Copy(there, here, count))
        if buffer in stored:
            after.append(Copy(here, there, count))
    loops = (*nest.shared[:-1], For(group, LoopKind.GRID, ()))
    statements = (*before, For(lane, LoopKind.UNROLL, inside), *after)
    return replace(nest, shared=loops), statements


def _read_first(body: tuple[Statement, ...]) -> set[Place]:
    """What is loaded before anything is stored there."""
    found: set[Place] = set()
    written: set[Place] = set()
    for each in body:
        loads = [node for value in values_of(each) for node in walk(value)]
        found |= {(node.source, node.indices[0]) for node in loads if isinstance(node, Load)}
        found -= written
        if isinstance(each, Store):
            written.add((each.buffer, each.position))
    return found


def _in_lanes(each: Statement, own: dict[Place, Buffer], lane: Axis) -> Statement:
    """A statement on a thread's own rows."""
    known: dict[Expr, Expr] = {
        node: Load(own[node.source, node.indices[0]], (affine(lane),))
        for value in values_of(each)
        for node in walk(value)
        if isinstance(node, Load) and not node.data and (node.source, node.indices[0]) in own
    }
    (made,) = with_values((each,), known)
    if isinstance(made, Store):
        return replace(made, buffer=own[made.buffer, made.position], position=affine(lane))
    return made
