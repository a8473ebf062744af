"""Programs some of whose inputs are constants, run in their two parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyfuse.graph.ir import Atom, Graph, Var
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.once import Parted
from tinyfuse.records import replace

Run = Callable[[Loops, Sequence[np.ndarray]], Sequence[np.ndarray]]


def with_constants(graph: Graph) -> Graph:
    """The graph with all inputs but the first as constants; an only one is one too."""
    new = {var: replace(var, constant=True) for var in graph.inputs[1:] or graph.inputs}

    def now(atom: Atom) -> Atom:
        return new.get(atom, atom) if isinstance(atom, Var) else atom

    inputs = tuple([new.get(var, var) for var in graph.inputs])
    eqns = [replace(eqn, inputs=tuple(map(now, eqn.inputs))) for eqn in graph.eqns]
    return Graph(graph.name, inputs, tuple(eqns), tuple(map(now, graph.outputs)))


def run_parts(parts: Parted, arrays: Sequence[np.ndarray], run: Run) -> Sequence[np.ndarray]:
    """The outputs of the program; what depends on constants alone is computed before."""
    if parts.once is None:
        return run(parts.each, arrays)
    given = dict(zip(parts.each.inputs, arrays, strict=False))
    kept = run(parts.once, [given[buffer] for buffer in parts.once.inputs])
    return run(parts.each, [*arrays, *kept])
