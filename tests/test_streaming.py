"""Streamed stores: which results they serve, what they are refused for, and that bits stay."""

from __future__ import annotations

import importlib.util
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import GraphBuilder, PlainNumerics
from tests.test_emit import kernels_of, parsed
from tests.test_lower import softmax, stages_of
from tests.test_schedule import named, refused
from tinyfuse.dtypes import BOOL, SUPPORTED
from tinyfuse.emit.c import emit_c
from tinyfuse.emit.prelude import prelude_text
from tinyfuse.errors import ScheduleError, VerificationError
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Graph
from tinyfuse.loops import streaming
from tinyfuse.loops.interpreter import interpret_loops
from tinyfuse.loops.ir import For, Loops, Statement, Store, walk_statements
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.rewrite import substitute_axes
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import MIB, REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.runtime.build import build
from tinyfuse.runtime.declarations import ffi
from tinyfuse.runtime.linking import find, open_library
from tinyfuse.runtime.toolchain import find_compiler
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.streamable import obstacle
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Stages
from tinyfuse.testing import Case, Ladder, Variant, program_case, random_program
from tinyfuse.testing.compiled import Library
from tinyfuse.testing.variants import ScheduleOf, fused, unfused

Program = Callable[[GraphBuilder], Graph]


def scaled(build: GraphBuilder) -> Graph:
    x, y = build.input("x", 5000), build.input("y", 5000)
    return build.graph(build.op("add", build.op("multiply", x, y), y))


def framed(build: GraphBuilder) -> Graph:
    """Rows that no loop can go through at once: of 4 and 1500 elements."""
    x, y = build.input("x", 3, 1500), build.input("y", 3, 4)
    return build.graph(build.concat(y, build.op("negative", x), y, axis=1))


def shifted(build: GraphBuilder) -> Graph:
    """Two outputs, the second of rows that begin anywhere in a line."""
    x = build.input("x", 2, 1101, dtype=np.float64)
    rows = build.slice(x, (slice(None), slice(1, 1100, 1)))
    return build.graph(build.op("sqrt", x), build.op("add", rows, rows))


def lined(build: GraphBuilder) -> Graph:
    """Rows of two whole lines."""
    return rows_plus_columns(build, 5, 32)


def rows_plus_columns(build: GraphBuilder, rows: int, columns: int) -> Graph:
    x, y = build.input("x", rows, columns), build.input("y", rows, 1)
    return build.graph(build.op("add", x, build.broadcast(y, rows, columns)))


def streamed(stages: Stages) -> Schedule:
    """The default schedule with every output streamed."""
    schedule, _ = default_schedule(stages, REFERENCE)
    for stage in stages.outputs:
        schedule = schedule.stream_store(stage)
    return schedule


def streams(loops: Loops) -> int:
    """How many stores are streamed."""
    statements = [s for kernel in loops.kernels for s in walk_statements(kernel.body)]
    return sum(isinstance(s, Store) and s.streamed for s in statements)


# What it reads like


def test_a_streamed_stage_on_all_levels(golden: Callable[[str, str], None]) -> None:
    schedule = streamed(stages_of(scaled))
    loops = lower(schedule, REFERENCE)
    assert schedule_text(schedule).splitlines()[1:] == [
        "  multiply: inline",
        "  out: root; streamed; i < 5000 vector",
    ]
    assert loops_text(loops).splitlines()[1:] == [
        "  kernel scaled_out computes multiply, out",
        "    for i < 5000 vector",
        "      stream out[i] = x[i] * y[i] + y[i]",
    ]
    text = emit_c(loops).text
    golden("streamed.c", text)
    parsed(text)


