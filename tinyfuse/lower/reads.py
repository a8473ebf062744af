"""What a stored stage reads and tests once the stages inlined into it are seen through."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.records import dataclass
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.expr import (
    Accumulator,
    Expr,
    Index,
    IndexTest,
    Load,
    Op,
    Values,
    axes_of,
    is_select,
    substitute,
    substitute_places,
    walk,
)
from tinyfuse.stage.index import Affine
from tinyfuse.stage.ir import Stage

Condition = tuple[IndexTest, ...]  # all of which have to hold


Key = tuple[Stage, tuple[Affine, ...], tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Reads:
    """In terms of the reader's axes. guards: for each load the conditions under any of which it
    runs. inlined: the stages seen through, in order of the program."""

    loads: tuple[Load, ...]
    guards: tuple[tuple[Condition, ...], ...]
    conditions: tuple[Condition, ...]
    inlined: tuple[Stage, ...]


def reads_of(schedule: Schedule, expressions: Sequence[Expr]) -> Reads:
    """All loads of stored stages and all conditions on indices, each distinct one once."""
    loads: dict[Key, tuple[Load, dict[Condition, None]]] = {}
    conditions: dict[Condition, None] = {}
    inlined: dict[Stage, None] = {}
    seen: dict[Key, tuple[Expr, dict[Condition, None]]] = {}
    known = Conditions()
    made: Values = {}
    pending: list[tuple[Expr, Condition]] = [(expression, ()) for expression in expressions]
    while pending:
        body, around = pending.pop()
        for node, condition in known.guarded(body, around):
            if isinstance(node, Load):
                key = (node.source, node.indices, node.data)
                if node.source not in schedule.places.inlined:
                    _added(loads.setdefault(key, (node, {}))[1], condition)
                    continue
                if key not in seen:
                    seen[key] = inlined_body(*key, made), {}
                inside, behind = seen[key]
                new = _added(behind, condition)
                if new is not None:
                    inlined[node.source] = None
                    pending.append((inside, new))
            elif is_select(node):
                conditions.update(dict.fromkeys(known.of(node.parts[0])))
    ordered = tuple(s for s in schedule.stages.stages if s in inlined) if inlined else ()
    return Reads(
        tuple(load for load, _ in loads.values()),
        tuple(tuple(guards) for _, guards in loads.values()),
        tuple(conditions),
        ordered,
    )


# A load behind more tests than this is taken to run whatever the others say, and one behind more
# conditions than this always.
MOST_TESTS = 8
MOST_CONDITIONS = 16


def _added(known: dict[Condition, None], condition: Condition) -> Condition | None:
    """Note one more condition under which something runs. What is to be followed then: this, that
    it always runs, or nothing that was not known."""
    if len(known) >= MOST_CONDITIONS:
        condition = ()
    if condition in known or () in known:
        return None
    known[condition] = None
    return condition


class Conditions:
    """Makes conditions of the tests in expressions: equal ones have the same objects, and there is
    one for each index."""

    def __init__(self) -> None:
        self._tests: dict[tuple[Affine, int | None, int | None], IndexTest] = {}

    def guarded(self, root: Expr, around: Condition = ()) -> list[tuple[Expr, Condition]]:
        """Every node with the tests on indices that have to hold where it runs; more than once
        where it stands behind different ones."""
        found: dict[tuple[Expr, Condition], None] = {}
        pending = [(root, around)]
        while pending:
            place = pending.pop()
            if place in found:
                continue
            found[place] = None
            node, condition = place
            if is_select(node):
                inside = (condition, *self._branches(node.parts[0], condition))
                pending += reversed(list(zip(node.parts, inside, strict=True)))
            else:
                pending += [(part, condition) for part in reversed(node.parts)]
        return list(found)

    def of(self, root: Expr) -> list[Condition]:
        """The tests that a select's condition is a conjunction of; none where it is another."""
        tests = []
        for node in walk(root):
            if isinstance(node, IndexTest):
                tests.append(self._same(node))
            elif not isinstance(node, Op) or node.name != "logical_and" or not node.parts:
                return []
        return [tuple(tests)]

    def _branches(self, test: Expr, around: Condition) -> tuple[Condition, Condition]:
        """What holds in the two branches of a select, besides what holds around it."""
        chosen = around
        for each in next(iter(self.of(test)), ()):
            chosen = self._with(chosen, each)
        other = complement(test) if isinstance(test, IndexTest) else None
        return chosen, self._with(around, other) if other else around

    def _with(self, around: Condition, test: IndexTest) -> Condition:
        """A condition and one test more."""
        for place, known in enumerate(around):
            if known.index == test.index:
                both = _both(known, test)
                return (*around[:place], self._same(both), *around[place + 1 :])
        return (*around, self._same(test)) if len(around) < MOST_TESTS else around

    def _same(self, test: IndexTest) -> IndexTest:
        return self._tests.setdefault((test.index, test.low, test.high), test)


def _both(a: IndexTest, b: IndexTest) -> IndexTest:
    """The test that holds where two on one index do."""
    lows = [each for each in (a.low, b.low) if each is not None]
    highs = [each for each in (a.high, b.high) if each is not None]
    return IndexTest(a.index, max(lows, default=None), min(highs, default=None))


def complement(test: IndexTest) -> IndexTest | None:
    """The test that holds where this one does not; None where that is not one test."""
    if test.low is None:
        return IndexTest(test.index, test.high, None)
    return IndexTest(test.index, None, test.low) if test.high is None else None


def inlined_body(
    stage: Stage, indices: Sequence[Affine], data: Sequence[Expr], made: Values
) -> Expr:
    """The expression of one element of a stage. indices, data: as of a load of it. made: as of
    `substitute_places`."""
    assert stage.body is not None
    if not data:
        return substitute(stage.body, dict(zip(stage.axes, indices, strict=True)))
    places = [part.index if isinstance(part, Index) else part for part in data]
    values = dict(zip(stage.axes, [*places, *indices], strict=True))
    return substitute_places(stage.body, values, made)


def condition_before(stage: Stage) -> tuple[Expr | None, Expr]:
    """What decides for all elements of a chain alike whether they count, and the rest of the body.

    Conditions on indices are no such: loops are cut where these change.
    """
    body, reduced = stage.body, stage.reduce_axes
    assert body is not None
    if not isinstance(body, Op) or body.name != "select":
        return None, body
    condition, links, otherwise = body.operands
    parts = list(walk(condition))
    changes = any(axis in reduced for part in parts for axis in axes_of(part))
    fixed = not any(isinstance(part, (Accumulator, IndexTest)) for part in parts)
    if isinstance(otherwise, Accumulator) and fixed and not changes:
        return condition, links
    return None, body
