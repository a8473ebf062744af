"""The cost model: what loop nests are counted to do, and how long that is predicted to take."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import GraphBuilder, float32
from tests.stage_checks import additions
from tinyfuse.compilation import Lowered
from tinyfuse.constants import Constants
from tinyfuse.dtypes import FLOAT32, FLOAT64
from tinyfuse.graph.scalar_ops import SCALAR_OPS, cost
from tinyfuse.graph.simplify import simplify
from tinyfuse.graph.special_functions import SPECIAL_FUNCTIONS
from tinyfuse.loops.cost import Cost, Operation, count
from tinyfuse.loops.ir import Buffer, For, Kernel, Let, Local, LoopKind, Scope, Store
from tinyfuse.lower.lower import lower
from tinyfuse.machine import KIB, MIB, REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.schedule.cost import (
    bandwidth,
    level_of,
    operation_cost,
    predicted_seconds,
    seconds,
    stage_cost,
)
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.expr import Load, Op
from tinyfuse.stage.index import Axis, affine
from tinyfuse.stage.ir import Stage


def lowered(function: Callable[..., Any], *arguments: Any) -> Lowered:
    traced = tinyfuse.jit(function).trace(*arguments)
    return Lowered(traced, traced.options, REFERENCE)


def kernel_of(function: Callable[..., Any], *arguments: Any) -> Kernel:
    (kernel,) = lowered(function, *arguments).kernels
    return kernel


def ones(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


# --- what is counted ------------------------------------------------------------------------------


def operations_of(kernel: Kernel) -> dict[tuple[str, str, bool], int]:
    return {
        (each.name, each.dtype.name, each.vector): times for each, times in kernel.cost.operations
    }


def test_operations_are_counted_by_kind_and_by_the_widest_dtype_that_they_see():
    kernel = kernel_of(lambda x: np.where(x > 1, np.exp(x) * x, x), ones(3, 5, dtype=np.float64))
    assert operations_of(kernel) == {
        ("greater", "float64", True): 15,
        ("exp", "float64", True): 15,
        ("multiply", "float64", True): 15,
        ("select", "float64", True): 15,
    }
    assert kernel.cost.flops == 3 * 15  # a select is none


def test_each_element_counts_once_for_bytes_and_each_time_for_accesses():
    spent = kernel_of(lambda x: x[:-2] + x[1:-1] + x[2:], ones(102)).cost
    assert (spent.bytes_read, spent.bytes_written) == (4 * 102, 4 * 100)
    assert spent.accesses == 4 * (3 + 1) * 100


def test_an_element_that_a_loop_does_not_change_is_loaded_once():
    spent = kernel_of(lambda x, y: x[:, None] * y, ones(8), ones(100)).cost
    assert spent.accesses == 4 * (8 + 800 + 800)


def test_an_element_that_one_step_uses_again_and_again_stays_in_a_register():
    spent = kernel_of(lambda x, y: x @ y, ones(8, 8), ones(8, 64)).cost
    zeros, updates, weights = 8 * 64, 2 * 2 * 8 * 64, 8 * 8 * 64
    assert spent.accesses == 4 * (zeros + updates + weights + 8 * 8)


def test_sums_that_are_written_out_are_stored_once():
    spent = kernel_of(lambda x, y: x @ y, ones(8, 4), ones(4, 64)).cost
    results, weights = 8 * 64, 8 * 4 * 64
    assert spent.accesses == 4 * (results + weights + 8 * 4)


@pytest.mark.parametrize(("size", "accesses", "lines"), [(100, 64 + 4, 0), (400, 4, 64)])
def test_far_apart_elements_take_whole_lines(size: int, accesses: int, lines: int):
    traced = tinyfuse.jit(lambda x: x.T + 1).trace(ones(size, size))
    plain = Schedule(build_stages(simplify(traced.graph)))  # the planner goes through tiles
    (kernel,) = lower(plain, REFERENCE).kernels
    spent = kernel.cost
    assert (spent.accesses, spent.lines) == (size * size * accesses, size * size * lines)


def test_a_transposed_tile_is_read_and_written_once():
    spent = kernel_of(lambda x: x.T + 1, ones(96, 96)).cost
    assert (spent.accesses, spent.lines) == (96 * 96 * 4 * 4, 0)  # also of the tile, from the L1


def test_what_is_the_same_in_every_step_of_a_loop_is_done_once():
    x, y, out = (Buffer(name, FLOAT32, 10, Scope.ARGUMENT) for name in ("x", "y", "out"))
    j, scale = Axis("j", 10), Local("scale", FLOAT32)
    root = Op("sqrt", (Load(y, (affine(0),)),), FLOAT32)
    step = Op("multiply", (Load(x, (affine(j),)), root), FLOAT32)
    named = Op("add", (scale, step), FLOAT32)
    body = (Let(scale, Op("negative", (root,), FLOAT32)), Store(out, affine(j), named))
    spent = count([For(j, LoopKind.VECTOR, body)]).cost()
    done = {operation.name: times for operation, times in spent.operations}
    assert done == {"sqrt": 2, "negative": 1, "multiply": 10, "add": 10}
    assert spent.flops == 50  # as it is written
    assert spent.accesses == 4 * (10 + 10 + 1)


def test_where_data_decides_lines_are_taken():
    picked = lowered(lambda x, i: x[i], ones(1000), np.zeros(50, np.int64)).kernels[-1]
    assert picked.cost.lines == 50 * 64


def test_lanes_on_the_stack_are_registers():
    spent = kernel_of(lambda x: x.sum(axis=-1), ones(4, 128)).cost
    assert spent.accesses == 4 * (4 * 128 + 4)


def test_the_parts_of_a_loop_are_counted_as_often_as_they_run():
    kernel = lowered(lambda x, y: np.dot(x, y), ones(9000), ones(9000)).kernels[0]
    assert operations_of(kernel)["fma", "float32", True] == 8 * 1024 + 12 * 64 + 64
    assert kernel.cost.flops == 2 * (8 * 1024 + 13 * 64) + 9 * 63 + 8


def test_a_scan_is_a_chain_and_no_vector_code():
    kernel = kernel_of(lambda x: np.cumsum(x, axis=-1), ones(4, 50))
    assert operations_of(kernel) == {("add", "float32", False): 4 * 49}
    assert kernel.cost.chain == 4 * 49


def test_what_is_added_up_in_a_chain_is_vector_code():
    kernel = kernel_of(lambda x, y: ((x[:, None] - y) ** 2).sum(-1), ones(4), ones(50))
    assert operations_of(kernel) == {
        ("subtract", "float32", True): 200,
        ("square", "float32", True): 200,
        ("add", "float32", True): 200,
    }
    assert kernel.cost.chain == 200


def test_short_chains_overlap_and_integers_are_none():
    short = kernel_of(lambda x: x.sum(axis=-1), ones(1000, 10))
    assert (short.cost.chain, operations_of(short)) == (0, {("add", "float32", False): 10000})
    whole = kernel_of(lambda x: x.sum(axis=-1), ones(1000, 60, dtype=np.int64))
    assert (whole.cost.chain, operations_of(whole)) == (0, {("add", "int64", True): 60000})


# --- what it costs --------------------------------------------------------------------------------


def test_every_special_function_has_a_cost():
    assert all(SCALAR_OPS[name].cost > 16 for name in SPECIAL_FUNCTIONS)


def test_costs_are_in_proportion_to_operations_that_are_measured():
    for op in SCALAR_OPS.values():
        assert (op.cost > 4) == bool(op.like), op.name
        assert not op.like or SCALAR_OPS[op.like].like == op.like
    assert (cost("add"), cost("fma"), cost("cast"), cost("select")) == (1, 1, 1, 0)
    assert cost("add") < cost("divide") < cost("exp") < cost("power")


def with_constants(**constants: Any) -> Machine:
    return replace(REFERENCE, constants=replace(REFERENCE.constants, **constants))


def test_measured_costs_stand_for_those_that_are_like_them():
    machine = with_constants(costs=(("exp", 20.0, 40.0),))
    costs = [
        operation_cost(Operation(name, np.dtype(dtype)), machine)
        for name, dtype in (("exp", "f4"), ("tanh", "f8"), ("tanh", "i8"), ("log", "f8"))
    ]
    assert costs == [20, 40 * 30 / 16, 20 * 30 / 16, cost("log")]
    assert operation_cost(Operation("fma", FLOAT32), machine) == 1


def test_integers_are_divided_by_constants_faster():
    x = ones(10, dtype=np.int32)
    for function in (lambda x: x // 7, lambda x: x % 7):
        kernel = kernel_of(function, x)
        assert operations_of(kernel) == {("divide_by_constant", "int32", True): 10}
        assert kernel.cost.flops == 10
    assert operations_of(kernel_of(lambda x, y: x // y, x, x)) == {
        ("floor_divide", "int32", True): 10
    }


def test_what_fits_a_cache_comes_from_it():
    sizes = (0, 48 * KIB, 48 * KIB + 1, MIB, MIB + 1, 32 * MIB, 32 * MIB + 1)
    assert [level_of(size, REFERENCE) for size in sizes] == [0, 0, 1, 1, 2, 2, 3]
    assert [level_of(size, REFERENCE, 2) for size in sizes] == [0, 0, 0, 1, 1, 2, 3]


def test_cores_share_the_bandwidth_of_memory():
    machine = with_constants(
        bandwidth=(8e9, 4e9, 2e9, 1e9), shared_bandwidth=(20e9, 5e9, 3e9, 0.5e9)
    )
    assert [bandwidth(machine, level) for level in range(4)] == [8e9, 4e9, 2e9, 1e9]
    assert [bandwidth(machine, level, 2) for level in range(4)] == [16e9, 5e9, 3e9, 1e9]


# Predictions for the reference machine, by hand.


def test_a_kernel_that_only_moves_data_takes_as_long_as_the_nearest_cache_that_holds_it():
    constants = REFERENCE.constants
    for size, level in ((1 << 10, 0), (1 << 16, 1), (1 << 20, 2), (1 << 24, 3)):
        kernel = kernel_of(lambda x: x * 2 + 3, ones(size))
        expected = 8 * size / constants.bandwidth[level] + constants.launch
        assert predicted_seconds(kernel, REFERENCE) == pytest.approx(expected, rel=1e-12)
    assert predicted_seconds(kernel, REFERENCE) == pytest.approx(3.947585e-3, rel=1e-6)


def test_a_kernel_that_computes_takes_as_long_as_its_operations():
    kernel = kernel_of(lambda x: np.exp(x) / x, ones(1000, dtype=np.float64))
    assert predicted_seconds(kernel, REFERENCE) == pytest.approx(1000 * (16 + 8) / 67e9 + 5e-9)
    assert predicted_seconds(kernel, REFERENCE_AVX2) == pytest.approx(1000 * 24 / 33.5e9 + 5e-9)


def test_a_kernel_that_waits_for_itself_takes_as_long_as_its_chain():
    kernel = kernel_of(lambda x: np.cumsum(x), ones(1000))
    assert predicted_seconds(kernel, REFERENCE) == pytest.approx(999 * 0.5e-9 + 5e-9)


def test_threads_share_what_there_is_to_compute():
    kernel = kernel_of(lambda x: np.exp(x), ones(1000, 1000))
    alone, shared = (predicted_seconds(kernel, REFERENCE, threads) for threads in (1, 2))
    assert shared == pytest.approx((alone - 5e-9) / 2 + 5e-9 + 0.5e-6)
    assert predicted_seconds(kernel, REFERENCE, 7) == shared  # on two cores


def test_threads_that_find_no_work_take_no_part():
    kernel = kernel_of(lambda x: np.exp(x), ones(1000))
    assert predicted_seconds(kernel, REFERENCE, 2) == predicted_seconds(kernel, REFERENCE)


def test_more_of_anything_never_takes_less():
    few = Cost(0, 1000, 1000, 1000, 1000, 100, ((Operation("exp", FLOAT32), 1000),))
    for machine in (REFERENCE, REFERENCE_AVX2):
        for threads in (1, 2):
            for name in ("bytes_read", "bytes_written", "accesses", "lines", "chain"):
                times = [
                    seconds(replace(few, **{name: 1000 << power}), machine, threads)
                    for power in range(24)
                ]
                assert times == sorted(times)
                assert times[0] < times[-1]


def test_dearer_operations_take_longer():
    kinds = [("add", FLOAT32), ("exp", FLOAT32), ("exp", FLOAT64), ("power", FLOAT64)]
    times = [
        seconds(Cost(0, 0, 0, operations=((Operation(*kind), 1000),)), REFERENCE) for kind in kinds
    ]
    assert times == sorted(set(times))


def chain(x, y):
    return np.tanh(x * y + 1) * (x - y) + np.sqrt(x)


def blur(x):
    rows = x[:-2] + x[1:-1] + x[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_fusion_pays_by_the_model(size: int):
    x = ones(size, size)
    for function, arguments in ((chain, (x, x)), (blur, (x,))):
        fused = lowered(function, *arguments)
        assert fused.predicted_seconds < fused.unfused().predicted_seconds


# --- groups of stages -----------------------------------------------------------------------------


def stages_of(make: Callable[..., Any]) -> tuple[Stage, ...]:
    g = GraphBuilder()
    return build_stages(g.graph(make(g, g.input("x", 4, 6)))).stages


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda g, x: g.op("add", x, x), 24),
        (lambda g, x: g.op("exp", x), 24 * 16),
        (lambda g, x: g.cast(x, "int32"), 24),
        (lambda g, x: g.op("exp", g.transpose(x, 1, 0)), 24 * 16),
        (lambda g, x: g.reduce("sum", x, 1), 24),
        (lambda g, x: g.contract("ij,kj->ik", x, x), 4 * 4 * 6),
        (lambda g, x: g.concat(x, x, axis=0), 0),
    ],
)
def test_what_computing_a_stage_takes(make: Callable[..., Any], expected: int):
    assert additions(stages_of(make)[-1]) == expected


def test_a_tree_takes_its_inner_nodes():
    g = GraphBuilder()
    stages = build_stages(g.graph(g.reduce("sum", g.input("x", 3, 2048), 1))).stages
    assert [additions(stage) for stage in stages] == [3 * 2048, 3 * 2 * 63, 3]


def diamond(g, x):
    e = g.op("exp", x, name="e")
    return g.op("multiply", g.op("add", e, x, name="a"), e, name="b")


def test_what_a_stage_alone_moves():
    e, a, b = map(stage_cost, stages_of(diamond))
    assert [(each.bytes_read, each.bytes_written) for each in (e, a, b)] == [
        (96, 96),
        (2 * 96, 96),
        (2 * 96, 96),
    ]
    assert [each.flops for each in (e, a, b)] == [24] * 3
    assert e.operations == ((Operation("exp", FLOAT32), 24),)


def test_a_stage_reads_no_more_than_it_needs():
    (part,) = stages_of(lambda g, x: g.op("exp", g.slice(x, (slice(0, 1), slice(0, 3)))))
    assert stage_cost(part).bytes_read == 3 * 4
    (filled,) = stages_of(lambda g, x: g.broadcast(float32(1), 3))
    assert stage_cost(filled).bytes_read == 0


def test_elements_put_in_are_not_counted_for_every_place():
    def histogram(i):
        counts = np.zeros(1000, np.int64)
        np.add.at(counts, i, 1)
        return counts

    program = lowered(histogram, np.zeros(50, np.int64))
    (scattering,) = (stage for stage in program.stages.stages if stage.scatter)
    assert prod(scattering.shape) == 1000
    done = dict(stage_cost(scattering).operations)
    assert done[Operation("add", np.dtype(np.int64))] == 50


def test_constants_are_values():
    assert Constants() == Constants()
    assert hash(replace(REFERENCE, name="x")) == hash(replace(REFERENCE, name="x"))
    assert with_constants(launch=1.0) != REFERENCE
    assert REFERENCE.constants == Constants()
