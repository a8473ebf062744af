"""The C text: what a person reads, what a compiler and pycparser accept."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycparser import c_ast, c_parser

import tinyfuse
from tests.graphs import GraphBuilder
from tests.programs import PROGRAMS as WHOLE_PROGRAMS
from tests.test_lower import PROGRAMS, column_sum, lowered, softmax, stages_of
from tinyfuse.emit.c import CModule, emit_c, emit_c_many
from tinyfuse.emit.comments import count_text, entry_comment, names_text, safe, size_text
from tinyfuse.graph.ir import Literal
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.runtime.toolchain import find_compiler
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.build import build_stages

WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-fwrapv")


def module_of(program: Any, fuse: bool = True) -> CModule:
    return emit_c(lowered(stages_of(program), fuse))


def kernels_of(text: str) -> str:
    """The text from the first kernel's comment on."""
    return text[text.index("// [") :]


def parsed(text: str) -> c_ast.FileAST:
    """The syntax tree of emitted C, of streams in all their forms.

    pycparser knows no comments, directives, attributes, assembler and no `__INT32_TYPE__`.
    """
    unknown = r"//[^\n]*|^#[^\n]*|__attribute__\(\(.*\)\)|__asm__\(.*\);"
    unknown += r"|\btf_(interleaved|pieces|masks|turned)\b"
    text = re.sub(unknown, "", text, flags=re.MULTILINE)
    return c_parser.CParser().parse(re.sub(r"__U?INT\d+_TYPE__", "int", text))


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_emitted_c_compiles_without_warnings_and_parses(program: Any, fuse: bool) -> None:
    require_plain_c(module_of(program, fuse).text, program.__name__)


