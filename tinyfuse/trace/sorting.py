"""Sorting: elements in order, the positions that put them in order, by one key or several."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import INT64
from tinyfuse.graph import primitives as p
from tinyfuse.graph.shapes import MOST_POSITIONS
from tinyfuse.trace.axes import normalize_axis_index
from tinyfuse.trace.cells import require_writable, write
from tinyfuse.trace.dispatch import as_method, listed
from tinyfuse.trace.operations import cast, filled, lying, reshape, result, scalar_copy, traced
from tinyfuse.trace.picking import as_tracer, take_along_axis
from tinyfuse.trace.tracer import Tracer

_READ_ONLY = "sort array is read-only"
# numpy goes by the first letter.
_KINDS = {"q": "quicksort", "h": "heapsort", "m": "stable", "s": "stable"}


def _kind(kind: Any, order: Any, stable: Any) -> str:
    """Which of its algorithms numpy uses. Raises what numpy raises."""
    given = {} if stable is None else {"stable": stable}
    np.sort(np.zeros(0), kind=kind, order=order, **given)
    if kind is None:
        return "stable" if stable else "quicksort"
    return _KINDS[str(kind)[0].lower()]


def sorted_along(x: Tracer, axis: int, kind: str = "quicksort") -> Tracer:
    """The elements in order along an axis, not negative."""
    return result(x, p.sort, axis=axis, kind=kind)


@listed(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    x = traced(a)
    if axis is None:
        x, axis = reshape(x, (x.size,)), -1
    at = normalize_axis_index(operator.index(axis), x.ndim)
    return sorted_along(x, at, _kind(kind, order, stable))


@listed(np.sort_complex)
def sort_complex(a: Any) -> Tracer:
    x = sort(a)
    return cast(x, np.sort_complex(np.zeros(0, x.dtype)).dtype)


@as_method("sort")
def sort_in_place(
    x: Tracer, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    at = normalize_axis_index(operator.index(axis), x.ndim)
    require_writable(x, _READ_ONLY)
    write(x, sorted_along(x, at, _kind(kind, order, stable))._atom, _READ_ONLY)


@listed(np.argsort, method="argsort")
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tracer:
    x = traced(a)
    if axis is None or not x.ndim:
        x = reshape(x, (x.size,))
    at = normalize_axis_index(-1 if axis is None else operator.index(axis), x.ndim)
    return positions_along(x, at, _kind(kind, order, stable))


def positions_along(x: Tracer, axis: int, kind: str = "quicksort") -> Tracer:
    if x.itemsize <= 4 and x.shape[axis] >= MOST_POSITIONS:
        raise errors.UnsupportedArgumentError(
            f"np.argsort of {x.shape[axis]} elements of {x.dtype} is not supported: convert them "
            "before, with astype(np.float64)"
        )
    return result(x, p.argsort, axis=axis, kind=kind)


@listed(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> Tracer:
    """By the last key; what is equal in it by the one before, and so on."""
    parts = [as_tracer(each) for each in keys]
    if not parts:
        raise errors.ArgumentTypeError("need sequence of keys with len > 0 in lexsort")
    if any(part.shape != parts[0].shape for part in parts):
        raise errors.InvalidArgumentError("all keys need to be the same shape")
    if not parts[0].ndim:
        return scalar_copy(filled((), INT64.type(0)))
    at = normalize_axis_index(operator.index(axis), parts[0].ndim)
    found = positions_along(parts[0], at, "stable")
    for part in parts[1:]:
        order = positions_along(take_along_axis(part, found, at), at, "stable")
        found = take_along_axis(found, order, at)
    return lying(found, "C", parts[0])


# -- partitions: an order that parts at every place is one of those that numpy leaves open


def _parted_axis(x: Tracer, kth: Any, axis: Any, kind: str, order: Any) -> tuple[Tracer, int]:
    """What is sorted, along which axis. Raises what numpy raises."""
    if axis is None:
        x, axis = reshape(x, (x.size,)), -1
    at = normalize_axis_index(operator.index(axis), x.ndim)
    places = [operator.index(each) for each in np.atleast_1d(np.asarray(kth))]
    if x.shape[at] or not x.size:
        options: Any = {"kind": kind, "order": order}
        np.partition(np.broadcast_to(np.int8(0), x.shape[at]), places, **options)
    return x, at


@listed(np.partition)
def partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Tracer:
    return sorted_along(*_parted_axis(traced(a), kth, axis, kind, order))


@listed(np.argpartition, method="argpartition")
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Tracer:
    return positions_along(*_parted_axis(traced(a), kth, axis, kind, order))


@as_method("partition")
def partition_in_place(
    x: Tracer, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> None:
    require_writable(x, _READ_ONLY)
    write(x, partition(x, kth, axis, kind, order)._atom, _READ_ONLY)
