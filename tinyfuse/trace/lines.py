"""Differences and areas along an axis; values of broken lines and polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import FLOAT64
from tinyfuse.trace.axes import axis_tuple, normalize_axis_index
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.joining import concatenate_, diff, ravel
from tinyfuse.trace.known import known_value
from tinyfuse.trace.operations import (
    cast,
    fresh,
    lying,
    reshape,
    slice_axis,
    transpose,
)
from tinyfuse.trace.picking import as_tracer, take
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue

# -- differences and areas


@listed(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tracer:
    x = ravel(as_tracer(ary))
    parts = [_end(part, x) for part in (to_begin, to_end) if part is not None]
    inner = np.subtract(slice_axis(x, 0, 1, max(x.size - 1, 0)), x[:-1])  # type: ignore[index]
    before = [] if to_begin is None else parts[:1]
    after = [] if to_end is None else parts[-1:]
    return concatenate_([*before, inner, *after]) if parts else inner  # type: ignore[return-value]


def _end(value: Any, x: Tracer) -> Tracer:
    end = as_tracer(value)
    if not np.can_cast(end.dtype, x.dtype, "same_kind"):
        raise errors.DtypeError(
            "dtype of `to_begin` or `to_end` must be compatible with input `ary` under the "
            "`same_kind` rule."
        )
    return ravel(cast(end, x.dtype))


@listed(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values = as_tracer(y)
    at = normalize_axis_index(axis, values.ndim)
    width = dx if x is None else _widths(as_tracer(x), values, axis)
    extent = max(values.shape[at] - 1, 0)
    later, earlier = slice_axis(values, at, 1, extent), slice_axis(values, at, 0, extent)
    return (width * (later + earlier) / 2.0).sum(axis)  # type: ignore[operator]


def _widths(x: Tracer, y: Tracer, axis: int) -> Tracer:
    if x.ndim != 1:
        return diff(x, axis=axis)
    widths, along = diff(x), normalize_axis_index(axis, y.ndim)
    return reshape(widths, tuple([widths.size if at == along else 1 for at in range(y.ndim)]))


@listed(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences, of second order; at the ends differences of order `edge_order`."""
    x = as_tracer(f)
    if x.dtype.kind in "iu":
        x = cast(x, FLOAT64)
    axes = range(x.ndim) if axis is None else axis_tuple(axis)
    along = [normalize_axis_index(each, x.ndim) for each in axes]
    if edge_order > 2:
        raise errors.InvalidArgumentError("'edge_order' greater than 2 not supported")
    steps = _steps(varargs, x, along)
    found = [_slope(x, at, step, edge_order) for at, step in zip(along, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _steps(given: Sequence[Any], x: Tracer, axes: Sequence[int]) -> Sequence[Any]:
    """For each axis the distance, or the distances, of its places."""
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and np.ndim(given[0]) == 0:
        return [given[0]] * len(axes)
    if len(given) != len(axes):
        raise errors.ArgumentTypeError("invalid number of arguments")
    return [_distances(each, x.shape[at]) for each, at in zip(given, axes, strict=True)]


def _distances(given: Any, extent: int) -> Any:
    if np.ndim(given) == 0:
        return given
    places = as_tracer(given)
    if places.ndim != 1:
        raise errors.InvalidArgumentError("distances must be either scalars or 1d")
    if places.size != extent:
        raise errors.InvalidArgumentError(
            "when 1d, distances must match the length of the corresponding dimension"
        )
    steps = diff(cast(places, FLOAT64) if places.dtype.kind in "iu" else places)
    known = known_value(steps)
    if known is None:
        return steps
    return known[0] if (known == known[0]).all() else steps


def _slope(x: Tracer, axis: int, step: Any, order: int) -> Tracer:
    extent = x.shape[axis]
    if extent < order + 1:
        raise errors.InvalidArgumentError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
            "elements are required."
        )
    rows: Any = transpose(x, [axis, *[at for at in range(x.ndim) if at != axis]])
    slopes = [_first(rows, step, order), *_inner(rows, step), _last(rows, step, order)]
    to = x.dtype if x.dtype.kind in "fc" else FLOAT64
    joined = concatenate_([cast(as_tracer(part), to) for part in slopes])
    inverse = [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)]
    return lying(fresh(transpose(joined, inverse)), "K", x)


def _beside(steps: Any, rows: Any) -> Any:
    return steps.reshape(-1, *(1,) * (rows.ndim - 1))