def require_plain_c(text: str, entry: str, *flags: str) -> None:
    command = [*find_compiler().command, *WARNINGS, *flags]
    command += ["-O1", "-fsyntax-only", "-x", "c", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    functions = [node for node in parsed(text).ext if isinstance(node, c_ast.FuncDef)]
    assert functions[-1].decl.name == entry


@pytest.mark.parametrize("name", WHOLE_PROGRAMS)
def test_whole_programs_compile_without_warnings_and_parse(name: str) -> None:
    """Of numpy's functions on complex numbers, rows in one call, angles and the like."""
    example = WHOLE_PROGRAMS[name]
    lowered = tinyfuse.jit(example.function).lower(*example.arguments())
    require_plain_c(lowered.as_text("c"), name, "-march=native")


@pytest.mark.parametrize("program", PROGRAMS)
def test_emitted_c_is_formatted(program: Any) -> None:
    clang_format = Path(sys.executable).parent / "clang-format"
    if not clang_format.exists():
        pytest.skip("clang-format is not installed (extra: dev)")
    style = Path(__file__).parent.parent / ".clang-format"
    text = module_of(program).text
    command = [clang_format, f"--style=file:{style}"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert result.stdout == text


def test_several_programs_share_one_head() -> None:
    module = emit_c_many([lowered(stages_of(program)) for program in PROGRAMS])
    assert module.entries == tuple(program.__name__ for program in PROGRAMS)
    assert module.text.count("typedef struct tf_pool tf_pool;") == 1
    parsed(module.text)


def test_a_row_sum_reads_like_c_by_hand() -> None:
    build = GraphBuilder("rows")
    loops = lowered(build_stages(build.graph(build.reduce("sum", build.input("x", 3, 10), 1))))
    assert kernels_of(emit_c(loops).text) == (
        "// [out] reads 120 B, writes 12 B, 30 operations\n"
        "static void rows_out(const float *restrict x, float *restrict out) {\n"
        "  for (long i = 0; i < 3; i++) {\n"
        "    float out_acc = 0.0f;\n"
        "    for (long k = 0; k < 10; k++)\n"
        "      out_acc += x[10 * i + k];\n"
        "    out[i] = out_acc;\n"
        "  }\n"
        "}\n"
        "\n"
        "// arrays: x float32[30]; then the results: out float32[3]\n"
        "// scratch: 0 bytes; returns 0\n"
        "int rows(void *const *arrays, void *scratch, const tf_pool *pool) {\n"
        "  (void)scratch;\n"
        "  (void)pool;\n"
        "  float *x = arrays[0];\n"
        "  float *out = arrays[1];\n"
        "  rows_out(x, out);\n"
        "  return 0;\n"
        "}\n"
    )


def test_threads_reach_a_parallel_kernel_through_a_task() -> None:
    build = GraphBuilder("twice")
    x = build.input("x", 300, 100)
    module = emit_c(lowered(build_stages(build.graph(build.op("add", x, x)))))
    assert kernels_of(module.text) == (
        "// [out] reads 117 KiB, writes 117 KiB, 30000 operations\n"
        "static void twice_out("
        "const float *restrict x, float *restrict out, long begin, long end) {\n"
        "  for (long i = begin; i < end; i++)\n"
        "    out[i] = x[i] + x[i];\n"
        "}\n"
        "\n"
        "static void twice_out_task(void *const *buffers, long begin, long end) {\n"
        "  twice_out(buffers[0], buffers[1], begin, end);\n"
        "}\n"
        "\n"
        "// arrays: x float32[30000]; then the results: out float32[30000]\n"
        "// scratch: 0 bytes; returns 0\n"
        "int twice(void *const *arrays, void *scratch, const tf_pool *pool) {\n"
        "  (void)scratch;\n"
        "  float *x = arrays[0];\n"
        "  float *out = arrays[1];\n"
        "  tf_run(pool, twice_out_task, (void *[]){x, out}, 30000, 11891);\n"
        "  return 0;\n"
        "}\n"
    )


def test_kernels_hold_no_preprocessor_lines_attributes_or_globals() -> None:
    for program in PROGRAMS:
        text = kernels_of(module_of(program).text)
        assert "#" not in text
        assert "__attribute__" not in text
        assert not re.search(r"^(?!static|int|//|[ }]|$)", text, re.MULTILINE)


def test_an_output_without_elements_has_no_kernel() -> None:
    build = GraphBuilder("nothing")
    x = build.input("x", 0, 3)
    loops = lowered(
        build_stages(build.graph(build.pad(x, Literal(x.dtype.type(1)), (0, 0), (0, 1))))
    )
    assert loops.kernels == ()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("y = x + 1  # plain", "y = x + 1  # plain"),
        ("y = x + \\", "y = x + \\ (line continues)"),
        ("y = x  # what??/", "y = x  # what? ?/"),
        ("y = x  # \u202e right to left", "y = x  # ? right to left"),
        ("y = 'é'\x00", "y = 'é'?"),
    ],
)
def test_user_text_cannot_leave_its_comment(line: str, shown: str) -> None:
    assert safe(line) == shown


def test_comment_of_a_program_without_results_ends_with_its_text() -> None:
    arrays, scratch = entry_comment(Loops("nothing", (), (), ()))
    assert arrays == "// arrays: none; then the results:"
    assert scratch == "// scratch: 0 bytes; returns 0"


def test_comments_of_many_stages_and_arrays_are_short() -> None:
    assert names_text([f"s{at}" for at in range(8)]) == "s0, s1, s2, s3, s4, s5, s6, s7"
    assert names_text([f"s{at}" for at in range(35)]).endswith(", s6, s7, ... and 27 more")
    find = tinyfuse.jit(lambda x, edges, *others: np.searchsorted(edges, x) + sum(others))
    text = find.lower(np.ones(9), np.arange(1e5), *np.ones((40, 9))).as_text("c")
    comments = [line for line in text.splitlines() if line.startswith("//")]
    assert max(map(len, comments)) <= 100
    assert any("... and" in line for line in comments)


def test_sizes_read_as_a_person_says_them() -> None:
    assert [size_text(n) for n in (0, 512, 1000, 1023, 1024, 1536, 1 << 20, 3 << 30)] == [
        *("0 B", "512 B", "1000 B", "1023 B", "1 KiB", "1.5 KiB", "1 MiB", "3 GiB")
    ]
    assert [count_text(n) for n in (0, 1, 2)] == ["0 operations", "1 operation", "2 operations"]


@pytest.mark.parametrize("program", [softmax, column_sum])
def test_the_same_program_gives_the_same_text(program: Any) -> None:
    assert module_of(program).text == module_of(program).text


