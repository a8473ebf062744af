"""Places in sorted arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Literal
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operations import broadcast_shape, cast, filled, lying, reshape, slice_axis
from tinyfuse.trace.outputs import full_atom
from tinyfuse.trace.picking import as_tracer, take
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.sorting import sorted_along
from tinyfuse.trace.tracer import Tracer

# An array of so many elements is looked through from end to end.
SHORT = 16


@listed(np.searchsorted, method="searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tracer:
    """How many elements come before each value."""
    x, value = as_tracer(a), as_tracer(v)
    if x.ndim != 1:
        raise errors.InvalidArgumentError("object too deep for desired array")
    if side not in ("left", "right"):
        raise errors.InvalidArgumentError(
            f"search side must be one of 'left' or 'right' (got '{side}')"
        )
    if sorter is not None:
        x = take(x, sorter)
    return lying(_place(x, value, side == "left"), "C", value)


def _place(x: Tracer, value: Tracer, left: bool) -> Tracer:
    to = np.result_type(x.dtype, value.dtype)
    x, value = cast(x, to), cast(value, to)
    if x.size > SHORT:
        return _by_halves(lambda index: _element(x, index), x.size, value, left)
    found: Tracer = _is_behind(x, reshape(value, (*value.shape, 1)), left).sum(axis=-1)
    return found


def _by_halves(
    element: Callable[[Tracer], Tracer], count: int, value: Tracer, left: bool
) -> Tracer:
    """Binary search without branches: the place is among `size` elements from `first` on, or
    behind them. element: that at a position."""
    first, size = filled((), INT64.type(0)), count
    while size:
        half = max(size // 2, 1)
        behind = _is_behind(element(_further(first, half - 1)), value, left)
        first = _chosen(behind, _further(first, half), first)
        size = size - half if size > 1 else 0
    first._scalar = not first.shape
    return first


def _further(place: Tracer, steps: int) -> Tracer:
    if type(place._atom) is Literal:
        return filled((), INT64.type(int(place._atom.value) + steps))
    further: Tracer = apply(np.add, (place, steps)) if steps else place
    return further


def _element(x: Tracer, index: Tracer) -> Tracer:
    """At positions that are within the array."""
    builder = active()
    places = full_atom(index._atom, index.shape)
    return Tracer(builder, builder.emit(p.gather, x._atom, places), not index.shape)


def _is_behind(element: Tracer, value: Tracer, left: bool) -> Tracer:
    """Whether the place of a value is behind an element, where NaN comes last."""
    small, large = (value, element) if left else (element, value)
    behind: Tracer = apply(np.less_equal, (small, large))
    if large.dtype.kind == "f":
        behind = apply(np.logical_or, (behind, apply(np.isnan, (large,))))
    return apply(np.logical_not, (behind,)) if left else behind


# -- bins


@listed(np.digitize)
def digitize(x: Any, bins: Any, right: Any = False) -> Tracer:
    """The steps of numpy's own function, for bins that ascend or descend."""
    value, edges = as_tracer(x), as_tracer(bins)
    if edges.ndim != 1:
        raise errors.InvalidArgumentError("object too deep for desired array")
    count = edges.size
    if count < 2:
        return lying(_place(edges, value, bool(right)), "C", value)
    falls = _falls(edges)
    to = np.result_type(edges.dtype, value.dtype)
    edges, value = cast(edges, to), cast(value, to)

    def from_smallest(index: Tracer) -> Tracer:
        other = apply(np.subtract, (count - 1, index))
        return _element(edges, _chosen(falls, other, index))

    place = _by_halves(from_smallest, count, value, bool(right))
    found = _chosen(falls, apply(np.subtract, (count, place)), place)
    return lying(found, "C", value)


def _falls(edges: Tracer) -> Tracer:
    """Whether they descend; checks that they ascend otherwise."""
    count = edges.size - 1
    earlier, later = slice_axis(edges, 0, 0, count), slice_axis(edges, 0, 1, count)
    falls: Tracer = apply(np.greater, (earlier, later)).any()
    rises = apply(np.less, (earlier, later)).any()
    check_none(
        apply(np.logical_and, (falls, rises))._atom,
        errors.InvalidArgumentError,
        "bins must be monotonically increasing or decreasing",
    )
    return falls


def _chosen(condition: Tracer, a: Tracer, b: Tracer) -> Tracer:
    shape = broadcast_shape([condition, a, b])
    atom = select_atom(condition._atom, a._atom, b._atom, shape)
    return Tracer(active(), atom, not shape)


# -- members


@listed(np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Tracer:
    """kind: without effect, as it decides only how numpy looks."""
    if kind not in (None, "sort", "table"):
        raise errors.InvalidArgumentError(
            f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'."
        )
    x, members = as_tracer(element), as_tracer(test_elements)
    found = _is_member(x, reshape(members, (members.size,)))
    return apply(np.logical_not, (found,)) if invert else found


def _is_member(x: Tracer, members: Tracer) -> Tracer:
    if members.size <= SHORT:
        equal = apply(np.equal, (reshape(x, (*x.shape, 1)), members))
        found: Tracer = equal.any(axis=-1)
    else:
        to = np.result_type(x.dtype, members.dtype)
        x, ordered = cast(x, to), sorted_along(cast(members, to), 0)
        place = apply(np.minimum, (_place(ordered, x, True), members.size - 1))
        found = apply(np.equal, (_element(ordered, place), x))
    found._scalar = False
    return found
