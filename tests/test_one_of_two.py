"""Names that are one of two arrays, as data decides: writes show in the one that it is."""

from __future__ import annotations

import copy
import linecache
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.errors import BoolConversionError, InPlaceWriteError, NumberConversionError

LINE = np.arange(4.0)
REASON = (
    "an array that is one of two, as data decides, can't be written afterwards: copy it, as in "
    "x = x.copy()\n  decided at "
)


def an_argument_or_a_new_one(a: Any, b: Any, t: Any) -> Any:
    x = a if t[0] > 0 else np.zeros(4)
    x[0] = 7
    return x


def one_of_three(a: Any, b: Any, t: Any) -> Any:
    c = a + b
    if t[0] > 0:
        x = a
    elif t[1] > 0:
        x = b
    else:
        x = c
    x[1:3] = 5
    return x, c


def the_other_is_written(a: Any, b: Any, t: Any) -> Any:
    x = a if t[0] > 0 else b
    a[0] = 5
    b += 1
    return x


def two_names_of_one(a: Any, b: Any, t: Any) -> Any:
    x = y = a
    if t[0] > 0:
        x = b
    if t[1] > 0:
        y = b
    x[0] = 5
    y[1] = x[0] + 1
    return x, y


def one_after_another(a: Any, b: Any, t: Any) -> Any:
    x = a
    if t[0] > 0:
        x = x * 2
    if t[1] > 0:
        x = x + 1
    x[0] = 9
    return x


def exchanged(a: Any, b: Any, t: Any) -> Any:
    x, y = a, b
    if t[0] > 0:
        x, y = y, x
    x[0] = 5
    y[1] = 6
    return x, y


def through_a_view(a: Any, b: Any, t: Any) -> Any:
    x = a if t[0] > 0 else b
    rows = x.reshape(2, 2)
    a[3] = 8
    rows[0] = rows[1]
    return x, rows


def after_turns(a: Any, b: Any, t: Any) -> Any:
    while a.sum() < 10 * t[0]:
        a = a * 2
    a /= 3
    return a


def in_turns(a: Any, b: Any, t: Any) -> Any:
    x = a if t[0] > 0 else b
    for i in range(30):
        x[i % 4] += a[(i + 1) % 4]
    return x


PROGRAMS = (an_argument_or_a_new_one, one_of_three, the_other_is_written, two_names_of_one)
MORE = (one_after_another, exchanged, through_a_view, after_turns, in_turns)