def test_only_long_rows_of_side_by_side_elements_are_streamed() -> None:
    loops = lower(streamed(stages_of(framed)), REFERENCE)
    assert [line.strip() for line in loops_text(loops).splitlines()[2:]] == [
        "for i < 3",
        "for j < 4 vector",
        "out[1508 * i + j] = y[4 * i + j]",
        "for 4 <= j < 1504 vector",
        "stream out[1508 * i + j] = -x[1500 * i + j - 4]",
        "for 1504 <= j < 1508 vector",
        "out[1508 * i + j] = y[4 * i + j - 1504]",
    ]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (32, 1),  # two lines
        (16, 0),  # one
        (33, 0),  # rows that begin anywhere in a line
        (256, 1),
        (320, 1),
    ],
)
def test_short_rows_are_streamed_where_they_are_whole_lines(columns: int, expected: int) -> None:
    loops = lower(streamed(build_stages(rows_plus_columns(GraphBuilder(), 5, columns))), REFERENCE)
    assert streams(loops) == expected
    text = emit_c(loops).text
    assert ("tf_stream_length" in text) == (columns > 256)  # else one block holds a row


def test_a_row_of_lines_is_computed_then_streamed() -> None:
    text = kernels_of(emit_c(lower(streamed(stages_of(lined)), REFERENCE)).text)
    assert (
        """\
  for (long i = 0; i < 5; i++) {
    float out_block[32];
    for (long j = 0; j < 32; j++)
      out_block[j] = x[32 * i + j] + y[i];
    tf_stream(out + 32 * i, out_block, 128);
  }
"""
        in text
    )


def test_names_of_what_only_the_text_has_differ_from_others() -> None:
    build = GraphBuilder("named")
    x, y = build.input("i_first", 5000), build.input("out_block", 5000)
    text = emit_c(lower(streamed(build_stages(build.graph(build.op("add", x, y)))), REFERENCE)).text
    assert "for (long i_first_1 = 0, i_next; i_first_1 < 5000; i_first_1 = i_next) {" in text
    assert "out_block_1[i - i_first_1] = i_first[i] + out_block[i];" in text


# What it is refused for


def running(build: GraphBuilder) -> Graph:
    return build.graph(build.apply(p.cumulative, build.input("x", 3, 8), op="add", axis=1))


@pytest.mark.parametrize(
    ("directive", "program", "reason"),
    [
        (
            lambda s, p: s.inline(p.stages[0]).stream_store(p.stages[0]),
            scaled,
            "stream_store(multiply): multiply cannot be streamed: it is inlined, so never stored",
        ),
        (
            lambda s, p: s.stream_store(p.stages[0]).inline(p.stages[0]),
            scaled,
            "inline(multiply): multiply cannot be streamed: it is inlined, so never stored",
        ),
        (
            lambda s, p: s.compute_at(*p.stages, None).stream_store(p.stages[0]),
            scaled,
            "stream_store(multiply): multiply cannot be streamed: it is stored inside another"
            " stage, and read at once",
        ),
        (
            lambda s, p: s.stream_store(named(p, "sum")),
            softmax,
            "stream_store(sum): sum cannot be streamed: it is a reduction, which may store an"
            " element several times",
        ),
        (
            lambda s, p: s.stream_store(p.stages[0]),
            running,
            "stream_store(out): out cannot be streamed: each element is read for the next one",
        ),
        (
            lambda s, p: s.stream_store(named(p, "out")).reorder(
                named(p, "out"), *reversed(named(p, "out").axes)
            ),
            softmax,
            "reorder(out): out cannot be streamed: its innermost loop has to run over j, not"
            " unrolled",
        ),
        (
            lambda s, p: (
                s.split(p.stages[1], p.stages[1].axes[0], 50)
                .stream_store(p.stages[1])
                .unroll(p.stages[1], Loop(p.stages[1].axes[0]))
            ),
            scaled,
            "unroll(out): out cannot be streamed: its innermost loop has to run over i, not"
            " unrolled",
        ),
    ],
)
def test_illegal_directives(directive: Callable, program: Program, reason: str) -> None:
    refused(directive, program, reason)


