"""Each check of schedules is needed: without it, random schedules compute something else.

A control switches one check off and draws schedules of small programs until one shows: by another
result, a race between threads, text that the verifier refuses, or a failure of lowering. With all
checks on, the same draws show nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinyfuse
from tests.graphs import PlainNumerics
from tests.racing import interpret_racing
from tinyfuse.errors import ScheduleError
from tinyfuse.graph.simplify import simplify
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower import coverage
from tinyfuse.lower.lower import lower
from tinyfuse.lower.regions import Regions
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.schedule.legality import CHECKS
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.interpreter import interpret_stages
from tinyfuse.stage.ir import Stages
from tinyfuse.testing import difference, schedules
from tinyfuse.testing.choices import Choices, SeededChoices

Directive = Callable[[Choices, Schedule], Schedule]
SEEDS = range(100)
MOST_DIRECTIVES = 10


# --- programs -------------------------------------------------------------------------------------


def rows(x):
    e = x - x.max(axis=-1, keepdims=True)
    return e / e.sum(axis=-1, keepdims=True)


def lanes(x):
    return x * x.sum(axis=-1, keepdims=True)


def two_axes(x):
    return (x[:, :, None] * x[:, None, :]).sum(axis=(0, 1))


def running(x):
    return np.cumsum(x * 2, axis=1) + 1, np.cumsum(x, axis=0)


def sorted_rows(x):
    return np.sort(x * x, axis=-1) - x


def added_at(x, places):
    y = x * 2
    np.add.at(y, places, x[: len(places)])
    return y * y


def stencils(x):
    y = x[1:] + x[:-1]
    z = y[2:] * y[:-2]
    return z[1:] - z[:-1]


def blur(x):
    y = x[:, 2:] + x[:, :-2]
    return y[2:] * y[:-2], y[1:]


def apart(x, y):
    return x * 2 + y, y * 3, x - y


def mixed(x, y):
    t = x * 2
    return t + y, y * 3


def cut_out(x):
    y = x * x
    return y, y[2:5] + 1


def gathered(x, places):
    y = x * x
    return y[places] + 1, y.sum(axis=0)


def product(x, y):
    return np.maximum(x @ y + 1, 0)


def chain(x):
    a = x + 1
    b = a * a
    c = b - a
    return c * b


def several_sums(x, y):
    away = x[:, None] - y
    total = away.sum(axis=1)
    return (away * away).sum(axis=1), total, (away * total[:, None]).sum(axis=1)


ARGUMENTS: dict[Callable[..., Any], tuple[Any, ...]] = {
    rows: ((2, 66),),
    lanes: ((2, 66),),
    two_axes: ((3, 5),),
    running: ((4, 6),),
    sorted_rows: ((4, 6),),
    added_at: ((6, 5), np.array([1, 3, 1])),
    stencils: ((12, 3),),
    blur: ((9, 8),),
    apart: ((5, 6), (5, 6)),
    mixed: ((5, 6), (5, 6)),
    cut_out: ((7, 3),),
    gathered: ((6, 4), np.array([2, 0, 5])),
    product: ((4, 5), (5, 6)),
    chain: ((7, 5),),
    several_sums: ((5,), (6,)),
}


class Example(NamedTuple):
    stages: Stages
    arrays: list[np.ndarray]
    expected: list[np.ndarray]


@cache
def example(function: Callable[..., Any]) -> Example:
    random = np.random.default_rng(3)
    given = ARGUMENTS[function]
    arrays = [
        random.standard_normal(each).astype(np.float32) if isinstance(each, tuple) else each
        for each in given
    ]
    stages = build_stages(simplify(tinyfuse.jit(function).trace(*arrays).graph))
    found = interpret_stages(stages, arrays, PlainNumerics())
    return Example(stages, arrays, [np.asarray(array) for array in found])


# --- what a schedule does -------------------------------------------------------------------------


def drawn(seed: int, function: Callable[..., Any], control: Control) -> Schedule:
    """A few of the control's directives away from the schedule that it starts with."""
    choices, stages = SeededChoices(seed), example(function).stages
    schedule = control.start(choices.choose(STARTS)(stages))
    for _ in range(1 + choices.below(MOST_DIRECTIVES)):
        try:
            schedule = choices.choose(control.directives)(choices, schedule)
        except ScheduleError:
            continue
    return schedule


