"""Mathematical functions have the same bits, however they are compiled and called."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.math_checking import FUNCTIONS, functions_library, landmarks, loops, samples
from tinyfuse.machine import cpu_features
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load
from tinyfuse.runtime.numerics import Loop, library_text
from tinyfuse.runtime.toolchain import FLAGS, find_compiler

COUNT = 4000
ZIG = [sys.executable, "-m", "ziglang", "cc"]
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
BUILDS = {  # beside -O3 for this processor; the ladder runs these functions with -O1
    "O0": ("-O0",),
    "O2": ("-O2",),
    "AVX2": ("-march=x86-64-v3",),
    "AVX512": ("-march=x86-64-v4",),
}
needs_zig = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="needs the ziglang wheel"
)
by_function = pytest.mark.parametrize("name", FUNCTIONS)


@functools.cache
def operands_of(loop: Loop) -> list[np.ndarray]:
    """Samples; of two operands each landmark with some others too."""
    points = landmarks(loop.dtype)
    drawn = [samples(loop.name, loop.dtype, COUNT, seed) for seed in range(len(loop.operands))]
    if len(drawn) == 1:
        return drawn
    random = np.random.default_rng(0)
    drawn[1] = random.permutation(drawn[1])
    others = [np.repeat(points, 8), np.tile(points, 8)]
    return [np.concatenate(each) for each in zip(drawn, others, strict=True)]


def run(path: Path, loop: Loop, operands: list[np.ndarray]) -> np.ndarray:
    out = np.empty_like(operands[0])
    load(path, loop.symbol)([np.array([out.size]), *operands, out], threads=1)
    return out


def bits(values: np.ndarray) -> np.ndarray:
    """The bits, those of one NaN for all."""
    return np.where(np.isnan(values), values.dtype.type(np.nan), values).view(f"u{values.itemsize}")


def loops_of(name: str) -> list[Loop]:
    return [loop for loop in loops() if loop.name == name]


def assert_same_bits(name: str, flags: tuple[str, ...] = (), path: Path | None = None) -> None:
    for loop in loops_of(name):
        operands = operands_of(loop)
        expected = run(reference(), loop, operands)
        assert np.array_equal(
            bits(run(path or functions_library(flags), loop, operands)), bits(expected)
        )


@functools.cache
def reference() -> Path:
    return functions_library()


@by_function
@pytest.mark.parametrize("level", BUILDS)
def test_optimization_and_width_of_vectors(name: str, level: str) -> None:
    if level == "AVX512" and "avx512vl" not in cpu_features():
        pytest.skip("this processor has no AVX-512")
    assert_same_bits(name, BUILDS[level])


@pytest.fixture(scope="module")
def by_zig() -> Path:
    reference()  # by the usual compiler
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", shlex.join(ZIG))
        assert find_compiler().kind == "zig"
        return build(library_text(loops()), "mathematics by zig")


@needs_zig
@by_function
def test_another_compiler(name: str, by_zig: Path) -> None:
    assert_same_bits(name, path=by_zig)


@by_function
def test_one_element_a_call(name: str) -> None:
    for loop in loops_of(name):
        operands = [operand[:700] for operand in operands_of(loop)]
        single = [run(reference(), loop, [x[i : i + 1] for x in operands]) for i in range(700)]
        assert np.array_equal(bits(np.concatenate(single)), bits(run(reference(), loop, operands)))


@by_function
def test_tails(name: str) -> None:
    for loop in loops_of(name):
        operands = operands_of(loop)
        expected = run(reference(), loop, operands)
        for count, start in zip(range(1, 71), itertools.count(0, 50), strict=False):
            part = slice(start, start + count)
            got = run(reference(), loop, [operand[part] for operand in operands])
            assert np.array_equal(bits(got), bits(expected[part]))


# Arm64

MAIN = """\
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  static int (*const functions[])(void *const *, void *, const tf_pool *) = {SYMBOLS};
  static const int operands[] = {OPERANDS};
  static const int sizes[] = {SIZES};
  for (unsigned f = 0; f < sizeof sizes / sizeof *sizes; f++) {
    int64_t count;
    if (fread(&count, sizeof count, 1, stdin) != 1) return 1;
    void *arrays[4] = {&count};
    for (int i = 1; i <= operands[f] + 1; i++) arrays[i] = malloc((size_t)count * sizes[f]);
    for (int i = 1; i <= operands[f]; i++) {
      if (fread(arrays[i], sizes[f], count, stdin) != (size_t)count) return 1;
    }
    functions[f](arrays, NULL, NULL);
    fwrite(arrays[operands[f] + 1], sizes[f], count, stdout);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def arm_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An executable for Arm64 that reads the operands of all loops and writes the results."""
    folder, chosen = tmp_path_factory.mktemp("arm"), loops()
    words = {
        "SYMBOLS": ", ".join(loop.symbol for loop in chosen),
        "OPERANDS": ", ".join(str(len(loop.operands)) for loop in chosen),
        "SIZES": ", ".join(str(loop.dtype.itemsize) for loop in chosen),
    }
    headers, _, body = MAIN.partition("\n\n")
    for word, text in words.items():
        body = body.replace(word, text)
    source, program = folder / "functions.c", folder / "functions"
    source.write_text(f"{headers}\n{library_text(chosen)}{body}")
    flags = [flag for flag in FLAGS["zig"] if flag not in ("-march=native", "-shared", "-nostdlib")]
    target = ["-target", "aarch64-linux-musl", "-static"]
    subprocess.run([*ZIG, *target, *flags, str(source), "-o", str(program)], check=True)
    return program


@needs_zig
def test_all_functions_compile_for_arm64(arm_program: Path) -> None:
    assert arm_program.read_bytes()[:20].endswith(b"\xb7\x00")  # the number of that machine


@needs_zig
@pytest.mark.skipif(EMULATOR is None, reason="needs qemu-aarch64")
def test_arm64(arm_program: Path) -> None:
    given = b""
    for loop in loops():
        operands = operands_of(loop)
        given += np.int64(operands[0].size).tobytes() + b"".join(map(np.ndarray.tobytes, operands))
    command = [str(EMULATOR), str(arm_program)]
    done = subprocess.run(command, input=given, capture_output=True, check=True)
    at = 0
    for loop in loops():
        expected = run(reference(), loop, operands_of(loop))
        got = np.frombuffer(done.stdout, loop.dtype, expected.size, at)
        at += expected.nbytes
        assert np.array_equal(bits(got), bits(expected)), loop.symbol
    assert at == len(done.stdout)
