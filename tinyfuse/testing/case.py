"""A traced function with arguments, and all levels that it is lowered to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tinyfuse.api import jit
from tinyfuse.executable import simplified_in_parts
from tinyfuse.graph.complex_parts import joined_array, parts_array
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Graph, Var
from tinyfuse.graph.primitives import gather
from tinyfuse.graph.rewrites import rewritten
from tinyfuse.graph.verifier import verify_graph
from tinyfuse.memory import share_elements
from tinyfuse.signature import WEAK, with_aliases
from tinyfuse.stage.build_program import build_program
from tinyfuse.stage.ir import Stages
from tinyfuse.stage.program import Program as StagedProgram
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.testing.compact import CompactNumerics
from tinyfuse.testing.memory import fresh
from tinyfuse.testing.parting import with_constants
from tinyfuse.testing.program import Program, global_variables, quietly
from tinyfuse.trace import ArgumentSpec, NeedsValue, OutputSpec, Trace, trace
from tinyfuse.tree import flatten


class Part(NamedTuple):
    """The stages of a part of a program, and what a failure prints."""

    stages: Stages
    text: str


class Case:
    """A function on some arguments: each level of it is made on first use.

    Every run has copies of the arguments, which lie in memory as the originals do. A result is the
    leaves of what the function returns, then the caller's arrays as they are afterwards: those
    among the arguments, and the captured ones.

    text: what a failure prints. exact: whether numpy's bits can be expected of it. captured: those
    of the function's globals that are arrays, for functions that write them. reference: what is
    to be compared with the traced graph under compact numerics, in place of the function. dynamic:
    names of the parameters whose integers tracing does not know.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        text: str,
        exact: bool = True,
        *,
        captured: Mapping[str, np.ndarray] | None = None,
        reference: Callable[..., Any] | None = None,
        dynamic: Sequence[str] = (),
    ):
        self.function, self.arguments, self.text, self.exact = (
            function,
            tuple(arguments),
            text,
            exact,
        )
        self.captured = dict(captured or {})
        self.reference, self.dynamic = reference, tuple(dynamic)
        self._leaves, self._in_tree = flatten((self.arguments, {}))

    @cached_property
    def trace(self) -> Trace:
        specs = [_spec(leaf) for leaf in self._leaves]
        for name in self.dynamic:
            at = self._parameters.index(name)
            specs[at] = ArgumentSpec((), np.dtype(np.int64), "integer")
        while True:
            marked = with_aliases(specs, self._leaves)
            name = self.function.__name__
            try:
                return quietly(trace, self.function, self._in_tree, marked, name)
            except NeedsValue as needed:
                specs[needed.index] = _static(self._leaves[needed.index])

    @property
    def _parameters(self) -> list[str]:
        """One for each leaf, of functions that take nothing else."""
        return list(inspect.signature(self.function).parameters)

    @cached_property
    def arrays(self) -> list[np.ndarray]:
        """One for each input of the graph, as the caller laid it out; of complex ones the parts."""
        return list(map(parts_array, self._given))

    @cached_property
    def _given(self) -> list[np.ndarray]:
        """One for each input of the traced graph."""
        given = [
            leaf
            for leaf, spec in zip(self._leaves, self.trace.specs, strict=True)
            if spec.kind != "static"
        ]
        return [
            np.asarray(value)
            for value in (*given, *(each.current() for each in self.trace.captured))
        ]

    @cached_property
    def expected(self) -> list[Any]:
        """The result of the plain function, or of the reference where there is one."""
        return self._run(self.reference or self.function)[0]

    def traced(self) -> list[Any]:
        """The same by way of the graph, with numpy's numerics."""
        numerics = NumpyNumerics() if self.reference is None else CompactNumerics()
        return self.returned(interpret(self.trace.graph, self._given, numerics))

    def returned(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """The result, of the graph's outputs, or those of the traced one.

        Raises AssertionError where a check of the trace says that the call has to raise.
        """
        pairs = zip(arrays, self.trace.graph.outputs, strict=True)
        found = iter([joined_array(array, atom.dtype) for array, atom in pairs])
        results = [_as_numpy_returns(output, found) for output in self.trace.outputs]
        for check in self.trace.checks:
            assert not next(found), f"raises {check.error.__name__}: {check.message}"
        written = {each.input: next(found) for each in self.trace.written}
        return [*results, *self._afterwards(written)]

    def _afterwards(self, written: Mapping[Var, np.ndarray]) -> list[np.ndarray]:
        """The caller's arrays, of those that were written."""
        inputs = self._inputs()
        found = [(inputs.get(id(array)), array) for array in self._callers]
        return [array if var is None else written.get(var, array) for var, array in found]

    def _inputs(self) -> dict[int, Var]:
        """The input of the graph for each array; the first one for those of the same memory."""
        values: list[Any] = []
        for leaf, spec in zip(self._leaves, self.trace.specs, strict=True):
            if spec.kind != "static":
                values.append(leaf)
        values += [found.array for found in self.trace.captured]
        inputs: dict[int, Var] = {}
        for value, var in zip(values, self.trace.graph.inputs, strict=True):
            inputs.setdefault(id(value), var)
        for leaf, spec in zip(self._leaves, self.trace.specs, strict=True):
            if spec.alias is not None:
                inputs[id(leaf)] = inputs[id(self._leaves[spec.alias])]
        return inputs

    @cached_property
    def _callers(self) -> list[np.ndarray]:
        return _arrays([*self._leaves, *self.captured.values()])

    def jitted(self) -> list[Any]:
        """The result of what `tinyfuse.jit` makes of the function; then what shares memory."""
        result, shared = self._run(jit(self.function, dynamic=self.dynamic))
        if shared == NOTHING_SHARED and self._copies_a_view:
            shared = self.shared
        return [*result, shared]

    @property
    def _copies_a_view(self) -> bool:
        """Whether an element is taken at a place computed in the call: numpy returns a view of it,
        tinyfuse an array of its own."""
        gathers = [eqn for eqn in self.trace.graph.eqns if eqn.primitive is gather]
        return any(index.shape == () for eqn in gathers for index in eqn.inputs[1:])

    @cached_property
    def shared(self) -> str:
        """Which leaves of the plain function's result share memory with which of the caller's."""
        return self._run(self.function)[1]

    def _run(self, function: Callable[..., Any]) -> tuple[list[Any], str]:
        """The result, and which leaves share memory with the caller's arrays."""
        values = fresh([*self._leaves, *self.captured.values()])
        leaves, captured = values[: len(self._leaves)], values[len(self._leaves) :]
        arguments, _ = self._in_tree.unflatten(leaves)
        variables = global_variables(function) if captured else {}
        variables.update(zip(self.captured, captured, strict=True))
        try:
            results = flatten(quietly(function, *arguments))[0]
        finally:
            variables.update(self.captured)
        arrays = _arrays(values)
        return [*results, *arrays], _sharing(results, arrays)

    @cached_property
    def graph(self) -> Graph:
        graph = rewritten(simplified_in_parts(self.trace.graph))
        verify_graph(graph)
        return graph

    @cached_property
    def program(self) -> StagedProgram:
        return _verified(build_program(self.graph))

    @cached_property
    def constant_program(self) -> StagedProgram:
        """The same, with most inputs as constants."""
        return _verified(build_program(with_constants(self.graph)))

    @property
    def stages(self) -> Stages:
        """Those of a program without loops."""
        assert self.program.alone is not None
        return self.program.alone

    @property
    def parts(self) -> list[Part]:
        """What schedules are made for."""
        return [Part(segment.stages, self.text) for segment in self.program.segments]


def _verified(program: StagedProgram) -> StagedProgram:
    for part in program.segments:
        verify_stages(part.stages)
    return program


def program_case(program: Program) -> Case:
    """A random program with its arguments.

    Numpy sums in the order of memory. Written arrays lie otherwise in a graph than in numpy, and so
    do results of stride-0 arguments where their dtype changes.
    """
    values = [*program.arguments.values(), *program.captured.values()]
    repeats = any(isinstance(each, np.ndarray) and 0 in each.strides for each in values)
    return Case(
        program.function,
        tuple(program.arguments.values()),
        str(program),
        program.exact,
        captured=program.captured,
        reference=program.compact() if program.writes or repeats else None,
    )


def _arrays(values: Sequence[Any]) -> list[np.ndarray]:
    return [value for value in values if isinstance(value, np.ndarray)]


NOTHING_SHARED = "shared memory: none"


def _sharing(results: Sequence[Any], arrays: Sequence[np.ndarray]) -> str:
    pairs = [
        f"output {at} and the caller's array {number}"
        for at, result in enumerate(results)
        for number, array in enumerate(arrays)
        if isinstance(result, np.ndarray) and share_elements(result, array)
    ]
    return f"shared memory: {', '.join(pairs)}" if pairs else NOTHING_SHARED


def _spec(leaf: Any) -> ArgumentSpec:
    if isinstance(leaf, np.ndarray):
        return ArgumentSpec(leaf.shape, leaf.dtype, "array", strides=leaf.strides)
    if isinstance(leaf, np.generic):
        return ArgumentSpec((), leaf.dtype, "scalar")
    if type(leaf) in WEAK:
        return ArgumentSpec((), WEAK[type(leaf)], "weak")
    return _static(leaf)


def _static(leaf: Any) -> ArgumentSpec:
    return ArgumentSpec((), None, "static", leaf)


def _as_numpy_returns(output: OutputSpec, found: Iterator[np.ndarray]) -> Any:
    """An output as an array, a numpy scalar or a Python float, as the plain function returns it."""
    if output.is_static:
        return output.atom
    array = next(found)
    if output.weak:
        return array.item()
    return array[()] if output.is_scalar else array
