"""Reductions of slices whose ends are known at run time only: sums, extremes, what is made of them.

Sums and products have the order that they have for so many elements (`graph.orders`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, FLOAT32, FLOAT64, INT64, is_complex, is_half, part_dtype
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Literal, Var
from tinyfuse.graph.orders import LANES
from tinyfuse.graph.ranks import UNSIGNED
from tinyfuse.graph.scalar_ops import FMA
from tinyfuse.trace.averages import divided_by_count
from tinyfuse.trace.branching import choose
from tinyfuse.trace.builder import active, called
from tinyfuse.trace.control_flow import counted_loop, traced_while
from tinyfuse.trace.masking import from_start, is_given
from tinyfuse.trace.operations import cast, scalar_copy
from tinyfuse.trace.run_time_parts import (
    Element,
    RunTimePart,
    as_part,
    bounded,
    elementwise,
)
from tinyfuse.trace.run_time_slices import common_length, refuse
from tinyfuse.trace.selection import of_parts
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedInt

# Of which a lane begins with what, and what joins two elements.
_JOINS: dict[str, tuple[int, np.ufunc]] = {"sum": (0, np.add), "prod": (1, np.multiply)}


class _Total:
    """The sum or product of elements, or the sum of products of two, in the order of
    `graph.orders.LANES`."""

    def __init__(
        self, part: RunTimePart, op: str, dtype: np.dtype, factors: Sequence[Element]
    ) -> None:
        if dtype.kind == "c":
            refuse(f"the {op} of complex numbers")
        self.length: Any = TracedInt(active(), part._length)
        self.most, self.op, self.dtype, self.factors = part._most, op, dtype, factors
        start, self.join = _JOINS[op]
        self.start = dtype.type(start)

    def value(self) -> Any:
        if self.most < LANES.few or self.dtype.kind != "f":
            return self._serial()
        return choose(self.length < LANES.few, self._serial, self._in_lanes)

    def _in_lanes(self) -> Any:
        if self.most < LANES.lanes:
            return self._in_few_lanes()
        return choose(self.length < LANES.lanes, self._in_few_lanes, self._in_blocks)

    def _in_few_lanes(self) -> Any:
        """Of one or two elements each."""
        lanes = LANES.few
        totals = self._joined(NUMPY.full(lanes, self.start, self.dtype), NUMPY.arange(lanes))
        rest = _from_none(self.length - lanes, LANES.lanes - lanes, "rest")
        return self._halved(self._with_rest(totals, lanes, rest, LANES.lanes - lanes))

    def _serial(self) -> Any:
        turn = lambda at, total: self._joined(total, at)  # noqa: E731
        return _named(counted_loop(self.length._atom, self.most, turn, self.start, "k"), "total")

    def _joined(self, total: Any, at: Any) -> Any:
        """With one more element, or many with one more each."""
        values: list[Any] = [cast(NUMPY.asarray(factor(at)), self.dtype) for factor in self.factors]
        if len(values) == 1:
            return self.join(total, values[0])
        if self.dtype.kind != "f":
            return total + values[0] * values[1]
        atoms = (*[value._atom for value in values], NUMPY.asarray(total)._atom)
        fused = active().define(p.elementwise, atoms, {"op": FMA}, values[0].shape, self.dtype)
        return Tracer(active(), fused, not values[0].shape)

    def _block(self, first: Any, count: Any) -> Any:
        """The total of so many elements from one on, in lanes that are halved."""
        lanes = LANES.lanes
        steps = _named(count // lanes, "steps")

        def step(number: Any, totals: Any) -> Any:
            return self._joined(totals, NUMPY.arange(lanes) + (first + number * lanes))

        begun = NUMPY.full(lanes, self.start, self.dtype)
        totals = counted_loop(
            steps._atom, self.most // lanes, step, _named(begun, "totals"), "step"
        )
        rest = _named(count % lanes, "rest")
        return self._halved(self._with_rest(totals, first + steps * lanes, rest, lanes - 1))

    def _with_rest(self, totals: Any, first: Any, rest: Any, most: int) -> Any:
        """With one more element for some of the lanes, each."""

        def turn(lane: Any, totals: Any) -> Any:
            totals[lane] = self._joined(totals[lane], first + lane)
            return totals

        return counted_loop(rest._atom, most, turn, _named(totals, "totals"), "lane")

    def _halved(self, totals: Any) -> Any:
        return _named(getattr(NUMPY, self.op)(totals), "total")

    def _in_blocks(self) -> Any:
        """Blocks whose totals are joined pairwise."""
        size = LANES.block
        if self.most <= size:
            return self._block(0, self.length)
        blocks, most = (self.length + (size - 1)) // size, -(-bounded(self.most) // size)
        _named(blocks, "count")

        def block(number: Any, totals: Any) -> Any:
            first = number * size
            count = NUMPY.minimum(self.length - first, size)
            totals[number] = self._block(
                first, _from_none(TracedInt(active(), count._atom), size, "count")
            )
            return totals

        begun = _named(NUMPY.zeros(most + 2, self.dtype), "blocks")
        return self._pairwise(counted_loop(blocks._atom, most, block, begun, "block"), blocks, most)

    def _pairwise(self, totals: Any, blocks: Any, most: int) -> Any:
        def pair(at: Any, totals: Any) -> Any:
            totals[at] = self.join(totals[2 * at], totals[2 * at + 1])
            return totals

        def round_(state: Any) -> Any:
            totals, left = state
            active().bounds[_named(left, "left")._atom] = 1, most
            totals = counted_loop((left // 2)._atom, most // 2 + 1, pair, totals, "pair")
            totals[left // 2] = totals[left - 1]
            return totals, (left + 1) // 2

        totals, _ = traced_while(lambda state: state[1] > 1, round_, (totals, blocks))
        return _named(totals[0], "total")


def _named(value: Any, name: str) -> Any:
    called(value._atom, name)
    return value


def _from_none(number: Any, most: int, name: str) -> Any:
    """A number that is known to be from none to another."""
    active().bounds[number._atom] = 0, most
    return _named(number, name)


# -- what is reduced


def _require_all(name: str, axis: Any) -> None:
    if axis not in (None, 0, -1, (0,), (-1,)):
        raise errors.AxisError(axis, 1)


def _total(op: str) -> Callable[..., Any]:
    def run(
        part: RunTimePart, axis: Any = None, dtype: Any = None, initial: Any = np._NoValue
    ) -> Any:
        _require_all(op, axis)
        given = part.dtype if dtype is None else np.dtype(dtype)
        to = given if dtype is not None else getattr(np, op)(np.zeros(1, given)).dtype
        total = NUMPY.asarray(_of_parts(op, part, to, [part.element()]))
        return scalar_copy(from_start(_JOINS[op][1], total, initial))

    return run


_sum, _prod = _total("sum"), _total("prod")


def _of_parts(op: str, part: RunTimePart, to: np.dtype, factors: Sequence[Element]) -> Any:
    """Of complex numbers the parts are summed apart; of 16-bit floats the sum is rounded once."""
    if is_half(to):
        return scalar_copy(cast(NUMPY.asarray(_Total(part, op, FLOAT32, factors).value()), to))
    if not is_complex(to) or op == "prod":
        return _Total(part, op, to, factors).value()
    re, im = [[_half(of, factor, to) for factor in factors] for of in (NUMPY.real, NUMPY.imag)]

    def total(*halves: Element) -> Any:
        return NUMPY.asarray(_Total(part, op, part_dtype(to), halves).value())

    if len(factors) == 1:
        return scalar_copy(of_parts(total(*re), total(*im)))
    real, imaginary = total(*re) - total(*im), total(re[0], im[1]) + total(im[0], re[1])
    return scalar_copy(of_parts(real, imaginary))


def _half(of: Callable[[Any], Any], element: Element, to: np.dtype) -> Element:
    return lambda place: of(cast(NUMPY.asarray(element(place)), to))


def _dot(one: Any, other: Any) -> Any:
    parts = [as_part("a product", value) for value in (one, other)]
    length = common_length(*[part._length for part in parts])
    to = np.result_type(*[part.dtype for part in parts])
    both = RunTimePart(length, min(part._most for part in parts), parts[0].made())
    return _of_parts("sum", both, to, [part.element() for part in parts])


def _mean(part: RunTimePart, axis: Any = None) -> Any:
    if is_half(part.dtype):  # rounded once
        return cast(_mean(part.astype(FLOAT32), axis), part.dtype)
    to = FLOAT64 if part.dtype.kind in "biu" else part.dtype
    return divided_by_count(_sum(part, axis, to), _count(part))


def _count(part: RunTimePart) -> Tracer:
    return Tracer(active(), part._length, True)


def _var(part: RunTimePart, axis: Any = None, *, ddof: int = 0) -> Any:
    if part.dtype.kind != "f":
        part = part.astype(FLOAT64) if part.dtype.kind in "biu" else refuse("the variance")
    middle = divided_by_count(_sum(part, axis), _count(part))
    squares = elementwise("np.var", lambda x, mean: np.square(x - mean), (part, middle))
    freedom = _count(part) - ddof  # type: ignore[operator]
    return divided_by_count(_sum(squares), NUMPY.maximum(freedom, 0))


def _std(part: RunTimePart, axis: Any = None, *, ddof: int = 0) -> Any:
    return np.sqrt(_var(part, axis, ddof=ddof))


def _count_nonzero(part: RunTimePart, axis: Any = None) -> Any:
    return _sum(part.mapped(lambda value: cast(cast(NUMPY.asarray(value), BOOL), INT64)), axis)


def _truth(start: bool, join: np.ufunc) -> Callable[..., Any]:
    def run(part: RunTimePart, axis: Any = None) -> Any:
        _require_all(join.__name__, axis)
        element = part.element()

        def turn(at: Any, truth: Any) -> Any:
            return join(truth, cast(NUMPY.asarray(element(at)), BOOL))

        return counted_loop(part._length, part._most, turn, np.bool_(start), "k")

    return run


# -- extremes and their places


def _least(dtype: np.dtype, of_maximum: bool) -> np.generic:
    """What no element is beyond."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if of_maximum else np.inf)
    if dtype.kind == "b":
        return np.bool_(not of_maximum)
    info = np.iinfo(dtype)
    return dtype.type(info.min if of_maximum else info.max)