def planned(stages: Stages) -> Schedule:
    return default_schedule(stages, REFERENCE)[0]


def unfused(stages: Stages) -> Schedule:
    return default_schedule(stages, REFERENCE, fuse=False)[0]


STARTS: tuple[Callable[[Stages], Schedule], ...] = (Schedule, unfused, planned)


def fault(seed: int, function: Callable[..., Any], control: Control) -> str | None:
    """What goes wrong with a schedule; None if nothing does, or it is refused."""
    try:
        return wrong(drawn(seed, function, control), example(function))
    except ScheduleError:
        return None
    except Exception as error:  # whatever fails without a check
        return f"{type(error).__name__}: {error}"


def wrong(schedule: Schedule, case: Example) -> str | None:
    loops = lower(schedule, REFERENCE)
    verify_loops(loops)
    results = interpret_racing(loops, case.arrays, PlainNumerics())
    pairs = zip(case.expected, results, strict=True)
    return next(filter(None, [difference(e, r.reshape(e.shape)) for e, r in pairs]), None)


# --- controls -------------------------------------------------------------------------------------


def as_it_is(schedule: Schedule) -> Schedule:
    return schedule


class Control(NamedTuple):
    """Where a check is missed: programs, and directives that are drawn from, after a start."""

    programs: Sequence[Callable[..., Any]]
    directives: Sequence[Directive]
    start: Callable[[Schedule], Schedule] = as_it_is


def computed_with_what_is_inlined(schedule: Schedule) -> Schedule:
    t, out = schedule.stage("t"), schedule.stage("out_1")
    return schedule.store(t).store(out).compute_with(out, t, t.axes[0])


def shifted(choices: Choices, schedule: Schedule) -> Schedule:
    """A last step of any loop begins earlier."""
    stage = choices.choose(schedule.stages.stages)
    loop = choices.choose(schedule[stage].loops)
    return schedule.split(stage, loop, loop.step * (2 + choices.below(3)), tail="shift")


def without_a_loop(choices: Choices, schedule: Schedule) -> Schedule:
    """What no directive does."""
    stage = choices.choose(schedule.stages.stages)
    left_out = choices.choose(schedule[stage].loops)
    loops = tuple(loop for loop in schedule[stage].loops if loop is not left_out)
    plan = replace(schedule[stage], loops=loops)
    return Schedule(schedule.stages, {**schedule.places.plans, stage: plan}, "without_a_loop")


def prefetched(choices: Choices, schedule: Schedule) -> Schedule:
    """What another stage reads, wherever it is kept."""
    stage = choices.choose(schedule.stages.stages)
    source = choices.choose([load.source for load in stage.reads()])
    loops = schedule[stage].loops
    return schedule.prefetch(stage, source, loops[-1], (stage, loops[0]))


def joined(choices: Choices, schedule: Schedule) -> Schedule:
    """A reduction in the loop of another one."""
    reductions = [stage for stage in schedule.stages.stages if stage.reduce_axes]
    stage, leader = choices.choose(reductions), choices.choose(reductions)
    return schedule.compute_with(stage, leader, leader.reduce_axes[0])


def folded(choices: Choices, schedule: Schedule) -> Schedule:
    """Any stage, wherever it is kept."""
    stage = choices.choose([stage for stage in schedule.stages.stages if stage.axes])
    return schedule.fold(stage, choices.choose(stage.axes), 1 << choices.below(3))


def kept_rows(schedule: Schedule) -> Schedule:
    """Rows of y are computed as the rows of z are, and kept around them."""
    y, out = schedule.stage("y"), schedule.stage("z")
    schedule = Schedule(schedule.stages).store(y)
    return schedule.compute_at(y, out, out.axes[0], store_at=(out, None))


def laid_out(choices: Choices, schedule: Schedule) -> Schedule:
    """Any stage, its axes in any order or divided."""
    stage = choices.choose([stage for stage in schedule.stages.stages if stage.axes])
    first, *others = choices.shuffled(stage.axes)
    parts = choices.choose(([first, *others], [Loop(first, 2), *others, first], others))
    return schedule.layout(stage, *parts)


def past_the_end(choices: Choices, schedule: Schedule) -> Schedule:
    """A last step of any loop is as long as the others, which no directive does."""
    stage = choices.choose(schedule.stages.stages)
    loop = choices.choose(schedule[stage].loops)
    return schedule._edited(stage, loop, replace(loop, padded=True), "pad")


