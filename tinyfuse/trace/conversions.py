"""What Python and numpy ask traced arrays for, answered where it is known while tracing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse.trace.eagerly import eagerly
from tinyfuse.trace.known import known_value
from tinyfuse.trace.operation import operate
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer

_CONVERSIONS = (
    *("__bool__", "__int__", "__float__", "__complex__", "__index__", "__round__", "__format__"),
    *("__hash__", "__contains__", "__reduce_ex__", "item", "tolist"),
)


def _answered(name: str) -> None:
    refuse = getattr(Tracer, name)

    @functools.wraps(refuse)
    def convert(self: Tracer, *args: Any) -> Any:
        value = known_value(self)
        if value is None:
            return refuse(self, *args)
        return getattr(value[()] if self._scalar else value, name)(*args)

    setattr(Tracer, name, convert)


for _name in _CONVERSIONS:
    _answered(_name)


def _array_namespace(self: Tracer, *, api_version: str | None = None) -> Any:
    return NUMPY


Tracer.__array_namespace__ = _array_namespace  # type: ignore[method-assign]

_refuse_array: Callable[..., Any] = Tracer.__array__


def _array(self: Tracer, dtype: Any = None, copy: Any = None) -> np.ndarray:
    """A real array, not to be written: that would be lost."""
    value = known_value(self)
    if value is None:
        return _refuse_array(self, dtype, copy)
    return np.array(value, dtype) if copy else np.asarray(value, dtype)


Tracer.__array__ = _array  # type: ignore[assignment,method-assign]

_refuse_attribute: Callable[..., Any] = Tracer.__getattr__


def _attribute(self: Tracer, name: str) -> Any:
    """numpy's own attributes and methods of arrays that are known."""
    if name.startswith("_") or not hasattr(np.ndarray, name) or known_value(self) is None:
        return _refuse_attribute(self, name)
    found = getattr(known_value(self), name)
    if not callable(found):
        return found

    def call(*args: Any, **kwargs: Any) -> Any:
        def method(array: Any, *rest: Any, **options: Any) -> Any:
            return getattr(array, name)(*rest, **options)

        return operate(eagerly, TypeError(name), method, (self, *args), kwargs)

    return call


Tracer.__getattr__ = _attribute  # type: ignore[method-assign]
