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
from tinyfuse.errors import ScheduleError
from tinyfuse.graph.simplify import simplify
from tinyfuse.loops.ir import Alloc, Buffer, For, LoopKind, Scope, Store, walk_statements
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.lower.registers import with_registers
from tinyfuse.machine import MIB, REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.schedule import pairs, register_tiles
from tinyfuse.schedule.edits import root_plan
from tinyfuse.schedule.places import REGION_LIMIT, Loop
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.reading import read_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.expr import Cast, Const, Load, Op, walk
from tinyfuse.stage.index import Axis, affine
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
    stages = stages_of(distances, ones(64, 16), ones(250, 16))
    schedule, decisions = default_schedule(stages, ONE_CORE)
    assert str(schedule).splitlines() == [
        "schedule distances",
        "  out_local = cache_write(out)",
        "  y_copy = cache_read(y, subtract along j)",
        "  y_copy = pad(y_copy, i < 256)",
        "  subtract = pad(subtract, j < 256)",
        "  square = pad(square, j < 256)",
        "  out_local = pad(out_local, j < 256)",
        "  y_copy: compute_at(out, j by 64); layout(i by 64, j, i); i by 64 < 256 padded, i < 256,"
        " j < 16",
        "  subtract: inline",
        "  square: inline",
        "  out_local: compute_at(out, i by 5); j by 64 < 256 padded, i by 5 < 64,"
        " k < 16 reduced, i < 64 unroll, j < 256 vector",
        "  out: root; j by 64 < 250, i by 5 < 64 shifted, i < 64, j < 250 vector",
    ]
    told = {decision.producer: str(decision) for decision in decisions}
    assert told["y_copy"] == (
        "y_copy -> out_local: cache_read, out reads it along j, 64 at a time: copied, they lie side"
        " by side"
    )
    assert told["out_local"] == (
        "out_local -> out: cache_write, a tile of 5 by 64 is computed in registers, then written"
    )
    assert list(told) == [stage.name for stage in schedule.stages.stages]


def test_tiles_of_one_row_are_not_turned() -> None:
    def of_slices(x, y):
        return x @ y[1:-2, 3:]

    arrays = ones(60, 70, dtype=np.int64), ones(73, 173, dtype=bool)
    assert is_tiled(planned(of_slices, *arrays))
    assert not is_tiled(planned(of_slices, *arrays, machine=REFERENCE_AVX2))


def test_narrow_tiles_share_rows_and_longer_pieces_of_columns() -> None:
    schedule = str(planned(plain, ones(60, 100), ones(100, 512), machine=REFERENCE_AVX2))
    assert "y_copy: compute_at(out, j by 64); layout(j by 16, i, j)" in schedule
    assert "out: root; j by 64 < 512 parallel, i by 6 < 60, j by 16 < 512, i < 60" in schedule
    assert "j by 64" not in str(
        planned(plain, ones(60, 100), ones(100, 520), machine=REFERENCE_AVX2)
    )


def test_few_columns_leave_the_rows_to_the_threads() -> None:
    schedule = str(planned(distances, ones(64, 16), ones(64, 16)))
    assert "  y_copy: root; layout(i by 64, j, i)" in schedule
    assert "  out: root; i by 5 < 64 parallel, j by 64 < 64, i < 64, j < 64 vector" in schedule


def tile(function: Callable[..., Any], machine: Machine, dtype: Any) -> tuple[int, int, Scope]:
    """Rows and columns that are added up side by side, and where."""
    arrays = ones(48, 16, dtype=dtype), ones(192, 16, dtype=dtype)
    loops = lower(planned(function, *arrays, machine=machine), machine)
    statements = [s for kernel in loops.kernels for s in walk_statements(kernel.body)]
    buffers = {s.buffer.name: s.buffer for s in statements if isinstance(s, Alloc)}
    local = buffers["out_local"]
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
    return len(reduced.body), width, local.scope


def convolution(x, w):
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwij,ocij->nohw", windows, w), 0)


def channels_last(x, w):
    x, w = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)
    x = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, w)


def pooled(x, w):
    y = convolution(x, w)
    n, c, h, v = y.shape
    return y.reshape(n, c, h // 2, 2, v // 2, 2).max(axis=(3, 5))


def pointwise(x, w):
    return np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]) + x[:, :1]


