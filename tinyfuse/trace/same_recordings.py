"""Whether two recordings of one part of a function are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyfuse.graph.control import bodies
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.trace.recording import Recording


def same_recordings(one: Recording, other: Recording, params: Mapping[Var, Var]) -> bool:
    """Whether they compute the same, where the variables of one are those of the other."""
    known: dict[Atom, Atom] = dict(params.items())
    if not _same_eqns(one.eqns, other.eqns, known):
        return False
    cells = [[id(cell) for cell, _ in each.written] for each in (one, other)]
    written = [[atom for _, atom in each.written] for each in (one, other)]
    checks = [[check.output for check in each.checks] for each in (one, other)]
    return (
        cells[0] == cells[1]
        and _same(written[0], written[1], known)
        and _same(checks[0], checks[1], known)
        and _same(one.outputs, other.outputs, known)
    )


def _same_eqns(one: Sequence[Eqn], other: Sequence[Eqn], known: dict[Atom, Atom]) -> bool:
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a.primitive is not b.primitive or not _same(a.inputs, b.inputs, known):
            return False
        if not _same_params(a, b) or [*map(_type, a.outputs)] != [*map(_type, b.outputs)]:
            return False
        known.update(zip(a.outputs, b.outputs, strict=True))
    return True


def _type(atom: Atom) -> Any:
    return atom.shape, atom.dtype


def _same_params(a: Eqn, b: Eqn) -> bool:
    graphs = bodies(a), bodies(b)
    if graphs[0].keys() != graphs[1].keys():
        return False
    if not all(_same_graphs(graph, graphs[1][what]) for what, graph in graphs[0].items()):
        return False
    plain = [{k: v for k, v in each.params.items() if not _holds_graph(v)} for each in (a, b)]
    return plain[0] == plain[1]


def _holds_graph(value: Any) -> bool:
    return isinstance(value, Graph) or (
        isinstance(value, tuple) and any(isinstance(each, Graph) for each in value)
    )


def _same_graphs(one: Graph, other: Graph) -> bool:
    if [*map(_type, one.inputs)] != [*map(_type, other.inputs)]:
        return False
    known: dict[Atom, Atom] = dict(zip(one.inputs, other.inputs, strict=True))
    return _same_eqns(one.eqns, other.eqns, known) and _same(one.outputs, other.outputs, known)


def _same(one: Sequence[Atom], other: Sequence[Atom], known: Mapping[Atom, Atom]) -> bool:
    if len(one) != len(other):
        return False
    return all(_same_atom(a, b, known) for a, b in zip(one, other, strict=True))


def _same_atom(a: Atom, b: Atom, known: Mapping[Atom, Atom]) -> bool:
    if isinstance(a, Literal) or isinstance(b, Literal):
        if not (isinstance(a, Literal) and isinstance(b, Literal)):
            return False
        return a.dtype == b.dtype and a.value.tobytes() == b.value.tobytes()
    return known.get(a, a) is b
