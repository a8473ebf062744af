"""What tracing takes and gives: the arguments' types, and the trace of a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tinyfuse.graph.interpreter import NumpyNumerics, interpret
from tinyfuse.graph.ir import Atom, Eqn, Graph, Var
from tinyfuse.graph.simplify import simplify
from tinyfuse.records import dataclass, field
from tinyfuse.trace.captured import Captured, Guard, Place
from tinyfuse.tree import TreeDef

Kind = Literal["array", "scalar", "weak", "integer", "static"]


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """The type of one leaf of the arguments.

    kind: `array`; `scalar`, a numpy scalar; `weak`, a Python float or complex number known at run
    time only (float64[], complex128[]); `integer`, a Python int of that kind (int64[]); `static`, a
    Python value that tracing sees as it is.
    strides: in bytes, of an array that is not in C order.
    alias: the position of an earlier spec whose array has its elements in the very same memory.
    identical: whether that is the very same object.
    """

    shape: tuple[int, ...] = ()
    dtype: np.dtype | None = None
    kind: Kind = "array"
    value: Any = None  # of a static one
    strides: tuple[int, ...] | None = field(default=None, compare=False)
    alias: int | None = field(default=None, compare=False)
    identical: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One leaf of the result.

    atom: a variable or literal of the graph, or else a Python value that is the same at each call.
    is_scalar: a numpy scalar, not a 0-d array. weak: a Python float.
    shared: of an array that is written, or a view of one: the variable in `Trace.views`.
    """

    atom: Atom | Any
    is_scalar: bool = False
    weak: bool = False
    shared: Var | None = None

    @property
    def is_static(self) -> bool:
        return not isinstance(self.atom, Atom)


@dataclass(frozen=True, slots=True)
class Check:
    """After a call: where `output` (bool[]) is true, `error(message)` is to be raised.

    operand, words: a value of the graph, and what is said of it in place of the message, followed
    by the place in the user's code.
    """

    output: Var
    error: type[Exception]
    message: str
    operand: Var | None = None
    words: Callable[[np.ndarray], str] | None = None
    place: str = ""

    def failure(self, graph: Graph, arrays: Sequence[np.ndarray]) -> Exception:
        """The exception for a call with these inputs of the trace's graph."""
        if self.operand is None or self.words is None:
            return self.error(self.message)
        asked = Graph(graph.name, graph.inputs, graph.eqns, (self.operand,))
        value = interpret(simplify(asked), arrays, NumpyNumerics())[0]
        return self.error(self.words(value) + self.place)


@dataclass(frozen=True, slots=True)
class Written:
    """An array of the caller's that the function writes.

    input: its elements before the call. value: those after it. message: of the error where it can't
    be written.
    """

    input: Var
    value: Atom
    message: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A traced function.

    graph.inputs: one for each spec that is not static, then one for each captured array.
    graph.outputs: one for each output that is not static, then one for each check, then one for
        each array that is written.
    guards: what else it depends on from outside: where one has changed, it is to be traced again.
    written: the arrays that are written.
    views, roots: equations that make the views of them that are returned, and for each variable
        that these begin with the input whose array it stands for, after the call.
    layouts: inputs whose layout in memory has decided between views and copies.
    """

    graph: Graph
    specs: tuple[ArgumentSpec, ...]
    captured: tuple[Captured, ...]
    outputs: tuple[OutputSpec, ...]
    out_tree: TreeDef
    checks: tuple[Check, ...]
    guards: tuple[Guard, ...] = ()
    written: tuple[Written, ...] = ()
    views: tuple[Eqn, ...] = ()
    roots: Mapping[Var, Var] = field(default_factory=dict)
    layouts: tuple[Var, ...] = ()

    @property
    def layout_leaves(self) -> frozenset[int]:
        """Those of `layouts` that are arguments, as positions among the specs."""
        given = [at for at, spec in enumerate(self.specs) if spec.kind != "static"]
        asked = set(self.layouts)
        inputs = zip(given, self.graph.inputs, strict=False)
        return frozenset([at for at, var in inputs if var in asked])


class NeedsElements(BaseException):
    """Python needs the elements of captured arrays; make them known and trace again."""

    def __init__(self, places: tuple[Place, ...], reason: str):
        super().__init__(reason)
        self.places = places
        self.reason = reason


# A loop in the user's code: file and line.
LoopPlace = tuple[str, int]


class Unroll(BaseException):
    """A loop cannot be one loop of the program; write out its turns and trace again."""

    def __init__(self, place: LoopPlace, reason: str):
        super().__init__(reason)
        self.place = place
        self.reason = reason


class Roll(BaseException):
    """A loop of few turns has a loop inside that makes them many, or writes arrays in many steps;
    trace again, with one of it."""

    def __init__(self, place: LoopPlace):
        super().__init__()
        self.place = place


@dataclass(slots=True)
class Rolling:
    """Which loops of a function are written out, and why, and what has been found about others.

    wanted: those that are not, although their turns are few. failed: those whose body did not come
    to its end. rolled: those that are one loop of the program. around: the loops around that are
    written out for their few turns, with these; turns: how many that makes. branches: whether
    conditions are rewritten, because data decides one. numbers: scalars that are Python numbers
    where a loop has no turns.
    """

    unrolled: dict[LoopPlace, str] = field(default_factory=dict)
    wanted: set[LoopPlace] = field(default_factory=set)
    failed: list[LoopPlace] = field(default_factory=list)
    rolled: list[LoopPlace] = field(default_factory=list)
    told: dict[LoopPlace, None] = field(default_factory=dict)
    around: list[tuple[LoopPlace, int]] = field(default_factory=list)
    turns: int = 1
    branches: bool = False
    numbers: dict[Any, LoopPlace] = field(default_factory=dict)
    rehearsing: int = 0  # loops around whose body is recorded only to look at it


class NeedsValue(BaseException):
    """Python needs the value of a run-time float; make that spec static and trace again.

    index: of the spec; None where the number is computed in a loop or a choice.

    Not an Exception, so that the user's `except Exception` does not stop it.
    """

    def __init__(self, index: int | None, reason: str):
        super().__init__(reason)
        self.index: Any = index
        self.reason = reason
