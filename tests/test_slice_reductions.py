"""Reductions of slices whose ends a call decides, and slices that meet others of their length."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.loop_checking import kinds_of_loops
from tinyfuse.errors import InvalidArgumentError, NumberConversionError, ShapeError

GENERATOR = np.random.default_rng(8)
LENGTHS = (1, 31, 32, 63, 64, 100, 1024, 1025, 2049)


def sums(x: Any) -> Any:
    return x.sum(), x.mean(), np.add.reduce(x), x @ x[::-1]


def truths(x: Any) -> Any:
    return x.all(), np.any(x), np.count_nonzero(x)


def of_numbers(x: Any) -> Any:
    chosen = np.where(x > 0, x, np.clip(x, -1, 1)).sum()
    extremes = x.max(), x.min(), np.argmax(x), x.argmin(), np.maximum.reduce(x)
    return chosen, x.prod(), x.var(), x.std(ddof=1), *extremes


def of_many(x: Any) -> Any:
    return np.cumsum(x).sum(), x.cumprod().max()


FORMS: list[tuple[Any, tuple[Callable[[Any], Any], ...], tuple[int, ...]]] = [
    (np.float64, (sums, truths, of_numbers, of_many), LENGTHS),
    (np.float32, (sums, of_numbers, of_many), LENGTHS[3:5]),
    (np.int32, (sums, truths, of_numbers, of_many), LENGTHS[3:4]),
    (np.complex128, (sums, truths), (32, 1025)),
    (np.float16, (sums, of_numbers), (32, 65)),
]


@pytest.mark.parametrize(("dtype", "functions", "lengths"), FORMS)
@pytest.mark.filterwarnings("ignore")
def test_bits_are_those_of_an_array_of_that_length(dtype: Any, functions: Any, lengths: Any):
    def all_of(x: Any) -> Any:
        return [number for function in functions for number in function(x)]

    x = (GENERATOR.standard_normal(2100) * 3).astype(dtype)
    x[8:12] = [0, -0.0, 0, 0]
    some, whole = tinyfuse.jit(lambda x, n: all_of(x[7:n])), tinyfuse.jit(all_of)
    for length in lengths:
        found, expected = some(x, np.int64(7 + length)), whole(x[7 : 7 + length].copy())
        assert [each.dtype for each in found] == [each.dtype for each in expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert some.cache_info().misses == 1


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nan_and_infinities(name: str):
    some = tinyfuse.jit(lambda x, n: getattr(np, name)(x[:n]))
    for x in ([np.inf, -np.inf, np.nan, 1, np.nan], [-np.inf] * 3, [np.inf] * 3, [0.0, -0.0, 0.0]):
        given = np.array(x)
        for length in range(1, len(x) + 1):
            expected = getattr(np, name)(given[:length])
            np.testing.assert_array_equal(some(given, np.int64(length)), expected)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (np.max, "zero-size array to reduction operation maximum which has no identity"),
        (np.argmin, "attempt to get argmin of an empty sequence"),
    ],
)
def test_nothing_has_no_extreme(function: Any, words: str):
    some = tinyfuse.jit(lambda x, n: function(x[:n]))
    assert some(np.arange(5.0), np.int64(3)) == function(np.arange(3))
    with pytest.raises(InvalidArgumentError) as raised:
        some(np.arange(5.0), np.int64(0))
    assert str(raised.value).split("\n")[0] == words


def test_what_is_not_reduced():
    with pytest.raises(NumberConversionError, match=r"^np.median of a slice whose ends are known"):
        tinyfuse.jit(lambda x, n: np.median(x[:n]))(np.arange(10.0), np.int64(4))
    with pytest.raises(NumberConversionError, match=r"^an extreme of complex numbers of a slice"):
        tinyfuse.jit(lambda x, n: x[:n].max())(np.arange(10) + 1j, np.int64(4))


# -- rolled loops and loops that are written out


def rows(A: Any, s: Any) -> None:  # noqa: N803
    for i in range(1, A.shape[0]):
        for j in range(1, i + 1):
            s[i, j] = A[i, :j] @ A[j, :j] + A[i, :j].sum() - A[j, i - j : i].max()


def test_rolled_loops_have_the_bits_of_loops_that_are_written_out():
    given = GENERATOR.standard_normal((120, 130))
    rolled, found = tinyfuse.jit(rows), np.zeros((120, 130))
    assert kinds_of_loops(rows, given, found)[:2] == ["loop", "loop"]
    rolled(given, found)
    static = tinyfuse.jit(lambda a, b, c: a @ b + a.sum() - c.max())
    for i, j in ((1, 1), (31, 31), (118, 33), (70, 63), (64, 64), (119, 118)):
        expected = static(given[i, :j].copy(), given[j, :j].copy(), given[j, i - j : i])
        assert found[i, j] == expected


# -- slices that meet


def added(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return (x[a:b] + y[c:d]).sum()


def put(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    x[a:b] = y[c:d]
    return x.sum()


def put_in_place(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    x[a:b] += y[c:d] * 2
    return x.sum()


def put_elsewhere(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    x[a:b] = x[c:d] * 0.5 + y[a:b]
    return x.sum()


def with_arrays(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    x[a:b] += np.arange(3.0)
    return (y[c:d] * np.ones(1)).sum()


def multiplied(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return x[a:b] @ y[c:d]


MEETING = (added, put, put_in_place, put_elsewhere, with_arrays, multiplied)


@pytest.mark.parametrize("function", MEETING, ids=lambda function: function.__name__)
def test_slices_broadcast_or_raise_as_numpy_s_do(function: Callable[..., Any]):
    x, y = np.arange(12.0) + 1, np.arange(9.0) * 3
    jitted, raised = tinyfuse.jit(function), 0
    for ends in itertools.product((0, 2, -3), (2, 3, 5, -2), (0, 1, 3), (1, 4, 5, 7)):
        numbers = [np.int64(end) for end in ends]
        mine, its = x.copy(), x.copy()
        try:
            expected = function(mine, y, *numbers)
        except ValueError:
            raised += 1
            with pytest.raises(ShapeError, match="of another length"):
                jitted(its, y, *numbers)
            continue
        assert jitted(its, y, *numbers) == expected
        np.testing.assert_array_equal(its, mine)
    assert 80 < raised < 130
    assert jitted.cache_info().misses == 1


def test_lengths_that_are_known_to_be_one_are_not_compared():
    def shifted(A: Any) -> None:  # noqa: N803
        for i in range(1, A.shape[0]):
            A[i, 1:i] = (A[i, : i - 1] + A[i - 1, 2 : i + 1]) * 0.5

    given = GENERATOR.standard_normal((90, 90))
    mine, its = given.copy(), given.copy()
    shifted(mine)
    jitted = tinyfuse.jit(shifted)
    jitted(its)
    np.testing.assert_array_equal(its, mine)
    lowered = jitted.lower(copy.deepcopy(given))
    text = lowered.as_text("c")
    assert "!=" not in text
    assert len(lowered.loops.kernels) == 2  # of which one copies the argument
    assert "scratch: 0 bytes" in text


def test_a_stencil_of_dynamic_length_copies_no_array_in_its_turns():
    @tinyfuse.jit(dynamic=("n", "T"))
    def smoothed(x: Any, n: int, T: int) -> None:  # noqa: N803
        for _ in range(T):
            x[1:n] = (x[1:n] + x[: n - 1]) * 0.5

    given = GENERATOR.standard_normal(300)
    for n, turns in ((300, 3), (5, 70), (200, 0), (2, 1)):
        mine, its = given.copy(), given.copy()
        smoothed.__wrapped__(mine, n, turns)
        smoothed(its, n, turns)
        np.testing.assert_array_equal(its, mine)
    assert smoothed.cache_info().misses == 1
