"""What slices choose whose ends are known at run time only: `x[:n]`, `A[i, j:]`.

How many elements that are is no part of a shape. A `RunTimePart` has room for the most there can
be, in an array whose first `length` elements count. Elementwise functions compute on the whole,
sums and products skip the rest, and it can be put where a slice of the same length is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.builder import active
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import cast, stretch_atom
from tinyfuse.trace.position_bounds import interval
from tinyfuse.trace.same import same_value
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.unknown_lengths import UnknownLength
from tinyfuse.trace.weak import TracedInt
from tinyfuse.trace.weak_integers import as_integer, integer_atom


def refuse(what: str) -> NoReturn:
    raise errors.NumberConversionError(
        f"{what} of a slice whose ends are known only when the compiled function runs: use its "
        "elements, or sums and products (x[:n].sum(), x[:n] @ y[:n]), or put it into such a slice"
    )


class Slice:
    """One such slice among integers, in the index of an array: a part of a row.

    start, stop: int64, from 0 to the `size` of the row.
    """

    def __init__(self, x: Tracer, before: tuple[Any, ...], item: slice, after: tuple[Any, ...]):
        self.x, self.index = x, (*before, slice(None), *after)
        self.before, self.after = before, after
        self.size = x.shape[len(before)]
        self.is_open = False
        self.start = self._end(0 if item.start is None else item.start)
        self.stop = self._end(self.size if item.stop is None else item.stop)
        self.length = _integer("subtract", self.stop, self.start)
        if self.is_open:
            self.length = _not_negative(self.length)

    def _end(self, number: Any) -> Atom:
        if type(number) is int:
            return Literal(np.int64(slice(number, None).indices(self.size)[0]))
        atom = integer_atom(number, active())
        low, high = interval(active(), atom)
        if low is None or high is None:
            self.is_open = True
        if low is None or low < 0:
            atom = self._counted_from_the_end(atom)
        if high is None or high > self.size:
            atom = _integer("minimum", atom, Literal(np.int64(self.size)))
        active().bounds.setdefault(atom, (0, self.size))  # type: ignore[arg-type]
        return atom

    def _counted_from_the_end(self, number: Atom) -> Atom:
        """A negative end as numpy takes it."""
        size = Literal(np.int64(self.size))
        test = _compare("less", number, _NONE)
        found = select_atom(test, _integer("add", number, size), number, ())
        return _integer("maximum", found, _NONE)

    def at(self, place: Any) -> tuple[Any, ...]:
        """The index in the array of a place in the slice, or of an array of places."""
        position = place + TracedInt(active(), self.start)
        active().bounds[position._atom] = 0, self.size - 1
        return (*self.before, position, *self.after)

    @property
    def row(self) -> Tracer:
        found: Tracer = self.x[self.index]  # type: ignore[index]
        return found

    def read(self) -> Atom:
        """A row that begins with the elements of the slice."""
        return _moved(self.row._atom, self.start, self.size)

    def is_same(self, other: Slice) -> bool:
        ends = (self.start, other.start), (self.stop, other.stop)
        same = self.x is other.x and all(same_value(active(), *pair) for pair in ends)
        pairs = list(zip(self.index, other.index, strict=True)) if same else []
        return same and all(_same_index(*pair) for pair in pairs)

    def write(self, value: Any) -> None:
        """Raises as numpy where a value does not fit."""
        if isinstance(value, RunTimePart):
            if value._slice is not None and self.is_same(value._slice):
                return  # the end of `x[:n] += y`, which has written there
            value.require_length(self.length)
            source = cast(Tracer(active(), value.read()), self.x.dtype)._atom
            new = _moved(source, _integer("negative", self.start), self.size)
        else:
            row = self.row
            if np.ndim(value):
                refuse("the values that are put")
            filled: Any = row.copy()
            filled[:] = value  # by numpy's rules of assignment
            new = filled._atom
        places = _places(self.size)
        inside = _truth("logical_and", *self._tests(places))
        row = self.row
        self.x[self.index] = Tracer(active(), select_atom(inside, new, row._atom, row.shape))

    def _tests(self, places: Atom) -> tuple[Atom, Atom]:
        return (
            _compare("greater_equal", places, self.start),
            _compare("less", places, self.stop),
        )


def run_time_slice(x: Tracer, index: Any) -> Slice | None:
    """The one in an index, if there is one. Raises NumberConversionError for other such indices."""
    items = index if type(index) is tuple else (index,)
    if any(type(item) is slice for item in items):
        items = tuple([_as_integers(item) for item in items])
    found = [at for at, item in enumerate(items) if type(item) is slice and _is_open(item)]
    if not found:
        return None
    at = found[0]
    numbers = all(type(item) in (int, TracedInt) for item in (*items[:at], *items[at + 1 :]))
    if len(found) > 1 or not numbers or len(items) != x.ndim or items[at].step not in (None, 1):
        refuse("an index with several slices, or a step,")
    return Slice(x, items[:at], items[at], items[at + 1 :])


def _as_integers(item: Any) -> Any:
    """With integers of Python's in place of scalars that data decides."""
    if type(item) is slice:
        return slice(as_integer(item.start), as_integer(item.stop), item.step)
    return as_integer(item)