def counted(x: Any) -> Any:
    counts = np.zeros(6, np.int64)
    np.add.at(counts, x, 1)
    return counts


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (counted, "its elements are put in one after the other"),
        (np.sort, "its rows are stored by sorting them"),
        (lambda x: x[0] + x[1], "it has a single element"),
    ],
)
def test_what_is_stored_otherwise_is_not_streamed(function: Callable, reason: str) -> None:
    schedule = tinyfuse.jit(function).lower(np.arange(6)).schedule
    with pytest.raises(ScheduleError, match=f"cannot be streamed: {reason}\n"):
        schedule.stream_store(schedule.stages.outputs[0])


@pytest.mark.parametrize("fault", ["a short row", "outside its loop", "read in its loop"])
def test_the_verifier_refuses_stores_that_are_no_rows(fault: str) -> None:
    loops = lower(streamed(stages_of(scaled)), REFERENCE)
    verify_loops(loops)
    (kernel,) = loops.kernels
    (loop,) = kernel.body
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    axis = Axis(loop.variable.name, 255)
    short, single = (
        substitute_axes([store], {loop.variable: position})[0]
        for position in (affine(axis), Affine())
    )
    own = replace(store, value=Load(store.buffer, (store.position,)))
    body: dict[str, Statement] = {
        "a short row": For(axis, loop.kind, (short,)),
        "outside its loop": single,
        "read in its loop": For(loop.variable, loop.kind, (own,)),
    }
    broken = replace(loops, kernels=(replace(kernel, body=(body[fault],)),))
    message = "kernel .*: out is streamed, but not as a row by the innermost loop alone"
    with pytest.raises(VerificationError, match=message):
        verify_loops(broken)


# Which results the planner streams


def large(extent: int, *operands: int) -> Program:
    """A sum of arrays of so many elements."""

    def program(build: GraphBuilder) -> Graph:
        x, *others = [build.input(f"x{at}", extent) for at in operands]
        for other in others:
            x = build.op("add", x, other)
        return build.graph(build.op("negative", x))

    return program


def planned(program: Program, machine: Machine = REFERENCE) -> int:
    """How many stores the default schedule streams."""
    schedule, _ = default_schedule(stages_of(program), machine)
    return streams(lower(schedule, machine))


