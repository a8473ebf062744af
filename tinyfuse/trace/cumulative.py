"""Cumulative sums and products, `ufunc.accumulate`, areas under curves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import is_half, is_supported
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Literal
from tinyfuse.trace.axes import normalize_axis_index, reduced_axes
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import METHODS, apply, require_exponents
from tinyfuse.trace.joining import concatenate_, diff
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operations import (
    cast,
    filled,
    reshape,
    result,
    slice_axis,
    traced,
    type_text,
)
from tinyfuse.trace.promotion import OPERATIONS, resolve
from tinyfuse.trace.reductions import sum_
from tinyfuse.trace.tracer import Tracer


def accumulate(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """`ufunc.accumulate`: each element combined with the result before it."""
    x = traced(array)
    at = _axis(axis, x.ndim)
    to = _dtype(ufunc, x, dtype, out)
    given, x = x, cast(x, to)
    if x is not given:
        active().memory.convert(given._atom, x._atom)
    if ufunc is np.power:
        exponents = slice_axis(x, at, 1, max(x.shape[at] - 1, 0))
        require_exponents(exponents, resolve(ufunc, (to, to)))
    return result(x, p.cumulative, op=OPERATIONS[ufunc][0], axis=at)


METHODS["accumulate"] = accumulate


def _axis(axis: Any, ndim: int) -> int:
    axes = reduced_axes(axis, ndim)
    if not ndim:
        raise errors.ArgumentTypeError("cannot accumulate on a scalar")
    if len(axes) != 1:
        raise errors.InvalidArgumentError("accumulate does not allow multiple axes")
    return axes[0]


def _dtype(ufunc: np.ufunc, x: Tracer, dtype: Any, out: Any) -> np.dtype:
    """What numpy computes in. Raises what numpy raises where it has no loop."""
    if dtype is None and type(out) is Tracer:
        operands = (out.dtype, x.dtype, None)
        found = ufunc.resolve_dtypes(operands, casting="unsafe", reduction=True)[1]
    else:
        found = ufunc.accumulate(np.zeros(0, x.dtype), dtype=dtype).dtype
    if not is_supported(found) or is_half(found):  # which would be rounded at every element
        raise errors.UnsupportedDtypeError(
            f"np.{ufunc.__name__}.accumulate of {type_text(x)} gives {found}, which tinyfuse does "
            "not support: convert the array before, with astype(np.float32)"
        )
    return found


# -- cumsum and cumprod


def _flat(array: Any, axis: Any) -> tuple[Tracer, int]:
    """An array and one of its axes; all elements in C order without an axis."""
    x = traced(array)
    if axis is None or not x.ndim:
        if axis is not None:
            normalize_axis_index(operator.index(axis), 1)
        return reshape(x, (x.size,)), 0
    return x, normalize_axis_index(operator.index(axis), x.ndim)


def _listed_cumulative(ufunc: np.ufunc, method: str, function: Callable[..., Any]) -> None:
    @listed(function, method=method)
    def run(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tracer:
        x, at = _flat(a, axis)
        return accumulate(ufunc, x, at, dtype, out)


_listed_cumulative(np.add, "cumsum", np.cumsum)
_listed_cumulative(np.multiply, "cumprod", np.cumprod)


def _listed_without_nan(ufunc: np.ufunc, neutral: int, function: Callable[..., Any]) -> None:
    """What is NaN counts as the neutral element."""

    @listed(function)
    def run(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tracer:
        x, at = _flat(a, axis)
        if x.dtype.kind == "f":
            nan = apply(np.isnan, (x,))
            kept = select_atom(nan._atom, Literal(x.dtype.type(neutral)), x._atom, x.shape)
            x = Tracer(active(), kept)
        return accumulate(ufunc, x, at, dtype, out)


_listed_without_nan(np.add, 0, np.nancumsum)
_listed_without_nan(np.multiply, 1, np.nancumprod)


def _listed_by_standard(ufunc: np.ufunc, name: str) -> None:
    """Those of the array API, in numpy 2.1 and later."""
    function = getattr(np, name, None)
    if function is None:
        return

    @listed(function)
    def run(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Tracer:
        array = traced(x)
        array = array if array.ndim else reshape(array, (1,))
        if axis is None and array.ndim > 1:
            raise errors.InvalidArgumentError(
                "For arrays which have more than one dimension ``axis`` argument is required."
            )
        at = _axis(0 if axis is None else axis, array.ndim)
        total = accumulate(ufunc, array, at, dtype, out)
        if not include_initial:
            return total
        shape = (*total.shape[:at], 1, *total.shape[at + 1 :])
        start = filled(shape, total.dtype.type(ufunc.identity))
        return concatenate_([start, total], at)


_listed_by_standard(np.add, "cumulative_sum")
_listed_by_standard(np.multiply, "cumulative_prod")


# -- areas


@listed(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Tracer:
    """The steps of numpy's own function."""
    heights = traced(y)
    at = normalize_axis_index(operator.index(axis), heights.ndim)
    widths = dx if x is None else _widths(traced(x), heights, at)
    count = max(heights.shape[at] - 1, 0)
    both = apply(np.add, (slice_axis(heights, at, 1, count), slice_axis(heights, at, 0, count)))
    areas: Tracer = apply(np.divide, (apply(np.multiply, (widths, both)), 2.0))
    return sum_(areas, at)


def _widths(x: Tracer, heights: Tracer, axis: int) -> Tracer:
    if x.ndim != 1:
        return diff(x, axis=axis)
    widths = diff(x)
    shape = [1] * heights.ndim
    shape[axis] = widths.size
    return reshape(widths, tuple(shape))
