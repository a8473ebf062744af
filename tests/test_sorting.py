"""Sorting at every level: rows in ascending order, or the positions that put them there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import GraphBuilder
from tests.stage_checks import additions, checked_stages
from tests.test_lower import assert_same_bits
from tests.test_schedule import named
from tests.test_trace_functions import DTYPES, compare, sample
from tests.test_transposes import ZIG, needs_zig
from tests.trace_checking import check
from tinyfuse.dtypes import FLOAT32, INT64
from tinyfuse.emit.c import emit_c
from tinyfuse.emit.prelude import network_pairs
from tinyfuse.errors import (
    DataDependentShapeError,
    InvalidArgumentError,
    ScheduleError,
    UnsupportedArgumentError,
    VerificationError,
)
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.scalar_ops import cost
from tinyfuse.graph.simplify import simplify
from tinyfuse.loops.ir import Buffer, Kernel, Loops, Row, Scope, SortRow, walk_statements
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.sorting import BLOCKS, block_for
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.runtime.toolchain import find_compiler
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.analysis import Kind, comparisons, kind
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Sort, Stage, Stages
from tinyfuse.stage.printer import stages_text
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.testing import Case, Ladder, Variant, difference
from tinyfuse.testing.compiled import Library
from tinyfuse.testing.variants import fused as fused_schedule

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# --- numpy's functions ----------------------------------------------------------------------------

FUNCTIONS: list[Callable[..., Any]] = [
    np.sort,
    lambda x: np.sort(x, axis=0),
    lambda x: np.sort(x, axis=None),
    lambda x: np.sort(x, 1, "stable"),
    lambda x: np.sort(x, kind="heapsort"),
    lambda x: np.sort(x, kind="Mergesort"),
    lambda x: np.sort(x, stable=True),
    lambda x: np.sort(x, kind="bubble"),
    lambda x: np.sort(x, kind="stable", stable=True),
    lambda x: np.sort(x, order="a"),
    lambda x: np.sort(x, axis=5),
    lambda x: np.sort(x.T)[::-1],
    lambda x: np.argsort(x, kind="stable"),
    lambda x: x.argsort(axis=0),
    lambda x: x.argsort(None),
    lambda x: x.argsort(axis=1),
    lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0),
    lambda x: np.lexsort(x),
    lambda x: np.lexsort((x, -1 * x, x > 0), axis=0),
    lambda x: np.lexsort([]),
    lambda x: np.median(x),
    lambda x: np.median(x, axis=0),
    lambda x: np.median(x, axis=(0, -1), keepdims=True),
    lambda x: np.quantile(x, 0.3),
    lambda x: np.quantile(x, [0, 0.5, 0.99], axis=-1),
    lambda x: np.quantile(x, np.float32(0.7), axis=0, keepdims=True),
    lambda x: np.quantile(x, [[0.2], [0.4]], axis=1),
    lambda x: np.quantile(x, [[[0.2]]]),
    lambda x: np.quantile(x, 1.5),
    lambda x: np.quantile(x, np.nan),
    lambda x: np.quantile(x, 1, axis=0),
    lambda x: np.percentile(x, 90),
    lambda x: np.percentile(x, (10, 50), axis=0, method="midpoint"),
    lambda x: np.percentile(x, 101),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_all_dtypes_and_shapes(function: Callable[..., Any]) -> None:
    for dtype in DTYPES:
        compare(function, sample((3, 4), dtype))
    for shape in [(5,), (), (1, 4), (4, 1), (0, 3), (3, 0), (2, 3, 4)]:
        x = sample(shape, "float32")
        compare(function, x)
        compare(function, np.where(np.isnan(x), np.float32(0), x))


METHODS = (
    "linear lower higher nearest midpoint interpolated_inverted_cdf hazen weibull median_unbiased "
    "normal_unbiased"
)


@pytest.mark.parametrize("method", METHODS.split(" "))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_methods_of_quantiles(method: str, dtype: str) -> None:
    for count in (1, 2, 7, 10):
        x = np.abs(sample((count, 3), dtype))
        for q in (0.0, 0.1, 0.5, 0.77, 1.0, np.float64(0.3), [0.01, 0.5, 0.999]):
            if x.dtype.kind == "f" and type(q) is np.float64:
                x = np.nan_to_num(x)  # numpy has another dtype for a NaN in place of all
            check(lambda x, q=q: np.quantile(x, q, axis=0, method=method), x)
            check(lambda x, q=q: np.percentile(x, np.multiply(q, 100), axis=0, method=method), x)


WHOLE: tuple[Any, ...] = (
    *(0, 1, True, False, [0, 1], [True, False], [[0, 1]], [0.25, 1], [], [[]]),
    *(np.float32(0.5), np.int64(1), np.uint8(0), np.bool_(True)),
)


@pytest.mark.parametrize("method", METHODS.split(" "))
@pytest.mark.parametrize("function", [np.quantile, np.percentile])
def test_quantiles_at_whole_numbers(function: Callable[..., Any], method: str) -> None:
    for dtype in ("float32", "float64", "int32", "int64", "uint8", "bool"):
        for values in ([3], [3, 1], [3, 1, 2, 5, 4], [np.inf, 1, -np.inf]):
            if dtype[0] != "f" and np.inf in values:
                continue
            x = np.array(values).astype(dtype)
            for q in WHOLE:
                compare(lambda x, q=q: function(x, q, method=method), x)
                compare(lambda x, q=q: function(x[:, None], q, axis=0, method=method), x)


@pytest.mark.parametrize("method", ["weibull", "interpolated_inverted_cdf"])
def test_the_ends_are_the_least_and_the_greatest(method: str) -> None:
    x = np.array([3.0, 1, 2, 5, 4])
    both = tinyfuse.jit(lambda x: np.quantile(x, [0, 1], method=method))(x)
    assert (both.dtype, both.tolist()) == (np.float64, [1.0, 5.0])
    one = tinyfuse.jit(lambda x, q: np.quantile(x, q, method=method))
    found = [one(x.astype(np.int64), q) for q in (0, 1, False, True)]
    assert found == [1, 5, 1, 5]
    assert [type(each) for each in found] == [np.float64] * 2 + [np.int64] * 2


def test_quantiles_of_an_argument_compile_its_value_in() -> None:
    quantile = tinyfuse.jit(lambda x, q: np.quantile(x, q))
    x = np.arange(9.0)
    assert [quantile(x, 0.25), quantile(x, 0.5)] == [2.0, 4.0]
    with pytest.raises(UnsupportedArgumentError, match="known at run time only: pass Python num"):
        quantile(x, np.array([0.5]))


def in_place(x: Any) -> Any:
    x.sort()
    y = x * 2
    y[::-1].sort(axis=0)
    y.T[1:].sort(0, "stable")
    return y


def through_a_copy(x: Any) -> Any:
    y = x.T.reshape(-1)
    y.sort()
    x.reshape(-1)[::3].sort()
    return y


@pytest.mark.parametrize("function", [in_place, through_a_copy])
@pytest.mark.parametrize("dtype", ["float64", "int16", "bool"])
def test_sorting_in_place(function: Callable[..., Any], dtype: str) -> None:
    x = sample((4, 5), dtype)
    check(function, x)
    check(function, x[::-1, ::2])
    check(function, x.T)
    for layout in (x, x[:, ::-1]):
        ours, numpys = layout.copy(), layout.copy()
        result = tinyfuse.jit(function)(ours)
        np.testing.assert_array_equal(result, function(numpys))
        np.testing.assert_array_equal(ours, numpys)


def test_what_cannot_be_sorted_in_place() -> None:
    x = np.arange(4.0)
    x.flags.writeable = False
    compare(lambda x: x.sort(), x)
    compare(lambda x: x.sort(axis=3), np.ones(3))
    compare(lambda x: x.sort(), np.float64(3))
    compare(lambda x: np.broadcast_to(x, (3, 4)).sort(), np.ones(4))


def searched(x: Any, v: Any) -> Any:
    places = [np.searchsorted(x, v, side) for side in ("left", "right")]
    bins = [np.digitize(v, edges, right) for edges in (x, x[::-1]) for right in (False, True)]
    return (*places, *bins, x.searchsorted(v, sorter=np.argsort(x)))


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 18, 31, 32, 33, 100])
def test_places_in_sorted_arrays(count: int) -> None:
    ties = np.sort(np.random.default_rng(count).integers(-9, 9, count))
    values = np.array([-100, -9, -3, -1, 0, 0, 4, 8, 9, 100])
    check(searched, ties, values)
    check(searched, ties.astype(np.float32), values[:, None] / 2.0)
    check(searched, ties, values[3])
    check(searched, (ties + 9).astype(np.uint8), values.astype(np.int8))
    special = np.sort(np.concatenate([ties[3:], [-np.inf, np.inf, np.nan, np.nan, -0.0]]))
    nans = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2])
    check(lambda x, v: [np.searchsorted(x, v, side) for side in ("left", "right")], special, nans)


def test_bins_that_neither_ascend_nor_descend_raise() -> None:
    digitize = tinyfuse.jit(lambda v, bins: np.digitize(v, bins))
    np.testing.assert_array_equal(digitize(np.ones(2), np.array([1.0, 1, 2])), [2, 2])
    with pytest.raises(InvalidArgumentError, match="bins must be monotonically increasing or"):
        digitize(np.ones(2), np.array([1.0, 3, 2]))
    compare(np.digitize, np.ones(2), np.ones((2, 2)))


@pytest.mark.parametrize(
    ("function", "error", "remedy"),
    [
        (np.unique, DataDependentShapeError, "write x = np.sort(x), and mark what is new"),
        (lambda x: np.median(x, overwrite_input=True), UnsupportedArgumentError, "leave it out"),
        (
            lambda x: np.quantile(x, 0.5, weights=x),
            UnsupportedArgumentError,
            "weights= of quantiles is",
        ),
        (
            lambda x: np.quantile(x, 0.5, method="inverted_cdf"),
            UnsupportedArgumentError,
            "method='inverted_cdf' of quantiles is not supported, but linear, lower, higher",
        ),
    ],
)
def test_what_is_refused_has_a_remedy(function: Any, error: type, remedy: str) -> None:
    with pytest.raises(error, match=re.escape(remedy)):
        tinyfuse.jit(function)(np.arange(6.0))


def test_positions_of_sorted_elements_need_no_check() -> None:
    def ordered_rows(x: Any, y: Any) -> Any:
        order = np.argsort(x, axis=0)
        found = x[order[:, 0]], np.take_along_axis(x, order[::2].T, axis=1), x[0][x.argmax(axis=1)]
        order[0] = y  # from here on they can be anything
        return (*found, x[order[0]])

    x = sample((4, 4), "float64")
    traced = check(ordered_rows, x, np.array([0, -1, 2, 3]))
    assert [each.error.__name__ for each in traced.checks] == ["IndexingError"]
    (wrapped,) = [eqn for eqn in traced.graph.eqns if eqn.params.get("op") == "wrap_index"]
    assert wrapped.output.shape == (4,)


# --- graph ----------------------------------------------------------------------------------------


def ordered(build: GraphBuilder) -> Graph:
    x = build.input("x", 5, 7)
    doubled = build.op("add", x, x, name="doubled")
    return build.graph(
        build.apply(p.sort, doubled, name="rows", axis=1, kind="quicksort"),
        build.apply(p.argsort, x, name="order", axis=0, kind="stable"),
    )


def test_graphs_print_the_axis() -> None:
    text = str(ordered(GraphBuilder("ordered")))
    assert "rows: float32[5, 7] = sort[axis=1] doubled" in text
    assert "order: int64[5, 7] = argsort[axis=0] x" in text


@pytest.mark.parametrize(
    ("primitive", "shape", "params", "message"),
    [
        (p.sort, (2, 3), {"axis": 2, "kind": "stable"}, "sort: axis 2 of float32[2, 3]"),
        (p.argsort, (), {"axis": 0, "kind": "stable"}, "argsort: axis 0 of float32[]"),
        (p.sort, (3,), {"axis": 0, "kind": "bubble"}, "sort: there is no kind bubble"),
        (
            p.argsort,
            (1 << 32,),
            {"axis": 0, "kind": "stable"},
            "argsort: float32[4294967296] has too many elements along an axis",
        ),
    ],
)
def test_what_is_no_sort(primitive: Any, shape: Any, params: Any, message: str) -> None:
    build = GraphBuilder("f")
    with pytest.raises(ValueError, match=re.escape(message)):
        build.apply(primitive, build.input("x", *shape), **params)


def test_what_is_sorted_stays() -> None:
    build = GraphBuilder("twice")
    x, y = build.input("x", 5, 7), build.input("y", 5, 1)
    once = build.apply(p.sort, x, axis=1, kind="stable")
    again = build.apply(p.sort, once, axis=1, kind="quicksort")
    other = build.apply(p.sort, once, axis=0, kind="stable")
    graph = build.graph(again, other, build.apply(p.sort, y, axis=1, kind="stable"))
    simple = simplify(graph)
    assert len(simple.eqns) == 2
    assert simple.outputs[2] is y


def test_equal_elements_stay_in_their_order() -> None:
    x = np.array([0.0, -0.0, 1, -0.0, 0.0, np.nan, -1, -0.0], np.float32)
    both = tinyfuse.jit(lambda x: (np.sort(x), np.argsort(x)))
    values, positions = both(x)
    assert np.signbit(values[1:6]).tolist() == [False, True, True, False, True]
    assert positions.tolist() == [6, 0, 1, 3, 4, 7, 2, 5]


# --- stages ---------------------------------------------------------------------------------------


def test_stages_sort_their_rows() -> None:
    stages = checked_stages(ordered(GraphBuilder("ordered")))
    assert stages_text(stages) == (
        "stages ordered(x: float32[5, 7])\n"
        "  doubled[i < 5, j < 7]: float32 = x[i, j] + x[i, j]\n"
        "  rows[i < 5, j < 7]: float32 = sorted over j of doubled[i, j]\n"
        "  order_rows[j < 7, i < 5]: int64 = positions of sorted over i of x[i, j]\n"
        "  order[i < 5, j < 7]: int64 = order_rows[j, i]\n"
        "  return rows, order"
    )
    assert kind(stages.stages[1]) is Kind.OPAQUE
    assert additions(stages.stages[1]) == 35 * comparisons(7) * cost("sort") == 35 * 3 * 5


X = Stage("x", (Axis("i", 8),), FLOAT32)
ROW = Axis("i", 8)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (
            Stage("y", (ROW,), FLOAT32, X[(ROW,)], sort=Sort.POSITIONS),
            "it is float32, but computes int64",
        ),
        (Stage("y", (), FLOAT32, X[(0,)], sort=Sort.ELEMENTS), "it has no axis to sort along"),
        (
            Stage("y", (ROW,), FLOAT32, X[(ROW,)], sort=Sort.ELEMENTS, scan=ROW),
            "it is a scan, a sort, a scatter or a reduction: more than one of them",
        ),
    ],
)
def test_what_verify_stages_refuses(stage: Stage, message: str) -> None:
    with pytest.raises(VerificationError, match=re.escape(f"stages f, y: {message}")):
        verify_stages(Stages("f", (X,), (stage,), (stage,)))


# --- schedules ------------------------------------------------------------------------------------


def rows_of(shape: tuple[int, ...], primitive: Any = p.sort) -> Stages:
    build = GraphBuilder("ranks")
    x = build.input("x", *shape)
    rows = build.apply(primitive, x, name="rows", axis=len(shape) - 1, kind="stable")
    return checked_stages(build.graph(build.op("negative", rows)))


@pytest.mark.parametrize(
    ("shape", "loops"),
    [
        ((300, 200), "i < 300 parallel, j < 200 vector"),
        ((1, 3000, 9), "j < 3000 parallel, i < 1, k < 9 vector"),
        ((90000,), "i < 90000 vector"),
        ((3, 4), "i < 3, j < 4 vector"),
    ],
)
def test_threads_share_rows(shape: tuple[int, ...], loops: str) -> None:
    schedule, decisions = default_schedule(rows_of(shape), REFERENCE, stored=("rows",))
    assert f"  rows: root; {loops}\n" in schedule_text(schedule)
    assert str(decisions[0]) == "rows -> out: store, its rows are sorted as a whole"


@pytest.mark.parametrize("primitive", [p.sort, p.argsort])
def test_directives_keep_the_bits(primitive: Any) -> None:
    stages = rows_of((3, 4, 13), primitive)
    rows, out = stages.stages
    i, j, k = rows.axes
    plain = Schedule(stages)
    for schedule in (
        plain,
        plain.reorder(rows, j, i),
        plain.split(rows, j, 3).parallel(rows, i),
        plain.split(rows, k, 4).vectorize(rows, k),
        plain.unroll(rows, j),
        plain.compute_at(rows, out, None),
        plain.compute_at(rows, out, out.axes[1]),
        plain.compute_at(rows, out, out.axes[2]),
        plain.split(out, out.axes[1], 2).compute_at(rows, out, Loop(out.axes[1], 2)),
    ):
        assert_same_bits(lower(schedule, REFERENCE), stages)


def test_what_would_cut_a_row_is_refused() -> None:
    stages = rows_of((9, 13))
    rows = named(stages, "rows")
    i, j = rows.axes
    plain = Schedule(stages)
    for directive in (
        lambda: plain.reorder(rows, j, i),
        lambda: plain.split(rows, i, 3).reorder(rows, j, i),
    ):
        with pytest.raises(ScheduleError, match="so the loops over j are the innermost ones"):
            directive()
    with pytest.raises(ScheduleError, match=re.escape("inline(rows): its rows are sorted as a wh")):
        plain.inline(rows)
    long_row = rows_of((190000,))
    with pytest.raises(ScheduleError, match="innermost ones, and no threads share them"):
        Schedule(long_row).parallel(long_row.stages[0], long_row.stages[0].axes[0])
    with pytest.raises(ScheduleError, match="more than the 1048576 that fit a thread's stack"):
        lower(Schedule(long_row).compute_at(*long_row.stages, None), REFERENCE)


# --- loops and C ----------------------------------------------------------------------------------


def fused(stages: Stages) -> Loops:
    schedule, _ = default_schedule(stages, REFERENCE, stored=("rows",))
    loops = lower(schedule, REFERENCE)
    verify_loops(loops)
    return loops


def test_a_row_in_memory_is_sorted_where_it_lies() -> None:
    text = loops_text(fused(rows_of((3, 20))))
    assert text.splitlines()[2:6] == [
        "  kernel ranks_rows computes rows",
        "    for i < 3",
        "      alloc rows_work: int32[104] on the stack",
        "      store sorted 20 elements of x[20 * i…] to rows[20 * i…], using rows_work[0…]",
    ]


def test_a_row_that_is_computed_is_filled_first() -> None:
    stages = checked_stages(ordered(GraphBuilder("ordered")))
    text = emit_c(fused(stages)).text
    start = text.index("static __attribute__((noinline)) void ordered_rows(")
    assert text[start:].split("\n}\n")[0] == (
        "static __attribute__((noinline)) void ordered_rows("
        "const float *restrict x, float *restrict rows) {\n"
        "  for (long i = 0; i < 5; i++) {\n"
        "    for (long j = 0; j < 7; j++) {\n"
        "      const float doubled = x[7 * i + j] + x[7 * i + j];\n"
        "      rows[7 * i + j] = doubled;\n"
        "    }\n"
        "    int32_t rows_work[46];\n"
        "    tf_sort_float_4x4(rows + 7 * i, rows + 7 * i, rows_work, 7);\n"
        "  }"
    )


@pytest.mark.parametrize(
    ("primitive", "dtype", "row_bytes"),
    [
        (p.sort, "float32", 2 * (70000 + 256) * 4),
        (p.sort, "int8", 2 * 70000),
        (p.argsort, "float32", 70000 * 8),
        (p.argsort, "float64", 3 * (70000 + 128) * 8),
    ],
)
def test_long_rows_are_sorted_in_scratch_memory(primitive: Any, dtype: str, row_bytes: int) -> None:
    build = GraphBuilder("long")
    x = build.input("x", 2, 70000, dtype=dtype)
    stages = checked_stages(build.graph(build.apply(primitive, x, axis=1, kind="stable")))
    loops = fused(stages)
    assert [buffer.name for buffer, _ in loops.scratch] == ["out_work"]
    assert loops.scratch[0][0].nbytes == 2 * row_bytes
    (sort,) = [s for s in walk_statements(loops.kernels[0].body) if isinstance(s, SortRow)]
    assert (sort.row.buffer.name, sort.extent) == ("x", 70000)


def sorting(row: Buffer, to: Buffer, work: Buffer, extent: int = 8) -> Loops:
    rows = [Row(buffer, Affine()) for buffer in (row, to, work)]
    statement = SortRow(Sort.ELEMENTS, *rows, extent)
    kernel = Kernel("k", (statement,), (row, work, to), frozenset([to]), ("y",), None)  # type: ignore[arg-type]
    return Loops("f", (row,), (to,), (kernel,), ((work, 0),), work.nbytes)


def buffer(name: str, dtype: Any, size: int, scope: Scope = Scope.ARGUMENT) -> Buffer:
    return Buffer(name, np.dtype(dtype), size, scope)


def test_what_verify_loops_refuses() -> None:
    row, to = buffer("x", "f", 8), buffer("y", "f", 8)
    work = buffer("w", "u4", 16, Scope.SCRATCH)
    verify_loops(sorting(row, to, work))
    for loops, message in [
        (sorting(row, buffer("y", INT64, 8), work), "y is int64, not float32"),
        (sorting(row, to, buffer("w", "u8", 16, Scope.SCRATCH)), "w is uint64, not uint32"),
        (sorting(row, to, work, 9), "x[8] runs from 8 to 8, of 8 elements"),
        (sorting(row, to, buffer("w", "u4", 15, Scope.SCRATCH)), "w[15] runs from 15 to 15, of 15"),
        (sorting(row, row, work), "x is an input and written"),
    ]:
        with pytest.raises(VerificationError, match=re.escape(f"kernel k: {message}")):
            verify_loops(loops)


# --- the C ----------------------------------------------------------------------------------------


def rows_with_everything(shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Ties, extremes, zeros of both signs and NaN, in some rows; and rows that are in order."""
    random = np.random.default_rng(shape[1])
    kind = np.dtype(dtype).kind
    if kind == "f":
        x = random.standard_normal(shape).astype(dtype)
        special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1.0], dtype)
        chosen = random.random(shape) < 0.3
        x[1:] = np.where(chosen[1:], random.choice(special, (shape[0] - 1, shape[1])), x[1:])
        x[2] = -x[2] * np.where(random.random(shape[1]) < 0.5, -1, 1).astype(dtype)
    elif kind == "b":
        x = random.random(shape) < 0.5
    else:
        info = np.iinfo(dtype)
        x = random.integers(info.min, info.max, shape, dtype, endpoint=True)
        x[1] = random.integers(0, 3, shape[1])
    x[-1] = np.sort(x[-1])
    x[-2] = np.sort(x[-2])[::-1]
    x[-3] = x[-3, 0]
    return x


