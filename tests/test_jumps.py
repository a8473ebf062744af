"""`break`, `continue`, `return` and `else` of loops, where data decides."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.loop_checking import assert_same, kinds_of_loops
from tinyfuse.errors import BoolConversionError, InPlaceWriteError
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case
from tinyfuse.trace import loop_statements

GENERATOR = np.random.default_rng(0)
LINE = GENERATOR.standard_normal(90)
SQUARE = GENERATOR.random((12, 12))


@pytest.fixture(autouse=True)
def few_turns_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 4)


def last_step(x: Any) -> Any:
    value = x[0] * 0 + 3.0
    for i in range(100):  # noqa: B007
        following = 0.5 * (value + 2 / value)
        if abs(following - value) < 1e-9:
            break
        value = following
    return value, i


def skipped(x: Any) -> Any:
    total, count = 0.0, 0
    for i in range(len(x)):
        if x[i] < 0:
            continue
        total += x[i]
        if x[i] > 1:
            count += 1
            continue
        total = total * 0.5
    return total, count


def both_jumps(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(len(x)):
        if x[i] > 0:
            if x[i] < 0.5:
                continue
            y[i] = x[i]
        elif x[i] < -2:
            break
        y[i] += 1
    return y


def first_place(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 1:
            return i
    return -1


def no_place(x: Any) -> Any:
    return first_place(x - 100)


def place_of_two(A: Any) -> Any:  # noqa: N803
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > 0.97:
                return i, j, A[i, j] * 2
    return -1, -1, A[0, 0]


def sums_of_rows(A: Any) -> Any:  # noqa: N803
    total, whole = 0.0, 0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > 0.9:
                break
            total += A[i, j]
        else:
            whole += 1
    else:
        whole = whole * 10
    return total, whole


def endless(x: Any) -> Any:
    low, high = x[0] * 0, x[0] * 0 + 4
    while True:
        middle = 0.5 * (low + high)
        if middle * middle > 2:
            high = middle
        else:
            low = middle
        if high - low < 1e-9:
            break
    return low


def while_else(x: Any) -> Any:
    i, found = 0, 0.0
    while i < 80:
        found += x[i]
        if found > 5:
            break
        i += 1
    else:
        found = found - 100.0
    return found, i


def arrays_until(x: Any) -> Any:
    y, z = x * 1.0, x * 0.0
    for _ in range(60):
        following = 0.5 * (y + np.roll(y, 1))
        z += following
        if np.abs(following - y).max() < 0.3:
            break
        y = following
    return y, z


def written_until(x: Any) -> None:
    for i in range(1, len(x)):
        if x[i] > 2:
            break
        x[i] += x[i - 1] * 0.5


def loops_in_parts(x: Any) -> Any:
    y = np.zeros(12)
    for i in range(12):
        if x[i] > 0:
            for j in range(12):
                y[j] += x[i] * j
        else:
            y[i] = -1
    return y


def one_target_again(x: Any) -> Any:
    y = np.zeros(12)
    for i in range(12):
        if x[i] > 0:
            for j in range(12):
                y[j] += x[i] * j
        for j in range(2):
            y[j] *= 0.5
    return y


def early(x: Any) -> Any:
    if x[0] > 100:
        return x * 2
    y = x + 1
    if y.sum() > 1e9:
        return y
    y[0] = 7
    return y - 1


# What the loops of the program are, and how many kernels it has.
FORMS: list[tuple[Callable[..., Any], Any, list[str], int]] = [
    (last_step, LINE, ["while"], 3),
    (skipped, LINE, ["loop"], 2),
    (both_jumps, LINE, ["while"], 2),
    (first_place, LINE, ["while"], 3),
    (no_place, LINE, ["while"], 3),
    (place_of_two, SQUARE, ["while", "while"], 3),
    (sums_of_rows, SQUARE, ["loop", "while"], 3),
    (endless, LINE, ["while"], 3),
    (while_else, LINE, ["while"], 3),
    (arrays_until, LINE, ["while"], 6),
    (written_until, LINE, ["while"], 2),
    (loops_in_parts, LINE, ["loop", "loop"], 2),
    (one_target_again, LINE, ["loop", "loop"], 4),
    (early, LINE, [], 5),
]
NAMES = [function.__name__ for function, *_ in FORMS]


@pytest.mark.parametrize(("function", "x", "loops", "kernels"), FORMS, ids=NAMES)
def test_jumps_stay_in_the_program(
    function: Callable[..., Any], x: Any, loops: list[str], kernels: int
):
    assert_same(function, x)
    assert_same(function, x * 3 - 1)
    assert kinds_of_loops(function, x) == loops
    lowered = tinyfuse.jit(function).lower(x.copy())
    assert len(lowered.loops.kernels) == kernels


def test_every_level_computes_the_same_bits():
    cases = [Case(function, (x,), f"# {function.__name__}") for function, x, *_ in FORMS]
    report = Ladder(jit_of=lambda case: True).climb(cases)
    assert "\n".join(map(str, report.failures)) == ""


def test_loops_of_few_turns_stay_loops_if_data_leaves_them():
    assert_same(lambda_free, LINE)
    assert kinds_of_loops(lambda_free, LINE) == ["while"]


def lambda_free(x: Any) -> Any:
    for i in range(3):
        if x[i] > 0.5:
            break
    return i


def test_rewritten_source_has_names_in_place_of_jumps():
    text = tinyfuse.jit(first_place).rewritten_source
    assert text is not None
    assert "the_result = i\n" in text
    assert "done = True\n" in text
    assert "break" not in text


def test_an_array_that_is_one_of_two_is_not_written():
    def write(x: Any, y: Any) -> Any:
        z = x
        for i in range(50):
            if y[i] > 0:
                z = y
        z[0] = 1
        return z

    with pytest.raises((InPlaceWriteError, BoolConversionError)) as raised:
        tinyfuse.jit(write)(LINE.copy(), LINE.copy())
    assert "one of two, as data decides, can't be written afterwards" in str(raised.value)


def test_the_array_before_the_loop_is_not_written_either():
    def write(x: Any) -> Any:
        y = x * 2
        z = y
        for i in range(50):
            following = z + 1
            if x[i] > 1:
                break
            z = following
        y[0] = 5
        return y, z

    with pytest.raises((InPlaceWriteError, BoolConversionError)):
        tinyfuse.jit(write)(LINE.copy())


def test_what_is_returned_has_one_type():
    def two(x: Any) -> Any:
        for i in range(50):
            if x[i] > 1:
                return x
        return x[:3]

    with pytest.raises(BoolConversionError) as raised:
        tinyfuse.jit(two)(LINE.copy())
    assert "the_result is float64[90] where the test is true, else float64[3]" in str(raised.value)


def test_known_conditions_are_pythons():
    def known(x: Any, n: int, more: bool) -> Any:
        y = x * 0
        for i in range(100):
            if i == n:
                break
            y = y + (x if x[0] > 0 else -x)
        else:
            return None
        return y if more else (y, i)

    for n, more in ((3, True), (5, False), (200, True)):
        expected, found = known(LINE, n, more), tinyfuse.jit(known)(copy.deepcopy(LINE), n, more)
        assert type(expected) is type(found)
        if expected is not None:
            np.testing.assert_array_equal(found[0], expected[0])


def test_ranges_of_dynamic_integers_may_be_left():
    def first(x: Any, n: int, m: int) -> Any:
        total = np.float64(0)
        for i in range(n):
            for j in range(i, m):
                if (i + j) % 2:
                    continue
                total += x[i, j]
                if total > 2:
                    return total, i
        return total, -1

    square = LINE[:81].reshape(9, 9)
    compiled = tinyfuse.jit(first, dynamic=("n", "m"))
    for n, m in ((0, 0), (0, 9), (4, 9), (9, 9), (9, 0), (1, 1)):
        assert compiled(square, n, m) == first(square, n, m)
    assert compiled.cache_info().misses == 1


def test_views_are_written_where_data_decides():
    def written(z: Any, x: Any) -> Any:
        for i in range(100):
            z.real[i % 20] += z.imag[(i * 7) % 20]
            if z[i % 20].real > 3:
                continue
            z.imag[i % 20] *= 0.5
            if x[i % 20] > 0:
                x[1:][i % 20] *= 0.5
        return z

    z = LINE[:20] + 1j * LINE[20:40]
    (one, x), (other, y) = (z.copy(), LINE.copy()), (z.copy(), LINE.copy())
    written(one, x)
    tinyfuse.jit(written)(other, y)
    np.testing.assert_array_equal(other, one)
    np.testing.assert_array_equal(y, x)


def test_elements_of_what_is_no_array_are_pythons():
    class Holder:
        def __init__(self) -> None:
            self.rows = [[0], [0]]

    def put(x: Any) -> Any:
        holder = Holder()
        if x[0] > 0:
            holder.rows[0][0] = 1
        return x + holder.rows[0][0]

    with pytest.raises(BoolConversionError):
        tinyfuse.jit(put)(LINE)


def test_nothing_beside_an_array_is_told():
    def perhaps(x: Any) -> Any:
        for i in range(90):
            if x[i] > 1:
                return None
        return x

    with pytest.raises(BoolConversionError) as raised:
        tinyfuse.jit(perhaps)(LINE)
    assert "the_result is None where the test is true, else float64[90]" in str(raised.value)


def binds_its_own_variable(x: Any) -> Any:
    n = 0
    for i in range(6):
        for i in range(2):
            n += i + 1
        if x[0] > 0:
            x = x * 2
        if n == 9:
            break
    return x * n


def asks_an_iterator(x: Any) -> Any:
    n, numbers = 0, iter(range(9))
    while next(numbers) < 7:
        n += 1
        if x[0] > 0:
            x = x * 2
        if n == 3:
            break
    return x * n, next(numbers)


@pytest.mark.parametrize("function", [binds_its_own_variable, asks_an_iterator])
def test_loops_that_stay_as_they_are_are_left_too(function: Callable[[Any], Any]):
    for given in (LINE, -LINE):
        expected, found = function(given.copy()), tinyfuse.jit(function)(given.copy())
        if function is asks_an_iterator:
            assert found[1] == expected[1] == 3
            expected, found = expected[0], found[0]
        np.testing.assert_array_equal(found, expected)


def test_loops_that_stay_as_they_are_are_not_left_by_what_data_decides():
    def left(x: Any) -> Any:
        n = 0
        for i in range(6):
            for i in range(2):
                n += i + 1
            if x[n] > 0.5:
                break
        return n

    with pytest.raises(BoolConversionError):
        tinyfuse.jit(left)(LINE)


def test_a_test_that_a_choice_hands_on_is_computed():
    """Of `or`, whose first operand is the result where it is true."""

    def turns(x: Any, t: int) -> Any:
        m = 0
        while True:
            m += 1
            if m > 3 or x[t % 5] > 1:
                break
        return m

    for line, count in ((np.zeros(5), 4), (np.ones(5) * 2, 1)):
        assert tinyfuse.jit(turns, dynamic="t")(line, 2) == count


def test_a_scalar_that_a_choice_hands_on_is_copied_and_nothing_else():
    """No variable is read before it has a value, as where two are exchanged."""

    def counted(v: Any) -> Any:
        k = 1
        for i in range(1, 70):
            k += 1
            if v[k % 5] > 0:
                v[i % 5] += 1
            else:
                k = k + 1
        return k, v

    text = tinyfuse.jit(counted).lower(LINE[:5]).as_text("c")
    assert "_next" not in text
    assert_same(counted, LINE[:5] - 2)
