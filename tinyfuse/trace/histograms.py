"""Histograms over bins that are known while tracing, or given as edges."""

from __future__ import annotations

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
from tinyfuse.trace.operations import cast, copy, filled, reshape, slice_axis
from tinyfuse.trace.picking import as_tracer, take
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.searching import searchsorted
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
    if weights is not None:
        raise errors.UnsupportedArgumentError(
            "np.histogram(..., weights=) is not supported: write np.add.at(counts, np.digitize(x, "
            "edges) - 1, weights)"
        )
    x = as_tracer(a)
    x = reshape(cast(x, np.dtype(np.uint8)) if x.dtype == BOOL else x, (x.size,))
    if isinstance(bins, str) or (type(bins) is not Tracer and np.ndim(bins) == 0):
        counts, edges = _uniform(x, bins, range)
    else:
        counts, edges = _between(x, as_tracer(bins))
    if density:
        widths = cast(diff(edges), FLOAT64)
        counts = apply(np.divide, (apply(np.divide, (counts, widths)), counts.sum()))
    return counts, edges


def _uniform(x: Tracer, bins: Any, limits: Any) -> tuple[Tracer, Tracer]:
    if isinstance(bins, str) or (limits is None and x.size):
        raise errors.DataDependentShapeError(
            "np.histogram without range=(lowest, highest) has bins that depend on data: pass it"
            if not isinstance(bins, str)
            else f"np.histogram(x, {bins!r}) has as many bins as data decide: pass a number"
        )
    edges = np.histogram(np.zeros(0, x.dtype), bins, limits)[1]  # raises what numpy raises
    count = len(edges) - 1
    first, last = (0, 1) if limits is None else limits
    if first == last:
        first, last = first - 0.5, last + 0.5
    inside = _all(apply(np.greater_equal, (x, first)), apply(np.less_equal, (x, last)))
    values = cast(x, edges.dtype)
    distance = apply(np.subtract, (values, first))
    position = apply(np.multiply, (apply(np.divide, (distance, _extent(first, last))), count))
    known = Tracer(active(), active().constant(edges))
    return _counted(_corrected(values, position, inside, known), inside, count), copy(known)


def _extent(first: Any, last: Any) -> np.generic:
    """What numpy divides by: it subtracts signed integers as unsigned ones."""
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
    index = apply(np.minimum, (cast(safe, INT64), last))
    before = _all(inside, apply(np.less, (values, take(edges, index))))
    index = apply(np.subtract, (index, cast(before, INT64)))
    beyond = apply(np.greater_equal, (values, take(edges, apply(np.add, (index, 1)))))
    after = _all(inside, beyond, apply(np.not_equal, (index, last)))
    corrected: Tracer = apply(np.add, (index, cast(after, INT64)))
    return corrected


def _between(x: Tracer, edges: Tracer) -> tuple[Tracer, Tracer]:
    if edges.ndim != 1:
        raise errors.InvalidArgumentError("`bins` must be 1d, when an array")
    count = edges.size - 1
    if count < 1:
        raise errors.UnsupportedArgumentError(
            "np.histogram of less than two edges is not supported"
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
    return _counted(apply(np.minimum, (place, count - 1)), inside, count), edges


def _all(*conditions: Tracer) -> Tracer:
    first, *others = conditions
    for other in others:
        first = apply(np.logical_and, (first, other))
    return first


def _counted(index: Tracer, inside: Tracer, count: int) -> Tracer:
    """How many values are in each bin; those outside of all count nothing, in the first."""
    builder = active()
    zero = filled((), INT64.type(0))
    place = select_atom(inside._atom, index._atom, zero._atom, index.shape)
    atoms = (filled((count,), INT64.type(0))._atom, cast(inside, INT64)._atom, place)
    return Tracer(builder, builder.emit(p.scatter, *atoms, op="add", dtype=INT64))