def _require_some(part: RunTimePart, words: str) -> None:
    atoms = part._length, Literal(np.int64(0))
    empty: Var = active().define(p.elementwise, atoms, {"op": "equal"}, (), BOOL)
    active().check(empty, errors.InvalidArgumentError, words)


def _extreme(ufunc: np.ufunc) -> Callable[..., Any]:
    def run(part: RunTimePart, axis: Any = None, initial: Any = np._NoValue) -> Any:
        _require_all(ufunc.__name__, axis)
        words = "zero-size array to reduction operation"
        if not is_given(initial):
            _require_some(part, f"{words} {ufunc.__name__} which has no identity")
        dtype, element = _ordered(part), part.element()
        if dtype.kind == "f":
            whole = cast(_extreme_rank(ufunc, part), dtype)
        else:
            begun = _least(dtype, ufunc is np.maximum)
            turn = lambda at, found: ufunc(found, element(at))  # noqa: E731
            whole = counted_loop(part._length, part._most, turn, begun, "k")
        return scalar_copy(from_start(ufunc, NUMPY.asarray(whole), initial))

    return run


def _extreme_rank(ufunc: np.ufunc, part: RunTimePart) -> Any:
    """The value whose rank is the extreme one: see `graph.ranks`."""
    nan, start = ("last", 0) if ufunc is np.maximum else ("first", -1)
    element = part.element()
    real = FLOAT32 if is_half(part.dtype) else part.dtype
    bits = UNSIGNED[real]

    def apply(op: str, value: Any, dtype: np.dtype) -> Any:
        operands = (NUMPY.asarray(value)._atom,)
        ranked = active().define(p.elementwise, operands, {"op": f"{op}_nan_{nan}"}, (), dtype)
        return Tracer(active(), ranked, True)

    def turn(at: Any, found: Any) -> Any:
        return ufunc(found, apply("rank", cast(NUMPY.asarray(element(at)), real), bits))

    begun = np.array(start).astype(bits)[()]
    return apply("of_rank", counted_loop(part._length, part._most, turn, begun, "k"), real)


