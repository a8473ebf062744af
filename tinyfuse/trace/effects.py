"""What a traced function has written of its caller's, and which results share that memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyfuse.graph.ir import Eqn, Var
from tinyfuse.graph.primitives import gather
from tinyfuse.trace.cells import path_to_root
from tinyfuse.trace.layouts import is_contiguous
from tinyfuse.trace.specs import Written
from tinyfuse.trace.tracer import Tracer


class Effects:
    """The arrays of the caller's that were written.

    outside: the tracers that stand for arrays of the caller's, and their variables in the graph.

    arrays: those that were written. views: equations that make views of them again, after the call.
    roots: for each variable that those equations begin with the input whose array it stands for.
    """

    def __init__(self, outside: Sequence[tuple[Tracer, Var]]) -> None:
        self.arrays = tuple(
            [
                Written(var, tracer._value, tracer._written)
                for tracer, var in outside
                if tracer._root is None and tracer._written is not None
            ]
        )
        self.views: list[Eqn] = []
        self.roots: dict[Var, Var] = {}
        self._inputs = {id(tracer): var for tracer, var in outside}
        self._seen: dict[int, Var] = {}

    def shared(self, result: Tracer) -> Var | None:
        """The variable for a result that is a written array or a view of one; None for others."""
        if result._scalar or not (self.arrays or _may_be_copied(result)):
            return None
        path = path_to_root(result)
        root = path[-1]
        if any(cell._step is not None and cell._step.primitive is gather for cell in path):
            return None  # at a position that is known at run time only
        if id(root) not in self._inputs or root._written is None:
            return None
        start = next(at for at, cell in enumerate(path) if id(cell) in self._inputs)
        var = self._after(path[start])
        for cell in reversed(path[:start]):
            var = self._view(cell, var)
        return var

    def _after(self, tracer: Any) -> Var:
        """The variable that stands for an array of the caller's after the call."""
        known = self._seen.get(id(tracer))
        if known is None:
            before = self._inputs[id(tracer)]
            known = self._seen[id(tracer)] = Var(before.shape, before.dtype, before.name)
            self.roots[known] = before
        return known

    def _view(self, cell: Any, base: Var) -> Var:
        if cell._step is None:
            return base
        known = self._seen.get(id(cell))
        if known is None:
            known = self._seen[id(cell)] = Var(cell._value.shape, cell._value.dtype)
            step = cell._step
            self.views.append(Eqn(step.primitive, (base,), step.params, known, step.source))
        return known


def _may_be_copied(result: Any) -> bool:
    """Whether numpy copies the elements where they do not lie in C order.

    Where it reshapes, it decides between view and copy when the result is made.
    """
    while result._base is not None:
        if result._shares is is_contiguous:
            return True
        result = result._base
    return False
