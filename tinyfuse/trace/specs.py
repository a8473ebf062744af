"""What tracing takes and gives: the arguments' types, and the trace of a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tinyfuse.graph.ir import Atom, Graph, Var
from tinyfuse.trace.captured import Captured, Guard, Place
from tinyfuse.tree import TreeDef

Kind = Literal["array", "scalar", "weak", "static"]


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """The type of one leaf of the arguments.

    kind: `array`; `scalar`, a numpy scalar; `weak`, a Python float known at run time only
    (float64[]); `static`, a Python value that tracing sees as it is.
    """

    shape: tuple[int, ...] = ()
    dtype: np.dtype | None = None
    kind: Kind = "array"
    value: Any = None  # of a static one


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One leaf of the result.

    atom: a variable or literal of the graph, or else a Python value that is the same at each call.
    is_scalar: a numpy scalar, not a 0-d array. weak: a Python float.
    """

    atom: Atom | Any
    is_scalar: bool = False
    weak: bool = False

    @property
    def is_static(self) -> bool:
        return not isinstance(self.atom, Atom)


@dataclass(frozen=True, slots=True)
class Check:
    """After a call: where `output` (bool[]) is true, `error(message)` is to be raised."""

    output: Var
    error: type[Exception]
    message: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A traced function.

    graph.inputs: one for each spec that is not static, then one for each captured array.
    graph.outputs: one for each output that is not static, then one for each check.
    guards: what else it depends on from outside: where one has changed, it is to be traced again.
    """

    graph: Graph
    specs: tuple[ArgumentSpec, ...]
    captured: tuple[Captured, ...]
    outputs: tuple[OutputSpec, ...]
    out_tree: TreeDef
    checks: tuple[Check, ...]
    guards: tuple[Guard, ...] = ()


class NeedsElements(BaseException):
    """Python needs the elements of captured arrays; make them known and trace again."""

    def __init__(self, places: tuple[Place, ...], reason: str):
        super().__init__(reason)
        self.places = places
        self.reason = reason


class NeedsValue(BaseException):
    """Python needs the value of a run-time float; make that spec static and trace again.

    Not an Exception, so that the user's `except Exception` does not stop it.
    """

    def __init__(self, index: int, reason: str):
        super().__init__(reason)
        self.index = index
        self.reason = reason
