"""Schedules: directives keep the bits, and what would change the meaning is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graphs import GraphBuilder
from tests.test_lower import assert_same_bits, column_sum, long_sum, product, softmax, stages_of
from tinyfuse.errors import ScheduleError
from tinyfuse.graph.ir import Graph, Literal
from tinyfuse.loops.ir import For, LoopKind, walk_statements
from tinyfuse.loops.printer import loops_text
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.schedule.weighing import weighed
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.ir import Stage, Stages


def named(stages: Stages, name: str) -> Stage:
    return next(stage for stage in stages.stages if stage.name == name)


def test_a_schedule_is_a_value() -> None:
    stages = stages_of(product)
    first, second = (Schedule(stages).inline(named(stages, "add")) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != Schedule(stages)
    assert Schedule(stages).inline(named(stages, "add")).store(named(stages, "add")) == Schedule(
        stages
    )


def test_a_schedule_prints_where_each_stage_is_computed() -> None:
    stages = stages_of(product)
    matmul, add, out = stages.stages
    schedule = Schedule(stages).inline(add).split(out, out.axes[0], 2)
    schedule = schedule.compute_at(matmul, out, Loop(out.axes[0], 2)).vectorize(out, out.axes[1])
    assert schedule_text(schedule) == (
        "schedule product\n"
        "  matmul: compute_at(out, i by 2); i < 5, j < 4, k < 9 reduced\n"
        "  add: inline\n"
        "  out: root; i by 2 < 5, i < 5, j < 4 vector\n"
    )
    assert_same_bits(lower(schedule, REFERENCE), stages)


@pytest.mark.parametrize("factor", [1, 2, 3, 4, 5, 7])
def test_split_and_reorder_keep_the_bits(factor: int) -> None:
    stages = stages_of(product)
    matmul = stages.stages[0]
    (i, j), (k,) = matmul.axes, matmul.reduce_axes
    schedule = Schedule(stages)
    for axis in (i, j, k):
        if factor > 1:
            schedule = schedule.split(matmul, axis, factor)
    outer = [Loop(axis, factor) for axis in (k, j, i)] if factor > 1 else []
    inner = [j, k, i] if factor > 1 else [k, j, i]
    assert_same_bits(lower(schedule.reorder(matmul, *outer, *inner), REFERENCE), stages)


def test_parallel_and_unrolled_loops_keep_the_bits() -> None:
    stages = stages_of(softmax)
    schedule = Schedule(stages)
    for stage in stages.stages:
        schedule = schedule.split(stage, stage.axes[0], 4).parallel(stage, Loop(stage.axes[0], 4))
        schedule = schedule.unroll(stage, stage.axes[0])
    loops = lower(schedule, REFERENCE)
    kinds = [
        next(s.kind for s in walk_statements(kernel.body) if isinstance(s, For))
        for kernel in loops.kernels
    ]
    assert kinds == [LoopKind.PARALLEL] * 6
    assert_same_bits(loops, stages)


def test_an_unrolled_loop_of_larger_steps_is_written_out() -> None:
    build = GraphBuilder("rows")
    x = build.input("x", 5, 3)
    stages = build_stages(
        build.graph(build.op("add", x, build.broadcast(build.input("y", 3), 5, 3)))
    )
    (out,) = stages.stages
    schedule = Schedule(stages).split(out, out.axes[0], 2)
    schedule = schedule.unroll(out, Loop(out.axes[0], 2))
    text = loops_text(lower(schedule, REFERENCE))
    assert text.splitlines()[2:] == [
        "    for i < 2",
        "      for j < 3",
        "        out[3 * i + j] = x[3 * i + j] + y[j]",
        "    for 2 <= i < 4",
        "      for j < 3",
        "        out[3 * i + j] = x[3 * i + j] + y[j]",
        "    for j < 3",
        "      out[j + 12] = x[j + 12] + y[j]",
    ]


def test_a_producer_computed_in_a_row_of_its_consumer() -> None:
    build = GraphBuilder("blur")
    x = build.input("x", 12, 10)
    rows = [build.slice(x, (slice(None), slice(at, at + 8))) for at in range(3)]
    across = build.op("add", build.op("add", rows[0], rows[1]), rows[2], name="across")
    lines = [build.slice(across, (slice(at, at + 10), slice(None))) for at in range(3)]
    down = build.op("add", build.op("add", lines[0], lines[1]), lines[2], name="down")
    stages = build_stages(build.graph(down))
    schedule = Schedule(stages)
    for stage in stages.stages[:-1]:
        if stage.name.startswith("add"):
            schedule = schedule.inline(stage)
    down_stage, across_stage = named(stages, "down"), named(stages, "across")
    schedule = schedule.compute_at(across_stage, down_stage, down_stage.axes[0])
    loops = lower(schedule, REFERENCE)
    assert [kernel.stages for kernel in loops.kernels] == [("add", "across", "add_1", "down")]
    assert loops.scratch_bytes == 0
    assert_same_bits(loops, stages)


def refused(
    directive: Callable[[Schedule, Stages], Schedule], program: Callable, message: str
) -> None:
    stages = stages_of(program)
    with pytest.raises(ScheduleError) as caught:
        directive(Schedule(stages), stages)
    assert str(caught.value).split("\n")[0] == message


@pytest.mark.parametrize(
    ("directive", "program", "message"),
    [
        (
            lambda s, p: s.inline(named(p, "sum")),
            softmax,
            "inline(sum): it is a reduction, which needs a loop of its own",
        ),
        (
            lambda s, p: s.inline(named(p, "out")),
            softmax,
            "inline(out): it is an output, which has to be stored",
        ),
        (
            lambda s, p: s.compute_at(named(p, "e"), named(p, "out"), None),
            softmax,
            "compute_at(e): e is stored at out, but sum_lanes reads it elsewhere",
        ),
        (
            lambda s, p: s.parallel(p.stages[0], p.stages[0].reduce_axes[0]),
            product,
            (
                "parallel(matmul, k): only the outermost loop over independent elements can be"
                " shared by threads"
            ),
        ),
        (
            lambda s, p: s.vectorize(p.stages[0], p.stages[0].reduce_axes[0]),
            product,
            (
                "vectorize(matmul, k): only the innermost loop over independent elements can be"
                " vectorized"
            ),
        ),
        (
            lambda s, p: s.split(p.stages[0], p.stages[0].axes[0], 0),
            product,
            "split(matmul, i, 0): the factor must be a positive multiple of 1",
        ),
        (
            lambda s, p: s.split(p.stages[0], p.stages[1].axes[0], 2),
            product,
            "matmul has no loop i; its loops are: i by 1, j by 1, k by 1",
        ),
        (
            lambda s, p: s.split(named(p, "out"), named(p, "out").reduce_axes[0], 2),
            column_sum,
            "split(out): the rounds of a tree cannot be split",
        ),
        (
            lambda s, p: (
                s.unroll(named(p, "square"), named(p, "square").axes[0])
                .split(p.stages[1], p.stages[1].axes[0], 2)
                .unroll(named(p, "out"), named(p, "out").reduce_axes[0])
                .compute_at(named(p, "out_blocks"), named(p, "out"), named(p, "out").reduce_axes[0])
            ),
            long_sum,
            (
                "compute_at(out_blocks): out_blocks is computed at out inside its rounds, which"
                " combine it in place"
            ),
        ),
    ],
)
def test_illegal_directives(directive: Callable, program: Callable, message: str) -> None:
    refused(directive, program, message)


def test_a_tree_is_not_repeated_over_what_it_combined_in_place() -> None:
    stages = stages_of(softmax)
    lanes, total, out = (named(stages, name) for name in ("sum_lanes", "sum", "out"))
    message = (
        r"compute_at\(sum\): sum is computed at out, step after step, but it combines in place what"
        " is stored only once; compute that at sum first"
    )
    with pytest.raises(ScheduleError, match=message):
        Schedule(stages).compute_at(total, out, out.axes[0])
    schedule = Schedule(stages).compute_at(lanes, total, total.axes[0])
    inside = schedule.compute_at(total, out, out.axes[0])
    assert_same_bits(lower(inside, REFERENCE), stages)
    with pytest.raises(
        ScheduleError,
        match=message.replace("compute_at", "store", 1).replace(
            "store\\(sum\\)", "store\\(sum_lanes\\)"
        ),
    ):
        inside.store(lanes)


def test_the_order_of_two_reduced_axes_is_kept() -> None:
    build = GraphBuilder("windowed")
    views = build.windows(build.input("x", 9, 8), (3, 3), (0, 1))
    stages = build_stages(build.graph(build.reduce("sum", views, 2, 3)))
    (total,) = stages.stages
    first, second = total.reduce_axes
    with pytest.raises(ScheduleError, match=r"reorder\(out\): the order of summation would change"):
        Schedule(stages).reorder(total, second, first)


def test_inlining_a_stage_that_holds_another_is_refused() -> None:
    build = GraphBuilder("chain")
    x = build.input("x", 8)
    a = build.op("add", x, x, name="a")
    b = build.op("multiply", a, a, name="b")
    stages = build_stages(build.graph(build.op("add", b, b)))
    first, second = named(stages, "a"), named(stages, "b")
    schedule = Schedule(stages).compute_at(first, second, second.axes[0])
    message = r"inline\(b\): a is computed at b, which has no loops any more"
    with pytest.raises(ScheduleError, match=message):
        schedule.inline(second)


def test_each_axis_has_its_loops_once() -> None:
    stages = stages_of(product)
    out = named(stages, "out")
    (i, j), schedule = out.axes, Schedule(stages)
    with pytest.raises(ScheduleError, match=r"reorder\(out, j, i, j\): a loop is named twice"):
        schedule.reorder(out, j, i, j)
    cases = [
        ((Loop(i),), "0 loops over j in steps of 1, not one"),
        ((Loop(i, 2), Loop(j)), "0 loops over i in steps of 1, not one"),
        ((Loop(i), Loop(i), Loop(j)), "2 loops over i in steps of 1, not one"),
        (
            (Loop(i), Loop(j), Loop(stages.stages[0].axes[0])),
            "1 loops over i in steps of 1, not none: it is no axis of it",
        ),
    ]
    for loops, message in cases:
        plans = {stage: schedule[stage] for stage in stages.stages}
        plans[out] = replace(plans[out], loops=loops)
        with pytest.raises(ScheduleError, match=f"Schedule: out would have {message}"):
            Schedule(stages, plans)


def test_each_stage_has_a_plan() -> None:
    with pytest.raises(ScheduleError, match="Schedule: there is no plan for matmul, add, out"):
        Schedule(stages_of(product), {})


def test_axes_are_objects() -> None:
    stages = stages_of(product)
    with pytest.raises(ScheduleError, match=r"'i' is no loop: write out.axis\('i'\)"):
        Schedule(stages).parallel(named(stages, "out"), "i")  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="3 is no loop: write an axis or a Loop"):
        Schedule(stages).parallel(named(stages, "out"), 3)  # type: ignore[arg-type]


def test_decisions_say_what_happened_and_why() -> None:
    _, decisions = default_schedule(stages_of(product), REFERENCE)
    assert [str(decision) for decision in decisions] == [
        "matmul -> add: compute_at, one kernel computes it and out, step by step of i",
        "add -> out: inline, out takes each element as it is computed",
        "out -> the caller: store, it is an output",
    ]


def test_rows_are_summed_four_to_a_trip_and_in_tiles() -> None:
    build = GraphBuilder("columns")
    stages = build_stages(build.graph(build.reduce("sum", build.input("x", 90, 5000), 0)))
    schedule, _ = default_schedule(stages, REFERENCE)
    assert schedule_text(schedule).splitlines()[1:] == [
        "  out: root; i by 2512 < 5000 parallel, k by 4 < 90 reduced, i < 5000 vector, "
        "k < 90 reduced unroll"
    ]
    assert_same_bits(lower(schedule, REFERENCE), stages)


def test_what_ranks_stand_for_is_computed_with_them() -> None:
    build = GraphBuilder("extremes")
    x = build.input("x", 6, 70)
    stages = build_stages(build.graph(build.reduce("max", x, 1), build.reduce("argmin", x, 1)))
    _, decisions = default_schedule(stages, REFERENCE)
    assert [str(decision) for decision in decisions] == [
        "out_rank -> out: compute_at, out takes each value as it is computed",
        "out -> the caller: compute_with, one kernel computes it and out_1, step by step of i",
        "out_1_min_rank -> out_1_min: compute_at, out_1 takes each value as it is computed",
        "out_1_min -> out_1: inline, out_1 takes each element as it is computed",
        "out_1 -> the caller: store, it is an output",
    ]
    _, decisions = default_schedule(stages, REFERENCE, fuse=False)
    assert [str(decision) for decision in decisions][2:4] == [
        "out_1_min_rank -> out_1_min: compute_at, out_1_min takes each value as it is computed",
        "out_1_min -> out_1: store, fusion is off",
    ]


def test_decisions_are_weighed_by_the_cost_model() -> None:
    build = GraphBuilder("chain")
    x = build.input("x", 100, 1000)
    h = build.op("exp", x, name="h")
    stages = build_stages(build.graph(build.op("add", h, x)))
    schedule, decisions = default_schedule(stages, REFERENCE)
    kernels = lower(schedule, REFERENCE).kernels
    inlined, stored = weighed(schedule, decisions, kernels, REFERENCE)
    assert (inlined.flops, inlined.bytes_saved, inlined.recompute) == (100_000, 800_000, 1)
    assert (stored.flops, stored.bytes_saved) == (100_000, 0)
    assert (inlined.live_values, stored.live_values) == (2, 2)  # x and out
    assert inlined.predicted_seconds > stored.predicted_seconds > 0


def sum_of_rows(build: GraphBuilder) -> Graph:
    x = build.input("x", 3, 70)
    total = build.broadcast(build.reshape(build.reduce("sum", x, 1, name="sum"), 3, 1), 3, 70)
    return build.graph(build.op("multiply", x, total))


def test_a_ring_is_long_enough_in_unrolled_steps_too() -> None:
    stages = stages_of(sum_of_rows)
    lanes, total = named(stages, "sum_lanes"), named(stages, "sum")
    schedule = Schedule(stages).unroll(total, total.axes[0])
    schedule = schedule.compute_at(lanes, total, total.axes[0], store_at=(total, None))
    message = r"fold\(sum_lanes, l, 1\): 64 positions are needed at once"
    with pytest.raises(ScheduleError, match=message):
        lower(schedule.fold(lanes, lanes.axes[-1], 1), REFERENCE)


def test_nothing_is_kept_before_a_loop_that_threads_share() -> None:
    stages = stages_of(neighbours)
    rows, out = named(stages, "rows"), named(stages, "out")
    schedule = Schedule(stages).compute_at(rows, out, out.axes[1], store_at=(out, None))
    message = (
        r"parallel\(out\): rows is stored at out before its loops, of which threads share the first"
    )
    with pytest.raises(ScheduleError, match=message):
        schedule.parallel(out, out.axes[0])


def test_threads_do_not_compute_the_same_elements_in_memory_of_all() -> None:
    """Neither where it is read in the same step only."""
    stages = stages_of(neighbours)
    rows, out = named(stages, "rows"), named(stages, "out")
    schedule = Schedule(stages).compute_at(rows, out, out.axes[0]).store_at(rows)
    assert_same_bits(lower(schedule, REFERENCE), stages)
    message = r"compute_at\(rows, out, i\): two threads would compute the same elements of it"
    with pytest.raises(ScheduleError, match=message):
        lower(schedule.parallel(out, out.axes[0]), REFERENCE)


def neighbours(build: GraphBuilder) -> Graph:
    x = build.input("x", 9, 4)
    rows = build.op("multiply", x, x, name="rows")
    near = [build.slice(rows, (slice(at, at + 8), slice(None))) for at in range(2)]
    return build.graph(build.op("add", *near))


def test_a_last_step_begins_earlier_where_it_is_shifted() -> None:
    build = GraphBuilder("twice")
    x = build.input("x", 10, 3)
    stages = build_stages(build.graph(build.op("add", x, x)))
    (out,) = stages.stages
    schedule = Schedule(stages).split(out, out.axes[0], 4, tail="shift")
    assert schedule_text(schedule).splitlines()[1] == (
        "  out: root; i by 4 < 10 shifted, i < 10, j < 3"
    )
    loops = lower(schedule, REFERENCE)
    assert loops_text(loops).splitlines()[2:] == [
        "    for i_outer < 24",
        "      out[i_outer] = x[i_outer] + x[i_outer]",
        "    for 6 <= i < 10",
        "      for j < 3",
        "        out[3 * i + j] = x[3 * i + j] + x[3 * i + j]",
    ]
    assert_same_bits(loops, stages)
    message = "the last step of i by 4 would compute elements that another thread computes"
    with pytest.raises(ScheduleError, match=message):
        schedule.parallel(out, Loop(out.axes[0], 4))


@pytest.mark.parametrize(
    ("program", "stage", "axis", "message"),
    [
        (product, "matmul", "k", "would take elements into account twice"),
        (long_sum, "out_blocks", "b", "would combine elements in place twice"),
    ],
)
def test_no_step_is_shifted_that_would_count_elements_twice(
    program: Callable, stage: str, axis: str, message: str
) -> None:
    stages = stages_of(program)
    found = named(stages, stage)
    with pytest.raises(ScheduleError, match=message):
        Schedule(stages).split(found, found.axis(axis), 2, tail="shift")


def test_tiles_keep_the_bits() -> None:
    stages = stages_of(product)
    out, matmul = named(stages, "out"), named(stages, "matmul")
    i, j = out.axes
    schedule = Schedule(stages).tile(out, i, j, 2, 3)
    assert schedule_text(schedule).splitlines()[-1] == (
        "  out: root; i by 2 < 5, j by 3 < 4, i < 5, j < 4"
    )
    inside = schedule.inline(named(stages, "add")).compute_at(matmul, out, Loop(j, 3))
    assert_same_bits(lower(inside, REFERENCE), stages)


def across_and_along(build: GraphBuilder) -> Graph:
    x = build.input("x", 5, 5)
    square = build.op("multiply", x, x, name="square")
    return build.graph(build.op("subtract", square, build.transpose(square, 1, 0)))


def test_one_row_and_all_rows_are_all_rows() -> None:
    stages = stages_of(across_and_along)
    square, out = named(stages, "square"), named(stages, "out")
    schedule = Schedule(stages).compute_at(square, out, out.axes[0])
    assert_same_bits(lower(schedule, REFERENCE), stages)


def framed_stencil(build: GraphBuilder) -> Graph:
    """Rows that are framed, so that the first steps of a ring meet an edge of what they need."""
    x = build.input("x", 30, 3)
    rows = build.op("multiply", x, x, name="rows")
    framed = build.pad(rows, Literal(np.float32(0)), (2, 0), (0, 0))
    near = [build.slice(framed, (slice(at, at + 29), slice(None))) for at in (0, 2)]
    low = build.slice(rows, (slice(1, 30), slice(None)))
    return build.graph(build.op("multiply", build.op("subtract", *near), low))


def test_rings_meet_edges_before_all_of_them_move() -> None:
    stages = stages_of(framed_stencil)
    rows, out, framed = (named(stages, name) for name in ("rows", "out", "pad"))
    schedule = Schedule(stages)
    for stage in stages.stages:
        if stage not in (rows, out, framed):
            schedule = schedule.inline(stage)
    for stage in (framed, rows):
        schedule = schedule.compute_at(stage, out, out.axes[0], store_at=(out, None))
        schedule = schedule.fold(stage, stage.axes[0], 8)
    assert_same_bits(lower(schedule, REFERENCE), stages)
