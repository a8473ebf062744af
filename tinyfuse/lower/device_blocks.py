"""What the threads of one block do: loops that they share, and what each of them does by itself.

Outside of the loops that they share, all threads go through the same statements: names and
registers there have one value in all of them. What has no shared loop is done by one thread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinyfuse.loops.ir import (
    OF_BLOCK,
    Alloc,
    Block,
    Buffer,
    Combine,
    For,
    HalveRow,
    If,
    Let,
    LoopKind,
    Scope,
    Statement,
    Store,
    While,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import values_of, with_buffers
from tinyfuse.lower.device_nests import Arranged, arranged, joined, nested, parted, size_of
from tinyfuse.lower.device_scans import ORDER_FREE
from tinyfuse.records import replace
from tinyfuse.stage.expr import Load, Op, walk
from tinyfuse.stage.index import Axis

# Steps that threads share at least where one thread could do all of them.
LEAST_SHARED = 4
# The part of the shared memory that what several steps have at once may take.
FOR_STEPS = 2


class BlockLowering:
    """One block. room: bytes of shared memory."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.single: set[Buffer] = set()  # registers that only some of the threads write

    def statements(
        self, body: Sequence[Statement], around: Collection[Axis]
    ) -> tuple[Statement, ...]:
        """The statements of a block. around: loop variables that are the same for all threads."""
        while True:
            made = tuple(self._block(body, around))
            found = _partly_written(made) - self.single
            if not found:
                return _in_shared_memory(made, self.single)
            self.single |= found

    def _block(self, body: Sequence[Statement], around: Collection[Axis]) -> list[Statement]:
        made = [made for each in body for made in self._statement(each, around)]
        return _with_what_follows(made)

    def _statement(self, node: Statement, around: Collection[Axis]) -> list[Statement]:
        if isinstance(node, (Let, Alloc)):
            return [node]
        if isinstance(node, For):
            return self._loop(node, around)
        if isinstance(node, HalveRow):
            return [_once((node,), LoopKind.WARPS)]
        if isinstance(node, Store):
            own = node.buffer.scope is Scope.REGISTER and node.buffer not in self.single
            return [node] if own else [_once((node,))]
        if isinstance(node, (If, While, Block)) and self.is_shared(node, around):
            return [self._inside(node, around)]
        return [self._alone(node)]

    def _alone(self, node: Statement) -> Statement:
        """What threads do not share: each does it for itself if it only sets registers that all of
        them have alike, else one does it."""
        inner = list(walk_statements((node,)))
        own = {each.buffer for each in inner if isinstance(each, Alloc)}
        written = {buffer for each in inner for buffer in written_by(each)} - own
        alike = all(b.scope is Scope.REGISTER and b not in self.single for b in written)
        small = all(b.scope is Scope.REGISTER for b in own)
        return node if alike and small else _once((node,))

    def _inside(self, node: If | While | Block, around: Collection[Axis]) -> Statement:
        if isinstance(node, If):
            then, otherwise = self._block(node.then, around), self._block(node.otherwise, around)
            return If(node.test, tuple(then), tuple(otherwise))
        body = tuple(self._block(node.body, around))
        return While(node.test, body) if isinstance(node, While) else Block(body)

    def _loop(self, node: For, around: Collection[Axis]) -> list[Statement]:
        nest, inside = arranged(node, around), [*around, node.variable]
        wide = any(self.is_shared(each, inside) for each in node.body)
        if nest.steps > 1 and (nest.steps >= LEAST_SHARED or not wide):
            deeper = [*around, *[loop.variable for loop in (*nest.shared, *nest.serial)]]
            if not any(self.is_shared(each, deeper) for each in nest.body):
                return [_shared(nest)]
        if nest.steps > 1 and not nest.serial and _halves_first(nest.body):
            return [nested(nest.shared, LoopKind.WARPS, nest.body)]
        combined = self._combined(nest)
        if combined:
            return combined
        if not wide:
            return [self._alone(node)]
        return self._apart(node, nest, around) or [
            For(node.variable, LoopKind.SERIAL, tuple(self._block(node.body, inside)), node.count)
        ]

    def _apart(self, node: For, nest: Arranged, around: Collection[Axis]) -> list[Statement] | None:
        """A loop around each statement of a loop, if its steps are independent and there is room
        for what they have of their own."""
        if node not in nest.shared or len(node.body) == 1:
            return None
        declared, loops = parted(node)
        if size_of(declared) * FOR_STEPS > self.room:
            return None
        fewer = joined(loops, around)
        made = loops if len(fewer) == 1 else fewer  # which is the loop that there was
        return [*declared, *self._block(made, around)]

    def _combined(self, nest: Arranged) -> list[Statement] | None:
        """A loop that combines values into registers in any order: each thread some, then all."""
        found: list[Statement] = []
        if any(loop.count is not None for loop in nest.serial):
            return None
        for each in nest.body:
            if isinstance(each, Let):
                continue
            if not isinstance(each, Store) or each.buffer.scope is not Scope.REGISTER:
                return None
            value = each.value
            if not isinstance(value, Op) or value.name not in ORDER_FREE:
                return None
            if sum(_is_load(part, each.buffer) for part in value.operands) != 1:
                return None
            found.append(Combine(each.buffer, value.name))
        own = [each.buffer for each in found if isinstance(each, Combine)]
        if not own or len(set(own)) < len(own) or not self.single.isdisjoint(own):
            return None
        if _reads(nest.body, own) != len(own):
            return None
        loops = (*nest.shared, *nest.serial)
        return [nested(loops, LoopKind.THREADS, nest.body), *found]

    def is_shared(self, node: Statement, around: Collection[Axis], least: int = 2) -> bool:
        """Whether threads would share some loop in a statement, of so many steps."""
        if isinstance(node, (While, Block)):
            return any(self.is_shared(each, around, least) for each in node.body)
        if isinstance(node, If):
            return any(
                self.is_shared(each, around, least) for each in (*node.then, *node.otherwise)
            )
        if isinstance(node, HalveRow):
            return node.extent // 2 >= least
        if not isinstance(node, For):
            return False
        nest = arranged(node, around)
        if nest.steps >= least or (node.variable.extent >= least and self._combined(nest)):
            return True
        inside = [*around, *[loop.variable for loop in (*nest.shared, *nest.serial)]]
        return any(self.is_shared(each, inside, least) for each in nest.body)


