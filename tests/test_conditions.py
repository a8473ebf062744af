"""`and`, `or`, `not`, chained comparisons, `min` and `max` of values that only a call knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.graph.control import all_graphs
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case
from tinyfuse.trace import loop_statements

POINTS = [
    np.array(point)
    for point in (
        [1.0, 2.0, 3.0],
        [3.0, 2.0, 1.0],
        [-1.0, 0.0, 0.5],
        [0.0, -0.0, 0.0],
        [np.nan, 1.0, 2.0],
        [1.0, np.nan, np.nan],
        [np.inf, -np.inf, 0.0],
    )
]


def square_root(a: Any) -> Any:
    x, n = np.abs(a) + 1, 0
    while np.abs(x * x - np.abs(a)).max() > 1e-6 and n < 9:
        x, n = 0.5 * (x + np.abs(a) / x), n + 1
    return x, n


def all_three(x: Any) -> Any:
    return x * (1.0 if x[0] > 0 and x[1] > 0 and x[2] > 0 else x[0])


def none_of_them(x: Any) -> Any:
    y = x * 2
    if not (x[0] > 1 or x[1] > 1):
        y = y + 1
    return y


def in_between(x: Any) -> Any:
    return 2.0 if 0 < x[0] <= x[1] < 3 else 3.0


def a_value_itself(x: Any) -> Any:
    return (x[0] > 0 and x[1] > 0), (x[0] or x[1]), (x[0] and x[2])


def of_other_kinds(x: Any) -> Any:
    n = 3
    return x + 1 if n and x[0] and x[1] > 0 else x


def nested(x: Any) -> Any:
    return x[2] if (x[0] > 1 or (x[1] > 1 and not x[2] > 1)) and x[0] != x[1] else x[0] - 1


def smallest_and_largest(x: Any) -> Any:
    return min(x[0], x[1], x[2]), max(x[0], x[1], x[2]), x * max(0, x[1]), x * min(x[2], 0.0)


def of_known_numbers(x: Any) -> Any:
    return min(x.size, 4.0) * x, max([1, 2])


def in_turns(x: Any) -> Any:
    y = np.zeros((80, 3))
    for i in range(1, 80):
        for j in range(3):
            y[i, j] = max(y[i - 1, j], y[i - 1, 0] + x[j], min(x[j], 1.0))
            if y[i, j] > 4 and not x[j] < 0:
                y[i, j] = y[i, j] / 2
    return y


def puts_elements(x: Any) -> Any:
    y = np.zeros(4)
    if x[0] > 0:
        y[0] = x[1]
        y[1] = y[0] + x[2]
        x[0] = 5
    else:
        y[1] = y[3] - x[1]
        y[0] = y[1] * 2
    return y, x


def of_two_arrays(x: Any) -> Any:
    y = np.zeros(3)
    for i in range(100):
        a, b = i % 3, (i + 1) % 3
        if x[a] > y[b]:
            y[a] = x[a] + y[2]
        elif y[a] == 0:
            x[a], y[1] = y[2], x[a]
    return x, y


def sorted_by_hand(x: Any) -> Any:
    x = np.tile(x, 30)
    for i in range(len(x)):
        for j in range(len(x) - 1):
            if x[j] > x[j + 1] and i < 90:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


PROGRAMS = [
    *(puts_elements, of_two_arrays, sorted_by_hand),
    *(square_root, all_three, none_of_them, in_between, a_value_itself, of_other_kinds, nested),
    *(smallest_and_largest, of_known_numbers, in_turns),
]


@pytest.mark.parametrize("point", POINTS, ids=str)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_they_give_what_python_does(function: Callable[..., Any], point: Any):
    with np.errstate(all="ignore"):
        expected, found = function(point.copy()), tinyfuse.jit(function)(point.copy())
    assert str(found) == str(expected)


def test_every_level_computes_the_same_bits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 1)
    cases = [Case(each, (POINTS[0],), f"# {each.__name__}") for each in PROGRAMS]
    assert "\n".join(map(str, Ladder().climb(cases).failures)) == ""


def choices(function: Callable[..., Any], *args: Any) -> int:
    graph = tinyfuse.jit(function).lower(*args).graph
    eqns = [eqn for each in all_graphs(graph) for eqn in each.eqns]
    return sum(eqn.primitive.name == "cond" for eqn in eqns)


def reads_another_element(x: Any) -> Any:
    return x[1] * 2 if x[0] > 0 else x[2] + 1


def costs_much(x: Any) -> Any:
    return np.power(x[1], x[2]) if x[0] > 0 else x[2]


def of_arrays(x: Any) -> Any:
    return x + 1 if x[0] > 0 else x


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (all_three, 0),
        (nested, 0),
        (smallest_and_largest, 0),
        (in_turns, 0),
        (reads_another_element, 0),
        (puts_elements, 0),
        (of_two_arrays, 0),
        (sorted_by_hand, 0),
        (costs_much, 1),
        (of_arrays, 1),
    ],
)
def test_cheap_choices_between_scalars_are_selections(function: Callable[..., Any], count: int):
    assert choices(function, POINTS[0]) == count


def test_a_choice_between_scalars_stays_in_one_kernel():
    x = np.arange(12.0).reshape(3, 4)

    def scaled(x: Any) -> Any:
        scale = 2.0 if x[0, 0] > 0 and x[1, 0] < 9 else 0.5
        return np.sqrt(x * scale) + 1

    assert len(tinyfuse.jit(scaled).lower(x).loops.kernels) == 1


def test_a_choice_by_number_takes_the_nearest_branch():
    def chosen(i: Any, x: Any) -> Any:
        return tinyfuse.switch(i, [lambda x: x + 1, lambda x: x * 2], x)

    for index in (-5, 0, 1, 2, 99):
        found = tinyfuse.jit(chosen)(np.int64(index), np.float64(3.0))
        assert found == (4.0 if index <= 0 else 6.0)
    assert choices(chosen, np.int64(0), np.float64(3.0)) == 0


def with_scalar_types(x, n):
    total, part = np.float64(x.sum()), np.float32(x[0])
    state = np.float64(0)
    for i in range(300):
        state = state * 0.5 + np.float32(i) * np.int64(i)
    for i in range(n):
        state = state + np.float16(i) / np.float64(i + 1)
    return total, part, np.float32(x), np.int64(x[1] * 3), state, np.float32(n), np.float64(3)


def test_scalar_types_of_numpys_are_called_with_what_is_traced():
    x = np.arange(3.0) + 0.3
    jitted = tinyfuse.jit(with_scalar_types, dynamic="n")
    for found, expected in zip(jitted(x, 70), with_scalar_types(x, 70), strict=True):
        assert type(found) is type(expected)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    kinds = [eqn.primitive.name for eqn in jitted.trace(x, 70).graph.eqns]
    assert kinds.count("loop") == 2
