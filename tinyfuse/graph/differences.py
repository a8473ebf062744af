"""Differences whose sign is known."""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Primitive

Producer = Callable[[Atom, Primitive], Eqn | None]  # what defines a value, if of this primitive


def is_less_its_largest(atom: Atom, producer: Producer) -> bool:
    """Whether an array is another one less the largest elements along axes: nothing is above 0."""
    difference = producer(atom, p.elementwise)
    if difference is None or difference.params["op"] != "subtract":
        return False
    array, largest = difference.inputs
    stretched = producer(largest, p.broadcast)
    kept = stretched.inputs[0] if stretched else largest
    shaped = producer(kept, p.reshape)
    reduced = producer(shaped.inputs[0] if shaped else kept, p.reduce)
    if reduced is None or reduced.params["op"] != "max" or reduced.inputs[0] is not array:
        return False
    axes = reduced.params["axes"]
    shape = tuple([1 if axis in axes else n for axis, n in enumerate(array.shape)])
    return (1,) * (len(shape) - len(kept.shape)) + kept.shape == shape
