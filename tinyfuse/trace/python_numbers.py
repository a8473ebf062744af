"""Scalars that may stand for a Python number: what a loop leaves as it was if it has no turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Literal
from tinyfuse.trace.specs import LoopPlace


def number_place(
    atom: Atom | None, numbers: Mapping[Atom, LoopPlace], eqns: Iterable[Eqn]
) -> LoopPlace | None:
    """The loop because of which a scalar may be a Python number; None where it is none.

    numbers: those that loops give. eqns: what is computed from them: arithmetic of Python numbers
    gives Python numbers.
    """
    if not numbers or atom is None or atom.shape:
        return None
    producers = {eqn.output: eqn for eqn in eqns if not eqn.output.shape}
    waiting, seen, found = [atom], set[Atom](), None
    while waiting:
        each = waiting.pop()
        if each in seen or isinstance(each, Literal):
            continue
        seen.add(each)
        place = numbers.get(each)
        eqn = producers.get(each)
        if place is not None:
            found = found or place
        elif eqn is not None and eqn.primitive in (p.elementwise, p.cast):
            waiting += eqn.inputs
        else:
            return None
    return found
