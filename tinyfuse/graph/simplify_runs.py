"""Slices of one array that follow one another, put together again: one slice of it."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Var
from tinyfuse.graph.signs import Producer
from tinyfuse.records import replace


def with_runs(eqn: Eqn, producer: Producer) -> tuple[list[Eqn], Eqn]:
    """(slices of several of its operands each, the concatenation of these and of the others)."""
    axis, made, inputs = eqn.params["axis"], [], []
    for run in _runs(eqn.inputs, axis, producer):
        first = producer(run[0], p.slice_)
        if first is None or len(run) == 1:
            inputs += run
            continue
        extent = sum(atom.shape[axis] for atom in run)
        shape = (*run[0].shape[:axis], extent, *run[0].shape[axis + 1 :])
        var = Var(shape, eqn.output.dtype)
        made.append(replace(first, params={**first.params, "shape": shape}, output=var))
        inputs.append(var)
    return made, replace(eqn, inputs=tuple(inputs)) if made else eqn


def _runs(atoms: Sequence[Atom], axis: int, producer: Producer) -> list[list[Atom]]:
    """The operands, those together that follow one another in one array."""
    found: list[list[Atom]] = []
    end = None  # where the next one begins: an array, with starts and steps
    for atom in atoms:
        place, after = _ends(atom, axis, producer)
        if place is not None and place == end:
            found[-1].append(atom)
        else:
            found.append([atom])
        end = after
    return found


Place = tuple[Atom, tuple[int, ...], tuple[int, ...]]


def _ends(atom: Atom, axis: int, producer: Producer) -> tuple[Place | None, Place | None]:
    """Where a slice begins, and where one begins that follows it."""
    made = producer(atom, p.slice_)
    if made is None or made.params["steps"][axis] != 1:
        return None, None
    starts, steps = made.params["starts"], made.params["steps"]
    end = starts[axis] + atom.shape[axis]
    after = (*starts[:axis], end, *starts[axis + 1 :])
    source = made.inputs[0]
    return (source, starts, steps), (source, after, steps)
