"""Correlations: sliding products of two sequences, covariances of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.graph import primitives as p
from tinyfuse.trace.averages import average
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.joining import concatenate_
from tinyfuse.trace.linear_algebra import conjugated, contract
from tinyfuse.trace.operations import cast, result, slice_axis
from tinyfuse.trace.operations import concatenate as joined
from tinyfuse.trace.picking import as_tracer
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.shape import squeeze
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer

_MODES = ("valid", "same", "full")


# -- of sequences


@listed(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Tracer:
    x, y = _sequence(a), conjugated(_sequence(v))
    for name, each in (("first", x), ("second", y)):
        if not each.size:
            raise errors.InvalidArgumentError(f"{name} array argument cannot be empty")
    if x.size < y.size:
        turned = _sliding(y, x, mode)
        return slice_axis(turned, 0, turned.size - 1, turned.size, -1)
    return _sliding(x, y, mode)


@listed(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Tracer:
    x, y = (_sequence(each) for each in (a, v))
    for name, each in (("a", x), ("v", y)):
        if not each.size:
            raise errors.InvalidArgumentError(f"{name} cannot be empty")
    if y.size > x.size:
        x, y = y, x
    return _sliding(x, slice_axis(y, 0, y.size - 1, y.size, -1), mode)


def _sequence(value: Any) -> Tracer:
    x = as_tracer(value)
    if x.ndim > 1:
        raise errors.InvalidArgumentError("object too deep for desired array")
    return x.reshape(x.size)


def _sliding(x: Tracer, y: Tracer, mode: str) -> Tracer:
    """The products of y with what lies in x under it, at all places of a mode.

    x: (m,). y: (n,), n <= m. Where y stands out at an end, only what lies in x counts.
    """
    if mode not in _MODES:
        raise errors.InvalidArgumentError(
            f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})"
        )
    dtype = np.result_type(x.dtype, y.dtype)
    x, y = cast(x, dtype), cast(y, dtype)
    out = y.size - 1
    left = {"valid": 0, "same": y.size // 2, "full": out}[mode]
    right = {"valid": 0, "same": out - left, "full": out}[mode]
    windows = result(x, p.windows, window_shape=(y.size,), axes=(0,))
    parts = [contract(windows, y, (0, 1), (1,), (0,), "dot")]
    if left:
        parts.insert(0, _at_start(x, y, left))
    if right:
        turned = _at_start(x[::-1], y[::-1], right)  # type: ignore[index]
        parts.append(slice_axis(turned, 0, right - 1, right, -1))
    return joined(parts, 0)


def _at_start(x: Tracer, y: Tracer, count: int) -> Tracer:
    """The products where y stands out at the start of x, at the last `count` places."""
    n = y.size
    padded = NUMPY.pad(x[: n - 1], (count, 0))  # type: ignore[index]
    windows = result(padded, p.windows, window_shape=(n,), axes=(0,))
    places, elements = NUMPY.ogrid[:count, :n]
    products = apply(np.multiply, (windows, y))
    inside = NUMPY.where(places + elements >= count, products, y.dtype.type(0))
    return inside.any(axis=1) if y.dtype.kind == "b" else inside.sum(axis=1, dtype=y.dtype)


# -- of variables


@listed(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Tracer:
    """The steps of numpy's own function."""
    if ddof is not None and ddof != int(ddof):
        raise errors.InvalidArgumentError("ddof must be integer")
    given = [as_tracer(each) for each in (m, y) if each is not None]
    if any(each.ndim > 2 for each in given):
        raise errors.InvalidArgumentError(
            f"{'m' if given[0].ndim > 2 else 'y'} has more than 2 dimensions"
        )
    if dtype is None:
        dtype = np.result_type(*[each.dtype for each in given], np.float64)
    first, *others = [NUMPY.array(each, ndmin=2, dtype=dtype) for each in given]
    if not rowvar and given[0].ndim != 1:
        first = first.T
    if not first.shape[0]:
        return NUMPY.zeros((0, 0))
    x = concatenate_([first, *[y if rowvar or y.shape[0] == 1 else y.T for y in others]], 0)
    weights = _weights(fweights, aweights, x.shape[1])
    mean, total = average(x, axis=1, weights=weights, returned=True)
    lost = (0 if bias else 1) if ddof is None else ddof
    if weights is None:
        freedom: Any = max(x.shape[1] - lost, 0.0)
    else:
        if lost and aweights is not None:
            lost = lost * (weights * as_tracer(aweights)).sum() / total[0]
        freedom = np.maximum(total[0] - lost, 0.0)
    x = apply(np.subtract, (x, mean[:, None]))
    found: Any = np.dot(x, conjugated((x if weights is None else x * weights).T))
    scaled: Tracer = (found * np.true_divide(1, freedom)).astype(found.dtype)
    return squeeze(scaled)


def _weights(frequencies: Any, others: Any, count: int) -> Any:
    """The products of both kinds of weights, (count,), or None without any."""
    found = None
    for name, value in (("fweights", frequencies), ("aweights", others)):
        if value is None:
            continue
        weights = as_tracer(value)
        if name == "fweights" and weights.dtype.kind not in "iu":
            raise errors.ArgumentTypeError("fweights must be integer")
        if weights.ndim > 1:
            raise errors.InvalidArgumentError(f"cannot handle multidimensional {name}")
        if weights.shape != (count,):
            raise errors.InvalidArgumentError(f"incompatible numbers of samples and {name}")
        negative: Any = apply(np.less, (weights, 0))
        check_none(negative._atom, errors.InvalidArgumentError, f"{name} cannot be negative")
        weights = cast(weights, np.dtype(float))
        found = weights if found is None else found * weights  # type: ignore[operator]
    return found


@listed(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Covariances, divided by deviations and brought into [-1, 1]: numpy's own steps."""
    c: Any = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviations = np.sqrt(np.diag(c))
    return np.clip(c / deviations[:, None] / deviations[None, :], -1, 1)
