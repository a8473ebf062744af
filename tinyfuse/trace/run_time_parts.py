"""What slices choose whose ends are known at run time only, element by element.

How many elements that are is no part of a shape, and it can be a small part of a long array. So
nothing is computed on the whole of it: what is computed of it is told for one place, and what is
reduced or put anywhere is a loop of as many turns as there are elements.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from tinyfuse import errors
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.builder import active
from tinyfuse.trace.control_flow import counted_loop
from tinyfuse.trace.layouts import VIEWS
from tinyfuse.trace.operation import operate
from tinyfuse.trace.recording import record
from tinyfuse.trace.run_time_slices import (
    Slice,
    broadcast_length,
    common_length,
    is_same_number,
    refuse,
    stride_in,
)
from tinyfuse.trace.same import same_value
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.unknown_lengths import UnknownLength
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.trace.weak_integers import unknown_length

# More elements than any array has: of a range whose end nothing bounds.
UNBOUNDED = 1 << 62
# From a place, or an array of places, to what is there.
Element = Callable[[Any], Any]


class Target:
    """A slice that elements are put into, which some of them are computed from.

    elsewhere: what is read at other places than the one that is written.
    """

    def __init__(self, into: Slice) -> None:
        self.into, self.now = into, into.x._atom
        self.elsewhere: list[Atom] = []

    def holds(self, found: Slice, atom: Atom) -> bool:
        """Whether what a slice chose of a value is what the target holds, place by place."""
        same = self.into.is_same(found) and same_value(active(), self.now, atom)
        if not same:
            self.elsewhere.append(atom)
        return same

    @property
    def is_read_elsewhere(self) -> bool:
        """Whether that are elements of the same array: they are all read before one is put."""
        own = origin(self.into.x._atom)
        return any(origin(atom) is own for atom in self.elsewhere)


# From what elements are put into, or None, to the elements.
Made = Callable[[Target | None], Element]


class RunTimePart(UnknownLength):
    """The elements of a slice, or what has been computed from them. Stands for an ndarray.

    _length: how many there are, _most: at most. _slice: where they are read, or else _made.
    """

    __slots__ = ("_length", "_made", "_most", "_place", "_slice")

    # What of numpy's takes such a part: functions, and what reduces by a ufunc.
    _functions: ClassVar[dict[Any, Callable[..., Any]]] = {}
    _reductions: ClassVar[dict[np.ufunc, Callable[..., Any]]] = {}
    _words: ClassVar = {
        "setitem": "x[:n][...] = value",
        "array": "np.asarray",
        "len": "len()",
        "iter": "a loop",
        "bool": "the truth",
    }

    def __init__(
        self, length: Atom, most: int, made: Made | None = None, of: Slice | None = None
    ) -> None:
        self._length, self._most, self._made, self._slice = length, most, made, of
        self._place = active().place()

    def made(self) -> Made:
        """What is there now, also if arrays are written later."""
        if self._made is not None:
            return self._made
        assert self._slice is not None
        return _read(self._slice)

    def element(self, target: Target | None = None) -> Element:
        return self.made()(target)

    def with_elements(self, made: Made) -> RunTimePart:
        """As many others."""
        return RunTimePart(self._length, self._most, made)

    def taken_from(self, x: Tracer) -> RunTimePart:
        """The elements of an array at these places."""
        if x.ndim != 1 or self.dtype.kind not in "iu":
            refuse("an index of an array with several axes, or one without integers,")
        held: Any = Tracer(active(), x._atom)
        places = self.made()

        def made(target: Target | None) -> Element:
            if target is not None:
                target.elsewhere.append(held._atom)
            at = places(target)
            return lambda place: held[at(place)]

        return self.with_elements(made)

    @property
    def _atom(self) -> Atom:
        """Of whose origin an error may tell."""
        return self._length

    @property
    def _builder(self) -> Any:
        return active()

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(self.element(), self._length)

    ndim = 1

    def copy(self, order: str = "C") -> RunTimePart:
        return self.with_elements(self.made())

    def astype(self, dtype: Any, **options: Any) -> RunTimePart:
        return self.mapped(lambda value: NUMPY.asarray(value).astype(dtype, **options))

    def mapped(self, function: Callable[[Any], Any]) -> RunTimePart:
        """A function of each element."""
        made = self.made()

        def of(target: Target | None) -> Element:
            at = made(target)
            return lambda place: function(at(place))

        return self.with_elements(of)

    def __getitem__(self, index: Any) -> Any:
        if index != slice(None, None, -1):
            operate(refuse, "x[a:b][...]")
        return operate(_backwards, self)

    def _refuse(self, what: str) -> NoReturn:
        refuse(what)

    def _ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
        return _call_ufunc(ufunc, method, inputs, kwargs)

    def _function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        implementation = self._functions.get(function)
        if implementation is None:
            refuse(f"np.{function.__name__}")
        return _taken(f"np.{function.__name__}", implementation, args, kwargs)

    def _attribute(self, name: str) -> Any:
        if name in _METHODS:
            function = getattr(np, name)
            return lambda *args, **kwargs: operate(self._function, function, (self, *args), kwargs)
        return operate(refuse, name)

    def __repr__(self) -> str:
        return "RunTimePart()"


_METHODS = (
    *("all", "any", "argmax", "argmin", "cumprod", "cumsum", "dot", "max", "mean", "min", "prod"),
    *("std", "sum", "var"),
)


# What functions do without that argument.
_DEFAULTS: dict[str, Any] = {"out": None, "keepdims": False, "where": True}


def _taken(
    what: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What such a function returns. Raises NumberConversionError for arguments it does not take."""
    given = {
        name: value
        for name, value in kwargs.items()
        if value is not np._NoValue and value is not _DEFAULTS.get(name, np._NoValue)
    }
    taken = inspect.signature(function)
    for name in given:
        if name not in taken.parameters:
            refuse(f"{what} with {name}=")
    try:
        taken.bind(*args, **given)
    except TypeError:
        refuse(f"{what} with these arguments")
    return function(*args, **given)


