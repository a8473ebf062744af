"""What masks made of positions say: which elements they keep, as conditions on indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Literal, Primitive
from tinyfuse.graph.orders import axis_groups

# An affine form: the factor of each axis of the masked array, then a constant.
Form = tuple[int, ...]
# The index along each axis of an array, in terms of the axes of the masked one.
Place = tuple[Form, ...]
# The equation that defines a value; None for inputs of the graph.
Producer = Callable[[Atom], Eqn | None]

# Equations from a mask back to positions, beyond which it is not followed.
DEEPEST = 32


def limits(producer: Producer, mask: Atom, rank: int) -> tuple[Form, ...] | None:
    """The forms that are all at least 0 where a mask of so many axes is true; None where it is not
    made of positions alone, by comparisons, or not a conjunction of them."""
    axes = tuple([tuple([int(at == axis) for at in range(rank + 1)]) for axis in range(rank)])
    return _conditions(producer, mask, axes, DEEPEST)


def _conditions(producer: Producer, mask: Atom, place: Place, depth: int) -> Limits | None:
    eqn, place = _behind_views(producer, mask, place)
    if eqn is None or not depth or eqn.primitive is not p.elementwise:
        return None
    op = eqn.params["op"]
    if op in COMPARISONS:
        a, b = [_position(producer, atom, place, depth - 1) for atom in eqn.inputs]
        return None if a is None or b is None else (COMPARISONS[op](a, b),)
    if op in ("logical_and", "bitwise_and"):
        parts = [_conditions(producer, atom, place, depth - 1) for atom in eqn.inputs]
        return None if None in parts else tuple([form for part in parts if part for form in part])
    if op in ("logical_not", "invert"):
        return _negated(_conditions(producer, eqn.inputs[0], place, depth - 1))
    if op == "select" and all(isinstance(atom, Literal) for atom in eqn.inputs[1:]):
        chosen, other = [bool(a.value) for a in eqn.inputs[1:] if isinstance(a, Literal)]
        found = _conditions(producer, eqn.inputs[0], place, depth - 1)
        if chosen != other:
            return found if chosen else _negated(found)
    return None


Limits = tuple[Form, ...]


def _negated(found: Limits | None) -> Limits | None:
    """The condition that holds where another one, alone, does not."""
    return (_sum(found[0], -1, -1),) if found and len(found) == 1 else None


def _sum(form: Form, factor: int, constant: int, other: Form | None = None) -> Form:
    """factor * form + other + constant"""
    others = other or (0,) * len(form)
    total = [factor * a + b for a, b in zip(form, others, strict=True)]
    return (*total[:-1], total[-1] + constant)


COMPARISONS: dict[str, Callable[[Form, Form], Form]] = {
    "greater_equal": lambda a, b: _sum(b, -1, 0, a),
    "greater": lambda a, b: _sum(b, -1, -1, a),
    "less_equal": lambda a, b: _sum(a, -1, 0, b),
    "less": lambda a, b: _sum(a, -1, -1, b),
}


def _position(producer: Producer, atom: Atom, place: Place, depth: int) -> Form | None:
    """An integer that is affine in the axes; None for any other value."""
    if atom.dtype.kind != "i":
        return None
    if isinstance(atom, Literal):
        return (*[0] * (len(place[0]) - 1), int(atom.value)) if place else None
    eqn, place = _behind_views(producer, atom, place)
    if eqn is None or not depth:
        return None
    if eqn.primitive is p.iota:
        return place[0]
    if eqn.primitive is p.cast:
        return _position(producer, eqn.inputs[0], place, depth - 1)
    if eqn.primitive is p.elementwise and eqn.params["op"] in ("add", "subtract"):
        a, b = [_position(producer, each, place, depth - 1) for each in eqn.inputs]
        factor = 1 if eqn.params["op"] == "add" else -1
        return None if a is None or b is None else _sum(b, factor, 0, a)
    return None


def _behind_views(producer: Producer, atom: Atom, place: Place) -> tuple[Eqn | None, Place]:
    """What computes an array that an atom is a view of, and the place there."""
    eqn = producer(atom)
    while eqn is not None and eqn.primitive in VIEWS:
        moved = VIEWS[eqn.primitive](eqn, place)
        if moved is None:
            return None, place
        place, eqn = moved, producer(eqn.inputs[0])
    return eqn, place


def _zero(place: Place) -> Form:
    return (0,) * len(place[0])


def _broadcast(eqn: Eqn, place: Place) -> Place:
    shape = eqn.inputs[0].shape
    kept = place[len(place) - len(shape) :]
    return tuple([_zero(place) if n == 1 else at for n, at in zip(shape, kept, strict=True)])


def _reshape(eqn: Eqn, place: Place) -> Place | None:
    """Where axes of one element come and go, and nothing else."""
    shape = eqn.inputs[0].shape
    found = [_zero(place)] * len(shape) if place else []
    for old, new in axis_groups(shape, eqn.output.shape):
        long = [
            [at for at in axes if each[at] != 1]
            for axes, each in ((old, shape), (new, eqn.output.shape))
        ]
        if [len(axes) for axes in long] != [1, 1]:
            return None
        found[long[0][0]] = place[long[1][0]]
    return tuple(found)


def _transpose(eqn: Eqn, place: Place) -> Place:
    axes: Sequence[int] = eqn.params["axes"]
    return tuple([place[axes.index(axis)] for axis in range(len(axes))])


def _slice(eqn: Eqn, place: Place) -> Place:
    each = zip(place, eqn.params["steps"], eqn.params["starts"], strict=True)
    return tuple([_sum(at, step, start) for at, step, start in each])


VIEWS: Mapping[Primitive, Callable[[Eqn, Place], Place | None]] = {
    p.broadcast: _broadcast,
    p.reshape: _reshape,
    p.transpose: _transpose,
    p.slice_: _slice,
}
