"""Medians and quantiles that leave out NaN, which are the last of sorted elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse.dtypes import INT64
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.joining import concatenate_
from tinyfuse.trace.nan_reductions import nanmean
from tinyfuse.trace.operations import insert_axes, lying, reshape, slice_axis, traced
from tinyfuse.trace.order_statistics import (
    METHODS,
    Rows,
    finished,
    list_quantiles,
    median,
    quantiles_along,
    require_method,
    sorted_rows,
)
from tinyfuse.trace.picking import take_along_axis
from tinyfuse.trace.selection import where
from tinyfuse.trace.tracer import Tracer


def _numbers(rows: Rows) -> Any:
    """How many elements of each row are no NaN."""
    return (~np.isnan(rows.x)).sum(axis=rows.at, dtype=INT64)


def _element(rows: Rows, position: Any) -> Any:
    """Those at one position in each row; 0 in place of negative ones."""
    index = insert_axes(np.maximum(position, 0), (rows.at,))
    kept = (*rows.x.shape[: rows.at], *rows.x.shape[rows.at + 1 :])
    return reshape(take_along_axis(rows.x, index, rows.at), kept)


@listed(np.nanmedian)
def nanmedian(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    keepdims: Any = np._NoValue,
) -> Tracer:
    x = traced(a)
    if not x.size:
        return nanmean(x, axis, keepdims=keepdims)
    if x.dtype.kind != "f":
        return median(x, axis, None, overwrite_input, keepdims)
    rows = sorted_rows(x, axis, overwrite_input)
    count = _numbers(rows)
    low, high = (count - 1) // 2, count // 2
    lower = _element(rows, low)
    found = where(low == high, lower, (lower + _element(rows, high)) / 2)
    return finished(found, rows.axes, keepdims)


def _nan_quantiles(
    a: Any, q: np.ndarray, weak: bool, axis: Any, overwrite: Any, method: str, keepdims: Any
) -> Tracer:
    x = traced(a)
    if not x.size:
        return nanmean(x, axis, keepdims=keepdims)
    if x.dtype.kind != "f":
        return quantiles_along(x, q, weak, axis, overwrite, method, keepdims)
    require_method(q, method)
    rows = sorted_rows(x, axis, overwrite)
    count = _numbers(rows)
    computed = q.ravel() if q.size else np.zeros(1, q.dtype)
    parts = [_quantile(rows, count, each, weak, method) for each in computed]
    if not q.ndim:
        return finished(parts[0], rows.axes, keepdims)
    together = concatenate_([insert_axes(part, (0,)) for part in parts], 0)
    wanted = slice_axis(together, 0, 0, q.size)
    found = lying(reshape(wanted, (*q.shape, *parts[0].shape)), "C", rows.x)
    return finished(found, rows.axes, keepdims, q.ndim)


def _quantile(rows: Rows, count: Any, q: Any, weak: bool, method: str) -> Any:
    """Interpolated between two elements, from the nearer one."""
    position = METHODS[method].position(count, q)
    if position.dtype.kind in METHODS[method].whole:
        return _element(rows, position)
    beyond, before_all = position >= count - 1, position < 0
    below = np.where(beyond, -1, np.where(before_all, 0, np.floor(position).astype(INT64)))
    above = np.where(beyond | before_all, below, below + 1)
    weight: Any = position - below
    if method == "midpoint":
        weight = np.where(position % 1 == 0, 0.0, 0.5)
    a, b = [_element(rows, np.where(each < 0, count - 1, each)) for each in (below, above)]
    before, after = weight, 1 - weight
    if weak:
        before, after = before.astype(a.dtype), after.astype(a.dtype)
    near, step = weight >= 0.5, b - a
    found = np.where(near, b - step * after, a + step * before)
    return np.where(count == 0, found.dtype.type(np.nan), found)


list_quantiles(np.nanquantile, np.nanpercentile, _nan_quantiles)
