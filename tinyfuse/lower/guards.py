"""Steps of a loop that change nothing, and tests that are known to hold in the others.

A reduction that a test of indices leaves alone, as it does a sum over keys that a causal mask
excludes, goes through steps in which no element of the tile at hand takes part. With all that is
computed in such a step they are left out: the smallest, or largest, index in the tile tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from math import gcd

from tinyfuse.dtypes import BOOL
from tinyfuse.lower.bounds import Ranges
from tinyfuse.lower.reads import Condition
from tinyfuse.schedule.places import Loop, Places, Site
from tinyfuse.stage.expr import Accumulator, Const, Expr, IndexTest, Load, Op, is_select, substitute
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Stage


class Guards:
    """Where the statements at hand stand: behind tests that say of some indices that they are at
    least 0."""

    def __init__(self) -> None:
        self.facts: list[Affine] = []
        self.steps = 0  # of guarded loops around

    @contextmanager
    def behind(self, facts: Sequence[Affine]) -> Iterator[None]:
        """Around what runs only where these are at least 0."""
        self.facts += facts
        yield
        del self.facts[len(self.facts) - len(facts) :]

    @contextmanager
    def step(self, facts: Sequence[Affine]) -> Iterator[None]:
        """The same around a step of a guarded loop."""
        self.steps += 1
        with self.behind(facts):
            yield
        self.steps -= 1

    def decided(self, test: IndexTest) -> bool | None:
        """Whether a test holds, by itself or because of what it stands behind."""
        known = test.decided()
        if known is None and self.facts and all(map(self._follows, _at_least_zero(test))):
            return True
        return known

    def _follows(self, index: Affine) -> bool:
        return any((index - fact).interval()[0] >= 0 for fact in (Affine(), *self.facts))

    def known(self, node: Expr) -> Expr:
        """A test that is decided as a constant; anything else as it is."""
        if not self.facts or not isinstance(node, IndexTest):
            return node
        decided = self.decided(node)
        return node if decided is None else Const(BOOL.type(decided))

    def some(self, tests: Sequence[IndexTest], ranges: Ranges) -> list[Affine]:
        """What is at least 0 where each of the tests holds somewhere in the ranges, as far as that
        is not known."""
        return self._open([extreme(index, ranges, True) for index in _indices(tests)])

    def all(self, tests: Sequence[IndexTest], ranges: Ranges) -> list[Affine]:
        """What is at least 0 where the tests hold everywhere in the ranges, as far as that is not
        known."""
        return self._open([extreme(index, ranges, False) for index in _indices(tests)])

    def _open(self, indices: Sequence[Affine]) -> list[Affine]:
        rounded = dict.fromkeys([_rounded(index) for index in indices])
        return [index for index in rounded if self.decided(IndexTest(index, 0, None)) is not True]


def condition(facts: Sequence[Affine]) -> Expr:
    """Whether all these indices are at least 0."""
    tests: list[Expr] = [IndexTest(_divided(index), 0, None) for index in facts]
    return reduce(lambda a, b: Op("logical_and", (a, b), BOOL), tests)


def _indices(tests: Sequence[IndexTest]) -> list[Affine]:
    return [index for test in tests for index in _at_least_zero(test)]


def _at_least_zero(test: IndexTest) -> list[Affine]:
    """The indices that are at least 0 where a test holds."""
    low = [] if test.low is None else [test.index - test.low]
    return low if test.high is None else [*low, test.high - 1 - test.index]


def _rounded(index: Affine) -> Affine:
    """The smallest index that is at least 0 where this one is: `64 * i + 63` becomes `64 * i`."""
    step = gcd(*[factor for _, factor in index.terms])
    return Affine(index.terms, index.constant // step * step) if step else index


def _divided(index: Affine) -> Affine:
    step = gcd(*[factor for _, factor in index.terms]) or 1
    return Affine(
        tuple([(term, factor // step) for term, factor in index.terms]), index.constant // step
    )


def extreme(index: Affine, ranges: Ranges, largest: bool) -> Affine:
    """The largest, or smallest, value of an index while its axes run over ranges."""
    ends = {}
    for axis in index.axes():
        if axis in ranges:
            last = (index.coefficient(axis) >= 0) is largest
            ends[axis] = ranges[axis].base + (ranges[axis].extent - 1 if last else 0)
    return index.substitute(ends)


def guard_of(places: Places, leader: Stage, loop: Loop) -> tuple[IndexTest, ...]:
    """The tests, in terms of the leader's axes, one of which fails where a step of its loop leaves
    alone all that is kept from step to step; none where something else is."""
    if loop.axis not in leader.reduce_axes or leader not in places.attached:
        return ()
    assert leader.body is not None
    tests, site = leaves_alone(leader.body), Site(leader, loop)
    for stage in places.inside(site) if tests else ():
        if places.is_joined(stage) or places.is_carried(stage):
            own = leaves_alone(_in_step(places, stage))
            if [_key(test) for test in own] != [_key(test) for test in tests]:
                return ()
        elif not _ends_with_step(places, stage, site):
            return ()
    return tests


def needed_where(loads: Iterable[tuple[Load, Sequence[Condition]]]) -> tuple[IndexTest, ...]:
    """The tests, in terms of the axes of what is loaded, one of which fails where none of these
    loads runs. loads: each with the conditions under any of which it runs."""
    found = [
        {_key(test): test for each in condition if (test := _of_source(each, load))}
        for load, conditions in loads
        for condition in conditions
    ]
    first, *others = found or [{}]
    return tuple([test for key, test in first.items() if all(key in each for each in others)])


def _of_source(test: IndexTest, load: Load) -> IndexTest | None:
    """A test of a reader's indices as one of the axes of what it loads, if that tells as much."""
    rest, index = test.index, Affine()
    for axis, place in zip(load.source.axes, load.places, strict=True):
        terms = place.terms if place else ()
        term, factor = min(terms, key=lambda each: abs(each[1]), default=(None, 0))
        if place is None or not isinstance(term, Axis):
            continue
        times, left = divmod(rest.coefficient(term), factor)
        if not left:
            rest, index = rest - place * times, index + axis * times
    return IndexTest(index + rest.constant, test.low, test.high) if rest.is_constant else None


def leaves_alone(body: Expr) -> tuple[IndexTest, ...]:
    """The tests without which an expression is the value so far."""
    if not is_select(body) or not isinstance(body.parts[2], Accumulator):
        return ()
    pending, tests = [body.parts[0]], []
    while pending:
        node = pending.pop()
        if isinstance(node, IndexTest):
            tests.append(node)
        elif isinstance(node, Op) and node.name == "logical_and":
            pending += node.operands
        else:
            return ()
    return tuple(tests)


def _in_step(places: Places, stage: Stage) -> Expr:
    """The body of a stage, in terms of the axes of the one in whose loop it goes on."""
    site = places.plans[stage].compute_at
    assert site is not None
    assert stage.body is not None
    moved: Mapping[Axis, Affine] = {
        own: axis + 1 if own is stage.scan else Affine(((axis, 1),)) for own, axis in site.aligned
    }
    return substitute(stage.body, moved)


def _key(test: IndexTest) -> tuple[object, ...]:
    return test.index, test.low, test.high


def _ends_with_step(places: Places, stage: Stage, site: Site) -> bool:
    """Whether what is computed of a stage is kept no longer than a step."""
    kept = places.storage(stage)
    if kept is None or not places.within(kept.stage, site):
        return False
    return kept.stage is not site.stage or places.depth(kept) >= places.depth(site)
