"""How the outputs of a traced function come about, and the object that makes them at each call.

An output is compiled, unless the caller has it already: an argument that comes back untouched is
the same object, and a view of an argument is a real view, made by numpy on the caller's array. So
it is with arrays captured from outside, and with views of another output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.dtypes import describe
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.graph.interpreter import VIEWS as VIEW_FUNCTIONS
from tinyfuse.graph.primitives import broadcast, reshape, slice_, transpose, windows
from tinyfuse.graph.simplify import simplify
from tinyfuse.runtime.library import Entry, scratch
from tinyfuse.signature import Signature
from tinyfuse.trace import Captured, OutputSpec, Trace
from tinyfuse.tree import LEAF

VIEWS = frozenset((broadcast, reshape, transpose, slice_, windows))

ALIGNED_AND_CONTIGUOUS = 0x100 | 0x1  # of ndarray.flags.num


@dataclass(frozen=True, slots=True)
class Plan:
    """How the values that a trace returns come about.

    computed: what is compiled: a graph of the inputs that it reads, to outputs that are all different.
    operands: for each of its inputs the position among those of the trace's graph.
    slots: for each value that is compiled the position in `computed.outputs`.
    views: what numpy makes: a graph from inputs of the trace's and from compiled values.
    """

    computed: Graph
    operands: tuple[int, ...]
    slots: dict[Atom, int]
    views: Graph


def plan_outputs(trace: Trace) -> Plan:
    """Decide on each output. What is a view is so in the graph as traced: a copy of an argument is not."""
    graph = trace.graph
    wanted = [atom for atom in dict.fromkeys(graph.outputs) if isinstance(atom, Var)]
    views = _views(graph, wanted, _callers(trace))
    compiled = [atom for atom in wanted if atom not in views.outputs]
    computed, slots = _computed(graph, compiled)
    return Plan(computed, tuple([graph.inputs.index(var) for var in computed.inputs]), slots, views)


def _callers(trace: Trace) -> dict[Var, None]:
    """Inputs that someone outside holds; not the arrays that the function made while it was traced."""
    arguments = len(trace.graph.inputs) - len(trace.captured)
    made = [None] * arguments + [captured.place is None for captured in trace.captured]
    return {var: None for var, is_made in zip(trace.graph.inputs, made, strict=True) if not is_made}


def _views(graph: Graph, wanted: Sequence[Var], callers: Collection[Var]) -> Graph:
    """The wanted values that are views, from the callers' and wanted values that they are views of."""
    producers = {eqn.output: eqn for eqn in graph.eqns}
    known = {*callers, *wanted}
    roots: dict[Var, None] = {}
    steps: set[Var] = set()
    outputs: dict[Var, None] = {}
    for var in wanted:
        chain, root = _chain(var, producers, known)
        if root in known and (chain or root in callers):
            outputs[var] = None
            roots[root] = None
            steps.update(chain)
    inputs = tuple([root for root in roots if root not in steps])
    eqns = tuple([eqn for eqn in graph.eqns if eqn.output in steps])
    return Graph(graph.name, inputs, eqns, tuple(outputs))


def _chain(
    var: Var, producers: Mapping[Var, Eqn], known: Collection[Var]
) -> tuple[list[Var], Atom]:
    """The views from `var` back to the nearest known value, or to what is no view; and that."""
    chain: list[Var] = []
    atom: Atom = var
    while isinstance(atom, Var) and not (chain and atom in known):
        eqn = producers.get(atom)
        if eqn is None or eqn.primitive not in VIEWS:
            break
        chain.append(atom)
        atom = eqn.inputs[0]
    return chain, atom


def _computed(graph: Graph, outputs: Sequence[Var]) -> tuple[Graph, dict[Atom, int]]:
    """The graph of these outputs, simplified, and where each is among the simplified ones."""
    simple = simplify(Graph(graph.name, graph.inputs, graph.eqns, tuple(outputs)))
    positions: dict[Atom, int] = {}
    slots: dict[Atom, int] = {}
    for var, atom in zip(outputs, simple.outputs, strict=True):
        slots[var] = positions.setdefault(atom, len(positions))
    used = {atom for eqn in simple.eqns for atom in eqn.inputs} | set(positions)
    inputs = tuple([var for var in simple.inputs if var in used])
    return Graph(graph.name, inputs, simple.eqns, tuple(positions)), slots


class Stale(Exception):
    """A captured array is not any more of the type that a program was compiled for."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a program is called.

    places: for each argument of its graph the place in what a call is given.
    arity: how much a call is given.
    foreign: whether some array is not in native byte order.
    copied: called with the name of an array that has to be copied at the call.
    """

    places: tuple[int, ...]
    arity: int
    foreign: bool
    copied: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Program:
    """What has been compiled of a trace; no entry where all outputs are views or constants."""

    trace: Trace
    plan: Plan
    entry: Entry | None
    scratch_bytes: int
    threads: int | None


Finish = Callable[[Any], Any] | None


