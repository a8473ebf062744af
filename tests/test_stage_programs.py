"""Graphs and their stages, interpreted: the same bits, for every primitive and random programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs import GraphBuilder, float32
from tests.stage_checks import checked_stages
from tinyfuse.dtypes import SUPPORTED
from tinyfuse.graph.ir import Graph, Literal, Var

REDUCTIONS = ("sum", "prod", "max", "min", "fmax", "fmin")


@pytest.mark.parametrize("op", [*REDUCTIONS, "argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "bool"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((5,), (0,)),
        ((64,), (0,)),
        ((70,), (0,)),
        ((1024,), (0,)),
        ((3000,), (0,)),
        ((3, 130), (1,)),
        ((130, 3), (0,)),
        ((300, 2), (0,)),
        ((1, 3), (0,)),
        ((3, 1), (1,)),
        ((2, 1, 70, 1), (2,)),
    ],
)
def test_reductions_along_one_axis(op, dtype, shape, axes):
    g = GraphBuilder()
    checked_stages(g.graph(g.reduce(op, g.input("x", *shape, dtype=dtype), *axes)))


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 4), (0, 1)),
        ((20, 90), (0, 1)),
        ((40, 128), (0, 1)),
        ((2, 30, 40), (1, 2)),
        ((2, 3, 4, 5), (0, 2)),
        ((20, 2, 3, 45, 1), (0, 1, 3)),
        ((150, 1, 2), (0, 1)),
        ((4, 40, 3), (0, 1)),
        ((2, 3), ()),
        ((1, 1), (0, 1)),
        ((), ()),
    ],
)
def test_reductions_along_several_axes(op, shape, axes):
    g = GraphBuilder()
    checked_stages(g.graph(g.reduce(op, g.input("x", *shape), *axes)))


@pytest.mark.parametrize(("op", "empty"), [("sum", 0), ("prod", 1), ("any", 0), ("all", 1)])
@pytest.mark.parametrize(
    ("shape", "axes"), [((0,), (0,)), ((3, 0), (1,)), ((0, 3), (1,)), ((0, 3), (0, 1))]
)
def test_reductions_of_nothing_give_the_start_value(op, empty, shape, axes):
    g = GraphBuilder()
    x = g.input("x", *shape, dtype="bool")
    checked_stages(g.graph(g.reduce(op, x, *axes)))


def test_any_and_all():
    g = GraphBuilder()
    x = g.input("x", 3, 70, dtype="bool")
    checked_stages(g.graph(g.reduce("any", x, 1), g.reduce("all", x, 0)))


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "uint8", "bool"])
def test_sums_convert_each_element_first(dtype):
    g = GraphBuilder()
    x = g.input("x", 3, 70, dtype="int8")
    checked_stages(g.graph(g.reduce("sum", x, 1, dtype=dtype)))


@pytest.mark.parametrize("extent", [3, 200, 5000])
def test_sums_of_outer_differences(extent):
    g = GraphBuilder()
    x, y = g.input("x", 3, 1, extent), g.input("y", 4, extent)
    difference = g.op("subtract", g.broadcast(x, 3, 4, extent), g.broadcast(y, 3, 4, extent))
    checked_stages(g.graph(g.reduce("sum", g.op("square", difference), 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
@pytest.mark.parametrize(
    ("labels", "a", "b"),
    [
        ("ij,jk->ik", (3, 4), (4, 5)),
        ("ij,jk->ki", (3, 4), (4, 5)),
        ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
        ("i,i->", (7,), (7,)),
        ("i,i->", (1,), (1,)),
        ("i,j->ij", (3,), (4,)),
        ("ijk,kj->i", (3, 4, 5), (5, 4)),
        ("ij,j->ij", (3, 4), (4,)),
        ("ij,jk->ik", (3, 0), (0, 5)),
        ("ij,jk->ik", (0, 3), (3, 5)),
        ("ij,ij->", (70, 90), (70, 90)),
    ],
)
def test_contractions(labels, a, b, dtype):
    g = GraphBuilder()
    x, y = g.input("x", *a, dtype=dtype), g.input("y", *b, dtype=dtype)
    checked_stages(g.graph(g.contract(labels, x, y)))


@pytest.mark.parametrize("dtype", SUPPORTED)
def test_casts(dtype):
    g = GraphBuilder()
    x = g.input("x", 5, dtype="int16")
    checked_stages(g.graph(g.cast(x, dtype)))


def test_padding_of_nothing_and_by_nothing():
    g = GraphBuilder()
    x, empty = g.input("x", 2, 3), g.input("empty", 0, 3)
    fill = g.input("fill")
    checked_stages(
        g.graph(
            g.pad(x, fill, (0, 0), (0, 0)),
            g.pad(empty, fill, (1, 0), (1, 2)),
            g.pad(x, fill, (0, 2), (3, 0)),
        )
    )


def test_joining_with_nothing():
    g = GraphBuilder()
    x, empty = g.input("x", 2, 3), g.input("empty", 0, 3)
    graph = g.graph(
        g.concat(empty, x, empty, axis=0),
        g.concat(empty, empty, axis=0),
        g.concat(empty, empty, axis=1),
        g.concat(x, axis=1),
    )
    checked_stages(graph)


def test_constants_are_read_through_views():
    g = GraphBuilder()
    x = g.input("x", 2, 3)
    filled = g.reshape(g.broadcast(float32(2.5), 3, 2), 2, 3)
    checked_stages(g.graph(g.op("add", x, filled), g.reduce("sum", filled, 0, 1), filled))


def test_reshapes_inside_padding_inside_reshapes():
    g = GraphBuilder()
    x = g.input("x", 6, 4)
    padded = g.pad(g.reshape(g.op("exp", x), 2, 12), float32(0), (1, 1), (1, 2))
    checked_stages(g.graph(g.op("negative", g.reshape(padded, 15, 4))))


def test_thousands_of_equations_and_of_views():
    g = GraphBuilder()
    x = value = g.input("x", 4, 6)
    for _ in range(1500):
        value = g.op("add", value, x)
        value = g.reshape(g.transpose(value, 1, 0), 4, 6)
    checked_stages(g.graph(value))


def test_thousands_of_views_of_one_value():
    g = GraphBuilder()
    view = g.input("x", 4, 6)
    for _ in range(1000):
        view = g.reshape(g.transpose(view, 1, 0), 4, 6)
    stages = checked_stages(g.graph(view))
    assert len(stages.stages) < 500


def test_a_thousand_arrays_joined():
    g = GraphBuilder()
    checked_stages(g.graph(g.concat(*[g.input("x", 2) for _ in range(1000)], axis=0)))


UNARY = ("exp", "negative", "square", "absolute")
BINARY = ("add", "subtract", "multiply", "maximum")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A random program of views, edges, reductions and arithmetic on small float32 arrays."""
    g = GraphBuilder("program")
    values = [g.input("x", *draw(shapes)), g.input("y", *draw(shapes))]
    for _ in range(draw(st.integers(1, 7))):
        step = draw(st.sampled_from(STEPS))
        values.append(step(draw, g, draw(st.sampled_from(values))))
    returned = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return g.graph(*returned, values[-1])


