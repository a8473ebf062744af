"""Slices whose ends are known at run time only: `x[:n]`, `A[i, j:]`, `v[row[i]:row[i + 1]]`.

What they choose is a `run_time_parts.RunTimePart`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Var
from tinyfuse.trace.builder import active, called
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.position_bounds import interval, linear_form
from tinyfuse.trace.same import same_value
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedInt
from tinyfuse.trace.weak_integers import as_integer, integer_atom


def refuse(what: str) -> NoReturn:
    raise errors.NumberConversionError(
        f"{what} of a slice whose ends are known only when the compiled function runs: use its "
        "elements, or sums and products (x[:n].sum(), x[:n] @ y[:n]), or put it into such a slice"
    )


class Slice:
    """One such slice among integers, in the index of an array: a part of a row.

    start, stop: int64, from 0 to the `size` of the row; backwards from -1 to `size - 1`. most:
    there are no more elements.
    """

    def __init__(self, x: Tracer, before: tuple[Any, ...], item: slice, after: tuple[Any, ...]):
        self.x, self.index = x, (*before, slice(None), *after)
        self.before, self.after = before, after
        self.size = x.shape[len(before)]
        self.step = 1 if item.step is None else _nonzero(item.step)
        self.first = -1 if self._is_backwards else 0
        ends = (self.size - 1, -1) if self._is_backwards else (0, self.size)
        self.start, self.stop = [
            Literal(np.int64(end)) if given is None else called(self._end(given), name)
            for name, given, end in zip(
                ("start", "stop"), (item.start, item.stop), ends, strict=True
            )
        ]
        between = (self.stop, self.start)[:: -1 if self._is_backwards else 1]
        self.length = _not_negative(_integer("subtract", *between), self.size)
        self.most = self.size
        if not self._is_dense:
            step = integer_atom(-self.step if self._is_backwards else self.step, active())
            rounded = _integer("add", self.length, _integer("subtract", step, _ONE))
            self.length = _integer("floor_divide", rounded, step)
            self.most = -(-self.size // abs(self.step)) if type(self.step) is int else self.size
        self.length = called(self.length, "length")

    @property
    def _is_dense(self) -> bool:
        return type(self.step) is int and self.step == 1

    @property
    def _is_backwards(self) -> bool:
        return type(self.step) is int and self.step < 0

    def _end(self, number: Any) -> Atom:
        if type(number) is int:
            step = -1 if self._is_backwards else 1
            return Literal(np.int64(slice(number, None, step).indices(self.size)[0]))
        atom = integer_atom(number, active())
        low, high = interval(active(), atom)
        most = self.first + self.size
        if low is not None and low >= 0 and high is not None and high <= most:
            return atom
        size = Literal(np.int64(self.size))
        if not self._is_backwards:
            return _bounded("slice_end", atom, size, most=self.size)
        if low is None or low < 0:
            test = _compare("less", atom, _NONE)
            atom = select_atom(test, _integer("add", atom, size), atom, ())
            atom = _integer("maximum", atom, Literal(np.int64(self.first)))
        if high is None or high > most:
            atom = _integer("minimum", atom, Literal(np.int64(most)))
        if isinstance(atom, Var):
            active().bounds[atom] = self.first, most
        return atom

    def at(self, place: Any) -> tuple[Any, ...]:
        """The index in the array of a place in the slice, or of an array of places."""
        moved = place if self._is_dense else place * self.step
        position = moved + TracedInt(active(), self.start)
        active().bounds[position._atom] = 0, self.size - 1
        return (*self.before, position, *self.after)

    def is_same(self, other: Slice) -> bool:
        ends = (self.start, other.start), (self.stop, other.stop)
        same = self.x is other.x and _same_index(self.step, other.step)
        same = same and all(same_value(active(), *pair) for pair in ends)
        pairs = list(zip(self.index, other.index, strict=True)) if same else []
        return same and all(_same_index(*pair) for pair in pairs)


def common_length(first: Atom, *others: Atom) -> Atom:
    """The length of what meets without broadcasting. A call raises ShapeError where they differ:
    then it is the least, which no array is too short for.
    """
    for other in others:
        if not is_same_number(first, other):
            _refuse_if(_compare("not_equal", first, other))
            first = _integer("minimum", first, other)
    return first


def broadcast_length(*lengths: Atom, to: Atom | None = None) -> Atom:
    """The length that lengths broadcast to, or whether that is this one. A call raises ShapeError
    where it is none; then it is one that no array is too short for.
    """
    whole = lengths[0] if to is None else to
    for other in lengths:
        if not is_same_number(whole, other):
            whole = _wider(whole, other, to)
    right = whole if to is None else to
    for length in lengths:
        if not is_same_number(right, length) and not _is_one(length):
            differs = _compare("not_equal", length, right), _compare("not_equal", length, _ONE)
            _refuse_if(_compare("logical_and", *differs))
    return whole


def _wider(one: Atom, other: Atom, to: Atom | None) -> Atom:
    if _is_one(other):
        return one
    if _is_one(one) and to is None:
        return other
    both = _integer("minimum", one, other)
    wider = select_atom(_compare("equal", other, _ONE), one, both, ())
    return wider if to is not None else select_atom(_compare("equal", one, _ONE), other, wider, ())


def stride_in(length: Atom, whole: Atom) -> Atom | None:
    """1, or 0 where a length is broadcast; None where it can't be."""
    if is_same_number(length, whole):
        return None
    return active().emit(p.cast, _compare("not_equal", length, _ONE), dtype=INT64)


