"""What all turns of a loop would compute alike is computed before it, if it costs much."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinyfuse
from tests.loop_checking import assert_same
from tinyfuse.graph.control import all_graphs
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case

GENERATOR = np.random.default_rng(0)
W, X = GENERATOR.random((8, 8)), GENERATOR.random((100, 8))


def recurrent(w: Any, x: Any) -> Any:
    h = np.zeros(8)
    for t in range(100):
        scale = np.exp(w).sum(axis=0)
        shift = w[0] + 1
        h = np.tanh(scale * h + x[t] + shift)
    return h


def until(w: Any, x: Any) -> Any:
    h, n = np.zeros(8), 0
    while h.sum() < 50:
        h = h + np.exp(x[0]) @ w
        n += 1
    return h, n


def nested(w: Any, x: Any) -> Any:
    total = np.zeros(8)
    for i in range(100):
        for j in range(70):
            total = total * 0.5 + np.sqrt(w[i % 8]) + np.log(x[3]) * j
    return total


def operations(function: Any) -> list[list[str]]:
    """Those of the whole program, then those of each loop, from the outermost on."""
    graphs = all_graphs(tinyfuse.jit(function).lower(W, X).graph)
    return [[each.params.get("op", each.primitive.name) for each in g.eqns] for g in graphs]


def test_reductions_and_dear_operations_come_before_the_loop():
    outside, inside = operations(recurrent)
    assert "exp" in outside
    assert "sum" in outside
    assert {"exp", "sum"}.isdisjoint(inside)
    assert inside.count("add") == 3  # what is cheap stays


def test_loops_that_data_ends():
    outside, inside = operations(until)
    assert "contract" in outside
    assert "contract" not in inside


def test_each_operation_leaves_as_many_loops_as_it_can():
    outside, outer, inner = operations(nested)
    assert "log" in outside
    assert "sqrt" in outer
    assert {"log", "sqrt"}.isdisjoint(inner)


def test_every_level_computes_the_same_bits():
    for function in (recurrent, until, nested):
        assert_same(function, W, X)
    cases = [Case(each, (W, X), f"# {each.__name__}") for each in (recurrent, until, nested)]
    report = Ladder(jit_of=lambda case: True).climb(cases)
    assert "\n".join(map(str, report.failures)) == ""
