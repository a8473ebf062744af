"""Twice the program takes the compiler twice the work, by the number of its instructions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.counting import instructions
from tinyfuse.schedule import planned

Written = Callable[[str, int], Callable[..., Any]]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """A function of x and y whose statement is written out for so many values of i."""

    def write(statement: str, count: int) -> Callable[..., Any]:
        lines = [f"    {statement.format(i=i, j=i + 1)}\n" for i in range(count)]
        path = tmp_path / f"program_{count}.py"
        path.write_text(f"import numpy as np\ndef f(x, y):\n{''.join(lines)}    return x\n")
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return names["f"]

    return write


STATEMENTS = {
    "arithmetic": "x = x * 0.5 + y",
    "stencil": "x = x.copy(); x[1:-1] = 0.5 * (x[:-2] + x[2:])",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_places_of_a_long_function_are_found_in_linear_time(written: Written, statement: str):
    arrays = np.ones((300, 4)), np.ones((300, 4))

    def of(count: int) -> int:
        jitted = tinyfuse.jit(written(statement, count))
        return instructions(lambda: jitted.trace(*arrays), "source.py")

    of(10)
    assert of(120) < 2.1 * of(60)


def test_masks_of_masks_are_lowered_in_linear_time(written: Written):
    """Each element stands behind a test for every statement: not behind every choice of them."""
    square = np.ones((60, 60))

    def of(count: int) -> int:
        jitted = tinyfuse.jit(written("x[:{j}, :{j}] += 1.0", count))
        return instructions(lambda: jitted.lower(square, square), "lower")

    of(5)
    assert of(48) < 2.5 * of(24)


def test_masks_of_masks_have_the_right_elements(written: Written):
    function = written("x[:{j}, :{j}] += 1.0; x[{i}:, 1:{j}] *= 2.0", 40)
    square = np.arange(2500.0).reshape(50, 50)
    expected = function(square.copy(), square)
    assert tinyfuse.jit(function)(square.copy(), square).tobytes() == expected.tobytes()


def test_products_are_planned_together(monkeypatch: pytest.MonkeyPatch, written: Written):
    """A schedule is checked as a whole, in the time of the whole program: not for each product."""
    checked: list[str] = []
    check = planned.check
    monkeypatch.setattr(planned, "check", lambda *given: checked.append(given[1]) or check(*given))
    square = np.ones((32, 32))

    def of(count: int) -> int:
        checked.clear()
        tinyfuse.jit(written("x = np.maximum(x @ y, {i}.5)", count)).lower(square, square)
        return len(checked)

    assert of(12) == of(6)


def test_tiles_of_many_products_are_found_in_linear_time(written: Written):
    square = np.ones((32, 32))

    def of(count: int) -> int:
        jitted = tinyfuse.jit(written("x = np.maximum(x @ y, {i}.5)", count))
        return instructions(lambda: jitted.lower(square, square), "lower")

    of(3)
    assert of(24) < 2.3 * of(12)
