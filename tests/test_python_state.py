"""What turns and branches change of Python's: lists, objects, variables of other functions."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.loop_checking import assert_same, loops_in
from tests.test_rolling import LINE
from tinyfuse.trace import loop_statements


@pytest.fixture(autouse=True)
def all_rolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 1)


def a_list(x: Any) -> Any:
    found = []
    for _ in range(20):
        x = x + 1
        found.insert(0, 1)
    return x * len(found)


def an_element(x: Any) -> Any:
    count = [0]
    for _ in range(20):
        x = x + 1
        count[0] += 1
    return x, count[0]


def a_method_of_a_list(x: Any) -> Any:
    found: list[int] = []
    add = functools.partial(found.append, 1)
    for _ in range(20):
        x = x + 1
        add()
    return x * len(found)


def a_counter(x: Any) -> Any:
    counter: Counter[str] = Counter()
    for _ in range(20):
        x = x + 1
        counter["turns"] += 1
    return x, counter["turns"]


def a_set_in_the_first_turn(x: Any) -> Any:
    seen: set[int] = set()
    for _ in range(20):
        if not seen:
            seen.add(1)
            x = x * 3
        x = x + 1
    return x


class Box:
    def __init__(self) -> None:
        self.count = 0

    def bump(self) -> None:
        self.count += 1


def an_object(x: Any) -> Any:
    box = Box()
    for _ in range(20):
        x = x + 1
        box.bump()
    return x, box.count


def a_variable_of_another_function(x: Any) -> Any:
    count = 0

    def bump() -> None:
        nonlocal count
        count += 1

    for _ in range(20):
        x = x + 1
        bump()
    return x, count


def an_iterator(x: Any) -> Any:
    numbers = iter(range(100))
    for _ in range(20):
        x = x + 1
        next(numbers)
    return x * next(numbers)


def a_comprehension(x: Any) -> Any:
    count = 0
    for _ in range(20):
        x = x + 1
        any((count := count + 1) < 0 for _ in range(2))
    return x, count


def a_pattern(x: Any) -> Any:
    count = 0
    for _ in range(20):
        x = x + 1
        match count + 1:
            case count:
                pass
    return x, count


def an_exception(x: Any) -> Any:
    try:
        for i in range(20):
            x = x + 1
            if i == 7:
                raise ValueError
    except Exception:
        x = x * 2
    return x


CHANGES: list[Callable[..., Any]] = [
    *(a_list, an_element, a_method_of_a_list, a_counter, a_set_in_the_first_turn, an_object),
    *(a_variable_of_another_function, an_iterator, a_comprehension, a_pattern, an_exception),
]


@pytest.mark.parametrize("function", CHANGES, ids=lambda function: function.__name__)
def test_loops_that_change_something_of_pythons_are_written_out(function: Callable[..., Any]):
    assert_same(function, LINE)
    assert loops_in(function, LINE) == 0


def test_a_sign_of_zero_is_carried():
    def f(x: Any) -> Any:
        sign = 0.0
        for _ in range(21):
            x = x + 1
            sign = -sign
        return sign

    assert loops_in(f, LINE) == 1
    assert np.signbit(tinyfuse.jit(f)(LINE))


def test_only_the_inner_loop_is_written_out():
    def f(x: Any) -> Any:
        for _ in range(30):
            for i in range(1, 6):
                x[:i] = np.sort(x[:i])
        return x

    assert_same(f, LINE)
    assert loops_in(f, LINE) == 1


class Private:
    __factor = 2.0

    def run(self, x: Any) -> Any:
        for _ in range(20):
            x = x + self.__factor
        return x


def test_private_names_are_those_of_the_class():
    np.testing.assert_array_equal(tinyfuse.jit(Private().run)(LINE), Private().run(LINE))
    assert loops_in(Private().run, LINE) == 1


def in_one_part(x: Any) -> Any:
    count = 0

    def counted(y: Any) -> Any:
        nonlocal count
        count += 1
        return y

    if x.sum() > 0:  # noqa: SIM108
        y = counted(x)
    else:
        y = x * 2
    return y, count


def in_an_expression(x: Any) -> Any:
    found = []

    def counted(y: Any) -> Any:
        found.append(1)
        return y

    y = counted(x) if x.sum() > 0 else x * 2
    return y * len(found)


@pytest.mark.parametrize("function", [in_one_part, in_an_expression])
def test_parts_that_change_something_of_pythons_are_refused(function: Callable[..., Any]):
    words = "needs the value of a traced bool\\[\\]"
    with pytest.raises(tinyfuse.errors.BoolConversionError, match=words):
        tinyfuse.jit(function)(LINE)
