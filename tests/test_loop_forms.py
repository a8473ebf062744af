"""Loops over other things than plain ranges, and over slices that loops decide about."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.loop_checking import assert_same, kinds_of_loops
from tinyfuse.errors import TinyfuseError
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case
from tinyfuse.trace import loop_statements

GENERATOR = np.random.default_rng(0)
SQUARE, LINE, OTHER = GENERATOR.random((9, 9)), GENERATOR.random(9), GENERATOR.random(9)


@pytest.fixture(autouse=True)
def few_turns_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 4)


def backwards(x: Any) -> Any:
    s = 0.0
    for i in reversed(range(len(x))):
        s = s * 0.5 + x[i]
    return s, i


def numbered(x: Any) -> Any:
    y = np.zeros_like(x)
    for i, value in enumerate(x):
        y[i] = value * i
    return y


def in_pairs(x: Any, y: Any) -> Any:
    s = 0.0
    for a, b in zip(x, y, strict=False):
        s += a * b
    for i, (a, j) in enumerate(zip(x, range(3, 100, 2))):  # noqa: B905
        s = s + a * j + i
    return s


def rows(A: Any) -> Any:  # noqa: N803
    total = np.zeros(A.shape[1])
    for row in A:
        total = total * 0.5 + row
    return total


def triangles(A: Any) -> None:  # noqa: N803
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] += A[j, i] * 0.5
        for j in range(A.shape[0] - 1, i, -2):
            A[i, j] *= 2


def three_deep(A: Any) -> Any:  # noqa: N803
    n, count = A.shape[0], 0
    for i in range(n):
        for j in range(i + 1, n):
            for k in reversed(range(i + 1, j)):
                A[i, j] = max(A[i, j], A[i, k] + A[k, j])
                count = count + k
    return count


def slices(A: Any, x: Any) -> Any:  # noqa: N803
    sums = np.zeros_like(x)
    for i in range(x.shape[0]):
        sums[i] = A[i, :i].sum() + A[i, i:] @ x[i:] + np.dot(A[:i, i], np.flip(x[:i]))
        x[:i] += 0.5 * x[:i][::-1]
        x[i:] = A[i, i:] - 1
        A[i, :i] = 0.25
    return sums


def named_slices(A: Any) -> Any:  # noqa: N803
    total = 0.0
    for i in range(9):
        row = A[i, :i]
        column = A[:i, i]
        total += (row * column).sum()
        row += 1
    return total


FORMS: list[tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = [
    (backwards, (LINE,), ["loop"]),
    (numbered, (LINE,), ["loop"]),
    (rows, (SQUARE,), ["loop"]),
    (triangles, (SQUARE,), ["loop", "loop", "loop"]),
    (three_deep, (SQUARE,), ["loop", "loop", "loop"]),
    (slices, (SQUARE, LINE), ["loop", *["loop"] * 7]),  # and those of sums, in blocks
    (named_slices, (SQUARE,), ["loop", *["loop"] * 2]),
]


@pytest.mark.parametrize(("function", "args", "loops"), FORMS)
def test_loops_stay_loops(function: Callable[..., Any], args: tuple[Any, ...], loops: list[str]):
    assert_same(function, *args)
    assert kinds_of_loops(function, *args) == loops


def test_zip_with_keywords_is_pythons():
    assert_same(in_pairs, LINE, OTHER)
    assert kinds_of_loops(in_pairs, LINE, OTHER) == ["loop"]


def test_every_level_computes_the_same_bits():
    cases = [
        Case(function, args, f"# {function.__name__}", exact=function not in (slices, named_slices))
        for function, args, _ in FORMS
    ]
    report = Ladder(jit_of=lambda case: True).climb(cases)
    assert "\n".join(map(str, report.failures)) == ""


def without_turns(x: Any) -> Any:
    s = 0.0
    for i in range(9):
        for j in range(9, i):
            s = x[j]
    return s


def a_number_without_turns(x: Any) -> Any:
    s = 0.0
    for i in range(9):
        for j in range(9, i):
            s = s * 0.5 + x[j]
        s = s * 0.5
    return s


@pytest.mark.parametrize("function", [without_turns, a_number_without_turns])
def test_python_numbers_stay_python_numbers_where_there_are_no_turns(
    function: Callable[..., Any], caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO, "tinyfuse.compile"):
        assert_same(function, LINE)
    assert "if there are no turns" in caplog.text


def of_another_length(x: Any) -> Any:
    total = np.zeros_like(x)
    for i in range(9):
        total[i] = (x[: i + 1] + x[:i]).sum()
    return total


def returned(x: Any) -> Any:
    for i in range(9):
        y = x[:i]
    return y


def two_at_once(A: Any) -> Any:  # noqa: N803
    for i in range(9):
        A[:i, :i] = 0
    return A


def test_other_slices_are_written_out_or_raise_as_in_numpy():
    assert_same(two_at_once, SQUARE)
    assert_same(returned, LINE)
    assert kinds_of_loops(two_at_once, SQUARE) == kinds_of_loops(returned, LINE) == []
    with pytest.raises((ValueError, TinyfuseError)):
        tinyfuse.jit(of_another_length)(LINE)
