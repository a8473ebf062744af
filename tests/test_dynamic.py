"""Integers that are no part of the signature: one program for all of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.errors import (
    ArgumentError,
    InvalidArgumentError,
    NumberConversionError,
)

LINE = np.random.default_rng(0).standard_normal(90)


@tinyfuse.jit(dynamic="T")
def smoothed(x: Any, T: int) -> Any:  # noqa: N803
    y = x.copy()
    for _ in range(T):
        y[1:-1] = (y[:-2] + y[2:]) * 0.5
    return y, T + 1


@tinyfuse.jit(dynamic=("first", "last"))
def part(x: Any, first: int, last: int) -> Any:
    total = 0.0
    for i in range(first, last, 2):
        total = total * 0.5 + x[i]
    return total, x[first:last].sum(), x[first]


def test_one_program_serves_all_numbers_of_turns():
    smoothed.clear_cache()
    for turns in (0, 1, 2, 7, 500, -3):
        (found, more), (expected, other) = smoothed(LINE, turns), smoothed.__wrapped__(LINE, turns)
        np.testing.assert_array_equal(found, expected)
        assert (more, type(more)) == (other, int)
    assert smoothed.cache_info()[:2] == (5, 1)


def test_turns_are_one_for_in_one_kernel():
    def relaxed(x: Any, y: Any, T: int) -> None:  # noqa: N803
        for _ in range(T):
            y[1:-1] = (x[:-2] + x[2:]) * 0.5
            x[1:-1] = (y[:-2] + y[2:]) * 0.5

    lowered = tinyfuse.jit(relaxed, dynamic="T").lower(LINE.copy(), LINE.copy(), 3)
    assert len(lowered.loops.kernels) == 3
    text = lowered.as_text("c")
    assert "for (long turn = 0; turn < turn_count; turn++) {" in text
    assert "while" not in text


def rows_in_turn(x: Any, T: int) -> Any:  # noqa: N803
    """Turns that launch kernels, in turns that do, and one that counts them."""
    y = x.copy()
    for i in range(T):
        y = (np.roll(y, 1) + x) * 0.5
        for _ in range(i):
            y[1:] = y[:-1] + y[1:] * 0.25
    return y


def sums_of_parts(x: Any, T: int) -> Any:  # noqa: N803
    return x[:T].sum(), np.sort(x * (np.arange(90) < T)), x[T]


def until_small(x: Any, T: int) -> Any:  # noqa: N803
    turns = 0
    while np.abs(x).max() > T * T + 0.25:
        x = x * 0.5
        turns += 1
    return x, turns


ON_DEVICES = (smoothed.__wrapped__, rows_in_turn, sums_of_parts, until_small)


@pytest.mark.parametrize("function", ON_DEVICES)
def test_one_program_of_a_device_serves_them_too(function: Callable[..., Any]):
    """With the bits of C."""
    compiled = [tinyfuse.jit(function, dynamic="T", target=t) for t in ("c", "cuda-emulated")]
    for turns in (0, 1, 2, 7, -3):
        expected, found = [each(LINE, turns) for each in compiled]
        for one, other in zip(expected, found, strict=True):
            assert type(one) is type(other)
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert compiled[1].cache_info().misses == 1


def test_ends_and_places():
    part.clear_cache()
    for first, last in ((0, 90), (3, 50), (10, 10), (20, 5), (-5, 90), (-7, -2), (0, 1000)):
        if last < 1000:
            np.testing.assert_allclose(
                part(LINE, first, last), part.__wrapped__(LINE, first, last), rtol=1e-12
            )
        else:
            with pytest.raises(IndexError):
                part(LINE, first, last)
    assert part.cache_info().misses == 1


def test_integers_of_numpys_are_the_same_argument():
    smoothed.clear_cache()
    for turns in (2, np.int64(3), np.int32(4)):
        np.testing.assert_array_equal(
            smoothed(LINE, turns)[0], smoothed.__wrapped__(LINE, turns)[0]
        )
    assert smoothed.cache_info().misses == 1


def test_other_values_are_static():
    function = tinyfuse.jit(lambda x, t: x if t is None else x * 2, dynamic="t")
    np.testing.assert_array_equal(function(LINE, None), LINE)
    np.testing.assert_array_equal(function(LINE, 4), LINE * 2)


def test_keywords_and_defaults():
    @tinyfuse.jit(dynamic="T")
    def counted(x: Any, *, T: int = 3) -> Any:  # noqa: N803
        y = x
        for _ in range(T):
            y = y * 0.5
        return y

    for options in ({}, {"T": 0}, {"T": 9}):
        np.testing.assert_array_equal(counted(LINE, **options), LINE * 0.5 ** options.get("T", 3))
    assert counted.cache_info().misses == 1


def test_signatures_name_the_type():
    assert "(x: float64[90], T: int)" not in str(smoothed.trace(LINE, 3).graph)
    assert smoothed.explain_miss(LINE[:50], 3).startswith("smoothed(float64[50], int)")


def test_what_cannot_be():
    with pytest.raises(ValueError, match="dynamic: f has no parameter 'n', only: x"):
        tinyfuse.jit(f, dynamic="n")
    with pytest.raises(ValueError, match="f: 'x' is in static_argnames and in dynamic"):
        tinyfuse.jit(f, dynamic="x", static_argnames="x")
    with pytest.raises(ArgumentError, match="integers that are dynamic are those of int64"):
        smoothed(LINE, 2**63)


@pytest.mark.parametrize(
    ("what", "function"),
    [
        ("np.arange", lambda n: np.arange(0, stop=2 * n)),
        ("a grid", lambda n: np.mgrid[:n, :3]),
        ("a grid", lambda n: np.r_[0:n]),
        ("a grid", lambda n: np.r_[LINE, 0:n]),
    ],
)
def test_ranges_of_a_length_that_only_a_call_knows(what: str, function: Callable[[int], Any]):
    with pytest.raises(NumberConversionError) as raised:
        tinyfuse.jit(function, dynamic="n")(3)
    assert str(raised.value).split("\n")[0] == (
        f"{what} to an integer of a loop or of a dynamic argument has a length that is known only "
        "when the compiled function runs; take a part of a range of known length: "
        "np.arange(len(x))[:n]"
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda n: np.linspace(0, n, 5),
        lambda n: np.linspace(0.5, 2 * n, 5, endpoint=False),
        lambda n: np.full(3, n),
        lambda n: np.array([n, 2 * n, 5]),
        lambda n: np.asarray(n) + np.float32(1),
    ],
)
def test_arrays_of_such_integers(function: Callable[[int], Any]):
    jitted = tinyfuse.jit(function, dynamic="n")
    for n in (3, 0, -7):
        found, expected = jitted(n), function(n)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "function",
    [
        np.zeros,
        lambda n: np.ones((n, 2)),
        lambda n: np.linspace(0, 1, n),
        lambda n: LINE.reshape(n, -1),
    ],
)
def test_shapes_are_known(function: Callable[[int], Any]):
    with pytest.raises(NumberConversionError) as raised:
        tinyfuse.jit(lambda n: function(n), dynamic="n")(3)
    assert str(raised.value).split("\n")[0] == (
        "a Python integer (an index of a list, a shape, a step) needs the value of an integer of a "
        "loop or of a dynamic argument, which is known only when the compiled function runs; use "
        "it as the index of an array, or as the end of a slice: np.zeros(N)[:n] in place of "
        "np.zeros(n)"
    )


def test_what_is_to_be_written_instead_of_a_range():
    function = tinyfuse.jit(lambda x, n: (x[:n] * np.arange(len(x))[:n]).sum(), dynamic="n")
    for n in (0, 4, 90):
        np.testing.assert_allclose(function(LINE, n), LINE[:n] @ np.arange(n), rtol=1e-12)


def f(x: Any) -> Any:
    return x


def test_jitted_functions_are_pickled_with_it():
    again = pickle.loads(pickle.dumps(smoothed))
    assert again is smoothed


def test_complex_numbers_of_pythons_are_known():
    turned = tinyfuse.jit(lambda x, n: x * (1j * n), dynamic="n")
    with pytest.raises(NumberConversionError, match=r"write np.complex128\(1j\) in its place"):
        turned(LINE, 3)
    scaled = tinyfuse.jit(lambda x, n: x * (np.complex128(1j) * n), dynamic="n")
    np.testing.assert_array_equal(scaled(LINE, 3), LINE * 3j)
    with pytest.raises(NumberConversionError, match="a complex number of Python's"):
        tinyfuse.jit(lambda n: n == 1j, dynamic="n")(1)


def last_of_a_range(n, start, stop, step):
    i = start
    total = 0.0
    for i in range(n, stop, step):
        total += LINE[i]
    return i, total * i


def last_of_two_ranges(n, start, stop, step):
    total = LINE[0]
    for i in range(1, 20):
        for j in range(0, i, 2):
            total = total + LINE[j]
        total = total * 0.5 + j
    return total, i, j


@pytest.mark.parametrize("function", [last_of_a_range, last_of_two_ranges])
def test_the_variable_of_a_loop_keeps_its_last_value(function: Callable[..., Any]):
    jitted = tinyfuse.jit(function, dynamic=("n", "start", "stop"))
    for given in ((0, 7, 9, 1), (5, 7, 6, 1), (5, 7, 5, 1), (5, 7, 2, 1)):
        assert jitted(*given) == function(*given)
    for given in ((0, 7, 9, 4), (9, 7, 1, -3), (1, 7, 1, -3)):
        assert jitted(*given) == function(*given)


def test_the_variable_of_a_loop_without_turns_has_no_value():
    def last(n):
        total = 0.0
        for i in range(1, n):
            total += LINE[i]
        return total, i

    jitted = tinyfuse.jit(last, dynamic="n")
    assert jitted(5) == last(5)
    with pytest.raises(InvalidArgumentError) as raised:
        jitted(1)
    assert str(raised.value).split("\n")[0] == (
        "the variable of a loop without turns has no value after it: give it one before"
    )


def with_ranges(n, start, x):
    sums = np.zeros(2)
    for i in range(1, 40):
        sums[0] += (x[:i] * np.arange(i)).sum()
        sums[1] += np.arange(i, 0, -1) @ x[:i] + np.arange(i - 3, 2 * i, 3).max(initial=i)
        x[i : 2 * i] += np.arange(i)
        x[:i] = np.arange(start, start + i) * 0.25
    numbers = np.arange(n).sum(), np.arange(start, n, 2).prod(), np.arange(n).min(initial=4)
    return sums, x[np.arange(n)].max(initial=n), *numbers


def test_ranges_to_such_integers_have_as_many_elements():
    jitted = tinyfuse.jit(with_ranges, dynamic=("n", "start"))
    for n, start in ((7, 2), (1, 3), (0, 0), (-2, -5), (40, -3)):
        found, expected = (f(n, start, np.arange(80.0) % 7) for f in (jitted, with_ranges))
        np.testing.assert_array_equal(found[0], expected[0])
        assert found[1:] == expected[1:]
    assert jitted.cache_info().misses == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda n: (np.arange(n) * 0.5).sum(),
        lambda n: np.arange(n).cumsum()[::-1].sum(),
        lambda n: np.arange(n, dtype=np.float32).sum(),
        lambda n: np.arange(0, 2 * n, n).sum(),
        lambda n: np.arange(stop=n, start=0).sum(),
    ],
)
def test_other_ranges_to_such_integers_are_refused(function: Callable[[int], Any]):
    with pytest.raises(NumberConversionError) as raised:
        tinyfuse.jit(lambda n: function(n), dynamic="n")(3)
    assert str(raised.value).split("\n")[0] == (
        "np.arange to an integer of a loop or of a dynamic argument has a length that is known "
        "only when the compiled function runs; take a part of a range of known length: "
        "np.arange(len(x))[:n]"
    )


def rebound(x, y, n):
    for _ in range(n):
        x = x + y
    x[0] = 9.0
    return x


def rebound_in_inner_turns(x, y, n):
    for i in range(4):
        for _ in range(i):
            x = x + y
        x[i] = y[0]
    return x + n


@pytest.mark.parametrize("turns", [0, 3])
def test_an_array_that_turns_may_have_bound_anew_is_written(turns: int):
    """Without turns it is the caller's."""
    mine, its = LINE.copy(), LINE.copy()
    expected = rebound(mine, LINE, turns)
    np.testing.assert_array_equal(tinyfuse.jit(rebound, dynamic="n")(its, LINE, turns), expected)
    np.testing.assert_array_equal(its, mine)
    assert (its[0] == 9.0) == (turns == 0)


def test_an_array_that_inner_turns_may_have_bound_anew_is_written():
    mine, its = LINE.copy(), LINE.copy()
    jitted = tinyfuse.jit(rebound_in_inner_turns, dynamic="n")
    expected = rebound_in_inner_turns(mine, LINE, 3)
    np.testing.assert_array_equal(jitted(its, LINE, 3), expected)
    np.testing.assert_array_equal(its, mine)
