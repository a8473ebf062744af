"""Values that are known while tracing: what is made of constants and ranges alone.

They are part of the graph like all others, so that a mask of positions stays an expression. Where
Python needs one (an index, a shape, `if`), or numpy has to do what no equation does, numpy
evaluates the equations that lead to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinyfuse.graph.control import CONTROL
from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var

if TYPE_CHECKING:
    from tinyfuse.trace.builder import GraphBuilder


class Known:
    """What is known of the values of one trace."""

    __slots__ = ("_builder", "_inputs", "_makers", "_seen", "_values")

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder
        self._seen = 0  # equations looked at
        self._makers: dict[Var, tuple[int, Eqn]] = {}  # of known values only
        self._inputs: dict[Var, np.ndarray] = {}
        self._values: dict[Var, np.ndarray] = {}

    def value(self, atom: Atom) -> np.ndarray | None:
        """The elements, not to be written; None where they depend on what a call brings.

        That is every argument, and each array from outside of the function but those whose
        elements are compared at each call.
        """
        if type(atom) is Literal:
            return np.asarray(atom.value)
        assert type(atom) is Var
        self._look_at_new_equations()
        if atom in self._values:
            return self._values[atom]
        if atom in self._makers:
            value = self._values[atom] = self._evaluated(atom)
            return value
        return _read_only(self._inputs[atom]) if atom in self._inputs else None

    def forget_after(self, count: int) -> None:
        """Look again at equations from this one on: there are others now."""
        self._look_at_new_equations()
        self._seen = min(self._seen, count)

    def _look_at_new_equations(self) -> None:
        eqns = self._builder.eqns
        self._inputs = self._builder.fixed_inputs()
        for at in range(self._seen, len(eqns)):
            eqn = eqns[at]
            if all(map(self._is_known, eqn.inputs)) and eqn.primitive not in CONTROL:
                self._makers[eqn.output] = at, eqn
        self._seen = len(eqns)

    def _is_known(self, atom: Atom) -> bool:
        return type(atom) is Literal or atom in self._makers or atom in self._inputs

    def _evaluated(self, var: Var) -> np.ndarray:
        needed = {var: None}
        waiting = [var]
        while waiting:
            _, eqn = self._makers[waiting.pop()]
            new = [i for i in eqn.inputs if type(i) is Var and i not in needed]
            needed.update(dict.fromkeys(new))
            waiting.extend([each for each in new if self._is_open(each)])
        known = {each: self._array(each) for each in needed if not self._is_open(each)}
        eqns = sorted([self._makers[each] for each in needed if each not in known])
        graph = Graph("known", tuple(known), tuple([eqn for _, eqn in eqns]), (var,))
        return _read_only(interpret(graph, list(known.values()), NumpyNumerics())[0])

    def _is_open(self, var: Var) -> bool:
        """Whether equations lead to the value, and it has not been asked for before."""
        return var in self._makers and var not in self._values

    def _array(self, var: Var) -> np.ndarray:
        return self._values[var] if var in self._values else self._inputs[var]


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def known_value(x: Any) -> np.ndarray | None:
    """The elements of a tracer, not to be written; None where they are known at run time only."""
    value: np.ndarray | None = x._builder.known.value(x._atom)
    return value
