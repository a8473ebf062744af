"""Arrays that a traced function creates: of one value, or of what it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import FLOAT64, is_supported
from tinyfuse.graph.ir import Literal
from tinyfuse.trace import creation
from tinyfuse.trace.arrays import joined_array
from tinyfuse.trace.axes import requested_shape
from tinyfuse.trace.builder import active
from tinyfuse.trace.constants import constant_atom, filled_atom
from tinyfuse.trace.dispatch import FUNCTIONS
from tinyfuse.trace.operations import (
    Shape,
    cast,
    copy,
    holds_tracer,
    in_order,
    insert_axes,
    is_traced,
    stretch_atom,
    traced,
    transpose,
)
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.specs import NeedsValue
from tinyfuse.trace.stand_ins import stands_in_for
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt

# -- one value everywhere


def _filled(shape: Any, value: Any, dtype: Any, order: Any) -> Any:
    to = np.dtype(dtype)
    extents = requested_shape(shape)
    if not is_supported(to) or min(extents, default=0) < 0:
        return NotImplemented
    return _ordered(extents, order, lambda own: Tracer(active(), filled_atom(own, to.type(value))))


def _ordered(shape: Shape, order: Any, create: Callable[[Shape], Tracer]) -> Tracer:
    """In Fortran's order as the transpose of an array in C's."""
    if order not in ("F", "f") or len(shape) < 2:
        return create(shape)
    return transpose(create(shape[::-1]), range(len(shape))[::-1])


def _of_value(function: Callable[..., Any], value: int) -> None:
    @stands_in_for(function)
    def create(
        shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
    ) -> Any:
        return _filled(shape, value, float if dtype is None else dtype, order)


_of_value(np.zeros, 0)
_of_value(np.empty, 0)
_of_value(np.ones, 1)


@stands_in_for(np.full)
def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    if holds_tracer(fill_value):
        value = array(fill_value)
        if dtype is not None:
            value = cast(value, creation.supported_dtype(dtype))
        extents = requested_shape(shape)
        atom = stretch_atom(value._atom, extents)
        if type(atom) is Literal:
            return Tracer(active(), filled_atom(extents, atom.value))
        return copy(Tracer(active(), atom))
    if np.ndim(fill_value):
        return NotImplemented
    value = np.full((), fill_value, dtype)
    return _filled(shape, value[()], value.dtype, order)


def _like(function: Callable[..., Any]) -> None:
    implementation = FUNCTIONS[function]

    @stands_in_for(function)
    def create(a: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced(a):
            return implementation(a, *args, **kwargs)
        like = np.asarray(a)
        if not is_supported(like.dtype) or type(a) not in (
            np.ndarray,
            list,
            tuple,
            int,
            float,
            bool,
        ):
            return NotImplemented
        prototype = Tracer(active(), filled_atom(like.shape, like.dtype.type(0)))
        return implementation(prototype, *args, **kwargs)


for _function in (np.zeros_like, np.ones_like, np.empty_like, np.full_like):
    _like(_function)


# -- of what is given


def _converted(value: Any, dtype: Any) -> Any:
    """A traced value, or one with traced values in it, as a new array or as it is."""
    if type(value) is TracedFloat:
        return _of_float(value, dtype)
    if type(value) is TracedInt and dtype is None:
        return _own(traced(value), value, "K")
    if type(value) is Tracer:
        to = value.dtype if dtype is None else creation.supported_dtype(dtype)
        return cast(value, to)
    if holds_tracer(value):
        return joined_array(value, dtype)
    made = np.array(value, dtype)
    if not is_supported(made.dtype) or (
        isinstance(value, np.ndarray) and type(value) is not np.ndarray
    ):
        return NotImplemented
    return Tracer(active(), constant_atom(made))


def _of_float(value: TracedFloat, dtype: Any) -> Tracer:
    """A new array without axes.

    Raises NeedsValue for integers: what does not fit into them, numpy refuses by its value.
    """
    to = FLOAT64 if dtype is None else creation.supported_dtype(dtype)
    if to.kind in "iu":
        raise NeedsValue(value._index, "an array of integers")
    made = traced(value)
    made = copy(made) if made.dtype == to else cast(made, to)
    made._scalar = False
    return made


def _own(value: Tracer, given: Any, order: str) -> Tracer:
    """As an array that shares nothing with what is given."""
    if order != "K" or value is given or value._atom is getattr(given, "_atom", None):
        value = copy(value, order)
    value._scalar = False
    return value


@stands_in_for(np.array)
def array(
    object: Any,  # noqa: A002
    dtype: Any = None,
    *,
    copy: Any = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    made = _converted(object, dtype)
    if made is NotImplemented:
        return made
    if copy or made._scalar:
        made = _own(made, object, order)
    elif copy is False and made is not object:
        raise errors.InvalidArgumentError(
            "Unable to avoid copy while creating an array as requested."
        )
    return insert_axes(made, range(ndmin - made.ndim)) if ndmin > made.ndim else made


@stands_in_for(np.asarray, np.asanyarray)
def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Any:
    if copy:
        return array(a, dtype, order=order or "K")
    made = array(a, dtype, copy=copy)
    return made if made is NotImplemented else in_order(made, order)


@stands_in_for(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    made = asarray(a, dtype, order)
    if made is NotImplemented or made.dtype.kind != "f":
        return made
    check_none(
        (~np.isfinite(made))._atom,
        errors.InvalidArgumentError,
        "array must not contain infs or NaNs",
    )
    return made


@stands_in_for(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    made = array(a, dtype, copy=None)
    if made is NotImplemented:
        return made
    return in_order(made, "C") if made.ndim else insert_axes(made, (0,))


@stands_in_for(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    made = array(a, dtype, copy=None)
    if made is NotImplemented:
        return made
    return in_order(made, "F") if made.ndim else insert_axes(made, (0,))


@stands_in_for(np.copy)
def copy_(a: Any, order: str = "K", subok: bool = False) -> Any:
    if type(a) is Tracer:
        return FUNCTIONS[np.copy](a, order)
    return array(a)
