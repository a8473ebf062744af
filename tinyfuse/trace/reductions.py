"""Reductions: sums, products, extremes, and what numpy composes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.trace.axes import normalize_axis_index, reduced_axes
from tinyfuse.trace.creation import supported_dtype
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import REDUCTIONS, apply
from tinyfuse.trace.masking import (
    from_start,
    has_mask,
    is_given,
    require_start,
    selected,
    start_of,
    without_identity,
)
from tinyfuse.trace.operations import (
    cast,
    copy,
    filled,
    insert_axes,
    reduce,
    reshape,
    traced,
    type_text,
)
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue


def keeps(keepdims: Any) -> bool:
    """Whether reduced axes stay, with one element."""
    return keepdims is not _NOT_GIVEN and bool(keepdims)


# -- sum and prod


_SUMS = {"sum": np.add, "prod": np.multiply}


def accumulate(op: str, x: Tracer, axis: Any, dtype: Any, keepdims: Any, out: Any = None) -> Tracer:
    """A sum or product, in the dtype asked for or in that which numpy takes."""
    axes = reduced_axes(axis, x.ndim)
    if dtype is None and type(out) is Tracer:
        to = _output_dtype(_SUMS[op], x.dtype, out.dtype)
    else:
        to = _sum_dtype(x.dtype) if dtype is None else supported_dtype(dtype)
    if not axes:
        x = cast(x, to)
        if op == "sum" and to.kind == "f":  # sums start at +0, so that -0 becomes +0
            x = apply(np.add, (x, to.type(0)))
        return _over_no_axes(x)
    return reduce(op, x, axes, to, keeps(keepdims))


def _over_no_axes(x: Tracer) -> Tracer:
    """A reduction over no axes is a copy, of a 0-d array a scalar."""
    copied = copy(x)
    copied._scalar = not x.shape
    return copied


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    """numpy adds up narrow integers in the widest integers of their kind."""
    return np.add.reduce(np.zeros(0, dtype)).dtype


def _output_dtype(ufunc: np.ufunc, dtype: np.dtype, out: np.dtype) -> np.dtype:
    """numpy reduces in the dtype that the array given as `out=` asks for."""
    return ufunc.resolve_dtypes((out, dtype, None), casting="unsafe", reduction=True)[1]


@listed(np.sum, method="sum")
def sum_(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NOT_GIVEN,
    where: Any = True,
) -> Tracer:
    x = selected("sum", traced(a), where)
    require_start(np.add, where, initial)
    return from_start(np.add, accumulate("sum", x, axis, dtype, keepdims, out), initial)


@listed(np.prod, method="prod")
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NOT_GIVEN,
    where: Any = True,
) -> Tracer:
    x = selected("prod", traced(a), where)
    require_start(np.multiply, where, initial)
    return from_start(np.multiply, accumulate("prod", x, axis, dtype, keepdims, out), initial)


@listed(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Tracer:
    return accumulate("sum", cast(traced(a), BOOL), axis, INT64, keepdims)


# -- max and min


def extreme(
    op: str,
    ufunc: np.ufunc,
    x: Tracer,
    axis: Any,
    keepdims: Any,
    initial: Any = _NOT_GIVEN,
    where: Any = True,
    out: Any = None,
) -> Tracer:
    axes = reduced_axes(axis, x.ndim)
    if type(out) is Tracer:
        x = cast(x, _extreme_dtype(ufunc, x.dtype, out.dtype))
    x = selected(op, x, where)
    if has_mask(where) and not is_given(initial):
        raise without_identity(ufunc)
    if is_given(initial):
        return _with_initial(op, ufunc, x, axes, keeps(keepdims), initial)
    if not axes:
        return _over_no_axes(x)
    if not all(x.shape[at] for at in axes):
        raise errors.InvalidArgumentError(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity: "
            f"{type_text(x)}"
        )
    return reduce(op, x, axes, x.dtype, keeps(keepdims))


def _extreme_dtype(ufunc: np.ufunc, dtype: np.dtype, out: np.dtype) -> np.dtype:
    """The dtype that elements are compared in, which the array given as `out=` must have."""
    compared = _output_dtype(ufunc, dtype, out)
    if compared != out:
        raise errors.UnsupportedArgumentError(
            f"np.{ufunc.__name__}.reduce(..., out=) of {out}, where numpy compares {compared} and "
            f"converts elements on the way, is not supported: pass an array of {compared}"
        )
    return compared


def _with_initial(
    op: str, ufunc: np.ufunc, x: Tracer, axes: tuple[int, ...], keepdims: bool, initial: Any
) -> Tracer:
    start = start_of(initial, x.dtype)
    if all(x.shape[at] for at in axes):
        reduced = reduce(op, x, axes, x.dtype, keepdims) if axes else x
        return apply(ufunc, (reduced, start))
    kept = tuple([extent for at, extent in enumerate(x.shape) if at not in axes])
    full = filled(kept, x.dtype.type(0))
    full = apply(ufunc, (start, start)) if not kept else apply(np.add, (full, start))
    return insert_axes(full, axes) if keepdims else full


def _listed_extreme(op: str, ufunc: np.ufunc, *functions: Callable[..., Any]) -> None:
    @listed(*functions, method=op)
    def run(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NOT_GIVEN,
        where: Any = True,
    ) -> Tracer:
        return extreme(op, ufunc, traced(a), axis, keepdims, initial, where, out)


_listed_extreme("max", np.maximum, np.max, np.amax)
_listed_extreme("min", np.minimum, np.min, np.amin)


@listed(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Tracer:
    x = traced(a)
    highest = extreme("max", np.maximum, x, axis, keepdims)
    return apply(np.subtract, (highest, extreme("min", np.minimum, x, axis, keepdims)))


# -- any and all


def truth(op: str, x: Tracer, axis: Any, keepdims: Any, where: Any = True) -> Tracer:
    axes = reduced_axes(axis, x.ndim)
    x = selected(op, cast(x, BOOL), where)
    if not axes:
        return _over_no_axes(x)
    return reduce(op, x, axes, BOOL, keeps(keepdims))


def _listed_truth(op: str, function: Callable[..., Any]) -> None:
    @listed(function, method=op)
    def run(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Tracer:
        return truth(op, traced(a), axis, keepdims, where)


_listed_truth("any", np.any)
_listed_truth("all", np.all)


# -- argmax and argmin


def _listed_position(op: str, function: Callable[..., Any]) -> None:
    @listed(function, method=op)
    def run(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Tracer:
        return position(op, traced(a), axis, keeps(keepdims))


def position(op: str, x: Tracer, axis: Any, keepdims: bool) -> Tracer:
    """Where the extreme element stands; along all axes, its place in the flattened array."""
    flat = x if axis is not None and x.ndim else reshape(x, (x.size,))
    at = 0 if axis is None else normalize_axis_index(axis, flat.ndim)
    if flat.shape[at] == 0:
        raise errors.InvalidArgumentError(f"attempt to get {op} of an empty sequence")
    found = reduce(op, flat, (at,), INT64, keepdims and axis is not None)
    if keepdims and (axis is None or not x.ndim):
        found = reshape(found, (1,) * x.ndim)
        found._scalar = not found.shape
    return found


_listed_position("argmax", np.argmax)
_listed_position("argmin", np.argmin)


# -- ufunc.reduce

Steps = Callable[..., Tracer]  # of (name, x, axis, dtype, keepdims)


def _ufunc_reduce(ufunc: np.ufunc, op: str, compute: Steps) -> None:
    def run(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NOT_GIVEN,
        where: Any = True,
    ) -> Tracer:
        x = traced(array)
        require_start(ufunc, where, initial)
        if dtype is None and type(out) is Tracer and op in ("sum", "prod"):
            dtype = _output_dtype(ufunc, x.dtype, out.dtype)
        name = f"np.{ufunc.__name__}.reduce"
        total = compute(name, selected(op, x, where), axis, dtype, keepdims)
        return from_start(ufunc, total, initial)

    REDUCTIONS[ufunc] = run


def _extreme_reduce(ufunc: np.ufunc, op: str) -> None:
    def run(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NOT_GIVEN,
        where: Any = True,
    ) -> Tracer:
        x = traced(array)
        if dtype is not None:
            x, out = cast(x, supported_dtype(dtype)), None
        return extreme(op, ufunc, x, axis, keepdims, initial, where, out)

    REDUCTIONS[ufunc] = run


def _without_dtype(name: str, dtype: Any, own: np.dtype) -> None:
    if dtype is not None and np.dtype(dtype) != own:
        raise errors.UnsupportedArgumentError(
            f"{name}(..., dtype={np.dtype(dtype)}) is not supported: leave it out, and "
            "convert with astype"
        )


def _reduce_by(op: str) -> Steps:
    return lambda name, x, axis, dtype, keepdims: accumulate(op, x, axis, dtype, keepdims)


def _reduce_truth(op: str, of_bool_only: bool = False) -> Steps:
    def compute(name: str, x: Tracer, axis: Any, dtype: Any, keepdims: Any) -> Tracer:
        _without_dtype(name, dtype, BOOL)
        if of_bool_only and x.dtype != BOOL:
            raise errors.UnlistedFunctionError(
                f"{name} of {x.dtype} is not supported, only of bool"
            )
        return truth(op, x, axis, keepdims)

    return compute


_ufunc_reduce(np.add, "sum", _reduce_by("sum"))
_ufunc_reduce(np.multiply, "prod", _reduce_by("prod"))
_ufunc_reduce(np.logical_or, "any", _reduce_truth("any"))
_ufunc_reduce(np.logical_and, "all", _reduce_truth("all"))
_ufunc_reduce(np.bitwise_or, "any", _reduce_truth("any", of_bool_only=True))
_ufunc_reduce(np.bitwise_and, "all", _reduce_truth("all", of_bool_only=True))
_extreme_reduce(np.maximum, "max")
_extreme_reduce(np.minimum, "min")
_extreme_reduce(np.fmax, "fmax")
_extreme_reduce(np.fmin, "fmin")