def assert_same(function: Callable[..., Any], *args: Any, dynamic: Any = ()) -> None:
    """What it returns and leaves in its arguments, bit for bit."""
    mine, its = copy.deepcopy(args), copy.deepcopy(args)
    results = function(*mine), tinyfuse.jit(function, dynamic=dynamic)(*its)
    expected, found = [x if isinstance(x, tuple) else (x,) for x in results]
    for one, other in zip([*expected, *mine], [*found, *its], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", [*PROGRAMS, *MORE])
def test_what_is_written_shows_in_the_array_that_it_is(function: Callable[..., Any]):
    for first in (0.0, 1.0):
        for second in (0.0, 1.0):
            assert_same(function, LINE + 1, LINE * 2, np.array([first, second]))


def test_arrays_that_nobody_looks_at_are_not_computed():
    def grown(a: Any) -> Any:
        x = a * 0.5
        while x.sum() < 100:
            x = x + a
        x[0] = 7
        return x

    assert_same(grown, LINE + 1)
    assert "select" not in str(tinyfuse.jit(grown).lower(LINE).graph)


def part_of_an_array(a: Any, b: Any, t: Any) -> Any:
    x = a[::2] if t[0] > 0 else b[::2]
    x[0] = 1
    return x


def from_a_turn_before(a: Any, b: Any, t: Any) -> Any:
    x, n = b * 1, 0
    while n + t[0] < 3:
        n += 1
        if t[1] > 0:
            x = a
    a[0] = 5
    return x


def not_in_c_order(a: Any, b: Any, t: Any) -> Any:
    x = np.outer(a, b).T * 2 if t[0] > 0 else np.outer(b, a)
    y = x.reshape(-1)
    y[0] = 7
    return x


@pytest.mark.parametrize(
    ("function", "decided", "written"),
    [
        (part_of_an_array, 1, 2),
        (from_a_turn_before, 2, 6),
        (not_in_c_order, 1, 3),
    ],
)
def test_what_no_truth_says_is_refused(function: Callable[..., Any], decided: int, written: int):
    with pytest.raises(InPlaceWriteError) as raised:
        tinyfuse.jit(function)(LINE, LINE, np.zeros(2))
    words, first = str(raised.value), function.__code__.co_firstlineno
    name = function.__name__
    assert words.startswith(f"{REASON}test_one_of_two.py:{first + decided}, in {name}\n")
    assert f"\n  at test_one_of_two.py:{first + written}, in {name}: " in words


# -- random programs

NAMES = ("a", "b", "x", "y", "z")


class AliasProgram:
    """A function whose names are bound to one another's arrays, written, and decided by data."""

    def __init__(self, seed: int) -> None:
        self.random, self.counters = Random(seed), 0
        lines = ["x = a * 2", "y = b", "z = np.ones(4)", *self._block(0), *self._block(0)]
        body = "".join([f"    {line}\n" for line in [*lines, "return x, y, z"]])
        self.source = f"def program(a, b, t, n):\n{body}"
        file = f"<alias program {seed}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        namespace: dict[str, Any] = {"np": np}
        exec(compile(self.source, file, "exec"), namespace)
        self.function = namespace["program"]

    def _block(self, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            lines += self._compound(depth) if self.random.random() < 0.3 else self._simple()
        return lines

    def _simple(self) -> list[str]:
        one, other, third = [self.random.choice(NAMES) for _ in range(3)]
        at, level = self.random.randrange(4), self.random.randint(-1, 2)
        scalar = self.random.choice(("1.5", "n", f"{third}[{at}]", f"{other}.sum()"))
        statements = (
            *(f"{one} = {other}", f"{one} = {other} + {scalar}", f"{one}[{at}] = {scalar}"),
            *(f"{one} = {other}", f"{one}[{at}] = {scalar}", f"{one} += {scalar}"),
            *(f"{one} = {other}[::-1] + 0", f"{one}, {other} = {other}, {one}"),
            f"{one} = {other} if t[{at}] > {level} else {third}",
        )
        return [self.random.choice(statements)]

    def _compound(self, depth: int) -> list[str]:
        if depth > 2:
            return self._simple()
        inner = [f"    {line}" for line in self._block(depth + 1)]
        other = [f"    {line}" for line in self._block(depth + 1)]
        at, level = self.random.randrange(4), self.random.randint(-2, 2)
        kind = self.random.randrange(5)
        if kind < 3:
            words = ("else:", f"elif t[{at}] > {level + 1}:", "else:")[kind]
            return [f"if t[{at}] > {level}:", *inner, *([words, *other] if kind else [])]
        if kind == 3:
            return [f"for _ in range({self.random.choice(('n', '2', 'n - 1'))}):", *inner]
        self.counters += 1
        name = f"c{self.counters}"
        return [f"{name} = 0", f"while {name} < t[{at}]:", f"    {name} += 1", *inner]


def test_random_programs_of_names_for_one_array():
    ran = 0
    for seed in range(60):
        program, generator = AliasProgram(seed), np.random.default_rng(seed)
        lines = [generator.integers(-3, 4, 4) * 1.0 for _ in range(3)]
        try:
            assert_same(program.function, *lines, seed % 3, dynamic="n")
            ran += 1
        except (BoolConversionError, InPlaceWriteError, NumberConversionError):
            continue
        except AssertionError:
            print(program.source)
            raise
    assert ran > 30
