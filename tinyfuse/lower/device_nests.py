"""Loop nests as a device sees them: which loops its threads share, and statements that go along.

Everything here keeps the meaning of a nest: loops whose steps are independent move outside, nests
over the same steps become one, and a loop around several statements becomes one around each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod

from tinyfuse.graph.scalar_ops import NEAREST
from tinyfuse.loops.cost import chosen_steps, decisive_axis
from tinyfuse.loops.independence import Nest, accesses, span
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    HalveRow,
    If,
    Let,
    Local,
    LoopKind,
    Prefetch,
    Scope,
    SortRow,
    Statement,
    Store,
    Transpose,
    While,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import substitute_axes, with_buffers, with_inside
from tinyfuse.lower.device_scans import scanned
from tinyfuse.lower.device_sorts import MOST_ALONE, sorted_row
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import Expr, Load, Op, walk
from tinyfuse.stage.index import Affine, Axis, affine


@dataclass(frozen=True, eq=False, slots=True)
class Arranged:
    """Loops that stand right inside each other, and what is inside the innermost one.

    shared: those whose steps are independent, whatever the step of the `serial` ones, which may run
    inside all of them. before: how many of the first are outside of any serial one as they stand.
    """

    shared: tuple[For, ...]
    serial: tuple[For, ...]
    before: int
    body: tuple[Statement, ...]

    @property
    def steps(self) -> int:
        return prod([loop.variable.extent for loop in self.shared])


def arranged(loop: For, around: Collection[Axis]) -> Arranged:
    """The loops of a nest. around: the loop variables around it, at one step each."""
    if loop.count is not None:  # whose steps a call counts
        return Arranged((), (loop,), 0, loop.body)
    loops, nest = [loop], Nest(loop, around)
    while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], For):
        if inner.count is not None:
            break
        loops.append(inner)
    shared: list[For] = []
    serial: list[For] = []
    before = 0
    for each in loops:
        if each.variable.extent == 1 or nest.is_independent(each, shared):
            shared.append(each)
            before += not serial
        else:
            serial.append(each)
    return Arranged(tuple(shared), tuple(serial), before, loops[-1].body)


def nested(loops: Sequence[For], kind: LoopKind, body: tuple[Statement, ...]) -> Statement:
    """Statements in loops over the same steps, of another kind; there is at least one loop."""
    for loop in reversed(loops):
        body = (For(loop.variable, kind, body, loop.count),)
    return body[0]


def simplified(statements: Sequence[Statement], around: Collection[Axis]) -> list[Statement]:
    """The statements with plain loops in place of what stands for loops, and with all nests that
    go along with each other as one, inner ones first."""
    plain = _without_work([made for each in statements for made in _plain(each)])
    if around:
        plain = [piece for each in plain for piece in in_pieces(each)]
    inside = [_simplified_inside(each, around) for each in plain]
    return joined(inside, around)


def _simplified_inside(node: Statement, around: Collection[Axis]) -> Statement:
    within = [*around, node.variable] if isinstance(node, For) else around
    made = with_inside(node, lambda body: tuple(simplified(body, within)))
    return _with_names_inside(made) if isinstance(made, For) else made


def _with_names_inside(node: For) -> For:
    """With what a loop only loads and converts, before the one loop inside it, in that one: the two
    stand right inside each other then."""
    *named, inner = node.body
    if not named or not isinstance(inner, For) or inner.count is not None:
        return node
    written = {buffer for each in _walk((inner,)) for buffer in written_by(each)}
    for each in named:
        if not isinstance(each, Let) or not all(map(_is_converted, walk(each.value))):
            return node
        if any(isinstance(part, Load) and part.source in written for part in walk(each.value)):
            return node
    return replace(node, body=(replace(inner, body=(*named, *inner.body)),))


def _is_converted(part: Expr) -> bool:
    """Whether an expression is loaded, or converts one that is."""
    return not isinstance(part, Op) or part.name in NEAREST


def in_pieces(node: Statement) -> list[Statement]:
    """A loop in two where it does one thing in its first steps, and another in the others."""
    choice = node.body[0] if isinstance(node, For) and len(node.body) == 1 else None
    if not isinstance(node, For) or not isinstance(choice, If) or node.count is not None:
        return [node]
    axis = node.variable
    first, last = span(axis)
    if decisive_axis(choice.test, {axis: (first, last)}) is not axis:
        return [node]
    low, high = chosen_steps(choice.test, axis, (first, last))
    if low != first or not first < high < last:
        return [node]
    pieces: list[Statement] = []
    for start, end, body in ((first, high, choice.then), (high, last, choice.otherwise)):
        part = replace(axis, start=start, extent=end - start)
        inside = substitute_axes(body, {axis: affine(part)})
        pieces += [For(part, node.kind, inside)] if body else []
    return pieces


def _plain(node: Statement) -> list[Statement]:
    if isinstance(node, Prefetch):
        return []
    if isinstance(node, Store):
        return [replace(node, streamed=False)]
    if isinstance(node, For):
        return scanned(node) or [node]
    if isinstance(node, SortRow) and node.extent > MOST_ALONE:
        return sorted_row(node)
    if isinstance(node, Transpose):
        row, column = Axis("row", node.rows), Axis("column", node.columns)
        to = node.to.position + affine(row) * node.to.step + column
        place = node.block.position + affine(column) * node.block.step + row
        store = Store(node.to.buffer, to, Load(node.block.buffer, (place,)))
        inner = For(column, LoopKind.SERIAL, (store,))
        return [For(row, LoopKind.SERIAL, (inner,))]
    return [node]


def _without_work(statements: list[Statement]) -> list[Statement]:
    """Without the buffers that nothing uses any more."""
    used = accesses(statements, {})
    return [each for each in statements if not isinstance(each, Alloc) or each.buffer in used]


def by_halves(node: Statement) -> Statement:
    """The statement with the loops that one thread goes through to halve rows."""

    def change(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple([made for each in body for made in _halves(by_halves(each))])

    return with_inside(node, change)


def _halves(node: Statement) -> list[Statement]:
    """Half of a power of two, half of that, and so on until 1."""
    if not isinstance(node, HalveRow):
        return [node]
    return [_half(node, node.extent >> times) for times in range(1, node.extent.bit_length())]


def _half(node: HalveRow, half: int) -> Statement:
    """The second half of a row added to the first."""
    buffer, lane = node.row.buffer, Axis("lane", half)
    place = node.row.position + (lane if half > 1 else 0)
    operands = (Load(buffer, (place,)), Load(buffer, (place + half,)))
    store = Store(buffer, place, Op("add", operands, buffer.dtype))
    return For(lane, LoopKind.SERIAL, (store,)) if half > 1 else store


# --- nests that go along --------------------------------------------------------------------------


def joined(statements: Sequence[Statement], around: Collection[Axis]) -> list[Statement]:
    """Neighbouring nests over the same steps as one, where no step needs what another one does;
    elements that only one step uses then become its own."""
    declared = [each for each in statements if isinstance(each, Alloc)]
    found: list[Statement] = []
    for each in statements:
        if isinstance(each, Alloc):
            continue
        both = _together(found[-1], each, around) if found else None
        if both is None:
            found.append(each)
        else:
            found[-1] = both
    return _with_own([*declared, *found], around)


def _together(first: Statement, second: Statement, around: Collection[Axis]) -> Statement | None:
    if not isinstance(first, For) or not isinstance(second, For):
        return None
    one, other = arranged(first, around), arranged(second, around)
    extents = [span(loop.variable) for loop in one.shared]
    if not one.shared or extents != [span(loop.variable) for loop in other.shared]:
        return None
    pairs = zip(other.shared, one.shared, strict=True)
    values = {its.variable: affine(own.variable) for its, own in pairs}
    names = {loop.variable.name for loop in one.shared}
    inside = _serial(other, substitute_axes(other.body, values))
    if any(isinstance(each, For) and each.variable.name in names for each in _walk(inside)):
        return None
    merged = nested(one.shared, LoopKind.SERIAL, (*_serial(one, one.body), *inside))
    assert isinstance(merged, For)
    nest, same = Nest(merged, around), list[For]()
    for loop in _chain(merged, len(one.shared)):
        if loop.variable.extent > 1 and not nest.is_independent(loop, same):
            return None
        same.append(loop)
    return merged


def _walk(statements: Sequence[Statement]) -> list[Statement]:
    return list(walk_statements(statements))


def _chain(loop: For, count: int) -> list[For]:
    loops = [loop]
    while len(loops) < count:
        inner = loops[-1].body[0]
        assert isinstance(inner, For)
        loops.append(inner)
    return loops


def _serial(nest: Arranged, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    return (nested(nest.serial, LoopKind.SERIAL, body),) if nest.serial else body


def _with_own(statements: list[Statement], around: Collection[Axis]) -> list[Statement]:
    """Buffers of which each step of one nest uses one element alone are a register in it."""
    for declared in [each for each in statements if isinstance(each, Alloc)]:
        users = [each for each in statements if _uses(each, declared.buffer)]
        if len(users) != 1 or not isinstance(users[0], For):
            continue
        nest = arranged(users[0], around)
        place = _only_place(users[0], declared.buffer)
        outer = {loop.variable for loop in nest.shared} | {*around}
        if place is None or not nest.shared or not outer.issuperset(place.axes()):
            continue
        register = replace(declared.buffer, size=1, scope=Scope.REGISTER)
        body = with_places(_serial(nest, nest.body), declared.buffer, register, lambda _: Affine())
        at = statements.index(users[0])
        statements[at] = nested(nest.shared, LoopKind.SERIAL, (Alloc(register), *body))
        statements.remove(declared)
    return statements


def _uses(node: Statement, buffer: Buffer) -> bool:
    return not isinstance(node, Alloc) and buffer in accesses((node,), {})


def _only_place(node: Statement, buffer: Buffer) -> Affine | None:
    """The place of a buffer at which all that a statement does with it happens."""
    if any(isinstance(each, While) for each in walk_statements((node,))):
        return None
    writes, others = accesses((node,), {})[buffer]
    places = {access.place for access in (*writes, *others)}
    return places.pop() if len(places) == 1 else None


def with_places(
    statements: Sequence[Statement],
    old: Buffer,
    new: Buffer,
    place: Callable[[Affine], Affine],
) -> tuple[Statement, ...]:
    """A copy that uses another buffer, its elements elsewhere."""
    return with_buffers(statements, {old: new}, moved={old: place})


# --- a loop around each ---------------------------------------------------------------------------


def parted(loop: For) -> tuple[list[Statement], list[Statement]]:
    """(buffers, loops): one loop around each statement inside a loop of independent steps; what
    each step has of its own is in an array with an element for each step."""
    step = affine(loop.variable) - loop.variable.start
    declared: list[Statement] = []
    body: tuple[Statement, ...] = loop.body
    for each in loop.body:
        if isinstance(each, Alloc):
            own, size = each.buffer, each.buffer.size
            wide = replace(own, size=size * loop.variable.extent, scope=Scope.STACK)
            declared.append(Alloc(wide))
            body = with_places(body, own, wide, lambda old, size=size: old + step * size)  # type: ignore[misc]
    made: list[Statement] = []
    values: dict[Buffer | Local, Expr] = {}
    for each in body:
        if isinstance(each, Alloc):
            continue
        (each,) = with_buffers((each,), {}, values)
        if isinstance(each, Let):
            wide = Buffer(each.local.name, each.local.dtype, loop.variable.extent, Scope.STACK)
            declared.append(Alloc(wide))
            values[each.local] = Load(wide, (step,))
            each = Store(wide, step, each.value)
        made += in_pieces(For(loop.variable, LoopKind.SERIAL, (each,)))
    return declared, made


def size_of(declared: Sequence[Statement]) -> int:
    """Bytes of buffers."""
    return sum([each.buffer.nbytes for each in declared if isinstance(each, Alloc)])
