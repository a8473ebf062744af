"""What comes back: the same objects, views, arrays and scalars as from the plain function."""

from __future__ import annotations

import numpy as np
import pytest

import tinyfuse
from tinyfuse.runtime.build import mixes_precisions

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_an_untouched_argument_is_the_same_object():
    f = tinyfuse.jit(lambda x, y, a: (x, x + 1, y, x, a))
    for x in (X, X.T, X.astype(">f4"), X[:, ::2]):
        first, computed, y, again, a = f(x, np.float64(2), 2.5)
        assert first is x
        assert again is x
        assert (y, type(y), a) == (2, np.float64, 2.5)
        np.testing.assert_array_equal(computed, x + 1)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[1:, ::-2],
        lambda x: x[..., None],
        lambda x: x.reshape(4, 3)[1],
        lambda x: x[0, 0, ...],
        lambda x: x.reshape(-1),
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0),
    ],
)
def test_a_view_of_an_argument_is_a_real_view(view):
    x = X.copy()
    result, expected = tinyfuse.jit(view)(x), view(x)
    np.testing.assert_array_equal(result, expected)
    assert np.shares_memory(result, x)
    assert result.flags.writeable == expected.flags.writeable
    x[:] = -1
    np.testing.assert_array_equal(result, view(x))


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.copy(),
        lambda x: x.astype(np.float32),
        lambda x: x.T.copy(),
        lambda x: x[1:].copy(),
        lambda x: np.concatenate([x]),
        lambda x: x.flatten(),
        lambda x: np.pad(x, 0),
    ],
)
def test_a_copy_of_an_argument_is_none(copy):
    result = tinyfuse.jit(copy)(X)
    np.testing.assert_array_equal(result, copy(X))
    assert not np.shares_memory(result, X)
    assert result.flags.c_contiguous


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.ravel(),
        lambda x: np.ravel(x)[2:].T,
        lambda x: x.T.ravel("F"),
        lambda x: x.reshape(-1),
        lambda x: x.T.reshape(-1, order="F")[::2],
    ],
)
def test_a_flat_view_of_an_argument_is_a_view(view):
    for x in (X.copy(), np.asfortranarray(X)):
        result, expected = tinyfuse.jit(view)(x), view(x)
        assert np.shares_memory(result, x) == np.shares_memory(expected, x)
        np.testing.assert_array_equal(result, expected)


def test_views_of_a_result_share_its_memory():
    @tinyfuse.jit
    def f(x):
        y = x * 2
        return y, y[1:], y.T[0], y

    y, rows, column, again = f(X)
    assert y is again
    y[:] = 7
    np.testing.assert_array_equal(rows, y[1:])
    np.testing.assert_array_equal(column, y[:, 0])


def test_equal_results_are_different_arrays():
    first, second = tinyfuse.jit(lambda x: (x + 1, x + 1))(X)
    first[:] = 0
    np.testing.assert_array_equal(second, X + 1)
    lowered = tinyfuse.jit(lambda x: (x + 1, x + 1)).lower(X)
    assert len(lowered.graph.outputs) == 1


def test_an_array_made_while_tracing_is_fresh_at_each_call():
    f = tinyfuse.jit(lambda x: (x + 1, np.zeros(3)))
    first = f(X)[1]
    first[:] = 1
    np.testing.assert_array_equal(f(X)[1], np.zeros(3))


def test_a_captured_array_is_the_same_object():
    table = np.ones(3)
    f = tinyfuse.jit(lambda x: (x + 1, table))
    assert f(X)[1] is table
    table = np.zeros(3)
    assert f(X)[1] is table


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(),
        lambda x: x.sum(keepdims=True),
        lambda x: x.max(axis=0),
        lambda x: x[1, 2],
        lambda x: x[1, 2, ...],
        lambda x: x.mean(),
        lambda x: x.argmax(),
        lambda x: (x > 100).any(),
        lambda x: x[0] @ x[0],
        lambda x: x[0, 0].reshape(()),
        lambda x: np.where(True, x[0, 0], 1),
        lambda x: x[0, 0] + 1,
    ],
)
def test_numpy_scalars_are_scalars_and_zero_dimensional_arrays_arrays(f):
    result, expected = tinyfuse.jit(f)(X), f(X)
    assert type(result) is type(expected)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(result, expected)


def test_python_values_and_constants():
    @tinyfuse.jit
    def f(x, n):
        return n, n * 2.5, "text", None, x.shape, np.float32(3), {"k": x.ndim}

    assert f(X, 3) == (3, 7.5, "text", None, (3, 4), np.float32(3), {"k": 2})
    assert type(f(X, 3)[5]) is np.float32


def test_a_function_that_computes_nothing_needs_no_compiler(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert tinyfuse.jit(lambda x: (x.T, 5))(X)[1] == 5
    assert tinyfuse.jit(lambda: ())() == ()


def rounded(x):
    single = x.astype(np.float32)
    return single == x, single.astype(np.float64)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 64, 100])
def test_a_double_that_is_rounded_and_widened_again_stays_rounded(count: int) -> None:
    """Vectors of a few of them, which gcc 12 leaves as they were; see `mixes_precisions`."""
    x = np.cosh(np.linspace(0.1, 1, count))
    for result, expected in zip(tinyfuse.jit(rounded)(x), rounded(x), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_both_types_in_a_text_are_found_but_not_in_its_comments() -> None:
    assert mixes_precisions("float f(double x);")
    assert not mixes_precisions("float f(float x); // no double")
    assert not mixes_precisions("float tf_double(float x);")