_ONE = Literal(np.int64(1))


def origin(atom: Atom) -> Atom:
    """The value that views read."""
    eqn = active().memory.producer(atom)
    while eqn is not None and eqn.primitive in VIEWS:
        atom = eqn.inputs[0]
        eqn = active().memory.producer(atom)
    return atom


def part_of(found: Slice) -> RunTimePart:
    """What a slice chooses."""
    return RunTimePart(found.length, found.most, of=found)


def dtype_of(element: Element, length: Atom) -> np.dtype:
    found: list[np.dtype] = []

    def run() -> Sequence[Atom]:
        found.append(NUMPY.asarray(element(TracedInt(active(), length))).dtype)
        return ()

    record(active(), [], run)  # nothing of which is kept
    return found[0]


def _read(found: Slice) -> Made:
    held: Any = Tracer(active(), found.x._atom)

    def made(target: Target | None) -> Element:
        holds = target is not None and target.holds(found, held._atom)
        x: Any = found.x if holds else held
        return lambda place: x[found.at(place)]

    return made


def _backwards(part: RunTimePart) -> RunTimePart:
    last: Any = TracedInt(active(), part._length) - 1  # type: ignore[operator]
    return part.with_elements(_elsewhere(part.made(), lambda place: last - place))


def _elsewhere(made: Made, moved: Callable[[Any], Any]) -> Made:
    """The elements at other places."""

    def of(target: Target | None) -> Element:
        if target is None:
            at = made(None)
        else:
            other = Target(target.into)
            at = made(other)
            target.elsewhere += [*other.elsewhere, target.now]
        return lambda place: at(moved(place))

    return of


def _stretched(length: Atom, whole: Atom, made: Made) -> Made:
    """Elements of a part of this length that is broadcast to another one."""
    atom = stride_in(length, whole)
    if atom is None:
        return made
    stride: Any = TracedInt(active(), atom)
    return _elsewhere(made, lambda place: place * stride)


# -- arrays and numbers that meet such parts


def is_number(value: Any) -> bool:
    if isinstance(value, RunTimePart):
        return False
    return type(value) in (TracedInt, TracedFloat) or not np.ndim(value)


def as_part(what: str, value: Any) -> RunTimePart:
    """An array with one axis as a part of all its elements."""
    if isinstance(value, RunTimePart):
        return value
    if np.ndim(value) != 1:
        refuse(f"{what} with an array of {np.ndim(value)} axes")
    held: Any = Tracer(active(), NUMPY.asarray(value)._atom)
    size = held.shape[0]

    def made(target: Target | None) -> Element:
        if target is not None:
            target.elsewhere.append(held._atom)
        return lambda place: held[place]

    return RunTimePart(Literal(np.int64(size)), size, made)


