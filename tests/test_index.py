"""Affine index arithmetic, against plain integers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyfuse.stage.index import Affine, Axis, Quotient, Remainder, affine, flat_index, index_text
from tinyfuse.stage.views import axis_indices, split_index

ROW, J, K = Axis("i", 4), Axis("j", 6, start=2), Axis("k", 5)
AXES = (ROW, J, K)


def value(index: Affine, at: Mapping[Axis, int]) -> int:
    """What an index means: its terms, as they stand, on integers."""
    total = index.constant
    for term, coefficient in index.terms:
        if isinstance(term, Axis):
            total += coefficient * at[term]
        elif isinstance(term, Quotient):
            total += coefficient * (value(term.index, at) // term.divisor)
        else:
            total += coefficient * (value(term.index, at) % term.divisor)
    return total


def points(*axes: Axis) -> list[dict[Axis, int]]:
    ranges = [range(axis.start, axis.start + axis.extent) for axis in axes]
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*ranges)]


small = st.integers(-70, 70)
divisors = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 64])
leaves = st.sampled_from(AXES).map(affine) | small.map(affine)


class Traced:
    """An index, and beside it the function of a point that it should be."""

    def __init__(self, index, meaning):
        self.index, self.meaning = index, meaning

    def __repr__(self):
        return index_text(self.index)


def _leaf(leaf: Affine) -> Traced:
    return Traced(leaf, lambda at: value(leaf, at))


def _grown(inner: st.SearchStrategy[Traced]) -> st.SearchStrategy[Traced]:
    return st.one_of(
        st.tuples(inner, inner).map(
            lambda t: Traced(
                t[0].index + t[1].index, lambda at: t[0].meaning(at) + t[1].meaning(at)
            )
        ),
        st.tuples(inner, inner).map(
            lambda t: Traced(
                t[0].index - t[1].index, lambda at: t[0].meaning(at) - t[1].meaning(at)
            )
        ),
        st.tuples(inner, small).map(
            lambda t: Traced(t[0].index * t[1], lambda at: t[0].meaning(at) * t[1])
        ),
        st.tuples(inner, divisors).map(
            lambda t: Traced(t[0].index // t[1], lambda at: t[0].meaning(at) // t[1])
        ),
        st.tuples(inner, divisors).map(
            lambda t: Traced(t[0].index % t[1], lambda at: t[0].meaning(at) % t[1])
        ),
    )


indices = st.recursive(leaves.map(_leaf), _grown, max_leaves=8)


@given(indices)
def test_arithmetic_means_what_it_says(traced):
    for at in points(*AXES):
        assert value(traced.index, at) == traced.meaning(at)


strides = st.sampled_from([-24, -12, -6, -4, -2, -1, 0, 1, 2, 3, 4, 6, 12, 24])


@given(st.tuples(strides, strides, strides), small, divisors)
def test_division_of_flat_positions(coefficients, constant, divisor):
    total = sum([axis * c for axis, c in zip(AXES, coefficients, strict=True)], affine(constant))
    quotient, remainder = total // divisor, total % divisor
    for at in points(*AXES):
        assert value(quotient, at) == value(total, at) // divisor
        assert value(remainder, at) == value(total, at) % divisor
        assert value(quotient * divisor + remainder, at) == value(total, at)


def divided(index: Affine) -> list[Affine]:
    """Everything that is divided in an index."""
    inner = [term.index for term, _ in index.terms if not isinstance(term, Axis)]
    return [*inner, *itertools.chain(*map(divided, inner))]


@given(indices)
def test_nothing_negative_is_divided(traced):
    """For there C, which rounds towards 0, means something else."""
    for index in divided(traced.index):
        assert index.interval()[0] >= 0
        assert all(value(index, at) >= 0 for at in points(*AXES))


@given(indices)
def test_intervals_hold_every_value(traced):
    low, high = traced.index.interval()
    assert all(low <= traced.meaning(at) <= high for at in points(*AXES))


@given(indices, indices, indices)
def test_substitution_replaces_axes_at_once(traced, for_i, for_j):
    substituted = traced.index.substitute({ROW: for_i.index, J: for_j.index})
    for at in points(ROW, J):
        at[K] = 3
        inner = {ROW: for_i.meaning(at), J: for_j.meaning(at), K: 3}
        if inner[ROW] in range(4) and inner[J] in range(2, 8):
            # an index is simplified by what its axes can be; beyond that it may mean anything
            assert value(substituted, at) == traced.meaning(inner)


@given(indices, indices)
def test_equal_indices_have_equal_hashes(one, other):
    if one.index == other.index:
        assert hash(one.index) == hash(other.index)
        assert all(one.meaning(at) == other.meaning(at) for at in points(*AXES))
    assert one.index - one.index == Affine()


@given(indices, indices)
def test_sums_mean_the_same_in_either_order(one, other):
    """Those with quotients may be written in two ways."""
    left, right = one.index + other.index, other.index + one.index
    assert all(value(left, at) == value(right, at) for at in points(*AXES))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_flat_index_and_back_is_the_identity(shape):
    axes = [Axis(f"i{axis}", extent) for axis, extent in enumerate(shape)]
    start = axis_indices(axes)
    assert tuple(split_index(flat_index(start, shape), shape)) == start


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_split_index_and_back_is_the_identity(shape):
    size = 1
    for extent in shape:
        size *= extent
    (start,) = axis_indices([Axis("n", size)])
    assert flat_index(split_index(start, shape), shape) == start


S, L, B, N = Axis("s", 16), Axis("l", 64), Axis("b", 8), Axis("n", 1000)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (affine(ROW), "i"),
        (affine(7), "7"),
        (Affine(), "0"),
        (ROW * 2 - 3, "2 * i - 3"),
        (1 - ROW, "-i + 1"),
        (ROW - ROW, "0"),
        (ROW + J * 3 + ROW, "2 * i + 3 * j"),
        (N // 7, "n / 7"),
        (N % 7 * 2, "2 * (n % 7)"),
        ((N + 1) // 7, "(n + 1) / 7"),
        (ROW // 4, "0"),
        (ROW % 4, "i"),
        (N // 10 * 10 + N % 10, "n"),
        (N // 10 * 20 + N % 10 * 2 + 5, "2 * n + 5"),
        (N // 10 // 10, "n / 100"),
        ((N // 10 + 3) // 10, "(n + 30) / 100"),
        ((S * 64 + L) // 64, "s"),
        ((S * 64 + L) % 64, "l"),
        ((S * 64 + L) // 128, "s / 2"),
        ((S * 64 + L) % 128, "64 * (s % 2) + l"),
        ((S * 64 + L) // 128 * 128 + (S * 64 + L) % 128, "64 * s + l"),
        ((B * 1024 + S * 64 + L) // 1024, "b"),
        ((S * 64 - L) // 128, "(64 * s - l + 128) / 128 - 1"),
        ((S * 64 + L) // 100, "(64 * s + l) / 100"),
        (ROW * 6 + J - 2, "6 * i + j - 2"),
        ((ROW * 6 + J - 2) // 6, "i"),
        ((ROW * 6 + J - 2) % 6, "j - 2"),
        ((ROW - 1) // 4, "(i + 3) / 4 - 1"),
    ],
)
def test_text_of_simplified_indices(index, text):
    assert index_text(index) == text


def test_text_with_other_names():
    assert (
        index_text((N + ROW) // 7 + ROW * 3, {N: "row", ROW: "column"})
        == "(row + column) / 7 + 3 * column"
    )


def test_axes_are_found_inside_divisions_in_order_of_appearance():
    index = (N + ROW) // 7 + J % 4 + ROW
    assert list(index.axes()) == [N, ROW, J]


def test_division_of_negative_indices_rounds_down():
    shifted = (ROW - 2) // 3
    assert [value(shifted, {ROW: i}) for i in range(4)] == [-1, -1, 0, 0]
    assert shifted.interval() == (-1, 0)
    assert [value((ROW - 2) % 3, {ROW: i}) for i in range(4)] == [1, 2, 0, 1]


def test_equality_does_not_depend_on_the_order_of_terms():
    assert ROW + J == J + ROW
    assert hash(ROW + J) == hash(J + ROW)
    assert ROW + J != ROW + J + 1
    assert affine(ROW) != affine(K)
    assert Remainder(affine(N), 7) == Remainder(affine(N), 7)
