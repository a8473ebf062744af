"""Phases, the order of spectra, functions in pieces: the steps of numpy's own functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.axes import axis_tuple
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.joining import roll
from tinyfuse.trace.operations import holds_tracer
from tinyfuse.trace.picking import as_tracer
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer


@listed(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    x: Any = as_tracer(p)
    step: Any = np.diff(x, axis=axis)
    dtype = np.result_type(step, period)
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
        ambiguous = rest == 0
    else:
        high, ambiguous = period / 2, True
    change = np.mod(step + high, period) - high
    if ambiguous:
        np.copyto(change, high, where=(change == -high) & (step > 0))
    correction = change - step
    limit = period / 2 if discont is None else discont
    np.copyto(correction, 0, where=abs(step) < limit)
    later: list[Any] = [slice(None)] * x.ndim
    later[axis] = slice(1, None)
    unwrapped = NUMPY.array(x, copy=True, dtype=dtype)
    unwrapped[tuple(later)] = x[tuple(later)] + correction.cumsum(axis)
    return unwrapped


# -- spectra


@listed(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Tracer:
    return _centred(as_tracer(x), axes, lambda extent: extent // 2)


@listed(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Tracer:
    return _centred(as_tracer(x), axes, lambda extent: -(extent // 2))


def _centred(x: Tracer, axes: Any, shift: Callable[[int], int]) -> Tracer:
    along = tuple(range(x.ndim)) if axes is None else axis_tuple(axes)
    return roll(x, tuple([shift(x.shape[axis]) for axis in along]), along)


# -- pieces


@listed(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """A function is given what its condition chooses, `x[condition]`."""
    array: Any = as_tracer(x)
    masks = _masks(array, condlist)
    if len(funclist) == len(masks) + 1:
        masks.append(~np.any(NUMPY.stack(masks), axis=0))
    elif len(funclist) != len(masks):
        count = len(masks)
        raise errors.InvalidArgumentError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected"
        )
    pieces: Any = np.zeros_like(array)
    for mask, function in zip(masks, funclist, strict=True):
        pieces[mask] = function(array[mask], *args, **kw) if callable(function) else function
    return pieces


def _masks(x: Tracer, conditions: Any) -> list[Any]:
    """Each condition as an array of truths; one that stands alone is a list of one."""
    arrays = isinstance(conditions, (list, tuple)) and (
        not x.ndim or np.ndim(conditions[0]) or holds_tracer(conditions[0])
    )
    many = arrays or getattr(conditions, "ndim", 0) > 1
    return [NUMPY.asarray(each, bool) for each in (conditions if many else [conditions])]
