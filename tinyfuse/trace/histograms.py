"""Histograms over bins that are known while tracing, or given as edges."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, FLOAT64, INT64
from tinyfuse.graph import primitives as p
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.joining import diff
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operations import broadcast, cast, copy, filled, reshape, slice_axis
from tinyfuse.trace.picking import as_tracer, take
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.ranges import linspace
from tinyfuse.trace.searching import searchsorted
from tinyfuse.trace.selection import where
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer


@listed(np.histogram)
def histogram(
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    density: Any = None,
    weights: Any = None,
) -> tuple[Tracer, Tracer]:
    """(counts, edges), by the steps of numpy's own function."""
    x = as_tracer(a)
    x = reshape(cast(x, np.dtype(np.uint8)) if x.dtype == BOOL else x, (x.size,))
    w = None if weights is None else as_tracer(weights)
    if w is not None and w.size != x.size:
        raise errors.InvalidArgumentError("weights should have the same shape as a.")
    if isinstance(bins, str) or (type(bins) is not Tracer and np.ndim(bins) == 0):
        index, inside, edges = _uniform(x, bins, range)
    else:
        index, inside, edges = _between(x, as_tracer(bins))
    counts = _counted(index, inside, edges.size - 1, w)
    if density:
        widths = cast(diff(edges), FLOAT64)
        counts = apply(np.divide, (apply(np.divide, (counts, widths)), counts.sum()))
    return counts, edges


def _uniform(x: Tracer, bins: Any, limits: Any) -> tuple[Tracer, Tracer, Tracer]:
    """The bin of each value, whether it is in one, and the edges."""
    first, last, edges = _known_bins(x, bins, limits) or _found_bins(x, operator.index(bins))
    count = edges.size - 1
    inside = _all(apply(np.greater_equal, (x, first)), apply(np.less_equal, (x, last)))
    values = cast(x, edges.dtype)
    distance = apply(np.subtract, (values, first))
    position = apply(np.multiply, (apply(np.divide, (distance, _extent(first, last))), count))
    return _corrected(values, position, inside, edges), inside, edges


def _known_bins(x: Tracer, bins: Any, limits: Any) -> tuple[Any, Any, Tracer] | None:
    """First, last and all edges, where no data decide them."""
    if isinstance(bins, str):
        raise errors.DataDependentShapeError(
            f"np.histogram(x, {bins!r}) has as many bins as data decide: pass a number"
        )
    if limits is None and x.size and bins > 0:
        return None
    edges = np.histogram(np.zeros(0, x.dtype), bins, limits)[1]  # raises what numpy raises
    first, last = (0, 1) if limits is None else limits
    if first == last:
        first, last = first - 0.5, last + 0.5
    return first, last, copy(Tracer(active(), active().constant(edges)))


def _found_bins(x: Tracer, count: int) -> tuple[Any, Any, Tracer]:
    """From the smallest element to the largest. Integers are exact up to 2^53."""
    first, last = outer_edges(x)
    edges = linspace(first, last, count + 1)
    return first, last, cast(edges, np.result_type(x.dtype, edges.dtype))


def outer_edges(x: Tracer) -> tuple[Any, Any]:
    """The smallest and the largest element, half below and half above where these are one."""
    values: Any = x if x.dtype.kind == "f" else cast(x, FLOAT64)
    first, last = values.min(), values.max()
    check_none(
        np.logical_not(np.isfinite(last - first))._atom,
        errors.InvalidArgumentError,
        "autodetected range of [nan, nan] is not finite",
    )
    alike = first == last
    return where(alike, first - 0.5, first), where(alike, last + 0.5, last)


def _extent(first: Any, last: Any) -> Any:
    """What numpy divides by: it subtracts signed integers as unsigned ones."""
    if type(first) is Tracer:
        return apply(np.subtract, (last, first))
    dtype = np.result_type(first, last)
    if dtype.kind != "i":
        return np.subtract(last, first, dtype=dtype)[()]
    ends = np.asarray(last, dtype), np.asarray(first, dtype)
    unsigned: np.generic = np.subtract(*ends, casting="unsafe", dtype=f"u{dtype.itemsize}")[()]
    return unsigned


def _corrected(values: Tracer, position: Tracer, inside: Tracer, edges: Tracer) -> Tracer:
    """The bin of each value: positions are not exact at the edges."""
    last = edges.size - 2
    zero = filled((), position.dtype.type(0))
    safe = Tracer(active(), select_atom(inside._atom, position._atom, zero._atom, values.shape))
    index = apply(np.minimum, (apply(np.maximum, (cast(safe, INT64), 0)), last))
    before = _all(inside, apply(np.less, (values, take(edges, index))))
    index = where(before, apply(np.subtract, (index, 1)), index)
    beyond = apply(np.greater_equal, (values, take(edges, apply(np.add, (index, 1)))))
    after = _all(inside, beyond, apply(np.not_equal, (index, last)))
    corrected: Tracer = where(after, apply(np.add, (index, 1)), index)
    return corrected


def _between(x: Tracer, edges: Tracer) -> tuple[Tracer, Tracer, Tracer]:
    if edges.ndim != 1:
        raise errors.InvalidArgumentError("`bins` must be 1d, when an array")
    count = edges.size - 1
    if count < 1:
        raise errors.UnsupportedArgumentError(
            "np.histogram of less than two edges has no bins: pass two edges or more"
        )
    low, high = slice_axis(edges, 0, 0, count), slice_axis(edges, 0, 1, count)
    check_none(
        apply(np.greater, (low, high)).any()._atom,
        errors.InvalidArgumentError,
        "`bins` must increase monotonically, when an array",
    )
    first, last = edges[0], edges[-1]  # type: ignore[index]
    inside = _all(apply(np.greater_equal, (x, first)), apply(np.less_equal, (x, last)))
    place = apply(np.subtract, (searchsorted(edges, x, "right"), 1))
    return apply(np.minimum, (place, count - 1)), inside, edges


def _all(*conditions: Tracer) -> Tracer:
    first, *others = conditions
    for other in others:
        first = apply(np.logical_and, (first, other))
    return first


def _counted(index: Tracer, inside: Tracer, count: int, weights: Tracer | None) -> Tracer:
    """How many values are in each bin; those outside of all count nothing, in the first."""
    place = where(inside, index, 0)
    if weights is None:
        return added_up(place, cast(inside, INT64), count)
    own = where(inside, reshape(weights, (weights.size,)), weights.dtype.type(0))
    blocks = -(-place.size // _BLOCK)
    if blocks > 1:
        place = place + NUMPY.arange(place.size) // _BLOCK * count
    sums: Any = added_up(place, cast(own, FLOAT64), blocks * count).astype(weights.dtype)
    return sums.reshape(blocks, count).sum(axis=0, dtype=weights.dtype)


_BLOCK = 65536  # numpy adds up the weights of so many values at a time


def added_up(places: Tracer, values: Tracer, count: int) -> Tracer:
    """The sum of the values at each of `count` places, one after the other. All axes count."""
    builder, dtype = active(), values.dtype
    zeros = filled((count,), dtype.type(0))._atom
    atoms = [broadcast(each, (each.size,))._atom for each in (values, places)]
    return Tracer(builder, builder.emit(p.scatter, zeros, *atoms, op="add", dtype=dtype))


@listed(np.histogram_bin_edges)
def histogram_bin_edges(
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    weights: Any = None,
) -> Tracer:
    return histogram(a, bins, range)[1]
