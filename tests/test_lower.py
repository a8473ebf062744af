"""Lowering: what the loop nests compute, how many kernels there are, and where loops are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.graphs import GraphBuilder, PlainNumerics
from tinyfuse.emit.c import emit_c
from tinyfuse.errors import ScheduleError, VerificationError
from tinyfuse.graph.ir import Graph, Literal
from tinyfuse.loops.interpreter import interpret_loops
from tinyfuse.loops.ir import For, Loops, Store
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.expr import Const, Expr, IndexTest, Load, Op
from tinyfuse.stage.index import affine
from tinyfuse.stage.interpreter import interpret_stages
from tinyfuse.stage.ir import Stages


def zero(dtype: Any = np.float32) -> Literal:
    return Literal(np.dtype(dtype).type(0))


def softmax(build: GraphBuilder) -> Graph:
    x = build.input("x", 6, 130)
    top = build.broadcast(build.reshape(build.reduce("max", x, 1), 6, 1), 6, 130)
    e = build.op("subtract", x, top, name="e")
    total = build.broadcast(build.reshape(build.reduce("sum", e, 1), 6, 1), 6, 130)
    return build.graph(build.op("divide", e, total))


def long_sum(build: GraphBuilder) -> Graph:
    x = build.input("x", 41, 50)
    return build.graph(build.reduce("sum", build.op("multiply", x, x, name="square"), 0, 1))


def column_sum(build: GraphBuilder) -> Graph:
    return build.graph(build.reduce("sum", build.input("x", 300, 7), 0))


def padded(build: GraphBuilder) -> Graph:
    x = build.input("x", 6, 5)
    y = build.pad(x, zero(), (1, 2), (2, 1))
    left = build.slice(y, (slice(0, 6), slice(1, 6)))
    right = build.slice(y, (slice(2, 8), slice(2, 7)))
    return build.graph(build.op("add", left, right), build.pad(x, zero(), (0, 1), (3, 0)))


def joined(build: GraphBuilder) -> Graph:
    x, y = build.input("x", 3, 4), build.input("y", 2, 4)
    both = build.concat(
        build.op("add", x, x), y, build.slice(x, (slice(0, 1), slice(None))), axis=0
    )
    return build.graph(build.op("multiply", both, both), build.concat(x, x, axis=1))


def product(build: GraphBuilder) -> Graph:
    x, w = build.input("x", 5, 9), build.input("w", 9, 4)
    y = build.contract("ik,kj->ij", x, w, via="matmul")
    bias = build.broadcast(build.input("bias", 4), 5, 4)
    return build.graph(build.op("maximum", build.op("add", y, bias), zero()))


def transposed(build: GraphBuilder) -> Graph:
    x = build.input("x", 4, 6)
    flat = build.reshape(build.transpose(x, 1, 0), 24)
    backwards = build.slice(flat, (slice(None, None, -2),))
    return build.graph(build.op("add", backwards, backwards), build.transpose(x, 1, 0))


def extremes(build: GraphBuilder) -> Graph:
    x = build.input("x", 5, 70)
    return build.graph(build.reduce("argmax", x, 1), build.reduce("argmin", x, 0))


def windowed(build: GraphBuilder) -> Graph:
    x = build.input("x", 9, 8)
    views = build.windows(x, (3, 3), (0, 1))
    return build.graph(build.reduce("sum", views, 2, 3))


def empty(build: GraphBuilder) -> Graph:
    x = build.input("x", 3, 0)
    return build.graph(build.reduce("sum", x, 1), build.op("add", x, x))


PROGRAMS: list[Callable[[GraphBuilder], Graph]] = [
    *(softmax, long_sum, column_sum, padded, joined, product),
    *(transposed, extremes, windowed, empty),
]


def stages_of(program: Callable[[GraphBuilder], Graph]) -> Stages:
    return build_stages(program(GraphBuilder(program.__name__)))


def lowered(stages: Stages, fuse: bool = True) -> Loops:
    return lower(default_schedule(stages, REFERENCE, fuse)[0], REFERENCE)


def inputs_of(stages: Stages) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal(stage.shape).astype(stage.dtype) for stage in stages.inputs]
    for array in arrays:  # values that an extra or a missing addition would show in
        array[array > 1.5] = np.inf if array.size % 2 else -0.0
    return arrays


def assert_same_bits(loops: Loops, stages: Stages) -> None:
    verify_loops(loops)
    arrays, numerics = inputs_of(stages), PlainNumerics()
    with np.errstate(all="ignore"):
        expected = interpret_stages(stages, arrays, numerics)
        results = interpret_loops(loops, arrays, numerics)
    for result, want in zip(results, expected, strict=True):
        assert result.dtype == want.dtype
        assert np.ascontiguousarray(want).reshape(-1).tobytes() == result.tobytes()


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_loops_compute_what_the_stages_say(program: Any, fuse: bool) -> None:
    stages = stages_of(program)
    assert_same_bits(lowered(stages, fuse), stages)


@pytest.mark.parametrize(
    ("program", "fused", "unfused"),
    [
        (softmax, 1, 4),  # row by row
        (long_sum, 1, 2),  # blocks with the squares in them, and their tree
        (column_sum, 1, 2),  # they are small, as all that follow
        (padded, 1, 3),
        (joined, 1, 4),
        (product, 1, 3),
        (transposed, 1, 2),
        (extremes, 1, 4),
        (windowed, 1, 1),
        (empty, 1, 1),  # nothing is computed for an output without elements
    ],
)
def test_number_of_kernels(program: Any, fused: int, unfused: int) -> None:
    stages = stages_of(program)
    assert [len(lowered(stages, fuse).kernels) for fuse in (True, False)] == [fused, unfused]


def test_scratch_is_shared_by_stages_that_do_not_live_together() -> None:
    build = GraphBuilder("chain")
    x = build.input("x", 16, 16)
    for _ in range(4):
        x = build.op("add", x, build.transpose(x, 1, 0))
    loops = lowered(build_stages(build.graph(x)), fuse=False)
    assert [buffer.nbytes for buffer, _ in loops.scratch] == [1024] * 3
    assert loops.scratch_bytes == 2048  # a stage and its predecessor


def test_a_padded_loop_is_cut_at_its_edges() -> None:
    build = GraphBuilder("edge")
    loops = lowered(build_stages(build.graph(build.pad(build.input("x", 8), zero(), (2,), (3,)))))
    assert loops_text(loops) == (
        "loops edge(x: float32[8]) -> out: float32[13]\n"
        "  kernel edge_out computes out\n"
        "    for i < 2 vector\n"
        "      out[i] = 0.0\n"
        "    for 2 <= i < 10 vector\n"
        "      out[i] = x[i - 2]\n"
        "    for 10 <= i < 13 vector\n"
        "      out[i] = 0.0"
    )


def test_contiguous_axes_become_one_loop() -> None:
    build = GraphBuilder("flat")
    x, y = build.input("x", 3, 4, 5), build.input("y", 4, 5)
    both = build.op("add", x, build.broadcast(y, 3, 4, 5))
    loops = lowered(build_stages(build.graph(both, build.op("multiply", x, x))))
    assert loops_text(loops).splitlines()[1:] == [
        "  kernel flat_out_1 computes out, out_1",
        "    for i < 3",
        "      for j < 20 vector",
        "        out[20 * i + j] = x[20 * i + j] + y[j]",
        "        out_1[20 * i + j] = x[20 * i + j] * x[20 * i + j]",
    ]


def test_a_value_of_outer_loops_is_named_in_front_of_the_inner_ones() -> None:
    build = GraphBuilder("scaled")
    x, row = build.input("x", 3, 4), build.input("row", 3)
    weight = build.op("exp", row, name="weight")
    wide = build.broadcast(build.reshape(weight, 3, 1), 3, 4)
    loops = lowered(build_stages(build.graph(build.op("multiply", x, wide))))
    assert loops_text(loops).splitlines()[2:] == [
        "    for i < 3",
        "      let weight = exp(row[i])",
        "      for j < 4 vector",
        "        out[4 * i + j] = x[4 * i + j] * weight",
    ]


def test_a_deep_chain_lowers_without_recursion_into_kernels_of_bounded_length() -> None:
    build = GraphBuilder("deep")
    x = y = build.input("x", 50)
    for _ in range(5000):
        y = build.op("multiply", y, x)
    loops = lowered(build_stages(build.graph(y)))
    assert [kernel.cost.flops // 50 for kernel in loops.kernels] == [800] + [700] * 6
    assert emit_c(loops).text.count("\n") < 2500


def test_a_region_too_large_for_a_stack_is_refused() -> None:
    build = GraphBuilder("large")
    x = build.input("x", 600, 600)
    y = build.op("add", x, x, name="y")
    stages = build_stages(build.graph(build.op("add", build.transpose(y, 1, 0), y)))
    producer, consumer = stages.stages
    schedule = Schedule(stages).compute_at(producer, consumer, None)
    message = (
        r"compute_at\(y, out\): 1459200 bytes are more than the 1048576 that fit a thread's stack"
        "; use a loop further in"
    )
    with pytest.raises(ScheduleError, match=message):
        lower(schedule, REFERENCE)


def test_steps_of_several_elements_are_cut_where_tests_change() -> None:
    build = GraphBuilder("sums")
    stages = build_stages(build.graph(build.reduce("sum", build.input("x", 150, 3), 0)))
    loops = lowered(stages)
    assert loops_text(loops).splitlines()[11:22] == [
        "    for i < 3 vector",
        "      out_blocks[i + 3] = 0.0",
        "    for r_outer < 5",
        "      for i < 3 vector",
        "        out_blocks[i + 3] = out_blocks[i + 3] + x[12 * r_outer + i + 384]",
        "        out_blocks[i + 3] = out_blocks[i + 3] + x[12 * r_outer + i + 387]",
        "        out_blocks[i + 3] = out_blocks[i + 3] + x[12 * r_outer + i + 390]",
        "        out_blocks[i + 3] = out_blocks[i + 3] + x[12 * r_outer + i + 393]",
        "    for i < 3 vector",
        "      out_blocks[i + 3] = out_blocks[i + 3] + x[i + 444]",
        "      out_blocks[i + 3] = out_blocks[i + 3] + x[i + 447]",
    ]
    assert_same_bits(loops, stages)


def test_a_chain_that_data_rules_out_does_not_run() -> None:
    build = GraphBuilder("place")
    stages = build_stages(
        build.graph(build.reduce("argmax", build.input("x", 512, dtype="int8"), 0))
    )
    loops = lowered(stages)
    assert loops_text(loops).splitlines()[18:25] == [
        "    for b < 4",
        "      alloc out_blocks_acc: int64[1] in a register",
        "      out_blocks_acc[0] = 512",
        "      if b == out_first[0]",
        "        for e < 128",
        "          out_blocks_acc[0] = minimum(out_blocks_acc[0], "
        "128 * b + e if x[128 * b + e] == out_max[0] else 512)",
        "      out_blocks[b] = out_blocks_acc[0]",
    ]
    assert_same_bits(loops, stages)


def test_lanes_that_a_row_does_not_fill_stay_as_they_are() -> None:
    build = GraphBuilder("rows")
    stages = build_stages(build.graph(build.reduce("sum", build.input("x", 2, 100), 1)))
    loops = lowered(stages)
    assert loops_text(loops).splitlines()[3:10] == [
        "      alloc out_lanes: float32[64] on the stack",
        "      for l < 64 vector",
        "        out_lanes[l] = 0.0",
        "      for l < 64 vector",
        "        out_lanes[l] = out_lanes[l] + x[100 * i + l]",
        "      for l < 64 vector",
        "        out_lanes[l] = out_lanes[l] + x[100 * i + l + 64] "
        "if l + 64 < 100 else out_lanes[l]",
    ]
    assert_same_bits(loops, stages)


def test_what_is_computed_inside_an_earlier_stage_says_what_it_needs() -> None:
    build = GraphBuilder("nested")
    x, y = build.input("x", 5), build.input("y", 5)
    first = build.op("add", x, x, name="first")
    outer, inner = build.op("add", y, y, name="outer"), build.op("exp", first, name="inner")
    stages = build_stages(build.graph(outer, inner, build.op("exp", y, name="last")))
    first, outer, inner, last = stages.stages
    schedule = Schedule(stages).compute_at(outer, last, None).compute_at(inner, outer, None)
    assert_same_bits(lower(schedule.compute_at(first, last, None), REFERENCE), stages)


def test_a_chain_that_waits_for_what_is_computed_inside_it_runs() -> None:
    build = GraphBuilder("largest")
    x = build.input("x", 600)
    stages = build_stages(build.graph(build.reduce("argmax", x, 0, name="place")))
    named = {stage.name: stage for stage in stages.stages}
    blocks = named["place_blocks"]
    innermost = blocks.reduce_axes[-1]
    schedule = Schedule(stages).compute_at(named["place_first"], blocks, innermost)
    assert_same_bits(lower(schedule, REFERENCE), stages)


def test_a_producer_that_only_elements_behind_a_test_read_is_not_computed() -> None:
    build = GraphBuilder("edges")
    x = build.input("x", 4)
    share = build.op("divide", x, build.broadcast(build.reduce("sum", x, 0, name="sum"), 4))
    padded = build.pad(share, zero(), (1,), (1,))
    edge = build.slice(padded, (slice(0, 0),))
    stages = build_stages(build.graph(build.contract("i,i->", edge, edge)))
    loops = lowered(stages)
    assert loops_text(loops).splitlines()[2:] == [
        "    alloc out_acc: float32[1] in a register",
        "    out_acc[0] = 0.0",
        "    out[0] = out_acc[0]",
    ]
    assert_same_bits(loops, stages)


def test_the_verifier_knows_what_runs_only_where_it_is_chosen() -> None:
    build = GraphBuilder("f")
    x = build.input("x", 40)
    loops = lowered(build_stages(build.graph(build.op("add", x, x))))
    (kernel,) = loops.kernels
    (loop,) = kernel.body
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    ahead = Load(kernel.parameters[0], (loop.variable + 1,))
    zero = Const(np.float32(0))
    chosen = Op("select", (IndexTest(affine(loop.variable), None, 39), ahead, zero), ahead.dtype)

    def storing(value: Expr) -> Loops:
        body = (replace(loop, body=(replace(store, value=value),)),)
        return replace(loops, kernels=(replace(kernel, body=body),))

    verify_loops(storing(chosen))
    for value in (ahead, Op("add", (ahead, chosen), ahead.dtype)):
        with pytest.raises(VerificationError, match="runs from 1 to 40, of 40 elements"):
            verify_loops(storing(value))
