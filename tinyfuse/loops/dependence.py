"""Whether a kernel reads what an array holds before it stores there, if two arrays become one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from tinyfuse.loops.cost import Steps, chosen_steps, decisive_axis
from tinyfuse.loops.ir import (
    Block,
    Buffer,
    For,
    If,
    LoopKind,
    Prefetch,
    Statement,
    Store,
    While,
    walk_statements,
    written_by,
)
from tinyfuse.loops.rewrite import rows_of, values_of
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.index import Affine, Axis, Quotient, Remainder

# A coefficient, and the least and the largest number that it is multiplied by.
Term = tuple[int, int, int]
# How many values of one variable are looked at before an equation counts as one with a solution.
MOST_VALUES = 4


class Access(NamedTuple):
    """A load or a store. time: its place in the text. place: None where it may be any. steps: the
    values that loop variables have there, from one until before another."""

    time: int
    loops: tuple[For, ...]
    steps: Mapping[str, tuple[int, int]]
    place: Affine | None

    def terms(self) -> dict[Hashable, int]:
        """The coefficients; of loop variables by their names."""
        assert self.place is not None
        return {_key(term): factor for term, factor in self.place.terms}

    def range(self, term: Hashable) -> tuple[int, int]:
        """The least and the largest value of a term; 0 of a variable that is none here."""
        if isinstance(term, (Quotient, Remainder)):
            return term.interval()
        assert isinstance(term, str)
        first, stop = self.steps.get(term, (0, 1))
        return first, stop - 1


def _key(term: Axis | Quotient | Remainder) -> Hashable:
    return term.name if isinstance(term, Axis) else term


def is_read_first(statements: Sequence[Statement], old: Buffer, new: Buffer) -> bool:
    """Whether no element of `old` is read after that of `new` at its place has been stored.

    An element that is stored as it was does not count.
    """
    if any(isinstance(each, While) for each in walk_statements(statements)):
        return False
    reads: list[Access] = []
    writes: list[Access] = []
    for time, (statement, loops, spans) in enumerate(with_loops(statements, (), {})):
        steps = {axis.name: span for axis, span in spans.items()}
        if not is_kept(statement, old, new):
            reads += [Access(2 * time, loops, steps, place) for place in _reads(statement, old)]
            writes += [
                Access(2 * time + 1, loops, steps, place) for place in _writes(statement, new)
            ]
    return not any(_overtakes(write, read) for write in writes for read in reads)


def is_kept(statement: Statement, old: Buffer, new: Buffer) -> bool:
    """Whether a statement stores in `new` what `old` holds at the same place."""
    return (
        isinstance(statement, Store)
        and statement.buffer is new
        and statement.offset is None
        and isinstance(statement.value, Load)
        and statement.value.source is old
        and statement.value.indices == (statement.position,)
        and not statement.value.data
    )


def with_loops(
    statements: Sequence[Statement], around: tuple[For, ...], steps: Steps
) -> Iterator[tuple[Statement, tuple[For, ...], Steps]]:
    for statement in statements:
        yield statement, around, steps
        if isinstance(statement, For):
            axis = statement.variable
            inside = {**steps, axis: (axis.start, axis.start + axis.extent)}
            yield from with_loops(statement.body, (*around, statement), inside)
        elif isinstance(statement, (While, Block)):
            yield from with_loops(statement.body, around, steps)
        elif isinstance(statement, If):
            then, otherwise = _parts(statement, steps)
            yield from with_loops(statement.then, around, then)
            yield from with_loops(statement.otherwise, around, otherwise)


def _parts(node: If, steps: Steps) -> tuple[Steps, Steps]:
    """The values of loop variables in both parts of a choice."""
    axis = decisive_axis(node.test, steps)
    if axis is None:
        return steps, steps
    first, stop = steps[axis]
    low, high = chosen_steps(node.test, axis, (first, stop))
    rest = (high, stop) if low == first else (first, low if high == stop else stop)
    return {**steps, axis: (low, high)}, {**steps, axis: rest}


def _reads(statement: Statement, buffer: Buffer) -> Iterator[Affine | None]:
    for value in values_of(statement):
        for node in walk(value):
            if isinstance(node, Load) and node.source is buffer:
                yield None if node.data else node.indices[0]
    if not isinstance(statement, Prefetch):
        yield from [None for rows in rows_of(statement) if rows.buffer is buffer]


def _writes(statement: Statement, buffer: Buffer) -> Iterator[Affine | None]:
    if isinstance(statement, Store):
        if statement.buffer is buffer:
            yield statement.position if statement.offset is None else None
    else:
        yield from [None for each in written_by(statement) if each is buffer]


def _overtakes(write: Access, read: Access) -> bool:
    """Whether an element may be stored before it is read."""
    common = _common(write.loops, read.loops)
    if write.place is None or read.place is None:
        return bool(common) or write.time < read.time
    around: set[Hashable] = set()
    for loop in common:
        signs = (1,) if loop.kind is LoopKind.SERIAL else (1, -1)
        if any(meet(write, read, around, loop.variable.name, sign) for sign in signs):
            return True
        around.add(loop.variable.name)
    return write.time < read.time and meet(write, read, around)


def _common(one: Sequence[For], other: Sequence[For]) -> list[For]:
    """The loops around both."""
    found: list[For] = []
    for mine, its in zip(one, other, strict=False):
        if mine is not its:
            break
        found.append(mine)
    return found


def meet(
    write: Access,
    read: Access,
    same: AbstractSet[Hashable],
    moved: str | None = None,
    sign: int = 1,
) -> bool:
    """Whether two places can be one, in steps of which some variables are the same.

    moved: a variable that is larger at the read, or smaller where the sign is -1.
    """
    assert write.place is not None
    assert read.place is not None
    stored, loaded = write.terms(), read.terms()
    found = [*stored, *loaded, *([moved] if moved else [])]
    terms: list[Term] = []
    for term in dict.fromkeys(found):
        at_write, at_read = stored.get(term, 0), loaded.get(term, 0)
        (low, high), (first, last) = write.range(term), read.range(term)
        if term == moved:
            nearest, farthest = sorted((sign * (first - high), sign * (last - low)))
            terms += [(at_read - at_write, low, high), (sign * at_read, max(1, nearest), farthest)]
        elif term in same:
            terms.append((at_read - at_write, max(low, first), min(high, last)))
        else:
            terms += [(at_read, first, last), (-at_write, low, high)]
    if any(first > last for _, first, last in terms):
        return False
    return _can_vanish(_sorted(terms), read.place.constant - write.place.constant)


def _sorted(terms: Sequence[Term]) -> list[Term]:
    """One term for each size of a coefficient, the largest first."""
    found: dict[int, tuple[int, int]] = {}
    for factor, first, last in terms:
        low, high = (first, last) if factor > 0 else (-last, -first)
        least, most = found.get(abs(factor), (0, 0))
        found[abs(factor)] = least + low, most + high
    found.pop(0, None)
    return [(factor, *found[factor]) for factor in sorted(found, reverse=True)]


def _can_vanish(terms: Sequence[Term], constant: int) -> bool:
    """Whether the sum of coefficients times numbers of their ranges can be 0: all the largest
    coefficients' numbers are looked at that the others leave, if they are few."""
    if not terms:
        return not constant
    (factor, first, last), *rest = terms
    least = constant + sum([each * low for each, low, _ in rest])
    most = constant + sum([each * high for each, _, high in rest])
    # factor * number has to be within -most ... -least
    first, last = max(first, -(most // factor)), min(last, -least // factor)
    if last - first >= MOST_VALUES:
        return True
    return any(_can_vanish(rest, constant + factor * at) for at in range(first, last + 1))