def _once(body: tuple[Statement, ...], kind: LoopKind = LoopKind.THREADS) -> Statement:
    """Statements for one thread, or one warp."""
    return For(Axis("once", 1), kind, body)


def _halves_first(body: Sequence[Statement]) -> bool:
    """Whether statements halve rows, and then do what one thread does."""
    halved = [isinstance(each, HalveRow) for each in body]
    rest = [each for each in body if not isinstance(each, HalveRow)]
    return halved[0] and all(halved[: sum(halved)]) and all(isinstance(e, Store) for e in rest)


def _with_what_follows(body: Sequence[Statement]) -> list[Statement]:
    """With what one thread does after a warp has halved rows done by that warp's first one."""
    made: list[Statement] = []
    for each in body:
        last = made[-1] if made else None
        if _is_once(each, LoopKind.THREADS) and _is_once(last, LoopKind.WARPS):
            assert isinstance(last, For)
            assert isinstance(each, For)
            if _halves_first((*last.body, *each.body)):
                made[-1] = replace(last, body=(*last.body, *each.body))
                continue
        made.append(each)
    return made


def _is_once(node: Statement | None, kind: LoopKind) -> bool:
    return isinstance(node, For) and node.kind is kind and node.variable.name == "once"


def _shared(nest: Arranged) -> Statement:
    inner = nest.body
    if nest.serial:
        inner = (nested(nest.serial, LoopKind.SERIAL, inner),)
    return nested(nest.shared, LoopKind.THREADS, inner)


def _is_load(node: object, buffer: Buffer) -> bool:
    return isinstance(node, Load) and node.source is buffer


def _reads(body: Sequence[Statement], buffers: Sequence[Buffer]) -> int:
    """How many loads of some buffers there are."""
    values = [value for each in walk_statements(body) for value in values_of(each)]
    return sum(
        isinstance(node, Load) and node.source in buffers
        for value in values
        for node in walk(value)
    )


def _partly_written(body: Sequence[Statement]) -> set[Buffer]:
    """Registers of all threads that some write in a loop that they share, other than to combine."""
    found: set[Buffer] = set()
    for at, each in enumerate(body):
        if isinstance(each, For) and each.kind in OF_BLOCK:
            inner = list(walk_statements(each.body))
            known = {node.buffer for node in inner if isinstance(node, Alloc)}
            for after in body[at + 1 :]:
                if not isinstance(after, Combine):
                    break
                known.add(after.buffer)
            written = {buffer for node in inner for buffer in written_by(node)} - known
            found |= {buffer for buffer in written if buffer.scope is Scope.REGISTER}
        else:
            for part in parts_of(each):
                found |= _partly_written(part)
    return found


def parts_of(node: Statement) -> tuple[Sequence[Statement], ...]:
    """The lists of statements directly inside one."""
    if isinstance(node, If):
        return (node.then, node.otherwise)
    return (node.body,) if isinstance(node, (For, While, Block)) else ()


def _in_shared_memory(
    body: tuple[Statement, ...], single: Collection[Buffer]
) -> tuple[Statement, ...]:
    """With the buffers of the block, but for registers that all threads have alike, shared."""
    new = {
        each.buffer: replace(each.buffer, scope=Scope.SHARED)
        for each in _outside(body)
        if isinstance(each, Alloc)
        and (each.buffer.scope is not Scope.REGISTER or each.buffer in single)
    }
    return with_buffers(body, new)


def _outside(body: Sequence[Statement]) -> list[Statement]:
    """The statements that are in no loop that threads share."""
    found: list[Statement] = []
    for each in body:
        found.append(each)
        if not isinstance(each, For) or each.kind not in OF_BLOCK:
            for part in parts_of(each):
                found += _outside(part)
    return found
