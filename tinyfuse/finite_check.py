"""`jit(f, check="nan")`: calls that say where a NaN or an infinity comes from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.dtypes import describe
from tinyfuse.errors import NonFiniteError
from tinyfuse.graph import primitives as p
from tinyfuse.graph.complex_parts import parts_array
from tinyfuse.graph.finiteness import Made, first_made
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.printer import computed_name
from tinyfuse.runtime.numerics import CompiledNumerics
from tinyfuse.source import UNKNOWN
from tinyfuse.trace.builder import place_text


class FiniteCheck:
    """Computes a graph equation by equation, with the bits that compiled code has."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def __call__(self, operands: Sequence[np.ndarray]) -> None:
        """Raises NonFiniteError, for operands whose first are the inputs of the graph."""
        inputs = [parts_array(operand) for operand in operands[: len(self.graph.inputs)]]
        made = first_made(self.graph, inputs, CompiledNumerics())
        if made is not None:
            place = place_text(made.eqn.source or UNKNOWN)
            error = NonFiniteError(f"{self.graph.name}: {_words(made)}{place}")
            error.located = True
            raise error


def _words(made: Made) -> str:
    """`divide(0.0, 0.0) is nan, at [0, 1] of float32[3, 4] and at 3 other places`."""
    place = tuple([int(at) for at in np.argwhere(made.new)[0]])
    value, others = made.value[place], np.count_nonzero(made.new) - 1
    words = f"{_computed(made, place)} is {value}"
    if place:
        words += f", at {list(place)} of {describe(made.value.shape, made.value.dtype)}"
    if others:
        words += f" and at {'1 other place' if others == 1 else f'{others} other places'}"
    return words


def _computed(made: Made, place: tuple[int, ...]) -> str:
    """The operation, and what it was given for one element of its output."""
    name = computed_name(made.eqn)
    if made.eqn.primitive in (p.elementwise, p.cast):
        given = [np.broadcast_to(x, made.value.shape)[place] for x in made.operands]
        return f"{name}({', '.join(map(str, given))})"
    which = "numbers, some infinite," if np.isnan(made.value[place]) else "finite numbers"
    return f"{name} of {which}"
