"""Masks: assignment under them, reductions of what they choose, `where=` and `initial=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.trace_checking import assert_same, check, replay, trace_call
from tinyfuse.errors import DataDependentShapeError, InvalidArgumentError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4) - 8
M = np.arange(24).reshape(2, 3, 4) % 3 > 0
V = np.arange(24.0).reshape(2, 3, 4) * 10 + 100
ROWS = np.array([True, False])
PAIRS = np.arange(6).reshape(2, 3) % 2 > 0
ARGS = (X, M, V, ROWS, PAIRS)
TABLE = np.arange(5.0)


def written(key: Callable[..., Any], value: Callable[..., Any]) -> Callable[..., Any]:
    def write(x: Any, m: Any, v: Any, rows: Any, pairs: Any) -> Any:
        y = x * 1
        y[key(x, m, rows, pairs)] = value(x, m, v, rows, pairs)
        return y

    return write


def augmented(x: Any, m: Any, v: Any, rows: Any, pairs: Any) -> Any:
    x = x * 1
    x[m] += 1
    x[rows] *= 2
    x[:, pairs[1]] += 5
    x[~m] = -x[~m]
    part = x[m]
    again = part
    part += 2
    x[m] = again
    x[x > 100] = 100
    x[0][pairs[0][1]] = 3
    return x


def beside_rows(x: Any, m: Any, v: Any, rows: Any, pairs: Any) -> Any:
    """Arrays with an axis of size 1 beside the one along which a mask has chosen."""
    x = x * 1
    x[rows] -= v[:1]
    x[pairs] *= v[0, :1]
    x[pairs] = np.maximum(x[pairs], v[0, 0][None])
    x[:, pairs[0]] += v[:, :1]
    x[:, pairs[0]] -= v[0, :1]
    x[..., m[0, 0]] += v[:, :, :1]
    x[x > 90] += v[0, 0, :1]
    x[rows] = v[None, :1]
    x[:, pairs[0]] = v[:, 1:2]
    x[..., m[0, 0]] = v[:, :, 2:3]
    x[1, pairs[1]] = v[0, :1, :1]
    return x, (x[pairs] - v[0, :1]).max(axis=0), (v[:1] * x[rows]).sum(axis=0)


WRITES: list[Callable[..., Any]] = [
    written(lambda x, m, rows, pairs: m, lambda x, m, v, rows, pairs: 7),
    written(lambda x, m, rows, pairs: x < 0, lambda x, m, v, rows, pairs: 0),
    written(lambda x, m, rows, pairs: x < 0, lambda x, m, v, rows, pairs: v.max()),
    written(lambda x, m, rows, pairs: m, lambda x, m, v, rows, pairs: v[m]),
    written(lambda x, m, rows, pairs: m, lambda x, m, v, rows, pairs: [4]),
    written(lambda x, m, rows, pairs: x > 0, lambda x, m, v, rows, pairs: v[x > 0] * 2 + x[x > 0]),
    written(lambda x, m, rows, pairs: rows, lambda x, m, v, rows, pairs: v[0]),
    written(lambda x, m, rows, pairs: rows, lambda x, m, v, rows, pairs: [[1, 2, 3, 4]]),
    written(lambda x, m, rows, pairs: pairs, lambda x, m, v, rows, pairs: v[0, 0]),
    written(lambda x, m, rows, pairs: (pairs, slice(1, 3)), lambda x, m, v, rows, pairs: 5),
    written(lambda x, m, rows, pairs: (0, pairs[0]), lambda x, m, v, rows, pairs: 3),
    written(
        lambda x, m, rows, pairs: (slice(None), pairs[0], 1),
        lambda x, m, v, rows, pairs: v[:, pairs[0], 0],
    ),
    written(lambda x, m, rows, pairs: rows[0], lambda x, m, v, rows, pairs: v),
    written(lambda x, m, rows, pairs: rows[1], lambda x, m, v, rows, pairs: v),
    augmented,
    beside_rows,
]

REDUCTIONS: list[Callable[..., Any]] = [
    lambda t: t.sum(),
    lambda t: t.prod(),
    lambda t: t.mean(),
    lambda t: t.max(),
    lambda t: np.min(t),
    lambda t: (t > 3).any(),
    lambda t: np.all(t > 3),
    lambda t: t.var(),
    lambda t: np.std(t, ddof=1),
    lambda t: np.count_nonzero(t),
    lambda t: np.sum(t * 2 + 1),
    lambda t: np.abs(t).sum(initial=3),
    lambda t: t.sum(dtype=np.float32),
    lambda t: t.astype(np.int32).sum(),
    lambda t: t[t > 2].sum(),
    lambda t: (1 / (t * t + 1)).max(),
    lambda t: t.max(initial=5),
]

PARTS: list[Callable[..., Any]] = [
    lambda x, m, v, rows, pairs: x[rows].sum(axis=0),
    lambda x, m, v, rows, pairs: x[pairs].max(axis=0),
    lambda x, m, v, rows, pairs: x[pairs].mean(axis=0, keepdims=True),
    lambda x, m, v, rows, pairs: (x[pairs].sum(axis=1) * 2).max(),
    lambda x, m, v, rows, pairs: x[:, pairs[0]].sum(axis=1),
    lambda x, m, v, rows, pairs: (x[m] * v[m]).sum() + v[m].sum(),
    lambda x, m, v, rows, pairs: (x[0, 0, 0] * x[m]).sum(),
    lambda x, m, v, rows, pairs: (x[pairs] - x[0, 0]).sum(axis=0),
    lambda x, m, v, rows, pairs: TABLE[(np.abs(x).astype(np.int64) % 5)[m]].sum(),
    lambda x, m, v, rows, pairs: x[x > 1e9].sum(),
    lambda x, m, v, rows, pairs: x[rows[0]].sum(),
    lambda x, m, v, rows, pairs: TABLE[TABLE > 2].sum() * x,
    lambda x, m, v, rows, pairs: np.extract(m, x).sum(),
    lambda x, m, v, rows, pairs: np.compress(m[0, 0], x, axis=2).sum(axis=2),
]


@pytest.mark.parametrize("write", WRITES)
def test_assignment(write: Any) -> None:
    check(write, *ARGS)
    check(write, X.astype(np.int16), M, V.astype(np.int16), ROWS, PAIRS)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_reductions_of_what_a_mask_chooses(reduction: Any) -> None:
    def reduced(x: Any, m: Any) -> Any:
        return (reduction(x[m]),)

    check(reduced, X, M)
    check(reduced, X.astype(np.int16), M)


@pytest.mark.parametrize("function", PARTS)
def test_reductions_along_axes_and_of_parts(function: Any) -> None:
    check(function, *ARGS)


def test_compiled() -> None:
    def everything(*args: Any) -> Any:
        reduced = [reduction(args[0][args[1]]) for reduction in REDUCTIONS]
        return [write(*args) for write in WRITES], reduced, [part(*args) for part in PARTS]

    assert_same(tinyfuse.jit(everything)(*ARGS), everything(*ARGS))


def test_elements_that_are_masked_out_raise_nothing() -> None:
    def powers(x: Any, n: Any) -> Any:
        return (x[n >= 0] ** n[n >= 0]).sum() + TABLE[n[n >= 0]].sum()

    check(powers, np.arange(4), np.array([2, -1, 1, -7]))


def test_the_maximum_of_nothing() -> None:
    def highest(x: Any) -> Any:
        return x[x > 1e9].max()

    words = "zero-size array to reduction operation maximum which has no identity"
    with pytest.raises(InvalidArgumentError, match=words):
        replay(trace_call(highest, X), X)
    with pytest.raises(InvalidArgumentError, match=words):
        tinyfuse.jit(highest)(X)
    assert tinyfuse.jit(highest)(X * 1e12) == 15e12


# -- where= and initial=

WHERE: list[Callable[..., Any]] = [
    lambda x, m: np.sum(x, where=m),
    lambda x, m: x.sum(axis=1, where=m),
    lambda x, m: x.prod(axis=(0, 2), where=m, initial=2),
    lambda x, m: np.mean(x, where=m),
    lambda x, m: np.mean(x, axis=1, where=m, keepdims=True),
    lambda x, m: np.max(x, where=m, initial=-3),
    lambda x, m: x.min(axis=0, where=m, initial=99),
    lambda x, m: np.any(x > 5, where=m),
    lambda x, m: np.all(x, axis=1, where=m),
    lambda x, m: np.sum(x, initial=5),
    lambda x, m: np.sum(x, axis=1, initial=0.7),
    lambda x, m: np.var(x, where=m),
    lambda x, m: np.std(x, axis=1, where=m, ddof=1),
    lambda x, m: np.add.reduce(x, where=m),
    lambda x, m: np.maximum.reduce(x, where=m, initial=1, axis=None),
    lambda x, m: np.logical_or.reduce(x, where=m),
    lambda x, m: np.sum(x, where=m[0, 0]),
    lambda x, m: np.sum(x, where=[True, False, True, True]),
    lambda x, m: np.sum(x, where=False),
    lambda x, m: np.sum(x, axis=(), where=m),
    lambda x, m: x.sum(where=m, dtype=np.float32),
]


@pytest.mark.parametrize("function", WHERE)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_where_and_initial(function: Any, dtype: str) -> None:
    x = ((X + 8) % 7).astype(dtype)
    if "0.7" in str(function.__code__.co_consts) and dtype != "int16":
        return  # rounded at another place than in numpy
    check(function, x, M)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda x, m: np.max(x, where=m),
            "reduction operation 'maximum' does not have an identity, so to use a where mask one "
            "has to specify 'initial'",
        ),
        (
            lambda x, m: np.sum(x[0], where=m),
            "input operand has more dimensions than allowed by the axis remapping",
        ),
        (lambda x, m: np.sum(x, initial=x), "setting an array element with a sequence."),
    ],
)
def test_words_about_where_and_initial(function: Any, words: str) -> None:
    for call in (function, tinyfuse.jit(function)):
        with pytest.raises(ValueError) as raised:
            call(X, M)
        assert str(raised.value).split("\n")[0] == words


def test_outputs_under_a_mask() -> None:
    def masked_output(x: Any, m: Any) -> Any:
        y = x * 2
        np.add(x, 1, where=m, out=y)
        np.sqrt(x, where=x > 0, out=y)
        return y

    check(masked_output, X, M)
    assert_same(tinyfuse.jit(masked_output)(X, M), masked_output(X, M))


# -- what is refused

REMEDY = (
    "the shape of x[mask] depends on data: compute on all elements and choose with np.where(mask, "
    "x, other), reduce it (x[mask].sum()), or put it back under the same mask (y[mask] = ...)"
)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, m: x[m], "the function returns x[mask]"),
        (lambda x, m: x[m].size, "x[mask].size"),
        (lambda x, m: x[m].shape, "x[mask].shape"),
        (lambda x, m: len(x[m]), "len(x[mask]) is np.count_nonzero(mask)"),
        (lambda x, m: list(x[m]), "a loop over x[mask]"),
        (lambda x, m: x[m][0], "x[mask][...]"),
        (lambda x, m: x[m].__setitem__(0, 1), "x[mask][...] = value, which writes into a copy"),
        (lambda x, m: x[m] + x[~m], "x[mask] meets what another mask has chosen"),
        (lambda x, m: x[m] + x[0, 0], "np.add of x[mask] and an array of shape (4,)"),
        (lambda x, m: np.sort(x[m]), "np.sort of x[mask]"),
        (lambda x, m: np.concatenate([x[m], x[m]]), "np.concatenate of x[mask]"),
        (lambda x, m: x[m] @ x[m], "np.matmul of x[mask]"),
        (lambda x, m: x.__setitem__(m, np.ones(16)), "x[mask] = an array of 16 elements"),
        (lambda x, m: x[x[:, :, 0] > 0, [0, 1]], "a mask and other arrays in one index"),
    ],
)
def test_refusals_tell_the_remedy(function: Any, words: str) -> None:
    with pytest.raises(DataDependentShapeError) as raised:
        tinyfuse.jit(function)(X.copy(), M)
    lines = str(raised.value).split("\n")
    assert lines[0] == f"{words}: {REMEDY}"
    assert lines[1].startswith("  at test_trace_masks.py:")


def test_functions_with_results_of_unknown_length() -> None:
    for function in (np.nonzero, np.flatnonzero, np.argwhere, np.where):
        with pytest.raises(DataDependentShapeError, match="depends on data"):
            tinyfuse.jit(lambda m, function=function: function(m))(M)


def test_masks_that_are_known() -> None:
    def known(x: Any) -> Any:
        middle = np.abs(np.arange(4) - 1.5) < 1
        return x[:, :, middle], np.nonzero(middle), np.where(middle), x[0, 0][middle].size

    check(known, X)


def test_what_a_mask_has_chosen_keeps_its_shape() -> None:
    def widened(x: Any) -> None:
        x[:, :1][x[:, 0] > 0] -= x[:1]

    with pytest.raises(ShapeError) as raised:
        tinyfuse.jit(widened)(X[0])
    words = (
        "what a mask has chosen of float64[3, 1] can't hold np.subtract of it and a larger array"
    )
    assert str(raised.value).startswith(f"{words}\n  at test_trace_masks.py:")
