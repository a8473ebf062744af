"""Slices whose ends data decides, element by element: `v[row[i]:row[i + 1]]`.

Such a slice can be a small part of a long array, so that nothing is computed on the whole of it:
what is computed of it is told for one place, and sums and what is put anywhere are loops of as many
turns as it has elements. Sums have the order that they have for so many elements (`graph.orders`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOATING
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom
from tinyfuse.graph.orders import LANES
from tinyfuse.graph.scalar_ops import FMA
from tinyfuse.trace.branching import choose
from tinyfuse.trace.builder import active
from tinyfuse.trace.control_flow import counted_loop, traced_while
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import cast
from tinyfuse.trace.recording import record
from tinyfuse.trace.run_time_slices import RunTimePart, Slice, refuse
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt

# From a place, or an array of places, in a slice to what is there.
Element = Callable[[Any], Any]


class Elements(RunTimePart):
    """What such a slice chooses, or what is computed from it."""

    __slots__ = ("_element", "_most")

    def __init__(
        self, length: Atom, most: int, element: Element | None = None, of: Slice | None = None
    ) -> None:
        """most: there are no more elements. element, of: one of them."""
        super().__init__(length, None, of)
        self._most, self._element = most, element

    def element(self, live: Slice | None = None) -> Element:
        """What is there now, also if arrays are written later; of `live` what is there when it is
        asked for."""
        if self._element is not None:
            return self._element
        assert self._slice is not None
        return _element_of(self._slice, live is not None and self._slice.is_same(live))

    def with_elements(self, element: Element) -> Elements:
        return Elements(self._length, self._most, element)

    def taken_from(self, x: Tracer) -> Elements:
        """The elements of an array at these places."""
        if x.ndim != 1 or self.dtype.kind not in "iu":
            refuse("an index of an array with several axes, or one without integers,")
        held: Any = Tracer(active(), x._atom)
        at = self.element()
        return self.with_elements(lambda place: held[at(place)])

    def read(self) -> Atom:
        refuse("this use")

    @property
    def _atom(self) -> Atom:
        """Of whose origin an error may tell."""
        return self._length

    @property
    def dtype(self) -> np.dtype:
        found: list[np.dtype] = []

        def run() -> Sequence[Atom]:
            found.append(NUMPY.asarray(self.element()(TracedInt(active(), self._length))).dtype)
            return ()

        record(active(), [], run)  # nothing of which is kept
        return found[0]

    def copy(self, order: str = "C") -> Elements:
        return self.with_elements(self.element())

    def astype(self, dtype: Any, **options: Any) -> Elements:
        at = self.element()
        return self.with_elements(lambda place: at(place).astype(dtype, **options))

    def __getitem__(self, index: Any) -> Any:
        if index != slice(None, None, -1):
            operate(refuse, "x[a:b][...]")
        last: Any = TracedInt(active(), self._length)
        at = self.element()
        return self.with_elements(lambda place: at(last - 1 - place))

    def _ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
        return _call_ufunc(ufunc, method, inputs, kwargs)


def part_of(found: Slice) -> RunTimePart:
    """What a slice chooses."""
    if found.is_open:
        return Elements(found.length, found.size, of=found)
    return RunTimePart(found.length, of=found)


def is_number(value: Any) -> bool:
    return type(value) in (TracedInt, TracedFloat) or not np.ndim(value)


def put(into: Slice, value: Any, live: bool = False) -> None:
    """Put elements into a slice. live: of that slice those that are there when it is their turn."""
    if isinstance(value, Elements):
        if value._slice is not None and into.is_same(value._slice):
            return  # the end of `x[a:b] += y`, which has written there
        value.require_length(into.length)
        element = value.element()
    elif not is_number(value):
        refuse("the values that are put")
    else:
        element = lambda place: value  # noqa: E731
    _put(into, element)


def _put(into: Slice, element: Element) -> None:
    def turn(place: Any, carried: Any) -> Any:
        into.x[into.at(place)] = element(place)
        return carried

    counted_loop(into.length, into.size, turn, ())


def _element_of(found: Slice, live: bool) -> Element:
    x: Any = found.x if live else Tracer(active(), found.x._atom)
    return lambda place: x[found.at(place)]


def _call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
    options = {key: value for key, value in kwargs.items() if value is not None}
    out = options.pop("out", (None,))[0]
    if ufunc is np.matmul and method == "__call__" and out is None:
        return _dot(*inputs)
    if method != "__call__" or ufunc.signature or ufunc.nout > 1 or options:
        refuse(f"np.{ufunc.__name__}")
    parts = [value for value in (*inputs, out) if isinstance(value, RunTimePart)]
    if not all(type(part) is Elements for part in parts) or (out is not None and not parts):
        refuse(f"np.{ufunc.__name__} of slices whose ends are told otherwise")
    for part in parts[1:]:
        part.require_length(parts[0]._length)
    live = None if out is None else out._slice
    given = [_given(ufunc, value, live) for value in inputs]
    made = parts[0].with_elements(lambda place: ufunc(*[each(place) for each in given]))
    if out is None:
        return made
    if live is None or not np.can_cast(made.dtype, out.dtype, "same_kind"):
        refuse(f"np.{ufunc.__name__} into what was computed, or another dtype,")
    _put(live, made.element())
    return out


def _given(ufunc: np.ufunc, value: Any, live: Slice | None) -> Element:
    if type(value) is Elements:
        return value.element(live)
    if not is_number(value):
        refuse(f"np.{ufunc.__name__} with an array")
    held = Tracer(active(), value._atom, True) if type(value) is Tracer else value
    return lambda place: held


# -- sums


def _sum(part: Elements) -> Any:
    to = np.sum(np.zeros(1, part.dtype)).dtype
    if to.kind != "f":
        return _Sum(part, to, [part.element()]).serial()
    return _Sum(part, to, [part.element()]).value()


def _dot(one: Any, other: Any) -> Any:
    if type(one) is not Elements or type(other) is not Elements:
        refuse("a product with an array")
    one.require_length(other._length)
    to = np.result_type(one.dtype, other.dtype)
    of = _Sum(one, to, [one.element(), other.element()])
    return of.value() if to.kind == "f" else of.serial()


def _mean(part: Elements) -> Any:
    if part.dtype not in FLOATING:
        refuse("the mean of integers")
    return _sum(part) / TracedInt(active(), part._length)


class _Sum:
    """The sum of elements, or of products of two, in the order of `graph.orders.LANES`."""

    def __init__(self, part: Elements, dtype: np.dtype, factors: Sequence[Element]) -> None:
        if dtype.kind == "b" or (dtype.kind == "f" and dtype not in FLOATING):
            refuse(f"the sum of {dtype}")
        self.length: Any = TracedInt(active(), part._length)
        self.most, self.dtype, self.factors = part._most, dtype, factors

    def value(self) -> Any:
        if self.most < LANES.few:
            return self.serial()
        return choose(self.length < LANES.few, self.serial, self._in_lanes)

    def _in_lanes(self) -> Any:
        few = lambda: self._block(LANES.few, 0, self.length)  # noqa: E731
        if self.most < LANES.lanes:
            return few()
        return choose(self.length < LANES.lanes, few, self._in_blocks)

    def serial(self) -> Any:
        return counted_loop(
            self.length._atom,
            self.most,
            lambda at, total: self._added(total, at),
            self.dtype.type(0),
        )

    def _added(self, total: Any, at: Any) -> Any:
        """A sum with one more element, or many with one more each."""
        values: list[Any] = [cast(NUMPY.asarray(factor(at)), self.dtype) for factor in self.factors]
        if len(values) == 1:
            return total + values[0]
        if self.dtype.kind != "f":
            return total + values[0] * values[1]
        atoms = (*[value._atom for value in values], NUMPY.asarray(total)._atom)
        fused = active().define(p.elementwise, atoms, {"op": FMA}, values[0].shape, self.dtype)
        return Tracer(active(), fused, not values[0].shape)

    def _block(self, lanes: int, first: Any, count: Any) -> Any:
        """The sum of so many elements from one on, in lanes that are halved."""
        steps, lane = count // lanes, NUMPY.arange(lanes)

        def step(number: Any, sums: Any) -> Any:
            return self._added(sums, lane + (first + number * lanes))

        zeros = NUMPY.zeros(lanes, self.dtype)
        sums = counted_loop(steps._atom, self.most // lanes + 1, step, zeros)
        at = lane + (first + steps * lanes)
        more = self._added(sums, NUMPY.minimum(at, self.length - 1))
        return NUMPY.sum(NUMPY.where(lane < count % lanes, more, sums))

    def _in_blocks(self) -> Any:
        """Blocks whose sums are added pairwise."""
        size = LANES.block
        if self.most <= size:
            return self._block(LANES.lanes, 0, self.length)
        blocks, most = (self.length + (size - 1)) // size, -(-self.most // size)

        def block(number: Any, sums: Any) -> Any:
            rest = self.length - number * size
            whole = choose(rest < size, lambda: rest, lambda: size)
            sums[number] = self._block(LANES.lanes, number * size, whole)
            return sums

        sums = counted_loop(blocks._atom, most, block, NUMPY.zeros(most + 1, self.dtype))
        return self._pairwise(sums, blocks, most)

    def _pairwise(self, sums: Any, blocks: Any, most: int) -> Any:
        def pair(at: Any, sums: Any) -> Any:
            sums[at] = sums[2 * at] + sums[2 * at + 1]
            return sums

        def round_(state: Any) -> Any:
            sums, left = state
            sums = counted_loop((left // 2)._atom, most // 2 + 1, pair, sums)
            sums[left // 2] = sums[NUMPY.maximum(left - 1, 0)]
            return sums, (left + 1) // 2

        sums, _ = traced_while(lambda state: state[1] > 1, round_, (sums, blocks))
        return sums[0]


def _backwards(part: Elements) -> Any:
    return part[::-1]


Elements._functions = {
    np.dot: _dot,
    np.inner: _dot,
    np.sum: _sum,
    np.mean: _mean,
    np.flip: _backwards,
    np.copy: lambda part: part.copy(),
}
