"""Random programs on the emulated device: many in one text, all that threads do checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.emit.cuda import emit_cuda_many
from tinyfuse.emit.launch import CudaProgram
from tinyfuse.errors import EmulationError
from tinyfuse.loops.ir import Loops
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.device import on_device
from tinyfuse.lower.program import lower_program
from tinyfuse.machine import SM_90, Device, Machine
from tinyfuse.records import replace
from tinyfuse.runtime.emulated_program import run_program
from tinyfuse.runtime.emulator import Order
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.testing.case import Case

# Few threads, so that small programs have several blocks and threads several steps.
SMALL_DEVICE = replace(SM_90, name="small device", device=Device("sm_90", threads=32, blocks=3))
TOGETHER = 25  # programs in one text


def device_loops(case: Case, fuse: bool, machine: Machine = SMALL_DEVICE) -> Loops:
    """The loops of a case in blocks and threads, verified."""
    assert machine.device is not None
    parts = case.program.segments
    schedules = {part: default_schedule(part.stages, machine, fuse)[0] for part in parts}
    loops = on_device(lower_program(case.program, schedules, machine), machine.device)
    verify_loops(loops)
    return loops


def emitted(programs: Sequence[Loops]) -> list[CudaProgram]:
    """The CUDA of programs, so many in one text."""
    groups = [programs[at : at + TOGETHER] for at in range(0, len(programs), TOGETHER)]
    return [program for group in groups for program in emit_cuda_many(group)]


def run_emulated(
    program: CudaProgram, arrays: Sequence[np.ndarray], order: Order = "random"
) -> list[np.ndarray]:
    """The outputs, flat. Raises EmulationError where a thread does what it must not."""
    given = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    report = run_program(program, given, order=order)
    if report.error:
        raise EmulationError(report.error)
    return list(report.outputs)
