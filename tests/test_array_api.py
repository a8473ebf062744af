"""Functions written for the array API standard, traced through the namespace of their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import check

X = np.random.default_rng(5).standard_normal((6, 4))
N = np.array([3, 0, 2, 1, 5, 4])


def standardize(x: Any) -> Any:
    xp = x.__array_namespace__(api_version="2023.12")
    mean = xp.mean(x, axis=0, keepdims=True)
    return xp.divide(xp.subtract(x, mean), xp.std(x, axis=0, keepdims=True, correction=1))


def logsumexp(x: Any) -> Any:
    xp = x.__array_namespace__()
    top = xp.max(x, axis=-1, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return xp.squeeze(xp.log(xp.sum(xp.exp(x - top), axis=-1, keepdims=True)) + top, axis=-1)


def pairwise(x: Any, y: Any) -> Any:
    xp = x.__array_namespace__()
    left, right = xp.expand_dims(x, axis=1), xp.expand_dims(y, axis=0)
    return xp.sqrt(xp.sum(xp.pow(left - right, 2), axis=-1))


def rotated(x: Any) -> Any:
    xp = x.__array_namespace__()
    angles = xp.atan2(x[:, 1], x[:, 0]) + xp.acos(xp.asarray(0.5, dtype=x.dtype, device=x.device))
    radius = xp.hypot(x[:, 0], x[:, 1])
    return xp.stack([radius * xp.cos(angles), radius * xp.sin(angles)], axis=-1)


def shaped(x: Any) -> Any:
    xp = x.__array_namespace__()
    both = xp.concat([xp.permute_dims(x, (1, 0)), xp.matrix_transpose(x)], axis=0)
    return xp.roll(xp.flip(xp.reshape(both, (-1,)), axis=0), 3), xp.unstack(x, axis=1), x.mT


def created(x: Any) -> Any:
    xp = x.__array_namespace__()
    mask = xp.tril(xp.ones((4, 4), dtype=xp.bool))
    steps = xp.arange(4, dtype=xp.float64)
    grid = xp.meshgrid(steps, xp.linspace(0.0, 1.0, 3), indexing="ij")
    chosen = xp.where(mask, xp.full((4, 4), 2.0), xp.eye(4))
    return chosen @ x[:4, :], grid, xp.empty_like(x).shape


def picked(x: Any, n: Any) -> Any:
    xp = x.__array_namespace__()
    order = xp.argsort(n, stable=True)
    first = xp.take(x, order, axis=0)
    return (
        first,
        xp.searchsorted(xp.sort(n), n),
        xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1),
    )


def counted(x: Any, n: Any) -> Any:
    xp = x.__array_namespace__()
    kept = xp.astype(n, xp.int32, copy=False)
    kind = xp.isdtype(x.dtype, "real floating"), xp.result_type(kept, x) == xp.float64
    bits = xp.bitwise_left_shift(kept, 1), xp.bitwise_invert(kept)
    return (
        xp.count_nonzero(x > 0, axis=1),
        xp.cumulative_sum(kept),
        bits,
        *kind,
        xp.finfo(x.dtype).eps,
    )


def clipped(x: Any) -> Any:
    xp = x.__array_namespace__()
    return (
        xp.clip(x, min=-1, max=1),
        xp.copysign(x, -x),
        xp.sign(x),
        xp.round(x),
        xp.maximum(x, 0 * x),
    )


NAMES = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool
broadcast_arrays broadcast_to can_cast ceil clip concat copysign cos cosh cumulative_sum divide e
empty empty_like equal exp expand_dims expm1 eye finfo flip float32 float64 floor floor_divide
full full_like greater greater_equal hypot iinfo inf int16 int32 int64 int8 isdtype isfinite isinf
isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or
logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan
negative newaxis not_equal ones ones_like permute_dims pi positive pow prod real remainder repeat
reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square squeeze stack
std subtract sum take tan tanh tensordot tile tril triu trunc uint16 uint32 uint64 uint8 unstack
var vecdot where zeros zeros_like
"""


@pytest.mark.parametrize(
    "function",
    [standardize, logsumexp, rotated, shaped, created, clipped],
    ids=lambda f: f.__name__,
)
def test_of_one_array(function: Any) -> None:
    check(function, X)
    check(function, np.asfortranarray(X))


def test_of_two_arrays() -> None:
    check(pairwise, X, X[::-1])
    check(picked, X, N)
    check(counted, X, N)


def test_linear_algebra_of_the_namespace() -> None:
    def solved(a: Any, b: Any) -> Any:
        xp = a.__array_namespace__()
        symmetric = xp.matmul(a.mT, a) + xp.eye(a.shape[-1])
        lower = xp.linalg.cholesky(symmetric)
        return (
            xp.linalg.solve(symmetric, b),
            xp.linalg.det(symmetric),
            xp.linalg.vecdot(lower, lower),
        )

    expected, found = solved(X, X[0]), tinyfuse.jit(solved)(X, X[0])
    for want, have in zip(expected, found, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)


def test_the_names_of_the_standard_are_there() -> None:
    """2023.12: what is missing is refused by its name when it is called."""

    @tinyfuse.jit
    def missing(x: Any) -> Any:
        xp = x.__array_namespace__()
        return x if all(hasattr(xp, name) for name in NAMES.split()) else x * np.nan

    np.testing.assert_array_equal(missing(X), X)


def test_devices() -> None:
    check(lambda x: x.to_device(x.device) + x.__array_namespace__().zeros(4, device=x.device), X)
    with pytest.raises(ValueError, match="Unsupported device"):
        tinyfuse.jit(lambda x: x.to_device("gpu"))(X)
