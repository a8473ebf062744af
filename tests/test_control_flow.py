"""Loops and choices as functions: what they compute, their graphs, their C, and their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.written_bytes import written_bytes
from tinyfuse import errors
from tinyfuse.graph.printer import graph_text
from tinyfuse.graph.verifier import verify_graph
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case
from tinyfuse.tree import flatten

X = np.array([1.5, -2.0, 0.25, 3.0])
GRID = np.arange(12.0).reshape(4, 3)


def scaled_and_counted(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 10, lambda i, c: c * 0.5 + i, x)


def from_another_start(x: Any) -> Any:
    return tinyfuse.fori_loop(3, 9, lambda i, c: (c[0] + i, c[1] * x), (0, x))


def without_turns(x: Any) -> Any:
    return tinyfuse.fori_loop(5, 2, lambda i, c: c + i, x)


def number_of_turns_at_run_time(x: Any) -> Any:
    n = x[3].astype(np.int64)
    return tinyfuse.fori_loop(0, n, lambda i, c: c + i, x)


def swapped(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 7, lambda i, c: (c[1], c[0] + c[1]), (x, x * 2))


def rotated(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 8, lambda i, c: (c[1], c[2], c[0]), (x, x + 1, x * 2))


def writes_an_array_of_outside(x: Any) -> Any:
    y = np.zeros(5)

    def body(i: Any, c: Any) -> Any:
        y[i] = c.sum() + i
        return c * 2

    z = tinyfuse.fori_loop(0, 5, body, x)
    return y, z


def writes_a_view_of_outside(x: Any) -> Any:
    y = np.zeros((3, 4))
    row = y[1]

    def body(i: Any, c: Any) -> Any:
        row[i] = row[i - 1] + c
        return c + y.sum()

    z = tinyfuse.fori_loop(0, 4, body, x.sum())
    return y, z, row.sum()


def writes_the_argument(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        x[i] = x[i - 1] * 2 + i
        return c

    tinyfuse.fori_loop(1, 4, body, 0)
    return x[2]


def grid_in_place(x: Any) -> Any:
    def rows(i: Any, d: Any) -> Any:
        def columns(j: Any, d: Any) -> Any:
            d[i, j] = d[i - 1, j] + i * j
            return d

        return tinyfuse.fori_loop(0, 3, columns, d)

    return tinyfuse.fori_loop(1, 4, rows, x.copy())


def stencil(x: Any) -> Any:
    def body(i: Any, u: Any) -> Any:
        u[1:-1] = (u[:-2] + u[1:-1] + u[2:]) / 3
        return u

    return tinyfuse.fori_loop(0, 6, body, x.copy())


def doubled_until_large(x: Any) -> Any:
    return tinyfuse.while_loop(
        lambda s: s[0] < 100, lambda s: (s[0] * 2 + 1, s[1] + s[0]), (x.sum(), 0)
    )


def never(x: Any) -> Any:
    return tinyfuse.while_loop(lambda s: s.sum() > 1e9, lambda s: s + 1, x)


def collatz(x: Any) -> Any:
    def step(state: Any) -> Any:
        n, count = state
        even = n % 2 == 0
        return tinyfuse.cond(even, lambda: n // 2, lambda: 3 * n + 1), count + 1

    return tinyfuse.while_loop(lambda s: s[0] != 1, step, (x[3].astype(np.int64) + 4, 0))


def running_sums(x: Any) -> Any:
    return tinyfuse.scan(lambda c, a: (c + a, c * a), 0.0, x)


def running_backwards(x: Any) -> Any:
    def step(c: Any, a: Any) -> Any:
        return c + a["v"], {"sum": c, "row": a["m"] * c}

    xs = {"v": x, "m": np.arange(8.0).reshape(4, 2)}
    return tinyfuse.scan(step, np.float64(1), xs, reverse=True)


def counted_scan(x: Any) -> Any:
    return tinyfuse.scan(lambda c, _: (c * 2, c[0]), x, None, length=3)


def mapped(x: Any) -> Any:
    return tinyfuse.map(lambda a: a * 2 + x[0], x)


def chosen(x: Any) -> Any:
    return tinyfuse.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, x)


def chosen_writes(x: Any) -> Any:
    y = np.zeros(4)

    def fill() -> Any:
        y[1] = x[0]
        return 1

    number = tinyfuse.cond(x[1] > 0, fill, lambda: 2)
    return y, number


def chosen_in_turns(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return tinyfuse.cond(i % 2 == 0, lambda: (c[1], c[0] + i), lambda: (c[0] * 2, c[1]))

    return tinyfuse.fori_loop(0, 5, body, (x, x + 1))


def switched(x: Any) -> Any:
    which = x[3].astype(np.int64) - 2
    return tinyfuse.switch(which, [lambda a: a * 2, lambda a: a - 1, lambda a: a * 0], x)


def switched_beyond(x: Any) -> Any:
    branches = [lambda a: a * 2, lambda a: a - 1]
    low, high = x[1].astype(np.int64) - 9, x[3].astype(np.int64) + 9
    return tinyfuse.switch(low, branches, x), tinyfuse.switch(high, branches, x)


def switched_by_the_turn(x: Any) -> Any:
    branches = [lambda a: a + 1, lambda a: a * 2, lambda a: a - 3]

    def body(i: Any, c: Any) -> Any:
        c = tinyfuse.switch(i, branches, c)
        return tinyfuse.fori_loop(0, 2, lambda j, d: tinyfuse.switch(i, branches, d), c)

    return tinyfuse.fori_loop(0, 5, body, x)


def a_number_becomes_a_scalar(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 4, lambda i, total: total + x[i].astype(np.float32), 0)


def python_numbers(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        count, time, flag = c
        return count + i // 2 - 3 * i % 5, time + 0.25, flag

    return tinyfuse.fori_loop(0, 6, body, (0, 1.0, True))


def a_truth_that_changes(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        total, _found = c
        return total + x[i], x[i] < 0

    return tinyfuse.fori_loop(0, 4, body, (0.0, False))


def empty(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 3, lambda i, c: c * 2, x[:0])


PROGRAMS: list[Callable[..., Any]] = [
    *(scaled_and_counted, from_another_start, without_turns, number_of_turns_at_run_time),
    *(swapped, rotated, writes_an_array_of_outside, writes_a_view_of_outside),
    *(writes_the_argument, stencil, doubled_until_large, never, collatz, running_sums),
    *(running_backwards, counted_scan, mapped, chosen, chosen_writes, chosen_in_turns),
    *(switched, switched_beyond, switched_by_the_turn, a_number_becomes_a_scalar),
    *(python_numbers, empty, a_truth_that_changes),
]


def case_of(function: Callable[..., Any]) -> Case:
    argument = GRID if function is grid_in_place else X
    return Case(function, (argument,), f"# {function.__name__}")


def test_every_level_computes_the_same_bits():
    cases = [case_of(function) for function in (*PROGRAMS, grid_in_place)]
    for case in cases:
        verify_graph(case.trace.graph)
    report = Ladder(jit_of=lambda case: True).climb(cases)
    assert "\n".join(map(str, report.failures)) == ""
    assert report.climbed["fused C, 3 threads"] == len(cases)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_jit_returns_what_the_function_does(function: Callable[..., Any]):
    mine, its = X.copy(), X.copy()
    expected = flatten(function(mine))[0]
    found = flatten(tinyfuse.jit(function)(its))[0]
    assert [type(leaf) for leaf in found] == [type(leaf) for leaf in expected]
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(mine, its)


def test_a_body_is_traced_once():
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            runs.append(i)
            return c * 2

        runs: list[Any] = []
        return tinyfuse.fori_loop(0, 1000, body, x) + len(runs)

    np.testing.assert_array_equal(tinyfuse.jit(f)(X * 0), [1, 1, 1, 1])


def test_the_graph_shows_the_body():
    def f(x: Any) -> Any:
        return tinyfuse.fori_loop(0, 9, lambda i, c: c * 2 + i, x)

    assert graph_text(tinyfuse.make_graph(f)(X)) == (
        "f(x: float64[4]) {\n"
        "  x_1: float64[4] = loop[extent=9] x\n"
        "    body(turn: int64[], x: float64[4]) {\n"
        "      multiply: float64[4] = multiply x 2.0:float64\n"
        "      cast: float64[] = cast turn\n"
        "      broadcast: float64[4] = broadcast cast\n"
        "      add: float64[4] = add multiply broadcast\n"
        "      return add\n"
        "    }\n"
        "  return x_1\n"
        "}"
    )


def entry_of(function: Callable[..., Any], *args: Any) -> str:
    text = tinyfuse.jit(function).lower(*args).as_text("c")
    return text[text.index("\nint ") :]


def test_what_is_computed_is_where_what_is_carried_was():
    assert entry_of(scaled_and_counted, X) == (
        "\nint scaled_and_counted(void *const *arrays, void *scratch, const tf_pool *pool) {\n"
        "  (void)scratch;\n"
        "  (void)pool;\n"
        "  double *x = arrays[0];\n"
        "  double *x_1 = arrays[1];\n"
        "  scaled_and_counted_x_1(x, x_1);\n"
        "  scaled_and_counted_loop(x_1);\n"
        "  return 0;\n"
        "}\n"
    )


def test_elements_are_put_in_place():
    """The loops are one kernel, which writes one element in a turn, and needs no memory."""
    lowered = tinyfuse.jit(grid_in_place).lower(GRID)
    _, loop = lowered.loops.kernels
    assert written_bytes([loop]) == 3 * 3 * 8
    assert lowered.scratch_bytes == 0


def test_the_parts_between_loops_have_schedules():
    lowered = tinyfuse.jit(stencil).lower(X)
    assert len(lowered.schedules) == 2
    with pytest.raises(errors.ScheduleError, match="each part between them has a schedule of its"):
        _ = lowered.schedule
    again = lowered.with_schedule(lowered.schedules[1])
    assert again.as_text("c") == lowered.as_text("c")


def test_totals_count_turns():
    lowered = tinyfuse.jit(scaled_and_counted).lower(X)
    assert list(lowered.loops.turns.values()) == [1, 1]
    report = str(tinyfuse.explain(scaled_and_counted, X))
    assert "operations                   80       80" in report


# -- errors


def shrinks(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 3, lambda i, c: c[:-1], x)


def changes_dtype(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 3, lambda i, c: c * 2.5, x.astype(np.int64))


def changes_structure(x: Any) -> Any:
    return tinyfuse.while_loop(lambda c: True, lambda c: [c[0]], (x, x))


def branches_disagree(x: Any) -> Any:
    return tinyfuse.cond(x.sum() > 0, lambda: x, lambda: x[:2])


def asks_for_an_index(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 3, lambda i, c: c + [1, 2, 3][i], x)


def asks_for_a_number(x: Any) -> Any:
    return tinyfuse.fori_loop(0, 3, lambda i, c: c + (1 if c > 0 else 2), 0.5)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (
            shrinks,
            errors.CarryError,
            "what fori_loop's body_fun is given is float64[4], what fori_loop's body_fun returns "
            "is float64[3]",
        ),
        (
            changes_dtype,
            errors.CarryError,
            "what fori_loop's body_fun is given is int64[4], what fori_loop's body_fun returns is "
            "float64[4]",
        ),
        (
            changes_structure,
            errors.CarryError,
            "what while_loop's body_fun is given is a tuple of 3 leaves, what while_loop's "
            "body_fun returns a tuple of 2 leaves",
        ),
        (
            branches_disagree,
            errors.CarryError,
            "what cond's false_fun returns is float64[2], what cond's true_fun returns is "
            "float64[4]",
        ),
        (
            asks_for_an_index,
            errors.NumberConversionError,
            "a Python integer (an index of a list, a shape, a step) needs the value of "
            "an integer of a loop or of a dynamic argument, which is known only when the compiled "
            "function runs; use it as the index of an array, or as the end of a slice: "
            "np.zeros(N)[:n] in place of np.zeros(n)",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_errors(function: Callable[..., Any], error: type[Exception], words: str):
    with pytest.raises(error) as raised:
        tinyfuse.jit(function)(X)
    message, place = str(raised.value).split("\n")
    assert message == words
    assert place.startswith("  at ")
    assert "test_control_flow.py" in place


def test_an_index_beyond_the_array_raises_after_the_loop():
    @tinyfuse.jit
    def f(x: Any, n: Any) -> Any:
        return tinyfuse.fori_loop(0, 5, lambda i, c: c + x[n + i], 0.0)

    assert f(X, np.int64(-4)) == np.float64(X[-4]) + X.sum()
    with pytest.raises(IndexError, match="an index is out of bounds for axis 0 with size 4"):
        f(X, np.int64(1))
