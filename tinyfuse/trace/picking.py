"""Functions that take elements from places and put them there: np.take, np.put and their like."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import INT64
from tinyfuse.trace.arrays import assigned_value, joined_array
from tinyfuse.trace.axes import normalize_axis_index
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import positions
from tinyfuse.trace.dispatch import as_method, listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.known import known_value
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operations import (
    cast,
    copy,
    holds_tracer,
    lying,
    reshape,
    to_bool,
    traced,
)
from tinyfuse.trace.tracer import Tracer

_MODES = ("raise", "wrap", "clip")


def as_tracer(value: Any) -> Tracer:
    """As np.asarray, with lists of traced values joined."""
    return (
        joined_array(value)
        if holds_tracer(value) and type(value) in (list, tuple)
        else traced(value)
    )


# -- positions in the modes of np.take


def in_mode(indices: Any, extent: int, mode: str, rule: str = "same_kind") -> Any:
    """Positions that count from the start in the modes wrap and clip.

    rule: by which numpy converts arrays of positions to int64.
    """
    if mode not in _MODES:
        raise errors.InvalidArgumentError(
            f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')"
        )
    index = as_tracer(indices)
    fits = np.can_cast(index.dtype, INT64, rule)  # type: ignore[arg-type]
    if not fits and (index.size or hasattr(indices, "dtype")):
        raise errors.DtypeError(
            f"Cannot cast array data from {index.dtype!r} to {INT64!r} according to the rule "
            f"'{rule}'"
        )
    index = cast(index, INT64)
    if mode == "wrap":
        return apply(np.remainder, (index, extent))
    if mode == "clip":
        return apply(np.minimum, (apply(np.maximum, (index, 0)), extent - 1))
    return index


# -- take and put


@listed(np.take, method="take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tracer:
    x = as_tracer(a)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    if not x.ndim:
        x = reshape(x, (1,))
    at = normalize_axis_index(operator.index(axis), x.ndim)
    index = in_mode(indices, x.shape[at], mode)
    taken: Tracer = x[(*(slice(None),) * at, index)]  # type: ignore[index]
    if type(taken) is not Tracer:
        return taken
    return lying(taken if index.shape else copy(taken), "C", x)


@listed(np.put, method="put")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    target = written_array(a, "np.put")
    rule = "safe" if isinstance(ind, np.ndarray) else "same_kind"  # scalars are Python integers
    index = in_mode(ind, target.size, mode, rule)
    index = reshape(index, (index.size,))
    if index.size and not target.size:
        raise errors.IndexingError("cannot replace elements of an empty array")
    values = assigned_value(v, target.dtype)
    flat = _flat(target)
    if index.size and values.size:
        flat[index] = repeated(values, index.size)
        target._assign(reshape(flat, target.shape))


def _flat(x: Tracer) -> Tracer:
    """All elements along one axis, as an array of its own."""
    return copy(reshape(x, (x.size,)))


def repeated(values: Tracer, count: int) -> Tracer:
    """As many values, from the first again after the last."""
    if values.size == 1:
        return reshape(values, ())
    flat = reshape(values, (values.size,))
    if values.size >= count:
        return flat[:count]  # type: ignore[index]
    at = apply(np.remainder, (Tracer(active(), positions(count)), values.size))
    return flat[at]  # type: ignore[index]


def written_array(a: Any, name: str) -> Tracer:
    if type(a) is Tracer and not a._scalar:
        return a
    if isinstance(a, np.ndarray):
        raise errors.InPlaceWriteError(
            f"{name} writes a traced value into an array that is no traced one: make it with "
            "np.zeros or np.array in the traced function, or pass it as an argument"
        )
    raise errors.ArgumentTypeError(f"argument 1 must be numpy.ndarray, not {type(a).__name__}")


@listed(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    target = written_array(a, "np.putmask")
    _require_safe(values, target)
    chosen = to_bool(as_tracer(mask))
    if chosen.size != target.size:
        raise errors.InvalidArgumentError("putmask: mask and data must be the same size")
    new = assigned_value(values, target.dtype)
    if not new.size:
        return
    everywhere = reshape(repeated(new, target.size), target.shape if new.size > 1 else ())
    atoms = reshape(chosen, target.shape)._atom, everywhere._atom, target._atom
    target._assign(Tracer(active(), select_atom(*atoms, target.shape)))


def _require_safe(values: Any, target: Tracer) -> None:
    """numpy converts numbers and lists as they come, arrays only where that changes no value."""
    if isinstance(values, np.ndarray) and not np.can_cast(values.dtype, target.dtype):
        raise errors.DtypeError(
            f"Cannot cast array data from {values.dtype!r} to {target.dtype!r} according to the "
            "rule 'safe'"
        )


@listed(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    target = written_array(arr, "np.place")
    _require_safe(vals, target)
    chosen, values = to_bool(as_tracer(mask)), assigned_value(vals, target.dtype)
    if chosen.size != target.size:
        raise errors.InvalidArgumentError("place: mask and data must be the same size")
    known = known_value(chosen)
    if values.size == 1:
        putmask(target, chosen, values)
    elif known is not None:
        put(target, np.flatnonzero(known), values)
    else:
        raise errors.DataDependentShapeError(
            "np.place of several values puts them where the mask says, so that each place depends "
            "on those before: use np.where(mask, a, b), or one value"
        )


@listed(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    x, chosen = as_tracer(arr), to_bool(as_tracer(condition))
    return reshape(x, (x.size,))[reshape(chosen, (chosen.size,))]  # type: ignore[index]


@listed(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    x, chosen = as_tracer(a), to_bool(as_tracer(condition))
    if chosen.ndim != 1:
        raise errors.InvalidArgumentError("condition must be a 1-d array")
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    at = normalize_axis_index(operator.index(axis), x.ndim)
    known = known_value(chosen)
    if known is not None:
        return take(x, np.flatnonzero(known), at)
    if chosen.size > x.shape[at]:
        raise errors.UnsupportedArgumentError(
            f"np.compress: the condition has {chosen.size} elements, the axis {x.shape[at]}: write "
            f"condition[:{x.shape[at]}]"
        )
    before = (slice(None),) * at
    return x[(*before, slice(chosen.size))][(*before, chosen)]  # type: ignore[index]


@as_method("compress")
def compress_method(x: Tracer, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return compress(condition, x, axis)


# -- along an axis


@listed(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Tracer:
    x, index = as_tracer(arr), as_tracer(indices)
    if axis is None:
        if index.ndim != 1:
            raise errors.InvalidArgumentError(
                "when axis=None, `indices` must have a single dimension."
            )
        x, axis = reshape(x, (x.size,)), 0
    return x[_along_axis(x, index, axis)]  # type: ignore[index]


@listed(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    target, index = written_array(arr, "np.put_along_axis"), as_tracer(indices)
    if axis is None:
        if index.ndim != 1:
            raise errors.InvalidArgumentError(
                "when axis=None, `indices` must have a single dimension."
            )
        flat = _flat(target)
        flat[index] = values
        target._assign(reshape(flat, target.shape))
    else:
        target[_along_axis(target, index, axis)] = values


def _along_axis(x: Tracer, index: Tracer, axis: Any) -> tuple[Any, ...]:
    """An index for each axis: these along one, all positions along the others."""
    at = normalize_axis_index(operator.index(axis), x.ndim)
    if index.dtype.kind not in "iu":
        raise errors.IndexingError("`indices` must be an integer array")
    if index.ndim != x.ndim:
        raise errors.InvalidArgumentError(
            "`indices` and `arr` must have the same number of dimensions"
        )
    return tuple(
        [
            index if each == at else _positions_along(each, extent, x.ndim)
            for each, extent in enumerate(x.shape)
        ]
    )


def _positions_along(axis: int, extent: int, ndim: int) -> Tracer:
    shape = tuple([extent if at == axis else 1 for at in range(ndim)])
    return reshape(Tracer(active(), positions(extent)), shape)
