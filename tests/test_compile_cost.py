"""Twice the program takes the compiler twice the work, by the number of its instructions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.counting import instructions

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