def _ordered(part: RunTimePart) -> np.dtype:
    dtype = part.dtype
    if dtype.kind == "c":
        refuse("an extreme of complex numbers")
    return dtype


def _place(name: str, beyond: np.ufunc) -> Callable[..., Any]:
    """The first place of an extreme, or of a NaN."""

    def run(part: RunTimePart, axis: Any = None) -> Any:
        _require_all(name, axis)
        _require_some(part, f"attempt to get {name} of an empty sequence")
        element, dtype = part.element(), _ordered(part)

        def turn(at: Any, found: Any) -> Any:
            best, place = found
            value = element(at)
            is_better = beyond(value, best)
            if dtype.kind == "f":
                is_better = is_better | (np.isnan(value) & ~np.isnan(best))
            return NUMPY.where(is_better, value, best)[()], NUMPY.where(is_better, at, place)[()]

        begun = _least(dtype, beyond is np.greater), np.int64(0)
        return counted_loop(part._length, part._most, turn, begun, "k")[1]

    return run


# -- what has as many elements


def _cumulative(op: str) -> Callable[..., Any]:
    join = _JOINS[op][1]

    def run(part: RunTimePart, axis: Any = None, dtype: Any = None) -> RunTimePart:
        _require_all(f"cum{op}", axis)
        to = getattr(np, f"cum{op}")(np.zeros(1, part.dtype), dtype=dtype).dtype
        if is_half(to) or (is_complex(to) and op == "prod"):
            refuse(f"np.cum{op} of {to}")
        element = part.element()

        def turn(at: Any, state: Any) -> Any:
            last, totals = state
            value = cast(NUMPY.asarray(element(at)), to)
            last = NUMPY.where(at == 0, value, join(last, value))[()]
            totals[at] = last
            return last, totals

        begun = to.type(0), NUMPY.zeros(bounded(part._most), to)
        totals = counted_loop(part._length, part._most, turn, begun, "k")[1]
        return part.with_elements(lambda target: lambda place: totals[place])

    return run


