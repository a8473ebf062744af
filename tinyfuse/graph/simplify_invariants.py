"""Loops without what each turn would compute again, if it is worth an array of its own."""

from __future__ import annotations

from tinyfuse.graph import primitives as p
from tinyfuse.graph.control import CONTROL, carried_count
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.graph.scalar_ops import cost
from tinyfuse.records import replace

# What is computed before a loop whatever it costs, and from what cost on operations on elements.
_REDUCING = (p.contract, p.softmax_contract, p.reduce, p.cumulative, p.sort, p.argsort)
_DEAR = 8


def without_invariants(eqn: Eqn) -> tuple[list[Eqn], Eqn]:
    """What comes before a loop, and the loop that reads it: reductions and dear operations on
    arrays of what all turns read alike, with what these need. Cheap operations stay in the turns.
    """
    body, count = eqn.params["body"], carried_count(eqn)
    leading = 1 if eqn.primitive is p.loop else 0
    known: dict[Atom, Atom] = dict(
        zip(body.inputs[leading + count :], eqn.inputs[count:], strict=True)
    )
    fixed = [each for each in body.eqns if _is_fixed(each, known)]
    dear = {each.output for each in fixed if _is_dear(each)}
    if not dear or eqn.params.get("extent", 2) < 2:
        return [], eqn
    moved = _needed(fixed, dear)
    made: list[Eqn] = []
    for each in moved:
        output = Var(each.output.shape, each.output.dtype, each.output.name, each.output.given)
        inputs = tuple([known.get(atom, atom) for atom in each.inputs])
        made.append(replace(each, inputs=inputs, output=output))
        known[each.output] = output
    left = [each for each in body.eqns if each.output not in dear]
    used = {atom for each in left for atom in each.inputs} | set(body.outputs)
    new = [var for var in _in_order(fixed, dear) if var in used]
    return made, _reading(eqn, body, left, new, known)


def _is_fixed(eqn: Eqn, known: dict[Atom, Atom]) -> bool:
    """Whether an equation of a body computes the same in all turns; noted if so."""
    if eqn.primitive in CONTROL:
        return False
    if not all(isinstance(atom, Literal) or atom in known for atom in eqn.inputs):
        return False
    known[eqn.output] = eqn.output
    return True


def _is_dear(eqn: Eqn) -> bool:
    if eqn.primitive in _REDUCING:
        return True
    elementwise = eqn.primitive is p.elementwise and bool(eqn.output.shape)
    return elementwise and cost(eqn.params["op"]) >= _DEAR


def _needed(fixed: list[Eqn], dear: set[Var]) -> list[Eqn]:
    needed: set[Atom] = set(dear)
    found: list[Eqn] = []
    for each in reversed(fixed):
        if each.output in needed:
            needed.update(each.inputs)
            found.append(each)
    return found[::-1]


def _in_order(fixed: list[Eqn], dear: set[Var]) -> list[Var]:
    return [each.output for each in fixed if each.output in dear]


def _reading(
    eqn: Eqn, body: Graph, left: list[Eqn], new: list[Var], known: dict[Atom, Atom]
) -> Eqn:
    """The loop with more that it reads; the number of its turns stays the last."""
    last = 1 if eqn.params.get("counted") else 0
    inner, outer = len(body.inputs) - last, len(eqn.inputs) - last
    inputs = (*body.inputs[:inner], *new, *body.inputs[inner:])
    operands = (*eqn.inputs[:outer], *[known[var] for var in new], *eqn.inputs[outer:])
    graph = replace(body, inputs=inputs, eqns=tuple(left))
    return replace(eqn, inputs=operands, params={**eqn.params, "body": graph})
