"""Arrays like others, and questions about dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import SUPPORTED_TEXT, is_complex, is_supported
from tinyfuse.trace.axes import requested_shape
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import as_method, listed, refused
from tinyfuse.trace.elementwise import NUMBERS
from tinyfuse.trace.operations import cast, copy, filled, lying, stretch_atom, traced
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat


def supported_dtype(dtype: Any) -> np.dtype:
    """Raises UnsupportedDtypeError for what tinyfuse does not compute with."""
    found = np.dtype(dtype)
    if not is_supported(found):
        raise errors.UnsupportedDtypeError(
            f"the dtype {found} is not supported; supported are {SUPPORTED_TEXT}"
        )
    return found


def is_number(value: Any) -> bool:
    """Whether a value is a number that is known while tracing."""
    return type(value) in NUMBERS or issubclass(type(value), np.generic)


# -- arrays like others


def _like(prototype: Any, value: Any, dtype: Any, shape: Any, order: str) -> Tracer:
    x = traced(prototype)
    to = x.dtype if dtype is None else supported_dtype(dtype)
    new_shape = x.shape if shape is None else requested_shape(shape)
    if is_number(value):
        number: np.generic = np.full((), value, to)[()]  # type: ignore[assignment]
        return lying(filled(new_shape, number), order, x)
    source = cast(traced(value), to)
    return lying(copy(Tracer(active(), stretch_atom(source._atom, new_shape))), order, x)


def _listed_like(function: Callable[..., Any], value: int) -> None:
    @listed(function)
    def like(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Tracer:
        return _like(a, value, dtype, shape, order)


_listed_like(np.zeros_like, 0)
_listed_like(np.empty_like, 0)
_listed_like(np.ones_like, 1)


@listed(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    return _like(a, fill_value, dtype, shape, order)


# -- questions that need no elements


@listed(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(*[_for_result_type(value) for value in arrays_and_dtypes])


def _for_result_type(value: Any) -> Any:
    if type(value) is TracedFloat:
        return 1.0
    return value.dtype if type(value) is Tracer else value


@listed(np.can_cast)
def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    source, target = _for_result_type(from_), _for_result_type(to)
    return np.can_cast(source, target, casting)  # type: ignore[arg-type]


@listed(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*[np.empty(0, traced(array).dtype) for array in arrays])


@listed(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> np.dtype:
    """Of an array its dtype; of a number, what its value needs."""
    x = traced(a)
    if x.ndim:
        return x.dtype
    raise errors.NumberConversionError(
        "np.min_scalar_type of a number needs its value, which is known only when the compiled "
        "function runs; use x.dtype"
    )


@listed(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return is_complex(traced(x).dtype)


@listed(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return not iscomplexobj(x)


_DATA_DEPENDENT: list[tuple[Callable[..., Any], str]] = [
    (np.nonzero, "use np.where(mask, a, b), or np.count_nonzero(mask) for their number"),
    (np.flatnonzero, "use np.where(mask, a, b), or np.count_nonzero(mask) for their number"),
    (np.argwhere, "use np.where(mask, a, b), or np.count_nonzero(mask) for their number"),
    (np.unique, "write x = np.sort(x), and mark what is new by x[1:] != x[:-1]"),
]
for _function, _remedy in _DATA_DEPENDENT:
    _words = f"np.{_function.__name__} has a result whose shape depends on data: {_remedy}"
    refused(_function, errors.DataDependentShapeError, _words)


@as_method("nonzero")
def nonzero(x: Tracer) -> None:
    raise errors.DataDependentShapeError(
        "x.nonzero() has a result whose shape depends on data: use np.where(mask, a, b)"
    )
