"""The orders of reductions, against plain scalar loops that say the same in other words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs import GraphBuilder, PlainNumerics, float32
from tinyfuse.graph.interpreter import interpret
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.orders import (
    Chain,
    Free,
    Lanes,
    ReductionStep,
    RowBlocks,
    Serial,
    axis_groups,
    reduction_steps,
)

CHAIN, LANES, ROWS, SERIAL = Chain(4096), Lanes(64, 32, 1024), RowBlocks(128), Serial()
FREE = Free(1024)

SHORT_LENGTHS = [0, 1, 2, 3, 31, 32, 33, 48, 63]
LENGTHS = [*SHORT_LENGTHS, 64, 65, 127, 128, 129, 130, 257, 1000, 1023, 1024, 1025, 1087, 1089]
LONG_LENGTHS = [2047, 2048, 2049, 3073, 4095, 4096, 4097, 8200, 12289]
ZERO = np.float32(0)


# Each order again, one scalar at a time.


def chain(terms: Sequence[np.float32]) -> np.float32:
    total = ZERO
    for term in terms:
        total = np.float32(total + term)
    return total


def tournament(values: Sequence[np.float32]) -> np.float32:
    if len(values) == 1:
        return values[0]
    paired = [values[k] + values[k + 1] for k in range(0, len(values) - 1, 2)]
    return tournament(paired + list(values[len(values) - len(values) % 2 :]))


def in_blocks(terms: Sequence[np.float32], size: int) -> np.float32:
    if len(terms) <= size:
        return chain(terms)
    return tournament([chain(terms[k : k + size]) for k in range(0, len(terms), size)])


def lane_block(terms: Sequence[np.float32], count: int) -> np.float32:
    return halved([chain(terms[lane::count]) for lane in range(count)])


def halved(lanes: list[np.float32]) -> np.float32:
    if len(lanes) == 1:
        return lanes[0]
    half = len(lanes) // 2
    return halved([lanes[k] + lanes[k + half] for k in range(half)])


def in_lanes(terms: Sequence[np.float32]) -> np.float32:
    if len(terms) < 32:
        return chain(terms)
    count = 64 if len(terms) >= 64 else 32
    return tournament([lane_block(terms[k : k + 1024], count) for k in range(0, len(terms), 1024)])


def in_chains(terms: Sequence[np.float32]) -> np.float32:
    return in_blocks(terms, 4096)


def in_row_blocks(terms: Sequence[np.float32]) -> np.float32:
    return in_blocks(terms, 128)


def values(seed: int, *shape: int) -> np.ndarray:
    """Of many magnitudes, so that each order gives other bits."""
    random = np.random.default_rng(seed)
    scales = np.exp2(random.integers(-12, 12, shape))
    return (random.standard_normal(shape) * scales).astype(np.float32)


def run(graph: Graph, *arrays: np.ndarray) -> np.ndarray:
    return interpret(graph, arrays, PlainNumerics())[0]


def summed(shape: tuple[int, ...], *axes: int, op: str = "sum", dtype: Any = np.float32) -> Graph:
    build = GraphBuilder()
    x = build.input("x", *shape, dtype=dtype)
    return build.graph(build.reduce(op, x, *axes))


def bits(x: np.ndarray) -> list[int]:
    return np.atleast_1d(x).view(np.uint32).tolist()


@pytest.mark.parametrize("length", LENGTHS + LONG_LENGTHS)
def test_sum_along_the_last_axis_is_in_lanes(length: int) -> None:
    x = values(length, 2, length)
    expected = [in_lanes(row) for row in x]
    assert bits(run(summed(x.shape, 1), x)) == bits(np.array(expected))


@pytest.mark.parametrize("length", LENGTHS + LONG_LENGTHS)
def test_sum_along_the_first_axis_is_in_row_blocks(length: int) -> None:
    x = values(length, length, 2)
    expected = [in_row_blocks(column) for column in x.T]
    assert bits(run(summed(x.shape, 0), x)) == bits(np.array(expected))


@pytest.mark.parametrize("length", LENGTHS + LONG_LENGTHS)
def test_sum_of_an_outer_expression_is_in_chains(length: int) -> None:
    x, y = values(length, length), values(length + 1, 2)
    build = GraphBuilder()
    rows = build.broadcast(build.input("x", length), 2, length)
    columns = build.reshape(build.input("y", 2), 2, 1)
    product = build.op("multiply", rows, build.broadcast(columns, 2, length))
    graph = build.graph(build.reduce("sum", product, 1))
    expected = [in_chains(x * factor) for factor in y]
    assert bits(run(graph, x, y)) == bits(np.array(expected))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([64, 128, 1024, 2048, 4096]),
    st.integers(-2, 2),
    st.sampled_from([(1, in_lanes), (0, in_row_blocks)]),
    st.integers(0, 2**32),
)
def test_sums_of_random_values(
    border: int, offset: int, case: tuple[int, Callable[..., np.float32]], seed: int
) -> None:
    axis, order = case
    x = values(seed, border + offset)
    row = x[None] if axis else x[:, None]
    doubled = np.concatenate([row, row[::-1, ::-1]], axis=1 - axis)
    result = run(summed(doubled.shape, axis), doubled)
    assert bits(result) == bits(np.array([order(x), order(x[::-1])]))


@pytest.mark.parametrize("length", [1, 64, 4095, 4096, 4097, 8200])
def test_contraction_is_a_chain_of_fused_multiply_adds(length: int) -> None:
    a, b = values(1, 1, length), values(2, length, 2)
    build = GraphBuilder()
    x, y = build.input("a", *a.shape), build.input("b", *b.shape)
    numerics = PlainNumerics()

    def fused(column: np.ndarray, first: int) -> np.float32:
        total = ZERO
        for k in range(first, min(first + 4096, length)):
            total = numerics.fma(a[0, k], column[k], total)[()]
        return total

    expected = [
        tournament([fused(column, first) for first in range(0, length, 4096)]) for column in b.T
    ]
    assert bits(run(build.graph(build.contract("ij,jk->ik", x, y)), a, b)[0]) == bits(
        np.array(expected)
    )


def test_fused_multiply_add_rounds_once() -> None:
    x = np.float32(1 + 2**-12)
    a = np.array([1, x], np.float32)
    b = np.array([-1, x], np.float32)
    build = GraphBuilder()
    graph = build.graph(build.contract("k,k->", build.input("a", 2), build.input("b", 2)))
    assert run(graph, a, b) == np.float32(2**-11 + 2**-24)
    assert a[0] * b[0] + a[1] * b[1] == np.float32(2**-11)


def test_runs_are_reduced_last_first() -> None:
    x = values(3, 130, 2, 70)
    inner = np.array([[in_lanes(row) for row in plane] for plane in x])
    expected = [in_row_blocks(column) for column in inner.T]
    assert bits(run(summed(x.shape, 0, 2), x)) == bits(np.array(expected))


def test_adjacent_axes_are_flattened_in_c_order() -> None:
    x = values(4, 2, 13, 1, 101)
    expected = [in_lanes(plane.ravel()) for plane in x]
    assert bits(run(summed(x.shape, 1, 3), x).ravel()) == bits(np.array(expected))
    assert bits(run(summed(x.T.shape, 0, 2), x.T)) != bits(np.array(expected))


def test_sum_starts_at_positive_zero() -> None:
    for shape, axes in (((3,), (0,)), ((3, 1), (1,)), ((3, 2), (0,)), ((70,), (0,))):
        negative = np.full(shape, -0.0, np.float32)
        assert not np.signbit(run(summed(shape, *axes), negative)).any()


def test_integers_wrap() -> None:
    x = np.full(200, 100, np.int8)
    assert run(summed((200,), 0, dtype=np.int8), x) == 20000 - 78 * 256
    assert run(summed((9,), 0, op="prod", dtype=np.uint8), np.full(9, 3, np.uint8)) == 3**9 % 256


def test_elements_are_converted_before_they_are_summed() -> None:
    build = GraphBuilder()
    graph = build.graph(build.reduce("sum", build.input("x", 300, dtype=bool), 0, dtype=np.int64))
    assert run(graph, np.ones(300, bool)) == 300


def test_products_start_at_one() -> None:
    x = np.array([2, 0.5, 3], np.float32)
    assert run(summed((3,), 0, op="prod"), x) == 3
    assert run(summed((0,), 0, op="prod"), x[:0]) == 1


def test_maximum_orders_zeros_and_keeps_nan() -> None:
    zeros = np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]], np.float32)
    assert np.signbit(run(summed((3, 2), 1, op="max"), zeros)).tolist() == [False, False, True]
    assert np.signbit(run(summed((3, 2), 1, op="min"), zeros)).tolist() == [True, True, True]
    mixed = np.array([1, np.nan, -np.inf], np.float32)
    assert np.isnan(run(summed((3,), 0, op="max"), mixed))
    assert run(summed((2,), 0, op="min"), mixed[::2]) == -np.inf
    assert run(summed((2,), 0, op="max"), np.full(2, -np.inf, np.float32)) == -np.inf


def test_arguments_of_extremes() -> None:
    x = np.array([[1, 7, 7], [np.nan, 9, np.nan], [-0.0, 0.0, -1]], np.float32)
    assert run(summed((3, 3), 1, op="argmax"), x).tolist() == [1, 0, 0]
    assert run(summed((3, 3), 0, op="argmin"), x).tolist() == [1, 2, 1]


def test_any_and_all() -> None:
    x = np.eye(70, dtype=bool)
    assert run(summed((70, 70), 1, op="any", dtype=bool), x).all()
    assert not run(summed((70, 70), 0, op="all", dtype=bool), x).any()
    assert run(summed((0,), 0, op="all", dtype=bool), x[0, :0])


@pytest.mark.parametrize(
    ("labels", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("i,j->ij", [(3,), (4,)]),
        ("bij,bkj->bki", [(2, 3, 4), (2, 5, 4)]),
        ("ijk,kj->i", [(2, 3, 4), (4, 3)]),
        ("ij,jk->ki", [(3, 1), (1, 5)]),
        ("ij,jk->ik", [(3, 0), (0, 5)]),
        ("i,i->", [(7,), (7,)]),
    ],
)
@pytest.mark.parametrize("dtype", [np.int16, np.bool_, np.float64])
def test_contractions(labels: str, shapes: list[tuple[int, ...]], dtype: Any) -> None:
    random = np.random.default_rng(5)
    a, b = [random.integers(-9, 9, shape).astype(dtype) for shape in shapes]
    build = GraphBuilder()
    x, y = build.input("a", *a.shape, dtype=dtype), build.input("b", *b.shape, dtype=dtype)
    result = run(build.graph(build.contract(labels, x, y)), a, b)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.einsum(labels, a, b))


# Which order is chosen.


def steps_of(graph: Graph) -> tuple[ReductionStep, ...]:
    return reduction_steps(graph)[graph.eqns[-1]]


@pytest.mark.parametrize(
    ("op", "shape", "axes", "expected"),
    [
        ("sum", (5, 6), (1,), [((1,), LANES)]),
        ("sum", (5, 6), (0,), [((0,), ROWS)]),
        ("sum", (5, 6), (0, 1), [((0, 1), LANES)]),
        ("prod", (4, 5, 6), (0, 2), [((2,), LANES), ((0,), ROWS)]),
        ("sum", (4, 1, 6), (0, 2), [((0, 2), LANES)]),
        ("sum", (4, 1, 6), (0, 1, 2), [((0, 2), LANES)]),
        ("sum", (4, 5, 1), (1, 2), [((1,), LANES)]),
        ("sum", (4, 5, 1), (2,), []),
        ("sum", (4, 5), (), []),
        ("sum", (1, 1), (0, 1), []),
        ("sum", (2, 3, 4, 5, 6), (0, 1, 3), [((3,), ROWS), ((0, 1), ROWS)]),
        ("max", (4, 5, 6), (0, 2), [((2,), FREE), ((0,), SERIAL)]),
        ("min", (4, 5), (0,), [((0,), SERIAL)]),
        ("fmin", (4, 5), (1,), [((1,), FREE)]),
        ("argmax", (4, 5), (1,), [((1,), Free(128))]),
        ("argmax", (4, 1024), (1,), [((1,), Free(128))]),
        ("argmax", (4, 1025), (1,), [((1,), Free(256))]),
        ("argmax", (2, 16384), (1,), [((1,), Free(256))]),
        ("argmin", (16385,), (0,), [((0,), Free(1024))]),
        ("argmax", (4, 5), (0,), [((0,), SERIAL)]),
        ("argmin", (4, 1), (1,), []),
    ],
)
def test_steps_of_a_leaf(op: str, shape: tuple, axes: tuple, expected: list) -> None:
    assert steps_of(summed(shape, *axes, op=op)) == tuple(ReductionStep(*each) for each in expected)


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("sum", "int64", [((2,), FREE), ((0,), ROWS)]),
        ("prod", "uint8", [((2,), FREE), ((0,), ROWS)]),
        ("any", "bool", [((2,), FREE), ((0,), SERIAL)]),
        ("max", "int32", [((2,), FREE), ((0,), SERIAL)]),
    ],
)
def test_steps_that_any_order_takes(op: str, dtype: str, expected: list) -> None:
    build = GraphBuilder()
    graph = build.graph(build.reduce(op, build.input("x", 4, 5, 6, dtype=dtype), 0, 2))
    assert steps_of(graph) == tuple(ReductionStep(*each) for each in expected)


def test_steps_of_contractions() -> None:
    build = GraphBuilder()
    x, y = build.input("x", 3, 1, 4, 5), build.input("y", 5, 1, 4, 6)
    graph = build.graph(build.contract("abcd,dbce->ae", x, y))
    assert steps_of(graph) == (ReductionStep((2, 3), CHAIN),)
    build = GraphBuilder()
    graph = build.graph(build.contract("a,b->ab", build.input("x", 3), build.input("y", 3)))
    assert steps_of(graph) == ()


@pytest.mark.parametrize(
    ("labels", "shapes", "axes", "order"),
    [
        ("k,k->", [(5,), (5,)], (0,), LANES),
        ("ik,k->i", [(3, 5), (5,)], (1,), LANES),
        ("k,ik->i", [(5,), (3, 5)], (0,), LANES),
        ("bij,bj->bi", [(2, 3, 5), (2, 5)], (2,), LANES),
        ("ncd,cd->n", [(2, 3, 5), (3, 5)], (1, 2), LANES),
        ("ik,kj->ij", [(3, 5), (5, 1)], (1,), LANES),  # a column is a vector
        ("ik,jk->ij", [(3, 5), (4, 5)], (1,), CHAIN),
        ("k,kj->j", [(5,), (5, 4)], (0,), CHAIN),
        ("ncd,dc->n", [(2, 3, 5), (5, 3)], (1, 2), CHAIN),
    ],
)
def test_order_of_contractions(labels: str, shapes: list, axes: tuple, order: object) -> None:
    build = GraphBuilder()
    x, y = (build.input(name, *shape) for name, shape in zip("xy", shapes, strict=True))
    graph = build.graph(build.contract(labels, x, y))
    assert steps_of(graph) == (ReductionStep(axes, order),)


@pytest.mark.parametrize("length", [31, 32, 63, 64, 1025, 2050])
def test_dot_product_uses_lanes(length: int) -> None:
    a, b = values(1, length), values(2, length)
    build = GraphBuilder()
    x, y = build.input("a", length), build.input("b", length)
    numerics = PlainNumerics()

    def fused(places: Sequence[int]) -> np.float32:
        total = ZERO
        for k in places:
            total = numerics.fma(a[k], b[k], total)[()]
        return total

    count = 64 if length >= 64 else 32 if length >= 32 else 1
    blocks = [range(first, min(first + 1024, length)) for first in range(0, length, 1024)]
    expected = tournament(
        [halved([fused(block[lane::count]) for lane in range(count)]) for block in blocks]
    )
    assert bits(run(build.graph(build.contract("k,k->", x, y)), a, b)) == bits(np.array(expected))


def chosen(make: Callable[[GraphBuilder], Any], *axes: int) -> Any:
    """The order of the (only) step of the sum of what is made, over its last axis or `axes`."""
    build = GraphBuilder()
    x = make(build)
    graph = build.graph(build.reduce("sum", x, *(axes or (len(x.shape) - 1,))))
    (step,) = steps_of(graph)
    return step.order


def test_pairwise_distances_are_summed_in_one_chain() -> None:
    def squares(build: GraphBuilder) -> Any:
        x = build.input("x", 7, 3)
        rows = build.broadcast(build.reshape(x, 7, 1, 3), 7, 7, 3)
        columns = build.broadcast(build.reshape(x, 1, 7, 3), 7, 7, 3)
        return build.op("square", build.op("subtract", rows, columns))

    assert chosen(squares) == CHAIN
    assert chosen(squares, 0, 1, 2) == CHAIN


def test_a_leaf_with_all_axes_decides() -> None:
    def centred(build: GraphBuilder) -> Any:
        x = build.input("x", 7, 9)
        mean = build.reshape(build.reduce("sum", x, 1), 7, 1)
        return build.op("subtract", x, build.broadcast(mean, 7, 9))

    assert chosen(centred) == LANES


def test_outputs_of_reductions_are_leaves() -> None:
    def scaled(build: GraphBuilder) -> Any:
        x = build.input("x", 7, 9)
        total = build.reduce("sum", build.broadcast(x, 5, 7, 9), 0)
        return build.op("exp", total)

    assert chosen(scaled) == LANES


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda b: b.broadcast(b.input("x", 9), 7, 9), CHAIN),
        (lambda b: b.cast(b.broadcast(b.input("x", 9), 7, 9), "float64"), CHAIN),
        (lambda b: b.broadcast(b.input("x", 1, 9), 1, 9), LANES),
        (lambda b: b.broadcast(float32(1), 7, 9), CHAIN),
        (lambda b: b.transpose(b.broadcast(b.input("x", 9), 7, 9), 1, 0), CHAIN),
        (lambda b: b.slice(b.input("x", 7, 9), [slice(None), slice(None, None, -2)]), LANES),
        # A group of axes of a reshape is indexed as a whole.
        (lambda b: b.reshape(b.broadcast(b.input("x", 9), 7, 9), 63), LANES),
        (lambda b: b.reshape(b.broadcast(b.input("x", 6), 7, 6), 7, 2, 3), CHAIN),
        (lambda b: b.reshape(b.input("x", 42), 7, 2, 3), LANES),
        # Windows: position and window axis.
        (lambda b: b.windows(b.input("x", 20), (5,), (0,)), LANES),
        (lambda b: b.windows(b.broadcast(b.input("x", 20), 3, 20), (2,), (0,)), CHAIN),
        (lambda b: b.windows(b.broadcast(b.input("x", 20), 3, 20), (4,), (1,)), CHAIN),
        # Where pad and concat put what decides what is read.
        (lambda b: b.pad(b.broadcast(b.input("x", 9), 7, 9), float32(0), (1, 0), (0, 0)), LANES),
        (lambda b: b.pad(b.broadcast(b.input("x", 9), 7, 9), float32(0), (0, 1), (0, 0)), CHAIN),
        (lambda b: b.concat(b.input("x", 1, 9), b.input("y", 1, 9), axis=0), LANES),
        (lambda b: b.concat(*[b.broadcast(b.input(n, 9), 7, 9) for n in "xy"], axis=1), CHAIN),
    ],
)
def test_orders_through_views(make: Callable[[GraphBuilder], Any], expected: Any) -> None:
    assert chosen(make) == expected


@pytest.mark.parametrize(
    ("old", "new", "groups"),
    [
        ((2, 3, 1, 4), (6, 4), [((0, 1, 2), (0,)), ((3,), (1,))]),
        ((2, 3, 4), (6, 2, 1, 2), [((0, 1), (0,)), ((2,), (1, 2, 3))]),
        ((6, 4), (2, 12), [((0, 1), (0, 1))]),
        ((1, 5), (5,), [((1,), (0,))]),
        ((1,), (), []),
        ((0, 3), (3, 0), [((0, 1), (0, 1))]),
    ],
)
def test_axis_groups(old: tuple, new: tuple, groups: list) -> None:
    def long(shape: tuple, axes: tuple) -> tuple:
        return tuple(axis for axis in axes if shape[axis] != 1)

    found = [(long(old, a), long(new, b)) for a, b in axis_groups(old, new)]
    assert found == [(long(old, a), long(new, b)) for a, b in groups]


def test_deep_expressions_are_analysed_without_recursion() -> None:
    build = GraphBuilder()
    x = build.broadcast(build.input("x", 9), 7, 9)
    for _ in range(5000):
        x = build.op("add", x, x)
    assert steps_of(build.graph(build.reduce("sum", x, 1))) == (ReductionStep((1,), CHAIN),)