@pytest.mark.parametrize(
    ("function", "kernels_", "columns"),
    [
        (convolution, 2, "i1 < 64 vector"),
        (channels_last, 2, "i3 < 64 vector"),
        (pooled, 2, "i1 < 64 vector"),
        (pointwise, 1, "k < 784 vector"),
    ],
)
def test_convolutions_are_tiled_over_the_channels(
    function: Callable[..., Any], kernels_: int, columns: str
) -> None:
    lowered = tinyfuse.jit(function).lower(ones(1, 16, 28, 28), ones(64, 16, 3, 3))
    assert len(lowered.kernels) == kernels_
    stages = [s for s in lowered.schedule.stages.stages if s.name.endswith("_local")]
    (local,) = [stage for stage in stages if sum(axis.extent for axis in stage.reduce_axes) >= 16]
    line = next(s for s in str(lowered.schedule).splitlines() if s.startswith(f"  {local.name}:"))
    assert line.endswith(columns)


@pytest.mark.parametrize("function", [convolution, channels_last, pooled, pointwise])
@pytest.mark.parametrize(
    "shapes", [((1, 16, 28, 28), (64, 16, 3, 3)), ((2, 5, 18, 22), (7, 5, 3, 3))]
)
def test_tiled_convolutions_keep_the_bits(function: Callable[..., Any], shapes: Any) -> None:
    random = np.random.default_rng(5)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
    x[0, 1, 2, 3], x[0, 2, 3], w[1, 1] = np.nan, -0.0, np.inf
    lowered = tinyfuse.jit(function).lower(x, w)
    found, expected = lowered.compile()(x, w), lowered.unfused().compile()(x, w)
    assert difference(expected, found) is None


def stores_to(loop: For, buffer: Any) -> bool:
    return any(isinstance(store, Store) and store.buffer is buffer for store in loop.body)


@pytest.mark.parametrize(
    ("function", "machine", "dtype", "expected"),
    [
        (distances, REFERENCE, np.float32, (6, 64, Scope.VECTORS)),
        (distances, REFERENCE, np.float64, (6, 32, Scope.VECTORS)),
        (distances, REFERENCE_AVX2, np.float32, (6, 16, Scope.VECTORS)),
        (distances, REFERENCE_AVX2, np.float64, (6, 8, Scope.VECTORS)),
        (products, REFERENCE, np.float32, (6, 64, Scope.VECTORS)),
        (products, REFERENCE, np.int64, (6, 32, Scope.VECTORS)),
        (products, REFERENCE, np.int8, (8, 192, Scope.VECTORS)),
        (products, REFERENCE_AVX2, np.uint16, (6, 32, Scope.VECTORS)),
        (products, REFERENCE, np.bool_, (8, 192, Scope.VECTORS)),
        (city_blocks, REFERENCE, np.float32, (8, 32, Scope.STACK)),
        (city_blocks, REFERENCE_AVX2, np.float64, (1, 32, Scope.STACK)),
    ],
)
def test_tiles_fill_the_registers(
    function: Callable[..., Any],
    machine: Machine,
    dtype: Any,
    expected: tuple[int, int, Scope],
) -> None:
    assert tile(function, machine, dtype) == expected


def wrapping_distances(x, y):
    return ((x[:, None] - y) ** 2).sum(-1, dtype=x.dtype)


@pytest.mark.parametrize("function", [products, wrapping_distances])
@pytest.mark.parametrize("dtype", [*map(np.dtype, "bhilBHIL"), np.dtype(bool)])
@pytest.mark.parametrize("shape", [(14, 128), (31, 70)])
def test_integers_in_vectors_wrap_around_as_they_do_alone(
    function: Callable[..., Any], dtype: np.dtype, shape: tuple[int, int]
) -> None:
    if dtype.kind == "b" and function is wrapping_distances:
        pytest.skip("numpy subtracts no bools")
    random = np.random.default_rng(2)
    rows, columns = shape
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x, y = (
        random.integers(low, high, (count, 70), dtype=np.int64 if low else np.uint64, endpoint=True)
        for count in (rows, columns)
    )
    x, y = x.astype(dtype), y.astype(dtype)
    lowered = tinyfuse.jit(function).lower(x, y)
    assert "_x" in lowered.as_text("c")
    assert difference(function(x, y), lowered.compile()(x, y)) is None


@pytest.mark.parametrize("dtypes", ["int8 int32", "int32 uint8", "int64 int16", "uint16 float32"])
def test_numbers_of_products_are_converted_once(dtypes: str) -> None:
    def product(x, w):
        return x @ w

    random = np.random.default_rng(2)
    x, w = (
        random.integers(0, 100, shape).astype(dtype)
        for shape, dtype in zip([(70, 90), (90, 150)], dtypes.split(), strict=True)
    )
    lowered = tinyfuse.jit(product).lower(x, w)
    loops = lower(planned(product, x, w), REFERENCE)
    tiles = [
        s.buffer for k in loops.kernels for s in walk_statements(k.body) if is_tile_in_registers(s)
    ]
    assert {buffer.dtype for buffer in tiles} == {np.result_type(x, w)}
    stored = [s for k in loops.kernels for s in walk_statements(k.body) if isinstance(s, Store)]
    assert not any(s.buffer in tiles and has_cast(s.value) for s in stored)
    assert difference(product(x, w), lowered.compile()(x, w)) is None