def _given(value: Any, length: Atom) -> Made:
    if isinstance(value, RunTimePart):
        return _stretched(value._length, length, value.made())
    held = Tracer(active(), value._atom, True) if type(value) is Tracer else value
    return lambda target: lambda place: held


# -- what is put into slices


def put(into: Slice, value: Any) -> None:
    """Put elements into a slice. Raises as numpy where a value does not fit."""
    source = value._slice if isinstance(value, RunTimePart) else None
    if source is not None and into.is_same(source):
        return  # the end of `x[a:b] += y`, which has written there
    if is_number(value):
        _put(into, into.length, _given(value, into.length))
        return
    _put_part(into, as_part("what is put", value))


def _put_part(into: Slice, part: RunTimePart) -> None:
    length = broadcast_length(part._length, to=into.length)
    _put(into, length, _stretched(part._length, length, part.made()))


def _put(into: Slice, length: Atom, made: Made) -> None:
    target = Target(into)
    element = made(target)
    if target.is_read_elsewhere:
        element = kept(length, into.most, element)

    def turn(place: Any, carried: Any) -> Any:
        into.x[into.at(place)] = element(place)
        return carried

    counted_loop(length, into.most, turn, (), "k")


def bounded(most: int) -> int:
    """How many elements there are at most. Raises NumberConversionError where nothing says that."""
    if most == UNBOUNDED:
        raise errors.NumberConversionError(unknown_length("np.arange"))
    return most


def kept(length: Atom, most: int, element: Element) -> Element:
    """Elements that are all computed now, into an array of their own."""

    def turn(place: Any, values: Any) -> Any:
        values[place] = element(place)
        return values

    room = NUMPY.zeros(bounded(most), dtype_of(element, length))
    values = counted_loop(length, most, turn, room, "k")
    return lambda place: values[place]


# -- elementwise functions


def elementwise(name: str, function: Callable[..., Any], inputs: Sequence[Any]) -> RunTimePart:
    """A function of the elements at each place, of parts, arrays with one axis and numbers."""
    given = [value if is_number(value) else as_part(name, value) for value in inputs]
    parts = [value for value in given if isinstance(value, RunTimePart)]
    length, most = _whole(parts)
    elements = [_given(value, length) for value in given]

    def made(target: Target | None) -> Element:
        each = [of(target) for of in elements]
        return lambda place: function(*[at(place) for at in each])

    return RunTimePart(length, most, made)


def _whole(parts: Sequence[RunTimePart]) -> tuple[Atom, int]:
    """The length that parts broadcast to, and the most that it can be.

    A range that nothing bounds meets others of its own length.
    """
    long = [part for part in parts if not is_same_number(part._length, _ONE)]
    most = [part._most for part in long]
    if UNBOUNDED in most and min(most) < UNBOUNDED:
        return common_length(*[part._length for part in long]), min(most)
    length = broadcast_length(*[part._length for part in parts])
    same = [part._most for part in parts if is_same_number(part._length, length)]
    return length, min(same) if same else max(part._most for part in parts)


def _call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
    options = {key: value for key, value in kwargs.items() if value is not None}
    if method == "reduce" and ufunc in RunTimePart._reductions:
        return _taken(
            f"np.{ufunc.__name__}.reduce", RunTimePart._reductions[ufunc], inputs, options
        )
    out = options.pop("out", (None,))[0]
    if ufunc is np.matmul and method == "__call__" and out is None:
        return RunTimePart._functions[np.dot](*inputs)
    if method != "__call__" or ufunc.signature or ufunc.nout > 1 or options:
        refuse(f"np.{ufunc.__name__}")
    if out is None:
        return elementwise(f"np.{ufunc.__name__}", ufunc, inputs)
    if not isinstance(out, RunTimePart):
        refuse(f"np.{ufunc.__name__} into an array")
    made = elementwise(f"np.{ufunc.__name__}", ufunc, inputs)
    if out._slice is None or not np.can_cast(made.dtype, out.dtype, "same_kind"):
        refuse(f"np.{ufunc.__name__} into what was computed, or another dtype,")
    _put_part(out._slice, made)
    return out
