"""Kernels of all kinds on the emulated GPU: what they give, in every order, and what they cost."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cuda_kernels import (
    LAUNCHES,
    Launch,
    attention,
    elementwise,
    fresh,
    gemm,
    layernorm,
    normal,
    softmax,
    source,
    stencil,
    tensor_cores,
    transpose,
    transpose_naive,
    votes,
)
from tinyfuse.errors import CompilationError, CompilerNotFoundError, EmulationError
from tinyfuse.runtime import emulator
from tinyfuse.runtime.emulator import ORDERS, kernel_names
from tinyfuse.testing import Emulation, emulate

BARRIER = re.compile(r"__sync(?:threads|warp)\([0-9a-fxu]*\);")

launches = pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.__name__)


@pytest.mark.parametrize("check", [True, False], ids=["checked", "plain"])
@launches
def test_kernels_give_what_numpy_gives_in_every_order(launch: Callable[[], Launch], check: bool):
    made = launch()
    results = [made.run(order=order, seed=5, check=check) for order in ORDERS]
    assert [result.error for result in results] == [None] * 4
    assert max(made.difference(result) for result in results) <= made.tolerance


def barriers() -> list[tuple[str, int]]:
    """(name of a launch, number of a barrier in its file) for every barrier of the kernels."""
    return [
        (launch.__name__, number)
        for launch in LAUNCHES
        for number in range(len(BARRIER.findall(source(launch().file))))
    ]


def without_barrier(text: str, number: int) -> str:
    found = list(BARRIER.finditer(text))[number]
    return f"{text[: found.start()]}{text[found.end() :]}"


@pytest.mark.parametrize(("name", "number"), barriers())
def test_every_barrier_is_missed(name: str, number: int):
    """In the usual order, whether or not the result is wrong there."""
    launch = next(launch for launch in LAUNCHES if launch.__name__ == name)()
    result = launch.run(without_barrier(source(launch.file), number))
    assert re.match(
        rf"kernel {launch.kernel}, block \(\d+,\d+,\d+\), thread \(\d+,\d+,\d+\), line \d+: "
        r"it (reads|writes|adds to) \w+(\[\d+\])+, which (thread .* with no barrier between|"
        r"has no value yet)$",
        result.error or "nothing was reported",
    )


# -- what kernels cost


def cost(result: Emulation, array: str) -> tuple[int, int, int]:
    """Requests of warps, transfers, and bytes asked for, of an array."""
    found = [access for access in result.accesses if access.array == array]
    asked = sum(access.accesses * access.bytes for access in found)
    return sum(a.requests for a in found), sum(a.transfers for a in found), asked


def test_a_transpose_through_a_tile_transfers_whole_sectors():
    result = transpose(64, 64).run()
    assert cost(result, "x") == cost(result, "y") == (128, 512, 4 * 64 * 64)
    assert result.efficiency("x") == result.efficiency("y") == 1.0
    assert result.conflicts("tile") == 1
    assert (result.barriers, result.shared) == (4, 32 * 33 * 4 + 0)


def test_a_transpose_without_one_writes_a_sector_for_each_element():
    result = transpose_naive().run()
    assert result.efficiency("y") == 0.125


def test_a_tile_without_padding_has_conflicts_of_all_banks():
    launch = transpose(64, 64)
    result = launch.run(source("transpose").replace("[32][33]", "[32][32]"))
    assert result.error is None
    assert result.conflicts("tile") == 32


def test_vectors_are_one_request():
    result = elementwise(1024).run()
    assert cost(result, "x") == (8, 128, 4096)
    assert result.efficiency("x") == result.efficiency("y") == 1.0


@pytest.mark.parametrize(
    ("launch", "arrays", "shared"),
    [
        (lambda: softmax(3, 512), "xy", {"partial": 1}),
        (lambda: layernorm(8, 256), "xy", {}),
        (lambda: gemm(128, 128, 16), "abc", {"a_tile": 1, "b_tile": 1}),
        (lambda: attention(64), "", {"keys": 1, "values": 2, "weights": 1}),
    ],
    ids=["softmax", "layernorm", "gemm", "attention"],
)
def test_rows_and_tiles_are_transferred_whole(
    launch: Callable[[], Launch], arrays: str, shared: dict[str, int]
):
    result = launch().run()
    assert [result.efficiency(array) >= 1 for array in arrays] == [True] * len(arrays)
    assert {array: result.conflicts(array) for array in shared} == shared


def test_lanes_that_ask_for_the_same_element_share_a_sector():
    text = """
