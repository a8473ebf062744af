"""Rows that are asked for ahead of their use: the directive, and where the planner gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import GraphBuilder
from tests.test_lower import assert_same_bits
from tinyfuse.compilation import Lowered
from tinyfuse.errors import ScheduleError
from tinyfuse.loops.printer import loops_text
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.ir import Stages


def doubled() -> Stages:
    build = GraphBuilder("doubled")
    x = build.input("x", 6, 100)
    h = build.op("multiply", x, x, name="h")
    return build_stages(build.graph(build.op("add", h, x)))


def test_a_row_is_asked_for_some_steps_ahead() -> None:
    stages = doubled()
    h, out = stages.stages
    (x,), (i, j) = stages.inputs, h.axes
    rows = out.axes[0]
    schedule = Schedule(stages).compute_at(h, out, rows).split(h, j, 64)
    schedule = schedule.prefetch(h, x, Loop(j, 64), (out, rows), distance=2)
    assert str(schedule).splitlines()[1] == (
        "  h: compute_at(out, i); prefetch(x, j by 64, out, i, 2); i < 6, j by 64 < 100, j < 100"
    )
    loops = lower(schedule, REFERENCE)
    assert loops_text(loops).splitlines()[2:9] == [
        "    for i < 6",
        "      alloc h: float32[100] on the stack",
        "      prefetch 64 elements of x[100 * i + 200…]",
        "      for j < 64",
        "        h[j] = x[100 * i + j] * x[100 * i + j]",
        "      prefetch 36 elements of x[100 * i + 264…]",
        "      for 64 <= j < 100",
    ]
    assert_same_bits(loops, stages)
    moved = schedule.parallel(out, rows)
    assert moved[h].prefetch.ahead.loop == moved.find(out, rows)
    assert moved.store(h)[h].prefetch is None
    assert i in h.axes


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (lambda h, out: (Loop(h.axes[1], 7), (out, out.axes[0])), "h has no loop j by 7"),
        (lambda h, out: (h.axes[1], (out, out.axes[1]), 0), "there is no such loop, or distance"),
        (lambda h, out: (h.axes[0], (h, h.axes[1])), "the loop that is ahead lies inside"),
        (lambda h, out: (h.axes[1], (out, out.axes[1])), "out has no such loop around it"),
    ],
)
def test_what_cannot_be_asked_for(arguments: Any, reason: str) -> None:
    stages = doubled()
    h, out = stages.stages
    schedule = Schedule(stages)
    with pytest.raises(ScheduleError, match=reason):
        schedule.prefetch(h, stages.inputs[0], *arguments(h, out))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def normalised(x):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True)) * 2


def planned(function: Any, *arrays: np.ndarray) -> str:
    traced = tinyfuse.jit(function).trace(*arrays)
    return Lowered(traced, traced.options, REFERENCE).as_text("schedule")


def test_rows_of_large_arrays_are_asked_for_while_the_kernel_streams() -> None:
    large = np.ones((8192, 1024), np.float32)
    assert "  out: root; streamed; prefetch(x, j by 256, out, i, 1);" in planned(normalised, large)
    text = planned(normalised, large[:, :1000].copy())  # rows end within a line
    assert "streamed" in text
    assert "prefetch" not in text
    assert "prefetch" not in planned(normalised, large[:1024])  # it stays in the cache
    assert "prefetch" not in planned(softmax, large)  # which keeps its rows in the result
    assert "prefetch" not in planned(lambda x: x - x.mean(-1, keepdims=True), large)
    assert "prefetch" not in planned(np.exp, large)  # processors do that by themselves


def test_the_same_bits_and_c_that_says_so() -> None:
    x = np.random.default_rng(0).standard_normal((8192, 1024)).astype(np.float32)
    jitted = tinyfuse.jit(normalised)
    text = jitted.lower(x).as_text("c")
    assert "      tf_prefetch(x + 1024 * i + 256 * j_outer + 1024, 1024);\n" in text
    assert "  // " not in text[text.index("static inline void tf_prefetch") :].split("\n}\n")[0]
    assert jitted(x).tobytes() == tinyfuse.jit(normalised, fuse=False)(x).tobytes()


def test_an_array_without_elements_is_not_asked_for() -> None:
    build = GraphBuilder("nothing")
    x = build.input("x", 3, 0)
    stages = build_stages(build.graph(build.reduce("prod", x, 1)))
    (out,) = stages.stages
    rows, columns = Loop(out.axes[0]), Loop(out.reduce_axes[0])
    for loop in (rows, columns):
        schedule = Schedule(stages).prefetch(out, stages.inputs[0], loop, (out, rows))
        loops = lower(schedule, REFERENCE)
        assert "prefetch" not in loops_text(loops)
        assert_same_bits(loops, stages)
