"""Functions that are composed of others, as numpy composes them: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import assert_same, check
from tinyfuse.errors import (
    BoolConversionError,
    DataDependentShapeError,
    InvalidArgumentError,
    ZeroWeightsError,
)

SPECIAL = np.array([[np.nan, 1.5, -np.inf, -0.0], [np.inf, 2.5, np.nan, 1e300], [np.nan] * 4])
X = np.arange(12.0).reshape(3, 4) * 1.1 - 5
V = np.array([0.5, -1.25, 3.0])
W = np.array([1.0, 0.25, 2.0])
S = np.array([[0.0, 1.0, 2.5], [-0.0, 1.0, 9.0]])

EXPRESSIONS = """
np.nan_to_num(n)
np.nan_to_num(n, nan=7, posinf=1.5)
np.nan_to_num(n, neginf=-2)
np.nan_to_num(n, nan=x[2], posinf=x[0, 0])
np.nan_to_num(n[0, 0])
np.nan_to_num(n.reshape(-1)[:1].reshape(()))
np.nan_to_num(n, copy=False), n
np.nan_to_num(n[:, 1:], copy=False), n
np.nan_to_num(n[:2].T)
np.isposinf(n), np.isneginf(n), np.isposinf(n[1, 0])
np.isreal(n), np.iscomplex(n), np.isreal(n[0, 0]), np.real_if_close(x)
np.isclose(x, x + 1e-7), np.isclose(n, n), np.isclose(n, n, equal_nan=True), np.isclose(n, 1.5)
np.isclose(x, np.round(x), rtol=0.1, atol=x[0] ** 2), np.isclose(1.5, n), np.isclose(x[0, 0], -5)
np.angle(n), np.angle(x, deg=True), np.fix(x), np.fix(-x)
np.sinc(x), np.sinc(s), np.sinc(x[0, 0])
np.nansum(n), np.nansum(n, axis=0), np.nansum(n, axis=1, keepdims=True), np.nansum(n, dtype="f4")
np.nanprod(n, axis=1), np.nanprod(n[:2, 1], initial=3), np.nansum(x, axis=0)
np.nanmax(n), np.nanmax(n, axis=0), np.nanmin(n, axis=1), np.nanmin(n, axis=1, keepdims=True)
np.nanmax(n, axis=1, initial=3), np.nanmin(n, initial=1, where=x > 0), np.nanmax(x, axis=-1)
np.nanargmax(n[:2], axis=1), np.nanargmin(n[:2]), np.nanargmin(n, axis=None, keepdims=True)
np.nanmean(n), np.nanmean(n, axis=0), np.nanmean(n, axis=1, keepdims=True), np.nanmean(x, axis=1)
np.nanmean(n, axis=1, where=x > 0), np.nanmean(n[:2, 1:2].astype("f4"), axis=0)
np.nanvar(n[:, 1::2], axis=1), np.nanvar(n[:, 3:], ddof=1), np.nanvar(n[:, 1], axis=0, ddof=2)
np.nanstd(n[:, 1]), np.nanstd(n[:, 1:2], axis=1, keepdims=True), np.nanstd(x, axis=0)
np.delete(x, 1, axis=0), np.delete(x, [0, -1], axis=1), np.delete(x, slice(None, None, 2), 1)
np.delete(x, 2), np.delete(x, [], axis=0), np.delete(x, np.array([True, False, True]), axis=0)
np.delete(x, np.argmax([1, 5, 2]), axis=0)
np.insert(x, 1, 7, axis=0), np.insert(x, 1, v, axis=1), np.insert(x, [1, 1, 3], v, axis=1)
np.insert(x, [0, 2], [[1], [2]], axis=0), np.insert(x, -1, v[:1]), np.insert(v, 3, [1, 2])
np.insert(x, slice(0, 2), x[:2] * 10, axis=0), np.insert(x, [], v[:0, None], axis=0)
np.insert(x, 2, x.T[:3], axis=1), np.insert(x.astype(int), 0, 2.7, axis=1)
np.block([[x, x * 2], [x[:1], x[1:2]]]), np.block([v, v * 2]), np.block(x), np.block([x[0], 5])
np.block([[[x]], [[x]]])
np.resize(x, (2, 3)), np.resize(x, 30), np.resize(v, (2, 2, 2)), np.resize(v, 0)
np.kron(x, v), np.kron(v, x), np.kron(x, x[:2]), np.kron(x, 2.0), np.kron(x[:2, :2], np.eye(2))
np.vander(v), np.vander(v, 5), np.vander(v, 2, increasing=True), np.vander(v, 0), np.vander(v, 1)
np.vander(v.astype("i1")), np.vander(v > 0)
np.cross(v, w), np.cross(x[:, :3], v), np.cross(x[:, 1:], x[:, :3]), np.cross(x, x[::-1], axis=0)
np.cross(x, w[:, None], axisa=0, axisb=0, axisc=0)
np.apply_along_axis(lambda r: r - r.max(), 0, x), np.apply_along_axis(np.sum, 1, x)
np.apply_along_axis(lambda r, k: r[:2] * k, 1, x, 3), np.apply_along_axis(np.diag, -1, x)
np.apply_over_axes(np.max, x, [0, 1]), np.apply_over_axes(np.sum, x[None], (0, -1))
x[np.diag_indices_from(x[:, :3])], x[np.tril_indices_from(x)], x[np.triu_indices_from(x, k=1)]
np.ediff1d(x), np.ediff1d(v, to_end=9), np.ediff1d(v, to_begin=[1, 2], to_end=v), np.ediff1d(v[:1])
np.trapezoid(x), np.trapezoid(x, axis=0, dx=0.5), np.trapezoid(x, v, axis=0), np.trapezoid(v, w)
np.trapezoid(x, x * 2), np.trapezoid(x[:, :1])
np.gradient(v), np.gradient(x), np.gradient(x, 0.5), np.gradient(x, 2, axis=1)
np.gradient(x, v, axis=0), np.gradient(x, v, w[0], axis=(0, 1)), np.gradient(x.astype(int))
np.gradient(x, edge_order=2), np.gradient(x, v, axis=0, edge_order=2), np.gradient(x[:2], axis=0)
np.gradient(x, [0, 1, 2], [0.0, 1.0, 3.0, 4.0]), np.gradient(x, [0, 1, 2], axis=0)
np.average(x), np.average(x, axis=0), np.average(x, axis=(0, 1), keepdims=True)
np.average(x, axis=0, weights=w), np.average(v, weights=w, returned=True), np.average(x > 0)
np.average(x, axis=0, returned=True), np.average(x, weights=x * x + 1), np.average(x, 0, w, True)
np.average(x[None], axis=(1, 0), weights=w[:, None], keepdims=True)
np.interp(x, s[0], v), np.interp(x, s[0], v, left=-1, right=9), np.interp(n, s[0], w)
np.interp(s, s[0], [1, np.inf, 3]), np.interp(0.5, s[0], v), np.interp(v, [1], [7])
np.interp(n, [0.0, 0.0, 2.0], [1.0, 2.0, 2.0]), np.interp(s[1, 1], s[0], [np.nan, 3, np.nan])
np.interp(n, [0.0], [5.0]), np.interp(n, [0.0], [5.0], left=-7, right=9)
np.interp(np.nan, [1], v[:1]), np.interp(n, [np.nan], [5.0], -7, 9)
np.interp(n, [0, 1], [5, 5]), np.interp(n[0, 0], v[:1], v[:1])
np.polyval(v, x), np.polyval([1, 2], x), np.polyval(v, 2.0), np.polyval([1, 2, 3], x.astype(int))
np.linalg.norm(x), np.linalg.norm(v), np.linalg.norm(x, axis=1), np.linalg.norm(x, 1, axis=0)
np.linalg.norm(x, np.inf, axis=1, keepdims=True), np.linalg.norm(x, -np.inf), np.linalg.norm(v, 3)
np.linalg.norm(x, "fro"), np.linalg.norm(x, 1), np.linalg.norm(x, np.inf), np.linalg.norm(x, -1)
np.linalg.norm(x[None], axis=(1, 2)), np.linalg.norm(x, 0, axis=1), np.linalg.norm(x, keepdims=True)
np.linalg.norm(x.astype(int), axis=0), np.linalg.norm(x, -np.inf, axis=0)
""".strip().splitlines()


def function_of(expression: str) -> Any:
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x, n, v, w, s):\n    return {expression}\n", space)
    return space["f"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_same_as_numpy(expression: str) -> None:
    check(function_of(expression), X, SPECIAL, V, W, S)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_compiled() -> None:
    def everything(*args: Any) -> Any:
        return [function(*args) for function in functions]

    texts = [each for each in EXPRESSIONS if "copy=False" not in each]
    functions = [function_of(each) for each in texts]
    args = X, SPECIAL, V, W, S
    expected, found = everything(*args), tinyfuse.jit(everything)(*args)
    for one, other, text in zip(expected, found, texts, strict=True):
        parts = zip(*[x if isinstance(x, tuple) else (x,) for x in (one, other)], strict=True)
        for a, b in parts:
            np.testing.assert_allclose(
                np.asarray(b, float), np.asarray(a, float), rtol=1e-13, atol=1e-13, err_msg=text
            )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_vectors_of_two() -> None:
    check(lambda x, v: (np.cross(v[:2], v[1:]), np.cross(x[:, :2], v), np.cross(v, x[:, 2:])), X, V)


def test_integers_pass_through() -> None:
    x = np.array([[3, -7], [0, 9]], np.int8)

    def unchanged(x: Any) -> Any:
        sums = np.nansum(x, axis=0), np.nanmean(x), np.nanstd(x, axis=1), np.nanprod(x)
        return np.nan_to_num(x), np.nan_to_num(x, copy=False) is x, np.nanmax(x, axis=0), *sums

    check(unchanged, x)
    check(lambda x: (np.nanargmin(x), np.nanvar(x, ddof=1), np.isclose(x, 3)), x)


@pytest.mark.parametrize(
    ("function", "arguments", "error", "words"),
    [
        (np.nanargmax, (SPECIAL[2],), InvalidArgumentError, "All-NaN slice encountered"),
        (
            lambda x, w: np.average(x, axis=0, weights=w),
            (X, W * 0),
            ZeroWeightsError,
            "Weights sum to zero, can't be normalized",
        ),
        (np.allclose, (X, X), BoolConversionError, "use np.isclose(a, b).all()"),
        (np.array_equal, (X, X), BoolConversionError, "use (a == b).all()"),
        (
            lambda x, k: np.delete(x, k),
            (X, np.array([1])),
            DataDependentShapeError,
            "np.delete of places that are known at run time only",
        ),
    ],
)
def test_errors(function: Any, arguments: Any, error: Any, words: str) -> None:
    with pytest.raises(error) as raised:
        tinyfuse.jit(function)(*arguments)
    assert words in str(raised.value)


def test_what_is_known_is_compared_while_tracing() -> None:
    def chosen(x: Any) -> Any:
        a = np.arange(3)
        return x if np.array_equal(a, [0, 1, 2]) and np.allclose(a, a) else -x

    assert_same(tinyfuse.jit(chosen)(X), X)