def _is_open(item: slice) -> bool:
    return TracedInt in (type(item.start), type(item.stop))


class RunTimePart(UnknownLength):
    """The elements of a slice, or what has been computed from them. Stands for an ndarray.

    _slice: where they are read again; else _found: an array that begins with them.
    """

    __slots__ = ("_found", "_length", "_place", "_slice")

    _functions: ClassVar[dict[Any, Any]] = {}  # what of numpy's takes such a part
    _words: ClassVar = {
        "setitem": "x[:n][...] = value",
        "array": "np.asarray",
        "len": "len()",
        "iter": "a loop",
        "bool": "the truth",
    }

    def __init__(self, length: Atom, found: Atom | None = None, of: Slice | None = None) -> None:
        self._length, self._found, self._slice = length, found, of
        self._place = active().place()

    def read(self) -> Atom:
        if self._slice is not None:
            return self._slice.read()
        assert self._found is not None
        return self._found

    def inside(self, other: Any) -> Tracer:
        """The elements, with a number in place of what does not count."""
        atom = self.read()
        (size,) = atom.shape
        test = _compare("less", _places(size), self._length)
        rest = Literal(atom.dtype.type(other))
        return Tracer(active(), select_atom(test, atom, rest, atom.shape))

    def require_length(self, length: Atom) -> None:
        if not same_value(active(), self._length, length):
            refuse("something of another length")

    def computed(self, atom: Atom) -> RunTimePart:
        return RunTimePart(self._length, atom)

    @property
    def _atom(self) -> Atom:
        return self.read()

    @property
    def _builder(self) -> Any:
        return active()

    @property
    def dtype(self) -> np.dtype:
        return self.read().dtype

    ndim = 1

    def copy(self, order: str = "C") -> RunTimePart:
        return self.computed(self.read())

    def astype(self, dtype: Any, **options: Any) -> RunTimePart:
        return self.computed(Tracer(active(), self.read()).astype(dtype, **options)._atom)

    def __getitem__(self, index: Any) -> RunTimePart:
        if index == slice(None, None, -1):
            return operate(_backwards, self)
        operate(refuse, "x[:n][...]")
        raise AssertionError

    def _refuse(self, what: str) -> NoReturn:
        refuse(what)

    def _ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
        return _call_ufunc(ufunc, method, inputs, kwargs)

    def _function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        implementation = self._functions.get(function)
        if implementation is None or kwargs:
            refuse(f"np.{function.__name__}")
        return implementation(*args)

    def _attribute(self, name: str) -> Any:
        if name in ("sum", "mean", "dot"):
            return lambda *args: operate(self._functions[getattr(np, name)], self, *args)
        return operate(refuse, name)

    def __repr__(self) -> str:
        return f"RunTimePart({self.dtype})"


# -- functions


