"""How the outputs of a traced function come about, and the object that makes them at each call.

An output is compiled, unless the caller has it already: an argument that comes back untouched is
the same object, and a view of an argument is a real view, made by numpy on the caller's array. So
it is with arrays captured from outside, and with views of another output.

What the function writes of the caller's is computed apart, and written back at the end of the call,
when nothing can fail any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyfuse.dispatch import DirectCall
from tinyfuse.effects import Requirements
from tinyfuse.graph.complex_parts import with_parts
from tinyfuse.graph.interpreter import VIEWS as NUMPY_VIEWS
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.graph.primitives import broadcast, part, reshape, slice_, transpose, windows
from tinyfuse.graph.rewrites import rewritten
from tinyfuse.graph.simplify import simplify
from tinyfuse.memory import CONTIGUOUS_AND_ALIGNED
from tinyfuse.records import dataclass
from tinyfuse.runtime.library import scratch
from tinyfuse.signature import Signature, StaleError, TracedArgumentError
from tinyfuse.trace import Captured, OutputSpec, Trace
from tinyfuse.trace.builder import state
from tinyfuse.trace.captured import Guard, type_difference
from tinyfuse.tree import LEAF

NOT_AS_READ = "is not in C order (or not aligned, or not in native byte order)"

VIEWS = frozenset((broadcast, part, reshape, transpose, slice_, windows))


@dataclass(frozen=True, slots=True)
class Plan:
    """How the values that a trace returns come about.

    computed: what is compiled: from the inputs that it reads to outputs that are all different, all
        of them real: see `complex_parts`.
    results: the types of its outputs, as arrays of the trace's graph.
    operands: for each of its inputs the position among those of the trace's graph.
    slots: for each value that is compiled the position in `computed.outputs`.
    views: what numpy makes: from inputs of the trace's graph, from compiled values, and from arrays
        that have been written.
    """

    computed: Graph
    results: tuple[tuple[tuple[int, ...], np.dtype], ...]
    operands: tuple[int, ...]
    slots: dict[Atom, int]
    views: Graph


def plan_outputs(trace: Trace, rewrites: Collection[str]) -> Plan:
    """Decide for each output who makes it, by the graph as traced: there a copy is no view.

    rewrites: names of those that the computed graph goes through.
    """
    graph = trace.graph
    wanted = _vars(_compiled_or_viewed(trace))
    views = _views(graph, wanted, _callers(trace))
    wanted = _vars([*wanted, *[written.value for written in trace.written]])
    made_by_numpy = set(views.outputs) - {written.value for written in trace.written}
    computed, slots, operands = _computed(
        graph, [var for var in wanted if var not in made_by_numpy], rewrites
    )
    views = Graph(graph.name, (*views.inputs, *trace.roots), (*views.eqns, *trace.views), ())
    types = {slot: (atom.shape, atom.dtype) for atom, slot in slots.items()}
    results = tuple([types[slot] for slot in range(len(types))])
    return Plan(computed, results, operands, slots, views)


def _vars(atoms: Iterable[Atom]) -> list[Var]:
    return [atom for atom in dict.fromkeys(atoms) if isinstance(atom, Var)]


def _compiled_or_viewed(trace: Trace) -> list[Atom]:
    """Results that share no memory with an array that is written, and the outputs of checks."""
    results = [each.atom for each in trace.outputs if not each.is_static and each.shared is None]
    return [*results, *[check.output for check in trace.checks]]


def _callers(trace: Trace) -> set[Var]:
    """The inputs that somebody outside holds, and that are not written.

    Arrays that the function made while traced are not held outside.
    """
    inputs = trace.graph.inputs
    arguments = len(inputs) - len(trace.captured)
    captured = zip(inputs[arguments:], trace.captured, strict=True)
    held = {*inputs[:arguments], *[var for var, found in captured if found.place is not None]}
    return held - {written.input for written in trace.written}


def _views(graph: Graph, wanted: Sequence[Var], callers: Collection[Var]) -> Graph:
    """Those wanted values that are a caller's or views, from what they are views of."""
    producers = {eqn.output: eqn for eqn in graph.eqns}
    known = {*callers, *wanted}
    roots: dict[Var, None] = {}
    steps: set[Var] = set()
    outputs: list[Var] = []
    for var in wanted:
        chain, root = _chain(var, producers, known)
        if isinstance(root, Var) and (root in callers or (chain and root in known)):
            outputs.append(var)
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


def _computed(
    graph: Graph, outputs: Sequence[Var], rewrites: Collection[str]
) -> tuple[Graph, dict[Atom, int], tuple[int, ...]]:
    """The graph of these outputs, simplified, where each is among the simplified ones, and the
    places of its inputs among those of the given one."""
    simple = simplified_in_parts(Graph(graph.name, graph.inputs, graph.eqns, tuple(outputs)))
    simple = rewritten(simple, rewrites)
    positions: dict[Atom, int] = {}
    slots: dict[Atom, int] = {}
    for var, atom in zip(outputs, simple.outputs, strict=True):
        slots[var] = positions.setdefault(atom, len(positions))
    used = {atom for eqn in simple.eqns for atom in eqn.inputs} | set(positions)
    operands = tuple([at for at, var in enumerate(simple.inputs) if var in used])
    inputs = tuple([simple.inputs[at] for at in operands])
    return Graph(graph.name, inputs, simple.eqns, tuple(positions)), slots, operands


