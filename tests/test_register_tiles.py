"""Sums over pairs of rows: planned in tiles, with copies of what lies across, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import PlainNumerics
from tests.racing import interpret_racing
from tinyfuse.compilation import Lowered
from tinyfuse.graph.simplify import simplify
from tinyfuse.loops.ir import Alloc, For, LoopKind, Store, walk_statements
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.schedule import register_tiles
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.interpreter import interpret_stages
from tinyfuse.stage.ir import Stages
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.testing import difference
from tinyfuse.testing.choices import Choices, SeededChoices

ONE_CORE = replace(REFERENCE, cores=1)


def distances(x, y):
    return ((x[:, None] - y) ** 2).sum(-1)


def kernel_matrix(x, y):
    return np.exp(-0.5 * ((x[:, None] - y) ** 2).sum(-1))


def city_blocks(x, y):
    return np.abs(x[:, None] - y).sum(-1)


def farthest(x, y):
    return np.abs(x[:, None] - y).max(-1)


def products(x, y):
    return x @ y.T


def shifted_products(x, y):
    return (x[:, None] * y).sum(-1) + y[:, 0]


def from_each_other(x, y):
    return ((x[:, None] - x) ** 2).sum(-1)


def of_images(x, y):
    a, b = (array.reshape(len(array), -1, 2) for array in (x, y))
    return ((a[:, None] - b) ** 2).sum((-1, -2))


def nearest(x, y):
    return ((x[:, None] - y) ** 2).sum(-1).argmin(-1)


def weights(x, y):
    scores = -((x[:, None] - y) ** 2).sum(-1)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


PAIRS = (
    *(distances, kernel_matrix, city_blocks, farthest, products, shifted_products),
    *(from_each_other, of_images, nearest, weights),
)


def stages_of(function: Callable[..., Any], *arrays: Any) -> Stages:
    return build_stages(simplify(tinyfuse.jit(function).trace(*arrays).graph))


def planned(function: Callable[..., Any], *arrays: Any, machine: Machine = REFERENCE) -> Schedule:
    return default_schedule(stages_of(function, *arrays), machine)[0]


def ones(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def is_tiled(schedule: Schedule) -> bool:
    return schedule.program is not schedule.stages


@pytest.mark.parametrize("function", PAIRS)
def test_pairs_of_rows_are_tiled(function: Callable[..., Any]) -> None:
    assert is_tiled(planned(function, ones(64, 16), ones(64, 16)))


def test_the_plan_of_distances() -> None:
    stages = stages_of(distances, ones(64, 16), ones(40, 16))
    schedule, decisions = default_schedule(stages, REFERENCE)
    assert str(schedule).splitlines() == [
        "schedule distances",
        "  out_local = cache_write(out)",
        "  y_copy = cache_read(y, subtract along j)",
        "  y_copy = pad(y_copy, i < 64)",
        "  subtract = pad(subtract, j < 64)",
        "  square = pad(square, j < 64)",
        "  out_local = pad(out_local, j < 64)",
        "  y_copy: root; layout(i by 32, j, i); i by 32 < 64 padded, i < 64, j < 16",
        "  subtract: inline",
        "  square: inline",
        "  out_local: compute_at(out, j by 32); i by 8 < 64, j by 32 < 64 padded,"
        " k < 16 reduced, i < 64 unroll, j < 64 vector",
        "  out: root; i by 8 < 64 parallel, j by 32 < 40, i < 64, j < 40 vector",
    ]
    told = {decision.producer: str(decision) for decision in decisions}
    assert told["y_copy"] == (
        "y_copy -> out_local: cache_read, out reads it along j, 32 at a time: copied, they lie side"
        " by side"
    )
    assert told["out_local"] == (
        "out_local -> out: cache_write, a tile of 8 by 32 is computed in registers, then written"
    )
    assert list(told) == [stage.name for stage in schedule.stages.stages]


def tile(
    function: Callable[..., Any], machine: Machine, dtype: Any = np.float32
) -> tuple[int, int]:
    """Rows and columns that are added up side by side."""
    arrays = ones(64, 16, dtype=dtype), ones(64, 16, dtype=dtype)
    loops = lower(planned(function, *arrays, machine=machine), machine)
    statements = [s for kernel in loops.kernels for s in walk_statements(kernel.body)]
    (local,) = {s.buffer for s in statements if isinstance(s, Alloc)}
    (reduced,) = [
        loop
        for loop in statements
        if isinstance(loop, For)
        and all(isinstance(inner, For) and stores_to(inner, local) for inner in loop.body)
        and loop.kind is LoopKind.SERIAL
        and loop.variable.extent == 16
    ]
    (width,) = {inner.variable.extent for inner in reduced.body if isinstance(inner, For)}
    assert local.size == len(reduced.body) * width
    return len(reduced.body), width


def stores_to(loop: For, buffer: Any) -> bool:
    return any(isinstance(store, Store) and store.buffer is buffer for store in loop.body)


@pytest.mark.parametrize(
    ("machine", "dtype", "expected"),
    [
        (REFERENCE, np.float32, (8, 32)),
        (REFERENCE, np.float64, (4, 32)),
        (REFERENCE_AVX2, np.float32, (2, 32)),
        (REFERENCE_AVX2, np.float64, (1, 32)),
    ],
)
def test_sums_fill_half_of_the_registers(
    machine: Machine, dtype: Any, expected: tuple[int, int]
) -> None:
    assert tile(distances, machine, dtype) == expected


def test_what_goes_by_rows_has_tiles_of_one_row() -> None:
    schedule = planned(nearest, ones(64, 16), ones(64, 16))
    assert "  sum: compute_at(out, i); i < 64, j by 32 < 64, j < 64 vector" in str(schedule)
    assert "sum_local: compute_at(sum, j by 32)" in str(schedule)
    lowered = tinyfuse.jit(nearest).lower(ones(64, 16), ones(64, 16))
    assert kernels(lowered) == (["nearest_y_copy"], ["nearest_out"])


def kernels(lowered: Lowered) -> tuple[list[str], list[str]]:
    return [k.name for k in lowered.packs], [k.name for k in lowered.kernels]


def test_the_copy_is_no_kernel_but_a_pack() -> None:
    lowered = tinyfuse.jit(kernel_matrix).lower(ones(64, 16), ones(64, 16))
    assert kernels(lowered) == (["kernel_matrix_y_copy"], ["kernel_matrix_out"])
    assert lowered.cost["kernel_matrix_y_copy"].bytes_written == 64 * 16 * 4
    assert lowered.scratch_bytes == 64 * 16 * 4
    assert "kernel_matrix_y_copy" in str(tinyfuse.explain(lowered))


@pytest.mark.parametrize(
    ("why", "function", "arrays"),
    [
        ("too few rows", distances, (ones(7, 64), ones(64, 64))),
        ("too few columns", distances, (ones(64, 64), ones(15, 64))),
        ("short rows", distances, (ones(100, 7), ones(100, 7))),
        ("little to do", distances, (ones(16, 16), ones(32, 16))),
        ("elements of both", lambda x, y: (x * y).sum(-1), (ones(64, 64, 16), ones(64, 64, 16))),
        ("rows alone", lambda x: (x * x).sum(-1), (ones(64, 64, 16),)),
        ("side by side", lambda x, y: x @ y, (ones(64, 64), ones(64, 64))),
        (
            "places by data",
            lambda x, y, at: ((x[:, None] - y[at]) ** 2).sum(-1),
            (ones(64, 16), ones(64, 16), np.arange(64)),
        ),
    ],
)
def test_others_are_not(why: str, function: Callable[..., Any], arrays: tuple[Any, ...]) -> None:
    copied = [
        name for name in str(planned(function, *arrays)).split() if name == "cache_write(out)"
    ]
    assert copied == [], why


SHAPES = [(17, 20, 4), (9, 33, 6), (8, 16, 6), (33, 17, 4)]


@pytest.fixture
def tiles_of_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LEAST_VISITS", "LEAST_LENGTH", "PARALLEL_ELEMENTS"):
        monkeypatch.setattr(register_tiles, limit, 1)


def assert_same_bits(stages: Stages, arrays: list[np.ndarray], machine: Machine) -> Schedule:
    """That a program as planned computes what its stages say; its schedule."""
    schedule = default_schedule(stages, machine)[0]
    verify_stages(schedule.stages)
    loops = lower(schedule, machine)
    verify_loops(loops)
    with np.errstate(all="ignore"):
        expected = interpret_stages(stages, arrays, PlainNumerics())
        results = interpret_racing(loops, arrays, PlainNumerics())
    for want, found in zip(expected, results, strict=True):
        assert difference(np.asarray(want), found.reshape(np.shape(want))) is None
    return schedule


@pytest.mark.usefixtures("tiles_of_anything")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("machine", [REFERENCE, ONE_CORE, REFERENCE_AVX2])
@pytest.mark.parametrize("function", [distances, kernel_matrix, products, nearest])
def test_tiles_keep_the_bits(
    function: Callable[..., Any], machine: Machine, shape: tuple[int, int, int]
) -> None:
    length, random = shape[-1], np.random.default_rng(1)
    x, y = (random.standard_normal((count, length)).astype(np.float32) for count in shape[:2])
    x[1, 1], x[2], y[3, 0], y[0] = np.nan, -0.0, np.inf, 0.0
    assert is_tiled(assert_same_bits(stages_of(function, x, y), [x, y], machine))


def centred(total):
    return total - total.mean(-1, keepdims=True)


def random_pairs(choices: Choices) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A function of pairs of rows, perhaps of several at once, and its arguments."""
    combine = choices.choose((np.subtract, np.multiply, np.add, np.maximum))
    of_each = choices.choose((np.square, np.abs, np.negative, lambda element: element))
    reduce = choices.choose((np.sum, np.sum, np.max, np.min))
    after = choices.choose((lambda total: total, np.sqrt, centred, np.argmax))
    lengths = (1 + choices.below(4), 1 + choices.below(3))[: 1 + choices.below(2)]
    batch = (2,) * choices.below(2)
    random = np.random.default_rng(choices.below(1000))
    dtype = choices.choose((np.float32, np.float64))
    x, y = (
        random.standard_normal((*batch, count, *lengths)).astype(dtype)
        for count in (8 + choices.below(12), 8 + choices.below(40))
    )

    def pairs(x, y):
        at = len(batch)
        rows, columns = np.expand_dims(x, at + 1), np.expand_dims(y, at)
        axes = tuple(range(-len(lengths), 0))
        return after(reduce(of_each(combine(rows, columns)), axis=axes))

    return pairs, [x, y]


@pytest.mark.usefixtures("tiles_of_anything")
def test_random_pairs_keep_the_bits() -> None:
    tiled = 0
    for seed in range(60):
        choices = SeededChoices(seed)
        function, arrays = random_pairs(choices)
        machine = choices.choose((REFERENCE, ONE_CORE, REFERENCE_AVX2))
        tiled += is_tiled(assert_same_bits(stages_of(function, *arrays), arrays, machine))
    assert tiled > 25


@pytest.mark.parametrize("function", PAIRS)
def test_the_c_of_tiles_gives_the_same_bits(function: Callable[..., Any]) -> None:
    random = np.random.default_rng(2)
    x, y = (random.standard_normal((count, 18)).astype(np.float32) for count in (61, 43))
    lowered = tinyfuse.jit(function).lower(x, y)
    found, expected = lowered.compile()(x, y), lowered.unfused().compile()(x, y)
    assert difference(expected, found) is None
