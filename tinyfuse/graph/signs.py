"""Values whose sign is known, whatever the arguments are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Literal, Primitive

Producer = Callable[[Atom, Primitive], Eqn | None]  # what defines a value, if of this primitive

LONGEST = 8  # how many products with constants are looked through


def is_never_positive(atom: Atom, producer: Producer) -> bool:
    """Whether no element is above 0, of real numbers: each is 0, below, or NaN."""
    return _is_less_its_largest(atom, producer) or _is_minus_a_square(atom, producer)


def _is_minus_a_square(atom: Atom, producer: Producer) -> bool:
    """Whether an array is a square or an absolute value, times what is negative."""
    negative, core = _without_constants(atom, producer)
    eqn = producer(core, p.elementwise)
    if eqn is None:
        return False
    if eqn.params["op"] == "multiply":
        (first, left), (second, right) = [_without_constants(x, producer) for x in eqn.inputs]
        return left is right and negative ^ first ^ second
    return negative and eqn.params["op"] in ("square", "absolute", "fabs")


def _without_constants(atom: Atom, producer: Producer) -> tuple[bool, Atom]:
    """What an array is a multiple of, and whether by a negative number."""
    negative = False
    for _ in range(LONGEST):
        eqn = producer(atom, p.elementwise)
        factor = _constant_factor(eqn) if eqn else None
        if factor is None:
            break
        atom, constant = factor
        negative ^= bool(np.signbit(constant))
    return negative, atom


def _constant_factor(eqn: Eqn) -> tuple[Atom, np.generic] | None:
    """An operand that an equation multiplies or divides by a real number, and one of its sign."""
    if eqn.params["op"] == "negative":
        return eqn.inputs[0], np.float32(-1)
    if eqn.params["op"] in ("multiply", "divide") and isinstance(eqn.inputs[1], Literal):
        return eqn.inputs[0], eqn.inputs[1].value
    if eqn.params["op"] == "multiply" and isinstance(eqn.inputs[0], Literal):
        return eqn.inputs[1], eqn.inputs[0].value
    return None


def _is_less_its_largest(atom: Atom, producer: Producer) -> bool:
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
