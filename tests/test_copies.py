"""Copies of what is read and computed: with other layouts, in local buffers, past the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.test_lower import assert_same_bits
from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import For, Store, walk_statements
from tinyfuse.loops.printer import loops_text
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.schedule.loop_nest import loop_nest_text
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.copies import copies
from tinyfuse.stage.expr import Op
from tinyfuse.stage.printer import stages_text
from tinyfuse.stage.verifier import verify_stages


def distances(x, y):
    return ((x[:, None] - y) ** 2).sum(-1)


def from_each_other(x):
    return ((x[:, None] - x) ** 2).sum(-1)


def scaled(x, scale):
    return x * scale + 1


def filled(x):
    return np.zeros((4, 5), np.float32) + x


def rows_sum(x):
    return x.sum(axis=-1)


def looked_up(x, places):
    return (x * 2)[places]


def looked_up_through(x, places):
    return (np.exp(x) + 1)[places]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def started(function: Callable[..., Any], *arrays: np.ndarray) -> Schedule:
    """The schedule of a function with only what is elementwise inlined."""
    return Schedule(build_stages(tinyfuse.jit(function).trace(*arrays).graph))


def tiled(schedule: Schedule) -> Schedule:
    """Distances in tiles of 2 by 4, each of which accumulates in a buffer, of a packed copy."""
    out, y = schedule.stage("out"), schedule.stages.inputs[1]
    i, j, k = (out.axis(name) for name in "ijk")
    for inlined in schedule.stages.stages[:-1]:
        schedule = schedule.inline(inlined)
    schedule = schedule.split(out, i, 2).split(out, j, 4)
    schedule = schedule.reorder(out, Loop(i, 2), Loop(j, 4), k, i, j).vectorize(out, j)
    schedule = schedule.cache_write(out, Loop(j, 4))
    schedule = schedule.cache_read(schedule.stage("out_local"), y)
    copy = schedule.stage("y_copy")
    return schedule.layout(copy, Loop(copy.axis("i"), 4), copy.axis("j"), copy.axis("i"))


TILED = """schedule distances
  out_local = cache_write(out)
  y_copy = cache_read(y, subtract)
  y_copy: root; layout(i by 4, j, i); i < 6, j < 3
  subtract: inline
  square: inline
  out_local: compute_at(out, j by 4); i by 2 < 5, j by 4 < 6, k < 3 reduced, i < 5, j < 6 vector
  out: root; i by 2 < 5, j by 4 < 6, i < 5, j < 6 vector
