"""Plain Python loops: which become loops of the program, what they compute, why others do not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.loop_checking import assert_same, loops_in
from tests.loop_programs import loop_case
from tests.written_bytes import written_bytes
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case
from tinyfuse.testing.compare import difference
from tinyfuse.testing.variants import Variant, fused, random
from tinyfuse.trace import loop_statements

GENERATOR = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def few_turns_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 16)


# -- loops as people write them


def heat(T: int, A: Any, B: Any) -> None:  # noqa: N803
    for _ in range(T):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1])


def exchanged(T: int, A: Any, B: Any) -> Any:  # noqa: N803
    for _ in range(T):
        B[1:-1] = (A[:-2] + A[1:-1] + A[2:]) / 3
        A, B = B, A  # noqa: N806
    return A


def seidel(A: Any, n: int) -> None:  # noqa: N803
    for i in range(1, n - 1):
        A[i, 1:-1] += A[i - 1, :-2] + A[i - 1, 2:] + A[i + 1, 1:-1]
        for j in range(1, n - 1):
            A[i, j] += A[i, j - 1]
            A[i, j] /= 9.0


def columns(u: Any, n: int) -> Any:
    p = np.zeros(u.shape)
    for j in range(1, n - 1):
        p[1:-1, j] = 1.5 / (u[1:-1, j] + p[1:-1, j - 1])
    for j in range(n - 2, 0, -1):
        u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1]
    return p


def numbers(x: Any, dt: float) -> Any:
    time, count, total = 0.0, 0, 0.0
    for i in range(40):
        x += np.sin(time) * dt
        last = x[i % 5] * 2
        total += last
        time += dt
        count += i // 2
    return time, count, total, last, i


def filtered(x: Any) -> Any:
    y = np.empty_like(x)
    state = 0.0
    for i in range(len(x)):
        state = 0.9 * state + 0.1 * x[i]
        y[i] = state
    return y


def made_inside(x: Any) -> Any:
    total = np.zeros(4)
    for i in range(20):
        row = np.zeros(4)
        row[1] = i
        row[2:] = x[:2]
        total += row
    return total, row


def floyd(path: Any) -> None:
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


SQUARE, OTHER = GENERATOR.random((20, 20)), GENERATOR.random((20, 20))
LINE = GENERATOR.random(20)
LOOPS: list[tuple[Callable[..., Any], tuple[Any, ...], int]] = [
    (heat, (30, SQUARE, OTHER), 1),
    (exchanged, (30, LINE, LINE * 2), 1),
    (exchanged, (31, LINE, LINE * 2), 1),
    (seidel, (SQUARE, 20), 2),
    (columns, (SQUARE + 1, 20), 2),
    (numbers, (LINE, 0.1), 1),
    (filtered, (LINE,), 1),
    (made_inside, (LINE,), 1),
    (floyd, (np.arange(400).reshape(20, 20) % 17,), 1),
]


@pytest.mark.parametrize(("function", "args", "loops"), LOOPS)
def test_loops_are_one_loop_each(function: Callable[..., Any], args: tuple[Any, ...], loops: int):
    assert_same(function, *args)
    assert loops_in(function, *args) == loops


def test_every_level_computes_the_same_bits():
    cases = [Case(function, args, f"# {function.__name__}") for function, args, _ in LOOPS]
    report = Ladder(jit_of=lambda case: True).climb(cases)
    assert "\n".join(map(str, report.failures)) == ""


def test_no_turn_copies_an_array():
    lowered = tinyfuse.jit(seidel).lower(SQUARE, 20)
    first, loop = lowered.loops.kernels
    assert written_bytes([first]) == SQUARE.nbytes
    assert written_bytes([loop]) == 18 * (18 + 18) * 8
    assert lowered.scratch_bytes == 0


def test_stencils_write_what_is_inside_of_the_borders():
    lowered = tinyfuse.jit(heat).lower(30, SQUARE, OTHER)
    first, loop = lowered.loops.kernels
    assert written_bytes([first]) == 2 * SQUARE.nbytes
    assert written_bytes([loop]) == 30 * 2 * 18 * 18 * 8
    assert lowered.scratch_bytes == 0


def test_arrays_that_names_exchange_change_places():
    text = tinyfuse.jit(exchanged).lower(31, LINE, LINE).as_text("c")
    entry = text[text.index("\nint ") :]
    assert "turn_number < 31" in entry
    assert entry.count("kept = ") == 1


def test_few_turns_are_written_out():
    def f(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x * 2
        return x

    assert loops_in(f, LINE, loop_statements.MOST_UNROLLED) == 0
    assert loops_in(f, LINE, loop_statements.MOST_UNROLLED + 1) == 1


def test_turns_around_count_too():
    def f(x: Any) -> Any:
        for _ in range(5):
            for _ in range(4):
                x = x * 2
        return x

    assert loops_in(f, LINE) == 1


@pytest.mark.parametrize(
    ("outer", "inner", "loops"), [(4, 20, 4), (5, 20, 2), (5, 4, 1), (2, 8, 0)]
)
def test_loops_around_are_one_loop_rather_than_many_inside(outer: int, inner: int, loops: int):
    def f(x: Any) -> Any:
        for i in range(outer):
            x = x + i
            for j in range(inner):
                x = x * j
        return x

    assert loops_in(f, LINE) == loops
    assert_same(f, LINE)


def test_turns_that_write_much_are_not_written_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop_statements, "MOST_EQUATIONS", 100)

    def f(T: int, A: Any, B: Any) -> None:  # noqa: N803
        for _ in range(T):
            B[1:-1] = (A[:-2] + A[1:-1] + A[2:]) / 3
            A[1:-1] = (B[:-2] + B[1:-1] + B[2:]) / 3

    assert loops_in(f, 4, LINE, LINE) == 0  # 14 equations each
    assert loops_in(f, 8, LINE, LINE) == 1


def test_the_rewritten_source():
    def f(x: Any) -> Any:
        for i in range(20):
            x = x + i
        return x

    assert tinyfuse.jit(f).rewritten_source == (
        "def f(x: Any) -> Any:\n"
        "    loop_1 = __tinyfuse_loop__(__tinyfuse_items__(range, 20), ('x',), (lambda: x,), "
        "(True,), target_used=False)\n"
        "    for i in loop_1:\n"
        "        if loop_1.carrying:\n"
        "            x, = loop_1.carried\n"
        "        x = x + i\n"
        "    if loop_1.carrying:\n"
        "        x, = loop_1.after\n"
        "        i = loop_1.last\n"
        "    return x"
    )
    assert tinyfuse.jit(lambda x: x + 1).rewritten_source is None


# -- loops that are written out


def with_a_list(x: Any) -> Any:
    found = []
    for i in range(20):
        found.insert(0, x[i])
    return np.stack(found)


class Kept:
    """What a loop leaves elsewhere."""

    last: Any = None


def with_a_class(x: Any) -> Any:
    for i in range(20):
        Kept.last = x * i
        x = x + 1
    return Kept.last


def with_a_counter_in_a_list(x: Any) -> Any:
    count = [0]
    for _ in range(20):
        count[0] += 1
        x = x + count[0]
    return x


def with_a_python_list(x: Any) -> Any:
    factors = list(range(20))
    for i in range(20):
        x = x * 0.5 + factors[i]
    return x


def that_break(x: Any) -> Any:
    for i in range(20):
        if i == 3:
            break
        x = x + i
    return x


def that_shrink(x: Any) -> Any:
    for _ in range(18):
        x = x[1:] + x[:-1]
    return x


def with_two_names(x: Any) -> Any:
    y = x
    for i in range(20):
        x[i] = i
        x = x * 0.5
    return x, y


def with_an_older_array(x: Any) -> Any:
    before = x
    for i in range(20):
        y = before.sum()
        x = x + y
        before = x if i % 2 else before
    return x


def with_iterators(x: Any) -> Any:
    numbers = iter(range(100))
    for _ in range(20):
        x = x + next(numbers)
    return x


def with_slices(x: Any) -> Any:
    total = np.zeros(20)
    for i in range(20):
        total[:i] += np.sort(x[:i])
    return total


WRITTEN_OUT = [
    (with_a_list, "its turns change a list, an object or an iterator of Python's"),
    (with_a_class, "what a turn computes is kept outside of it"),
    (with_a_counter_in_a_list, "its turns differ: something that Python keeps changes from turn"),
    (with_a_python_list, "a Python integer (an index of a list, a shape, a step) needs"),
    (that_break, ""),
    (that_shrink, "x is float64[20] before a turn and float64[19] after it"),
    (with_two_names, "an array that it writes has other names after a turn"),
    (
        with_an_older_array,
        "`if`, `while`, `and`, `or`, `not` or bool() needs the value of an",
    ),
    (with_iterators, "its turns differ: something that Python keeps changes from turn to turn"),
    (with_slices, "np.sort of a slice whose ends are known only when the compiled function runs"),
]


@pytest.mark.parametrize(("function", "reason"), WRITTEN_OUT)
def test_other_loops_are_written_out(
    function: Callable[..., Any], reason: str, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO, "tinyfuse.compile"):
        assert_same(function, LINE)
    assert loops_in(function, LINE) == 0
    told = [message for message in caplog.messages if "is written out" in message]
    assert reason in "\n".join(told)
    assert bool(told) == bool(reason)


def test_long_ones_are_warned_of(caplog: pytest.LogCaptureFixture):
    def f(x: Any) -> Any:
        for _ in range(loop_statements.LONG):
            x = x[1:]
        return x

    with caplog.at_level(logging.WARNING, "tinyfuse.compile"):
        tinyfuse.jit(f).lower(np.zeros(loop_statements.LONG + 1))
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "the loop at " in warning
    assert warning.endswith(
        "is written out, with all of its 256 turns: x is float64[257] before a turn and "
        "float64[256] after it"
    )


def test_those_that_cannot_be_rewritten_are_warned_of_too(caplog: pytest.LogCaptureFixture):
    def f(x: Any) -> Any:
        for i in range(loop_statements.LONG):
            if i == 300:
                break
            x = x + i
        return x

    with caplog.at_level(logging.WARNING, "tinyfuse.compile"):
        tinyfuse.jit(f).lower(np.zeros(4))
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warning.endswith("with all of its 256 turns: `break` leaves it")


def test_names_of_the_users_stay():
    def f(x: Any) -> Any:
        loop_1, branch_2 = 1.0, 0.0
        for i in range(20):
            loop_1 = loop_1 + x[i]
        if loop_1 > 3:
            branch_2 = branch_2 + loop_1
        return loop_1, branch_2

    assert_same(f, LINE)


def test_errors_in_a_turn_are_the_users():
    def f(x: Any) -> Any:
        for _ in range(20):
            x = x + np.zeros(7)
        return x

    with pytest.raises(tinyfuse.errors.ShapeError, match="could not be broadcast together"):
        tinyfuse.jit(f)(LINE)


# -- conditions that data decides


def conditional_expression(x: Any) -> Any:
    return x if x.sum() > 1 else -x


def several_parts(x: Any) -> Any:
    y = x * 2
    if x.sum() > 1:
        y = y + 1
        z = 3.0
    elif x[0] > 0:
        z = 5.0
        y[0] = 7
    else:
        z = 4.0
    return y, z


def writes_in_one_part(x: Any) -> Any:
    if x[0] > 0:
        x[1:] = 5
    return x.sum()


def parts_in_turns(x: Any) -> Any:
    total = 0.0
    for i in range(40):
        if x[i % 5] > 0.5:
            total = total + x[i % 5]
        else:
            x[i % 5] = x[i % 5] + 0.1
    return total


def by_the_turn(x: Any) -> Any:
    y = np.zeros(30)
    for i in range(30):
        if i % 3 == 0:
            y[i] = x[i % 5]
    return y


CONDITIONS = [conditional_expression, several_parts, writes_in_one_part, by_the_turn]


@pytest.mark.parametrize("function", CONDITIONS)
@pytest.mark.parametrize("scale", [1.0, 0.1, -1.0])
def test_conditions_are_choices(function: Callable[..., Any], scale: float):
    assert_same(function, LINE[:5] * scale)


def test_conditions_in_turns_do_not_write_these_out():
    assert_same(parts_in_turns, LINE[:5])
    assert loops_in(parts_in_turns, LINE[:5]) == 1


def test_parts_have_the_same_bits_at_every_level():
    cases = [Case(each, (LINE[:5],), f"# {each.__name__}") for each in CONDITIONS]
    report = Ladder().climb(cases)
    assert "\n".join(map(str, report.failures)) == ""


def with_a_call(x: Any) -> Any:
    found: list[int] = []
    if x.sum() > 1:
        found.append(1)
    return x + len(found)


def of_two_shapes(x: Any) -> Any:
    if x.sum() > 1:
        x = x[1:]
    return x


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (with_a_call, tinyfuse.errors.BoolConversionError, "`if`, `while`, `and`, `or`, `not` or"),
        (
            of_two_shapes,
            tinyfuse.errors.BoolConversionError,
            "x is float64[4] where the test is true, else float64[5], and only the compiled "
            "function knows which: let it have one shape and dtype, or use np.where(condition, a, "
            "b) or tinyfuse.cond",
        ),
    ],
)
def test_conditions_that_are_refused(
    function: Callable[..., Any], error: type[Exception], words: str
):
    with pytest.raises(error) as raised:
        tinyfuse.jit(function)(LINE[:5])
    assert str(raised.value).startswith(words)
    assert "test_rolling.py" in str(raised.value)


# -- `while`


def until_it_converges(x: Any) -> Any:
    error, turns = 1.0, 0
    while error > 1e-6:
        y = x * 0.5
        error = np.abs(x - y).max()
        x = y
        turns += 1
    return x, error, turns


def until_it_is_large(x: Any) -> Any:
    total = x.sum()
    while total < 50:
        x += 1
        total = x.sum()
    return total


def numbers_in_while(x: Any) -> Any:
    i, time = 0, x[0] * 0
    while time < x[0] * 10:
        time += x[i % 5]
        i += 1
    return time, i


def that_python_counts(x: Any) -> Any:
    n = 5
    while n > 0:
        x = x + n
        n -= 1
    return x


WHILE = [until_it_converges, until_it_is_large, numbers_in_while, that_python_counts]


@pytest.mark.parametrize("function", WHILE)
@pytest.mark.parametrize("scale", [1.0, 0.0, 1000.0])
def test_while_loops(function: Callable[..., Any], scale: float):
    assert_same(function, (LINE[:5] + 0.1) * scale)


def test_while_loops_have_the_same_bits_at_every_level():
    cases = [Case(each, (LINE[:5] + 0.1,), f"# {each.__name__}") for each in WHILE]
    report = Ladder().climb(cases)
    assert "\n".join(map(str, report.failures)) == ""
    primitives = [[eqn.primitive.name for eqn in case.graph.eqns] for case in cases]
    assert ["while" in names for names in primitives] == [True, True, True, False]


def test_a_while_loop_that_is_refused():
    def f(x: Any) -> Any:
        while x.sum() < 100:
            x[0] += 1
            x = x * 1.5
        return x

    words = "`if`, `while`, `and`, `or`, `not` or bool\\(\\) needs the value of a traced bool\\[\\]"
    with pytest.raises(tinyfuse.errors.BoolConversionError, match=words) as raised:
        tinyfuse.jit(f)(LINE[:5])
    assert "is written out: an array that it writes has other names" in str(raised.value)


def is_another_array(x: Any) -> Any:
    y = np.zeros(5)
    while x[0] > 0:
        x, y = x - 1, LINE
    return y[:5] + 1


def is_first_bound(x: Any) -> Any:
    while x[0] > 0:
        x = x - 1
        y = x * 2
    return y


def changes_its_kind(x: Any) -> Any:
    y = 5
    while x[0] > 0:
        x = x - 1
        y = x * 2
    return y


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (is_another_array, "y is another array where there are turns"),
        (is_first_bound, "y is made in turns, of which there may be none"),
        (changes_its_kind, "y is made in turns, of which there may be none"),
    ],
)
def test_a_while_loop_that_may_have_no_turns_says_what_it_changes(
    function: Callable[..., Any], reason: str
):
    with pytest.raises(tinyfuse.errors.BoolConversionError, match=f"is written out: {reason}"):
        tinyfuse.jit(function)(np.zeros(5))


def rebinds_in_an_inner_loop(x: Any, y: Any) -> Any:
    total, first = np.zeros(5), x
    for i in range(30):
        for _ in range(i):
            total = total + first
            first = y
    return total, first


def test_a_range_that_is_empty_at_first_leaves_names_as_they_are():
    assert_same(rebinds_in_an_inner_loop, LINE[:5], LINE[5:10])


# -- random programs


@pytest.fixture
def all_rolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 1)


@pytest.mark.parametrize("start", range(0, 120, 20))
def test_random_loops_compute_what_numpy_does(start: int, all_rolled: None):
    for seed in range(start, start + 20):
        case = loop_case(seed)
        if case is None:
            continue
        pairs = zip(case.expected, case.traced(), strict=True)
        texts = [text for text in (difference(*pair) for pair in pairs) if text]
        assert texts == [], case.text


def test_random_loops_have_the_same_bits_at_every_level(all_rolled: None):
    cases = [case for seed in range(200, 216) if (case := loop_case(seed)) is not None]
    ladder = Ladder(
        [Variant("fused C", fused), Variant("C of a random schedule", random(0), pieces=(3,))]
    )
    report = ladder.climb(cases)
    assert "\n".join(map(str, report.failures)) == ""
