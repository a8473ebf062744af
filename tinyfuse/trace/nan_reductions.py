"""Reductions that leave out NaN: the steps of numpy's own functions, without their warnings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph.ir import Literal
from tinyfuse.trace import averages, reductions
from tinyfuse.trace.averages import degrees_lost, divided_by_count, root_of
from tinyfuse.trace.axes import reduced_axes
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.masking import is_given, select_atom, selected
from tinyfuse.trace.operations import cast, elementwise, reduce, traced
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.reductions import accumulate, extreme, keeps, position
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue


def _is_nan(x: Tracer) -> Tracer:
    return elementwise("isnan", x)


def _chosen(mask: Tracer, value: Any, x: Tracer) -> Tracer:
    """A value of x's dtype where a mask is true."""
    literal = Literal(x.dtype.type(value))
    atom = select_atom(mask._atom, literal, x._atom, x.shape)
    return Tracer(active(), atom, x._scalar)


def _without_nan(x: Tracer, value: Any) -> Tracer:
    """A value in place of each NaN; integers have none."""
    return _chosen(_is_nan(x), value, x) if x.dtype.kind == "f" else x


def _given(where: Any) -> Any:
    return True if where is _NOT_GIVEN else where


# -- sums, products, extremes


def _listed_sum(function: Callable[..., Any], compute: Callable[..., Tracer], value: int) -> None:
    @listed(function)
    def run(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = _NOT_GIVEN,
        initial: Any = _NOT_GIVEN,
        where: Any = _NOT_GIVEN,
    ) -> Tracer:
        x = _without_nan(traced(a), value)
        return compute(x, axis, dtype, out, keepdims, initial, _given(where))


_listed_sum(np.nansum, reductions.sum_, 0)
_listed_sum(np.nanprod, reductions.prod, 1)


def _listed_extreme(function: Callable[..., Any], op: str, ufunc: np.ufunc) -> None:
    @listed(function)
    def run(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = _NOT_GIVEN,
        initial: Any = _NOT_GIVEN,
        where: Any = _NOT_GIVEN,
    ) -> Tracer:
        return extreme(op, ufunc, traced(a), axis, keepdims, initial, _given(where), out)


_listed_extreme(np.nanmax, "fmax", np.fmax)
_listed_extreme(np.nanmin, "fmin", np.fmin)


def _listed_position(function: Callable[..., Any], op: str, value: float) -> None:
    @listed(function)
    def run(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NOT_GIVEN) -> Tracer:
        x = traced(a)
        if x.dtype.kind == "f" and x.size:
            _require_numbers(x, axis)
        return position(op, _without_nan(x, value), axis, keeps(keepdims))


def _require_numbers(x: Tracer, axis: Any) -> None:
    """At run time: no slice is all NaN."""
    axes = reduced_axes(axis, x.ndim)
    nothing = _is_nan(x)
    if axes:
        nothing = reduce("all", nothing, axes, BOOL)
    words = "All-NaN slice encountered"
    check_none(nothing._atom, errors.InvalidArgumentError, words)  # type: ignore[arg-type]


_listed_position(np.nanargmax, "argmax", -np.inf)
_listed_position(np.nanargmin, "argmin", np.inf)


# -- averages


def _require_inexact(dtype: Any, out: Any) -> None:
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise errors.ArgumentTypeError("If a is inexact, then dtype must be inexact")
    if type(out) is Tracer and out.dtype.kind != "f":
        raise errors.ArgumentTypeError("If a is inexact, then out must be inexact")


def _numbers(nan: Tracer, axis: Any, keepdims: Any, where: Any) -> Tracer:
    """How many elements are no NaN, along axes."""
    there = selected("sum", elementwise("logical_not", nan), where)
    return accumulate("sum", there, axis, INT64, keepdims)


@listed(np.nanmean)
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _NOT_GIVEN,
    *,
    where: Any = _NOT_GIVEN,
) -> Tracer:
    x, where = traced(a), _given(where)
    if x.dtype.kind != "f":
        return averages.mean(x, axis, dtype, out, keepdims, where=where)
    _require_inexact(dtype, out)
    count = _numbers(_is_nan(x), axis, keepdims, where)
    total = _total(_without_nan(x, 0), axis, dtype, out, keepdims, where)
    return divided_by_count(total, count)


def _total(x: Tracer, axis: Any, dtype: Any, out: Any, keepdims: Any, where: Any) -> Tracer:
    total = accumulate("sum", selected("sum", x, where), axis, dtype, keepdims, out)
    return cast(total, out.dtype) if type(out) is Tracer else total


@listed(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _NOT_GIVEN,
    *,
    where: Any = _NOT_GIVEN,
    mean: Any = _NOT_GIVEN,
    correction: Any = _NOT_GIVEN,
) -> Tracer:
    x, where = traced(a), _given(where)
    if x.dtype.kind != "f":
        options = {"where": where, "mean": mean, "correction": correction}
        return averages.var(x, axis, dtype, out, ddof, keepdims, **options)
    _require_inexact(dtype, out)
    ddof = degrees_lost(ddof, correction)
    nan = _is_nan(x)
    if not is_given(mean):
        total = _total(_without_nan(x, 0), axis, dtype, None, True, where)
        mean = divided_by_count(total, _numbers(nan, axis, True, where))
    squared = _squared_deviation(x, mean, nan)
    total = _total(squared, axis, dtype, out, keepdims, where)
    freedom = apply(np.subtract, (_numbers(nan, axis, keepdims, where), ddof))
    variance = divided_by_count(total, freedom)
    return _chosen(apply(np.less_equal, (freedom, 0)), np.nan, variance)


def _squared_deviation(x: Tracer, mean: Any, nan: Tracer) -> Tracer:
    """In the dtype of x; 0 where it is NaN."""
    difference = cast(apply(np.subtract, (_without_nan(x, 0), mean)), x.dtype)
    deviation = _chosen(nan, 0, difference)
    return apply(np.multiply, (deviation, deviation))


@listed(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, **options: Any
) -> Tracer:
    """`nanvar` and its arguments, and the square root."""
    return root_of(nanvar(a, axis, dtype, out, ddof, **options), out)
