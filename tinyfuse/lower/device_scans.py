"""Running values on a device: of parts of a row side by side, where the order does not matter.

Each part of the steps is combined by itself; what comes before each part then follows, and with it
the values of its steps, again all parts side by side. Sums of floating-point numbers are not among
these: their order is their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from tinyfuse.loops.independence import accesses
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    If,
    Let,
    Local,
    LoopKind,
    Scope,
    Statement,
    Store,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import substitute_axes, values_of, with_buffers
from tinyfuse.records import replace
from tinyfuse.stage.expr import Expr, IndexTest, Load, Op, walk
from tinyfuse.stage.index import Affine, Axis, affine

# Operations by which values combine in any order, also some of them more than once.
ORDER_FREE = (
    *("maximum", "minimum", "logical_and", "logical_or", "bitwise_and", "bitwise_or"),
    *("fmax", "fmin"),
)
# Those that do for integers, which wrap around.
OF_INTEGERS = ("add", "multiply", "bitwise_xor")
# Steps from which on they are in parts, of fewer than so many each.
LEAST_STEPS = 1024
# And from which on each step of these parts is a kernel, of more than one block.
LEAST_IN_KERNELS = 1 << 16


def scanned(loop: For) -> list[Statement] | None:
    """The same as a loop that gives running values, of parts of its steps; None for any other."""
    if loop.count is not None or loop.variable.extent < LEAST_STEPS:
        return None
    carried = _carried(loop)
    return _in_parts(loop, carried) if carried else None


def in_parts(body: Sequence[Statement]) -> list[Sequence[Statement]]:
    """The statements of a kernel in parts that share no buffer and no name of its own: what does
    not use those that a part begins with comes before that part, where it may."""
    declared = [each for each in body if isinstance(each, (Alloc, Let))]
    if any(isinstance(each, Let) for each in declared):
        return [body]
    own = {each.buffer: each for each in declared if isinstance(each, Alloc)}
    rest = [each for each in body if not isinstance(each, Alloc)]
    parts: list[Sequence[Statement]] = []
    begun: list[Statement] = []
    for at, each in enumerate(rest):
        if own.keys().isdisjoint(_used((each,))) and not _conflict((each,), begun):
            parts.append([each])
            continue
        begun.append(each)
        used = _used(begun)
        if own.keys().isdisjoint(used & _used(rest[at + 1 :])):
            parts.append([*[own[buffer] for buffer in own if buffer in used], *begun])
            begun = []
    return parts


def _used(body: Sequence[Statement]) -> set[Buffer]:
    return {*accesses(body, {})}


def _conflict(one: Sequence[Statement], other: Sequence[Statement]) -> bool:
    """Whether some statements store in a buffer that the others use."""
    written = [{b for each in walk_statements(e) for b in written_by(each)} for e in (one, other)]
    return not (written[0].isdisjoint(_used(other)) and written[1].isdisjoint(_used(one)))


def _carried(loop: For) -> Store | None:
    """The store of the register in which a loop combines values, which it also stores elsewhere."""
    values: dict[Buffer | Local, Expr] = {}
    found: list[Store] = []
    stores = 0
    for node in loop.body:
        (each,) = with_buffers((node,), {}, values)
        if isinstance(each, Let):
            values[each.local] = each.value
        elif not isinstance(each, Store):
            return None
        else:
            stores += 1
            found += [each] if each.buffer.scope is Scope.REGISTER else []
    if len(found) != 1 or stores < 2:
        return None
    (carried,) = found
    return carried if _combines(carried) and _reads_only(carried, loop) else None


def _combines(store: Store) -> bool:
    value = store.value
    if not isinstance(value, Op) or len(value.operands) != 2:
        return False
    integers = value.name in OF_INTEGERS and value.dtype.kind in "iu"
    loads = [node for node in walk(value) if isinstance(node, Load)]
    own = [load for load in loads if load.source is store.buffer]
    return (integers or value.name in ORDER_FREE) and len(own) == 1 and own[0] in value.operands


def _reads_only(carried: Store, loop: For) -> bool:
    """Whether the loop stores nothing that the combined values are made of, but in their place."""
    stores = [each for each in walk_statements(loop.body) if isinstance(each, Store)]
    for node in walk(carried.value):
        if not isinstance(node, Load) or node.source is carried.buffer:
            continue
        for store in stores:
            same = not node.data and store.offset is None and node.indices == (store.position,)
            if store.buffer is node.source and not same:
                return False
    first = next(at for at, each in enumerate(loop.body) if carried.buffer in written_by(each))
    before = [node for each in loop.body[:first] for v in values_of(each) for node in walk(v)]
    return not any(isinstance(node, Load) and node.source is carried.buffer for node in before)


def _in_parts(loop: For, carried: Store) -> list[Statement]:
    axis, register = loop.variable, carried.buffer
    length = min(-(-axis.extent // isqrt(axis.extent)), LEAST_STEPS - 1)
    part = Axis("part", -(-axis.extent // length))
    kept = Buffer(f"{register.name}_parts", register.dtype, part.extent, Scope.STACK)
    own = replace(register, name=f"{register.name}_own")
    before = replace(register, name=f"{register.name}_part")
    now, here = _value(register), (affine(part),)
    (inside,) = with_buffers((carried,), {register: own})
    assert isinstance(inside, Store)
    assert isinstance(inside.value, Op)
    (its,) = [each for each in inside.value.operands if not _is_of(each, own)]
    (first,) = _at((Store(own, Affine(), its),), axis, affine(part) * length)
    combined: tuple[Statement, ...] = (
        *(Alloc(own), first, _steps(axis, part, Axis("step", length - 1, 1), length, (inside,))),
        Store(kept, affine(part), _value(own)),
    )
    operands = tuple(now if _is_of(each, own) else _value(before) for each in inside.value.operands)
    following: tuple[Statement, ...] = (
        *(Alloc(before), Store(before, Affine(), Load(kept, here)), Store(kept, here[0], now)),
        Store(register, Affine(), replace(inside.value, operands=operands)),
    )
    body = with_buffers(loop.body, {register: own})
    values: tuple[Statement, ...] = (
        *(Alloc(own), Store(own, Affine(), Load(kept, here))),
        _steps(axis, part, Axis("step", length), length, body),
    )
    nests = [For(part, LoopKind.SERIAL, each) for each in (combined, following, values)]
    return [Alloc(kept), *nests]


def _steps(
    axis: Axis, part: Axis, step: Axis, length: int, body: tuple[Statement, ...]
) -> Statement:
    """The steps of a part; the last part may have fewer."""
    at = affine(part) * length + step
    body = _at(body, axis, at)
    if axis.extent % length:
        body = (If(IndexTest(at, None, axis.extent), body, ()),)
    return For(step, LoopKind.SERIAL, body)


def _at(body: Sequence[Statement], axis: Axis, step: Affine) -> tuple[Statement, ...]:
    return substitute_axes(body, {axis: step + axis.start})


def _is_of(value: Expr, register: Buffer) -> bool:
    return isinstance(value, Load) and value.source is register


def _value(register: Buffer) -> Load:
    return Load(register, (Affine(),))