# Which schedules show that a check is needed, by its name in the table.
CONTROLS = {
    "axes": Control([two_axes, product], [without_a_loop]),
    "summation": Control([two_axes, product], [schedules._split, schedules._reorder]),
    "parallel": Control([running, product], [schedules._parallel, schedules._reorder]),
    "scans": Control([running], [schedules._parallel, schedules._reorder]),
    "sorts": Control([sorted_rows], [schedules._split, schedules._parallel, schedules._reorder]),
    "inlined": Control([rows, gathered, sorted_rows, running], [schedules._inline]),
    "hosts": Control([mixed], [schedules._inline], computed_with_what_is_inlined),
    "scatters": Control([added_at], [schedules._compute_at, schedules._compute_with]),
    "inner threads": Control([chain], [schedules._compute_at, schedules._parallel]),
    "rounds": Control([lanes], [schedules._compute_at, schedules._compute_further_in]),
    "storage": Control([chain, blur], [schedules._compute_at, schedules._store_at]),
    "shifts": Control([product, two_axes], [shifted]),
    "pads": Control([product, two_axes], [past_the_end, schedules._compute_at]),
    "fused loops": Control(
        [running, two_axes], [schedules._fuse, schedules._compute_at, schedules._split]
    ),
    "layouts": Control([gathered, sorted_rows, added_at, chain], [laid_out]),
    "prefetches": Control([chain], [prefetched, schedules._inline, schedules._compute_at]),
    "rings": Control([stencils, gathered], [folded]),
    "streams": Control(
        [running, rows], [schedules._stream_store, schedules._split, schedules._reorder]
    ),
    "joined reductions": Control([several_sums], [joined]),
    "order": Control([chain, blur], [schedules._compute_at, schedules._compute_further_in]),
}
# Those that keep promises which no result shows.
PROMISES = {
    "alignment": "axes that go along have one extent: lowering computes all of others, or refuses",
    "parts": "a loop outside of the loop that it is a part of has a single step",
    "vectors": "loops are marked as fit for vectors: the C is the same",
    "unrolled": "the text of a kernel has a bound",
}
# What lowering checks: a name to replace, and what with.
LOWERING: dict[str, tuple[Any, str, Callable[..., Any], Control]] = {
    "coverage": (
        coverage.Coverage,
        "_check",
        lambda *arguments: None,
        Control([cut_out, blur], [schedules._compute_at, schedules._compute_further_in]),
    ),
    "threads": (
        coverage,
        "_are_apart",
        lambda *arguments: True,
        Control(
            [blur, stencils, mixed],
            [schedules._compute_at, schedules._parallel, schedules._store_at],
        ),
    ),
    "lengths of rings": (
        Regions,
        "_check_ring",
        lambda *arguments: None,
        Control([stencils], [schedules._fold, schedules._split, schedules._unroll], kept_rows),
    ),
}


def draws(control: Control) -> Sequence[tuple[int, Callable[..., Any]]]:
    return [(seed, control.programs[seed % len(control.programs)]) for seed in SEEDS]


def first_fault(control: Control) -> str | None:
    return next(filter(None, (fault(*each, control) for each in draws(control))), None)


def test_every_check_has_a_control_or_says_what_it_promises() -> None:
    assert {*CONTROLS, *PROMISES} == CHECKS.keys()


@pytest.mark.parametrize("name", CONTROLS)
def test_without_a_check_of_legality_something_goes_wrong(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first_fault(CONTROLS[name]) is None
    monkeypatch.setitem(CHECKS, name, lambda places, directive: None)
    assert first_fault(CONTROLS[name])


@pytest.mark.parametrize("name", LOWERING)
def test_without_a_check_of_lowering_something_goes_wrong(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, attribute, replacement, control = LOWERING[name]
    assert first_fault(control) is None
    monkeypatch.setattr(owner, attribute, replacement)
    assert first_fault(control)


@pytest.mark.parametrize("name", ["parts", "vectors"])
def test_a_promise_is_no_question_of_right_and_wrong(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CHECKS, name, lambda places, directive: None)
    directives = [schedules._split, schedules._vectorize, schedules._reorder]
    assert first_fault(Control([two_axes, chain], directives)) is None
