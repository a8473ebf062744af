"""Recorded turns of a loop: what they begin with, what they give, and in which memory it lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CellType
from typing import Any

import numpy as np

from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.records import dataclass
from tinyfuse.trace.carried import Carry, Kind
from tinyfuse.trace.cells import path_to_root, reached
from tinyfuse.trace.constants import filled_atom
from tinyfuse.trace.layouts import contiguous, strides_of
from tinyfuse.trace.recording import Recording
from tinyfuse.trace.tracer import Tracer
from tinyfuse.tree import TreeDef, flatten


class _Missing:
    """Stands for a name that has no value, or none that anybody reads. UNSET: is never read before
    it has one, whatever data decides."""

    def __repr__(self) -> str:
        return "no value"


MISSING, UNSET = _Missing(), _Missing()


def read_names(getters: Sequence[Callable[[], Any]]) -> list[Any]:
    """What names mean now; MISSING where they mean nothing."""
    return [_value(getter) for getter in getters]


def cells_of(getters: Sequence[Callable[[], Any]]) -> list[CellType]:
    """The variables that names are, where these are of a function."""
    return [cell for getter in getters for cell in getter.__closure__ or ()]


def _value(getter: Callable[[], Any]) -> Any:
    try:
        return getter()
    except NameError:
        return MISSING


@dataclass(slots=True)
class Slot:
    """What stands for a name at the beginning of a turn: a container with leaves of these kinds.

    frozen: why its arrays can't be written, if they can't.
    """

    structure: TreeDef
    kinds: list[Kind]
    frozen: str | None = None

    def freeze(self, value: Any) -> None:
        for leaf in leaves_of(value):
            if self.frozen and not leaf._scalar:
                leaf._read_only = self.frozen


def slot_of(value: Any) -> Slot:
    carry = Carry(value, "")
    return Slot(carry.tree, carry.given, frozen_reason(value))


@dataclass(slots=True)
class Turn:
    """A recorded turn; all by the position of a name.

    begun, params: the stand-ins that names began with, and the variables in them. after: what all
    names mean at the end, with their leaves. outputs: the atoms of these, converted to the kinds
    that the names began with; None where that cannot be. written: names whose stand-in has been
    written. roots: for each array at the end the memory it lies in. frozen: why it can't be
    written, if it can't.
    """

    recording: Recording
    begun: dict[int, Any]
    params: dict[int, list[Var | None]]
    after: list[Any]
    carries: list[Carry]
    outputs: list[list[Atom | None] | None]
    written: set[int]
    roots: list[list[Any]]
    reached: list[list[Any]]
    frozen: list[str | None]
    truths: list[Atom]

    def uses(self, at: int) -> bool:
        """Whether anything is computed from what a name began with."""
        mine = {var for var in self.params.get(at, ()) if var is not None}
        used: set[Any] = {atom for eqn in self.recording.eqns for atom in eqn.inputs}
        used.update([atom for _, atom in self.recording.written])
        used.update(self.truths)
        for other, atoms in enumerate(self.outputs):
            used.update([] if other == at else (atoms or ()))
        return not mine.isdisjoint(used)


def params_of(turn: Turn, slots: Mapping[int, Slot]) -> list[Var]:
    return [var for at in slots for var in turn.params[at] if var is not None]


def fitted(mine: Kind, its: Kind) -> Kind | None:
    """As what the first has to begin as what becomes the second."""
    if mine.is_weak and its.is_weak and mine.word != its.word:
        return its if mine.word == "int" else None
    if (its.is_weak and not mine.is_weak) or (its.word == "static" and mine.word == "scalar"):
        return None
    kind = mine.joined(its)
    return kind if kind == mine or mine.is_weak or mine.is_truth else None


def can_begin_as(value: Any, kinds: Sequence[Kind | None]) -> bool:
    """Whether a value before a loop can be of these kinds, with the same bits coming out.

    A Python number that meets smaller dtypes is computed with in its own precision until then.
    """
    carry = Carry(value, "")
    for own, kind, atom in zip(carry.given, kinds, carry.atoms, strict=True):
        assert kind is not None
        zero = isinstance(atom, Literal) and not atom.value and not np.signbit(atom.value)
        if own.is_weak and kind.dtype != own.dtype and not zero:  # 0.0 or 0 in any dtype
            return False
    return True


def kinds_text(kinds: Sequence[Kind]) -> str:
    return ", ".join(map(str, kinds)) or "empty"


def converted(carry: Carry, slot: Slot | None) -> list[Atom | None] | None:
    if slot is None:
        return carry.converted(carry.given)
    if slot.structure != carry.tree:
        return None
    kinds = [fitted(*pair) for pair in zip(slot.kinds, carry.given, strict=True)]
    return carry.converted(slot.kinds) if kinds == slot.kinds else None


def atoms_before(value: Any, slot: Slot) -> list[Atom | None]:
    """What a name is before a loop; of one that turns make for themselves anything."""
    if value is not MISSING:
        return Carry(value, "").converted(slot.kinds)
    return [
        None if kind.dtype is None else filled_atom(kind.shape, kind.dtype.type(0))
        for kind in slot.kinds
    ]


def leaves_of(value: Any) -> list[Any]:
    return [leaf for leaf in flatten(value)[0] if type(leaf) is Tracer]


def is_written(begun: Any, params: Sequence[Var | None]) -> bool:
    leaves = flatten(begun)[0]
    pairs = zip(leaves, params, strict=True)
    return any(type(leaf) is Tracer and leaf._value is not var for leaf, var in pairs)


def roots_of(value: Any) -> list[Any]:
    """The memory that the arrays of a name lie in."""
    return [path_to_root(leaf)[-1] for leaf in arrays_of(value)]


def frozen_reason(value: Any) -> str | None:
    """Why an array of a name can't be written; None where all can."""
    reasons = [leaf._read_only for leaf in leaves_of(value)]
    return next((reason for reason in reasons if reason is not None), None)


def can_be_linked(value: Any) -> bool:
    """Whether all arrays of a name are whole ones in C order that can be written."""
    return all(
        leaf._root is None and leaf._read_only is None and lies_in_order(leaf)
        if is_array(leaf)
        else type(leaf) is Tracer or not isinstance(leaf, np.ndarray)
        for leaf in flatten(value)[0]
    )


def reached_from(value: Any) -> list[Any]:
    """The memory that the arrays of a name lie in or, as data decides, may lie in."""
    return reached(roots_of(value))


def arrays_of(value: Any) -> list[Any]:
    return [leaf for leaf in flatten(value)[0] if is_array(leaf)]


def is_array(leaf: Any) -> bool:
    return type(leaf) is Tracer and not leaf._scalar


def lies_in_order(leaf: Tracer) -> bool:
    return leaf.ndim < 2 or strides_of(leaf) == contiguous(leaf._value)
