"""Choices among arrays, positions as numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL
from tinyfuse.graph.ir import Literal
from tinyfuse.trace.arrays import assigned_value
from tinyfuse.trace.builder import active
from tinyfuse.trace.creation import supported_dtype
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import NUMBERS, apply
from tinyfuse.trace.known import known_value
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operations import (
    broadcast_shape,
    cast,
    copy,
    lying,
    reshape,
    size_of,
    stretch_atom,
    traced,
)
from tinyfuse.trace.picking import as_tracer, in_mode
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.promotion import converted_number
from tinyfuse.trace.selection import converted, promoting, where
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat

# -- choices among several arrays


@listed(np.choose, method="choose")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Tracer:
    values = [
        each if type(each) in (*NUMBERS, TracedFloat) else as_tracer(each) for each in choices
    ]
    if not values:
        raise errors.InvalidArgumentError("need at least one array to choose from")
    to = supported_dtype(np.result_type(*[promoting(each) for each in values]))
    arrays = [converted(each, to) for each in values]
    index = in_mode(a, len(arrays), mode, "safe")
    shape = broadcast_shape([index, *arrays])
    if mode == "raise" and size_of(shape):
        _require_choices(index, len(arrays))
    chosen = arrays[-1]._atom
    for at in range(len(arrays) - 2, -1, -1):
        here = apply(np.equal, (index, at))
        chosen = select_atom(here._atom, arrays[at]._atom, chosen, shape)
    if len(arrays) == 1:
        return copy(Tracer(active(), stretch_atom(chosen, shape)))
    return lying(Tracer(active(), chosen, not shape), "C", index)


def _require_choices(index: Tracer, count: int) -> None:
    words = "invalid entry in choice array"
    known = known_value(index)
    if known is None:
        below, above = apply(np.less, (index, 0)), apply(np.greater_equal, (index, count))
        outside = apply(np.logical_or, (below, above))
        check_none(outside._atom, errors.InvalidArgumentError, words)
    elif (known < 0).any() or (known >= count).any():
        raise errors.InvalidArgumentError(words)


@listed(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tracer:
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices):
        raise errors.InvalidArgumentError("list of cases must be same length as list of conditions")
    if not conditions:
        raise errors.InvalidArgumentError("select with an empty condition list is not possible")
    to = np.result_type(*[promoting(each) for each in (*choices, default)])
    tests = [as_tracer(each) for each in conditions]
    for at, test in enumerate(tests):
        if test.dtype != BOOL:
            raise errors.ArgumentTypeError(
                f"invalid entry {at} in condlist: should be boolean ndarray"
            )
    shape = broadcast_shape([*tests, *[traced(each) for each in choices]])
    chosen = _everywhere(default, to)
    for test, choice in zip(tests[::-1], choices[::-1], strict=True):
        chosen = where(test, _as(choice, to), chosen)
    return lying(Tracer(active(), stretch_atom(chosen._atom, shape)), "C", chosen)


def _everywhere(value: Any, dtype: np.dtype) -> Tracer:
    """The default as numpy fills an array with it: a number wraps around where it does not fit."""
    if type(value) in (int, float, bool):
        return Tracer(active(), Literal(converted_number(value, dtype)))
    return cast(traced(value), dtype)


def _as(value: Any, dtype: np.dtype) -> Tracer:
    return (
        assigned_value(value, dtype)
        if type(value) in (int, float, bool)
        else cast(traced(value), dtype)
    )


# -- positions as numbers


@listed(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tracer, ...]:
    extents = [operator.index(each) for each in (shape if np.ndim(shape) else (shape,))]
    index = in_mode(indices, 0, "raise")
    size = int(np.prod(extents, dtype=np.int64))
    low, high = apply(np.less, (index, 0)), apply(np.greater_equal, (index, size))
    check_none(
        apply(np.logical_or, (low, high))._atom,
        errors.InvalidArgumentError,
        f"index is out of bounds for array with size {size}",
        index._atom,
        lambda values: _words_out_of_size(values, size),
    )
    found = []
    for extent in extents[::-1] if order == "C" else extents:
        found.append(apply(np.remainder, (index, extent)))
        index = apply(np.floor_divide, (index, extent))
    return tuple(found[::-1] if order == "C" else found)


def _words_out_of_size(values: np.ndarray, size: int) -> str:
    outside = values[(values < 0) | (values >= size)]
    return f"index {outside.flat[0]} is out of bounds for array with size {size}"


@listed(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Tracer:
    extents = [operator.index(each) for each in (dims if np.ndim(dims) else (dims,))]
    modes = [mode] * len(extents) if isinstance(mode, str) else list(mode)
    parts = list(multi_index)
    if len(parts) != len(extents):
        raise errors.InvalidArgumentError(
            f"parameter multi_index must be a sequence of length {len(extents)}"
        )
    shape = np.broadcast_shapes(*[as_tracer(part).shape for part in parts])
    flat: Any = None
    triples = list(zip(parts, extents, modes, strict=True))
    for part, extent, each in triples if order == "C" else triples[::-1]:
        index = in_mode(part, extent, each)
        if each == "raise" and size_of(shape):
            _require_coordinates(index, extent)
        flat = index if flat is None else apply(np.add, (apply(np.multiply, (flat, extent)), index))
    result: Tracer = flat
    return result


def _require_coordinates(index: Tracer, extent: int) -> None:
    low, high = apply(np.less, (index, 0)), apply(np.greater_equal, (index, extent))
    words = "invalid entry in coordinates array"
    check_none(apply(np.logical_or, (low, high))._atom, errors.InvalidArgumentError, words)


@listed(np.ix_)
def ix_(*args: Any) -> tuple[Tracer, ...]:
    count = len(args)
    found = []
    for at, part in enumerate(args):
        x = as_tracer(part)
        if x.ndim != 1:
            raise errors.InvalidArgumentError("Cross index must be 1 dimensional")
        if x.dtype == BOOL:
            x = _true_positions(x)
        found.append(reshape(x, (*(1,) * at, x.size, *(1,) * (count - at - 1))))
    return tuple(found)


def _true_positions(x: Tracer) -> Tracer:
    known = known_value(x)
    if known is None:
        raise errors.DataDependentShapeError(
            "np.ix_ of a traced mask has a shape that depends on data: use np.where(mask, a, b)"
        )
    return traced(np.flatnonzero(known))
