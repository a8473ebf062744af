"""Arrays made of numbers, lists and traced arrays, as np.array makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import INT64, SUPPORTED_TEXT, is_supported
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import constant_atom, filled_atom
from tinyfuse.trace.operations import cast, holds_tracer, is_traced, traced
from tinyfuse.trace.specs import NeedsValue
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.trace.weak_complex import TracedComplex


def joined_array(value: Any, dtype: Any = None) -> Tracer:
    """What np.array makes of nested lists and tuples with tracers in them: a new array.

    Raises InvalidArgumentError with numpy's words where the parts do not fit together,
    UnsupportedDtypeError where they make an array that tinyfuse does not compute with.
    """
    like = _as_numpy_joins(value, dtype)
    if like.dtype.kind in "iu":
        _require_fitting(value, like.dtype)
    builder = active()
    if not like.size:
        return Tracer(builder, filled_atom(like.shape, like.dtype.type(0)))
    pieces = [_flat(part, like.dtype) for part in _merged(list(_parts(value, like.ndim)))]
    if len(pieces) == 1:  # a copy, not a view
        joined = builder.emit(p.cast, pieces[0], dtype=like.dtype)
    else:
        joined = builder.emit(p.concat, *pieces, axis=0)
    return Tracer(builder, builder.emit(p.reshape, joined, shape=like.shape))


def _require_fitting(value: Any, dtype: np.dtype) -> None:
    """numpy refuses Python's numbers that do not fit into an array of integers."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if type(part) is TracedFloat:
            raise NeedsValue(part._index, "an array of integers")
        if type(part) is TracedInt and dtype != INT64:
            np.asarray(part)  # which raises, with the reason
        if isinstance(part, (list, tuple)):
            waiting.extend(part)


def assigned_value(value: Any, dtype: np.dtype) -> Tracer:
    """A value as it is put into an array of this dtype."""
    if type(value) in (int, float, bool):
        number: np.generic = np.full((), value, dtype)[()]  # type: ignore[assignment]
        return Tracer(active(), Literal(number))
    if isinstance(value, (list, tuple)):
        return joined_array(value, dtype) if holds_tracer(value) else traced(np.array(value, dtype))
    return cast(traced(value), dtype)


def _as_numpy_joins(value: Any, dtype: Any) -> np.ndarray:
    """An array of the type that the result has."""
    try:
        like = np.array(_with_real_arrays(value), dtype)
    except ValueError as error:
        raise errors.InvalidArgumentError(str(error)) from None
    if not is_supported(like.dtype):
        raise errors.UnsupportedDtypeError(
            f"the parts make an array of dtype {like.dtype}, which tinyfuse does not support: it "
            f"computes with {SUPPORTED_TEXT}"
        )
    return like


# Numbers of the same types as those that stand for Python's.
_LIKE = {TracedFloat: 0.0, TracedInt: 0, TracedComplex: 0j}


def _with_real_arrays(value: Any) -> Any:
    """The same lists, with arrays and scalars of the same types in place of tracers."""
    if type(value) in _LIKE:
        return _LIKE[type(value)]
    if type(value) is Tracer:
        return value.dtype.type(0) if value._scalar else np.zeros(value.shape, value.dtype)
    return (
        [_with_real_arrays(part) for part in value] if isinstance(value, (list, tuple)) else value
    )


def _parts(value: Any, depth: int) -> Iterator[Any]:
    """What the nested lists hold, in order: numbers and arrays."""
    if isinstance(value, (list, tuple)) and depth:
        for part in value:
            yield from _parts(part, depth - 1)
    else:
        yield value


def _merged(parts: Sequence[Any]) -> Iterator[Any]:
    """The parts, with each run of what is known while tracing as one list."""
    for is_run_of_tracers, run in groupby(parts, key=is_traced):
        if is_run_of_tracers:
            yield from run
        else:
            yield list(run)


def _flat(part: Any, dtype: np.dtype) -> Atom:
    """A tracer, or a list of what is known while tracing, as a 1-D atom."""
    if isinstance(part, list):
        arrays = [np.ravel(np.asarray(each).astype(dtype)) for each in part]
        return constant_atom(np.concatenate(arrays))
    builder, atom = active(), part._atom
    if type(atom) is Literal:
        return filled_atom((1,), atom.value.astype(dtype))
    flat = builder.emit(p.reshape, atom, shape=(int(np.prod(atom.shape)),))
    return flat if flat.dtype == dtype else builder.emit(p.cast, flat, dtype=dtype)
