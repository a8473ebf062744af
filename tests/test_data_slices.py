"""Slices and ranges whose ends data decides."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.loop_checking import assert_same, kinds_of_loops
from tinyfuse.errors import InvalidArgumentError, NumberConversionError
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case

GENERATOR = np.random.default_rng(0)


def sparse(rows: int, longest: int) -> tuple[Any, ...]:
    row = np.concatenate([[0], np.cumsum(GENERATOR.integers(0, longest, rows))])
    column = GENERATOR.integers(0, rows, row[-1])
    return row, column, GENERATOR.standard_normal(row[-1]), GENERATOR.standard_normal(rows)


def product(row: Any, column: Any, value: Any, x: Any) -> Any:
    y = np.zeros(row.shape[0] - 1)
    for i in range(row.shape[0] - 1):
        y[i] = np.sum(value[row[i] : row[i + 1]] * x[column[row[i] : row[i + 1]]])
    return y


def dots(row: Any, column: Any, value: Any, x: Any) -> Any:
    y = np.zeros(row.shape[0] - 1)
    for i in range(row.shape[0] - 1):
        begin, end = row[i], row[i + 1]
        y[i] = value[begin:end] @ x[column[begin:end]]
    return y


def one_by_one(row: Any, column: Any, value: Any, x: Any) -> Any:
    y = np.zeros(row.shape[0] - 1)
    for i in range(row.shape[0] - 1):
        for k in range(row[i], row[i + 1]):
            y[i] += value[k] * x[column[k]]
    return y


def scaled(row: Any, column: Any, value: Any, x: Any) -> Any:
    for i in range(row.shape[0] - 1):
        value[row[i] : row[i + 1]] *= x[i]
        value[row[i] : row[i + 1]] += 1
        column[row[i] : row[i + 1]] = i
    return value[row[3] :].sum(), column[: row[5]].sum(), value[row[2] : row[9]].mean()


def put(row: Any, column: Any, value: Any, x: Any) -> Any:
    out = np.zeros(value.shape)
    for i in range(row.shape[0] - 1):
        out[row[i] : row[i + 1]] = value[row[i] : row[i + 1]][::-1] * x[i]
        out[row[i] : row[i] + 1] = -out[row[i] : row[i] + 1]
    return out


def from_the_end(row: Any, column: Any, value: Any, x: Any) -> Any:
    y = np.zeros(8)
    for i in range(8):
        y[i] = x[-row[1] - i :].sum() + x[: row[1] - 20 - i].sum() + x[row[1] : -3].sum()
    return y


FORMS: list[tuple[Callable[..., Any], int]] = [
    (product, 2), (dots, 2), (one_by_one, 2), (scaled, 29), (put, 2), (from_the_end, 2),
]  # fmt: skip
NAMES = [function.__name__ for function, _ in FORMS]
SMALL = sparse(80, 9)


@pytest.mark.parametrize(("function", "kernels"), FORMS, ids=NAMES)
def test_loops_stay_loops(function: Callable[..., Any], kernels: int):
    assert_same(function, *SMALL)
    lowered = tinyfuse.jit(function).lower(*copy.deepcopy(SMALL))
    assert len(lowered.loops.kernels) == kernels


def test_every_level_computes_the_same_bits():
    given = (SMALL, sparse(70, 80))
    cases = [
        Case(function, args, f"# {function.__name__}", exact=function in (one_by_one, put))
        for function, _ in FORMS
        for args in given
    ]
    report = Ladder(jit_of=lambda case: True).climb(cases)
    assert "\n".join(map(str, report.failures)) == ""


LENGTHS = (0, 1, 2, 31, 32, 33, 63, 64, 65, 100, 1023, 1024, 1025, 2049, 3000, 5120)


@pytest.mark.parametrize("of", ["sum", "dot"])
def test_sums_have_the_order_that_their_length_has(of: str):
    values, others = GENERATOR.standard_normal((2, 6000))

    def some(x: Any, y: Any, first: Any, last: Any) -> Any:
        part, other = x[first:last], y[first:last]
        return np.sum(part * other) if of == "sum" else part @ other

    def whole(x: Any, y: Any) -> Any:
        return np.sum(x * y) if of == "sum" else x @ y

    jitted, static = tinyfuse.jit(some), tinyfuse.jit(whole)
    for length in LENGTHS:
        ends = np.int64(7), np.int64(7 + length)
        expected = static(values[7 : 7 + length], others[7 : 7 + length])
        assert jitted(values, others, *ends) == expected
    assert jitted.cache_info().misses == 1


def test_a_row_is_a_loop_of_as_many_turns():
    text = tinyfuse.jit(one_by_one).lower(*SMALL).as_text("c")
    assert "    for (long turn = 0; turn < maximum; turn++)" in text
    assert kinds_of_loops(one_by_one, *SMALL) == ["loop", "loop"]


def test_columns_out_of_range_raise():
    row, column, value, x = SMALL
    wrong = column.copy()
    wrong[5] = 1000
    for function in (product, dots, one_by_one):
        with pytest.raises(IndexError):
            tinyfuse.jit(function)(row, wrong, value, x)


@pytest.mark.filterwarnings("ignore")
def test_ends_that_cross_choose_nothing():
    def mean(x: Any, first: Any, last: Any) -> Any:
        return x[first:last].mean(), x[first:last].sum()

    jitted = tinyfuse.jit(mean)
    for first, last in ((5, 2), (4, 4), (-1, 0), (2, 6)):
        with np.errstate(all="ignore"):
            expected = mean(np.arange(10.0), first, last) if first < last else (np.nan, 0.0)
        found = jitted(np.arange(10.0), np.int64(first), np.int64(last))
        np.testing.assert_array_equal(found, expected)


def test_views_show_what_is_written_later():
    def later(x: Any, n: Any) -> Any:
        part = x[:n]
        copied = part * 1.0
        x[0] = 100.0
        return part.sum(), copied.sum()

    assert_same(later, np.arange(10.0), np.int64(4))


def with_steps(x: Any, d: Any) -> Any:
    sums = np.zeros((80, 6))
    x = x.copy()
    for i in range(80):
        a, b = d[i], d[79 - i]
        sums[i, :3] = x[a:b:2].sum(), x[a::-3] @ x[a::-3], x[i : a : b % 4 + 1].sum()
        sums[i, 3:] = x[b::-1].max(initial=-2), x[: -a : i + 1].sum(), np.min(x[-i:b], initial=9)
        x[a:b:3] += 1
        x[b:a:-2] = x[b:a:-2] * 0.5
    return sums, x


def with_starts(x: Any, d: Any) -> Any:
    found = np.zeros((80, 4))
    for i in range(80):
        found[i, 0] = np.sum(x[d[i] :], initial=3)
        found[i, 1] = x[: d[i]].prod(initial=0.5)
        found[i, 2] = np.maximum.reduce(x[d[i] : i], initial=x[0])
        found[i, 3] = np.minimum.reduce(x[d[i] : i], initial=d[0])
    return found


@pytest.mark.parametrize("function", [with_steps, with_starts])
def test_slices_have_steps_and_reductions_have_starts(function: Callable[..., Any]):
    x, d = GENERATOR.integers(-8, 9, 60) / 8, GENERATOR.integers(-70, 71, 80)
    assert_same(function, x, d)
    assert kinds_of_loops(function, x, d)[0] == "loop"
    report = Ladder(jit_of=lambda case: True).climb([Case(function, (x, d), "", exact=False)])
    assert "\n".join(map(str, report.failures)) == ""


def test_a_step_of_the_call_is_positive():
    jitted = tinyfuse.jit(lambda x, n: x[2::n].sum(), dynamic="n")
    assert jitted(np.arange(10.0), 3) == 2 + 5 + 8
    assert jitted(np.arange(10.0), 30) == 2
    for step in (0, -1):
        with pytest.raises(InvalidArgumentError, match=r"the step of a slice .* is not positive"):
            jitted(np.arange(10.0), step)
    with pytest.raises(InvalidArgumentError, match=r"step cannot be zero"):
        tinyfuse.jit(lambda x, n: x[n::0].sum(), dynamic="n")(np.arange(10.0), 1)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: np.sum(x, keepdims=True), "np.sum with keepdims="),
        (lambda x: x.max(where=x > 0, initial=0), "np.max with where="),
        (lambda x: np.add.reduce(x, 0, None, None, True), "np.add.reduce with keepdims="),
        (lambda x: np.var(x, 0, None, None, 1), "np.var with these arguments"),
    ],
)
def test_other_arguments_are_refused(function: Callable[[Any], Any], words: str):
    with pytest.raises(NumberConversionError) as raised:
        tinyfuse.jit(lambda x, n: function(x[:n]), dynamic="n")(np.arange(10.0), 4)
    assert str(raised.value).startswith(f"{words} of a slice whose ends are known only when")


def test_several_slices_are_refused_and_rows_are_not():
    def corner(x: Any, n: Any) -> Any:
        x[:n, :n] *= 2
        return x

    def rows(x: Any, n: Any) -> Any:
        for r in range(n):
            x[r, :n] *= 2
        return x

    given = np.ones((6, 7))
    with pytest.raises(NumberConversionError) as raised:
        tinyfuse.jit(corner, dynamic="n")(given.copy(), 4)
    assert str(raised.value).split("\n")[0] == (
        "an index with several slices, or of some axes only, one of whose ends is known only when "
        "the compiled function runs: go through the rows in a loop, which becomes one of the "
        "program (for r in range(n): A[r, :n] *= 2, in place of A[:n, :n] *= 2)"
    )
    found = tinyfuse.jit(rows, dynamic="n")(given.copy(), 4)
    np.testing.assert_array_equal(found, corner(given.copy(), 4))


def test_other_uses_are_refused():
    with pytest.raises(NumberConversionError) as raised:
        tinyfuse.jit(lambda x, n: np.sort(x[:n]))(np.arange(10.0), np.int64(4))
    assert str(raised.value).startswith("np.sort of a slice whose ends are known only when")
