"""Loops over any mathematical function are vectorized, and over any choice."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tinyfuse
from tests.math_checking import loops
from tinyfuse.dtypes import FLOAT32
from tinyfuse.errors import CompilerNotFoundError
from tinyfuse.runtime.numerics import Loop, library_text
from tinyfuse.runtime.toolchain import Compiler, named_compiler

FUNCTIONS = (
    *(np.exp, np.expm1, np.log, np.log1p, np.cbrt, np.sin, np.cos, np.tan, np.tanh, np.sinh),
    *(np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arctanh, lambda x: x**0.4, lambda x: x**-1.5),
)
CHOICES = {
    "clipped": lambda function, x: function(np.clip(x, 0, 1)),
    "of a constant": lambda function, x: function(np.where(x > 0.3, 1, np.where(x < 0.1, 2, x))),
    "chosen": lambda function, x: np.where(
        x > 0.5, function(x), np.where(x < 0.1, 0, function(x + 1))
    ),
}
PREDICATES = (
    lambda x, n: x > 0,
    lambda x, n: np.isnan(x),
    lambda x, n: np.signbit(x),
    lambda x, n: n > 3,
    lambda x, n: n.astype(bool),
    lambda x, n: np.arange(len(x)) == 7,
)
MASKED = {
    "one and not the other": lambda p, q, x, y: np.where(p & ~q, x, y),
    "times a mask": lambda p, q, x, y: np.where(p, x, y) * q,
    "nested": lambda p, q, x, y: np.where(p, 1, np.where(q, x, y)),
}
LOOPS = [*loops(), *[Loop(name, (FLOAT32,) * 2, FLOAT32) for name in ("remainder", "floor_divide")]]


@pytest.fixture(scope="module")
def gcc() -> Compiler:
    try:
        return named_compiler("gcc", "/usr/bin:/usr/local/bin")
    except CompilerNotFoundError:
        pytest.skip("needs gcc, which says what it has vectorized")


def lines_of_vector_loops(gcc: Compiler, source: Path, march: str) -> set[int]:
    flags = (f"-march={march}", "-fopt-info-vec-optimized")
    command = gcc.call(str(source), str(source.with_suffix(".so")), gcc.arguments(flags))
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return {int(line) for line in re.findall(r"\.c:(\d+):\d+: optimized: loop vec", said)}


def lines_of_loops(source: Path) -> set[int]:
    lines = source.read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if line.lstrip().startswith("for (long ")}


@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4"])
def test_every_function_is_vectorized(gcc: Compiler, march: str, tmp_path: Path) -> None:
    text = library_text(LOOPS)
    second = text[text.index("\nint loop_") :].replace("\nint loop_", "\nint again_")
    second = second.replace("y[i] = ", "y[i] = -")  # so that the two are not made one
    source = tmp_path / "functions.c"
    source.write_text(text + second)
    vectorized = lines_of_vector_loops(gcc, source, march)
    names: list[str] = []
    missed = []
    for number, line in enumerate(source.read_text().splitlines(), 1):
        names += re.findall(r"^int (\w+)\(", line)
        if line.startswith("  for (int64_t i = 0;") and number not in vectorized:
            missed.append(names[-1])
    assert len(names) == 2 * len(LOOPS)
    assert not missed


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_choices_and_choices_of_functions_are_vectorized(
    gcc: Compiler, dtype: str, choice: str, tmp_path: Path
) -> None:
    def every(x):
        return [CHOICES[choice](f, x[n:]) for n, f in enumerate(FUNCTIONS)]  # each its own loop

    source = tmp_path / "choices.c"
    source.write_text(tinyfuse.jit(every).lower(np.ones(1000, dtype)).as_text("c"))
    loops = lines_of_loops(source)
    looking = source.read_text().count("large |= ")  # one more loop, and one for large angles
    assert looking == (3 if dtype == "float64" else 0)
    assert len(loops) == len(FUNCTIONS) + 2 * looking
    assert loops <= lines_of_vector_loops(gcc, source, "x86-64-v4")


@pytest.mark.parametrize("masked", MASKED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_choices_by_masks_of_any_kind_are_vectorized(
    gcc: Compiler, dtype: str, masked: str, tmp_path: Path
) -> None:
    pairs = list(itertools.product(PREDICATES, repeat=2))

    def every(x, y, n):
        results = []
        for skipped, (p, q) in enumerate(pairs):
            a, b, c = x[skipped:], y[skipped:], n[skipped:]
            results.append(MASKED[masked](p(a, c), q(b, c), a, b))
        return results

    source = tmp_path / "masks.c"
    x, n = np.ones(1000, dtype), np.ones(1000, np.int32)
    source.write_text(tinyfuse.jit(every).lower(x, x, n).as_text("c"))
    loops = lines_of_loops(source)
    assert len(loops) == len(pairs)
    assert loops <= lines_of_vector_loops(gcc, source, "x86-64-v4")
