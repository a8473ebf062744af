"""Intervals of indices under conditions, against all points."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_index import points, value

from tinyfuse.dtypes import BOOL
from tinyfuse.stage.bounds import Facts
from tinyfuse.stage.expr import IndexTest, Op
from tinyfuse.stage.index import Affine, Axis, affine

ROW, J, K = Axis("i", 4), Axis("j", 6), Axis("k", 5)
AXES = (ROW, J, K)

sums = st.tuples(*[st.integers(-6, 6)] * 4).map(lambda c: ROW * c[0] + J * c[1] + K * c[2] + c[3])
indices = st.one_of(
    sums,
    st.tuples(sums, st.integers(1, 9), sums).map(lambda t: t[0] // t[1] + t[2]),
    st.tuples(sums, st.integers(1, 9), sums).map(lambda t: t[0] % t[1] + t[2]),
    st.tuples(sums, st.integers(1, 9)).map(lambda t: t[0] // t[1]),
)
limits = st.none() | st.integers(-15, 25)
tests = st.builds(IndexTest, sums | indices, limits, limits)


def holds(test: IndexTest, at: dict[Axis, int]) -> bool:
    index = value(test.index, at)
    above = test.low is None or index >= test.low
    return above and (test.high is None or index < test.high)


@settings(max_examples=200)
@given(indices, st.lists(st.tuples(tests, st.booleans()), min_size=1, max_size=3))
def test_intervals_hold_every_value_where_the_conditions_hold(index, conditions):
    facts = Facts()
    for test, truth in conditions:
        facts = facts.where(test, truth)
    low, high = facts.interval(index)
    for at in points(*AXES):
        if all(holds(test, at) == truth for test, truth in conditions):
            assert low <= value(index, at) <= high
            assert not facts.contradictory


@given(sums, st.integers(1, 9), st.integers(0, 60))
def test_intervals_of_quotients_of_a_tested_sum(total, divisor, limit):
    facts = Facts().where(IndexTest(total, 0, limit), True)
    within = [at for at in points(*AXES) if 0 <= value(total, at) < limit]
    assume(within)
    low, high = facts.interval(total // divisor)
    assert low <= min(value(total, at) // divisor for at in within)
    assert max(value(total, at) // divisor for at in within) <= high <= max(0, limit - 1) // divisor


S, L, B = Axis("s", 16), Axis("l", 64), Axis("b", 2)
POSITION = B * 1024 + S * 64 + L


@pytest.mark.parametrize("extents", [(1280,), (10, 128), (20, 64), (128, 10), (2, 640), (4, 5, 64)])
def test_splitting_a_tested_position_stays_within_the_extents(extents):
    from tinyfuse.stage.views import split_index

    size = 1
    for extent in extents:
        size *= extent
    facts = Facts().where(IndexTest(POSITION, None, size), True)
    for part, extent in zip(split_index(POSITION, extents), extents, strict=True):
        low, high = facts.interval(part)
        assert (low, high) == (0, extent - 1)


def test_both_sides_of_a_conjunction_hold():
    both = Op("logical_and", (IndexTest(affine(ROW), 1, None), IndexTest(affine(J), None, 3)), BOOL)
    facts = Facts().where(both, True)
    assert facts.interval(ROW + J) == (1, 5)
    assert Facts().where(both, False).interval(ROW + J) == (0, 8)


def test_facts_that_exclude_one_another_are_contradictory():
    facts = Facts().where(IndexTest(affine(ROW), None, 2), True)
    assert not facts.contradictory
    assert facts.where(IndexTest(affine(ROW), None, 3), False).contradictory


def test_intervals_without_facts_are_those_of_the_index():
    for index in (affine(ROW), ROW * 3 - J, Affine((), 5), J // 4):
        assert Facts().interval(index) == index.interval()
