"""Programs as standalone executables under gcc's sanitizers, on inputs recorded in a file."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from tinyfuse.emit.c import emit_c_many
from tinyfuse.graph.interpreter import interpret
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.runtime.numerics import CompiledNumerics
from tinyfuse.testing import Case, Failure, Report, difference, program_case, random_program
from tinyfuse.testing.compiled import SPLITTING_POOL
from tinyfuse.testing.variants import random

BATCH = 50
FLAGS = (
    *("-std=c11", "-g", "-O1", "-march=x86-64-v3", "-ffp-contract=off", "-fwrapv", "-fno-builtin"),
    *(
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ),
)
POOL_FILE, PROGRAM_FILE, MAIN_FILE = "pool.c", "programs.c", "main.c"

# Reads each program's inputs, runs it, and writes its outputs. Every array is a block of its own,
# of exactly its size, so that no access beside it goes unseen.
MAIN = """\
#include <stdio.h>
#include <stdlib.h>

typedef struct tf_pool tf_pool;
typedef int entry(void *const *arrays, void *scratch, const tf_pool *pool);
const tf_pool *splitting_pool(int pieces);

struct program {{ entry *entry; long inputs, outputs, scratch; const long *sizes; }};

{declarations}
static const struct program programs[] = {{
{rows}
}};

int main(void)
{{
    FILE *given = fopen("inputs.bin", "rb"), *found = fopen("outputs.bin", "wb");
    for (unsigned long p = 0; p < sizeof programs / sizeof *programs; p++) {{
        const struct program *program = &programs[p];
        long count = program->inputs + program->outputs;
        void **arrays = calloc(count, sizeof *arrays);
        for (long a = 0; a < count; a++) {{
            unsigned long size = program->sizes[a];
            arrays[a] = malloc(size);
            if (a < program->inputs && fread(arrays[a], 1, size, given) != size)
                return 2;
        }}
        void *scratch = aligned_alloc(64, (program->scratch + 63) / 64 * 64);
        if (program->entry(arrays, scratch, splitting_pool(1 + p % 3)))
            return 3;
        for (long a = 0; a < count; a++) {{
            if (a >= program->inputs)
                fwrite(arrays[a], 1, program->sizes[a], found);
            free(arrays[a]);
        }}
        free(scratch);
        free(arrays);
    }}
    return fclose(given) | fclose(found);
}}
"""


def run_sanitized(seeds: Iterable[int], folder: Path) -> Report:
    """Reports programs that a sanitizer stops or whose outputs are not those of the graph."""
    report, remaining = Report(), iter(seeds)
    while batch := list(islice(remaining, BATCH)):
        cases = [program_case(random_program(seed)) for seed in batch]
        with tempfile.TemporaryDirectory(dir=folder) as place:
            report.merge(check_sanitized(cases, Path(place), batch[0]))
        print(f"sanitized up to seed {batch[-1]}, {len(report.failures)} failures", flush=True)
    return report


def check_sanitized(cases: Sequence[Case], folder: Path, seed: int = 0) -> Report:
    """One executable for all cases, built and run in the folder."""
    report, schedule_of = Report(), random(seed)
    programs = [lower(schedule_of(case), REFERENCE) for case in cases]
    compile_programs(programs, folder)
    inputs = [np.ascontiguousarray(array) for case in cases for array in case.arrays]
    (folder / "inputs.bin").write_bytes(b"".join(array.tobytes() for array in inputs))
    outcome = subprocess.run([str(folder / "programs")], cwd=folder, capture_output=True, text=True)
    if outcome.returncode:
        everything = "\n".join(case.text for case in cases)
        report.failures.append(Failure("sanitized C", outcome.stderr, everything))
        return report
    _compare(cases, programs, (folder / "outputs.bin").read_bytes(), report)
    return report


def compile_programs(programs: Sequence[Loops], folder: Path) -> None:
    """Make `folder/programs`, which reads inputs.bin and writes outputs.bin."""
    (folder / PROGRAM_FILE).write_text(emit_c_many(programs).text)
    (folder / POOL_FILE).write_text(SPLITTING_POOL)
    (folder / MAIN_FILE).write_text(main_text(programs))
    compiler = shutil.which("gcc")
    assert compiler, "the sanitizers are gcc's"
    files = [PROGRAM_FILE, POOL_FILE, MAIN_FILE]
    subprocess.run([compiler, *FLAGS, *files, "-o", "programs"], cwd=folder, check=True)


def main_text(programs: Sequence[Loops]) -> str:
    declarations, rows = [], []
    for loops in programs:
        sizes = ", ".join(str(buffer.nbytes) for buffer in (*loops.inputs, *loops.outputs))
        declarations.append(f"extern entry {loops.name};")
        declarations.append(f"static const long {loops.name}_sizes[] = {{{sizes}}};")
        counts = f"{len(loops.inputs)}, {len(loops.outputs)}, {loops.scratch_bytes}"
        rows.append(f"    {{{loops.name}, {counts}, {loops.name}_sizes}},")
    return MAIN.format(declarations="\n".join(declarations), rows="\n".join(rows))


def _compare(
    cases: Sequence[Case], programs: Sequence[Loops], content: bytes, report: Report
) -> None:
    position, numerics = 0, CompiledNumerics()
    for case, loops in zip(cases, programs, strict=True):
        expected = interpret(case.graph, case.arrays, numerics)
        report.climbed["sanitized C"] += 1
        for want, buffer in zip(expected, loops.outputs, strict=True):
            have = np.frombuffer(content, buffer.dtype, buffer.size, position).reshape(want.shape)
            position += buffer.nbytes
            text = difference(want, have)
            if text:
                report.failures.append(Failure("sanitized C", text, case.text))
