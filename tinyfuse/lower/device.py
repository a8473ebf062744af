"""Kernels for a device: which of their loops its blocks and threads share.

A nest whose innermost statements are a few scalars is shared by all threads of the grid, step by
step. Where more loops can be shared inside the outer ones, as in each row of a softmax, the outer
ones are shared by blocks and the inner ones by the threads of each. Otherwise one block runs the
kernel, and what nobody can share is done by one thread, slowly but right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.cost import count
from tinyfuse.loops.independence import accesses
from tinyfuse.loops.ir import (
    OF_BLOCK,
    Alloc,
    Buffer,
    For,
    HalveRow,
    Kernel,
    Let,
    LoopKind,
    Loops,
    Scope,
    SortRow,
    Statement,
    Store,
    While,
    walk_statements,
)
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import with_buffers
from tinyfuse.loops.steps import map_kernels
from tinyfuse.lower.barriers import WARP, with_barriers
from tinyfuse.lower.device_blocks import BlockLowering
from tinyfuse.lower.device_names import declared_first, with_axes, with_names, without
from tinyfuse.lower.device_nests import (
    Arranged,
    arranged,
    by_halves,
    in_pieces,
    joined,
    nested,
    simplified,
    with_places,
)
from tinyfuse.lower.device_registers import WORDS, Remedies, Remedy, halves, needed
from tinyfuse.lower.device_rounds import with_rounds_together
from tinyfuse.lower.device_scans import LEAST_IN_KERNELS, in_parts, scanned
from tinyfuse.lower.device_scatters import by_elements
from tinyfuse.lower.device_sums import with_sums_together
from tinyfuse.lower.device_tensors import TENSOR_SHAPES, TensorLowering, tensor_kind
from tinyfuse.lower.device_tile_loops import TileLowering
from tinyfuse.lower.device_tiles import SHAPES, THREADS, Tile, tile_of
from tinyfuse.lower.device_transposes import lowered, transposed
from tinyfuse.lower.device_vectors import VECTOR_BYTES, vectors
from tinyfuse.lower.scratch import aligned
from tinyfuse.machine import Device
from tinyfuse.records import replace
from tinyfuse.stage.index import Axis, flat_index

# Steps of inner loops from which on the threads of a block share them, rather than each thread
# going through all of them.
LEAST_INSIDE = 32
# Bytes that each thread may have of its own.
OWN_BYTES = 4096
# Elements that kernels visit from which on nests one after the other are kernels of their own.
LEAST_APART = 1 << 14
# Threads of blocks that a multiprocessor holds at once, each of which may have 128 registers.
AT_ONCE = 512
MANY = 1 << 16  # registers that are never too few
# Bytes of shared memory for what combines the values of all threads.
KEPT = 512


def on_device(loops: Loops, device: Device, remedies: Remedies | None = None) -> Loops:
    """The program with all kernels in blocks and threads of a device. remedies: for those kernels
    that spill registers otherwise."""
    return kernels_on_device(loops, device, remedies or {})[0]


def kernels_on_device(
    loops: Loops, device: Device, remedies: Remedies
) -> tuple[Loops, dict[str, str]]:
    """(the same, for each of its kernels the name of the one that it does a part of)."""
    mapping = _Mapping(loops, device, remedies)
    kernels = {kernel: mapping.kernels(kernel) for kernel in loops.kernels}
    made = tuple([each for kernel in loops.kernels for each in kernels[kernel]])
    steps = loops.steps and map_kernels(loops.steps, lambda kernel: kernels[kernel])
    scratch, size = list(loops.scratch), loops.scratch_bytes
    for buffer in mapping.memory:
        scratch.append((buffer, size))
        size += aligned(buffer.nbytes)
    found = replace(loops, kernels=made, steps=steps, scratch=tuple(scratch), scratch_bytes=size)
    return found, {each.name: k.function.name for k, all_ in kernels.items() for each in all_}


def runs_alone(kernel: Kernel) -> bool:
    """Whether one thread of a device, or of each block, goes through loops that none can share."""
    return any(
        isinstance(each, For)
        and each.kind is LoopKind.THREADS
        and _most_shared((each,)) == 1
        and any(isinstance(inner, (For, While, SortRow)) for inner in walk_statements(each.body))
        for each in walk_statements(kernel.body)
    )


class _Mapping:
    def __init__(self, loops: Loops, device: Device, remedies: Remedies) -> None:
        self.device, self.remedies = device, remedies
        self.remedy = Remedy.NONE  # for the kernel at hand
        self.fitted: dict[str, None] = {}  # what is done for its registers
        self.taken = {kernel.name for kernel in loops.kernels}
        self.made: dict[Kernel, list[Kernel]] = {}  # of each function
        known = (*loops.inputs, *loops.outputs, *[buffer for buffer, _ in loops.scratch])
        self.buffers = {buffer.name for buffer in known}
        self.memory: list[Buffer] = []  # in place of shared memory

    def kernels(self, kernel: Kernel) -> list[Kernel]:
        """The kernels of the device that are one of the program's."""
        if kernel.again is None:
            return self.function(kernel)
        pairs = zip(kernel.function.parameters, kernel.parameters, strict=True)
        given = dict(pairs)
        return [self.called_again(each, given, kernel) for each in self.function(kernel.again)]

    def called_again(
        self, function: Kernel, given: Mapping[Buffer, Buffer], kernel: Kernel
    ) -> Kernel:
        own = [each for each in function.parameters if each in function.written]
        written = frozenset([given.get(each, each) for each in own])
        return replace(
            function,
            name=unused(kernel.name, self.taken),
            parameters=tuple([given.get(buffer, buffer) for buffer in function.parameters]),
            written=written,
            stages=kernel.stages,
            sources=kernel.sources,
            again=function,
        )

    def function(self, kernel: Kernel) -> list[Kernel]:
        if kernel not in self.made:
            self.remedy = self.remedies.get(kernel.name, Remedy.NONE)
            self.fitted = {}
            body = [made for each in kernel.body for made in self.scanned(each)]
            is_long = len(body) > len(kernel.body)
            body = self.owned(self.outside(simplified(body, ())))
            halvings = max(0, self.remedy - Remedy.FEWER)
            parts: list[Sequence[Statement]] = [body]
            if kernel.bound is None:
                found = in_parts(body) if is_long else self.parts(body)
                parts = [p for part in found for p in self.fitting(part, halvings)]
            names = [kernel.name] if len(parts) == 1 else self.names(kernel, len(parts))
            pairs = zip(parts, names, strict=True)
            self.made[kernel] = [self.made_of(kernel, part, name) for part, name in pairs]
        return self.made[kernel]

    def scanned(self, node: Statement) -> list[Statement]:
        """Long running values in parts, of which each step is a kernel of its own."""
        made = scanned(node) if isinstance(node, For) and _steps(node) >= LEAST_IN_KERNELS else None
        if made is None:
            return [node]
        kept = [each.buffer for each in made if isinstance(each, Alloc)]
        new = {old: self.new_memory(old.name, old.dtype, old.size) for old in kept}
        return list(with_buffers([each for each in made if not isinstance(each, Alloc)], new))

    def outside(self, body: list[Statement]) -> list[Statement]:
        """With what all nests of a kernel share in the memory of the device, if one block's shared
        memory has no room for it: the nests can be kernels of their own then."""
        declared = [e.buffer for e in body if isinstance(e, Alloc) and e.buffer.size > 1]
        if sum([buffer.nbytes for buffer in declared]) <= self.device.shared_bytes - KEPT:
            return body
        new = {old: self.new_memory(old.name, old.dtype, old.size, declared) for old in declared}
        kept = [e for e in body if not (isinstance(e, Alloc) and e.buffer in new)]
        return list(with_buffers(kept, new))

    def owned(self, body: list[Statement]) -> list[Statement]:
        """With scatters as nests over the elements of their results."""
        threads = self.device.blocks * self.device.threads
        made: list[Statement] = []
        for each in body:
            *parts, last = by_elements(each, threads, self.new_memory)
            at = len(made) - bool(parts and made and not _meet(made[-1], parts))
            made = [*made[:at], *parts, *made[at:], last]
        return joined(made, ()) if len(made) > 1 else made

    def fitting(self, part: Sequence[Statement], halvings: int) -> list[Sequence[Statement]]:
        """A part of a kernel, or parts of it that each have fewer values at once."""
        if len(part) > 1 or not isinstance(loop := part[0], For):
            return [part]
        nest = arranged(loop, ())
        both = halves(nest) if nest.shared and (halvings or self.is_too_much(nest)) else None
        if both is None:
            return [part]
        self.fitted[WORDS[Remedy.HALVES]] = None
        loops = [
            [nested((*each.shared, *each.serial), LoopKind.SERIAL, each.body)] for each in both
        ]
        return [p for each in loops for p in self.fitting(each, max(0, halvings - 1))]

    def is_too_much(self, nest: Arranged) -> bool:
        """Whether a step of a nest has more values at once than a thread has registers."""
        tile = self.tile_of(nest, MANY)
        if tile:
            return self.tile_of(nest, self.device.registers) is None
        return needed(nest.body, 1) > self.device.registers

    def tile_of(self, nest: Arranged, room: int) -> Tile | None:
        if any(isinstance(each, HalveRow) for each in walk_statements(nest.body)):
            return None
        fewest = int(self.remedy >= Remedy.FEWER)
        nest = replace(nest, body=with_sums_together(nest.body))
        tile = tile_of(nest, room, TENSOR_SHAPES[fewest:])
        if tile and tensor_kind(tile):
            return tile
        return tile_of(nest, room, SHAPES[fewest:])

    def names(self, kernel: Kernel, parts: int) -> list[str]:
        numbered = [f"{kernel.name}_{number + 1}" for number in range(parts)]
        return [unused(name, self.taken) for name in numbered]

    def parts(self, body: Sequence[Statement]) -> list[Sequence[Statement]]:
        """The nests of a kernel, each by itself where they are large and share nothing."""
        pieces = self.tiled_pieces(body)
        if pieces:
            return [[each] for each in pieces]
        apart = len(body) > 1 and all(isinstance(each, For) for each in body)
        if not apart or _visits(body) < LEAST_APART:
            return [body]
        return [[each] for each in with_rounds_together(body)]

    def tiled_pieces(self, body: Sequence[Statement]) -> list[Statement]:
        """A loop in two where it does one thing in its first steps and another in the others, as
        long sums in blocks do of which the last one is shorter: if both are tiled then."""
        pieces = [piece for each in body for piece in in_pieces(each)] if len(body) == 1 else []
        loops = [loop for piece in pieces for loop in joined([piece], ())]
        nests = [arranged(loop, ()) for loop in loops if isinstance(loop, For)]
        tiled = len(nests) == len(loops) > 1
        return loops if tiled and all(map(self.is_tiled, nests)) else []

    def is_tiled(self, nest: Arranged) -> bool:
        return self.tile_of(nest, self.device.registers) is not None

    def made_of(self, kernel: Kernel, part: Sequence[Statement], name: str) -> Kernel:
        made = self.bound(kernel, part) if kernel.bound else self.mapped(part)
        blocks, threads, body = made
        body = with_names(body, self.buffers)
        counts = count(body)
        body = with_axes(body, {buffer.name for buffer in counts.parameters()})
        return replace(
            kernel,
            name=name,
            body=body,
            parameters=counts.parameters(),
            written=frozenset(counts.written),
            cost=counts.cost(),
            grain=1,
            blocks=blocks,
            threads=threads,
            at_once=self.at_once(body, threads),
            fitted=tuple(dict.fromkeys([*self.fitted, *self.remedied()])),
        )

    def at_once(self, body: Sequence[Statement], threads: int) -> int:
        """Blocks that a multiprocessor is to hold at once: as many as have registers for all, where
        the compiler would save or waste them without being told."""
        made = [each.buffer for each in walk_statements(body) if isinstance(each, Alloc)]
        tiled = any(buffer.scope is Scope.LOCAL for buffer in made)
        return AT_ONCE // threads if tiled or self.remedy else 0

    def remedied(self) -> list[str]:
        return [WORDS[self.remedy]] if self.remedy else []

    def bound(
        self, kernel: Kernel, body: Sequence[Statement]
    ) -> tuple[int, int, tuple[Statement, ...]]:
        """The same for a kernel of which a schedule says who shares its outermost loop."""
        *named, last = body
        nest = arranged(last, ()) if isinstance(last, For) else None
        if nest and nest.before and all(isinstance(each, Let) for each in named):
            if kernel.bound is LoopKind.BLOCKS:
                return self.by_blocks(named, replace(nest, before=1))
            if _own_bytes(nest.body) <= OWN_BYTES:
                return self.by_all(named, nest)
        raise ScheduleError(
            f"bind({kernel.stages[-1]}): its steps have too much of their own for a thread, or need"
            " what others do: bind the loop to blocks, or to nothing"
        )

    def mapped(self, body: Sequence[Statement]) -> tuple[int, int, tuple[Statement, ...]]:
        """(blocks, threads, statements) of a kernel."""
        *named, last = body
        if isinstance(last, For) and all(isinstance(each, Let) for each in named):
            nest = arranged(last, ())
            if nest.steps > 1:
                tile = None if named else self.tile_of(nest, self.device.registers)
                if tile:
                    return self.by_tiles(tile)
                across = None if named else transposed(nest)
                if across:
                    return self.in_tiles(*lowered(across))
                found = self.by_steps(named, nest)
                if found:
                    return found
                if nest.before:
                    return self.by_blocks(named, nest)
        return self.in_block((), named, [last])

    def by_steps(
        self, named: Sequence[Statement], nest: Arranged
    ) -> tuple[int, int, tuple[Statement, ...]] | None:
        """Each thread of the grid takes one step at a time, if there is nothing better to share."""
        lowering = BlockLowering(self.device.shared_bytes)
        around = [loop.variable for loop in (*nest.shared, *nest.serial)]
        if any(lowering.is_shared(each, around, LEAST_INSIDE) for each in nest.body):
            return None
        if _own_bytes(nest.body) > OWN_BYTES:
            return None
        return self.by_all(named, nest)

    def by_all(
        self, named: Sequence[Statement], nest: Arranged
    ) -> tuple[int, int, tuple[Statement, ...]]:
        inner = nest.body
        if nest.serial:
            inner = (nested(nest.serial, LoopKind.SERIAL, inner),)
        wide = vectors(nest, [*self.buffers]) if nest.steps >= LEAST_APART else None
        if wide and (self.remedy >= Remedy.FEWER or self.is_too_wide(nest)):
            self.fitted[WORDS[Remedy.FEWER]] = None
        elif wide:
            nest, inner = wide
        threads = min(self.device.threads, _warps(nest.steps))
        blocks = min(self.device.blocks, -(-nest.steps // threads))
        return blocks, threads, (*named, by_halves(nested(nest.shared, LoopKind.GRID, inner)))

    def is_too_wide(self, nest: Arranged) -> bool:
        """Whether the elements of a vector have more values at once than there are registers."""
        stores = [each for each in nest.body if isinstance(each, Store)]
        lanes = max([VECTOR_BYTES // each.buffer.dtype.itemsize for each in stores])
        return needed(nest.body, lanes) > self.device.registers

    def by_tiles(self, tile: Tile) -> tuple[int, int, tuple[Statement, ...]]:
        kind = tensor_kind(tile)
        ahead = not self.remedy
        lowering = TensorLowering(tile, kind, ahead) if kind else TileLowering(tile, ahead)
        return self.in_tiles(lowering.outer, lowering.statements(), THREADS)

    def in_tiles(
        self, outer: Sequence[For], body: tuple[Statement, ...], threads: int = 0
    ) -> tuple[int, int, tuple[Statement, ...]]:
        """A tile of the result in each block. threads: as many as it is made for, if it is."""
        around, threads = [loop.variable for loop in outer], threads or self.device.threads
        body = with_barriers(body, around, threads)
        blocks = prod([axis.extent for axis in around])
        return blocks, threads, (nested(outer, LoopKind.BLOCKS, body),)

    def by_blocks(
        self, named: Sequence[Statement], nest: Arranged
    ) -> tuple[int, int, tuple[Statement, ...]]:
        outer = nest.shared[: nest.before]
        rest = (*nest.shared[nest.before :], *nest.serial)
        inner = outer[-1].body if rest else nest.body
        return self.in_block(outer, named, inner)

    def in_block(
        self, outer: Sequence[For], named: Sequence[Statement], inner: Sequence[Statement]
    ) -> tuple[int, int, tuple[Statement, ...]]:
        around = [loop.variable for loop in outer]
        body = BlockLowering(self.device.shared_bytes).statements((*named, *inner), around)
        threads = min(self.device.threads, _warps(_most_shared(body)))
        blocks = prod([axis.extent for axis in around])
        body = declared_first(self.in_room(with_barriers(body, around, threads), around, blocks))
        return blocks, threads, (nested(outer, LoopKind.BLOCKS, body),) if outer else body

    def in_room(
        self, body: tuple[Statement, ...], around: Sequence[Axis], blocks: int
    ) -> tuple[Statement, ...]:
        """With what shared memory has no room for in the memory of the device, each block's apart,
        the largest first."""
        declared = [each.buffer for each in walk_statements(body) if isinstance(each, Alloc)]
        shared = sorted([b for b in declared if b.scope is Scope.SHARED], key=lambda b: b.nbytes)
        while sum([aligned(buffer.nbytes) for buffer in shared]) > self.device.shared_bytes - KEPT:
            old = shared.pop()
            new = self.new_memory(old.name, old.dtype, old.size * blocks, declared)
            first = flat_index(around, [axis.extent for axis in around]) * old.size
            body = without(with_places(body, old, new, first.__add__), new)
        return body

    def new_memory(
        self, name: str, dtype: np.dtype, size: int, declared: Sequence[Buffer] = ()
    ) -> Buffer:
        """Scratch of the device. declared: buffers that have a name already."""
        name = unused(name, {*self.buffers, *[buffer.name for buffer in declared]})
        self.buffers.add(name)
        self.memory.append(Buffer(name, dtype, size, Scope.SCRATCH))
        return self.memory[-1]


def _meet(one: Statement, others: Sequence[Statement]) -> bool:
    """Whether statements use the same buffers."""
    return not accesses((one,), {}).keys().isdisjoint(accesses(others, {}))


def _visits(body: Sequence[Statement]) -> int:
    """How many elements the nests visit, roughly."""
    total = 0
    for each in body:
        loops = [node for node in walk_statements((each,)) if isinstance(node, For)]
        total += max([_steps(loop) for loop in loops], default=1)
    return total


def _steps(loop: For) -> int:
    extents = [loop.variable.extent]
    while len(loop.body) == 1 and isinstance(inner := loop.body[0], For):
        loop = inner
        extents.append(loop.variable.extent)
    return prod(extents)


def _own_bytes(body: Sequence[Statement]) -> int:
    declared = [each.buffer for each in walk_statements(body) if isinstance(each, Alloc)]
    return sum([buffer.nbytes for buffer in declared if buffer.scope is not Scope.REGISTER])


def _most_shared(body: Sequence[Statement]) -> int:
    """The most steps that the threads of a block share at once."""
    most = 1
    for each in walk_statements(body):
        if isinstance(each, For) and each.kind in OF_BLOCK:
            steps, inner = each.variable.extent, each.body
            steps *= WARP if each.kind is LoopKind.WARPS else 1
            while len(inner) == 1 and isinstance(node := inner[0], For):
                if node.kind is not each.kind:
                    break
                steps, inner = steps * node.variable.extent, node.body
            most = max(most, steps)
    return most


def _warps(steps: int) -> int:
    """As many threads, in whole warps."""
    return -(-steps // WARP) * WARP