def _call_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    options = {key: value for key, value in kwargs.items() if value is not None}
    out = options.pop("out", (None,))[0]
    if ufunc is np.matmul and method == "__call__" and out is None:
        return _dot(*inputs)
    if method != "__call__" or ufunc.signature or ufunc.nout > 1 or options:
        refuse(f"np.{ufunc.__name__}")
    if out is not None and type(out) is not RunTimePart:
        refuse(f"np.{ufunc.__name__} into an array")
    first, *others = [value for value in (*inputs, out) if type(value) is RunTimePart]
    for other in others:
        other.require_length(first._length)
    made = ufunc(*_wholes(ufunc, inputs))
    if out is None:
        return first.computed(made._atom)
    if not np.can_cast(made.dtype, out.dtype, "same_kind") or out._slice is None:
        refuse(f"np.{ufunc.__name__} into what was computed, or another dtype,")
    out._slice.write(first.computed(made._atom))
    return out


def _wholes(ufunc: np.ufunc, inputs: Sequence[Any]) -> list[Any]:
    """What a function takes: rows of the same length, and numbers."""
    rows: dict[int, Tracer] = {}
    for at, value in enumerate(inputs):
        if type(value) is RunTimePart:
            checked = ufunc is np.power  # raises for some elements
            rows[at] = value.inside(1) if checked else Tracer(active(), value.read())
        elif np.ndim(value):
            refuse(f"np.{ufunc.__name__} with an array")
    least = min(row.size for row in rows.values())
    return [rows[at][:least] if at in rows else value for at, value in enumerate(inputs)]  # type: ignore[index]


def _dot(one: Any, other: Any) -> Any:
    if type(one) is not RunTimePart or type(other) is not RunTimePart:
        refuse("a product with an array")
    one.require_length(other._length)
    rows = [each.inside(0) for each in (one, other)]
    least = min(row.size for row in rows)
    return np.dot(*[row[:least] for row in rows])  # type: ignore[index]


def _sum(part: Any) -> Any:
    return np.sum(part.inside(0))


def _mean(part: Any) -> Any:
    if part.dtype.kind != "f":
        refuse("the mean of integers")
    return np.sum(part.inside(0)) / TracedInt(active(), _not_negative(part._length))


def _backwards(part: Any) -> RunTimePart:
    atom = part.read()
    (size,) = atom.shape
    last = _integer("subtract", part._length, Literal(np.int64(1)))
    places = _along("subtract", last, _places(size), size)
    return part.computed(active().emit(p.gather, atom, _within(places, size)))


RunTimePart._functions = {
    np.dot: _dot,
    np.inner: _dot,
    np.sum: _sum,
    np.mean: _mean,
    np.flip: _backwards,
    np.copy: lambda part: part.copy(),
}


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


def _not_negative(number: Atom) -> Atom:
    low, _ = interval(active(), number)
    return number if low is not None and low >= 0 else _integer("maximum", number, _NONE)


_NONE = Literal(np.int64(0))


def _along(op: str, one: Atom, other: Atom, size: int) -> Atom:
    atoms = tuple([stretch_atom(atom, (size,)) for atom in (one, other)])
    return active().define(p.elementwise, atoms, {"op": op}, (size,), INT64)


def _compare(op: str, places: Atom, number: Atom) -> Atom:
    atoms = (places, stretch_atom(number, places.shape))
    return active().define(p.elementwise, atoms, {"op": op}, places.shape, BOOL)


def _truth(op: str, one: Atom, other: Atom) -> Atom:
    return active().define(p.elementwise, (one, other), {"op": op}, one.shape, BOOL)


def _places(size: int) -> Atom:
    return active().emit(p.iota, extent=size)


def _within(places: Atom, size: int) -> Atom:
    """Positions of an array, whatever they are: what lies outside of it is not looked at."""
    low = _along("maximum", places, Literal(np.int64(0)), places.shape[0])
    return _along("minimum", low, Literal(np.int64(size - 1)), places.shape[0])


def _moved(row: Atom, by: Atom, size: int) -> Atom:
    """`size` elements of a row, from a position on."""
    if type(by) is Literal and not by.value and row.shape == (size,):
        return row
    places = _along("add", _places(size), by, size)
    return active().emit(p.gather, row, _within(places, row.shape[0]))