def is_tile_in_registers(statement: Any) -> bool:
    return isinstance(statement, Alloc) and statement.buffer.scope is Scope.VECTORS


def has_cast(value: Any) -> bool:
    return any(isinstance(node, Cast) for node in walk(value))


def test_what_goes_by_rows_takes_blocks_of_them() -> None:
    schedule = str(planned(nearest, ones(200, 16), ones(120, 16)))
    assert "sum_local: compute_at(sum, i by 6)" in schedule
    assert "  sum: compute_at(out, i by 48); j by 64 < 128 padded, i by 6 < 200" in schedule
    assert "  out: root; i by 48 < 200 parallel, i < 200, k < 120 reduced" in schedule
    assert "  y_copy: compute_at(sum, j by 64)" in schedule
    lowered = tinyfuse.jit(nearest).lower(ones(200, 16), ones(120, 16))
    assert kernels(lowered) == ([], ["nearest_out"])


def test_what_many_blocks_need_is_copied_once() -> None:
    schedule = str(planned(nearest, ones(2000, 16), ones(120, 16)))
    assert "  y_copy: root; layout(i by 64, j, i)" in schedule


def layer_norm(x, y):
    z = x @ y
    z = z - z.mean(-1, keepdims=True)
    return z / np.sqrt((z * z).mean(-1, keepdims=True) + np.float32(1e-5))


def two_layers(x, y):
    return np.tanh(x @ y) @ y


def scaled(x, y):
    return (2 * x + 1) @ y.T


def siblings(x, y):
    return x @ y, x @ y.T, x @ (y + 1)


def attention(x, y):
    scores = x @ y.T
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ y


ROW_PROGRAMS = (layer_norm, two_layers, scaled, siblings, attention)


@pytest.mark.parametrize(
    ("function", "count"), [(f, 2 if f is siblings else 1) for f in ROW_PROGRAMS]
)
def test_products_within_rows_are_tiled_in_one_kernel(
    function: Callable[..., Any], count: int
) -> None:
    lowered = tinyfuse.jit(function, rewrites=()).lower(ones(200, 96), ones(96, 96))
    stages = [name for kernel in lowered.kernels for name in kernel.stages]
    assert len(lowered.kernels) == count
    assert any(name.endswith("_local") for name in stages)
    assert "i by 48 < 200 parallel" in str(lowered.schedule)


@pytest.mark.parametrize("function", ROW_PROGRAMS)
@pytest.mark.parametrize("rows", [13, 50, 201])
def test_products_within_rows_keep_the_bits(function: Callable[..., Any], rows: int) -> None:
    random = np.random.default_rng(3)
    x, y = (random.standard_normal((n, 70)).astype(np.float32) for n in (rows, 70))
    x[1, 1], x[2], y[3, 0], y[0] = np.nan, -0.0, np.inf, 0.0
    lowered = tinyfuse.jit(function, rewrites=()).lower(x, y)
    found, expected = lowered.compile()(x, y), lowered.unfused().compile()(x, y)
    for one, other in zip(tuple(found), tuple(expected), strict=True):
        assert difference(other, one) is None


def kernels(lowered: Lowered) -> tuple[list[str], list[str]]:
    return [k.name for k in lowered.packs], [k.name for k in lowered.kernels]


def test_the_copy_is_no_kernel_but_a_pack() -> None:
    lowered = tinyfuse.jit(kernel_matrix).lower(ones(64, 16), ones(64, 16))
    assert kernels(lowered) == (["kernel_matrix_y_copy"], ["kernel_matrix_out"])
    assert lowered.cost["kernel_matrix_y_copy"].bytes_written == 64 * 16 * 4
    assert lowered.scratch_bytes == 64 * 16 * 4
    assert "kernel_matrix_y_copy" in str(tinyfuse.explain(lowered))


def plain(x, y):
    return x @ y


def of_columns(x, y):
    return x.T @ y


