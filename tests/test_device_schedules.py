"""Schedules for a device: who shares the outermost loop of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.device_programs import PROGRAMS, array
from tests.test_device import flat
from tinyfuse.compilation import Lowered
from tinyfuse.errors import ScheduleError
from tinyfuse.machine import SM_90
from tinyfuse.runtime.emulated_program import run_program
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.testing.choices import SeededChoices

X = array(40, 96)


def scaled(x: Any) -> Any:
    return np.exp(x) * 2


def shares(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def lowered(function: Any, *arrays: np.ndarray) -> Lowered:
    traced = tinyfuse.jit(function, target="cuda").trace(*arrays)
    return Lowered(traced, traced.options, SM_90)


def bound(schedule: Schedule, to: Any) -> Schedule:
    """With the outermost loop of every kernel bound."""
    for stage in schedule.places.kernels:
        loops = schedule[stage].loops
        if loops and loops[0].axis not in stage.reduce_axes:
            schedule = schedule.bind(stage, loops[0], to)
    return schedule


@pytest.mark.parametrize(("to", "launch"), [("blocks", (40, 96)), ("grid", (15, 256))])
def test_the_outermost_loop_is_bound(to: Any, launch: tuple[int, int]):
    program = lowered(scaled, X)
    schedule = Schedule(program.stages)
    out = program.stages.outputs[0]
    made = program.with_schedule(
        schedule.inline(schedule.stage("exp_1")).bind(out, out.axes[0], to)
    )
    assert [(kernel.blocks, kernel.threads) for kernel in made.kernels] == [launch]


def test_rows_that_threads_take_alone():
    program = lowered(shares, X)
    made = program.with_schedule(bound(program.schedule, "grid"))
    found = [(each.blocks, each.threads) for each in (*program.kernels, *made.kernels)]
    assert found == [(40, 96), (1, 64)]


def test_text_file_and_loop_nest(tmp_path: Any, capsys: pytest.CaptureFixture[str]):
    program = lowered(shares, X)
    made = bound(program.schedule, "blocks")
    assert "i < 40 blocks" in str(made)
    made.save(tmp_path / "schedule")
    assert Schedule.load(tmp_path / "schedule", program.stages) == made
    made.print_loop_nest()
    assert "for i < 40 blocks" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["threads", "warps", "tf32"])
def test_kinds_that_no_schedule_says(kind: str, tmp_path: Any):
    program = lowered(scaled, X)
    text = str(bound(program.schedule, "grid"))
    (tmp_path / "schedule").write_text(text.replace(" grid", f" {kind}"))
    with pytest.raises(ScheduleError, match="or a loop as"):
        Schedule.load(tmp_path / "schedule", program.stages)


def test_what_cannot_be_bound():
    schedule = Schedule(lowered(shares, X).stages)
    out = schedule.stage("out")
    with pytest.raises(ScheduleError, match=r"bind\(out, j\): only the outermost loop over"):
        schedule.bind(out, out.axes[1], "blocks")
    with pytest.raises(ScheduleError, match="a loop is bound to blocks or the grid"):
        schedule.bind(out, out.axes[0], "threads")  # type: ignore[arg-type]


def test_on_a_cpu_threads_share_it():
    program = tinyfuse.jit(shares).lower(X)
    schedule = program.schedule.serial(*_outermost(program.schedule))
    for to in ("blocks", "grid"):
        made = program.with_schedule(schedule.bind(*_outermost(schedule), to))
        parallel = program.with_schedule(schedule.parallel(*_outermost(schedule)))
        assert made.as_text("c") == parallel.as_text("c")


def _outermost(schedule: Schedule) -> tuple[Any, Any]:
    out = schedule.stages.outputs[0]
    return out, schedule[out].loops[0]


@pytest.mark.parametrize(
    "name", ["elementwise", "softmax", "layernorm", "tiles", "columns", "fields"]
)
@pytest.mark.parametrize("seed", range(3))
def test_any_binding_gives_the_bits_of_c(name: str, seed: int):
    program = PROGRAMS[name]
    expected = tinyfuse.jit(program.function)(*program.arguments)
    given = lowered(program.function, *program.arguments)
    choices, schedule = SeededChoices(seed), given.schedule
    for stage in schedule.places.kernels:
        to = choices.choose(("blocks", "grid", None))
        loops = schedule[stage].loops
        if to and loops and loops[0].axis not in stage.reduce_axes:
            schedule = schedule.bind(stage, loops[0], to)
    report = run_program(given.with_schedule(schedule).cuda[0], flat(program.arguments))
    assert report.error is None
    np.testing.assert_array_equal(report.outputs[0], np.asarray(expected).reshape(-1))
