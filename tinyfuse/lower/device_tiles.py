"""Sums over pairs of rows, as matrix products are, in tiles of the result.

A block computes a tile: of what its sums read along the rows of the tile, and of what they read
along its columns, it copies a few steps at a time to shared memory, and each thread takes several
rows and columns, so that it loads less than it computes. Each sum stays one chain in its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    Scope,
    Statement,
    Store,
)
from tinyfuse.loops.rewrite import substitute_axes
from tinyfuse.lower.device_nests import Arranged
from tinyfuse.lower.device_registers import OTHERS, WORD
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import (
    Expr,
    Load,
    axes_of,
    walk,
)
from tinyfuse.stage.index import Axis, affine

SIDE = 16  # threads of a block along rows, and along columns
THREADS = SIDE * SIDE
# By the least extent of rows and columns: of how many of both each thread has, and steps at a time.
SHAPES = ((128, 8, 8), (32, 4, 16))
Shape = tuple[int, int, int]


@dataclass(frozen=True, eq=False, slots=True)
class Tile:
    """around: loops that each block is at one step of. rows, columns: those a tile is cut from.
    each: rows, and columns, of a thread. steps: of the sums at a time. outer: loops of the sums
    around the innermost one, `along`. before, after: what is done for each element, besides."""

    around: tuple[For, ...]
    rows: Axis
    columns: Axis
    each: int
    steps: int
    outer: tuple[For, ...]
    along: Axis
    sums: tuple[Store, ...]
    accumulators: tuple[Buffer, ...]
    before: tuple[Store, ...]
    after: tuple[Statement, ...]

    @property
    def side(self) -> int:
        return SIDE * self.each

    @property
    def registers(self) -> int:
        """Of a thread, roughly: its sums, what one step of them needs, and the next ones."""
        sums = sum([_words(buffer) for buffer in self.accumulators]) * self.each**2
        ahead = self.steps * self.side // THREADS
        return sums + sum(map(_words, self.parts)) * (self.each + ahead) + OTHERS

    @property
    def parts(self) -> list[Expr]:
        """What is copied to shared memory."""
        return list(dict.fromkeys(p for each in self.sums for p in _staged(each.value, self)))


def tile_of(nest: Arranged, room: int, shapes: Sequence[Shape] = SHAPES) -> Tile | None:
    """How to tile what a nest computes for each step; None where it is no such sum, or where no
    shape has room in so many registers."""
    loops = [each for each in nest.body if isinstance(each, For)]
    if len(loops) != 1 or nest.serial or len(nest.shared) < 2:
        return None
    chain, at = [loops[0]], nest.body.index(loops[0])
    while len(chain[-1].body) == 1 and isinstance(inner := chain[-1].body[0], For):
        chain.append(inner)
    if any(each.count is not None for each in chain):
        return None
    chain = _flattened(chain)
    sums, start = _stores(chain[-1].body), _stores(nest.body[:at])
    if sums is None or start is None:
        return None
    registers = [each.buffer for each in sums]
    made = {each.buffer for each in nest.body if isinstance(each, Alloc)}
    alone = all(buffer.scope is Scope.REGISTER for buffer in registers)
    if not alone or len({*registers}) < len(registers) or {*registers} != made:
        return None
    found = Tile(
        around=(),
        rows=nest.shared[-2].variable,
        columns=nest.shared[-1].variable,
        each=0,
        steps=0,
        outer=tuple(chain[:-1]),
        along=chain[-1].variable,
        sums=sums,
        accumulators=tuple(registers),
        before=start,
        after=tuple(nest.body[at + 1 :]),
    )
    placed = [_placed(found, nest, *pair, room, shapes) for pair in _pairs(nest)]
    return next(filter(None, placed), None)


def _flattened(chain: list[For]) -> list[For]:
    """Loops right inside each other with a longer innermost one, where that is short: over the
    steps of several of them, in their order."""
    while len(chain) > 1 and chain[-1].variable.extent < SHAPES[-1][2]:
        *others, outer, inner = chain
        if outer.variable.start or inner.variable.start:
            return chain
        first, second = outer.variable, inner.variable
        both = Axis(f"{first.name}_{second.name}", first.extent * second.extent)
        step = affine(both)
        values = {first: step // second.extent, second: step % second.extent}
        chain = [*others, replace(inner, variable=both, body=substitute_axes(inner.body, values))]
    return chain


def _stores(body: Sequence[Statement]) -> tuple[Store, ...] | None:
    """Statements that only store, besides those that make buffers."""
    found = [each for each in body if isinstance(each, Store)]
    others = [each for each in body if not isinstance(each, (Store, Alloc))]
    return None if others else tuple(found)


def _pairs(nest: Arranged) -> list[tuple[For, For]]:
    """Loops over rows and columns, the last of the nest first."""
    return [
        (rows, columns)
        for columns, rows in product(reversed(nest.shared), repeat=2)
        if nest.shared.index(rows) < nest.shared.index(columns)
    ]


def _placed(
    tile: Tile, nest: Arranged, rows: For, columns: For, room: int, shapes: Sequence[Shape]
) -> Tile | None:
    """With rows and columns, in the first shape that they and the registers have room for."""
    axes = rows.variable, columns.variable
    if tile.along.start or axes[0].start or axes[1].start:
        return None
    around = tuple([loop for loop in nest.shared if loop not in (rows, columns)])
    found = replace(tile, around=around, rows=axes[0], columns=axes[1])
    for least, each, steps in shapes:
        found = replace(found, each=each, steps=steps)
        fits = min(axis.extent for axis in axes) >= least and tile.along.extent >= steps
        if fits and found.registers <= room:
            return found if _is_pair(found) else None
    return None


def _is_pair(found: Tile) -> bool:
    """Whether what is summed is loaded along rows and along columns, and never along both."""
    sides = [depends(part, found) for sum_ in found.sums for part in _staged(sum_.value, found)]
    both = (True, False) in sides and (False, True) in sides
    unstaged = any(
        isinstance(node, Load) and node.source not in found.accumulators and node not in inside
        for sum_ in found.sums
        for inside in [_inside(_staged(sum_.value, found))]
        for node in walk(sum_.value)
    )
    return both and not unstaged


def _inside(parts: Sequence[Expr]) -> set[Expr]:
    return {node for part in parts for node in walk(part)}


def depends(part: Expr, tile: Tile) -> tuple[bool, bool]:
    """Whether an expression depends on the rows, and on the columns."""
    axes = {axis for node in walk(part) for axis in axes_of(node)}
    return tile.rows in axes, tile.columns in axes


def _staged(root: Expr, tile: Tile) -> list[Expr]:
    """The largest parts of what is summed that depend on rows or columns alone, not on both, and
    that something is loaded for."""
    found: list[Expr] = []
    pending = [root]
    while pending:
        node = pending.pop()
        loads = [each for each in walk(node) if isinstance(each, Load)]
        own = any(load.source in tile.accumulators for load in loads)
        if loads and not own and depends(node, tile) != (True, True):
            found.append(node)
        else:
            pending += reversed(node.parts)
    return list(dict.fromkeys(found))


def _words(value: Buffer | Expr) -> int:
    return max(1, value.dtype.itemsize // WORD)
