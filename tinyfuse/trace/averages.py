"""Averages, variances and what numpy makes of them: the steps of numpy's own functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, FLOAT32, FLOAT64, is_complex, is_half, part_dtype
from tinyfuse.trace.axes import normalize_axis_index, normalize_axis_tuple, reduced_axes
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.masking import counted, has_mask, is_given, selected
from tinyfuse.trace.operations import broadcast, cast, copy, reshape, size_of, traced, transpose
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.reductions import accumulate, keeps
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue


def divided_by_count(total: Tracer, count: Any) -> Tracer:
    """`total / count`, computed in numpy's dtype and brought back to the dtype of the total.

    numpy divides float32 by an integer in float64 and rounds twice. Where float32 holds the count,
    dividing in float32 gives the same bits.
    """
    scalar = total._scalar
    if total.dtype == FLOAT32 and type(count) is not Tracer and np.float32(count) == count:
        count = np.float32(count)
    quotient = cast(apply(np.divide, (total, count)), total.dtype)
    quotient._scalar = scalar
    return quotient


def _count(x: Tracer, axis: Any, where: Any = True, keepdims: Any = False) -> Any:
    """How many elements are averaged. numpy has no axis 0 of scalars here, unlike in sums."""
    if axis is not None and not isinstance(axis, tuple):
        normalize_axis_index(axis, x.ndim)
    axes = reduced_axes(axis, x.ndim)
    if has_mask(where):
        return counted(where, x.shape, axes, keeps(keepdims))
    return np.int64(size_of(tuple([x.shape[at] for at in axes])))


def _total(
    x: Tracer, axis: Any, dtype: Any, keepdims: Any, where: Any = True, out: Any = None
) -> Tracer:
    """The sum that is divided, in the dtype of the array that it is put into."""
    total = accumulate("sum", selected("sum", x, where), axis, dtype, keepdims, out)
    return cast(total, out.dtype) if type(out) is Tracer else total


@listed(np.mean, method="mean")
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Tracer:
    x = traced(a)
    if dtype is None and x.dtype.kind in "biu":
        dtype = FLOAT64
    if dtype is None and is_half(x.dtype):  # rounded once
        return cast(mean(x, axis, FLOAT32, None, keepdims, where=where), x.dtype)
    total = _total(x, axis, dtype, keepdims, where, out)
    return divided_by_count(total, _count(x, axis, where, keepdims))


@listed(np.var, method="var")
def var(
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
) -> Tracer:
    x, ddof = traced(a), degrees_lost(ddof, correction)
    if dtype is None and x.dtype.kind in "biu":
        dtype = FLOAT64
    if not is_given(mean):
        total = _total(x, axis, dtype, True, where)
        mean = divided_by_count(total, _count(x, axis, where, True))
    deviation = apply(np.subtract, (x, mean))
    if x.dtype == BOOL:
        squared = apply(np.multiply, (deviation, deviation))
    elif is_complex(deviation.dtype):
        squares = [apply(np.square, (part,)) for part in (deviation.real, deviation.imag)]
        squared = apply(np.add, squares)
        dtype = None if dtype is None else part_dtype(np.dtype(dtype))
    else:
        squared = apply(np.square, (deviation,))
    total = _total(squared, axis, dtype, keepdims, where, out)
    freedom = _count(x, axis, where, keepdims) - ddof
    return divided_by_count(total, np.maximum(freedom, 0))


def degrees_lost(ddof: Any, correction: Any) -> Any:
    """`ddof=` or its other name."""
    if correction is _NOT_GIVEN:
        return ddof
    if ddof != 0:
        raise errors.InvalidArgumentError("ddof and correction can't be provided simultaneously.")
    return correction


@listed(np.std, method="std")
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    **options: Any,
) -> Tracer:
    """`var` and its arguments, and the square root."""
    return root_of(var(a, axis, dtype, out, ddof, keepdims, **options), out)


def root_of(variance: Tracer, out: Any = None) -> Tracer:
    """The square root, in the dtype of the variance. out: where numpy keeps it."""
    root = apply(np.sqrt, (variance,))
    in_place = not variance._scalar or type(out) is Tracer
    if in_place and not np.can_cast(root.dtype, variance.dtype, "same_kind"):
        raise errors.DtypeError(
            f"Cannot cast ufunc 'sqrt' output from {root.dtype!r} to {variance.dtype!r} with "
            "casting rule 'same_kind'"
        )
    deviation = cast(root, variance.dtype)
    deviation._scalar = variance._scalar
    return deviation


# -- weighted averages


@listed(np.average)
def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: Any = False,
    *,
    keepdims: Any = _NOT_GIVEN,
) -> Any:
    x = traced(a)
    if axis is not None:
        axis = normalize_axis_tuple(axis, x.ndim, argname="axis")
    if weights is None:
        found = mean(x, axis, keepdims=keepdims)
        total: Any = traced(found.dtype.type(x.size / found.size))
    else:
        w = _fitting_weights(traced(weights), x, axis)
        dtype = np.result_type(x.dtype, w.dtype, *([FLOAT64] if x.dtype.kind in "biu" else []))
        total = accumulate("sum", w, axis, dtype, keepdims)
        _require_weight(total)
        weighted = apply(np.multiply, (x, w), dtype=dtype)
        found = apply(np.divide, (accumulate("sum", weighted, axis, None, keepdims), total))
    if not returned:
        return found
    return found, total if total.shape == found.shape else copy(broadcast(total, found.shape))


def _fitting_weights(w: Tracer, x: Tracer, axis: tuple[int, ...] | None) -> Tracer:
    """The weights, broadcasting against the array. Raises numpy's errors."""
    if w.shape == x.shape:
        return w
    if axis is None:
        raise errors.ArgumentTypeError(
            "Axis must be specified when shapes of a and weights differ."
        )
    if w.shape != tuple([x.shape[at] for at in axis]):
        raise errors.InvalidArgumentError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    ascending: Sequence[int] = sorted(range(len(axis)), key=axis.__getitem__)
    shape = tuple([extent if at in axis else 1 for at, extent in enumerate(x.shape)])
    return reshape(transpose(w, ascending), shape)


def _require_weight(total: Tracer) -> None:
    """At run time: no average is divided by zero."""
    none = apply(np.equal, (total, 0.0))
    words = "Weights sum to zero, can't be normalized"
    check_none(none._atom, errors.ZeroWeightsError, words)