@pytest.mark.parametrize(
    ("function", "shapes", "expected"),
    [
        (plain, ((300, 100), (100, 250)), (6, 64)),
        (plain, ((300, 100), (100, 200)), (12, 32)),
        (plain, ((300, 100), (100, 10)), (24, 16)),
        (plain, ((300, 100), (100, 30)), (12, 32)),
        (plain, ((300, 4096), (4096, 200)), (12, 32)),
        (plain, ((4, 100), (100, 1000)), (4, 96)),
        (plain, ((7, 100), (100, 512)), (7, 32)),
        (plain, ((21, 100), (100, 480)), (7, 48)),
        (plain, ((35, 100), (100, 512)), (5, 64)),
        (of_columns, ((100, 300), (100, 250)), (6, 64)),
        (products, ((2, 100), (200, 100)), (2, 128)),
    ],
)
def test_the_tile_fits_the_shape(
    function: Callable[..., Any], shapes: Any, expected: tuple[int, int]
) -> None:
    x, y = (ones(*shape) for shape in shapes)
    stages = stages_of(function, x, y)
    told = [str(decision) for decision in default_schedule(stages, REFERENCE)[1]]
    height, width = expected
    assert any(f"a tile of {height} by {width} is computed in registers" in each for each in told)


def test_rows_that_lie_across_are_copied_in_panels_too() -> None:
    schedule = planned(of_columns, ones(100, 300), ones(100, 1000), machine=ONE_CORE)
    assert "x_copy: root; layout(j by 6, i, j)" in str(schedule)
    assert "y_copy: compute_at(out, j by 64); layout(j by 64, i, j)" in str(schedule)


def test_rows_that_lie_close_together_are_not_copied() -> None:
    assert "x_copy" not in str(planned(of_columns, ones(9000, 64), ones(9000, 40)))
    assert "x_copy: root" in str(planned(of_columns, ones(9000, 65), ones(9000, 40)))


def test_panels_of_long_sums_are_copied_within_a_block() -> None:
    schedule = str(planned(plain, ones(48, 9000), ones(9000, 70)))
    assert "  y_copy: compute_at(out_blocks, b); layout(j by 16, i, j)" in schedule
    assert "j by 16 < 80 padded, b < 3, i by 24 < 48" in schedule


def test_long_sums_are_tiled_block_by_block() -> None:
    schedule = str(planned(plain, ones(48, 9000), ones(9000, 64)))
    assert "out_blocks_local: compute_at(out_blocks, i by 6)" in schedule
    random = np.random.default_rng(4)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in ((50, 9000), (9000, 70)))
    lowered = tinyfuse.jit(plain).lower(x, y)
    found, expected = lowered.compile()(x, y), lowered.unfused().compile()(x, y)
    assert difference(expected, found) is None


@pytest.mark.parametrize("cores", [1, 2])
def test_products_of_one_array_are_one_kernel_column_by_column(cores: int) -> None:
    machine = replace(REFERENCE, cores=cores)
    schedule = str(planned(siblings, ones(60, 300), ones(300, 300), machine=machine))
    assert "  out: compute_with(out_2, j by 64, j along j); j by 64 < 300, i by 6 < 60" in schedule
    assert schedule.count("  w_copy") == 0
    assert schedule.count("_copy: compute_at(") == 2


