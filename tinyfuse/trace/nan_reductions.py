"""Reductions that skip NaN: the steps of numpy's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import INT64
from tinyfuse.trace.advanced_indexing import check_none
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.masking import is_given
from tinyfuse.trace.operations import cast
from tinyfuse.trace.picking import as_tracer
from tinyfuse.trace.reductions import divided_by_count
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue


def _replaced(x: Tracer, value: float) -> Tracer:
    return np.where(np.isnan(x), x.dtype.type(value), x)  # type: ignore[return-value]


def _skipping(function: Callable[..., Any], plain: Callable[..., Any], value: float) -> None:
    """What changes nothing takes the place of NaN."""

    @listed(function)
    def run(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NOT_GIVEN,
        where: Any = True,
    ) -> Any:
        x = as_tracer(a)
        some = _replaced(x, value) if x.dtype.kind == "f" else x
        return plain(some, axis, dtype, keepdims=keepdims, initial=initial, where=where)


_skipping(np.nansum, np.sum, 0)
_skipping(np.nanprod, np.prod, 1)


def _extreme(function: Callable[..., Any], plain: Callable[..., Any], value: float) -> None:
    @listed(function)
    def run(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NOT_GIVEN,
        where: Any = True,
    ) -> Any:
        x = as_tracer(a)
        if x.dtype.kind != "f":
            return plain(x, axis, keepdims=keepdims, initial=initial, where=where)
        some = _replaced(x, value)
        found = plain(some, axis, keepdims=keepdims, initial=initial, where=where)
        if is_given(initial):
            return found
        return _or_nan(np.all(np.isnan(x), axis, keepdims=keepdims), found)


_extreme(np.nanmax, np.max, -np.inf)
_extreme(np.nanmin, np.min, np.inf)


def _or_nan(is_nan: Any, found: Any) -> Any:
    chosen: Any = np.where(is_nan, found.dtype.type(np.nan), found)
    chosen._scalar = found._scalar
    return chosen


def _position(function: Callable[..., Any], plain: Callable[..., Any], value: float) -> None:
    @listed(function)
    def run(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = as_tracer(a)
        if x.dtype.kind == "f" and x.size:
            nothing: Any = np.all(np.isnan(x), axis)
            check_none(nothing._atom, errors.InvalidArgumentError, "All-NaN slice encountered")
            x = _replaced(x, value)
        return plain(x, axis, keepdims=keepdims)


_position(np.nanargmax, np.argmax, -np.inf)
_position(np.nanargmin, np.argmin, np.inf)


# -- averages


@listed(np.nanmean)
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    x = as_tracer(a)
    if x.dtype.kind != "f":
        return np.mean(x, axis, dtype, keepdims=keepdims, where=where)
    _require_floats(dtype)
    count = np.sum(~np.isnan(x), axis, INT64, keepdims=keepdims, where=where)
    total: Any = np.sum(_replaced(x, 0), axis, dtype, keepdims=keepdims, where=where)
    return divided_by_count(total, count)


def _require_floats(dtype: Any) -> None:
    if dtype is not None and np.dtype(dtype).kind != "f":
        raise errors.ArgumentTypeError("If a is inexact, then dtype must be inexact")


@listed(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = _NOT_GIVEN,
    correction: Any = _NOT_GIVEN,
) -> Any:
    x = as_tracer(a)
    ddof = ddof if correction is _NOT_GIVEN else correction
    if x.dtype.kind != "f":
        return np.var(x, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean)
    _require_floats(dtype)
    some, is_number = _replaced(x, 0), ~np.isnan(x)
    if mean is _NOT_GIVEN:
        count = np.sum(is_number, axis, INT64, keepdims=True, where=where)
        total: Any = np.sum(some, axis, dtype, keepdims=True, where=where)
        mean = divided_by_count(total, count)
    deviation = cast(np.subtract(some, mean), x.dtype)
    squared = np.square(np.where(is_number, deviation, x.dtype.type(0)))
    freedom = np.sum(is_number, axis, INT64, keepdims=keepdims, where=where) - ddof
    summed: Any = np.sum(squared, axis, dtype, keepdims=keepdims, where=where)
    return _or_nan(freedom <= 0, divided_by_count(summed, freedom))


@listed(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, **options: Any
) -> Any:
    """`nanvar` and its arguments, and the square root."""
    return np.sqrt(nanvar(a, axis, dtype, None, ddof, **options))