def _where(condition: Any, x: Any = None, y: Any = None) -> RunTimePart:
    if x is None or y is None:
        refuse("np.where(condition)")
    return elementwise("np.where", NUMPY.where, (condition, x, y))


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> RunTimePart:
    return elementwise("np.clip", np.clip, (a, a_min, a_max))


RunTimePart._functions = {
    np.all: _truth(True, np.logical_and),
    np.any: _truth(False, np.logical_or),
    np.argmax: _place("argmax", np.greater),
    np.argmin: _place("argmin", np.less),
    np.clip: _clip,
    np.copy: lambda part: part.copy(),
    np.count_nonzero: _count_nonzero,
    np.cumprod: _cumulative("prod"),
    np.cumsum: _cumulative("sum"),
    np.dot: _dot,
    np.flip: lambda part: part[::-1],
    np.inner: _dot,
    np.max: _extreme(np.maximum),
    np.mean: _mean,
    np.min: _extreme(np.minimum),
    np.prod: _prod,
    np.std: _std,
    np.sum: _sum,
    np.var: _var,
    np.where: _where,
}
RunTimePart._reductions = {
    np.add: _sum,
    np.multiply: _prod,
    np.maximum: RunTimePart._functions[np.max],
    np.minimum: RunTimePart._functions[np.min],
    np.logical_and: RunTimePart._functions[np.all],
    np.logical_or: RunTimePart._functions[np.any],
}
