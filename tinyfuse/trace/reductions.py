"""Reductions: sums, products, extremes, and what numpy composes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from tinyfuse.trace.axes import normalize_axis_index, reduced_axes
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import REDUCTIONS, apply
from tinyfuse.trace.masking import counted, from_start, has_mask, is_given, selected
from tinyfuse.trace.operations import (
    cast,
    copy,
    filled,
    insert_axes,
    reduce,
    reshape,
    size_of,
    traced,
    type_text,
)
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue


def _keepdims(keepdims: Any) -> bool:
    return keepdims is not _NOT_GIVEN and bool(keepdims)


# -- sum and prod


def _accumulate(
    op: str, x: Tracer, axis: Any, dtype: Any, keepdims: Any, out: Any = None
) -> Tracer:
    axes = reduced_axes(axis, x.ndim)
    if dtype is None and type(out) is Tracer:
        to = _output_dtype(op, x.dtype, out.dtype)
    else:
        to = _sum_dtype(x.dtype) if dtype is None else np.dtype(dtype)
    if not axes:
        x = cast(x, to)
        if op == "sum" and to.kind == "f":  # sums start at +0, so that -0 becomes +0
            x = apply(np.add, (x, to.type(0)))
        return _over_no_axes(x)
    return reduce(op, x, axes, to, _keepdims(keepdims))


def _over_no_axes(x: Tracer) -> Tracer:
    """A reduction over no axes is a copy, of a 0-d array a scalar."""
    copied = copy(x)
    copied._scalar = not x.shape
    return copied


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    """numpy adds up narrow integers in the widest integers of their kind."""
    return np.add.reduce(np.zeros(0, dtype)).dtype


def _output_dtype(op: str, dtype: np.dtype, out: np.dtype) -> np.dtype:
    """numpy adds up in the dtype that the array given as `out=` asks for."""
    ufunc = np.add if op == "sum" else np.multiply
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
    return from_start(np.add, _accumulate("sum", x, axis, dtype, keepdims, out), initial)


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
    return from_start(np.multiply, _accumulate("prod", x, axis, dtype, keepdims, out), initial)


@listed(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Tracer:
    return _accumulate("sum", cast(traced(a), BOOL), axis, INT64, keepdims)


# -- max and min


def _extreme(
    op: str,
    ufunc: np.ufunc,
    x: Tracer,
    axis: Any,
    keepdims: Any,
    initial: Any = _NOT_GIVEN,
    where: Any = True,
) -> Tracer:
    axes = reduced_axes(axis, x.ndim)
    if has_mask(where) and not is_given(initial):
        raise errors.InvalidArgumentError(
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where "
            "mask one has to specify 'initial'"
        )
    x = selected(op, x, where)
    if is_given(initial):
        return _with_initial(op, ufunc, x, axes, _keepdims(keepdims), initial)
    if not axes:
        return _over_no_axes(x)
    if not all(x.shape[at] for at in axes):
        raise errors.InvalidArgumentError(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity: "
            f"{type_text(x)}"
        )
    return reduce(op, x, axes, x.dtype, _keepdims(keepdims))


def _with_initial(
    op: str, ufunc: np.ufunc, x: Tracer, axes: tuple[int, ...], keepdims: bool, initial: Any
) -> Tracer:
    if type(initial) in (int, float, bool):
        initial = np.full((), initial, x.dtype)[()]
    start = cast(traced(initial), x.dtype)
    if all(x.shape[at] for at in axes):
        reduced = reduce(op, x, axes, x.dtype, keepdims) if axes else x
        return apply(ufunc, (reduced, start))
    kept = tuple([extent for at, extent in enumerate(x.shape) if at not in axes])
    full = filled(kept, x.dtype.type(0))
    full = apply(ufunc, (start, start)) if not kept else apply(np.add, (full, start))
    return insert_axes(full, axes) if keepdims else full


def _listed_extreme(op: str, ufunc: np.ufunc, *functions: Callable[..., Any]) -> None:
    @listed(*functions, method=op)
    def extreme(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NOT_GIVEN,
        where: Any = True,
    ) -> Tracer:
        return _extreme(op, ufunc, traced(a), axis, keepdims, initial, where)


_listed_extreme("max", np.maximum, np.max, np.amax)
_listed_extreme("min", np.minimum, np.min, np.amin)


@listed(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Tracer:
    x = traced(a)
    highest = _extreme("max", np.maximum, x, axis, keepdims)
    return apply(np.subtract, (highest, _extreme("min", np.minimum, x, axis, keepdims)))


# -- any and all


def _truth(op: str, x: Tracer, axis: Any, keepdims: Any, where: Any = True) -> Tracer:
    axes = reduced_axes(axis, x.ndim)
    x = selected(op, cast(x, BOOL), where)
    if not axes:
        return _over_no_axes(x)
    return reduce(op, x, axes, BOOL, _keepdims(keepdims))


def _listed_truth(op: str, function: Callable[..., Any]) -> None:
    @listed(function, method=op)
    def truth(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Tracer:
        return _truth(op, traced(a), axis, keepdims, where)


_listed_truth("any", np.any)
_listed_truth("all", np.all)


# -- argmax and argmin


def _listed_position(op: str, function: Callable[..., Any]) -> None:
    @listed(function, method=op)
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Tracer:
        x = traced(a)
        return _position(op, x, axis, _keepdims(keepdims))


def _position(op: str, x: Tracer, axis: Any, keepdims: bool) -> Tracer:
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


# -- mean, var, std: the steps of numpy's own functions


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
        return counted(where, x.shape, axes, _keepdims(keepdims))
    return np.int64(size_of(tuple([x.shape[at] for at in axes])))


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
    total = _accumulate("sum", selected("sum", x, where), axis, dtype, keepdims, out)
    if type(out) is Tracer:
        total = cast(total, out.dtype)  # where numpy keeps the sum
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
    if correction is not _NOT_GIVEN:
        ddof = correction
    x = traced(a)
    if dtype is None and x.dtype.kind in "biu":
        dtype = FLOAT64
    if not is_given(mean):
        total = _accumulate("sum", selected("sum", x, where), axis, dtype, True)
        mean = divided_by_count(total, _count(x, axis, where, True))
    deviation = apply(np.subtract, (x, mean))
    if x.dtype == BOOL:
        squared = apply(np.multiply, (deviation, deviation))
    else:
        squared = apply(np.square, (deviation,))
    total = _accumulate("sum", selected("sum", squared, where), axis, dtype, keepdims)
    freedom = _count(x, axis, where, keepdims) - ddof
    return divided_by_count(total, np.maximum(freedom, 0))


@listed(np.std, method="std")
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, **options: Any
) -> Tracer:
    """`var` and its arguments, and the square root."""
    variance = var(a, axis, dtype, None, ddof, **options)
    root = apply(np.sqrt, (variance,))
    if not variance._scalar and not np.can_cast(root.dtype, variance.dtype, "same_kind"):
        raise errors.DtypeError(
            f"Cannot cast ufunc 'sqrt' output from {root.dtype!r} to {variance.dtype!r} with "
            "casting rule 'same_kind'"
        )
    deviation = cast(root, variance.dtype)
    deviation._scalar = variance._scalar
    return deviation


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
        if dtype is None and type(out) is Tracer and op in ("sum", "prod"):
            dtype = _output_dtype(op, x.dtype, out.dtype)
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
        _without_dtype(f"np.{ufunc.__name__}.reduce", dtype, x.dtype)
        return _extreme(op, ufunc, x, axis, keepdims, initial, where)

    REDUCTIONS[ufunc] = run


def _without_dtype(name: str, dtype: Any, own: np.dtype) -> None:
    if dtype is not None and np.dtype(dtype) != own:
        raise errors.UnsupportedArgumentError(
            f"{name}(..., dtype={np.dtype(dtype)}) is not supported"
        )


def _reduce_by(op: str) -> Steps:
    return lambda name, x, axis, dtype, keepdims: _accumulate(op, x, axis, dtype, keepdims)


def _reduce_truth(op: str, of_bool_only: bool = False) -> Steps:
    def compute(name: str, x: Tracer, axis: Any, dtype: Any, keepdims: Any) -> Tracer:
        _without_dtype(name, dtype, BOOL)
        if of_bool_only and x.dtype != BOOL:
            raise errors.UnlistedFunctionError(
                f"{name} of {x.dtype} is not supported, only of bool"
            )
        return _truth(op, x, axis, keepdims)

    return compute


_ufunc_reduce(np.add, "sum", _reduce_by("sum"))
_ufunc_reduce(np.multiply, "prod", _reduce_by("prod"))
_ufunc_reduce(np.logical_or, "any", _reduce_truth("any"))
_ufunc_reduce(np.logical_and, "all", _reduce_truth("all"))
_ufunc_reduce(np.bitwise_or, "any", _reduce_truth("any", of_bool_only=True))
_ufunc_reduce(np.bitwise_and, "all", _reduce_truth("all", of_bool_only=True))
_extreme_reduce(np.maximum, "max")
_extreme_reduce(np.minimum, "min")
