"""What is read across its rows: copied tile by tile, in vectors, with the same bits."""

from __future__ import annotations

import importlib.util
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import GraphBuilder
from tests.test_emit import kernels_of
from tests.test_lower import assert_same_bits, inputs_of
from tinyfuse.dtypes import SUPPORTED
from tinyfuse.emit.c import emit_c
from tinyfuse.emit.prelude import prelude_text
from tinyfuse.errors import VerificationError
from tinyfuse.loops.ir import Loops, Transpose, walk_statements
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.rewrite import with_inside
from tinyfuse.loops.transposes import LANES, lanes_for
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import MIB, REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.runtime.toolchain import find_compiler
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.ir import Stages
from tinyfuse.testing.compiled import Library

Program = Callable[..., Any]

ZIG = shlex.join([sys.executable, "-m", "ziglang", "cc"])
needs_zig = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="needs the ziglang wheel"
)
# Vectors of 16 bytes, as of SSE2 and NEON.
NARROW = replace(REFERENCE_AVX2, vector_bytes=16)


def summed(rows: int, columns: int, dtype: Any = np.float32, name: str = "summed") -> Stages:
    """x + y.T"""
    build = GraphBuilder(name)
    x = build.input("x", rows, columns, dtype=dtype)
    y = build.input("y", columns, rows, dtype=dtype)
    return build_stages(build.graph(build.op("add", x, build.transpose(y, 1, 0))))


def transposed(rows: int, columns: int, dtype: Any, name: str) -> Stages:
    """x.T"""
    build = GraphBuilder(name)
    x = build.input("x", columns, rows, dtype=dtype)
    return build_stages(build.graph(build.transpose(x, 1, 0)))


def symmetric(size: int) -> Stages:
    """x + x.T"""
    build = GraphBuilder("symmetric")
    x = build.input("x", size, size)
    return build_stages(build.graph(build.op("add", x, build.transpose(x, 1, 0))))


def planned(stages: Stages, machine: Machine = REFERENCE) -> Loops:
    loops = lower(default_schedule(stages, machine)[0], machine)
    verify_loops(loops)
    return loops


def transposes(loops: Loops) -> list[Transpose]:
    statements = [s for kernel in loops.kernels for s in walk_statements(kernel.body)]
    return [statement for statement in statements if isinstance(statement, Transpose)]


# --- what they look like --------------------------------------------------------------------------


def test_a_tile_is_copied_then_read_along_its_rows() -> None:
    stages = summed(64, 100)
    schedule, decisions = default_schedule(stages, REFERENCE)
    assert schedule_text(schedule).splitlines()[1:] == [
        "  y_copy = cache_read(y, out)",
        "  y_copy: compute_at(out, j by 32); layout(j, i); i < 100, j < 64",
        "  out: root; i by 32 < 64, j by 32 < 100, i < 64, j < 100 vector",
    ]
    assert str(decisions[0]) == (
        "y_copy -> out: cache_read, out reads it along j, across its rows: 32 by 32 elements at a"
        " time are copied, and lie along it"
    )
    loops = lower(schedule, REFERENCE)
    assert loops.scratch_bytes == 0
    assert loops_text(loops).splitlines()[1:] == [
        "  kernel summed_out computes y_copy, out",
        "    for i_outer < 2",
        "      for j_outer < 3",
        "        alloc y_copy: float32[1024] on the stack",
        "        transpose 32 by 32 elements of y[2048 * j_outer + 32 * i_outer…] by 64"
        " to y_copy[0…] by 32, 16 lanes",
        "        for i < 32",
        "          for j < 32 vector",
        "            out[3200 * i_outer + 100 * i + 32 * j_outer + j]"
        " = x[3200 * i_outer + 100 * i + 32 * j_outer + j] + y_copy[32 * i + j]",
        "      block",
        "        alloc y_copy: float32[128] on the stack",
        "        transpose 4 by 32 elements of y[32 * i_outer + 6144…] by 64 to y_copy[0…] by 4,"
        " 4 lanes",
        "        for i < 32",
        "          for 96 <= j < 100 vector",
        "            out[3200 * i_outer + 100 * i + j]"
        " = x[3200 * i_outer + 100 * i + j] + y_copy[4 * i + j - 96]",
    ]
    text = kernels_of(emit_c(loops).text)
    assert (
        "      float y_copy[1024];\n      tf_transpose_16_uint32"
        "(y_copy, 32, y + 2048 * j_outer + 32 * i_outer, 64, 32, 32);\n" in text
    )