@pytest.mark.parametrize(
    ("mib", "operands", "machine", "expected"),
    [
        (16, 2, REFERENCE, 1),
        (11, 3, REFERENCE, 0),  # less than half of what there is of the cache
        (20, 1, REFERENCE, 0),  # a part of it is not found there
        (21, 1, REFERENCE, 1),
        (12, 1, replace(REFERENCE, cores=1), 1),  # which fills it
        (10, 1, REFERENCE_AVX2, 0),
        (11, 1, REFERENCE_AVX2, 1),
        (21, 1, replace(REFERENCE, l3=300 * MIB), 1),
    ],
)
def test_large_results_are_streamed(
    mib: int, operands: int, machine: Machine, expected: int
) -> None:
    assert planned(large(mib * MIB // 4, *range(operands)), machine) == expected


def test_results_that_are_read_again_are_not_streamed() -> None:
    def program(build: GraphBuilder) -> Graph:
        x = build.input("x", 10 * MIB)
        y = build.op("negative", x, name="y")
        return build.graph(y, build.op("sqrt", build.op("add", y, x)), build.reduce("sum", x, 0))

    schedule, _ = default_schedule(stages_of(program), REFERENCE)
    assert [s.name for s in schedule.stages.stages if schedule[s].streamed] == ["out"]


# What is asked for while a block is computed


def computed(op: str, rows: int = 1000) -> str:
    """The C of a function of `rows` rows of 1200 elements, one row of weights beside them."""
    build = GraphBuilder("computed")
    x, w = build.input("x", rows, 1200), build.input("w", 1200)
    y = build.op("add", x, build.broadcast(w, rows, 1200))
    stages = build_stages(build.graph(build.op("multiply", build.op(op, y), x)))
    schedule = Schedule(stages)
    for stage in stages.stages[:-1]:
        schedule = schedule.inline(stage)
    return emit_c(lower(schedule.stream_store(stages.stages[-1]), REFERENCE)).text


def test_the_next_block_is_asked_for_where_computing_takes_long() -> None:
    text = computed("tanh")
    parsed(text)
    assert text.count("tf_prefetch(") == 2  # the function, and large rows once
    assert "      tf_prefetch(x + 1200 * i + j_next, 1024);\n" in text
    assert "tf_prefetch(" not in computed("sqrt")  # memory is busy anyway
    assert "tf_prefetch(" not in computed("tanh", rows=800)  # it stays in the caches


def test_of_elements_around_each_other_the_last_is_asked_for() -> None:
    def program(build: GraphBuilder) -> Graph:
        x = build.input("x", 3 * MIB, dtype="float64")
        parts = [build.slice(x, [slice(k, 3 * MIB - 2 + k)]) for k in (0, 2)]
        return build.graph(build.op("exp", build.cast(build.op("add", *parts), "float32")))

    stages = stages_of(program)
    schedule = Schedule(stages)
    for stage in stages.stages[:-1]:
        schedule = schedule.inline(stage)
    text = emit_c(lower(schedule.stream_store(stages.stages[-1]), REFERENCE)).text
    assert re.findall(r"tf_prefetch\(x.*\);", text) == ["tf_prefetch(x + i_next + 2, 2048);"]


# The same bits


def drawn(dtype: np.dtype, *shape: int) -> np.ndarray:
    bits = np.random.default_rng(7).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    if dtype.kind == "b":
        return bits[..., 0] > 100
    return bits.view(dtype)[..., 0]


def assert_same_bytes(actual: np.ndarray, expected: np.ndarray) -> None:
    """NaN equals NaN, whatever its bits."""
    assert actual.dtype == expected.dtype
    same = actual.view(np.uint8) == expected.view(np.uint8)
    same = same.reshape(-1, actual.itemsize).all(axis=1)
    assert (same | ((actual != actual) & (expected != expected))).all()


@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
def test_every_dtype_and_any_number_of_threads(dtype: np.dtype) -> None:
    """Of odd lengths, in pieces that begin anywhere in a line."""
    length = 7 * 4096 // dtype.itemsize + 5
    programs = []
    for extra in range(3):
        build = GraphBuilder(f"selected_{extra}")
        x, y = (build.input(name, length + extra, dtype=dtype) for name in ("x", "y"))
        condition = build.input("condition", length + extra, dtype=np.bool_)
        stages = build_stages(build.graph(build.op("select", condition, x, y)))
        (out,) = stages.outputs
        programs.append(lower(streamed(stages).parallel(out, out.axes[0]), REFERENCE))
        assert streams(programs[-1]) == 1
    library = Library(programs, ("-O3",))
    for loops in programs:
        size = loops.outputs[0].size
        x, y, condition = drawn(dtype, size), drawn(dtype, size)[::-1].copy(), drawn(BOOL, size)
        for pieces in (1, 2, 3, 7):
            (out,) = library.run(loops, [x, y, condition], pieces)
            assert_same_bytes(out, np.where(condition, x, y))
        for threads in (1, 2, 3):
            (out,) = library.run_threads(loops, [x, y, condition], threads)
            assert_same_bytes(out, np.where(condition, x, y))


@pytest.mark.parametrize("program", [scaled, framed, shifted, lined])
@pytest.mark.parametrize(
    "flags", [("-O3",), ("-O3", "-march=x86-64-v3"), ("-O2", "-march=x86-64"), ("-O0",)]
)
def test_every_level_and_width_of_vectors(program: Program, flags: tuple[str, ...]) -> None:
    check_bits(program, flags)


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs the ziglang wheel")
@pytest.mark.parametrize("flags", [(), ("-march=x86_64_v3",), ("-march=x86_64",)])
def test_another_compiler(flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", shlex.join([sys.executable, "-m", "ziglang", "cc"]))
    check_bits(shifted, flags)


def check_bits(program: Program, flags: tuple[str, ...]) -> None:
    stages = stages_of(program)
    plain = default_schedule(stages, REFERENCE)[0]
    loops = [lower(schedule, REFERENCE) for schedule in (plain, streamed(stages))]
    assert [streams(each) > 0 for each in loops] == [False, True]
    assert streams(loops[1]) == len(stages.outputs)
    arrays = [drawn(b.dtype, b.size) for b in loops[0].inputs]
    expected = interpret_loops(loops[0], arrays, PlainNumerics())
    interpreted = interpret_loops(loops[1], arrays, PlainNumerics())
    compiled = Library([loops[1]], flags).run(loops[1], arrays)
    for given, *others in zip(expected, interpreted, compiled, strict=True):
        for other in others:
            assert_same_bytes(other, given)


def streamed_where_it_can_be(schedule_of: ScheduleOf) -> ScheduleOf:
    def schedule_of_case(case: Case) -> Schedule:
        schedule = schedule_of(case)
        for stage in schedule.stages.stages:
            if obstacle(stage, schedule.places) is None:
                schedule = schedule.stream_store(stage)
        return schedule

    return schedule_of_case


def test_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a single element too, so that every store that can be is streamed."""
    monkeypatch.setattr(streaming, "LEAST_ROW", 1)
    cases = [program_case(random_program(seed)) for seed in range(7000, 7040)]
    variants = [
        Variant(
            f"{schedule_of.__name__} C, streamed", streamed_where_it_can_be(schedule_of), (), (1, 3)
        )
        for schedule_of in (fused, unfused)
    ]
    found = [streams(variant.loops(case)) for case in cases for variant in variants]
    assert sum(found) > 3 * len(cases)
    Ladder(variants, lambda case: True).climb(cases).check()


def test_any_bytes_from_and_to_any_place() -> None:
    """From each place in a line and of all lengths up to some lines, none is written beside."""
    text = prelude_text(["tf_stream", "tf_stream_end"]) + (
        "void stream(char *to, const char *from, long bytes) {\n"
        "  tf_stream(to, from, bytes);\n"
        "  tf_stream_end();\n"
        "}\n"
    )
    library = open_library(build(text, "stream"))
    stream = ffi.cast("void (*)(char *, char *, long)", find(library, "stream", "tf_entry"))
    source, target = np.arange(512, dtype=np.uint8), np.zeros(640, np.uint8)
    lengths = (*range(70), 127, 128, 129, 200, 256, 300)
    for place, count in product(range(64), lengths):
        target[...] = 255
        expected = target.copy()
        expected[place : place + count] = source[place // 3 : place // 3 + count]
        addresses = (target.ctypes.data + place, source.ctypes.data + place // 3)
        stream(*[ffi.cast("char *", address) for address in addresses], count)
        assert (target == expected).all(), (place, count)


@pytest.mark.parametrize(
    ("flags", "register", "count"),
    [
        (("-march=x86-64-v4",), "zmm", 1),
        (("-march=x86-64-v3",), "ymm", 2),
        (("-march=x86-64",), "xmm", 4),
    ],
)
def test_a_line_is_as_few_stores_as_there_can_be(
    flags: tuple[str, ...], register: str, count: int
) -> None:
    compiler = find_compiler()
    if compiler.kind != "gcc" or platform.machine() != "x86_64":
        pytest.skip("counted in what gcc writes for x86-64")
    command = [*compiler.command, *compiler.arguments(flags), "-S", "-o-", "-xc", "-"]
    text = emit_c(lower(streamed(stages_of(scaled)), REFERENCE)).text
    assembly = subprocess.run(
        command, input=text, capture_output=True, text=True, check=True
    ).stdout
    assert len(re.findall(rf"movntps\s+%{register}", assembly)) == count
    assert (assembly.count("movnt"), assembly.count("sfence")) == (count, 1)


def test_tiles_in_registers_are_not_streamed() -> None:
    x = np.ones((2048, 2048), np.float32)
    product = tinyfuse.jit(lambda x, y: x @ y).lower(x, x)
    assert "streamed" not in str(product.schedule)
    assert "streamed" in str(tinyfuse.jit(lambda x, y: x + y).lower(x, x).schedule)