@pytest.mark.parametrize(
    ("why", "function", "arrays"),
    [
        ("one row across", city_blocks, (ones(1, 64), ones(512, 64))),
        ("short rows", distances, (ones(100, 7), ones(100, 7))),
        ("little to do", distances, (ones(16, 16), ones(32, 16))),
        ("elements of both", lambda x, y: (x * y).sum(-1), (ones(64, 64, 16), ones(64, 64, 16))),
        ("rows alone", lambda x: (x * x).sum(-1), (ones(64, 64, 16),)),
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
        monkeypatch.setattr(pairs if hasattr(pairs, limit) else register_tiles, limit, 1)


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


def centroids(x, means):
    nearest_one = distances(x, means).argmin(1)
    belongs = (nearest_one[:, None] == np.arange(len(means))).astype(x.dtype)
    return (belongs.T @ x) / np.maximum(belongs.sum(0)[:, None], 1)


def test_what_other_sums_read_too_is_copied_before() -> None:
    random = np.random.default_rng(2)
    arrays = [random.random((120, 8)), random.random((300, 8))]
    schedule = assert_same_bits(stages_of(centroids, *arrays), arrays, REFERENCE)
    assert "equal_copy: root" in str(schedule)


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


def by_hand(memory: Any, height: int = 4, function: Callable[..., Any] = plain) -> Schedule:
    """A schedule for all pairs, tiled as a user would, in some memory."""
    stages = stages_of(function, ones(32, 20), ones(*(20, 64) if function is plain else (64, 20)))
    schedule = Schedule(stages, plans_of(stages), "by hand")
    *_, out = schedule.stages.stages
    i, j = out.axes
    schedule = schedule.tile(out, i, j, height, 32)
    schedule = schedule.reorder(out, *out.reduce_axes, i, j).vectorize(out, j)
    return schedule.unroll(out, i).cache_write(out, Loop(j, 32), memory)


def plans_of(stages: Stages) -> dict[Any, Any]:
    return {
        stage: replace(root_plan(stage), inlined=stage not in stages.outputs)
        for stage in stages.stages
    }


def test_registers_can_be_asked_for() -> None:
    schedule = by_hand("registers")
    assert "  out_local: compute_at(out, j by 32); registers; " in str(schedule)
    verify_loops(lower(schedule, REFERENCE))
    text = str(schedule)
    stages, plans = read_schedule(text, schedule.program, "a text")
    assert str(Schedule(stages, plans, "read")) == text


@pytest.mark.parametrize(
    ("memory", "options", "machine", "message"),
    [
        (
            "registers",
            {"height": 16},
            REFERENCE,
            "32 vectors are more than the 28 that 32 registers",
        ),
        ("registers", {}, REFERENCE_AVX2, "16 vectors are more than the 12 that 16 registers"),
        (
            "registers",
            {"function": city_blocks},
            REFERENCE,
            "not all its elements are used vector by vector",
        ),
        ("tape", {}, REFERENCE, "cache_write(out, 'tape'): it is no kind of memory"),
    ],
)
def test_registers_that_there_are_not(
    memory: Any, options: Any, machine: Machine, message: str
) -> None:
    with pytest.raises(ScheduleError) as caught:
        lower(by_hand(memory, **options), machine)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("function", "length"), [(plain, 4096), (siblings, 2048), (layer_norm, 2048)]
)
@pytest.mark.parametrize("l2", [MIB, 4 * MIB])
def test_panels_leave_room_on_the_stack(function: Callable[..., Any], length: int, l2: int) -> None:
    machine = replace(REFERENCE, l2=l2)
    x = ones(96, length)
    stages = stages_of(function, x, ones(length, 512 if function is plain else length))
    loops = lower(default_schedule(stages, machine)[0], machine)
    for kernel in loops.kernels:
        buffers = {s.buffer for s in walk_statements(kernel.body) if isinstance(s, Alloc)}
        kept = [buffer.nbytes for buffer in buffers if buffer.scope is Scope.STACK]
        assert sum(kept) <= 2 * REGION_LIMIT + 4096


def tile_and_loop(kind: LoopKind, place: int, extent: int) -> list[Any]:
    """A tile that a loop writes, `out[j + place] = out[j] + tile[j]`, after one that fills it."""
    tile = Buffer("tile", np.dtype("f4"), 32, Scope.STACK)
    out = Buffer("out", np.dtype("f4"), 64, Scope.ARGUMENT)
    i, j = Axis("i", 32), Axis("j", extent)
    fill = For(i, LoopKind.VECTOR, (Store(tile, affine(i), Const(np.float32(1))),))
    total = Op("add", (Load(out, (affine(j),)), Load(tile, (affine(j),))), tile.dtype)
    return [Alloc(tile), fill, For(j, kind, (Store(out, affine(j) + place, total),))]


@pytest.mark.parametrize(
    ("kind", "place", "extent", "scope"),
    [
        (LoopKind.VECTOR, 0, 32, Scope.VECTORS),
        (LoopKind.SERIAL, 1, 32, Scope.STACK),  # each step needs the one before
        (LoopKind.VECTOR, 0, 24, Scope.STACK),  # half a vector is computed with
    ],
)
def test_tiles_in_registers_are_used_by_independent_steps(
    kind: LoopKind, place: int, extent: int, scope: Scope
) -> None:
    statements = tile_and_loop(kind, place, extent)
    alloc, *_ = with_registers(statements, REFERENCE)
    assert isinstance(alloc, Alloc)
    assert alloc.buffer.scope is scope


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.float32])
def test_a_sum_of_vectors_is_chosen_where_no_row_is_written_over(dtype: type) -> None:
    """gcc takes the vectors on the two sides of `?:` for such of two types, unless told."""

    def function(x: Any) -> Any:
        x = x + x.sum(axis=1, keepdims=True, dtype=x.dtype)
        x[1::2] = 7
        return np.concatenate([x[:, :, :1], np.diff(x, axis=2)], 2)

    x = np.arange(8 * 8 * 64).reshape(8, 8, 64).astype(dtype)
    np.testing.assert_array_equal(tinyfuse.jit(function)(x), function(x))
