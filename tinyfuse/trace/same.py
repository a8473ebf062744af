"""Whether two values of a graph are computed alike from the same inputs."""

from __future__ import annotations

from tinyfuse.graph.ir import Atom, Eqn, Literal, Var
from tinyfuse.trace.builder import GraphBuilder


def same_value(builder: GraphBuilder, one: Atom, other: Atom) -> bool:
    """Compares the equations that lead to two values, however deep."""
    if one is other:
        return True
    producers = {eqn.output: eqn for eqn in builder.eqns}
    waiting = [(one, other)]
    seen: set[tuple[Atom, Atom]] = set()
    while waiting:
        pair = waiting.pop()
        if pair[0] is pair[1] or pair in seen:
            continue
        seen.add(pair)
        if not _alike(producers, *pair):
            return False
        if type(pair[0]) is Var:
            inputs = [producers[atom].inputs for atom in pair]  # type: ignore[index]
            waiting.extend(zip(*inputs, strict=True))
    return True


def _alike(producers: dict[Var, Eqn], one: Atom, other: Atom) -> bool:
    """Whether two atoms are equal literals, or the results of equations that differ in inputs."""
    if type(one) is Literal and type(other) is Literal:
        return one.dtype == other.dtype and one.value.tobytes() == other.value.tobytes()
    first, second = producers.get(one), producers.get(other)  # type: ignore[arg-type]
    if first is None or second is None:
        return False
    same = first.primitive is second.primitive and len(first.inputs) == len(second.inputs)
    return same and dict(first.params) == dict(second.params)
