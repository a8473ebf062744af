"""Medians and quantiles: the steps of numpy's own functions, on sorted elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.averages import mean
from tinyfuse.trace.axes import normalize_axis_tuple
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.joining import concatenate_
from tinyfuse.trace.known import known_value
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operations import (
    cast,
    insert_axes,
    lying,
    reshape,
    slice_axis,
    traced,
    transpose,
)
from tinyfuse.trace.sorting import sorted_along
from tinyfuse.trace.specs import NeedsValue
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat


class Rows(NamedTuple):
    """An array sorted along its axis `at`, and the axes of the original that went into it."""

    x: Tracer
    at: int
    axes: tuple[int, ...]

    @property
    def length(self) -> int:
        return self.x.shape[self.at]

    def part(self, first: int, count: int = 1) -> Tracer:
        """Elements from a position on, in an axis as before."""
        return slice_axis(self.x, self.at, first, count)

    def element(self, position: int) -> Tracer:
        """Those at one position; negative ones count from the end."""
        kept = (*self.x.shape[: self.at], *self.x.shape[self.at + 1 :])
        return reshape(self.part(position % self.length), kept)


def sorted_rows(a: Any, axis: Any, overwrite_input: Any) -> Rows:
    if overwrite_input:
        raise errors.UnsupportedArgumentError(
            "overwrite_input=True leaves the array in an order that numpy does not define: leave it"
            " out"
        )
    x = traced(a)
    if axis is None:
        rows, at, axes = reshape(x, (x.size,)), 0, tuple(range(x.ndim))
    else:
        axes = normalize_axis_tuple(axis, x.ndim)
        rows, at = (x, axes[0]) if len(axes) == 1 else (_merged(x, axes), x.ndim - len(axes))
    return Rows(sorted_along(rows, at), at, axes)


def _merged(x: Tracer, axes: Sequence[int]) -> Tracer:
    """With these axes as one, at the end."""
    kept = [at for at in range(x.ndim) if at not in axes]
    merged = math.prod([x.shape[at] for at in axes])
    moved = transpose(x, [*kept, *sorted(axes)])
    return reshape(moved, (*[x.shape[at] for at in kept], merged))


def _without_nan(rows: Rows, found: Tracer) -> Tracer:
    """NaN where a row has one, which is its last element then."""
    if rows.x.dtype.kind != "f":
        return found
    last = rows.element(-1)
    nan = apply(np.isnan, (last,))
    lasts = cast(last, found.dtype)
    return Tracer(active(), select_atom(nan._atom, lasts._atom, found._atom, found.shape))


def finished(found: Tracer, axes: Sequence[int], keepdims: Any, before: int = 0) -> Tracer:
    """With the axes that went, if they are wanted; behind some new ones."""
    if keepdims is np._NoValue or not keepdims:
        found._scalar = not found.shape
        return found
    kept = insert_axes(found, [before + at for at in axes])
    return Tracer(active(), kept._atom)  # an array, also where it has no axes


@listed(np.median)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Tracer:
    rows = sorted_rows(a, axis, overwrite_input)
    if not rows.length:
        return finished(mean(rows.x, rows.at), rows.axes, keepdims)
    middle, both = divmod(rows.length - 1, 2)
    found = mean(rows.part(middle, 1 + both), rows.at)
    return finished(_without_nan(rows, found), rows.axes, keepdims)


# -- quantiles


def _from_ends(first: float, last: float) -> Callable[[Any, Any], Any]:
    """The position of a quantile q among n elements, by two parameters of R. J. Hyndman and
    Y. Fan, Sample quantiles in statistical packages, 1996."""
    return lambda n, q: n * q + (first + q * (1 - first - last)) - 1


class Method(NamedTuple):
    """position: that of a quantile q among n sorted elements, before rounding.

    whole: kinds of dtypes of positions that are those of single elements; others are interpolated
        between, also where they are integers, and may be beyond the ends.
    """

    position: Callable[[Any, Any], Any]
    whole: str = ""


METHODS: dict[str, Method] = {
    "linear": Method(lambda n, q: (n - 1) * q, "iu"),
    "lower": Method(lambda n, q: np.floor((n - 1) * q).astype(np.intp), "i"),
    "higher": Method(lambda n, q: np.ceil((n - 1) * q).astype(np.intp), "i"),
    "nearest": Method(lambda n, q: np.around((n - 1) * q).astype(np.intp), "i"),
    "midpoint": Method(lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q))),
    "interpolated_inverted_cdf": Method(_from_ends(0, 1)),
    "hazen": Method(_from_ends(0.5, 0.5)),
    "weibull": Method(_from_ends(0, 0)),
    "median_unbiased": Method(_from_ends(1 / 3.0, 1 / 3.0)),
    "normal_unbiased": Method(_from_ends(3 / 8.0, 3 / 8.0)),
}


def require_method(q: np.ndarray, method: str) -> None:
    if method not in METHODS:
        raise errors.UnsupportedArgumentError(
            f"method={method!r} of quantiles is not supported, but {', '.join(METHODS)}"
        )
    if q.ndim > 2:
        raise errors.InvalidArgumentError("q must be a scalar or 1d")


def quantiles_along(
    a: Any, q: np.ndarray, weak: bool, axis: Any, overwrite: Any, method: str, keepdims: Any
) -> Tracer:
    require_method(q, method)
    rows = sorted_rows(a, axis, overwrite)
    positions = np.asanyarray(METHODS[method].position(rows.length, q))
    if not rows.length:
        raise errors.IndexingError("index -1 is out of bounds for axis 0 with size 0")
    # Without quantiles the dtype is that of any.
    computed = positions.ravel() if q.size else np.zeros(1, positions.dtype)
    parts = [_quantile(rows, each, weak, method) for each in computed]
    if not q.ndim:
        return finished(lying(parts[0], "C", rows.x), rows.axes, keepdims)
    together = concatenate_([insert_axes(part, (0,)) for part in parts], 0)
    wanted = slice_axis(together, 0, 0, q.size)
    found = lying(reshape(wanted, (*q.shape, *parts[0].shape)), "C", rows.x)
    return finished(found, rows.axes, keepdims, q.ndim)


def _quantile(rows: Rows, position: Any, weak: bool, method: str) -> Tracer:
    """position: a numpy scalar, whose dtype counts."""
    if position.dtype.kind in METHODS[method].whole:
        return _without_nan(rows, rows.element(int(position)))
    before, after = _neighbours(position, rows.length)
    weight: Any = position.dtype.type(position - position.dtype.type(before))
    if method == "midpoint":
        weight = position.dtype.type(0 if position % 1 == 0 else 0.5)
    if weak:
        weight = float(weight)
    return _without_nan(rows, _between(rows.element(before), rows.element(after), weight))


def _neighbours(position: Any, count: int) -> tuple[int, int]:
    """The positions to interpolate between; beyond the ends the last or the first element."""
    if position >= count - 1:
        return -1, -1
    if position < 0:
        return 0, 0
    before = int(np.floor(position))
    return before, before + 1


def _between(a: Tracer, b: Tracer, weight: Any) -> Tracer:
    """Interpolated from the nearer end."""
    difference = apply(np.subtract, (b, a))
    if weight >= 0.5:
        found: Tracer = apply(np.subtract, (b, apply(np.multiply, (difference, 1 - weight))))
    else:
        found = apply(np.add, (a, apply(np.multiply, (difference, weight))))
    return found


def _fractions(name: str, q: Any) -> np.ndarray:
    """The argument q, which has to be known while tracing."""
    if type(q) is TracedFloat:
        raise NeedsValue(q._index, f"{name}(x, q)")
    if type(q) is not Tracer:
        return np.asanyarray(q)
    known = known_value(q)
    if known is None:
        raise errors.UnsupportedArgumentError(
            f"{name} of quantiles that are known at run time only: pass Python numbers"
        )
    return known


def _require_within(q: np.ndarray, words: str) -> None:
    if not q.size and q.ndim != 1:
        raise errors.InvalidArgumentError(
            "zero-size array to reduction operation minimum which has no identity"
        )
    if q.size and not (q.min() >= 0 and q.max() <= 1):
        raise errors.InvalidArgumentError(words)


def _require_no_weights(weights: Any) -> None:
    if weights is not None:
        raise errors.UnsupportedArgumentError(
            "weights= of quantiles is not supported: call numpy outside of the traced function"
        )


def _of_hundred(q: np.ndarray) -> np.ndarray:
    return np.asanyarray(np.true_divide(q, 100))


def list_quantiles(quantile: Any, percentile: Any, compute: Callable[..., Tracer]) -> None:
    """List two functions of numpy's. compute: from an array, fractions, whether they are one weak
    number, and the other arguments in numpy's order, to the quantiles."""
    _list(quantile, lambda q: q, "Quantiles must be in the range [0, 1]", compute)
    _list(percentile, _of_hundred, "Percentiles must be in the range [0, 100]", compute)


def _list(
    function: Any,
    scaled: Callable[[np.ndarray], np.ndarray],
    words: str,
    compute: Callable[..., Tracer],
) -> None:
    """scaled: makes fractions of its argument q. words: what is said where one is beyond [0, 1]."""

    def found(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: Any = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Tracer:
        weak = type(q) in (int, float)
        fractions = scaled(_fractions(f"np.{function.__name__}", q))
        _require_within(fractions, words)
        _require_no_weights(weights)
        return compute(a, fractions, weak, axis, overwrite_input, method, keepdims)

    found.__name__ = function.__name__
    listed(function)(found)


list_quantiles(np.quantile, np.percentile, quantiles_along)