def test_a_copy_that_a_schedule_asks_for() -> None:
    """Whoever makes a copy: what counts is how its loops walk."""
    stages = summed(40, 24, np.float64)
    (out,), (_, y) = stages.stages, stages.inputs
    for order in ((0, 1), (1, 0)):
        schedule = Schedule(stages).cache_read(out, y)
        copy = schedule.stage("y_copy")
        loops = lower(
            schedule.layout(copy, *copy.axes[::-1]).reorder(copy, *[copy.axes[o] for o in order]),
            REFERENCE,
        )
        (node,) = transposes(loops)
        assert (node.rows, node.columns, node.block.step, node.to.step) == (40, 24, 40, 24)
        assert [len(loops.kernels), loops.scratch_bytes] == [2, 40 * 24 * 8]
        assert_same_bits(loops, stages)
        moved = 2 * 40 * 24 * 8  # read and written
        assert loops.kernels[0].cost.accesses == moved
        assert not loops.kernels[0].cost.lines
    assert not transposes(lower(Schedule(stages).cache_read(out, y), REFERENCE))  # as it lies


def test_a_product_copies_its_second_matrix_so() -> None:
    build = GraphBuilder("product")
    x, y = build.input("x", 64, 128), build.input("y", 96, 128)
    stages = build_stages(build.graph(build.contract("ik,jk->ij", x, y, via="matmul")))
    loops = planned(stages)
    assert [kernel.stages for kernel in loops.kernels] == [("y_copy",), ("out_local", "out")]
    (node,) = transposes(loops)
    assert (node.rows, node.columns, node.to.step, node.block.step) == (128, 48, 48, 128)


# --- which ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "shapes", "expected"),
    [
        (lambda x, y: x.T + y.T, [(64, 64), (64, 64)], 2),
        (lambda x: np.sqrt(x.T) * 2, [(64, 96)], 1),
        (lambda x: np.ascontiguousarray(x.T), [(64, 96)], 1),
        (lambda x, y: np.transpose(x, (0, 2, 1)) + y, [(5, 32, 64), (5, 64, 32)], 1),
        (lambda x: np.transpose(x, (2, 1, 0)) + 1, [(32, 4, 32)], 1),
        (lambda x: np.transpose(x, (2, 0, 1)) + 1, [(4, 32, 32)], 1),
        (lambda x: np.transpose(x, (1, 0, 2)) + 1, [(32, 4, 32)], 0),  # rows stay rows
        (lambda x: x[2:60, 1:33].T + 1, [(64, 64)], 1),
        (lambda x, v: x.T + v[:, None], [(64, 64), (64,)], 1),
        (lambda x: x[:, ::2].T + 1, [(64, 64)], 0),  # nothing lies side by side
        (lambda x: x[:, ::-1].T + 1, [(64, 64)], 0),
        (lambda x: (x + x.T) / 2, [(64, 64)], 1),
        (lambda x: np.sqrt(x) + np.sqrt(x).T, [(64, 64)], 1),  # the root, which is stored
        (lambda x: x * 2 + (x * 2).T, [(64, 64)], 0),  # the product is not, and reads x once
        (lambda x: x.T - x.mean(), [(64, 64)], 1),  # the mean is known before
        (lambda x: x[:-1].T - x[1:].T, [(65, 64)], 0),  # read at two places
        (lambda x: np.pad(x.T, 1), [(64, 64)], 0),  # only behind a test
        (lambda x: x.T + 1, [(64, 7)], 0),  # too few
        (lambda x: x.T.sum(axis=1), [(64, 64)], 0),
    ],
)
def test_what_is_copied(function: Program, shapes: list[tuple[int, ...]], expected: int) -> None:
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
    fused = tinyfuse.jit(function)
    copied = [d for d in fused.lower(*arrays).decisions if d.action == "cache_read"]
    assert len(copied) == expected
    np.testing.assert_allclose(fused(*arrays), function(*arrays), rtol=1e-6)


def test_a_stage_that_other_kernels_compute_too_reads_no_copy() -> None:
    def function(x: np.ndarray, y: np.ndarray) -> Any:
        s = x.T * 2
        return s + y, (s * y).sum(axis=0)

    x = np.arange(1 << 18, dtype=np.float64).reshape(512, 512)
    lowered = tinyfuse.jit(function).lower(x, x)
    assert "inline" in [d.action for d in lowered.decisions if d.producer == "s"]
    assert "cache_read" not in [d.action for d in lowered.decisions]
    for result, want in zip(lowered.compile()(x, x), function(x, x), strict=True):
        np.testing.assert_allclose(result, want)