extern "C" __global__ void first(TF_IN(float) x, TF_OUT(float) y) { y[threadIdx.x] = x[0]; }
"""
    result = emulate(text, "first", 1, 32, normal(4), fresh(32))
    assert cost(result, "x") == (1, 1, 128)
    assert cost(result, "y") == (1, 4, 128)


def test_accesses_are_told_by_line_and_kind():
    result = transpose(32, 32).run()
    assert [
        (a.kernel, a.array, a.line, a.kind, a.shared, a.bytes, a.requests) for a in result.accesses
    ] == [
        ("transpose", "tile", 6, "write", True, 4, 32),
        ("transpose", "x", 6, "read", False, 4, 32),
        ("transpose", "tile", 9, "read", True, 4, 32),
        ("transpose", "y", 9, "write", False, 4, 32),
    ]


def test_nothing_is_counted_without_checks():
    result = transpose().run(check=False)
    assert result.accesses == ()
    assert (result.barriers, result.shared) == (6, 4224)


# -- texts and arguments that do not fit


def test_kernels_of_a_text():
    assert kernel_names(source("sums")) == ["partial_sums", "atomic_sum"]
    assert kernel_names("// __global__ void f() {") == []


def test_a_kernel_that_the_text_lacks():
    with pytest.raises(EmulationError) as caught:
        emulate(source("sums"), "sum", 1, 32)
    assert str(caught.value) == ("the text has no kernel 'sum': there are partial_sums, atomic_sum")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (normal(64),),
            "kernel votes takes 4 arguments (flags, counts, all, first), and was given 1",
        ),
        (
            (normal(64), *[fresh(1)] * 3),
            "elements of flags have 1 bytes, and those of its argument, float32, 4",
        ),
        (
            (np.zeros(64, np.uint8), 3, *[fresh(1)] * 2),
            "argument counts of kernel votes must be an array or an ArraySpec, not 3",
        ),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple, message: str):
    with pytest.raises(EmulationError) as caught:
        emulate(source("votes"), "votes", 1, 64, *arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("grid", "block", "shared", "message"),
    [
        (1, (32, 33), 0, "a block has 1 to 1024 threads, no more than 64 of them along z"),
        (1, (1, 1, 65), 0, "a block has 1 to 1024 threads, no more than 64 of them along z"),
        ((1, 1 << 16), 32, 0, "a grid has 1 to 2147483647 blocks along x, to 65535 along y and z"),
        (0, 32, 0, "a grid has 1 to 2147483647 blocks along x, to 65535 along y and z"),
        (1, 32, 1 << 18, "a block has 227 KiB of shared memory at most"),
    ],
)
def test_launches_that_a_gpu_refuses(grid, block, shared: int, message: str):
    text = 'extern "C" __global__ void empty() {}'
    result = emulate(text, "empty", grid, block, shared=shared)
    assert result.error == f"kernel empty cannot be launched: {message}"


def test_what_the_compiler_says_names_the_line_of_the_text():
    text = 'extern "C" __global__ void f(TF_IN(float) x) {\n  x[0] = 1.0f;\n}\n'
    with pytest.raises(
        CompilationError, match=r"Line 2 of the C: .*read-only.*\n    x\[0\] = 1.0f;"
    ):
        emulate(text, "f", 1, 32, normal(4), check=False)


def test_a_compiler_without_cpp(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise CompilationError("gcc: fatal error: cannot execute 'cc1plus'")

    monkeypatch.setattr(emulator, "build", refuse)
    with pytest.raises(CompilerNotFoundError, match="`apt install g\\+\\+`"):
        emulate("// a text that was not compiled before", "f", 1, 32)


def test_lines_are_those_of_the_text_whatever_was_compiled_before():
    text = """extern "C" __global__ void f(TF_OUT(float) x) {
  x[4] = 1.0f;
}
"""
    lines = [
        re.search("line ([0-9]+)", emulate(padding + text, "f", 1, 1, fresh(4)).error or "")[1]
        for padding in ("", "// a comment\n\n")
    ]
    assert lines == ["2", "4"]


def test_inputs_stay_as_they_are():
    flags = np.ones(64, np.uint8)
    launch = votes()
    emulate(source("votes"), "votes", 1, 64, flags, *launch.arguments[1:])
    assert (flags == 1).all()


RAW = """
static __device__ inline void twice(float *row, const float *from, int n) {
  for (int i = 0; i < n; i++) row[i] = 2.0f * from[i];
}
extern "C" __global__ void rows(TF_IN(float) x, TF_OUT(float) y, TF_OUT(float) z) {
  TF_SHARED(float, row, [8]);
  if (threadIdx.x == 0) twice(TF_RAW(row), TF_RAW(x), 8);
  __syncthreads();
  if (threadIdx.x == 1) twice(TF_RAW(y), TF_RAW(row), 8);
  __syncthreads();
  z[threadIdx.x] = y[threadIdx.x] + row[threadIdx.x];
}
"""


@pytest.mark.parametrize("check", [True, False], ids=["checked", "plain"])
def test_what_plain_pointers_write_has_a_value(check: bool):
    x = normal(8)
    result = emulate(RAW, "rows", 1, 8, x, fresh(8), fresh(8), check=check)
    assert result.error is None
    np.testing.assert_array_equal(result.arrays[2], 6 * x)


# -- compilers


def test_clang_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("ziglang")
    monkeypatch.setenv("CC", shlex.join([sys.executable, "-m", "ziglang", "cc"]))
    emulator.emulated.cache_clear()
    for made in (stencil(), tensor_cores()):
        for check in (True, False):
            result = made.run(check=check, order="random")
            assert result.error is None
            assert made.difference(result) <= made.tolerance
    emulator.emulated.cache_clear()


def test_the_emulator_compiles_for_arm64(tmp_path: Path):
    pytest.importorskip("ziglang")
    source_file = tmp_path / "machine.c"
    source_file.write_text(emulator.machine_text())
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu"]
    flags = ["-std=c11", "-O1", "-Wall", "-Wno-sign-compare", "-Werror", "-fPIC", "-shared"]
    made = subprocess.run(
        [*zig, *flags, str(source_file), "-o", str(tmp_path / "machine.so")],
        capture_output=True,
        text=True,
    )
    assert (made.returncode, made.stderr) == (0, "")
