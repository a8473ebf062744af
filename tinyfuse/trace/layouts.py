"""How arrays lie in memory, which decides where numpy makes views and where copies.

That is asked of numpy itself, on dummies. The dummy of a view has the array's strides and no memory
behind it. The order that numpy gives the axes of a new array is found on small arrays that lie in
memory like the operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tinyfuse.graph import primitives as p
from tinyfuse.graph.interpreter import COMPUTATIONS
from tinyfuse.graph.interpreter import VIEWS as NUMPY_VIEWS
from tinyfuse.graph.ir import Atom, Eqn, Literal, Var
from tinyfuse.graph.numerics import NumpyNumerics
from tinyfuse.memory import Shape, Strides, layout, small_model


def has_view(view: Any) -> bool:
    """Whether numpy makes a view where it reshapes the base."""
    base = view._base
    return _reshaped(strides_of(base), view._step, base._value.dtype) is not None


def is_fortran(cell: Any) -> bool:
    """Whether an array lies in Fortran's order, and not in C's too."""
    return _dummy(cell._value.shape, strides_of(cell), cell._value.dtype).flags.fnc


def is_contiguous(view: Any) -> bool:
    """Whether the base lies in C order."""
    base = view._base
    return _if_contiguous(base._value, strides_of(base)) is not None


def _if_contiguous(value: Any, strides: Strides) -> Strides | None:
    dummy = _dummy(value.shape, strides, value.dtype)
    return strides if dummy.flags.c_contiguous else None


def strides_of(cell: Any) -> Strides:
    """The strides in bytes of the array that a cell stands for."""
    origin = Origin.of(cell)
    return origin.strides(cell._builder.memory.strides(origin.value))


class Origin(NamedTuple):
    """Where an array lies: in the memory of a value of the graph, which some steps view.

    steps: each with what it gives; None for a copy in C order of what does not lie so.
    """

    value: Atom
    steps: tuple[tuple[Eqn | None, Atom], ...]

    @classmethod
    def of(cls, cell: Any) -> Origin:
        steps = []
        while cell._base is not None:
            if cell._step is not None or cell._shares is is_contiguous:
                steps.append((cell._step, cell._value))
            cell = cell._base
        return cls(cell._value if cell._layout is None else cell._layout, tuple(steps[::-1]))

    @property
    def shape(self) -> Shape:
        return self.steps[-1][1].shape if self.steps else self.value.shape

    def strides(self, strides: Strides) -> Strides:
        """The strides, for those of the value."""
        for step, output in self.steps:
            kept = _if_contiguous(output, strides) if step is None else _of_view(step, strides)
            strides = kept or contiguous(output)
        return strides


def contiguous(value: Any) -> Strides:
    """The strides of an array in C order."""
    return _packed(value, range(len(value.shape), 0, -1))


def _packed(value: Any, order: Sequence[int]) -> Strides:
    """The strides of a new array whose axes lie in memory by descending `order`."""
    strides = [0] * len(order)
    step = value.dtype.itemsize
    for axis in sorted(range(len(order)), key=lambda axis: (abs(order[axis]), -axis)):
        strides[axis] = step
        step *= max(value.shape[axis], 1)
    return tuple(strides)


# -- values of the graph


class Layouts:
    """The strides of the values of one trace, each found when it is asked for the first time."""

    __slots__ = ("_alike", "_builder", "_converted", "_known", "_producers", "_seen")

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._seen = 0  # equations looked at
        self._producers: dict[Atom, Eqn] = {}
        self._known: dict[Atom, Strides] = {}
        self._alike: dict[Atom, tuple[str, Origin]] = {}
        self._converted: dict[Atom, Atom] = {}

    def lie(self, new: Var, order: str, like: Any) -> None:
        """Note how numpy lays out a new array: in C's or Fortran's order, or (A, K) like a cell."""
        if order in ("A", "K"):
            self._alike[new] = order, Origin.of(like)
        else:
            self._known[new] = contiguous(new) if order == "C" else _packed(new, _ascending(new))

    def stay(self, new: Var, cell: Any) -> None:
        """Note that these are the elements of an array that has been written: where it lies."""
        self._alike[new] = "=", Origin.of(cell)

    def convert(self, operand: Atom, converted: Atom) -> None:
        """Note that numpy converts an operand piece by piece: its own layout counts."""
        self._converted[converted] = operand

    def strides(self, atom: Atom) -> Strides:
        """The strides of the array that numpy makes where the graph has this value."""
        known = self._known
        waiting = [atom]
        while waiting:
            last = waiting[-1]
            needed = () if last in known else self._unknown(last)
            waiting.extend(needed)
            if not needed:
                waiting.pop()
                if last not in known:
                    known[last] = self._found(last)
        return known[atom]

    def producer(self, atom: Atom) -> Eqn | None:
        """The equation that a value comes from; None for inputs and literals."""
        self._look_at_new_equations()
        return self._producers.get(atom)

    def _look_at_new_equations(self) -> None:
        eqns = self._builder.eqns
        if self._seen < len(eqns):
            self._producers.update({eqn.output: eqn for eqn in eqns[self._seen :]})
            self._seen = len(eqns)

    def forget_after(self, count: int) -> None:
        """Look at equations from this one on again: there will be others."""
        self._look_at_new_equations()
        self._seen = min(self._seen, count)

    def _unknown(self, atom: Atom) -> list[Atom]:
        """What has to be known before."""
        if atom in self._alike:
            needed: Sequence[Atom] = (self._alike[atom][1].value,)
        else:
            eqn = self.producer(atom)
            needed = () if eqn is None else _asked_operands(eqn, self._operands(eqn))
        return [x for x in needed if x not in self._known]

    def _operands(self, eqn: Eqn) -> list[Atom]:
        return [self._converted.get(atom, atom) for atom in eqn.inputs]

    def _found(self, atom: Atom) -> Strides:
        if atom in self._alike:
            order, origin = self._alike[atom]
            return _of_copy(atom, order, origin, origin.strides(self._known[origin.value]))
        eqn = self.producer(atom)
        if eqn is not None:
            operands = self._operands(eqn)
            return _of_output(eqn, operands, [self._known.get(each, ()) for each in operands])
        strides: Strides = () if type(atom) is Literal else self._builder.input_strides(atom)
        return strides


def _ascending(value: Any) -> Sequence[int]:
    """For each axis its place in Fortran's order."""
    return range(1, len(value.shape) + 1)