def test_only_the_transposed_operand_is_copied() -> None:
    schedule, _ = default_schedule(symmetric(64), REFERENCE)
    assert "  x_copy = cache_read(x at j, out along i)" in str(schedule).splitlines()
    text = loops_text(lower(schedule, replace(REFERENCE, l2=1 << 12)))
    assert "= x[2048 * i_outer + 64 * i + 32 * j_outer + j] + x_copy[32 * i + j]" in text


def test_narrow_elements_take_whole_lines() -> None:
    loops = planned(summed(128, 128, np.uint8))
    assert {(node.rows, node.columns, node.lanes) for node in transposes(loops)} == {(64, 64, 16)}


def test_threads_share_columns_of_tiles_where_there_are_few_rows() -> None:
    schedule, _ = default_schedule(summed(32, 4096), REFERENCE)
    assert "out: root; j by 32 < 4096 parallel, i by 32 < 32, i < 32, j < 4096 vector" in str(
        schedule
    )


def test_large_results_go_to_memory_as_whole_lines() -> None:
    machine = replace(REFERENCE, l2=1 << 12, l3=MIB)
    loops = planned(summed(512, 512), machine)
    text = kernels_of(emit_c(loops).text)
    assert "tf_stream(out + 16384 * i_outer + 512 * i + 32 * j_outer, out_block, 128)" in text
    assert "tf_prefetch(x" in text
    assert "tf_prefetch(y" in text
    assert "tf_prefetch(out" not in text  # which would read it
    uneven = planned(summed(512, 500), machine)
    assert "tf_stream" not in kernels_of(emit_c(uneven).text)


# --- bits -----------------------------------------------------------------------------------------

SIZES = [(1, 1), (1, 40), (40, 1), (8, 8), (9, 33), (32, 64), (100, 41)]


def all_dtypes() -> list[Stages]:
    """Each dtype in one odd size, and each size of element in all sizes."""
    cases = [(transposed, dtype, (17, 70)) for dtype in SUPPORTED]
    cases += [(summed, np.dtype(f"uint{8 * size}"), shape) for size in LANES for shape in SIZES]
    return [
        make(*shape, dtype, f"{make.__name__}_{dtype.name}_{shape[0]}_{shape[1]}")
        for make, dtype, shape in cases
    ]


def checked(programs: list[Stages], machine: Machine, flags: tuple[str, ...] = ()) -> None:
    """Compile all, and compare with numpy."""
    loops = [planned(stages, machine) for stages in programs]
    assert all(len(each.kernels) == 1 and not each.scratch_bytes for each in loops)
    library = Library(loops, ("-O1", *machine.flags, *flags))
    random = np.random.default_rng(1)
    for stages, program in zip(programs, loops, strict=True):
        arrays = [
            random.integers(0, 2 if s.dtype == np.bool_ else 256, (*s.shape, s.dtype.itemsize))
            .astype(np.uint8)
            .view(s.dtype)
            .reshape(s.shape)
            for s in stages.inputs
        ]
        expected = arrays[0].T if len(arrays) == 1 else arrays[0] + arrays[1].T
        for pieces in (1, 3):
            (result,) = library.run(program, arrays, pieces)
            np.testing.assert_array_equal(result.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    "machine",
    [replace(REFERENCE, flags=()), replace(REFERENCE_AVX2, flags=()), NARROW],
    ids=["64 bytes", "32 bytes", "16 bytes"],
)
def test_bits_of_all_dtypes(machine: Machine) -> None:
    """Vectors wider than the processor's are taken apart by the compiler."""
    checked(all_dtypes(), replace(machine, flags=()))


@needs_zig
def test_bits_by_another_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", ZIG)
    assert find_compiler().kind == "zig"
    checked(all_dtypes(), replace(REFERENCE, flags=()))


@pytest.mark.parametrize("shape", [(0, 40), (40, 0), (0, 0), (1, 40), (40, 1)])
def test_empty_and_thin_arrays(shape: tuple[int, int]) -> None:
    y = np.ones(shape)
    for function in (lambda x, y: x + y.T, lambda x, y: np.ascontiguousarray(y.T)):
        result = tinyfuse.jit(function)(y.T.copy(), y)
        np.testing.assert_array_equal(result, function(y.T, y))


