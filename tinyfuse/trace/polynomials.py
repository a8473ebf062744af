"""Polynomials by their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import FLOAT64
from tinyfuse.trace.correlations import convolve
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.operations import traced
from tinyfuse.trace.picking import as_tracer
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer


@listed(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    return np.add(*_of_one_length(a1, a2))


@listed(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    return np.subtract(*_of_one_length(a1, a2))


def _of_one_length(*given: Any) -> list[Any]:
    polynomials = [NUMPY.atleast_1d(as_tracer(each)) for each in given]
    length = max(len(each) for each in polynomials)
    dtype = np.result_type(*[each.dtype for each in polynomials])
    return [
        np.concatenate([NUMPY.zeros(length - len(each), each.dtype), each]).astype(dtype)
        if len(each) < length
        else each
        for each in polynomials
    ]


@listed(np.polyder)
def polyder(p: Any, m: Any = 1) -> Any:
    order = int(m)
    if order < 0:
        raise errors.InvalidArgumentError("Order of derivative must be positive (see polyint)")
    found: Any = as_tracer(p)
    for _ in range(order):
        found = found[:-1] * NUMPY.arange(max(len(found) - 1, 0), 0, -1)
    return found


@listed(np.polyint)
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    """k: the constants of integration, the innermost first."""
    order = int(m)
    if order < 0:
        raise errors.InvalidArgumentError("Order of integral must be positive (see polyder)")
    constants = NUMPY.zeros(order) if k is None else NUMPY.atleast_1d(as_tracer(k))
    if len(constants) == 1 and order > 1:
        constants = constants[0] * NUMPY.ones(order)
    if len(constants) < order:
        raise errors.InvalidArgumentError("k must be a scalar or a rank-1 array of length 1 or >m.")
    found: Any = as_tracer(p)
    for at in range(order):
        raised = np.divide(found, NUMPY.arange(len(found), 0, -1))
        found = np.concatenate([raised, constants[at : at + 1]])
    return found


@listed(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    zeros: Any = NUMPY.atleast_1d(as_tracer(seq_of_zeros))
    if zeros.ndim != 1:
        raise errors.UnsupportedArgumentError(
            "np.poly of a matrix needs its eigenvalues, which may be complex: pass them instead"
        )
    if not zeros.size:
        return 1.0
    dtype = zeros.dtype if zeros.dtype.kind == "f" else FLOAT64
    zeros = zeros.astype(dtype)
    found: Tracer = traced(np.ones(1, dtype))
    for at in range(zeros.size):
        one: Any = np.stack([NUMPY.ones((), dtype), -zeros[at]])
        found = convolve(found, one)
    return found