def _of_copy(new: Atom, order: str, origin: Origin, strides: Strides) -> Strides:
    """The strides of a new array that lies like another one, if it has as many axes."""
    if order == "=":
        return strides
    if len(new.shape) != len(origin.shape):
        return contiguous(new)
    if order == "K":
        return _packed(new, layout(origin.shape, strides, 1))
    is_fortran = _dummy(origin.shape, strides, origin.value.dtype).flags.fnc
    return _packed(new, _ascending(new)) if is_fortran else contiguous(new)


def _asked_operands(eqn: Eqn, operands: Sequence[Atom]) -> Sequence[Atom]:
    """The operands whose layout decides that of the result."""
    if eqn.primitive in (p.iota, p.scatter) or len(eqn.output.shape) < 2:
        return () if eqn.primitive not in VIEWS else operands
    return operands[:1] if eqn.primitive is p.update else operands


VIEWS = (p.broadcast, p.part, p.reshape, p.transpose, p.slice_, p.windows)


def _of_output(eqn: Eqn, operands: Sequence[Atom], strides: Sequence[Strides]) -> Strides:
    output = eqn.output
    if eqn.primitive is p.broadcast and type(eqn.inputs[0]) is Literal:
        return contiguous(output)  # a new array of one value
    if eqn.primitive in VIEWS:
        return _of_view(eqn, strides[0]) or contiguous(output)
    if not _asked_operands(eqn, operands) or math.prod(output.shape) == 0:
        return contiguous(output)
    if eqn.primitive is p.update:
        return _packed(output, strides[0])
    models = [
        small_model(atom.shape, own, atom.dtype.itemsize)
        for atom, own in zip(operands, strides, strict=True)
    ]
    return _packed(output, _made_of(eqn, operands, models).strides)


def _made_of(eqn: Eqn, operands: Sequence[Atom], models: Sequence[np.ndarray]) -> np.ndarray:
    """What numpy makes of small arrays of the operands' dtypes."""
    arrays: list[Any] = [
        atom.value if type(atom) is Literal else model.view(atom.dtype)
        for atom, model in zip(operands, models, strict=True)
    ]
    if eqn.primitive is p.pad:
        widths = [(min(a, 1), min(b, 1)) for a, b in _widths(eqn)]
        return np.pad(arrays[0], widths)
    with np.errstate(all="ignore"):
        if eqn.primitive in NUMPY_VIEWS:
            return np.asarray(NUMPY_VIEWS[eqn.primitive](eqn, *arrays))
        made = COMPUTATIONS[eqn.primitive](eqn, arrays, NumpyNumerics(), ())
    return np.asarray(made)


def _widths(eqn: Eqn) -> list[tuple[int, int]]:
    return list(zip(eqn.params["before"], eqn.params["after"], strict=True))


def _of_view(step: Eqn, strides: Strides) -> Strides | None:
    """The strides of a view of an array with these; None where numpy copies."""
    dtype = step.inputs[0].dtype
    if step.primitive is p.reshape:
        return _reshaped(strides, step, dtype)
    if step.primitive is p.gather:  # at one position
        return strides[len(step.inputs) - 1 :]
    view: np.ndarray = NUMPY_VIEWS[step.primitive](
        step, _dummy(step.inputs[0].shape, strides, dtype)
    )
    return view.strides


def _reshaped(strides: Strides, step: Eqn, dtype: np.dtype) -> Strides | None:
    dummy = _dummy(step.inputs[0].shape, strides, dtype)
    try:
        return _without_copy(dummy, step.output.shape).strides
    except (AttributeError, ValueError):
        return None


def _without_copy(array: np.ndarray, shape: Shape) -> np.ndarray:
    """Raises where the array has no view of this shape."""
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return array.reshape(shape, copy=False)
    view = array.view()
    view.shape = shape
    return view


def _dummy(shape: Shape, strides: Strides, dtype: np.dtype) -> np.ndarray:
    """An array without memory behind it: nobody may look at its elements."""
    return as_strided(np.zeros(1, dtype), shape, strides)