shapes = st.lists(st.sampled_from([1, 2, 3, 5, 0, 66]), min_size=0, max_size=3)


def _unary(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    return g.op(draw(st.sampled_from(UNARY)), x)


def _binary(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    other = draw(st.sampled_from([x, float32(0.5)]))
    return g.op(draw(st.sampled_from(BINARY)), x, other)


def _transpose(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    return g.transpose(x, *draw(st.permutations(range(len(x.shape)))))


def _reshape(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    factors = [f for extent in x.shape for f in ([2, 33] if extent == 66 else [extent])]
    cuts = draw(st.lists(st.integers(0, len(factors)), max_size=3))
    ends = [0, *sorted(cuts), len(factors)]
    parts = [factors[a:b] for a, b in itertools.pairwise(ends)]
    return g.reshape(x, *[int(np.prod(part)) for part in parts])


def _broadcast(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    if x.shape and x.shape[0] == 1:
        return g.broadcast(x, 4, *x.shape[1:])
    return g.broadcast(x, 2, *x.shape)


def _slice(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    choices = [
        slice(None),
        slice(None, None, -1),
        slice(1, None, 2),
        slice(-1, None, -2),
        slice(0, 1),
    ]
    return g.slice(x, [draw(st.sampled_from(choices)) for _ in x.shape])


def _windows(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    axes = [axis for axis, extent in enumerate(x.shape) if extent >= 2]
    return g.windows(x, (2,), (draw(st.sampled_from(axes)),)) if axes else x


def _pad(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    widths = [tuple(draw(st.integers(0, 2)) for _ in x.shape) for _ in range(2)]
    return g.pad(x, float32(-1), *widths)


def _concat(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    if not x.shape:
        return x
    axis = draw(st.integers(0, len(x.shape) - 1))
    return g.concat(x, g.op("negative", x), x, axis=axis)


def _reduce(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    axes = sorted(draw(st.sets(st.integers(0, max(0, len(x.shape) - 1)))) if x.shape else [])
    op = draw(st.sampled_from(["sum", "prod"] if 0 in x.shape else REDUCTIONS))
    result = g.reduce(op, x, *axes)
    keep = draw(st.booleans())
    kept = [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]
    return g.reshape(result, *kept) if keep else result


def _argmax(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    if not x.shape or 0 in x.shape:
        return x
    axis = draw(st.integers(0, len(x.shape) - 1))
    return g.cast(g.reduce(draw(st.sampled_from(["argmax", "argmin"])), x, axis), np.float32)


def _contract(draw: st.DrawFn, g: GraphBuilder, x: Var) -> Var:
    labels = "abcdefghijkl"[: len(x.shape)]
    if not labels or len(labels) > 6:
        return x
    out = "".join(draw(st.permutations(labels)))[: draw(st.integers(0, len(labels)))]
    return g.contract(f"{labels},{labels}->{out}", x, x)


STEPS = [
    _unary,
    _binary,
    _transpose,
    _reshape,
    _broadcast,
    _slice,
    _windows,
    _pad,
    _concat,
    _reduce,
]
STEPS += [_argmax, _contract]


@settings(max_examples=150)
@given(graphs())
def test_random_programs(graph):
    if max([int(np.prod(eqn.output.shape)) for eqn in graph.eqns], default=0) < 20_000:
        checked_stages(graph)


def test_literals_of_every_kind():
    g = GraphBuilder()
    x = g.input("x", 3, dtype="int32")
    graph = g.graph(g.op("add", x, Literal(np.int32(-5))), Literal(np.bool_(True)))
    checked_stages(graph)
