"""Joining, splitting, repeating, padding: arrays made of pieces of others."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.axes import (
    axis_tuple,
    normalize_axis_index,
    requested_shape,
)
from tinyfuse.trace.dispatch import as_method, listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.operations import (
    array_of,
    broadcast,
    cast,
    concatenate,
    copy,
    fresh,
    insert_axes,
    reshape,
    slice_axis,
    traced,
    type_text,
)
from tinyfuse.trace.shape import atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel
from tinyfuse.trace.tracer import Tracer

_NOT_GIVEN: Any = np._NoValue


# -- concatenation


@listed(np.concatenate)
def concatenate_(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tracer:
    parts = [traced(a) for a in _pieces(arrays)]
    if not parts:
        raise errors.InvalidArgumentError("need at least one array to concatenate")
    if axis is None:
        parts, axis = [reshape(x, (x.size,)) for x in parts], 0
    _require_joinable(parts, axis)
    to = _joined_dtype(parts, dtype, casting)
    joined = concatenate([cast(x, to) for x in parts], normalize_axis_index(axis, parts[0].ndim))
    return copy(joined) if len(parts) == 1 else joined


if hasattr(np, "concat"):
    listed(np.concat)(concatenate_)


def _pieces(arrays: Any) -> list[Any]:
    """The arrays of a sequence, or the rows of an array."""
    return list(arrays)


def _joined_dtype(parts: Sequence[Tracer], dtype: Any, casting: str) -> np.dtype:
    if dtype is None:
        return np.result_type(*[x.dtype for x in parts])
    for x in parts:
        if not np.can_cast(x.dtype, dtype, casting):  # type: ignore[arg-type]
            raise errors.DtypeError(
                f"Cannot cast array data from {x.dtype!r} to {np.dtype(dtype)!r} according to the "
                f"rule '{casting}'"
            )
    return np.dtype(dtype)


def _require_joinable(parts: Sequence[Tracer], axis: int) -> None:
    first = parts[0]
    if any(x.ndim == 0 for x in parts):
        raise errors.ShapeError("zero-dimensional arrays cannot be concatenated")
    axis = normalize_axis_index(axis, first.ndim)
    for at, x in enumerate(parts):
        if x.ndim != first.ndim:
            raise errors.ShapeError(
                "all the input arrays must have same number of dimensions, but the array at index "
                f"0 has {first.ndim} dimension(s) and the array at index {at} has {x.ndim} "
                "dimension(s)"
            )
        for dimension in range(first.ndim):
            if dimension != axis and x.shape[dimension] != first.shape[dimension]:
                raise errors.ShapeError(
                    "all the input array dimensions except for the concatenation axis must match "
                    f"exactly, but along dimension {dimension}, the array at index 0 has size "
                    f"{first.shape[dimension]} and the array at index {at} has size "
                    f"{x.shape[dimension]}"
                )


@listed(np.stack)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tracer:
    parts = [traced(a) for a in _pieces(arrays)]
    if not parts:
        raise errors.InvalidArgumentError("need at least one array to stack")
    if len({x.shape for x in parts}) != 1:
        raise errors.ShapeError(
            f"all input arrays must have the same shape: {', '.join(map(type_text, parts))}"
        )
    at = normalize_axis_index(axis, parts[0].ndim + 1)
    return concatenate_([insert_axes(x, (at,)) for x in parts], at, dtype=dtype, casting=casting)


@listed(np.vstack, *[np.row_stack] if "row_stack" in dir(np) else [])
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tracer:
    return concatenate_([atleast_2d(a) for a in _pieces(tup)], 0, dtype=dtype, casting=casting)


@listed(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tracer:
    parts = [atleast_1d(a) for a in _pieces(tup)]
    axis = 0 if parts and parts[0].ndim == 1 else 1
    return concatenate_(parts, axis, dtype=dtype, casting=casting)


@listed(np.dstack)
def dstack(tup: Any) -> Tracer:
    return concatenate_([atleast_3d(a) for a in _pieces(tup)], 2)


@listed(np.column_stack)
def column_stack(tup: Any) -> Tracer:
    return concatenate_([_column(traced(a)) for a in _pieces(tup)], 1)


def _column(x: Tracer) -> Tracer:
    return insert_axes(x, range(x.ndim, 2)) if x.ndim else reshape(x, (1, 1))


@listed(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Tracer:
    if axis is None:
        return concatenate_((ravel(arr), ravel(values)), 0)
    return concatenate_((arr, values), axis)


# -- splitting


@listed(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    x = traced(ary)
    at = normalize_axis_index(axis, x.ndim)
    ends = _division_points(indices_or_sections, x.shape[at])
    return [_piece(x, at, start, end) for start, end in pairwise(ends)]


def _division_points(sections: Any, extent: int) -> list[int | None]:
    try:
        points = [operator.index(point) for point in sections]
        return [0, *points, None]
    except TypeError:
        pass
    count = operator.index(sections)
    if count <= 0:
        raise errors.InvalidArgumentError("number sections must be larger than 0.")
    each, extra = divmod(extent, count)
    sizes = [each + 1] * extra + [each] * (count - extra)
    return [sum(sizes[:at]) for at in range(count + 1)]


def _piece(x: Tracer, axis: int, start: int | None, end: int | None) -> Tracer:
    first, last, step = slice(start, end).indices(x.shape[axis])
    return slice_axis(x, axis, first, len(range(first, last, step)))


@listed(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    x = traced(ary)
    at = normalize_axis_index(axis, x.ndim)
    if isinstance(indices_or_sections, (int, np.integer)) and x.shape[at] % indices_or_sections:
        raise errors.InvalidArgumentError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


@listed(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    x = traced(ary)
    if not x.ndim:
        raise errors.InvalidArgumentError("hsplit only works on arrays of 1 or more dimensions")
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@listed(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    x = traced(ary)
    if x.ndim < 2:
        raise errors.InvalidArgumentError("vsplit only works on arrays of 2 or more dimensions")
    return split(x, indices_or_sections, 0)


@listed(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    x = traced(ary)
    if x.ndim < 3:
        raise errors.InvalidArgumentError("dsplit only works on arrays of 3 or more dimensions")
    return split(x, indices_or_sections, 2)


if hasattr(np, "unstack"):

    @listed(np.unstack)
    def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tracer, ...]:
        x = traced(x)
        at = normalize_axis_index(axis, x.ndim)
        rows: Any = moveaxis(x, at, 0)
        return tuple([rows[k] for k in range(x.shape[at])])


# -- repetition


@listed(np.repeat, method="repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    x = traced(a)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    at = normalize_axis_index(axis, x.ndim)
    counts = np.atleast_1d(np.asarray(repeats))
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise errors.InvalidArgumentError("repeats may not contain negative values.")
    if len(counts) == 1:
        return _repeated(x, at, int(counts[0]))
    if len(counts) != x.shape[at]:
        raise errors.ShapeError(
            f"operands could not be broadcast together with shape ({x.shape[at]},) ({len(counts)},)"
        )
    rows = [_repeated(slice_axis(x, at, k, 1), at, int(n)) for k, n in enumerate(counts)]
    return concatenate(rows, at)


def _repeated(x: Tracer, axis: int, count: int) -> Tracer:
    stretched = insert_axes(x, (axis + 1,))
    shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    merged = (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :])
    return copy(reshape(broadcast(stretched, shape), merged), "C")


@listed(np.tile)
def tile(A: Any, reps: Any) -> Tracer:  # noqa: N803
    x = array_of(traced(A))
    counts = requested_shape(reps)
    ndim = max(len(counts), x.ndim)
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - x.ndim) + x.shape
    if any(count * extent < 0 for count, extent in zip(counts, shape, strict=True)):
        raise errors.InvalidArgumentError("negative dimensions are not allowed")
    counts = tuple([max(count, 0) for count in counts])
    x = reshape(x, tuple([part for extent in shape for part in (1, extent)]))
    pairs = list(zip(counts, shape, strict=True))
    stretched = broadcast(x, tuple([part for pair in pairs for part in pair]))
    tiled = reshape(stretched, tuple([count * extent for count, extent in pairs]))
    return copy(tiled, "K" if all(count == 1 for count in counts) else "C")


@listed(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    x = traced(a)
    if axis is None:
        return fresh(reshape(_rolled(reshape(x, (x.size,)), operator.index(shift), 0), x.shape))
    shifts, axes = np.broadcast_arrays(axis_tuple(shift), axis_tuple(axis))
    total: dict[int, int] = {}
    for by, at in zip(shifts.tolist(), axes.tolist(), strict=True):
        at = normalize_axis_index(at, x.ndim)
        total[at] = total.get(at, 0) + by
    for at, by in total.items():
        x = _rolled(x, by, at)
    return x if total else copy(x)


def _rolled(x: Tracer, shift: int, axis: int) -> Tracer:
    extent = x.shape[axis]
    by = shift % extent if extent else 0
    if not by:
        return copy(x)
    end = slice_axis(x, axis, extent - by, by)
    return concatenate([end, slice_axis(x, axis, 0, extent - by)], axis)


# -- differences


@listed(np.diff)
def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = _NOT_GIVEN, append: Any = _NOT_GIVEN
) -> Tracer:
    x = traced(a)
    if n == 0:
        return x
    if n < 0:
        raise errors.InvalidArgumentError(f"order must be non-negative but got {n!r}")
    if not x.ndim:
        raise errors.InvalidArgumentError("diff requires input that is at least one dimensional")
    at = normalize_axis_index(axis, x.ndim)
    ends = [part if part is _NOT_GIVEN else _end(part, x, at) for part in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not _NOT_GIVEN]
    if len(parts) > 1:
        x = concatenate_(parts, at)
    ufunc = np.not_equal if x.dtype == np.bool_ else np.subtract
    for _ in range(n):
        extent = max(x.shape[at] - 1, 0)
        later = slice_axis(x, at, 1, extent)
        x = apply(ufunc, (later, slice_axis(x, at, 0, extent)))
    return x


def _end(value: Any, x: Tracer, axis: int) -> Tracer:
    end = traced(value)
    return end if end.ndim else broadcast(end, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


@as_method("copy")
def copy_method(x: Tracer, order: str = "C") -> Tracer:
    return copy(x, order)


@listed(np.copy)
def copy_(a: Any, order: str = "K", subok: bool = False) -> Tracer:
    copied = copy_method(traced(a), order)
    copied._scalar = False
    return copied
