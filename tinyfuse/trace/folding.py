"""`ufunc.reduce` of operations that are no reductions of the graph: the last of all steps.

So is `ufunc.reduceat` of any operation, piece by piece.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL
from tinyfuse.trace.axes import normalize_axis_index, reduced_axes
from tinyfuse.trace.cumulative import accumulate
from tinyfuse.trace.elementwise import METHODS, REDUCTIONS, call_ufunc
from tinyfuse.trace.joining import concatenate_
from tinyfuse.trace.known import known_value
from tinyfuse.trace.masking import fitting_mask, has_mask, is_given, start_of
from tinyfuse.trace.operations import (
    broadcast,
    insert_axes,
    reshape,
    size_of,
    slice_axis,
    traced,
    transpose,
)
from tinyfuse.trace.promotion import operations
from tinyfuse.trace.selection import where as chosen
from tinyfuse.trace.tracer import Tracer


def fold(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Tracer:
    """Each element combined with what comes of those before it, in C order of the axes."""
    x = traced(array)
    if not operations(ufunc) or ufunc.nin != 2 or ufunc.nout != 1:
        raise errors.UnlistedFunctionError(f"np.{ufunc.__name__}.reduce is not traced")
    axes = reduced_axes(axis, x.ndim)
    # numpy's own words where it has no such reduction, and its dtype
    probe = ufunc.reduce(np.ones((1,) * x.ndim, x.dtype), axis=axis, dtype=dtype)
    if has_mask(where):
        x = _masked(ufunc, x, where, initial)
    kept = [at for at in range(x.ndim) if at not in axes]
    extents = [x.shape[at] for at in kept]
    rows = reshape(
        transpose(x, [*kept, *axes]), (*extents, size_of(tuple([x.shape[at] for at in axes])))
    )
    rows = _with_start(ufunc, rows, initial, probe.dtype)
    folded = accumulate(ufunc, rows, -1, dtype)
    last = slice_axis(folded, len(extents), folded.shape[-1] - 1, 1)
    found = reshape(last, tuple(extents))
    if keepdims:
        found = insert_axes(found, axes)
    found._scalar = not found.shape
    return found


def _masked(ufunc: np.ufunc, x: Tracer, where: Any, initial: Any) -> Tracer:
    if ufunc.identity is None:
        raise errors.UnsupportedArgumentError(
            f"np.{ufunc.__name__}.reduce(..., where=) is not supported: put what changes "
            "nothing where the mask is false, with np.where(mask, x, other)"
        )
    return chosen(fitting_mask(where, x.shape), x, x.dtype.type(ufunc.identity))


def _with_start(ufunc: np.ufunc, rows: Tracer, initial: Any, dtype: np.dtype) -> Tracer:
    """Behind the initial value if there is one; an empty row needs one."""
    if not is_given(initial):
        if rows.shape[-1]:
            return rows
        initial = ufunc.reduce(np.zeros(0, rows.dtype), dtype=dtype)  # raises what numpy raises
    start = broadcast(start_of(initial, dtype), (*rows.shape[:-1], 1))
    return concatenate_([start, rows.astype(dtype)], -1)


METHODS["reduce"] = fold


def _of_bits(ufunc: np.ufunc) -> None:
    of_truths = REDUCTIONS[ufunc]

    def run(array: Any, *args: Any, **kwargs: Any) -> Tracer:
        if traced(array).dtype == BOOL:
            found: Tracer = of_truths(array, *args, **kwargs)
            return found
        kwargs.pop("out", None)
        return fold(ufunc, array, *args, **kwargs)

    REDUCTIONS[ufunc] = run


_of_bits(np.bitwise_or)
_of_bits(np.bitwise_and)


def reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None) -> Tracer:
    """The reduction of each piece, from one index to the next."""
    x = traced(array)
    at = normalize_axis_index(operator.index(axis), x.ndim)
    places = known_value(traced(indices))
    if places is None:
        raise errors.DataDependentShapeError(
            f"np.{ufunc.__name__}.reduceat at indices that are known at run time only: write "
            f"np.{ufunc.__name__}.at(result, piece_of_each, x)"
        )
    ends = [*places[1:].tolist(), x.shape[at]]
    return concatenate_(
        [_piece(ufunc, x, at, *ends_, dtype) for ends_ in zip(places.tolist(), ends, strict=True)],
        at,
    )


def _piece(ufunc: np.ufunc, x: Tracer, axis: int, start: int, end: int, dtype: Any) -> Tracer:
    if not 0 <= start < x.shape[axis]:
        raise errors.IndexingError(
            f"index {start} out-of-bounds in {ufunc.__name__}.reduceat [0, {x.shape[axis]})"
        )
    piece = slice_axis(x, axis, start, max(end - start, 1))
    options = {"axis": axis, "keepdims": True, "dtype": dtype}
    found: Tracer = call_ufunc(ufunc, "reduce", (piece,), options)
    return found


METHODS["reduceat"] = reduceat