def _inner(rows: Any, step: Any) -> list[Any]:
    if len(rows) < 3:
        return []
    if np.ndim(step) == 0:
        return [(rows[2:] - rows[:-2]) / (2.0 * step)]
    before, after = _beside(step[:-1], rows), _beside(step[1:], rows)
    a = -after / (before * (before + after))
    b = (after - before) / (before * after)
    c = before / (after * (before + after))
    return [a * rows[:-2] + b * rows[1:-1] + c * rows[2:]]


def _first(rows: Any, step: Any, order: int) -> Any:
    uniform = np.ndim(step) == 0
    if order == 1:
        return (rows[1:2] - rows[:1]) / (step if uniform else step[0])
    if uniform:
        a, b, c = -1.5 / step, 2.0 / step, -0.5 / step
    else:
        first, second = step[0], step[1]
        a = -(2.0 * first + second) / (first * (first + second))
        b = (first + second) / (first * second)
        c = -first / (second * (first + second))
    return a * rows[:1] + b * rows[1:2] + c * rows[2:3]


def _last(rows: Any, step: Any, order: int) -> Any:
    uniform = np.ndim(step) == 0
    if order == 1:
        return (rows[-1:] - rows[-2:-1]) / (step if uniform else step[-1])
    if uniform:
        a, b, c = 0.5 / step, -2.0 / step, 1.5 / step
    else:
        first, second = step[-2], step[-1]
        a = second / (first * (first + second))
        b = -(second + first) / (first * second)
        c = (2.0 * second + first) / (second * (first + second))
    return a * rows[-3:-2] + b * rows[-2:-1] + c * rows[-1:]


# -- broken lines and polynomials


@listed(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """The values at x of the line through the points (xp, fp), of which xp ascends."""
    at, places, values = [cast(as_tracer(each), FLOAT64) for each in (x, xp, fp)]
    _require_points(places, values)
    if period is not None:
        at, places, values = _around(at, places, values, period)
        left = right = None
    found = _on_the_line(at, places, values)
    low = values[0] if left is None else left  # type: ignore[index]
    high = values[-1] if right is None else right  # type: ignore[index]
    found = np.where(at < places[0], low, np.where(at > places[-1], high, found))  # type: ignore
    # Around a single point numpy only compares, and NaN is on neither side of it.
    result: Any = found if places.size == 1 else np.where(np.isnan(at), at, found)
    result._scalar = not result.shape
    return lying(result, "C", at)


def _around(at: Any, places: Any, values: Any, period: Any) -> list[Tracer]:
    """The points within one period, in order, and one more before and behind them."""
    if type(period) in (int, float) and not period:
        raise errors.InvalidArgumentError("period must be a non-zero value")
    period = abs(period)
    at, places = np.mod(at, period), np.mod(places, period)
    order = np.argsort(places)
    places, values = take(places, order), take(values, order)
    places = np.concatenate([places[-1:] - period, places, places[:1] + period])
    return [at, places, np.concatenate([values[-1:], values, values[:1]])]


def _require_points(places: Tracer, values: Tracer) -> None:
    if places.ndim != 1 or values.ndim != 1:
        raise errors.InvalidArgumentError("object too deep for desired array")
    if not places.size:
        raise errors.InvalidArgumentError("array of sample points is empty")
    if places.size != values.size:
        raise errors.InvalidArgumentError("fp and xp are not of the same length.")


def _on_the_line(at: Any, places: Any, values: Any) -> Any:
    """numpy's own steps: from the point before, else from the one behind, else on a level line."""
    if places.size == 1:
        return values[0]
    count: Any = np.searchsorted(places, at, side="right")
    k = np.clip(count - 1, 0, places.size - 2)
    x0, x1, y0, y1 = [take(each, k + by) for each in (places, values) for by in (0, 1)]
    slope: Any = (y1 - y0) / (x1 - x0)  # type: ignore[operator]
    found = slope * (at - x0) + y0
    found = np.where(np.isnan(found), slope * (at - x1) + y1, found)
    found = np.where(np.isnan(found) & np.equal(y0, y1), y0, found)
    found = np.where(np.equal(x0, at), y0, found)
    return np.where(at == places[-1], values[-1], found)


@listed(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Horner's rule, from the highest power."""
    coefficients: Any = as_tracer(p)
    at = as_tracer(x)
    y: Any = np.zeros_like(at)
    for k in range(len(coefficients)):
        y = y * at + coefficients[k]
    return y
