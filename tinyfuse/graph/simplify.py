"""The graph without what computes nothing new: views of views, repeated and unused equations.

Values stay the same bit for bit: no arithmetic is touched, only which equations there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinyfuse.graph import primitives as p
from tinyfuse.graph.control import CONTROL
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.simplify_choices import selections
from tinyfuse.graph.simplify_control import pruned, simplified
from tinyfuse.graph.simplify_invariants import without_invariants
from tinyfuse.graph.simplify_rules import RULES
from tinyfuse.graph.simplify_runs import with_runs
from tinyfuse.records import dataclass, field, replace


def simplify(graph: Graph) -> Graph:
    """An equivalent graph, in one pass forwards and one backwards.

    - A view of a view of the same kind is one view; a view that changes nothing, a pad by nothing,
      a cast to the own dtype and a concat of one array are the array itself, and so are all of
      its slices after one another.
    - A view of a stretched scalar is a stretched scalar; where an elementwise equation has another
      array operand, a stretched `Literal` is the `Literal`.
    - An update of all elements is the values, one of none the array, and one of the same elements
      as the update before makes that one needless; a slice of updated elements is a slice of the
      values, one of others a slice of the array before the update. It is the same for elements at
      places that depend on data.
    - What is cumulative or sorted along an axis of one element, or sorted already, is the array.
    - Contractions take transposed operands as they were before.
    - The exponential of an array less its largest elements is one of what is not above 0.
    - Equal equations of equal operands are one; `Literal`s are equal by dtype and bytes.
    - Choices between a few operations on scalars are selections.
    - What costs much and is the same in all turns of a loop is computed before it.
    - Equations that no output needs are gone; of loops and choices see `simplify_control`.

    Inputs stay, used or not. A value that several variables of the user hold has the name of the
    first; one that had none takes the name of what was merged into it, and a name that the user
    has asked for goes before others. Two outputs can become the same variable, and an output can
    become an input.
    """
    state = _State()
    for eqn in graph.eqns:
        _visit(state, eqn)
    outputs = tuple([state.resolve(atom) for atom in graph.outputs])
    return _without_unused(graph, state, outputs)


@dataclass(slots=True)
class _State:
    """What is known after some equations."""

    eqns: list[Eqn] = field(default_factory=list)
    producers: dict[Atom, Eqn] = field(default_factory=dict)  # of all but inputs
    replaced: dict[Atom, Atom] = field(default_factory=dict)  # by what came before
    known: dict[tuple[Any, ...], Var] = field(default_factory=dict)  # equation key → its output
    renamed: dict[Var, Eqn] = field(default_factory=dict)  # to the output of this equation

    def resolve(self, atom: Atom) -> Atom:
        return self.replaced.get(atom, atom)

    def producer(self, atom: Atom, primitive: Primitive) -> Eqn | None:
        """The equation that defines the atom, if it is of this primitive."""
        eqn = self.producers.get(atom)
        return eqn if eqn is not None and eqn.primitive is primitive else None


def _visit(state: _State, eqn: Eqn) -> None:
    inputs = tuple([state.resolve(atom) for atom in eqn.inputs])
    if any(new is not old for new, old in zip(inputs, eqn.inputs, strict=True)):
        eqn = replace(eqn, inputs=inputs)
    if eqn.primitive in CONTROL:
        changed, replaced = simplified(eqn, simplify)
        state.replaced.update(replaced)
        changed = _without_invariants(state, changed)
        if changed is not None:
            _visit_control(state, changed)
        return
    if eqn.primitive is p.concat:
        slices, eqn = with_runs(eqn, state.producer)
        for each in slices:
            _visit(state, each)
        eqn = replace(eqn, inputs=tuple([state.resolve(atom) for atom in eqn.inputs]))
    rule = RULES.get(eqn.primitive)
    result = rule(state.producer, eqn) if rule else eqn
    if isinstance(result, Eqn):
        key = _key(result)
        found = state.known.setdefault(key, result.output)
        if found is result.output:
            state.eqns.append(result)
            state.producers[found] = result
            return
        result = found
    _replace(state, eqn, result)


def _without_invariants(state: _State, eqn: Eqn | None) -> Eqn | None:
    """A loop, after what can be computed before it."""
    before, loop = ([], eqn) if eqn is None or eqn.primitive is p.cond else without_invariants(eqn)
    if not before or loop is None:
        return eqn
    for each in before:
        _visit(state, each)
    inputs = tuple([state.resolve(atom) for atom in loop.inputs])
    changed, replaced = simplified(replace(loop, inputs=inputs), simplify)
    state.replaced.update(replaced)
    return changed


def _visit_control(state: _State, eqn: Eqn) -> None:
    selected = selections(eqn, state.producer)
    if selected is None:
        state.eqns.append(eqn)
        return
    eqns, outputs = selected
    for each in eqns:
        _visit(state, each)
    pairs = zip(eqn.outputs, outputs, strict=True)
    state.replaced.update({output: state.resolve(atom) for output, atom in pairs})


def _replace(state: _State, eqn: Eqn, atom: Atom) -> None:
    """Readers of the equation's output read `atom`, which inherits its name if that is better."""
    state.replaced[eqn.output] = atom
    if isinstance(atom, Literal) or atom not in state.producers:
        return
    named_by = state.renamed.get(atom)
    if _claim(eqn.output) > _claim(named_by.output if named_by else atom):
        state.renamed[atom] = eqn


def _claim(var: Var) -> int:
    """How much the user cares about a variable's name."""
    return (var.name is not None) + var.given


def _key(eqn: Eqn) -> tuple[Any, ...]:
    """Equal for equations that compute the same."""
    params = eqn.params
    names = p.PARAMETERS[eqn.primitive]
    return (eqn.primitive.name, *[params[name] for name in names], *map(_atom_key, eqn.inputs))


def _atom_key(atom: Atom) -> Any:
    return (atom.dtype, atom.value.tobytes()) if isinstance(atom, Literal) else atom


def _without_unused(graph: Graph, state: _State, outputs: tuple[Atom, ...]) -> Graph:
    needed: set[Atom] = set(outputs)
    kept: list[Eqn] = []
    for eqn in reversed(state.eqns):
        if eqn.primitive in CONTROL:
            control = pruned(eqn, needed, simplify)
            needed.update(control.inputs if control else ())
            kept += [control] if control else []
        elif eqn.output in needed:
            needed.update(eqn.inputs)
            kept.append(eqn)
    kept.reverse()
    if not state.renamed:
        return Graph(graph.name, graph.inputs, tuple(kept), outputs)
    return _with_names(graph, state.renamed, kept, outputs)


def _with_names(
    graph: Graph, renamed: Mapping[Var, Eqn], eqns: list[Eqn], outputs: tuple[Atom, ...]
) -> Graph:
    new: dict[Atom, Atom] = {}
    for var, eqn in renamed.items():
        new[var] = Var(var.shape, var.dtype, eqn.output.name, eqn.output.given)
    named = [_with_vars(eqn, new, renamed) for eqn in eqns]
    inputs = graph.inputs
    return Graph(graph.name, inputs, tuple(named), tuple([new.get(atom, atom) for atom in outputs]))


def _with_vars(eqn: Eqn, new: Mapping[Atom, Atom], renamed: Mapping[Var, Eqn]) -> Eqn:
    inputs = tuple([new.get(atom, atom) for atom in eqn.inputs])
    output, named_by = new.get(eqn.output, eqn.output), renamed.get(eqn.output)
    assert isinstance(output, Var)
    source = named_by.source if named_by is not None and named_by.source else eqn.source
    return replace(eqn, inputs=inputs, output=output, source=source)
