"""Choices between a few operations on scalars become selections: both sides are computed.

A choice parts a program in two, and neither side fuses with what is around it; a selection is an
operation like others. Where a branch puts an element into an array, one is put there in any case:
the new one, or the one that is there.
"""

from __future__ import annotations

import math

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.graph.signs import Producer
from tinyfuse.records import replace

# What a branch may cost at most, in additions, to be computed where it is not chosen.
MOST_COST = 64
# Primitives that are defined for all operands; gathers are, as their indices lie within the array.
_DEFINED = frozenset((p.elementwise, p.cast, p.gather, p.slice_, p.reshape, p.broadcast))


def selections(eqn: Eqn, producer: Producer) -> tuple[list[Eqn], list[Atom]] | None:
    """(equations that compute both branches of a choice and select, what its outputs are then).

    None for what is no choice of two, or where a branch costs much or computes arrays.
    """
    if eqn.primitive is not p.cond or len(eqn.params["branches"]) != 2:
        return None
    branches: tuple[Graph, Graph] = eqn.params["branches"]
    if not all(map(_is_cheap, branches)) or not _has_one_array_for_each(eqn):
        return None
    both = _Both(eqn, producer)
    return both.eqns, both.outputs


def _is_cheap(branch: Graph) -> bool:
    """Whether a branch may be computed where it is not chosen."""
    return all(map(_is_scalar, branch.eqns)) and sum(map(_cost, branch.eqns)) <= MOST_COST


def _is_scalar(eqn: Eqn) -> bool:
    """Whether an equation computes one element, or puts one into an array."""
    if any(0 in atom.shape for atom in eqn.inputs):
        return False  # there is nothing for an index to lie in
    if _puts(eqn):
        return math.prod(eqn.inputs[1].shape) == 1
    return eqn.primitive in _DEFINED and math.prod(eqn.output.shape) == 1


def _puts(eqn: Eqn) -> bool:
    """Whether an equation puts elements into an array."""
    return eqn.primitive is p.update or (eqn.primitive is p.scatter and eqn.params["op"] == "set")


def _cost(eqn: Eqn) -> int:
    return SCALAR_OPS[eqn.params["op"]].cost if eqn.primitive is p.elementwise else 1


def _has_one_array_for_each(eqn: Eqn) -> bool:
    """Whether each output that is an array is one operand in both branches, with elements put in,
    and no other output is."""
    no, yes = (
        [_root(branch, atom) for atom in branch.outputs] for branch in eqn.params["branches"]
    )
    arrays = [at for at, output in enumerate(eqn.outputs) if math.prod(output.shape) != 1]
    roots = [no[at] for at in arrays]
    return roots == [yes[at] for at in arrays] and None not in roots and len({*roots}) == len(roots)


def _root(branch: Graph, atom: Atom) -> int | None:
    """The place of the input that an array of a branch is, but for some elements."""
    while atom not in branch.inputs:
        made = next((eqn for eqn in branch.eqns if eqn.output is atom), None)
        if made is None or not _puts(made):
            return None
        atom = made.inputs[0]
    return [*branch.inputs].index(atom)


class _Both:
    """Both branches of a choice, one after the other."""

    def __init__(self, choice: Eqn, producer: Producer) -> None:
        self.eqns: list[Eqn] = []
        self._source = choice.source
        no, yes = choice.params["branches"]
        self._test = self._truth(choice.inputs[0], producer)
        operands = [*choice.inputs[1:]]
        chosen = self._inlined(yes, operands, chosen=True)
        arrays = set()
        for at, output in enumerate(choice.outputs):
            if math.prod(output.shape) != 1:
                place = _root(yes, yes.outputs[at])
                assert place is not None
                operands[place] = chosen[at]
                arrays.add(at)
        otherwise = self._inlined(no, operands, chosen=False)
        self.outputs = [
            other if at in arrays else self._selected(one, other, output)
            for at, (one, other, output) in enumerate(
                zip(chosen, otherwise, choice.outputs, strict=True)
            )
        ]

    def _truth(self, index: Atom, producer: Producer) -> Atom:
        """Whether the second branch is chosen."""
        cast = producer(index, p.cast)
        if cast is not None and cast.inputs[0].dtype == BOOL:
            return cast.inputs[0]
        zero = Literal(INT64.type(0))
        return self._emit(p.elementwise, (index, zero), {"op": "greater"}, Var((), BOOL))

    def _emit(
        self, primitive: Primitive, inputs: tuple[Atom, ...], params: dict[str, object], like: Var
    ) -> Var:
        var = Var(like.shape, like.dtype, like.name, like.given)
        self.eqns.append(Eqn(primitive, inputs, params, var, self._source))
        return var

    def _selected(self, chosen: Atom, otherwise: Atom, like: Var) -> Atom:
        if chosen is otherwise:
            return chosen
        test = self._test
        if like.shape:
            test = self._emit(p.broadcast, (test,), {"shape": like.shape}, Var(like.shape, BOOL))
        return self._emit(p.elementwise, (test, chosen, otherwise), {"op": "select"}, like)

    def _inlined(self, branch: Graph, operands: list[Atom], chosen: bool) -> list[Atom]:
        """What a branch gives; its equations have variables of their own."""
        new: dict[Atom, Atom] = dict(zip(branch.inputs, operands, strict=True))
        for eqn in branch.eqns:
            inputs = tuple([new.get(atom, atom) for atom in eqn.inputs])
            if _puts(eqn):
                old = self._elements(eqn, inputs)
                yes, no = (inputs[1], old) if chosen else (old, inputs[1])
                inputs = (inputs[0], self._selected(yes, no, old), *inputs[2:])
            var = eqn.output
            new[var] = output = Var(var.shape, var.dtype, var.name, var.given)
            self.eqns.append(replace(eqn, inputs=inputs, output=output))
        return [new.get(atom, atom) for atom in branch.outputs]

    def _elements(self, eqn: Eqn, inputs: tuple[Atom, ...]) -> Var:
        """The elements in whose places others are put."""
        array, values, *indices = inputs
        like = Var(values.shape, array.dtype)
        if eqn.primitive is p.scatter:
            return self._emit(p.gather, (array, *indices), {}, like)
        params = {**eqn.params, "shape": values.shape}
        return self._emit(p.slice_, (array,), params, like)