"""


def test_a_tile_accumulates_in_a_buffer_what_a_packed_copy_holds(tmp_path: Path) -> None:
    start = started(distances, ones(5, 3), ones(6, 3))
    schedule = tiled(start)
    assert str(schedule) == TILED
    assert loop_nest_text(schedule).splitlines() == [
        "compute y_copy, layout(i by 4, j, i):",
        "  for i < 6:",
        "    for j < 3:",
        "      y_copy[i, j] from y",
        "compute out:",
        "  for i by 2 < 5:",
        "    for j by 4 < 6:",
        "      compute out_local:",
        "        for i by 2:",
        "          for j by 4:",
        "            for k reduced:",
        "              for i:",
        "                for j vector:",
        "                  out_local[i, j] from x, y_copy; square, subtract inline",
        "      for i:",
        "        for j vector:",
        "          out[i, j] from out_local",
    ]
    loops = lower(schedule, REFERENCE)
    assert "y_copy[12 * (i / 4) + 4 * j + i % 4] = y[3 * i + j]" in loops_text(loops)
    assert loops_text(loops).count("alloc out_local: float32[8] on the stack") == 1
    assert loops.scratch_bytes == 2 * 3 * 4 * 4 + 32  # two blocks of 3 by 4, in whole lines
    assert_same_bits(loops, start.stages)
    schedule.save(tmp_path / "tiled")
    again = Schedule.load(tmp_path / "tiled", start.stages)
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert again.stages is schedule.stages


def test_a_schedule_with_copies_is_of_the_same_program() -> None:
    x, y = ones(5, 3), ones(6, 3)
    lowered = tinyfuse.jit(distances).lower(x, y)
    start = Schedule(lowered.stages)
    schedule = tiled(start)
    verify_stages(schedule.stages)
    assert schedule.program is start.stages
    assert copies(schedule.stages) == {"y_copy"}
    out, y_stage = start.stage("out"), start.stages.inputs[1]
    assert schedule[out] is schedule[schedule.stage("out")]
    assert schedule.current(out) is schedule.stage("out")
    assert schedule.current(y_stage) is y_stage
    assert "out_local[i < 5, j < 6]: float32 = serial add over k < 3" in stages_text(
        schedule.stages
    )
    again = lowered.with_schedule(schedule)
    assert [kernel.stages for kernel in again.packs] == [("y_copy",)]
    assert [kernel.name for kernel in again.kernels] == ["distances_out"]
    np.testing.assert_array_equal(again.compile()(x, y), lowered.compile()(x, y))


def test_directives_name_stages_of_schedules_before() -> None:
    start = started(distances, ones(5, 3), ones(6, 3))
    schedule, out = tiled(start), start.stage("out")
    other = schedule.serial(out, out.axis("j")).parallel(out, Loop(out.axis("i"), 2))
    assert str(other).splitlines()[-1] == (
        "  out: root; i by 2 < 5 parallel, j by 4 < 6, i < 5, j < 6"
    )
    assert_same_bits(lower(other, REFERENCE), start.stages)


def test_only_what_goes_along_an_axis_is_copied() -> None:
    start = started(from_each_other, ones(5, 3))
    out, x = start.stage("out"), start.stages.inputs[0]
    for inlined in start.stages.stages[:-1]:
        start = start.inline(inlined)
    schedule = start.cache_read(out, x, out.axis("i"), along=out.axis("j"))
    assert "  x_copy = cache_read(x, subtract along j)" in str(schedule).splitlines()
    text = loops_text(lower(schedule, REFERENCE))
    assert "square(x[3 * i + k] - x_copy[3 * j + k])" in text
    assert_same_bits(lower(schedule, REFERENCE), start.stages)
    everything = start.cache_read(out, x)
    assert "x_copy[3 * i + k] - x_copy[3 * j + k]" in loops_text(lower(everything, REFERENCE))


def test_only_what_goes_along_an_axis_of_the_source_is_copied(tmp_path: Path) -> None:
    start = started(lambda x: x + x.T, ones(6, 6))
    out, x = start.stage("out"), start.stages.inputs[0]
    i, (row, column) = out.axis("i"), x.axes
    schedule = start.cache_read(out, x, out.axis("j"), along=i, index=column)
    assert "  x_copy = cache_read(x at j, out along i)" in str(schedule).splitlines()
    assert "x[6 * i + j] + x_copy[0]" in loops_text(lower(schedule, REFERENCE))
    assert_same_bits(lower(schedule, REFERENCE), start.stages)
    schedule.save(tmp_path / "saved")
    assert Schedule.load(tmp_path / "saved", start.stages) == schedule
    other = start.cache_read(out, x, out.axis("j"), along=i, index=row)
    assert "x_copy[0] + x[6 * j + i]" in loops_text(lower(other, REFERENCE))
    for along, index in ((None, column), (i, i)):
        with pytest.raises(ScheduleError, match="is no axis of x that goes along with one"):
            start.cache_read(out, x, along=along, index=index)


def test_copies_have_names_of_their_own() -> None:
    start = started(scaled, ones(4, 5), ones(5))
    first = start.stages.stages[0]
    x = start.stages.inputs[0]
    schedule = start.cache_read(first, x, first.axis("i"))
    schedule = schedule.cache_read(first, schedule.stage("x_copy"), first.axis("i"))
    schedule = schedule.cache_read(schedule.stage("x_copy"), x)
    assert [s.name for s in schedule.stages.stages][:3] == ["x_copy_1", "x_copy", "x_copy_copy"]
    assert_same_bits(lower(schedule, REFERENCE), start.stages)


def test_a_copy_is_computed_at_a_loop() -> None:
    start = started(scaled, ones(4, 5), ones(5))
    multiply, scale = start.stages.stages[0], start.stages.inputs[1]
    schedule = start.split(multiply, multiply.axis("j"), 2)
    schedule = schedule.cache_read(multiply, scale, Loop(multiply.axis("j"), 2))
    text = loops_text(lower(schedule, REFERENCE))
    assert "alloc scale_copy: float32[2] on the stack" in text
    assert_same_bits(lower(schedule, REFERENCE), start.stages)


def test_what_happened_in_the_loops_of_a_reduction_happens_in_its_local_stage() -> None:
    start = started(distances, ones(5, 3), ones(6, 3))
    subtract, square, out = start.stages.stages
    schedule = start.inline(subtract).compute_at(square, out, out.axis("k"))
    schedule = schedule.cache_write(out, out.axis("i"))
    assert "  square: compute_at(out_local, k)" in str(schedule)
    assert_same_bits(lower(schedule, REFERENCE), start.stages)


# --- past the end ---------------------------------------------------------------------------------


def padded(schedule: Schedule) -> Schedule:
    schedule = tiled(schedule)
    copy = schedule.stage("y_copy")
    schedule = schedule.split(copy, copy.axis("i"), 4, tail="pad")
    local = schedule.stage("out_local")
    return schedule.pad(local, Loop(local.axis("j"), 4))


def test_padded_tiles_are_all_of_one_size() -> None:
    start = started(distances, ones(5, 3), ones(6, 3))
    schedule = padded(start)
    lines = str(schedule).splitlines()
    assert lines[3:7] == [
        "  y_copy = pad(y_copy, i < 8)",
        "  subtract = pad(subtract, j < 8)",
        "  square = pad(square, j < 8)",
        "  out_local = pad(out_local, j < 8)",
    ]
    assert "j by 4 < 8 padded" in lines[-2]
    verify_stages(schedule.stages)
    assert widths_of_sums(schedule) == {4}
    assert widths_of_sums(tiled(start)) == {4, 2}
    assert "8 <= i" not in loops_text(lower(schedule, REFERENCE))
    assert_same_bits(lower(schedule, REFERENCE), start.stages)


def widths_of_sums(schedule: Schedule) -> set[int]:
    """How many columns the innermost loops that add up have."""
    return {
        loop.variable.extent
        for kernel in lower(schedule, REFERENCE).kernels
        for loop in walk_statements(kernel.body)
        if isinstance(loop, For)
        for store in loop.body
        if isinstance(store, Store) and isinstance(store.value, Op) and store.value.name == "add"
    }


def test_past_the_end_of_a_copy_there_are_zeros() -> None:
    start = started(scaled, ones(4, 5), ones(5))
    multiply, scale = start.stages.stages[0], start.stages.inputs[1]
    schedule = start.cache_read(multiply, scale)
    copy = schedule.stage("scale_copy")
    schedule = schedule.split(copy, copy.axis("i"), 4, tail="pad")
    text = stages_text(schedule.stages)
    assert "scale_copy[i < 8]: float32 = scale[i] if i < 5 else 0.0" in text
    text = loops_text(lower(schedule, REFERENCE))
    assert "scale_copy[i] = 0.0" in text
    assert_same_bits(lower(schedule, REFERENCE), start.stages)


def test_what_divides_is_not_padded() -> None:
    start = started(distances, ones(5, 3), ones(6, 3))
    square = start.stage("square")
    schedule = start.split(square, square.axis("j"), 3, tail="pad")
    assert schedule.stages is start.stages
    assert "j by 3 < 6 padded" in str(schedule)


# --- one loop of two ------------------------------------------------------------------------------


def test_threads_share_the_steps_of_two_loops() -> None:
    start = started(filled, ones(1))
    out = start.stage("out")
    i, j = out.axes
    schedule = start.split(out, j, 2).fuse(out, i, Loop(j, 2)).parallel(out, i)
    assert str(schedule).splitlines()[-1] == "  out: root; i < 4 fused parallel, j by 2 < 5, j < 5"
    assert "  for i < 4 fused parallel:" in loop_nest_text(schedule).splitlines()
    assert loops_text(lower(schedule, REFERENCE)).splitlines()[-6:] == [
        "    for i_j < 12 parallel",
        "      if i_j % 3 < 2",
        "        for j < 2",
        "          out[5 * (i_j / 3) + 2 * (i_j % 3) + j] = 0.0 + x[0]",
        "      else",
        "        out[5 * (i_j / 3) + 4] = 0.0 + x[0]",
    ]
    assert_same_bits(lower(schedule, REFERENCE), start.stages)


def test_what_is_computed_inside_both_loops_is() -> None:
    start = started(distances, ones(5, 3), ones(6, 3))
    subtract, square, out = start.stages.stages
    i, j = out.axes
    schedule = start.inline(subtract).split(out, i, 2).reorder(out, Loop(i, 2), j, i)
    schedule = schedule.fuse(out, Loop(i, 2), j).compute_at(square, out, j)
    text = loops_text(lower(schedule, REFERENCE))
    assert "alloc square: float32[6] on the stack" in text
    assert_same_bits(lower(schedule, REFERENCE), start.stages)


def bent(x):
    shifted = x + 1
    return shifted * shifted


def test_what_has_a_name_stays_in_the_one_loop_of_two() -> None:
    start = started(bent, ones(3, 5))
    shifted, out = start.stages.stages
    schedule = start.inline(shifted).fuse(out, *out.axes)
    assert loops_text(lower(schedule, REFERENCE)).splitlines()[-3:] == [
        "    for i_j < 15",
        "      let shifted = x[i_j] + 1.0",
        "      out[i_j] = shifted * shifted",
    ]
    assert_same_bits(lower(schedule, REFERENCE), start.stages)


# --- what is refused ------------------------------------------------------------------------------


def first_line(function: Callable[..., Any], arrays: tuple[Any, ...], directives: Any) -> str:
    schedule = started(function, *arrays)
    with pytest.raises(ScheduleError) as caught:
        directives(schedule, *schedule.stages.stages)
    return str(caught.value).split("\n")[0]


PAIRS = ones(5, 3), ones(6, 3)
REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], Any, str]] = [
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.cache_read(out, s.stages.inputs[0]),
        "cache_read(out, x): it does not read x",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.cache_read(
            subtract, s.stages.inputs[0], along=subtract.axis("j")
        ),
        "cache_read(subtract, x): it does not read x at indices that depend on j",
    ),
    (
        rows_sum,
        (ones(3, 200),),
        lambda s, lanes, out: s.cache_read(out, lanes),
        "cache_read(out, out_lanes): out combines the elements of out_lanes in place",
    ),
    (
        rows_sum,
        (ones(3, 200),),
        lambda s, lanes, out: s.cache_write(out),
        "cache_write(out): its elements depend on each other",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.cache_write(out, out.axis("k")),
        "cache_write(out): its reduction has begun outside of that loop",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.layout(out, out.axis("j"), out.axis("i")),
        "layout(out): it is an output, which is stored in C order",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.layout(
            square, *square.axes[:2], Loop(square.axes[2], 3), Loop(square.axes[2], 2)
        ),
        "layout(square): of k there have to be parts, down to steps of 1, each in smaller ones that"
        " divide those before",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.layout(square, *square.axes, out.axis("k")),
        "layout(square): there is a part of an axis that it has not",
    ),
    (
        looked_up,
        (ones(6, 3), np.array([1, 2])),
        lambda s, *stages: s.layout(
            stages[0], Loop(stages[0].axes[0], 2), stages[0].axes[1], stages[0].axes[0]
        ),
        "layout(multiply): data decides where along i it is used",
    ),
    (
        looked_up_through,  # what is inlined is read there, and reads there
        (ones(6, 3), np.array([1, 2])),
        lambda s, *stages: s.inline(stages[1]).layout(
            stages[0], Loop(stages[0].axes[0], 2), stages[0].axes[1], stages[0].axes[0]
        ),
        "layout(exp_1): data decides where along i it is used",
    ),
    *[
        (
            function,
            (ones(6, 3), np.array([1, 2])),
            lambda s, first, *others: (
                s.inline(others[0])
                .compute_at(first, others[-1], others[-1].axes[0], store_at=(others[-1], None))
                .fold(first, first.axes[0], 2)
            ),
            f"fold({name}, i, 2): data decides where it is read",
        )
        for function, name in ((looked_up, "multiply"), (looked_up_through, "exp_1"))
    ],
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.split(out, out.axis("i"), 2, tail="pad"),
        "pad(out, i by 2): it is an output, which has no room past its end",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.split(out, out.axis("k"), 2, tail="pad"),
        "pad(out, k by 2): k cannot be 4 long",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.fuse(out, *out.axes[::-1]),
        "fuse(out, j, i): one is not right inside the other",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.fuse(out, out.axis("j"), out.axis("k")),
        "fuse(out): j by 1 is fused with the next one, and their elements depend on each other",
    ),
    (
        distances,
        PAIRS,
        lambda s, subtract, square, out: s.fuse(out, *out.axes).compute_at(
            square, out, out.axis("i")
        ),
        "compute_at(square): out: i by 1 is fused with the next one, and something is computed or"
        " kept in between",
    ),
]


def test_inputs_are_not_written() -> None:
    schedule = started(distances, *PAIRS)
    with pytest.raises(ScheduleError, match="<stage x> is no stage of this schedule"):
        schedule.cache_write(schedule.stages.inputs[0])


@pytest.mark.parametrize(("function", "arrays", "directives", "message"), REFUSED)
def test_what_is_refused(
    function: Callable[..., Any], arrays: tuple[Any, ...], directives: Any, message: str
) -> None:
    assert first_line(function, arrays, directives) == message


def test_a_reduction_is_padded_after_what_it_reads() -> None:
    schedule = tiled(started(distances, *PAIRS))
    local = schedule.stage("out_local")
    with pytest.raises(ScheduleError, match="what subtract reads ends where j does"):
        schedule.pad(local, Loop(local.axis("j"), 4))


def test_the_message_says_what_is_legal() -> None:
    start = started(distances, *PAIRS)
    out = start.stage("out")
    with pytest.raises(ScheduleError) as caught:
        start.cache_write(out, out.axis("k"))
    assert "  legal: cache_write(out, i); cache_write(out, j)" in str(caught.value).splitlines()
    with pytest.raises(ScheduleError) as caught:
        start.fuse(out, out.axis("j"), out.axis("k"))
    assert "  legal: fuse(out, i, j)" in str(caught.value).splitlines()
    with pytest.raises(ScheduleError) as caught:
        start.cache_read(out, start.stages.inputs[0])
    assert "  legal: cache_read(out, square)" in str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cache_write(out)", "cache_write(x)", "line 2: it is an input"),
        ("cache_write(out)", "cache_write(nothing)", "there is no nothing; there are: "),
        ("y_copy = ", "out = ", "there is a stage out already"),
        ("subtract)", "square)", "square does not read y"),
        ("subtract)", "subtract along q)", "subtract has no axis q; its axes: i, j, k"),
        ("(y, subtract)", "(y at q, subtract along j)", "y has no axis q; its axes: i, j"),
        ("layout(i by 4, j, i)", "layout(i by x, j, i)", "layout of y_copy takes axes"),
        ("layout(i by 4, j, i)", "layout(i by 4, j)", "layout(y_copy): of i there have to be"),
        ("  y_copy = cache_read(y, subtract)\n", "", "it has a stage y_copy, the program has none"),
        ("  y_copy = ", "  out_local = pad(out_local, j)\n  y_copy = ", "pad of out_local takes"),
        ("< 3 reduced,", "< 3 reduced padded,", "would take elements into account that are not"),
    ],
)
def test_texts_that_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    start = started(distances, *PAIRS)
    path = tmp_path / "changed"
    assert old in TILED
    path.write_text(TILED.replace(old, new, 1))
    with pytest.raises(ScheduleError) as caught:
        Schedule.load(path, start.stages)
    assert message in str(caught.value)
