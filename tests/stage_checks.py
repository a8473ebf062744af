"""Stages against graphs: one program, two interpreters, the same bits; and what stages take."""

from __future__ import annotations

import numpy as np

from tests.graphs import PlainNumerics
from tinyfuse.graph.interpreter import interpret
from tinyfuse.graph.ir import Graph, Var
from tinyfuse.graph.scalar_ops import cost
from tinyfuse.schedule.cost import stage_cost
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.interpreter import interpret_stages
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.testing.compare import difference


def input_arrays(graph: Graph, seed: int = 7) -> list[np.ndarray]:
    """Arrays for the inputs; floats with a few NaN, infinities and zeros of both signs."""
    random = np.random.default_rng(seed)
    return [_array(random, var) for var in graph.inputs]


def _array(random: np.random.Generator, var: Var) -> np.ndarray:
    if var.dtype.kind == "f":
        values = random.standard_normal(var.shape).astype(var.dtype)
        nasty = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30], var.dtype)
        chosen = random.random(var.shape) < 0.02
        return np.asarray(np.where(chosen, random.choice(nasty, var.shape), values))
    high = 2 if var.dtype.kind == "b" else 100
    return np.asarray(random.integers(0, high, var.shape)).astype(var.dtype)


def checked_stages(graph: Graph) -> Stages:
    """The verified stages of a graph, whose interpreter gives the bits of the graph's."""
    stages = build_stages(graph)
    verify_stages(stages)
    arrays, numerics = input_arrays(graph), PlainNumerics()
    expected = interpret(graph, arrays, numerics)
    computed = interpret_stages(stages, arrays, numerics)
    for one, other in zip(expected, computed, strict=True):
        assert difference(one, other.reshape(one.shape)) is None
    return stages


def additions(stage: Stage) -> int:
    """How long computing a stage once takes in vector code, in additions."""
    return sum(cost(operation.name) * times for operation, times in stage_cost(stage).operations)
