"""What a traced function becomes: a plan for each of its outputs, and the object that runs it.

An output is compiled, unless the caller already has it: an argument that comes back untouched is
the same object, and a view of an argument is a real view, made by numpy on the caller's array. So
it is with captured arrays, and with views of another output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.graph.primitives import broadcast, reshape, slice_, transpose, windows
from tinyfuse.graph.simplify import simplify
from tinyfuse.trace import Captured, OutputSpec, Trace

VIEWS = frozenset((broadcast, reshape, transpose, slice_, windows))
ALIGNED_AND_C_ORDERED = 0x101  # of ndarray.flags.num


@dataclass(frozen=True, slots=True)
class Plan:
    """How the outputs of a trace come about.

    computed: a graph of what has to be compiled, the checks last; only the inputs that it reads.
    operands: for each of its inputs, the position among the inputs of the trace's graph.
    slots: for each output of the trace's graph that is computed, its position in `computed`.
    copies: positions in `outputs` of values that share a slot with an earlier output.
    views: a graph from the inputs and the computed outputs to those outputs that are views.
    """

    computed: Graph
    operands: tuple[int, ...]
    slots: dict[Atom, int]
    views: Graph


def producers(graph: Graph) -> dict[Var, Eqn]:
    return {eqn.output: eqn for eqn in graph.eqns}