LENGTHS = [2, 3, 15, 16, 17, 32, 33, 48, 64, 65, 100, 129, 255, 256, 257, 1000]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_all_lengths(dtype: str) -> None:
    """One program for each length, through the C: equal to numpy's stable order, to the bit."""

    def both(*arrays: Any) -> Any:
        return [(np.sort(x, kind="stable"), np.argsort(x, kind="stable")) for x in arrays]

    arrays = [rows_with_everything((7, count), dtype) for count in (*LENGTHS, 5000)]
    case = Case(both, arrays, f"rows of {dtype}")
    Ladder([Variant("fused C", fused_schedule)], lambda case: False).climb([case]).check()


CASES: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (lambda x: np.sort(x, axis=0) + x, (40, 70)),
    (lambda x: np.argsort(x.T[::-1], axis=1).T, (40, 70)),
    (lambda x: np.sort(np.pad(x, 1), axis=1).sum(axis=0), (5, 7)),
    (lambda x: np.sort(np.concatenate([x, x]), axis=0), (5, 7)),
    (lambda x: np.sort(x.reshape(-1)[::3]), (5, 7)),
    (lambda x: np.sort(x, axis=None), (300, 200)),
    (lambda x: np.sort(x), (0, 7)),
    (lambda x: np.argsort(x, axis=1), (5, 0)),
    (lambda x: np.argsort(x, axis=1), (5, 1)),
    (lambda x: np.sort(np.broadcast_to(x[:1], x.shape), axis=1), (5, 7)),
    (lambda x: np.sort(np.exp(x * 0.5), axis=1)[:, ::2], (5, 7)),
    (lambda x: np.searchsorted(np.sort(x[0]), x), (5, 70)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_every_level_computes_the_same(dtype: str) -> None:
    cases = [
        Case(function, [sample(shape, dtype)], f"case {at} of {dtype}")
        for at, (function, shape) in enumerate(CASES)
    ]
    for at, case in enumerate(cases):
        case.function.__name__ = f"case_{at}"
    Ladder(loops_of=lambda case: case.arrays[0].size < 100, jit_of=lambda case: True).climb(
        cases
    ).check()


# --- in vectors -----------------------------------------------------------------------------------


WIDTHS = {
    "64 bytes": replace(REFERENCE, flags=()),
    "32 bytes": replace(REFERENCE_AVX2, flags=()),
    "16 bytes": replace(REFERENCE_AVX2, vector_bytes=16, flags=()),
    "this processor": replace(REFERENCE, flags=("-march=native",)),
}


def hard_rows(count: int, dtype: str) -> np.ndarray:
    """Also rows whose elements differ in few low bits, but for one: all equal, some, none."""
    x = rows_with_everything((11, count), dtype)
    random = np.random.default_rng(count)
    x[4] = np.concatenate([np.arange(0, count, 2), np.arange(1, count, 2)[::-1]]).astype(dtype)
    for row, most in enumerate((1, 50, 1 << 30), 5):
        if np.dtype(dtype).kind == "f":
            x[row] = np.spacing(np.ones(1, dtype)) * random.integers(0, most, count) + 1
            x[row, 0] = -np.inf
        else:
            x[row] = random.integers(0, min(most, np.iinfo(dtype).max), count)
            x[row, 0] = np.iinfo(dtype).min
    return x


def check_in_vectors(machine: Machine, *counts: int) -> None:
    arrays, programs = [], []
    for dtype in ("float32", "float64", "uint32", "int64", "int16"):
        for count in counts:
            for primitive in (p.sort, p.argsort):
                build = GraphBuilder(f"{primitive.name}_{dtype}_{count}")
                x = build.input("x", 11, count, dtype=dtype)
                rows = build.apply(primitive, x, axis=1, kind="stable")
                stages = checked_stages(build.graph(rows))
                programs.append(lower(default_schedule(stages, machine)[0], machine))
                arrays.append(hard_rows(count, dtype))
    library = Library(programs, ("-O1", *machine.flags))
    for program, x in zip(programs, arrays, strict=True):
        sorted_ = np.argsort if program.name.startswith("arg") else np.sort
        expected = sorted_(x, kind="stable")
        (found,) = library.run(program, [x], 1)
        assert difference(expected, found.reshape(x.shape)) is None, program.name


@pytest.mark.parametrize("width", WIDTHS)
def test_vectors_of_all_widths_sort_the_same(width: str) -> None:
    check_in_vectors(WIDTHS[width], 3, 17, 50, 100, 600)


@needs_zig
def test_vectors_of_another_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", ZIG)
    assert find_compiler().kind == "zig"
    check_in_vectors(WIDTHS["this processor"], 50, 600)


@pytest.mark.parametrize(
    ("sort", "dtype", "extent", "vector_bytes", "block"),
    [
        (Sort.ELEMENTS, "float32", 16, 64, (4, 4)),
        (Sort.ELEMENTS, "float32", 17, 64, (8, 4)),
        (Sort.ELEMENTS, "bool", 200, 64, (16, 16)),
        (Sort.ELEMENTS, "float32", 1 << 20, 64, (16, 16)),
        (Sort.ELEMENTS, "float32", 1 << 20, 32, (16, 8)),
        (Sort.ELEMENTS, "float32", 1 << 20, 16, (8, 4)),
        (Sort.ELEMENTS, "uint16", 1 << 17, 16, (16, 8)),
        (Sort.ELEMENTS, "uint16", 1 << 18, 16, None),
        (Sort.ELEMENTS, "int8", 1024, 64, None),
        (Sort.POSITIONS, "float32", 8191, 64, (16, 8)),
        (Sort.POSITIONS, "float32", 8192, 64, None),
        (Sort.POSITIONS, "float64", 1 << 20, 64, (16, 8)),
        (Sort.POSITIONS, "float64", 1 << 20, 8, (4, 2)),
        (Sort.POSITIONS, "float64", 1 << 32, 64, None),
    ],
)
def test_blocks(
    sort: Sort, dtype: str, extent: int, vector_bytes: int, block: tuple[int, int] | None
) -> None:
    assert block_for(sort, np.dtype(dtype), extent, vector_bytes) == block


@pytest.mark.parametrize("rows", sorted({block.rows for each in BLOCKS.values() for block in each}))
def test_networks_sort_columns(rows: int) -> None:
    """What sorts all columns of zeros and ones sorts all (D. E. Knuth, 5.3.4)."""
    numbers = np.arange(1 << rows)
    columns = [numbers >> row & 1 for row in range(rows)]
    for low, high in network_pairs(rows):
        a, b = columns[low], columns[high]
        columns[low], columns[high] = a & b, a | b
    assert all((a <= b).all() for a, b in itertools.pairwise(columns))
