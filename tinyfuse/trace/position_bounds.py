"""Positions that are within range by what they are: sorted ones, clipped ones, bytes, turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Literal, Primitive

# Of dtypes up to this size all values are looked at as positions: a table may have as many places.
SMALL_BYTES = 2
# What gives some of the elements of its first operand.
_SOME_ELEMENTS = (p.reshape, p.transpose, p.slice_, p.broadcast, p.windows, p.gather)


def position_bound(builder: Any, atom: Atom) -> int | None:
    """n such that all elements are from 0 to n - 1, where the equations before tell."""
    low, high = interval(builder, atom)
    return high + 1 if low is not None and high is not None and low >= 0 else None


Interval = tuple[int | None, int | None]
_UNKNOWN: Interval = (None, None)


DEEPEST = 16  # equations that an interval is looked for through
FAR = 2**60  # no turn of a loop has a number so far from 0


def interval(builder: Any, atom: Atom) -> Interval:
    """Between which values all elements of an array of integers are; None where nothing is known.

    Of positions, of what arithmetic with literals makes of them or of the number of a turn in a
    loop, and of small dtypes. Where sums or products might wrap around, nothing is known.
    """
    low, high = _interval(builder, atom, DEEPEST)
    return (
        None if low is None or low <= -FAR // 2 else low,
        None if high is None or high >= FAR // 2 else high,
    )


def _interval(builder: Any, atom: Atom, depth: int) -> Interval:
    """The same; of the number of a turn no end is None, but far away."""
    if isinstance(atom, Literal):
        value = int(atom.value) if atom.dtype.kind in "biu" else None
        return value, value
    if atom in builder.bounds:
        low, high = builder.bounds[atom]
        return -FAR if low is None else low, FAR if high is None else high
    eqn = builder.memory.producer(atom)
    found = _of_equation(builder, eqn, depth) if eqn is not None and depth else _UNKNOWN
    return _of_small_dtype(atom) if found == _UNKNOWN else found


def _of_equation(builder: Any, eqn: Eqn, depth: int) -> Interval:
    if eqn.primitive in _BOUNDS:
        bound = _BOUNDS[eqn.primitive](eqn)
        return _UNKNOWN if bound is None else (0, bound - 1)
    if eqn.primitive in _SOME_ELEMENTS or _widens(eqn):
        return _interval(builder, eqn.inputs[0], depth - 1)
    if eqn.primitive is not p.elementwise or eqn.output.dtype != INT64:
        return _UNKNOWN
    rule = _ARITHMETIC.get(eqn.params["op"])
    found = (
        rule(*[_interval(builder, each, depth - 1) for each in eqn.inputs]) if rule else _UNKNOWN
    )
    limits = np.iinfo(INT64)
    fits = all(end is None or limits.min <= end <= limits.max for end in found)
    return found if fits else _UNKNOWN


def _widens(eqn: Eqn) -> bool:
    """Whether it gives integers another dtype that has them all."""
    if eqn.primitive is not p.cast or eqn.inputs[0].dtype.kind not in "biu":
        return False
    return eqn.output.dtype.kind in "iu" and np.can_cast(eqn.inputs[0].dtype, eqn.output.dtype)


def _of_small_dtype(atom: Atom) -> Interval:
    if atom.dtype == BOOL:
        return 0, 1
    if atom.dtype.kind not in "iu" or atom.dtype.itemsize > SMALL_BYTES:
        return _UNKNOWN
    limits = np.iinfo(atom.dtype)
    return limits.min, limits.max


def _extreme(choose: Callable[..., int], *ends: int | None) -> int | None:
    known = [end for end in ends if end is not None]
    return choose(known) if known else None


def _of_all(rule: Callable[..., Interval]) -> Callable[..., Interval]:
    """A rule for intervals of which both ends are known."""
    return lambda *parts: (None, None) if any(None in part for part in parts) else rule(*parts)


def _minimum(a: Interval, b: Interval) -> Interval:
    return None if None in (a[0], b[0]) else _extreme(min, a[0], b[0]), _extreme(min, a[1], b[1])


def _maximum(a: Interval, b: Interval) -> Interval:
    return _extreme(max, a[0], b[0]), None if None in (a[1], b[1]) else _extreme(max, a[1], b[1])


def _either(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return low, high


def _corners(a: Any, b: Any) -> Interval:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


def _floor(a: Any, b: Any) -> Interval:
    return (a[0] // b[0], a[1] // b[0]) if b[0] == b[1] and b[0] > 0 else (None, None)


def _remainder(a: Any, b: Any) -> Interval:
    positive = b[0] is not None and b[0] > 0
    return (0, None if b[1] is None else b[1] - 1) if positive else (None, None)


_ARITHMETIC: dict[str, Callable[..., Interval]] = {
    "add": _of_all(lambda a, b: (a[0] + b[0], a[1] + b[1])),
    "subtract": _of_all(lambda a, b: (a[0] - b[1], a[1] - b[0])),
    "multiply": _of_all(_corners),
    "floor_divide": _of_all(_floor),
    "remainder": _remainder,
    "minimum": _minimum,
    "maximum": _maximum,
    "select": lambda condition, a, b: _either(a, b),
}


# The factor of each integer in a sum; that of None is the number that is added.
LinearForm = dict[Atom | None, int]


def linear_form(builder: Any, atom: Atom, depth: int = DEEPEST) -> LinearForm:
    """What sums, differences and products with literals make of other integers without axes."""
    if isinstance(atom, Literal):
        return {None: int(atom.value)} if atom.value else {}
    eqn = builder.memory.producer(atom) if depth else None
    op = eqn.params.get("op") if eqn is not None and eqn.primitive is p.elementwise else None
    if op not in ("add", "subtract", "multiply") or eqn is None:
        return {atom: 1}
    one, other = [linear_form(builder, operand, depth - 1) for operand in eqn.inputs]
    if op != "multiply":
        return _combined(one, other, 1 if op == "add" else -1)
    if one.keys() <= {None}:
        one, other = other, one
    return _combined({}, one, other.get(None, 0)) if other.keys() <= {None} else {atom: 1}


def _combined(one: LinearForm, other: LinearForm, factor: int) -> LinearForm:
    """One form and another one so many times."""
    terms = [*one, *[each for each in other if each not in one]]
    sums = {term: one.get(term, 0) + factor * other.get(term, 0) for term in terms}
    return {term: number for term, number in sums.items() if number}


def _of_extreme(eqn: Eqn) -> int | None:
    is_position = eqn.params["op"] in ("argmax", "argmin")
    return eqn.inputs[0].shape[eqn.params["axes"][0]] if is_position else None


_BOUNDS: dict[Primitive, Callable[[Eqn], int | None]] = {
    p.argsort: lambda eqn: eqn.output.shape[eqn.params["axis"]],
    p.iota: lambda eqn: eqn.output.shape[0],
    p.reduce: _of_extreme,
}
