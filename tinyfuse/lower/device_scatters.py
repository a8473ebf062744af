"""Scatters on a device: each element of the result has a thread, which looks for what goes there.

A loop whose data say where it stores is serial: two of its steps may mean one element. Seen from
the elements it is not: each goes through all steps, in their order, and takes those that mean it,
so that not even the order of a sum changes. Sums of integers have no order that matters: parts of
the steps are added apart, side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, isqrt

import numpy as np

from tinyfuse.dtypes import BOOL
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Scope,
    Statement,
    Store,
)
from tinyfuse.loops.rewrite import substitute_axes, with_values
from tinyfuse.lower.device_nests import arranged, nested
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import Cast, Const, Expr, Index, Load, Op, walk
from tinyfuse.stage.index import Affine, Axis, affine

# Elements of a result for each thread of the device, up to which it is quicker that each looks for
# its own steps than that one thread goes through them.
MOST_ELEMENTS = 8
# Steps that a thread goes through at least where several look for the same element.
LEAST_STEPS = 64

NewBuffer = Callable[[str, np.dtype, int], Buffer]


@dataclass(frozen=True, eq=False, slots=True)
class _Scatter:
    """Loops, in each of whose steps a place is data; there loops store one element each."""

    steps: tuple[For, ...]
    place: Let
    inner: tuple[For, ...]
    store: Store
    apart: int  # each place is a multiple of it

    @property
    def loads(self) -> list[Load]:
        """Those of the elements that are stored."""
        own = [*walk(self.place.value), *walk(self.store.value)]
        return [node for node in own if isinstance(node, Load) and node.source is self.store.buffer]


def by_elements(node: Statement, threads: int, new_buffer: NewBuffer) -> list[Statement]:
    """A scatter as loops over the elements of its result; any other statement as it is.

    threads: of the device. new_buffer: makes one of the memory of the device.
    """
    found = _scatter(node)
    if found is None or found.store.buffer.size > MOST_ELEMENTS * threads:
        return [node]
    parts = _parts(found, threads)
    made = _in_parts(found, parts, new_buffer) if parts > 1 else [_owned(found)]
    last = made[-1]
    assert isinstance(last, For)
    alone = len(arranged(last, ()).shared) < 1 + len(found.inner)
    return [node] if alone else made


def _scatter(node: Statement) -> _Scatter | None:
    if not isinstance(node, For) or node.count is not None:
        return None
    steps, body = _chain(node)
    if arranged(node, ()).steps > 1 or len(body) != 2:
        return None
    place, inside = body
    inner, stores = _chain(inside) if isinstance(inside, For) else ([], (inside,))
    (store,) = stores if len(stores) == 1 else (None,)
    if not isinstance(place, Let) or not isinstance(store, Store):
        return None
    found = _Scatter(tuple(steps), place, tuple(inner), store, _factor(place.value) or 1)
    return found if _fits(found) else None


def _chain(loop: For) -> tuple[list[For], Sequence[Statement]]:
    """(loops right inside each other, what is inside the innermost)."""
    loops = [loop]
    while len(body := loops[-1].body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
    return loops, loops[-1].body


def _fits(found: _Scatter) -> bool:
    """Whether only the place says which elements a step stores, next to each other."""
    store, local = found.store, found.place.local
    low, high = store.position.interval()
    outside = store.buffer.scope in (Scope.ARGUMENT, Scope.SCRATCH)
    if not outside or store.offset is not local or store.buffer.size % found.apart:
        return False
    if low < 0 or high >= found.apart:
        return False
    if any(store.position.depends_on(loop.variable) for loop in found.steps):
        return False
    if any(loop.count is not None for loop in (*found.steps, *found.inner)):
        return False
    return all(load.indices == (store.position,) and load.data == (local,) for load in found.loads)


def _factor(value: Expr) -> int:
    """A number that a place is a multiple of."""
    if isinstance(value, Const):
        return abs(int(value.value))
    if isinstance(value, Cast):
        return _factor(value.operand)
    if isinstance(value, Index):
        return gcd(value.index.constant, *[factor for _, factor in value.index.terms])
    if isinstance(value, Op) and value.name in ("add", "subtract"):
        return gcd(*map(_factor, value.operands))
    if isinstance(value, Op) and value.name == "multiply":
        return _factor(value.operands[0]) * _factor(value.operands[1])
    return 1


def _parts(found: _Scatter, threads: int) -> int:
    """In how many parts the steps of the outermost loop may be added."""
    value = found.store.value
    if not isinstance(value, Op) or value.name != "add" or value.dtype.kind not in "iu":
        return 1
    if len(found.loads) != 1 or found.loads[0] not in value.operands:
        return 1
    steps = found.steps[0].variable.extent
    return min(threads // found.store.buffer.size, steps // LEAST_STEPS, isqrt(steps))


def _owned(found: _Scatter) -> Statement:
    """All steps for each element."""
    element = _Element(found)
    return element.nest(element.now, element.steps(found.steps[0].variable, Affine()))


def _in_parts(found: _Scatter, parts: int, new_buffer: NewBuffer) -> list[Statement]:
    """Sums of parts of the steps, of as many each; then all of them and the steps left over."""
    target, axis = found.store.buffer, found.steps[0].variable
    length, left = divmod(axis.extent, parts)
    sums = new_buffer(f"{target.name}_parts", target.dtype, parts * target.size)
    element, part = _Element(found), Axis("part", parts)
    at = affine(part) * target.size + element.position
    body = element.steps(Axis("step", length), affine(part) * length + axis.start)
    first = element.nest(Const(target.dtype.type(0)), body, to=sums, at=at)
    rest = [element.steps(Axis("step", left), affine(axis.start + parts * length))] if left else []
    add = Op("add", (element.own, Load(sums, (at,))), target.dtype)
    together = For(part, LoopKind.SERIAL, (Store(element.register, Affine(), add),))
    last = element.nest(element.now, *rest, together)
    return [For(part, LoopKind.SERIAL, (first,)), last]


class _Element:
    """What the thread of an element of the result does."""

    def __init__(self, found: _Scatter) -> None:
        self.found, self.target = found, found.store.buffer
        owner = Axis("element", self.target.size // found.apart)
        self.first = affine(owner) * found.apart
        self.position = self.first + found.store.position
        self.loops = (For(owner, LoopKind.SERIAL, ()), *found.inner)
        self.register = Buffer(f"{self.target.name}_own", self.target.dtype, 1, Scope.REGISTER)
        self.own = Load(self.register, (Affine(),))
        self.now = Load(self.target, (self.position,))

    def steps(self, steps: Axis, first: Affine) -> Statement:
        """Steps of the outermost loop, from one on: those that mean this element."""
        place, store = self.found.place, self.found.store
        now: dict[Expr, Expr] = dict.fromkeys(self.found.loads, self.own)
        kept = with_values((Store(self.register, Affine(), store.value),), now)
        test = Op("equal", (place.local, Index(self.first)), BOOL)
        body: tuple[Statement, ...] = (place, If(test, kept, ()))
        outermost, *others = self.found.steps
        if others:
            body = (nested(others, LoopKind.SERIAL, body),)
        variable = outermost.variable
        values = {} if steps is variable else {variable: first + steps}
        return For(steps, LoopKind.SERIAL, substitute_axes(body, values))

    def nest(
        self, start: Expr, *body: Statement, to: Buffer | None = None, at: Affine | None = None
    ) -> Statement:
        """Statements for each element, from a value on; the last one goes into the result, or to a
        place of another buffer."""
        before = (Alloc(self.register), Store(self.register, Affine(), start))
        after = Store(to or self.target, self.position if at is None else at, self.own)
        return nested(self.loops, LoopKind.SERIAL, (*before, *body, after))
