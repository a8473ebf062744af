"""What loops carry from turn to turn and branches give: containers of arrays and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinyfuse import errors, tree
from tinyfuse.dtypes import BOOL, FLOAT64, INT64, describe
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.source import Source
from tinyfuse.trace.builder import GraphBuilder, active
from tinyfuse.trace.operation import explained
from tinyfuse.trace.operations import cast_atom, traced
from tinyfuse.trace.outputs import full_atom
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.tree import TreeDef

_NUMBERS = (int, float)


class Kind(NamedTuple):
    """What a leaf is.

    word: array; scalar, of numpy; int or float, of Python; static, the same in every turn.
    """

    word: str
    shape: tuple[int, ...] = ()
    dtype: np.dtype | None = None
    value: Any = None  # of a static leaf

    @property
    def is_weak(self) -> bool:
        return self.word in ("int", "float")

    @property
    def is_truth(self) -> bool:
        """Whether it is one, of Python that stays the same, or of numpy."""
        return type(self.value) is bool or (self.word == "scalar" and self.dtype == BOOL)

    def __str__(self) -> str:
        if self.word == "static":
            return repr(self.value)
        if self.is_weak:
            return f"a Python {self.word}"
        assert self.dtype is not None
        words = describe(self.shape, self.dtype)
        return words if self.word == "array" else f"a scalar {words}"

    def stand_in(self, builder: GraphBuilder, atom: Atom | None) -> Any:
        """What stands for the leaf in the traced function."""
        if atom is None:
            return self.value
        if self.word == "float":
            return TracedFloat(builder, atom, None)
        if self.word == "int":
            return TracedInt(builder, atom)
        return Tracer(builder, atom, self.word == "scalar")

    def parameter(self, name: str | None) -> Var | None:
        if self.word == "static":
            return None
        assert self.dtype is not None
        var = Var(self.shape, self.dtype, name)
        active().memory.lie(var, "C", None)
        return var

    def joined(self, other: Kind) -> Kind | None:
        """The kind of what is once of this one and once of the other; None if there is none."""
        if self == other or self._is_same_value(other):
            return self
        if self.is_truth and other.is_truth:
            return Kind("scalar", (), BOOL)
        if "static" in (self.word, other.word) or self.shape != other.shape:
            return None
        if self.is_weak and other.is_weak:
            return self if self.word == "float" else other
        if self.is_weak or other.is_weak:
            weak, strong = (self, other) if self.is_weak else (other, self)
            example = {"int": 0, "float": 0.0}[weak.word]
            fits = np.result_type(example, strong.dtype) == strong.dtype
            return strong if fits else None
        return Kind("array", self.shape, self.dtype) if self.dtype == other.dtype else None

    def _is_same_value(self, other: Kind) -> bool:
        if self.word != "static" or other.word != "static":
            return False
        return self.value is other.value or bool(self.value == other.value)


def leaf_of(value: Any) -> tuple[Kind, Atom | None]:
    """What a leaf is, and what stands for it in the graph."""
    kind = type(value)
    if kind is TracedFloat:
        return Kind("float", (), FLOAT64), value._atom
    if kind is TracedInt:
        return Kind("int", (), INT64), value._atom
    if kind in _NUMBERS:
        word, dtype = ("int", INT64) if kind is int else ("float", FLOAT64)
        if kind is int and not -(2**63) <= value < 2**63:
            return Kind("static", value=value), None
        return Kind(word, (), dtype), Literal(dtype.type(value))
    if isinstance(value, (np.ndarray, np.generic)) or kind is Tracer:
        x = traced(value)
        return Kind("scalar" if x._scalar else "array", x.shape, x.dtype), x._atom
    return Kind("static", value=value), None


class Carry:
    """A container with its leaves taken apart."""

    def __init__(self, value: Any, what: str) -> None:
        leaves, self.tree = tree.flatten(value)
        self.what = what
        found = [leaf_of(leaf) for leaf in leaves]
        self.given = [kind for kind, _ in found]
        self.kinds = [*self.given]
        self.atoms = [atom for _, atom in found]

    def parameters(self) -> list[Var | None]:
        """New variables for the leaves, named like the values that they begin with."""
        names = [getattr(atom, "name", None) for atom in self.atoms]
        return [kind.parameter(name) for kind, name in zip(self.kinds, names, strict=True)]

    def value(self, atoms: Sequence[Atom | None]) -> Any:
        """The container, with what stands for these."""
        builder = active()
        pairs = zip(self.kinds, atoms, strict=True)
        return self.tree.unflatten([kind.stand_in(builder, atom) for kind, atom in pairs])

    def converted(self, kinds: Sequence[Kind]) -> list[Atom | None]:
        """The atoms as values of these kinds."""
        found: list[Atom | None] = []
        for atom, own, kind in zip(self.atoms, self.given, kinds, strict=True):
            if kind.dtype is None:
                found.append(None)
                continue
            atom = Literal(np.bool_(own.value)) if atom is None else atom
            found.append(full_atom(cast_atom(atom, kind.dtype), kind.shape))
        return found


def joined(one: Carry, other: Carry, source: Source, of_turns: bool = True) -> list[Kind]:
    """Kinds that hold the leaves of both.

    of_turns: whether the second is what a turn makes of the first, which can only turn a Python
    number into one of numpy. Raises CarryError where there are none.
    """
    if one.tree != other.tree:
        words = f"{one.what} is {_shape_of(one.tree)}, {other.what} {_shape_of(other.tree)}"
        raise explained(errors.CarryError(words), source)
    kinds = []
    for path, mine, its in zip(one.tree.paths(), one.kinds, other.kinds, strict=True):
        kind = mine.joined(its)
        if kind is None or (of_turns and not mine.is_weak and not mine.is_truth and kind != mine):
            place = "".join([f"[{key!r}]" for key in path])
            of = f"{place} of " if place else ""
            words = f"{of}{one.what} is {mine}, {of}{other.what} is {its}"
            raise explained(errors.CarryError(words), source)
        kinds.append(kind)
    return kinds


def _shape_of(structure: TreeDef) -> str:
    """A container in words: `a tuple of 2 leaves`."""
    if structure.kind == "leaf":
        return "an array or a number"
    return f"a {structure.kind} of {structure.leaf_count} leaves"
