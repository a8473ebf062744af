"""NaN and infinities: what stands for them, comparisons within bounds, functions around zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, is_complex
from tinyfuse.trace.assignment import copyto
from tinyfuse.trace.dispatch import listed, refused
from tinyfuse.trace.operations import copy as copied
from tinyfuse.trace.operations import filled, scalar_copy
from tinyfuse.trace.picking import as_tracer
from tinyfuse.trace.tracer import Tracer

# -- other values in place of NaN and infinities


@listed(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tracer:
    """In place where nothing is to be copied."""
    array = as_tracer(x)
    made = copied(array) if copy or array._scalar else array
    made._scalar = False
    if array.dtype.kind == "f":
        limits = np.finfo(array.dtype)
        high = limits.max if posinf is None else posinf
        low = limits.min if neginf is None else neginf
        masks = np.isnan(array), isposinf(array), isneginf(array)
        for value, mask in zip((nan, high, low), masks, strict=True):
            copyto(made, value, where=mask)
    return made if made.ndim else scalar_copy(made)


@listed(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    return np.equal(as_tracer(x), np.inf)


@listed(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    return np.equal(as_tracer(x), -np.inf)


# -- comparisons


@listed(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether `|a - b| <= atol + rtol * |b|`, and both are finite or equal."""
    x: Any
    y: Any
    x, y = [value if type(value) in (int, float) else as_tracer(value) for value in (a, b)]
    if type(y) is Tracer:
        y = y.astype(np.result_type(y.dtype, 1.0), copy=False)
    elif type(y) is int:
        y = float(y)
    near = np.less_equal(abs(x - y), atol + rtol * abs(y)) & np.isfinite(y) | (x == y)
    return near | np.isnan(x) & np.isnan(y) if equal_nan else near


def _refused(function: Any, instead: str) -> None:
    words = (
        f"np.{function.__name__} returns Python's True or False, which is known only when the "
        f"compiled function runs; use {instead}"
    )
    refused(function, errors.BoolConversionError, words)


_refused(np.allclose, "np.isclose(a, b).all()")
_refused(np.array_equal, "(a == b).all()")
_refused(np.array_equiv, "(a == b).all()")


# -- real numbers


@listed(np.isreal)
def isreal(x: Any) -> Tracer:
    if is_complex(as_tracer(x).dtype):
        return as_tracer(x).imag == 0
    return _everywhere(x, True)


@listed(np.iscomplex)
def iscomplex(x: Any) -> Tracer:
    if is_complex(as_tracer(x).dtype):
        return as_tracer(x).imag != 0
    return _everywhere(x, False)


def _everywhere(x: Any, value: bool) -> Tracer:
    array = as_tracer(x)
    answer = filled(array.shape, BOOL.type(value))
    answer._scalar = not array.shape
    return answer


@listed(np.real_if_close)
def real_if_close(a: Any, tol: Any = 100) -> Tracer:
    x = as_tracer(a)
    if is_complex(x.dtype):
        raise errors.DataDependentShapeError(
            "np.real_if_close has a dtype that depends on data: write x.real"
        )
    return x


@listed(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """Of real numbers 0 or pi, by the sign."""
    x = as_tracer(z)
    is_real = not is_complex(x.dtype)
    angles = np.arctan2(0, x) if is_real else np.arctan2(x.imag, x.real)
    return angles * (180 / np.pi) if deg else angles


@listed(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    whole: Any = np.trunc(as_tracer(x))
    return whole if out is None else whole.astype(out.dtype)


# -- around zero


@listed(np.sinc)
def sinc(x: Any) -> Any:
    """`sin(pi x) / (pi x)`, which is 1 at 0."""
    given: Any = as_tracer(x)
    scaled = np.pi * given
    y = np.where(scaled, scaled, np.finfo(scaled.dtype).eps)
    return np.sin(y) / y
