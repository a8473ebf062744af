"""A loop cut into runs of steps: where tests change, and where the last step is shorter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tinyfuse.loops.ir import Alloc, Block, For, If, LoopKind, Statement
from tinyfuse.lower.bounds import Range
from tinyfuse.records import dataclass
from tinyfuse.schedule.places import MAX_PIECES, Loop
from tinyfuse.stage.expr import IndexTest
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Order


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of steps of a loop, first <= counter < stop; `variable` is None for a single step.

    test: the variable of a loop further out whose value decides whether this piece runs.
    """

    range: Range
    first: int
    stop: int
    variable: Axis | None = None
    test: Axis | None = None

    def at(self, number: Affine) -> Range:
        """The range of the step of this number."""
        if self.variable is None:
            return self.range
        return Range(self.range.base.substitute({self.variable: number}), self.range.extent)


# The same of a loop in which other stages are computed: without the cuts each step might need all
# of them.
MAX_FILLED_PIECES = 32


def parts(
    low: int, high: int, cuts: Sequence[int], most: int = MAX_PIECES
) -> list[tuple[int, int]]:
    """[low, high) cut at the places inside it, unless that makes more pieces than allowed."""
    inside = sorted({cut for cut in cuts if low < cut < high})
    edges = [low, *(inside if len(inside) < most else []), high]
    return list(pairwise(edges)) if low < high else []


def run(name: str, start: int, stop: int) -> Piece:
    if stop - start == 1:
        return Piece(Range(affine(start), 1), start, stop)
    return repeat(name, start, stop)


def repeat(name: str, start: int, stop: int) -> Piece:
    """A loop, even of one step: so gcc 12 still uses vectors before and after it."""
    variable = Axis(name, stop - start, start)
    return Piece(Range(affine(variable), 1), start, stop, variable)


def steps(loop: Loop, range_: Range, fresh: Callable[[str], str]) -> list[Piece]:
    """Steps of several elements; the last one may be shorter."""
    count = range_.extent // loop.step
    pieces = []
    if loop.kind is LoopKind.UNROLL:
        starts = [range_.base + turn * loop.step for turn in range(count)]
        pieces = [Piece(Range(s, loop.step), at, at + 1) for at, s in enumerate(starts)]
    elif count > 1:
        variable = Axis(fresh(f"{loop.axis.name}_outer"), count)
        main = Range(range_.base + affine(variable) * loop.step, loop.step)
        pieces.append(Piece(main, 0, count, variable))
    elif count:
        pieces.append(Piece(Range(range_.base, loop.step), 0, 1))
    pieces += _last_step(loop, range_)
    return pieces


def _last_step(loop: Loop, range_: Range) -> list[Piece]:
    """The step after all whole ones, if there is something left for it."""
    count, tail = divmod(range_.extent, loop.step)
    if not tail:
        return []
    if count and loop.shifted:
        last = Range(range_.base + (range_.extent - loop.step), loop.step)
    else:
        last = Range(range_.base + count * loop.step, tail)
    return [Piece(last, count, count + 1)]


def numbered_steps(
    loop: Loop, start: int, extent: int, cuts: Sequence[int], fresh: Callable[[str], str]
) -> list[Piece]:
    """Steps of several elements that stay where they are, whatever changes in them: for threads, or
    for what is computed in a step. Those in which a test changes are pieces of their own. All are
    numbered from 0."""
    count = extent // loop.step
    places = [cut - start for cut in cuts if start < cut < start + extent]
    inside = [edge for at in places for edge in (at // loop.step, -(-at // loop.step))]
    name = fresh(f"{loop.axis.name}_outer") if count > 1 else ""
    pieces = []
    for low, high in parts(0, count, inside, MAX_FILLED_PIECES):
        if high - low == 1:
            first = Range(affine(start + low * loop.step), loop.step)
            pieces.append(Piece(first, low, high))
        else:
            variable = Axis(name, high - low, low)
            pieces.append(
                Piece(Range(variable * loop.step + start, loop.step), low, high, variable)
            )
    pieces += _last_step(loop, Range(affine(start), extent))
    return pieces


def choices(position: Affine, cuts: Sequence[int]) -> list[Piece]:
    """A single position that moves with an outer loop: a piece for each part of its values."""
    variable, offset = position.terms[0][0], position.constant
    if len(position.terms) > 1 or not isinstance(variable, Axis) or position.terms[0][1] != 1:
        return [Piece(Range(position, 1), 0, 1)]
    low, high = position.interval()
    between = parts(low, high + 1, cuts)
    if len(between) == 1:
        return [Piece(Range(position, 1), 0, 1)]
    pieces = [run(variable.name, start - offset, stop - offset) for start, stop in between]
    return [
        Piece(Range(piece.range.base + offset, 1), piece.first, piece.stop, test=variable)
        for piece in pieces
    ]


def assembled(
    loop: Loop,
    shared: Axis | None,
    pieces: list[Piece],
    bodies: list[list[Statement]],
    before: list[list[Statement]],
) -> list[Statement]:
    """The statements of all pieces, each in the loop or behind the test that it needs.

    shared: the counter of one loop that runs them all, so that threads can share them. before: what
    runs before the loop of each piece.
    """
    if pieces and pieces[0].test:
        return choice(affine(pieces[0].test), pieces, bodies)
    if shared:
        return [For(shared, loop.kind, tuple(choice(affine(shared), pieces, bodies)))]
    statements: list[Statement] = []
    for piece, body, early in zip(pieces, bodies, before, strict=True):
        statements += early
        if piece.variable and body:
            body = [For(piece.variable, loop.kind, tuple(body))]
        elif len(pieces) > 1 and any(isinstance(statement, Alloc) for statement in body):
            body = [Block(tuple(body))]
        statements += body
    return statements


def choice(counter: Affine, pieces: list[Piece], bodies: list[list[Statement]]) -> list[Statement]:
    body = bodies[-1]
    for piece, part in reversed(list(zip(pieces[:-1], bodies[:-1], strict=True))):
        body = [If(IndexTest(counter, None, piece.stop), tuple(part), tuple(body))]
    return body


def rounds(order: Order, length: int) -> list[tuple[int, int, int]]:
    """(number of pairs, distance between pairs, distance within a pair) of each round of a tree."""
    if order is Order.HALVING:
        halves = [length >> shift for shift in range(1, length.bit_length())]
        return [(half, 1, half) for half in halves]
    widths = [1 << shift for shift in range((length - 1).bit_length())]
    return [(-(-(length - width) // (2 * width)), 2 * width, width) for width in widths]
