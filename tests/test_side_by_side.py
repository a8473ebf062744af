"""Sums of functions of pairs: computed side by side in vectors, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.compilation import Lowered
from tinyfuse.errors import ScheduleError
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.schedule.places import Place, Site
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.ir import Stage
from tinyfuse.testing import Case, Ladder, Variant, special_values
from tinyfuse.testing.variants import fused, unfused

RANDOM = np.random.default_rng(5)


def floats(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def density(x, centres, weights):
    return np.sum(np.exp(-((x[:, None] - centres) ** 2)) * weights, axis=1)


def forces(positions, masses):
    x, y = positions[:, 0], positions[:, 1]
    dx, dy = x - x[:, None], y - y[:, None]
    pull = (dx * dx + dy * dy + 0.01) ** -1.5 * masses
    return np.stack([np.sum(dx * pull, axis=1), np.sum(dy * pull, axis=1)], axis=1)


def two_sums(x, centres):
    away = x[:, None] - centres
    near = np.exp(-away * away)
    return near.sum(axis=1), (near * away).sum(axis=1)


def average(x, centres, values):
    near = np.exp(-((x[:, None] - centres) ** 2))
    return (near * values).sum(axis=1) / near.sum(axis=1)


def batches(x, centres):
    away = np.sqrt(np.abs(x[:, :, None] - centres[:, None, :]))
    return away.sum(axis=2) / 2, away.max(axis=2)


def lower_triangle(x, centres):
    return np.tril(np.exp(-((x[:, None] - centres) ** 2))).sum(axis=1)


SIDE_BY_SIDE = {
    density: (floats(300), floats(90), floats(90)),
    forces: (floats(256, 2, dtype="float64"), floats(256, dtype="float64")),
    two_sums: (floats(300), floats(70)),
    average: (floats(300), floats(90), floats(90)),
    lower_triangle: (floats(300), floats(300)),
}


def on_reference(function: Callable[..., Any], *arrays: np.ndarray) -> Lowered:
    traced = tinyfuse.jit(function).trace(*arrays)
    return Lowered(traced, traced.options, REFERENCE)


def reasons(program: Lowered) -> list[str]:
    return [decision.reason for decision in program.decisions]


@pytest.mark.parametrize("function", SIDE_BY_SIDE)
def test_sums_of_pairs_run_side_by_side_in_one_kernel(function: Callable[..., Any]) -> None:
    program = on_reference(function, *SIDE_BY_SIDE[function])
    sums = sum(bool(stage.reduce_axes) for stage in program.stages.stages)
    assert len(program.kernels) == 1
    assert program.scratch_bytes == 0
    assert sum("of its sums run side by side" in reason for reason in reasons(program)) == sums


def test_one_loop_over_the_others_serves_all_sums_and_what_they_share() -> None:
    program = on_reference(forces, *SIDE_BY_SIDE[forces])
    lines = [line.strip() for line in program.as_text("loops").splitlines()]
    assert [line for line in lines if line.startswith(("for", "alloc"))] == [
        "for i_outer < 4 parallel",
        "alloc sum: float64[64] on the stack",
        "alloc sum_1: float64[64] on the stack",
        "for i < 64 vector",
        "for i < 64 vector",
        "for k < 256",
        "alloc power_minus_3_halves: float64[64] on the stack",
        "for i < 64 vector",
        "for i < 64 vector",
        "for i < 64 vector",
        "for i < 64",
    ]


def joined(x, centres):
    return np.exp(-np.abs(np.concatenate([x, centres])[:, None] - centres)).sum(axis=1)


def depending(x, centres):
    near = np.exp(-((x[:, None] - centres) ** 2))
    total = near.sum(axis=1)
    return (near / total[:, None]).max(axis=1) + (near - total[:, None]).sum(axis=1)


def gathered(x, centres, places):
    return np.sum(np.exp(-np.abs(x[places][:, None] - centres[places])), axis=1)


def whole_numbers(n, m):
    return np.sum((n[:, None] - m) ** 2, axis=1)


def along_rows(x, centres):
    return np.sum(np.tanh(x[:, None] + centres), axis=1)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (joined, (floats(200), floats(200))),
        (depending, (floats(200), floats(70))),
        (gathered, (floats(200), floats(200), np.arange(150))),
        (whole_numbers, (np.arange(200), np.arange(90))),
        (along_rows, (floats(200), floats(200, 90))),
        (density, (floats(7), floats(90), floats(90))),  # fewer than a vector
        (density, (floats(300), floats(7), floats(7))),  # short chains
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_other_sums_do_not(function: Callable[..., Any], arrays: Any) -> None:
    assert "side by side" not in "".join(reasons(on_reference(function, *arrays)))


def test_threads_share_bundles_of_which_there_are_enough() -> None:
    wide, narrow = (
        on_reference(density, floats(count), floats(90), floats(90)) for count in (1000, 200)
    )
    assert "i by 64 < 1000 parallel" in wide.as_text("schedule")
    assert "i by 32 < 200 " in narrow.as_text("schedule")


def test_the_same_bits_fused_or_not_in_any_number_of_threads() -> None:
    special = special_values(np.dtype("float32"))
    awkward = np.resize(special, 131)
    variants = [Variant("unfused C", unfused), Variant("fused C", fused, pieces=(1, 2, 3))]
    cases = [Case(function, arrays, "ordinary") for function, arrays in SIDE_BY_SIDE.items()]
    cases += [
        Case(density, (awkward, floats(33), floats(33)), "special"),
        Case(density, (floats(131), awkward, awkward[::-1]), "special others"),
        Case(two_sums, (awkward[::-1], awkward), "special pairs"),
        Case(average, (awkward[:64], awkward[3:], awkward[3:]), "whole bundles"),
        Case(batches, (floats(3, 70), floats(3, 40)), "batches"),
        Case(density, (floats(0), floats(90), floats(90)), "no sums"),
        Case(density, (floats(90), floats(0), floats(0)), "nothing to sum"),
    ]
    Ladder(variants).climb(cases).check()


# --- reductions in loops of others ----------------------------------------------------------------


def extremes(x, y):
    away = x[:, None] - y
    return away.sum(axis=1), (away * away).sum(axis=1)


def with_all_else_inlined(program: Lowered) -> Schedule:
    """Only what reduces, and results, have loops of their own."""
    schedule = Schedule(program.stages)
    for stage in program.stages.stages:
        if not stage.reduce_axes and stage not in program.stages.outputs:
            schedule = schedule.inline(stage)
    return schedule


def test_a_reduction_takes_its_elements_in_the_loop_of_another() -> None:
    program = on_reference(extremes, floats(6), floats(5))
    schedule, (first, second) = with_all_else_inlined(program), program.stages.outputs
    (row,), (k,) = first.axes, first.reduce_axes
    inner = schedule.compute_with(second, first, k)
    assert str(inner).splitlines()[-1] == (
        f"  {second.name}: compute_with({first.name}, k, i along i, k along k);"
        " i < 6, k < 5 reduced"
    )
    outer = schedule.reorder(first, k, row).compute_with(second, first, row)
    for joined in (inner, outer):
        again = program.with_schedule(joined)
        assert len(again.kernels) == 1
        assert again.as_text("loops").count("for k < 5") == 1


def test_a_schedule_with_joined_reductions_is_saved(tmp_path: Path) -> None:
    program = on_reference(extremes, floats(6), floats(5))
    schedule, (first, second) = with_all_else_inlined(program), program.stages.outputs
    joined = schedule.compute_with(second, first, first.reduce_axes[0])
    joined.save(tmp_path / "schedule")
    assert Schedule.load(tmp_path / "schedule", program.stages) == joined


def read_later(x, y):
    away = x[:, None] - y
    total, square = away.sum(axis=1), (away * away).sum(axis=1)
    return total, square, (away * square[:, None]).sum(axis=1), np.maximum(x, (y * y).sum())


def early(schedule: Schedule) -> Schedule:
    """A sum that another one in the same loop reads."""
    total, square, weighted, _ = reductions(schedule)
    (k,) = total.reduce_axes
    return schedule.compute_with(weighted, total, k).compute_with(square, total, k)


def forgetting(schedule: Schedule) -> Schedule:
    """A sum that is kept for one step of its loop."""
    total, _, _, once = reductions(schedule)
    (k,), (i,) = total.reduce_axes, total.axes
    return schedule.reorder(total, k, i).compute_with(once, total, k)


def repeated(schedule: Schedule) -> Schedule:
    """A sum that is the same for all steps of a loop inside."""
    total, _, _, once = reductions(schedule)
    (k,), (i,) = total.reduce_axes, total.axes
    schedule = schedule.reorder(total, k, i)
    site = Site(total, schedule.find(total, i), ((once.reduce_axes[0], k),))
    plan = replace(schedule[once], compute_at=site, store_at=Place.ROOT)
    return Schedule(schedule.stages, {**schedule.places.plans, once: plan}, "repeated")


def reductions(schedule: Schedule) -> list[Stage]:
    return [stage for stage in schedule.stages.stages if stage.reduce_axes]


@pytest.mark.parametrize(
    ("directives", "message"),
    [
        (repeated, "{3} is reduced in the loops of {0}, which would take each of its elements"),
        (early, "{1} is reduced in the loops of {0}, where it is read before its end"),
        (forgetting, "{3} is reduced in the loops of {0}, and would be kept for a step of these"),
    ],
)
def test_what_is_reduced_in_the_loop_of_another_is_taken_once_and_read_after_it(
    directives: Callable[[Schedule], Schedule], message: str
) -> None:
    schedule = with_all_else_inlined(on_reference(read_later, floats(6), floats(5)))
    names = [stage.name for stage in reductions(schedule)]
    with pytest.raises(ScheduleError, match=message.format(*names)):
        directives(schedule)
