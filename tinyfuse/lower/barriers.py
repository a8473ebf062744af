"""Barriers: where the threads of a block have to wait for each other.

Between two statements that touch one element, of which one stores it, in different threads. All
threads come to every barrier: outside of the loops that threads share they go the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinyfuse.loops.dependence import Access, meet
from tinyfuse.loops.independence import Accesses, accesses, span
from tinyfuse.loops.ir import (
    OF_BLOCK,
    Block,
    Buffer,
    Combine,
    For,
    If,
    LoopKind,
    Scope,
    Statement,
    Sync,
    While,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import substitute_axes
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import Expr, Load, walk
from tinyfuse.stage.index import Affine, Axis, affine

WARP = 32  # threads that go through everything together


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """Statements without a barrier. loops: those that threads share; none if all do it all."""

    loops: tuple[For, ...]
    body: tuple[Statement, ...]
    accesses: Accesses
    combines: bool = False  # through memory that all of them use

    @property
    def axes(self) -> list[Axis]:
        return [loop.variable for loop in self.loops]


Pending = list[Region]  # what has happened since the last barrier


def with_barriers(
    body: Sequence[Statement], around: Collection[Axis], threads: int
) -> tuple[Statement, ...]:
    """The statements of a block with all barriers that they need. around: variables that stand for
    the block. threads: of the block."""
    made, _ = _Barriers(body, around, threads).block(body, [])
    return tuple(made)


class _Barriers:
    def __init__(self, body: Sequence[Statement], around: Collection[Axis], threads: int) -> None:
        self.around, self.threads = around, threads
        self.fixed = {axis.name for axis in around}
        written = {buffer for each in walk_statements(body) for buffer in written_by(each)}
        private = (Scope.REGISTER, Scope.STACK, Scope.LOCAL)
        self.watched = {buffer for buffer in written if buffer.scope not in private}
        self.inner: list[Axis] = []  # of loops that all threads go through

    def block(self, body: Sequence[Statement], pending: Pending) -> tuple[list[Statement], Pending]:
        made: list[Statement] = []
        for node in body:
            if isinstance(node, For) and node.kind not in OF_BLOCK and _has_threads(node):
                synced, node, pending = self.loop(node, pending)
                made += synced
            elif isinstance(node, (If, While, Block)) and _has_threads(node):
                synced, node, pending = self.nested(node, pending)
                made += synced
            else:
                synced, pending = self.after(self.region(node), pending)
                made += synced
            made.append(node)
        return made, pending

    def loop(self, node: For, pending: Pending) -> tuple[list[Statement], Statement, Pending]:
        """The second turn, and all later ones, come after the first."""
        synced: list[Statement] = []
        if node.count is not None:
            synced, pending = self.after(self.read(node.count), pending)
        start = pending if node.count is not None else []
        self.inner.append(node.variable)
        made, end = self.block(node.body, pending)
        if node.variable.extent > 1:
            made, end = self.block(node.body, _joined(pending, end))
        self.inner.pop()
        return synced, replace(node, body=tuple(made)), _joined(start, end)

    def nested(
        self, node: If | While | Block, pending: Pending
    ) -> tuple[list[Statement], Statement, Pending]:
        if isinstance(node, Block):
            made, end = self.block(node.body, pending)
            return [], Block(tuple(made)), end
        test = self.read(node.test)
        if isinstance(node, If):
            synced, pending = self.after(test, pending)
            then, one = self.block(node.then, pending)
            otherwise, other = self.block(node.otherwise, pending)
            return synced, If(node.test, tuple(then), tuple(otherwise)), _joined(one, other)
        # The test of the next turn comes after the body: a barrier at its end stands before both.
        synced, start = self.after(test, pending)
        _, end = self.block(node.body, start)
        before, again = self.after(test, end)
        made, end = self.block(node.body, _joined(start, again))
        before, end = self.after(test, end)
        return synced, While(node.test, (*made, *before)), _joined(start, end)

    def read(self, value: Expr) -> Region:
        """What all threads read to know which way they go."""
        found: dict[Buffer, tuple[list[Access], list[Access]]] = {}
        for each in walk(value):
            if isinstance(each, Load):
                place = None if each.data else each.indices[0]
                found.setdefault(each.source, ([], []))[1].append(
                    Access(0, (), self.steps(), place)
                )
        return Region((), (), found)

    def steps(self) -> dict[str, tuple[int, int]]:
        return {axis.name: span(axis) for axis in (*self.around, *self.inner)}

    def region(self, node: Statement) -> Region:
        loops: list[For] = []
        body: tuple[Statement, ...] = (node,)
        while len(body) == 1 and isinstance(body[0], For) and body[0].kind is LoopKind.THREADS:
            loops.append(body[0])
            body = body[0].body
        around = {axis: span(axis) for axis in (*self.around, *self.inner)}
        combines = isinstance(node, Combine) and self.threads > WARP
        return Region(tuple(loops), body, accesses((node,), around), combines)

    def after(self, region: Region, pending: Pending) -> tuple[list[Statement], Pending]:
        """(a barrier, where the region needs one after what is pending; what is pending then)."""
        needed = any(self.conflict(earlier, region) for earlier in pending)
        if region.combines:  # which waits for all threads
            return [Sync()] if needed else [], [region]
        if needed:
            return [Sync()], [region]
        return [], [*pending, region]

    def conflict(self, first: Region, second: Region) -> bool:
        if first.combines and second.combines:
            return True
        for buffer in self.watched.intersection(first.accesses, second.accesses):
            (stored, read), (stores, reads) = first.accesses[buffer], second.accesses[buffer]
            pairs = [(a, b) for a in stored for b in (*stores, *reads)]
            pairs += [(a, b) for a in read for b in stores]
            pairs = [pair for pair in pairs if _may_meet(*pair, self.fixed)]
            if pairs and not self.same_threads(first, second, buffer):
                return True
        return False

    def same_threads(self, first: Region, second: Region, buffer: Buffer) -> bool:
        """Whether each element of a buffer that both touch is touched by one thread alone."""
        if not first.loops or not second.loops:
            return False
        if all(axis.extent == 1 for axis in (*first.axes, *second.axes)):
            return True
        steps = _common_steps(first.axes, second.axes)
        if steps is None:
            return False
        axes, own, its = steps
        around = {axis: span(axis) for axis in (*self.around, *self.inner, *axes)}
        one = accesses(substitute_axes(first.body, own), around).get(buffer, ([], []))
        other = accesses(substitute_axes(second.body, its), around).get(buffer, ([], []))
        pairs = [(a, b) for a in one[0] for b in (*other[0], *other[1])]
        pairs += [(a, b) for a in one[1] for b in other[0]]
        fixed = set(self.fixed)
        for axis in axes:
            if any(_may_meet(a, b, fixed, axis.name) for a, b in pairs):
                return False
            fixed.add(axis.name)
        return True


def _may_meet(one: Access, other: Access, fixed: set[str], moved: str | None = None) -> bool:
    """Whether two accesses may be to one element. moved: a variable that differs between them."""
    if one.place is None or other.place is None:
        return True
    signs = (1, -1) if moved else (1,)
    return any(meet(one, other, fixed, moved, sign) for sign in signs)


def _common_steps(
    first: Sequence[Axis], second: Sequence[Axis]
) -> tuple[list[Axis], dict[Axis, Affine], dict[Axis, Affine]] | None:
    """Axes over whose steps two nests of loops are both one loop, and the values of their variables
    at each; None where there are none, as where one has more steps."""
    left = [[axis.extent for axis in axes if axis.extent > 1] for axes in (first, second)]
    found: list[int] = []  # the innermost first
    while left[0] and left[1]:
        fewest = min(left[0][-1], left[1][-1])
        for extents in left:
            if extents[-1] % fewest:
                return None
            extents[-1] //= fewest
            if extents[-1] == 1:
                extents.pop()
        found.append(fewest)
    if left[0] or left[1]:
        return None
    axes = [Axis(f"common {at}", extent) for at, extent in enumerate(reversed(found))]
    return axes, _values(first, axes), _values(second, axes)


def _values(loops: Sequence[Axis], axes: Sequence[Axis]) -> dict[Axis, Affine]:
    """The variables of loops, each of which some of the axes are one after the other."""
    left, found = list(axes), dict[Axis, Affine]()
    for axis in reversed(loops):
        value, length = affine(axis.start), 1
        while length < axis.extent:
            part = left.pop()
            value, length = value + affine(part) * length, length * part.extent
        found[axis] = value
    return found


def _has_threads(node: Statement) -> bool:
    """Whether there is anything inside that threads do not all do alike."""
    return any(
        isinstance(each, Combine) or (isinstance(each, For) and each.kind in OF_BLOCK)
        for each in walk_statements((node,))
    )


def _joined(one: Pending, other: Pending) -> Pending:
    return list(dict.fromkeys((*one, *other)))
