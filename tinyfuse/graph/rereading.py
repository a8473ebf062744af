"""Values that turns of a loop put into an array are read from there afterwards.

Else a stencil over an array that was just written would need its elements twice: in the array and,
where they are read as they were put there, in one of their own.
"""

from __future__ import annotations

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Var
from tinyfuse.records import replace


def with_rereads(graph: Graph) -> Graph:
    """The graph with slices of updated arrays in place of what they were updated with."""
    makers = {eqn.output: eqn for eqn in graph.eqns}
    reads: dict[Atom, Eqn] = {}  # for what was put into an array, how it is read from there
    eqns: dict[Eqn, None] = {}
    for eqn in graph.eqns:
        inputs = [_read(reads, eqns, atom) for atom in eqn.inputs]
        made = replace(eqn, inputs=tuple(inputs))
        eqns[made] = None
        value = eqn.inputs[1] if eqn.primitive is p.update else None
        maker = makers.get(value) if isinstance(value, Var) else None
        if isinstance(value, Var) and maker and maker.primitive is p.elementwise:
            params = {**eqn.params, "shape": value.shape}
            output = Var(value.shape, value.dtype)
            reads[value] = Eqn(p.slice_, (eqn.output,), params, output, eqn.source)
    return replace(graph, eqns=tuple(eqns))


def _read(reads: dict[Atom, Eqn], eqns: dict[Eqn, None], atom: Atom) -> Atom:
    eqn = reads.get(atom)
    if eqn is None:
        return atom
    eqns[eqn] = None
    return eqn.output
