"""Kinds and readers of stages."""

from __future__ import annotations

import pytest

from tests.graphs import GraphBuilder, float32
from tinyfuse.graph.ir import Graph
from tinyfuse.stage.analysis import Kind, consumers, kind
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.ir import Stage


def last(graph: Graph) -> Stage:
    return build_stages(graph).stages[-1]


def built(make) -> Stage:
    g = GraphBuilder()
    x, y = g.input("x", 4, 6), g.input("y", 6)
    return last(g.graph(make(g, x, y)))


KINDS = {
    Kind.ELEMENTWISE: [
        lambda g, x, y: g.op("exp", x),
        lambda g, x, y: g.op("add", x, float32(1)),
        lambda g, x, y: g.cast(x, "int32"),
        lambda g, x, y: g.broadcast(float32(1), 3),
    ],
    Kind.BROADCAST: [
        lambda g, x, y: g.op("add", x, g.broadcast(y, 4, 6)),
        lambda g, x, y: (
            g.broadcast(g.slice(x, (slice(None), slice(0, 1))), 4, 6)
            and g.op("exp", g.broadcast(g.reshape(y, 6, 1), 6, 2))
        ),
    ],
    Kind.INJECTIVE: [
        lambda g, x, y: g.op("exp", g.transpose(g.op("exp", x), 1, 0)),
        lambda g, x, y: g.op("exp", g.slice(y, (slice(1, None),))),
        lambda g, x, y: g.op("exp", g.reshape(x, 24)),
        lambda g, x, y: g.pad(y, float32(0), (1,), (1,)),
        lambda g, x, y: g.concat(y, y, axis=0),
        lambda g, x, y: g.op("exp", g.windows(y, (2,), (0,))),
        lambda g, x, y: g.op("exp", g.slice(x, (slice(0, 1), slice(0, 1)))),
    ],
    Kind.REDUCTION: [
        lambda g, x, y: g.reduce("sum", x, 1),
        lambda g, x, y: g.reduce("argmax", x, 0),
        lambda g, x, y: g.contract("ij,ij->i", x, x),
    ],
    Kind.CONTRACTION: [
        lambda g, x, y: g.contract("ij,j->i", x, y),
        lambda g, x, y: g.contract("ij,kj->ik", x, x),
    ],
}


@pytest.mark.parametrize(
    ("expected", "make"), [(kind, make) for kind, makes in KINDS.items() for make in makes]
)
def test_kinds_come_from_the_index_maps(expected, make):
    assert kind(built(make)) is expected


def test_consumers_stand_in_the_order_of_the_program():
    g = GraphBuilder()
    x, unused = g.input("x", 4), g.input("unused", 4)
    a = g.op("exp", x, name="a")
    b = g.op("add", a, x, name="b")
    c = g.op("multiply", a, a, name="c")
    stages = build_stages(g.graph(g.op("add", b, c, name="d")))
    readers = consumers(stages)
    assert {stage.name: [reader.name for reader in readers[stage]] for stage in readers} == {
        "x": ["a", "b"],
        "unused": [],
        "a": ["b", "c"],
        "b": ["d"],
        "c": ["d"],
        "d": [],
    }
    assert unused.name == "unused"