class Executable:
    """A compiled program and all that happens around it at a call. Any thread may call it.

    The values of a call are the compiled ones, then those objects of the caller that are returned
    or viewed, then the views.
    """

    __slots__ = (
        *("_captured", "_checks", "_copies", "_finishes", "_operands", "_plain", "_program"),
        *("_results", "_returned", "_roots", "_single", "_site", "_steps", "signature", "used"),
    )

    def __init__(self, program: Program, site: Site, signature: Signature) -> None:
        trace, plan = program.trace, program.plan
        self._program, self._site = program, site
        self.signature = signature
        self.used = 0  # when it was called last, for the cache that holds it
        inputs = trace.graph.inputs
        self._captured = tuple(zip(trace.captured, inputs[len(site.places) :], strict=True))
        places = (*site.places, *range(site.arity, site.arity + len(self._captured)))
        self._operands = [(places[at], inputs[at]) for at in plan.operands]
        self._results = [(var.shape, var.dtype) for var in plan.computed.outputs]
        values, self._copies = _compiled_values(plan)
        self._roots = [places[inputs.index(root)] for root in plan.views.inputs if root not in values]
        values += [root for root in plan.views.inputs if root not in values]
        values += [eqn.output for eqn in plan.views.eqns]
        position = {value: at for at, value in enumerate(values)}
        self._steps = [(eqn, position[eqn.inputs[0]]) for eqn in plan.views.eqns]
        self._returned = [_returned(output, position) for output in trace.outputs]
        self._checks = [(position[check.output], check) for check in trace.checks]
        self._plain = not (self._copies or self._roots or self._steps)
        self._single = self._returned[0] if trace.out_tree == LEAF else None

    def __call__(self, args: Sequence[Any]) -> Any:
        """The function's result for the leaves of its arguments.

        Raises:
            Stale: a captured array has another type now.
            Exception: what a check of the trace says.
        """
        program, foreign = self._program, self._site.foreign
        if self._captured:
            args = [*args, *self._current()]
        arrays = [
            arg
            if type(arg := args[place]) is np.ndarray
            and arg.flags.num & ALIGNED_AND_CONTIGUOUS == ALIGNED_AND_CONTIGUOUS
            and not foreign
            else self._native(arg, var)
            for place, var in self._operands
        ]
        values = [np.empty(shape, dtype) for shape, dtype in self._results]
        if program.entry is not None:
            program.entry(arrays + values, scratch(program.scratch_bytes), program.threads)
        if not self._plain:
            self._complete(values, args)
        for position, check in self._checks:
            if values[position]:
                raise check.error(check.message)
        if self._single is not None:
            return _finished(self._single, values)
        return program.trace.out_tree.unflatten([_finished(leaf, values) for leaf in self._returned])

    def _native(self, value: Any, var: Var) -> np.ndarray:
        """An operand as compiled code reads it: aligned, in C order and native byte order."""
        array = np.require(value, var.dtype, ("C_CONTIGUOUS", "ALIGNED"))
        if isinstance(value, np.ndarray) and array is not value and array.base is not value:
            self._site.copied(var.name or "an array")
        return array

    def _current(self) -> list[np.ndarray]:
        return [_current(captured, var) for captured, var in self._captured]

    def _complete(self, values: list[Any], args: Sequence[Any]) -> None:
        """Add the values that are not compiled."""
        values += [values[slot].copy() for slot in self._copies]
        values += [args[place] for place in self._roots]
        for eqn, operand in self._steps:
            values.append(VIEW_FUNCTIONS[eqn.primitive](eqn, np.asarray(values[operand])))


def _compiled_values(plan: Plan) -> tuple[list[Atom], list[int]]:
    """The traced values in order of their slots, then those that share one; and the slots of these."""
    first: dict[int, Atom] = {}
    others = [atom for atom, slot in plan.slots.items() if first.setdefault(slot, atom) is not atom]
    return [*first.values(), *others], [plan.slots[atom] for atom in others]


Returned = tuple[int | None, Any, Finish]  # position among the values, or a constant; its last step


def _returned(output: OutputSpec, position: Mapping[Atom, int]) -> Returned:
    atom = output.atom
    if isinstance(atom, Literal):
        return None, atom.value, _FINISHES[output.is_scalar, output.weak]
    if not isinstance(atom, Var):
        return None, atom, None
    return position[atom], None, _FINISHES[output.is_scalar, output.weak]


def _finished(returned: Returned, values: Sequence[Any]) -> Any:
    position, constant, finish = returned
    value = constant if position is None else values[position]
    return value if finish is None else finish(value)


def _as_scalar(value: Any) -> Any:
    return value[()]


def _as_float(value: Any) -> float:
    return value if type(value) is float else value.item()


def _as_array(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else np.array(value)


_FINISHES: dict[tuple[bool, bool], Finish] = {
    (True, False): _as_scalar,
    (False, True): _as_float,
    (False, False): _as_array,
}


def _current(captured: Captured, var: Var) -> np.ndarray:
    """What a captured array is now. Raises Stale where the program does not fit it."""
    try:
        array = captured.current()
    except Exception as error:
        raise Stale(f"the captured {var.name} cannot be read: {error}") from None
    if type(array) is type(captured.array) and (array.shape, array.dtype) == (var.shape, var.dtype):
        return array
    was = describe(var.shape, var.dtype)
    if not isinstance(array, np.ndarray):
        raise Stale(f"the captured {var.name} is no array any more, was {was}")
    raise Stale(f"the captured {var.name}: {describe(array.shape, array.dtype)}, was {was}")
