"""Positions that are within range by what they are: of sorted elements, of extremes, of an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Primitive

# What gives some of the elements of its first operand.
_SOME_ELEMENTS = (p.reshape, p.transpose, p.slice_, p.broadcast, p.windows, p.gather)


def position_bound(builder: Any, atom: Atom) -> int | None:
    """n such that all elements are from 0 to n - 1, where the equations before tell."""
    eqn = builder.memory.producer(atom)
    while eqn is not None and eqn.primitive in _SOME_ELEMENTS:
        eqn = builder.memory.producer(eqn.inputs[0])
    rule = _BOUNDS.get(eqn.primitive) if eqn is not None else None
    return rule(eqn) if rule else None


def _of_extreme(eqn: Eqn) -> int | None:
    is_position = eqn.params["op"] in ("argmax", "argmin")
    return eqn.inputs[0].shape[eqn.params["axes"][0]] if is_position else None


_BOUNDS: dict[Primitive, Callable[[Eqn], int | None]] = {
    p.argsort: lambda eqn: eqn.output.shape[eqn.params["axis"]],
    p.iota: lambda eqn: eqn.output.shape[0],
    p.reduce: _of_extreme,
}
