"""Sums of a nest as registers: all in one loop, between what comes before and after them.

What a nest accumulates in an element of an array, each thread accumulates in a register and then
stores. Sums over the same steps, as of the products of one array with several others, become one
loop, which loads what they share once. The order of no sum changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    Let,
    Local,
    Scope,
    Statement,
    Store,
    walk_statements,
    written_by,
)
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import substitute_axes, values_of, with_buffers
from tinyfuse.records import replace
from tinyfuse.stage.expr import Cast, Const, Expr, Load, Op, rewrite, walk
from tinyfuse.stage.index import Affine, Axis, affine

OUTSIDE = (Scope.ARGUMENT, Scope.SCRATCH)


def with_sums_together(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements of one step of a nest with all their sums in one loop; as they are where that
    is not what they do."""
    if not any(isinstance(each, For) for each in body):
        return tuple(body)
    return _together(_in_registers(tuple(body))) or tuple(body)


def _in_registers(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    loops = [each for each in body if isinstance(each, For)]
    stores = [each for each in walk_statements(loops) if isinstance(each, Store)]
    taken = {each.buffer.name for each in walk_statements(body) if isinstance(each, Alloc)}
    for buffer in dict.fromkeys(each.buffer for each in stores):
        place = _only_place(body, buffer) if buffer.scope in OUTSIDE else None
        if place is None or any(place.depends_on(axis) for axis in _axes(loops)):
            continue
        taken.add(buffer.name)
        register = Buffer(unused(buffer.name, taken), buffer.dtype, 1, Scope.REGISTER)
        moved = {buffer: lambda _: Affine()}
        body = with_buffers(body, {buffer: register}, moved=moved)
        last = max(at for at, each in enumerate(body) if register in _written((each,)))
        store = Store(buffer, place, Load(register, (Affine(),)))
        body = (*body[: last + 1], store, *body[last + 1 :])
        if _is_read_first(body, register):
            body = (Store(register, Affine(), Load(buffer, (place,))), *body)
        body = (Alloc(register), *body)
    return body


def _is_read_first(body: Sequence[Statement], register: Buffer) -> bool:
    first = next(each for each in body if register in _used((each,)) | _written((each,)))
    return register in _used((first,))


def _axes(loops: Sequence[Statement]) -> list[Axis]:
    return [each.variable for each in walk_statements(loops) if isinstance(each, For)]


def _only_place(body: Sequence[Statement], buffer: Buffer) -> Affine | None:
    """The place of a buffer at which everything that is done with it happens."""
    places: set[Affine | None] = set()
    for each in walk_statements(body):
        for value in values_of(each):
            loads = [node for node in walk(value) if isinstance(node, Load)]
            own = [load for load in loads if load.source is buffer]
            places |= {None if load.data else load.indices[0] for load in own}
        if isinstance(each, Store) and each.buffer is buffer:
            places.add(each.position if each.offset is None else None)
        elif buffer in written_by(each):
            return None
    return places.pop() if len(places) == 1 else None


def _together(body: tuple[Statement, ...]) -> tuple[Statement, ...] | None:
    """Sums that follow each other as one loop; None where one needs what another one gives."""
    declared: list[Statement] = []
    before: list[Statement] = []
    after: list[Statement] = []
    sums: For | None = None
    values: dict[Buffer | Local, Expr] = {}
    written = _written(body)
    for each in body:
        (each,) = with_buffers((each,), {}, values)
        if isinstance(each, Alloc):
            declared.append(each)
        elif isinstance(each, For):
            if _depends(each, after):
                return None
            sums = each if sums is None else _merged(sums, each)
            if sums is None:
                return None
        elif sums is None and isinstance(each, Let):
            if not written.isdisjoint(_used((each,))):
                return None
            values[each.local] = each.value
        elif isinstance(each, Store) and (sums is None or _begins(each, (sums, *after))):
            before.append(each)
        else:
            after.append(each)
    assert sums is not None
    return (*declared, *before, _without_names(sums), *after)


def _begins(store: Store, earlier: Sequence[Statement]) -> bool:
    """Whether a store of a register may as well come before some statements."""
    return store.buffer.scope is Scope.REGISTER and not _depends(store, earlier)


def _depends(second: Statement, first: Sequence[Statement]) -> bool:
    """Whether a statement has to come after some others."""
    stored, stores = _written(first), _written((second,))
    return not (
        stored.isdisjoint(_used((second,)) | stores)
        and stores.isdisjoint(_used(first))
        and _names(first).isdisjoint(_named((second,)))
    )


def _written(body: Sequence[Statement]) -> set[Buffer]:
    return {buffer for each in walk_statements(body) for buffer in written_by(each)}


def _used(body: Sequence[Statement]) -> set[Buffer]:
    return {node.source for node in _nodes(body) if isinstance(node, Load)}


def _named(body: Sequence[Statement]) -> set[Local]:
    return {node for node in _nodes(body) if isinstance(node, Local)}


def _names(body: Sequence[Statement]) -> set[Local]:
    return {each.local for each in walk_statements(body) if isinstance(each, Let)}


def _nodes(body: Sequence[Statement]) -> list[Expr]:
    values = [value for each in walk_statements(body) for value in values_of(each)]
    return [node for value in values for node in walk(value)]


def _merged(first: For, second: For) -> For | None:
    """Two loops as one, and those right inside them; None where that is not possible."""
    if _depends(second, (first,)) or first.count is not None or second.count is not None:
        return None
    one, other = first.variable, second.variable
    if (one.extent, one.start) != (other.extent, other.start):
        return None
    inside = substitute_axes(second.body, {other: affine(one)})
    nested = [body[0] for body in (first.body, inside) if len(body) == 1]
    loops = [each for each in nested if isinstance(each, For)]
    if not loops:
        return replace(first, body=(*first.body, *inside))
    merged = _merged(*loops) if len(loops) == 2 else None
    return merged and replace(first, body=(merged,))


def _without_names(loop: For) -> For:
    """The loop with what its innermost body names put where it is used, and as one expression what
    several of its statements compute."""
    (inner,) = loop.body if len(loop.body) == 1 else (None,)
    if isinstance(inner, For):
        return replace(loop, body=(_without_names(inner),))
    values: dict[Buffer | Local, Expr] = {}
    known: dict[Hashable, Expr] = {}
    made: list[Statement] = []

    def once(node: Expr) -> Expr:
        return known.setdefault(_key(node), node)

    for each in loop.body:
        (each,) = with_buffers((each,), {}, values)
        if isinstance(each, Let) and _written((loop,)).isdisjoint(_used((each,))):
            values[each.local] = each.value
        elif isinstance(each, Store):
            made.append(replace(each, value=rewrite(each.value, once, once)))
        else:
            made.append(each)
    return replace(loop, body=tuple(made))


def _key(node: Expr) -> Hashable:
    """What an expression is made of, whose parts are there once each."""
    if isinstance(node, Const):
        return (Const, node.dtype, node.value.tobytes())
    if isinstance(node, Load):
        return (Load, node.source, node.indices, node.data)
    if isinstance(node, Op):
        return (node.name, node.operands, node.dtype)
    return (Cast, node.operand, node.dtype) if isinstance(node, Cast) else node