def _refuse_if(differs: Var) -> None:
    active().check(
        differs,
        errors.ShapeError,
        "slices whose ends are known only when the compiled function runs meet others of another "
        "length",
    )


def _is_one(length: Atom) -> bool:
    return type(length) is Literal and length.value == 1


def is_same_number(one: Atom, other: Atom) -> bool:
    """Whether two integers are known to be one."""
    if same_value(active(), one, other):
        return True
    forms = [linear_form(active(), atom) for atom in (one, other)]
    return forms[0] == forms[1]


def run_time_slice(x: Tracer, index: Any) -> Slice | None:
    """The one in an index, if there is one. Raises NumberConversionError for other such indices."""
    items = index if type(index) is tuple else (index,)
    if any(type(item) is slice for item in items):
        items = tuple([_as_integers(item) for item in items])
    found = [at for at, item in enumerate(items) if type(item) is slice and _is_open(item)]
    if not found:
        return None
    return _slice_at(x, items, found[0])


def slice_of(x: Tracer, index: Any) -> Slice:
    """A slice, whatever is known of its ends. Raises NumberConversionError for other indices."""
    items = tuple(map(_as_integers, index if type(index) is tuple else (index,)))
    found = [at for at, item in enumerate(items) if type(item) is slice]
    return _slice_at(x, items, found[0] if found else 0)


def _slice_at(x: Tracer, items: tuple[Any, ...], at: int) -> Slice:
    others = (*items[:at], *items[at + 1 :])
    numbers = all(type(item) in (int, TracedInt) for item in others)
    if type(items[at]) is not slice or not numbers or len(items) != x.ndim:
        raise errors.NumberConversionError(
            "an index with several slices, or of some axes only, one of whose ends is known only "
            "when the compiled function runs: go through the rows in a loop, which becomes one of "
            "the program (for r in range(n): A[r, :n] *= 2, in place of A[:n, :n] *= 2)"
        )
    return Slice(x, items[:at], items[at], items[at + 1 :])


def _as_integers(item: Any) -> Any:
    """With integers of Python's in place of scalars that data decides."""
    if type(item) is slice:
        return slice(*map(as_integer, (item.start, item.stop, item.step)))
    return as_integer(item)


def _is_open(item: slice) -> bool:
    return TracedInt in (type(item.start), type(item.stop), type(item.step))


def _nonzero(step: Any) -> Any:
    """A step. A call raises InvalidArgumentError where one that only it knows is not positive."""
    if type(step) is int and not step:
        raise errors.InvalidArgumentError("slice step cannot be zero")
    if type(step) is int or (interval(active(), step._atom)[0] or 0) > 0:
        return step
    words = "the step of a slice that is known only when the compiled function runs is not positive"
    active().check(_compare("less", step._atom, _ONE), errors.InvalidArgumentError, words)
    positive = _integer("maximum", step._atom, _ONE)
    return TracedInt(active(), positive)


# -- equations


def _same_index(one: Any, other: Any) -> bool:
    if type(one) is not TracedInt or type(other) is not TracedInt:
        return type(one) is type(other) and one == other
    return same_value(active(), one._atom, other._atom)


def _integer(op: str, *atoms: Atom) -> Atom:
    """Arithmetic with int64 numbers; done at once where they are known."""
    if all(type(atom) is Literal for atom in atoms):
        values = [atom.value for atom in atoms]  # type: ignore[union-attr]
        return Literal(np.int64(getattr(np, op)(*values)))
    if op == "subtract" and type(atoms[1]) is Literal and not atoms[1].value:
        return atoms[0]
    return active().define(p.elementwise, atoms, {"op": op}, (), INT64)


def _bounded(op: str, *atoms: Atom, most: int) -> Var:
    """What is from none to a number."""
    output = active().define(p.elementwise, atoms, {"op": op}, (), INT64)
    active().bounds[output] = 0, most
    return output


def _not_negative(number: Atom, most: int) -> Atom:
    low, _ = interval(active(), number)
    return number if low is not None and low >= 0 else _bounded("maximum", number, _NONE, most=most)


_NONE, _ONE = Literal(np.int64(0)), Literal(np.int64(1))


def _compare(op: str, *atoms: Atom) -> Var:
    return active().define(p.elementwise, atoms, {"op": op}, (), BOOL)