def test_a_local_is_not_hidden_by_one_of_the_same_name_further_in() -> None:
    build = GraphBuilder("squared")
    x = build.input("x", 3, 4)
    row = build.op("exp", build.input("row", 3), name="t")
    cell = build.op("sqrt", x, name="t")
    wide = build.broadcast(build.reshape(row, 3, 1), 3, 4)
    stages = build_stages(build.graph(build.op("multiply", wide, cell)))
    schedule = Schedule(stages)
    for stage in stages.stages[:-1]:
        schedule = schedule.inline(stage)
    schedule = schedule.unroll(stages.stages[-1], stages.stages[-1].axes[0])
    text = emit_c(lower(schedule, REFERENCE)).text
    assert (
        "  const float t_1 = tf_exp_float(row[1]);\n"
        "  for (long j = 0; j < 4; j++) {\n"
        "    const float t_1_1 = __builtin_sqrtf(x[j + 4]);\n"
        "    out[j + 4] = t_1 * t_1_1;\n"
        "  }\n"
    ) in text


# Programs where data decides what is read, in rows that C compilers write out: gcc 12 mixes up such
# loads, once they are behind conditions.
MASKED = {
    "reversed": lambda x, mask: np.where(mask, x[:, ::-1], 0),
    "reversed mask": lambda x, mask: np.where(mask[:, ::-1], x, 1),
    "both": lambda x, mask: np.where(x[:, ::-1] > 10, x * 2, x[:, ::-1]),
    "every other": lambda x, mask: np.where(mask[:, ::2], x[:, ::2], x[:, 1::2]),
    "sum": lambda x, mask: x[:, ::-1].sum(axis=1, where=mask),
    "bools": lambda x, mask: np.where(mask, mask[:, ::-1], False),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("name", MASKED)
def test_masked_reads_of_short_rows_are_what_numpy_reads(name: str, dtype: str) -> None:
    random, function = np.random.default_rng(1), MASKED[name]
    compiled = tinyfuse.jit(function)
    for shape in ((16, 8), (16, 4), (64, 2), (200, 16), (34, 6), (9, 20)):
        x = random.integers(0, 21, shape).astype(dtype)
        mask = random.random(shape) < 0.5
        expected = function(x, mask)
        assert np.array_equal(compiled(x, mask), expected)
        assert np.array_equal(compiled.lower(x, mask).unfused().compile()(x, mask), expected)


def test_what_one_kernel_puts_somewhere_the_next_one_reads() -> None:
    """gcc 12 reads too early where it inlines both."""

    def put_and_turned(ids):
        ids *= ids[::-1]
        turned = np.flip(ids)
        across = np.moveaxis(turned, 0, -1)
        across[across, turned] -= across
        return ids + 1

    expected = put_and_turned(np.array([[1, 0], [1, 2]], np.uint8))
    given = np.array([[1, 0], [1, 2]], np.uint8)
    program = tinyfuse.jit(put_and_turned)
    assert len(program.lower(given).kernels) > 1
    assert np.array_equal(program(given), expected)


def test_what_is_combined_is_chosen_without_jumps() -> None:
    """gcc makes vectors of no reduction where a choice by data jumps."""

    def largest(mask, x):
        return np.where(mask, x, -np.inf).max()

    lowered = tinyfuse.jit(largest).lower(np.ones(100, bool), np.ones(100, np.float32))
    (line,) = [line for line in lowered.as_text("c").splitlines() if "tf_select_float(mask" in line]
    assert "?" not in line


@pytest.mark.parametrize(
    ("columns", "test"),
    [
        (33, "(l + 16) % 32 == 16"),
        (63, "(l + 16) % 32 != 15"),
        (65, "(l + 32) % 64 == 32"),
        (66, "l < 2"),
        (126, "l < 62"),
        (127, "(l + 32) % 64 != 31"),
    ],
)
def test_a_step_of_its_own_seems_to_be_in_the_middle(columns: int, test: str) -> None:
    build = GraphBuilder("sums")
    graph = build.graph(build.reduce("sum", build.input("x", 5, columns), 1))
    text = emit_c(lowered(build_stages(graph))).text
    assert f"out_lanes[l] = {test} ? out_lanes[l] + x[{columns} * i + l + " in text
