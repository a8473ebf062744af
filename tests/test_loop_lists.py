"""Lists that the turns of a loop append to: which loops are one loop, what is in the lists then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.loop_checking import assert_same, loops_in
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case

X = np.array([1.0, 2.0, 3.0])


def states(x: Any) -> Any:
    out = []
    for t in range(100):
        x = x * 0.9 + t
        out.append(x)
    return np.stack(out), x


def begun_with_one(x: Any) -> Any:
    out = [x]
    for t in range(100):
        x = x * 0.9 + t
        out.append(x)
    return np.array(out), len(out), out[-1][1]


def before_each_step(x: Any) -> Any:
    out: list[Any] = []
    for t in range(100):
        out.append(x)
        x = x * 0.9 + t
    out.append(x)
    return np.stack(out), x


def numbers(x: Any) -> Any:
    sums, counts, n = [], [], 0
    for t in range(100):
        x, n = x * 0.9, n + t
        sums.append(x.sum())
        counts.append(n * 2)
    return np.array(sums), counts[3], sum(sums), counts


def containers(x: Any) -> Any:
    out = []
    for t in range(100):
        x = x * 0.9
        out.append({"x": x, "of": (x.sum(), "words", t)})
    return out[0]["x"], out[99]["of"][0], out[99]["of"][2], x


def copies(x: Any) -> Any:
    out = []
    for _ in range(100):
        x += 1
        out.append(x.copy())
    return np.stack(out), x


def inside_a_loop(x: Any) -> Any:
    rows = []
    for i in range(20):
        row = []
        for j in range(20):
            x = x * 0.5 + j
            row.append(x + i)
        rows.append(np.stack(row))
    return np.stack(rows)


def over_an_array(x: Any) -> Any:
    state, states = np.zeros(3), []
    for row in np.tile(x, (80, 1)):
        state = np.tanh(state * 0.5 + row)
        states.append(state)
    return np.stack(states), states[-1]


def one_after_another(x: Any) -> Any:
    out = []
    for _ in range(50):
        x = x * 0.5
        out.append(x)
    for _ in range(50):
        x = x + 1
        out.append(x)
    return np.stack(out)


ROLLED = [
    *(states, begun_with_one, before_each_step, numbers, containers, copies, over_an_array),
]


@pytest.mark.parametrize("function", ROLLED)
def test_a_loop_that_appends_is_one_loop(function: Callable[..., Any]):
    assert loops_in(function, X) == 1


@pytest.mark.parametrize("function", [*ROLLED, one_after_another, inside_a_loop])
def test_lists_have_what_the_turns_append(function: Callable[..., Any]):
    values, expected = tinyfuse.jit(function)(X.copy()), function(X.copy())
    assert str(values) == str(expected)


def test_every_level_computes_the_same_bits():
    cases = [Case(each, (X,), f"# {each.__name__}") for each in (*ROLLED, inside_a_loop)]
    assert "\n".join(map(str, Ladder().climb(cases).failures)) == ""


def test_all_elements_together_are_the_array_that_the_turns_fill():
    graph = tinyfuse.jit(states).lower(X).graph
    assert graph.outputs[0] in next(e for e in graph.eqns if e.primitive.name == "loop").outputs


# -- one array in a list and under a name


def last_is_a_name(x: Any) -> Any:
    out = []
    for _ in range(100):
        x = x + 1
        out.append(x)
    x[0] = 99
    return np.stack(out), x


def last_is_written_in_the_list(x: Any) -> Any:
    out = []
    for _ in range(100):
        x = x + 1
        out.append(x)
    out[-1][1] = 7
    out[3][0] = 5
    return np.stack(out), x


def first_is_the_argument(x: Any) -> Any:
    out = []
    for _ in range(100):
        out.append(x)
        x = x + 1
    out[0][1] = 7
    return np.stack(out), x


@pytest.mark.parametrize(
    "function", [last_is_a_name, last_is_written_in_the_list, first_is_the_argument]
)
def test_arrays_in_a_list_are_those_of_names(function: Callable[..., Any]):
    assert loops_in(function, X) == 1
    assert_same(function, X)


# -- loops that are written out


def written_by_turns(x: Any) -> Any:
    out = []
    for _ in range(100):
        x += 1
        out.append(x)
    return np.stack(out)


def written_after_it_is_appended(x: Any) -> Any:
    out = []
    for t in range(100):
        y = x + t
        out.append(y)
        y[0] = 0
    return np.stack(out)


def the_same_array(x: Any) -> Any:
    out = []
    for _ in range(100):
        out.append(x)  # noqa: PERF401
    out[0][0] = 5
    return np.stack(out)


def a_view(x: Any) -> Any:
    out = []
    for _ in range(100):
        x = x + 1
        out.append(x[1:])
    x[1] = 0
    return np.stack(out)


def in_two_lists(x: Any) -> Any:
    out, other = [], []
    for _ in range(100):
        x = x + 1
        out.append(x)
        other.append(x)
    out[5][0] = 8
    return np.stack(out), np.stack(other)


def read_by_turns(x: Any) -> Any:
    out = []
    for _ in range(100):
        out.append(x * len(out))
    return np.stack(out)


def read_by_a_function(x: Any) -> Any:
    out = []

    def last() -> Any:
        return out[-1] if out else x

    for _ in range(100):
        out.append(last() * 0.5 + x)  # noqa: PERF401
    return np.stack(out)


def with_another_name(x: Any) -> Any:
    out = []
    seen = out
    for _ in range(100):
        x = x + len(seen)
        out.append(x)
    return np.stack(out)


def in_some_turns(x: Any) -> Any:
    out = []
    for t in range(100):
        x = x + 1
        if t % 2:
            out.append(x)
    return np.stack(out)


def of_two_kinds(x: Any) -> Any:
    out = []
    for t in range(100):
        out.append(x if t % 2 else x.sum())  # noqa: PERF401
    return out[0], out[1]


@pytest.mark.parametrize(
    "function",
    [
        *(written_by_turns, written_after_it_is_appended, the_same_array, a_view, in_two_lists),
        *(read_by_turns, read_by_a_function, with_another_name, in_some_turns, of_two_kinds),
    ],
)
def test_other_lists_are_those_of_all_turns(function: Callable[..., Any]):
    assert loops_in(function, X) == 0
    assert_same(function, X)
