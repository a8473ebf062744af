"""Fusion of plain numpy programs: kernels, scratch memory and bytes moved, and the same bits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.fusion_programs import PROGRAMS, Fused
from tinyfuse.compilation import Lowered
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.testing import Case, Ladder, Variant, special_values
from tinyfuse.testing.variants import ScheduleOf, fused, unfused


def lowered(function: Callable[..., Any], *arrays: np.ndarray) -> Lowered:
    traced = tinyfuse.jit(function).trace(*arrays)
    return Lowered(traced, traced.options, REFERENCE)


def bytes_moved(program: Lowered) -> int:
    return sum(cost.bytes_read + cost.bytes_written for cost in program.cost.values())


def arguments(program: Fused, shapes: Any, special: float = 0.0) -> list[np.ndarray]:
    """special: the share of elements that are NaN, infinite, a zero, subnormal or extreme."""
    random = np.random.default_rng(len(program.name))
    arrays = []
    for place, shape in enumerate(shapes):
        if place in program.integers:
            arrays.append(random.integers(0, program.integers[place][1], shape))
            continue
        array = random.standard_normal(shape).astype(program.dtype)
        values = random.choice(special_values(array.dtype), shape)
        arrays.append(np.where(random.random(shape) < special, values, array))
    return arrays


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_kernels_scratch_and_traffic(program: Fused) -> None:
    together = lowered(program.function, *arguments(program, program.shapes))
    apart = together.unfused()
    factor = bytes_moved(apart) / max(1, bytes_moved(together))
    found = (len(together.kernels), together.scratch_bytes, round(factor, 2))
    assert found == (program.kernels, program.scratch, program.traffic)
    assert (program.kernels > 1) == bool(program.note)


def test_the_same_bits_fused_or_not_and_in_any_number_of_threads() -> None:
    """Every program with ordinary values and with special ones, in rows of awkward lengths."""
    variants = [Variant("unfused C", unfused), Variant("fused C", fused, pieces=(1, 2, 3))]
    cases = [
        Case(program.function, arguments(program, shapes, special), program.name, exact=False)
        for program in PROGRAMS
        for shapes in program.small
        for special in (0.0, 0.05)
    ]
    Ladder(variants, loops_of=lambda case: False).climb(cases).check()


SEPARATE = "their outer loops do not go along with each other"


@pytest.mark.parametrize(
    ("name", "stage", "reason"),
    [
        ("batch_norm", "sum_blocks", f"threads share its blocks; not with sum: {SEPARATE}"),
        (
            "cross_entropy_of_shares",
            "sum_1",
            f"it is a reduction; not with sum_2: {SEPARATE}",
        ),
        (
            "softmax_of_long_rows",
            "e",
            "out and sum_lanes read it; not with sum_blocks: threads would share only 2 steps",
        ),
        (
            "horizontal_diffusion",
            "laplacian",
            "out would compute it 5 times over; the rows of it that out needs at a time are too"
            " many",
        ),
    ],
)
def test_the_reason_why_a_stage_is_stored_is_about_what_reads_it(
    name: str, stage: str, reason: str
) -> None:
    """Not about others that it could have been computed with."""
    program = next(program for program in PROGRAMS if program.name == name)
    decisions = lowered(program.function, *arguments(program, program.shapes)).decisions
    found = {decision.producer: decision for decision in decisions}
    assert (found[stage].action, found[stage].reason) == ("store", reason)


def upside_down(x):
    e = np.exp(x)
    return e - e[::-1]


def test_a_stage_that_is_read_from_both_ends_is_stored() -> None:
    decisions = lowered(upside_down, np.ones((512, 512), np.float32)).decisions
    found = {decision.producer: decision for decision in decisions}
    assert found["e"].action == "store"
    assert found["e"].reason.endswith("; out reads it far from its own rows")


def test_a_small_stencil_is_said_to_stay_in_the_cache() -> None:
    (program,) = [program for program in PROGRAMS if program.name == "harris"]
    decisions = lowered(program.function, np.ones((200, 200), np.float32)).decisions
    reasons = {d.producer: d.reason for d in decisions if d.action == "store"}
    assert reasons["multiply_2"].endswith("; all of it stays in the cache as it is")


def for_small_caches(case: Case) -> Schedule:
    """Where a few rows of a small array are what many rows of a large one are elsewhere."""
    return default_schedule(case.stages, replace(REFERENCE, l2=1 << 14))[0]


def for_larger_caches(case: Case) -> Schedule:
    return default_schedule(case.stages, replace(REFERENCE, l2=1 << 17))[0]


def for_one_core(case: Case) -> Schedule:
    return default_schedule(case.stages, replace(REFERENCE, l2=1 << 17, cores=1))[0]


Arrays = tuple[tuple[int, ...], ...]
RINGS: dict[str, Arrays] = {
    "blur": ((150, 131),),
    "jacobi": ((150, 131),),
    "harris": ((150, 131),),
    "horizontal_diffusion": ((70, 67, 5), (66, 63, 5)),
}
STRIPS: dict[str, Arrays] = {"jacobi": ((300, 131),)}
TALL: dict[str, Arrays] = {"jacobi": ((1200, 131),)}  # all rows of a stage fit no stack


@pytest.mark.parametrize(
    ("schedule_of", "shapes", "text"),
    [
        (for_small_caches, RINGS, r"fold\(i, [48]\)"),
        (for_larger_caches, STRIPS, r"at\(out, i by 64\)"),
        (for_one_core, TALL, r"at\(out, i by 128\)"),
    ],
    ids=["rings", "strips", "strips of one core"],
)
def test_stencils_of_many_rows_have_the_same_bits(
    schedule_of: ScheduleOf, shapes: dict[str, Arrays], text: str
) -> None:
    programs = [program for program in PROGRAMS if program.name in shapes]
    cases = [
        Case(program.function, arrays, program.name, exact=False)
        for program in programs
        for special in (0.0, 0.02)
        for arrays in [arguments(program, shapes[program.name], special)]
    ]
    for case in cases:
        schedule = schedule_text(schedule_of(case))
        assert re.search(text, schedule)
        assert ("parallel" in schedule) == (schedule_of is not for_one_core)
    variants = [
        Variant("unfused C", unfused),
        Variant("fused C", schedule_of, pieces=(1, 2, 3)),
    ]
    Ladder(variants, loops_of=lambda case: False).climb(cases).check()


def ten_steps(u):
    for _ in range(10):
        u = np.pad(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]), 1)
    return u


@pytest.mark.parametrize(("cores", "kernels"), [(1, 1), (2, 1), (64, 3)])
def test_strips_of_a_stencil_are_enough_for_all_cores(cores: int, kernels: int) -> None:
    traced = tinyfuse.jit(ten_steps).trace(np.ones((1024, 1024), np.float32))
    machine = replace(REFERENCE, cores=cores)
    assert len(Lowered(traced, traced.options, machine).kernels) == kernels