@pytest.mark.parametrize("machine", [REFERENCE, NARROW])
def test_loops_compute_what_the_stages_say(machine: Machine) -> None:
    for stages in (summed(33, 18), summed(40, 70, np.float64), symmetric(50)):
        loops = planned(stages, machine)
        assert transposes(loops)
        assert_same_bits(loops, stages)


def test_threads_share_tiles() -> None:
    stages = summed(200, 300)
    loops, arrays = planned(stages), inputs_of(stages)
    library = Library([loops], ("-O2",))
    want = (arrays[0] + arrays[1].T).tobytes()
    for pieces in (1, 2, 5):
        assert library.run(loops, arrays, pieces)[0].tobytes() == want
    assert library.run_threads(loops, arrays, 2)[0].tobytes() == want


# --- what is no transpose -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda node: {"lanes": 2}, "y is no block of 2 lanes"),
        (lambda node: {"columns": 12}, "y is no block of 16 lanes"),
        (lambda node: {"to": replace(node.to, step=31)}, "rows of y_copy overlap"),
        (lambda node: {"to": replace(node.to, position=node.to.position + 1)}, "of 1024 elements"),
        (lambda node: {"block": replace(node.block, step=65)}, "of 4096 elements"),
        (lambda node: {"to": node.block}, "y is an input and written"),
    ],
)
def test_the_verifier_knows_what_can_be_transposed(fault: Any, message: str) -> None:
    loops = planned(summed(64, 64))
    (kernel,), (node,) = loops.kernels, transposes(loops)
    broken = replace(node, **fault(node))

    def body(statements: Any) -> Any:
        return tuple(with_inside(broken if each is node else each, body) for each in statements)

    kernel = replace(kernel, body=body(kernel.body))
    with pytest.raises(VerificationError, match=message):
        verify_loops(replace(loops, kernels=(kernel,)))


@pytest.mark.parametrize(
    ("itemsize", "extent", "vector_bytes", "lanes"),
    [
        (4, 100, 64, 16),
        (4, 100, 32, 8),
        (4, 100, 16, 4),
        (4, 9, 64, 8),
        (4, 3, 64, None),
        (8, 100, 16, 4),
        (8, 100, 64, 8),
        (1, 100, 64, 16),
        (1, 15, 64, None),
        (2, 100, 16, 8),
    ],
)
def test_lanes(itemsize: int, extent: int, vector_bytes: int, lanes: int | None) -> None:
    assert lanes_for(itemsize, extent, vector_bytes) == lanes


# --- what a compiler makes of them ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("itemsize", "lanes", "march"),
    [
        *[(4, 16, "x86-64-v4"), (8, 8, "x86-64-v4"), (2, 16, "x86-64-v4"), (1, 16, "x86-64-v4")],
        *[(4, 8, "x86-64-v3"), (8, 4, "x86-64-v3"), (2, 8, "x86-64-v3")],
        *[(4, 4, "x86-64"), (2, 8, "x86-64")],
    ],
)
def test_blocks_stay_in_registers(itemsize: int, lanes: int, march: str) -> None:
    """Counted in what gcc writes: each vector is loaded and stored once, and none elsewhere."""
    compiler = find_compiler()
    if compiler.kind != "gcc" or platform.machine() != "x86_64":
        pytest.skip("counted in what gcc writes for x86-64")
    name = f"tf_transpose_block_{lanes}_uint{8 * itemsize}"
    text = prelude_text([name]).replace("static inline ", "")
    command = [*compiler.command, *compiler.arguments((f"-march={march}",)), "-S", "-o-", "-xc"]
    run = subprocess.run([*command, "-"], input=text, capture_output=True, text=True, check=True)
    moves = re.findall(r"^\tv?mov[a-z]*\d*\t.*[xyz]mm.*$", run.stdout, re.MULTILINE)
    assert sum("(" in move for move in moves) <= 2 * lanes + 4  # and constants
    assert "rsp" not in run.stdout
    shuffles = re.findall(r"^\tv?(?:perm|punpck|unpck|pinsr|insert)", run.stdout, re.MULTILINE)
    rounds = lanes.bit_length() - 1
    assert len(shuffles) <= 2 * lanes * rounds


def test_every_function_has_a_name() -> None:
    names = [f"tf_transpose_{n}_uint{8 * size}" for size, known in LANES.items() for n in known]
    text = prelude_text(names)
    assert len(re.findall(r"^static inline", text, re.MULTILINE)) == 2 * len(names)
    assert "LANES" not in text
