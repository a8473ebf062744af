"""Golden texts: what every level of some programs reads like, on two machines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import PROGRAMS
from tinyfuse.emit.c import emit_c
from tinyfuse.emit.cuda import emit_cuda
from tinyfuse.graph.printer import graph_text
from tinyfuse.loops.printer import loops_text
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, REFERENCE_AVX2, SM_90, Machine
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.printer import stages_text
from tinyfuse.testing import Case
from tinyfuse.testing.devices import device_loops

MACHINES = {"reference": REFERENCE, "reference_avx2": REFERENCE_AVX2}
ROOT = Path(__file__).parent.parent


def levels(name: str, machine: Machine) -> dict[str, str]:
    """The text of each level of a program, by the file it goes to."""
    example = PROGRAMS[name]
    case = Case(example.function, example.arguments(), name)
    schedule, _ = default_schedule(case.stages, machine)
    loops = lower(schedule, machine)
    return {
        "graph": graph_text(case.trace.graph),
        "stages": stages_text(case.stages),
        "schedule": schedule_text(schedule),
        "loops": loops_text(loops),
        "c": emit_c(loops).text,
    }


def device_levels(name: str) -> dict[str, str]:
    """The texts of a program for a GPU."""
    example = PROGRAMS[name]
    loops = device_loops(Case(example.function, example.arguments(), name), True, SM_90)
    return {"sm_90.loops.txt": loops_text(loops), "sm_90.cu": emit_cuda(loops).text}


def everything() -> str:
    """All levels of all programs on all machines: the same bytes in every process."""
    texts = [text for name in PROGRAMS for text in device_levels(name).values()]
    texts += [
        text
        for name in PROGRAMS
        for machine in MACHINES.values()
        for text in levels(name, machine).values()
    ]
    return "\n".join(texts)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name: str, machine: str, golden: Callable[[str, str], None]):
    for level, text in levels(name, MACHINES[machine]).items():
        golden(f"{name}/{level_file(level, machine)}", text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden_on_a_device(name: str, golden: Callable[[str, str], None]):
    for file, text in device_levels(name).items():
        golden(f"{name}/{file}", text)


def level_file(level: str, machine: str) -> str:
    """Graph and stages do not depend on the machine."""
    if level in ("graph", "stages"):
        return f"{level}.txt"
    return f"{machine}.c" if level == "c" else f"{machine}.{level}.txt"


def test_no_golden_file_is_left_over():
    names = {path.name for path in (ROOT / "tests" / "golden").iterdir() if path.is_dir()}
    assert names - PROGRAMS.keys() == set()


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_texts_do_not_depend_on_the_process(hash_seed: str):
    code = "import sys; from tests.test_golden import everything; sys.stdout.write(everything())"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    outcome = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert outcome.stdout == everything()
