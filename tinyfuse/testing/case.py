"""A traced function with arguments, and all levels that it is lowered to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tinyfuse.api import jit
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.simplify import simplify
from tinyfuse.graph.verifier import verify_graph
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.ir import Stages
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.testing.program import Program, quietly
from tinyfuse.trace import ArgumentSpec, NeedsValue, OutputSpec, Trace, trace
from tinyfuse.tree import flatten


class Case:
    """A function on some arguments: each level of it is made on first use.

    text: what a failure prints. exact: whether numpy's bits can be expected of it.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Sequence[Any], text: str, exact: bool = True
    ):
        self.function, self.arguments, self.text, self.exact = (
            function,
            tuple(arguments),
            text,
            exact,
        )

    @cached_property
    def trace(self) -> Trace:
        leaves, in_tree = flatten((self.arguments, {}))
        specs = [_spec(leaf) for leaf in leaves]
        while True:
            try:
                return quietly(trace, self.function, in_tree, specs, self.function.__name__)
            except NeedsValue as needed:
                specs[needed.index] = _static(leaves[needed.index])

    @cached_property
    def arrays(self) -> list[np.ndarray]:
        """One for each input of the graph, as the caller laid it out."""
        leaves, _ = flatten((self.arguments, {}))
        given = [
            leaf
            for leaf, spec in zip(leaves, self.trace.specs, strict=True)
            if spec.kind != "static"
        ]
        return [
            np.asarray(value)
            for value in (*given, *(each.current() for each in self.trace.captured))
        ]

    @cached_property
    def expected(self) -> list[Any]:
        """The leaves of what the plain function returns."""
        return flatten(quietly(self.function, *self.arguments))[0]

    def traced(self) -> list[Any]:
        """The same by way of the graph, with numpy's numerics."""
        return self.returned(interpret(self.trace.graph, self.arrays, NumpyNumerics()))

    def returned(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """The leaves that the function returns, of the graph's outputs."""
        found = iter(arrays)
        return [_as_numpy_returns(output, found) for output in self.trace.outputs]

    def jitted(self) -> list[Any]:
        """The leaves of what `tinyfuse.jit` makes of the function."""
        return flatten(quietly(jit(self.function), *self.arguments))[0]

    @cached_property
    def graph(self) -> Graph:
        graph = simplify(self.trace.graph)
        verify_graph(graph)
        return graph

    @cached_property
    def stages(self) -> Stages:
        stages = build_stages(self.graph)
        verify_stages(stages)
        return stages


def program_case(program: Program) -> Case:
    """A random program with its arguments."""
    return Case(program.function, tuple(program.arguments.values()), str(program), program.exact)


def _spec(leaf: Any) -> ArgumentSpec:
    if isinstance(leaf, np.ndarray):
        return ArgumentSpec(leaf.shape, leaf.dtype, "array")
    if isinstance(leaf, np.generic):
        return ArgumentSpec((), leaf.dtype, "scalar")
    if isinstance(leaf, float):
        return ArgumentSpec((), np.dtype(np.float64), "weak")
    return _static(leaf)


def _static(leaf: Any) -> ArgumentSpec:
    return ArgumentSpec((), None, "static", leaf)


def _as_numpy_returns(output: OutputSpec, found: Iterator[np.ndarray]) -> Any:
    """An output as an array, a numpy scalar or a Python float, as the plain function returns it."""
    if output.is_static:
        return output.atom
    array = next(found)
    if output.weak:
        return float(array)
    return array[()] if output.is_scalar else array
