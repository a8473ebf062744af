"""Tiles of sums stay in registers all along the loop that adds them up, in what compilers make."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.emit.c import emit_c
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.runtime.toolchain import FLAGS
from tinyfuse.schedule.planner import default_schedule

NEON = replace(REFERENCE, vector_bytes=16, flags=("-target", "aarch64-linux-musl"))
GCC, ZIG = ["gcc"], [sys.executable, "-m", "ziglang", "cc"]

LABEL = re.compile(r"(\.LB*\d+(?:_\d+)?):")
JUMP = re.compile(r"\s+(?:j\w+|b\.\w+|cbn?z\s+\w+,)\s+(\.L\w+)")
MULTIPLY = re.compile(r"\s+(?:vfmadd\d+p[sd]|fmla)\s")
STORE = re.compile(r"\s+(?:vmov\w+\s+%[xyz]mm\d+, .*\(|st[rpu]\w*\s)")

needs_gcc = pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("gcc"), reason="needs gcc for x86-64"
)
needs_zig = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="needs the ziglang wheel"
)


def assembly(folder: Path, machine: Machine, command: Sequence[str], *arrays: Any) -> list[str]:
    """The lines of a product for a machine, in a compiler's assembly language."""
    stages = tinyfuse.jit(lambda x, y: x @ y).lower(*arrays).stages
    source, target = folder / "product.c", folder / "product.s"
    source.write_text(emit_c(lower(default_schedule(stages, machine)[0], machine)).text)
    left_out = ("-march=native", "-shared", "-nostdlib")
    flags = [flag for flag in FLAGS["zig" if command is ZIG else "gcc"] if flag not in left_out]
    arguments = [*flags, *machine.flags, "-S", str(source), "-o", str(target)]
    subprocess.run([*command, *arguments], check=True, capture_output=True)
    return target.read_text().splitlines()


def innermost_loops(lines: Sequence[str]) -> Iterator[list[str]]:
    labels: dict[str, int] = {}
    for number, line in enumerate(lines):
        if label := LABEL.match(line):
            labels[label[1]] = number
        jump = JUMP.match(line)
        if jump and jump[1] in labels:
            body = [*lines[labels[jump[1]] + 1 : number]]
            if not any(map(LABEL.match, body)):
                yield body


@pytest.mark.parametrize(
    ("machine", "command", "vectors"),
    [
        pytest.param(REFERENCE, GCC, 24, marks=needs_gcc),
        pytest.param(REFERENCE_AVX2, GCC, 12, marks=needs_gcc),
        pytest.param(NEON, ZIG, 24, marks=needs_zig),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_of_a_tile_stores_nothing(
    machine: Machine, command: Sequence[str], vectors: int, dtype: Any, tmp_path: Path
) -> None:
    array = np.ones((384, 384), dtype)
    loops = list(innermost_loops(assembly(tmp_path, machine, command, array, array)))
    counts = [sum(map(bool, map(MULTIPLY.match, loop))) for loop in loops]
    tiles = [loop for loop, count in zip(loops, counts, strict=True) if count]
    assert set(counts) - {0} == {vectors}
    assert not any(STORE.match(line) for loop in tiles for line in loop)
