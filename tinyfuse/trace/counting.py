"""Counts of integers, and histograms of several variables."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import FLOAT64, INT64
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.histograms import added_up, outer_edges
from tinyfuse.trace.operations import cast, filled
from tinyfuse.trace.picking import as_tracer
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.searching import searchsorted
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer

_LENGTH = "np.bincount(x) is as long as data decide: pass minlength=, which no element may reach"


@listed(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Tracer:
    """As long as `minlength`; larger elements are an error."""
    given: Any = as_tracer(x)
    count = operator.index(minlength)
    if given.ndim != 1:
        raise errors.InvalidArgumentError("object too deep for desired array")
    if count < 0:
        raise errors.InvalidArgumentError("'minlength' must not be negative")
    if not np.can_cast(given.dtype, INT64, "safe"):
        raise errors.DtypeError(
            f"Cannot cast array data from {given.dtype!r} to {INT64!r} according to the rule 'safe'"
        )
    if not count and given.size:
        raise errors.DataDependentShapeError(_LENGTH)
    places = cast(given, INT64)
    if given.size:
        _require_places(places, count)
    if weights is None:
        return added_up(places, filled((given.size,), INT64.type(1)), count)
    values = as_tracer(weights)
    if values.shape != given.shape:
        raise errors.InvalidArgumentError("The weights and list don't have the same length.")
    return added_up(places, cast(values, FLOAT64), count)


def _require_places(places: Any, count: int) -> None:
    words = "'list' argument must have no negative elements"
    check_none((places < 0)._atom, errors.InvalidArgumentError, words)
    check_none((places >= count)._atom, errors.DataDependentShapeError, _LENGTH)


# -- several variables


@listed(np.histogramdd)
def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    density: Any = None,
    weights: Any = None,
) -> tuple[Tracer, list[Tracer]]:
    """The steps of numpy's own function."""
    x: Any = as_tracer(sample)
    if x.ndim != 2 or isinstance(sample, (list, tuple)):
        x = np.atleast_2d(x).T
    count = x.shape[1]
    each_bins = _one_each(bins, count, "The dimension of bins must be equal to the dimension of")
    limits = [None] * count if range is None else list(range)
    if len(limits) != count:
        raise errors.InvalidArgumentError("range argument must have one entry per dimension")
    columns = list(x.T)
    edges = list(map(_edges, columns, each_bins, limits))
    places = list(map(_places, columns, edges))
    extents = [len(each) + 1 for each in edges]
    values = filled((len(x),), FLOAT64.type(1)) if weights is None else as_tracer(weights)
    flat = np.ravel_multi_index(tuple(places), tuple(extents))
    sums: Any = added_up(flat, cast(values, FLOAT64), int(np.prod(extents)))
    found = sums.reshape(extents)[(slice(1, -1),) * count]
    return (_as_density(found, edges) if density else found), edges


def _is_many(bins: Any) -> bool:
    return isinstance(bins, (list, tuple)) or np.ndim(bins) > 0


def _one_each(bins: Any, count: int, words: str) -> Sequence[Any]:
    if not _is_many(bins):
        return [bins] * count
    if len(bins) != count:
        raise errors.InvalidArgumentError(f"{words} the sample x.")
    return list(bins)


def _edges(column: Any, bins: Any, limits: Any) -> Any:
    if np.ndim(bins):
        return NUMPY.asarray(bins)
    known = limits is not None or not len(column)
    if known or bins < 1:
        data = np.zeros((0, 1))
        return NUMPY.asarray(np.histogramdd(data, [bins], [limits])[1][0])
    return NUMPY.linspace(*outer_edges(column), operator.index(bins) + 1)


def _places(column: Any, edges: Any) -> Any:
    """Bins, counted from 1; what is on the last edge belongs to the last one."""
    place: Any = searchsorted(edges, column, side="right")
    return place - (column == edges[-1])


def _as_density(found: Any, edges: Sequence[Any]) -> Any:
    total = found.sum()
    for at, each in enumerate(edges):
        shape = [1] * len(edges)
        shape[at] = -1
        found = found / np.diff(each).reshape(shape)
    return found / total


@listed(np.histogram2d)
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    density: Any = None,
    weights: Any = None,
) -> tuple[Tracer, Tracer, Tracer]:
    if len(x) != len(y):
        raise errors.InvalidArgumentError("x and y must have the same length.")
    both = [bins, bins] if _is_many(bins) and len(bins) not in (1, 2) else bins
    found, edges = histogramdd([x, y], both, range, density, weights)
    return found, edges[0], edges[1]
