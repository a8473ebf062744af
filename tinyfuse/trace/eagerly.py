"""numpy itself, where all that a function is given is known while tracing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyfuse.dtypes import is_supported
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import constant_atom
from tinyfuse.trace.elements import REFUSALS
from tinyfuse.trace.known import known_value
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt
from tinyfuse.trace.weak_complex import TracedComplex


class UnknownError(Exception):
    """Something is known at run time only."""


def real_value(x: Tracer) -> np.ndarray | np.generic:
    """A copy of the elements. Raises UnknownError."""
    value = known_value(x)
    if value is None:
        raise UnknownError
    return value[()] if x._scalar else np.array(value)


def as_numpy(value: Any, cells: list[tuple[Tracer, Any]] | None = None) -> Any:
    """The same containers with real arrays in place of traced ones. Raises UnknownError.

    cells: gets each tracer with the array that stands for it.
    """
    kind = type(value)
    if kind is Tracer:
        real = real_value(value)
        if cells is not None:
            cells.append((value, real))
        return real
    if kind in (TracedFloat, TracedInt, TracedComplex) or getattr(kind, "_takes_over", False):
        raise UnknownError
    if kind in (list, tuple):
        return kind([as_numpy(part, cells) for part in value])
    if kind is dict:
        return {key: as_numpy(part, cells) for key, part in value.items()}
    if kind is slice:
        return slice(*[as_numpy(part, cells) for part in (value.start, value.stop, value.step)])
    return value


def as_traced_values(value: Any) -> Any:
    """What numpy has returned, with traced arrays in place of real ones that tinyfuse supports."""
    if type(value) is np.ndarray and is_supported(value.dtype):
        return Tracer(active(), constant_atom(value))
    if type(value) in (list, tuple):
        return type(value)([as_traced_values(part) for part in value])
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make([as_traced_values(part) for part in value])
    return value


def tried(
    implementation: Callable[..., Any],
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """The implementation of a function of numpy's; where it refuses, numpy itself if it can."""
    try:
        return implementation(*args, **kwargs)
    except REFUSALS as error:
        if error.located:
            raise
        return eagerly(error, function, args, kwargs)


def eagerly(
    error: Exception, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
) -> Any:
    """numpy's result where all operands are known; else raises the error.

    What numpy writes into the operands is put into them.
    """
    cells: list[tuple[Tracer, Any]] = []
    try:
        real_args, real_kwargs = as_numpy((tuple(args), dict(kwargs)), cells)
    except UnknownError:
        raise error from None
    before = [np.array(array) for _, array in cells]
    result = function(*real_args, **real_kwargs)
    for (cell, array), old in zip(cells, before, strict=True):
        if type(array) is np.ndarray and array.tobytes() != old.tobytes():
            cell._assign(Tracer(active(), constant_atom(array)))
    for cell, array in cells:
        if result is array:
            return cell
    return as_traced_values(result)
