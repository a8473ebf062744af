"""Arrays that turns of a loop write are written and read as they would be one after the other.

Values that were put into an array are read from there afterwards. Else a stencil over an array that
was just written would need its elements twice: in the array and, where they are read as they were
put there, in one of their own. And what is put where something else was put before is put into that
array, which has been read meanwhile, rather than into the one before it.
"""

from __future__ import annotations

from typing import Any

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Var
from tinyfuse.records import replace


def with_rereads(graph: Graph) -> Graph:
    """The graph with slices of updated arrays in place of what they were updated with, and with
    updates of updates."""
    makers = {eqn.output: eqn for eqn in graph.eqns}
    reads: dict[Atom, Eqn] = {}  # for what was put into an array, how it is read from there
    latest: dict[tuple[Any, ...], Var] = {}
    eqns: dict[Eqn, None] = {}
    for eqn in graph.eqns:
        inputs = [_read(reads, eqns, atom) for atom in eqn.inputs]
        key = _places(eqn)
        if key:
            inputs[0] = latest.get(key, eqn.inputs[0])
            latest[key] = eqn.output
        made = replace(eqn, inputs=tuple(inputs))
        eqns[made] = None
        value = eqn.inputs[1] if eqn.primitive is p.update else None
        maker = makers.get(value) if isinstance(value, Var) else None
        if isinstance(value, Var) and maker and maker.primitive is p.elementwise:
            params = {**eqn.params, "shape": value.shape}
            output = Var(value.shape, value.dtype)
            reads[value] = Eqn(p.slice_, (eqn.output,), params, output, eqn.source)
    return replace(graph, eqns=tuple(eqns))


def _places(eqn: Eqn) -> tuple[Any, ...] | None:
    """The array and the places where an equation puts something, whatever stood there."""
    if eqn.primitive is p.update:
        value = eqn.inputs[1]
        return (eqn.inputs[0], eqn.params["starts"], eqn.params["steps"], value.shape)
    if eqn.primitive is p.scatter and eqn.params["op"] == "set":
        return (eqn.inputs[0], *eqn.inputs[2:])
    return None


def _read(reads: dict[Atom, Eqn], eqns: dict[Eqn, None], atom: Atom) -> Atom:
    eqn = reads.get(atom)
    if eqn is None:
        return atom
    eqns[eqn] = None
    return eqn.output
