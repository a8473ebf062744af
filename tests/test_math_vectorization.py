"""A loop over any mathematical function is vectorized, also where another one uses the function."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.math_checking import loops
from tinyfuse.dtypes import FLOAT32
from tinyfuse.errors import CompilerNotFoundError
from tinyfuse.runtime.numerics import Loop, library_text
from tinyfuse.runtime.toolchain import Compiler, named_compiler

LOOPS = [*loops(), *[Loop(name, (FLOAT32,) * 2, FLOAT32) for name in ("remainder", "floor_divide")]]


@pytest.fixture(scope="module")
def gcc() -> Compiler:
    try:
        return named_compiler("gcc", "/usr/bin:/usr/local/bin")
    except CompilerNotFoundError:
        pytest.skip("needs gcc, which says what it has vectorized")


@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4"])
def test_every_function_is_vectorized(gcc: Compiler, march: str, tmp_path: Path) -> None:
    text = library_text(LOOPS)
    second = text[text.index("\nint loop_") :].replace("\nint loop_", "\nint again_")
    second = second.replace("y[i] = ", "y[i] = -")  # so that the two are not made one
    source = tmp_path / "functions.c"
    source.write_text(text + second)
    flags = (f"-march={march}", "-fopt-info-vec-optimized")
    command = gcc.call(str(source), str(tmp_path / "functions.so"), gcc.arguments(flags))
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    vectorized = {int(line) for line in re.findall(r"\.c:(\d+):\d+: optimized: loop vec", said)}
    names: list[str] = []
    missed = []
    for number, line in enumerate(source.read_text().splitlines(), 1):
        names += re.findall(r"^int (\w+)\(", line)
        if line.startswith("  for (int64_t i = 0;") and number not in vectorized:
            missed.append(names[-1])
    assert len(names) == 2 * len(LOOPS)
    assert not missed