def simplified_in_parts(graph: Graph) -> Graph:
    """The graph that is compiled, with an input and an output for each."""
    simple = simplify(graph)
    real = with_parts(simple)
    return simple if real is simple else simplify(real)


@dataclass(frozen=True, slots=True)
class Program:
    """What has become of a trace; it has no entry where nothing is to be computed.

    kept: flat arrays, with their names, that have been computed of constants; the entry takes them
    after its other inputs.
    """

    trace: Trace
    plan: Plan
    entry: Callable[..., int] | None
    scratch_bytes: int
    threads: int | None
    microseconds: float  # that a run takes, roughly
    check: Callable[[Sequence[np.ndarray]], None] | None = None  # of its operands, before it runs
    kept: tuple[tuple[str, np.ndarray], ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """Where a program is called.

    places: for each argument of its graph the place in what a call is given.
    arity: how much a call is given.
    swapped: whether some array is not in native byte order.
    copied: called with the name of an array that each call has to copy, and why.
    """

    places: tuple[int, ...]
    arity: int
    swapped: bool
    copied: Callable[[str, str], None]


class Executable:
    """A compiled program and all that happens around it at a call. Any thread may call it.

    The values of a call are the compiled ones, then copies of some, then those objects of the
    caller that are returned or viewed, then the views.
    """

    __slots__ = (
        *("captured", "check", "checks", "copies", "direct_calls", "entry", "guards", "leaves"),
        *("operands", "out_tree", "requirements", "results", "roots", "scratch_bytes", "signature"),
        *("microseconds", "steps", "swapped", "threads", "writes"),
        *("_alone", "_direct", "_graph", "_layout", "_place_of", "_site", "_used"),
    )

    def __init__(self, program: Program, site: Site, signature: Signature) -> None:
        self.signature = signature
        self.direct_calls: dict[Any, DirectCall | None] = {}  # by the form of a call
        self.swapped = site.swapped
        self.microseconds = program.microseconds
        self._used = 0
        self._site = site
        self.entry, self.check = program.entry, program.check
        self.scratch_bytes, self.threads = program.scratch_bytes, program.threads
        # What the flags of an array are that is taken as it is; -1 for none.
        self._layout = -1 if site.swapped else CONTIGUOUS_AND_ALIGNED
        self._arrange_inputs(program)
        self._arrange_outputs(program)

    @property
    def used(self) -> int:
        """When it was called last, for the cache that holds it."""
        direct = [call.used for call in self.direct_calls.values() if call is not None]
        return max(self._used, *direct) if direct else self._used

    @used.setter
    def used(self, now: int) -> None:
        self._used = now

    def _arrange_inputs(self, program: Program) -> None:
        self._graph = program.trace.graph
        inputs, captured = self._graph.inputs, program.trace.captured
        site = self._site
        self.guards = program.trace.guards
        kept = [
            (Captured(array, None), Var(array.shape, array.dtype, name))
            for name, array in program.kept
        ]
        self.captured = (*zip(captured, inputs[len(site.places) :], strict=True), *kept)
        places = (*site.places, *range(site.arity, site.arity + len(captured)))
        self.operands = [(places[at], inputs[at]) for at in program.plan.operands]
        after = site.arity + len(captured)
        self.operands += [(after + at, var) for at, (_, var) in enumerate(kept)]
        self._place_of = dict(zip(inputs, places, strict=True))
        self._place_of.update({r: self._place_of[var] for r, var in program.trace.roots.items()})
        roots = [root for root in program.plan.views.inputs if root in self._place_of]
        self.roots = [(root, self._place_of[root]) for root in roots]
        required = Requirements(program.trace, self._place_of, self.signature)
        self.requirements = required if required.any else None

    def _arrange_outputs(self, program: Program) -> None:
        trace, plan = program.trace, program.plan
        self.results = plan.results
        first = {slot: atom for atom, slot in reversed(plan.slots.items())}
        again = [atom for atom, slot in plan.slots.items() if first[slot] is not atom]
        self.copies = [plan.slots[atom] for atom in again]
        compiled = [first[slot] for slot in range(len(first))]
        values = [*compiled, *again, *[root for root, _ in self.roots]]
        values += [eqn.output for eqn in plan.views.eqns]
        position = {value: at for at, value in enumerate(values)}
        self.steps = [(eqn, position[eqn.inputs[0]]) for eqn in plan.views.eqns]
        self.checks = [
            (plan.slots.get(check.output, position[check.output]), check) for check in trace.checks
        ]
        self.writes = [
            (position.get(each.value), _constant(each.value), self._place_of[each.input])
            for each in trace.written
        ]
        self.leaves = [_leaf(output, position) for output in trace.outputs]
        self.out_tree = trace.out_tree
        others = (self.checks, self.copies, self.roots, self.steps, self.writes)
        self._alone = trace.out_tree == LEAF
        untouched = self.leaves == [(0, None, None)] and not any(others)
        self._direct = self._alone and untouched  # the result is what has been computed

    def __call__(self, args: Sequence[Any]) -> Any:
        """The function's result for the leaves of its arguments.

        Raises:
            StaleError: a captured array has another type now, or something else has changed that
                tracing has seen outside of the function.
            TracedArgumentError: what is captured belongs to the trace that this thread is in.
            InvalidArgumentError: an array that the function writes is read-only.
            OverlapError: an array that it writes shares a part of its memory with another one.
            NonFiniteError: it is to be checked, and computes a NaN or an infinity.
            Exception: what a check of the trace says.
            RuntimeError: the compiled code says that it failed.
        """
        if self.guards or self.captured:
            args = self._completed(args)
        if self.requirements is not None:
            self.requirements.check(args)
        layout, array = self._layout, np.ndarray
        operands = [
            arg
            if type(arg := args[place]) is array
            and arg.flags.num & CONTIGUOUS_AND_ALIGNED == layout
            else self._native(arg, var)
            for place, var in self.operands
        ]
        if self.check is not None:
            self.check(operands)
        values = [np.empty(shape, dtype) for shape, dtype in self.results]
        if self.entry is not None:
            memory = scratch(self.scratch_bytes) if self.scratch_bytes else None
            status = self.entry(operands + values, memory, self.threads)
            if status:
                raise RuntimeError(f"the compiled {self._graph.name} failed with status {status}")
        return values[0] if self._direct else self._result(values, args)

    def _completed(self, args: Sequence[Any]) -> Sequence[Any]:
        """With what is captured; after all has been found to be as it was."""
        _require_same(self.guards)
        if self.captured and state.builder is not None:
            raise TracedArgumentError("captured arrays have no elements while tracing")
        return [*args, *[_current(captured, var) for captured, var in self.captured]]

    def _inputs(self, args: Sequence[Any]) -> list[np.ndarray]:
        """The arrays of all inputs of the trace's graph."""
        return [np.asarray(args[self._place_of[var]], var.dtype) for var in self._graph.inputs]

    def _native(self, value: Any, var: Var) -> np.ndarray:
        """An operand as compiled code reads it: aligned, in C order and native byte order."""
        if not isinstance(value, np.ndarray):
            return np.asarray(value, var.dtype)
        array = np.require(value, var.dtype, ("C_CONTIGUOUS", "ALIGNED"))
        if not np.may_share_memory(array, value):
            self._site.copied(var.name or "an array", NOT_AS_READ)
        return array

    def _result(self, values: list[Any], args: Sequence[Any]) -> Any:
        """Check what has been computed, and add to it what the caller has already."""
        for position, check in self.checks:
            if values[position]:
                raise check.failure(self._graph, self._inputs(args))
        values += [values[slot].copy() for slot in self.copies]
        for slot, constant, place in self.writes:
            np.copyto(args[place], constant if slot is None else values[slot])
        values += [args[place] for _, place in self.roots]
        for eqn, operand in self.steps:
            values.append(NUMPY_VIEWS[eqn.primitive](eqn, np.asarray(values[operand])))
        if self._alone:
            return _finished(self.leaves[0], values)
        return self.out_tree.unflatten([_finished(leaf, values) for leaf in self.leaves])


# A leaf of the result: a position among the values or else a constant, and its last step.
Leaf = tuple[int | None, Any, Callable[[Any], Any] | None]


def _leaf(output: OutputSpec, position: Mapping[Atom, int]) -> Leaf:
    atom = output.atom if output.shared is None else output.shared
    if isinstance(atom, Literal):
        return None, atom.value, _FINISHES.get((output.is_scalar, output.weak), np.array)
    if not isinstance(atom, Var):
        return None, atom, None
    return position[atom], None, _FINISHES.get((output.is_scalar, output.weak))


def _constant(atom: Atom) -> Any:
    return atom.value if isinstance(atom, Literal) else None


def _finished(leaf: Leaf, values: Sequence[Any]) -> Any:
    position, constant, finish = leaf
    value = constant if position is None else values[position]
    return value if finish is None else finish(value)


def as_scalar(value: Any) -> Any:
    return value[()]


def as_float(value: Any) -> Any:
    return value if type(value) in (float, complex) else value.item()


# By (is_scalar, weak); what is neither is an array.
_FINISHES: dict[tuple[bool, bool], Callable[[Any], Any]] = {
    (True, False): as_scalar,
    (False, True): as_float,
}


def _require_same(guards: Sequence[Guard]) -> None:
    """Raises StaleError where something that tracing has seen is another now."""
    for guard in guards:
        change = guard.change()
        if change is not None:
            raise StaleError(change)


def _current(captured: Captured, var: Var) -> np.ndarray:
    """What a captured array is now. Raises StaleError where the program does not fit it."""
    try:
        array = captured.current()
    except Exception as error:  # whatever reading a variable or an attribute can raise
        raise StaleError(f"the captured {var.name} cannot be read: {error}") from None
    change = type_difference(var.name or "array", array, captured.array)
    if change is not None:
        raise StaleError(change)
    return array
