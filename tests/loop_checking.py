"""Python's loops: which of them a graph has, and whether they compute what they did."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import tinyfuse
from tinyfuse.graph.control import all_graphs
from tinyfuse.tree import flatten


def kinds_of_loops(function: Callable[..., Any], *args: Any) -> list[str]:
    """Those that the graph has, those inside others too."""
    graph = tinyfuse.jit(function).lower(*copy.deepcopy(args)).graph
    eqns = [eqn for each in all_graphs(graph) for eqn in each.eqns]
    return [eqn.primitive.name for eqn in eqns if eqn.primitive.name in ("loop", "while")]


def loops_in(function: Callable[..., Any], *args: Any) -> int:
    """How many loops of known length there are."""
    return kinds_of_loops(function, *args).count("loop")


def assert_same(function: Callable[..., Any], *args: Any) -> None:
    """jit returns what the function does, and writes its arguments alike."""
    mine, its = copy.deepcopy(args), copy.deepcopy(args)
    expected, found = function(*mine), tinyfuse.jit(function)(*its)
    pairs = zip(flatten((expected, mine))[0], flatten((found, its))[0], strict=True)
    for one, other in pairs:
        assert type(one) is type(other)
        np.testing.assert_allclose(one, other, rtol=1e-12)
