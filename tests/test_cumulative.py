"""Cumulative operations at every level: each element combined with the result before it."""

from __future__ import annotations

import functools
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
from tests.trace_checking import check
from tinyfuse.dtypes import FLOAT32
from tinyfuse.emit.c import emit_c
from tinyfuse.errors import (
    NegativePowerError,
    ScheduleError,
    UnsupportedDtypeError,
    VerificationError,
)
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.simplify import simplify
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.analysis import Kind, kind
from tinyfuse.stage.expr import Accumulator, Op
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.stage.printer import stages_text
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.testing import Case, Ladder

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# --- numpy's functions ----------------------------------------------------------------------------

FUNCTIONS: list[Callable[..., Any]] = [
    np.cumsum,
    np.cumprod,
    np.nancumsum,
    np.nancumprod,
    lambda x: x.cumsum(),
    lambda x: x.cumprod(-1),
    lambda x: np.cumsum(x, axis=0),
    lambda x: np.cumsum(x, 1, np.float32),
    lambda x: np.cumsum(x, axis=-2, dtype=np.int16),
    lambda x: np.cumsum(x[..., ::-1], axis=-1)[..., ::-1],
    lambda x: np.cumsum(x.T, axis=0),
    lambda x: np.add.accumulate(x),
    lambda x: np.add.accumulate(x, axis=(1,)),
    lambda x: np.add.accumulate(x, axis=None),
    lambda x: np.maximum.accumulate(x, axis=1),
    lambda x: np.minimum.accumulate(x, -1, np.float64),
    lambda x: np.cumsum(x, axis=(0, 1)),
    lambda x: np.cumsum(x, axis=7),
    lambda x: np.cumulative_sum(x, axis=-1),
    lambda x: np.cumulative_prod(x, axis=0, include_initial=True),
    lambda x: np.cumulative_sum(x),
    lambda x: np.trapezoid(x),
    lambda x: np.trapezoid(x, dx=0.5, axis=0),
    lambda x: np.trapezoid(x, np.arange(x.shape[-1]) ** 2.0),
    lambda x: np.trapezoid(x, x, axis=0),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_all_dtypes_and_shapes(function: Callable[..., Any]) -> None:
    for dtype in DTYPES:
        compare(function, sample((3, 4), dtype))
    for shape in [(5,), (), (1, 4), (4, 1), (0, 3), (3, 0), (2, 3, 4)]:
        compare(function, sample(shape, "float32"))


UFUNCS = [
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "power"),
    *("float_power", "maximum", "minimum", "fmax", "fmin", "hypot", "arctan2", "logaddexp"),
    *("copysign", "nextafter", "heaviside", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("left_shift", "right_shift", "logical_and", "logical_or", "logical_xor", "gcd", "lcm"),
    *("less", "equal", "not_equal", "ldexp", "matmul", "divmod", "negative"),
]


@pytest.mark.parametrize("name", UFUNCS)
def test_accumulate_of_every_ufunc(name: str) -> None:
    ufunc = getattr(np, name)
    for dtype in DTYPES:
        x = sample((3, 5), dtype)
        if not _is_of_float16(ufunc, x.dtype):
            compare(lambda x: ufunc.accumulate(x), abs(x) if name == "power" else x)


def _is_of_float16(ufunc: np.ufunc, dtype: np.dtype) -> bool:
    """Whether numpy rounds to float16 at each element, which is refused."""
    try:
        return bool(ufunc.accumulate(np.zeros(0, dtype)).dtype == np.float16)
    except (RuntimeError, TypeError, ValueError):
        return False


def test_out_decides_what_is_computed_in() -> None:
    def into(x: Any, y: Any) -> Any:
        np.cumsum(x, axis=1, out=y)
        return y, np.add.accumulate(x, out=y), x.cumprod(1, None, y)

    for dtype, to in [("int8", "int8"), ("float32", "int64"), ("bool", "float64"), ("int64", "f")]:
        check(into, sample((3, 4), dtype), np.zeros((3, 4), to))
    compare(lambda x, y: np.cumsum(x, out=y), np.ones(3), np.ones(2))
    compare(lambda x: np.cumsum(x, out=x[::-1]), np.arange(5.0))
    compare(lambda x: np.add.accumulate(x, 0, None, x), sample((4, 3), "int32"))

    def with_start(x: Any, y: Any) -> Any:
        np.cumulative_sum(x, include_initial=True, out=y)
        return y

    check(with_start, np.arange(4.0), np.zeros(5))


def test_what_numpy_computes_in_float16_is_refused() -> None:
    remedy = (
        "np.hypot.accumulate of int8[3] gives float16, which tinyfuse does not support: convert"
    )
    with pytest.raises(UnsupportedDtypeError, match=re.escape(remedy)):
        tinyfuse.jit(lambda x: np.hypot.accumulate(x))(np.ones(3, np.int8))


def test_a_negative_exponent_raises_where_it_is_one() -> None:
    power = tinyfuse.jit(lambda x: np.power.accumulate(x))
    np.testing.assert_array_equal(power(np.array([-2, 3, 1])), [-2, -8, -8])
    with pytest.raises(NegativePowerError):
        power(np.array([2, -3, 1]))


def test_the_first_element_is_itself() -> None:
    (result,) = tinyfuse.jit(lambda x: (np.cumsum(x),))(np.array([-0.0, -0.0, np.nan, 1]))
    assert np.signbit(result[:2]).all()
    assert np.isnan(result[2:]).all()


# --- graph ----------------------------------------------------------------------------------------


def sums(build: GraphBuilder) -> Graph:
    x = build.input("x", 5, 7)
    doubled = build.op("add", x, x, name="doubled")
    rows = build.apply(p.cumulative, doubled, name="rows", op="add", axis=1)
    return build.graph(rows, build.apply(p.cumulative, rows, op="maximum", axis=0))


def turned(build: GraphBuilder) -> Graph:
    x = build.input("x", 5, 7, 3)
    total = build.apply(p.cumulative, build.transpose(x, 2, 0, 1), op="add", axis=1)
    return build.graph(build.transpose(total, 1, 2, 0))


def flat(build: GraphBuilder) -> Graph:
    x = build.input("x", 4, 6)
    return build.graph(build.apply(p.cumulative, build.reshape(x, 24), op="multiply", axis=0))


def test_graphs_print_operation_and_axis() -> None:
    graph = sums(GraphBuilder("sums"))
    assert "rows: float32[5, 7] = cumulative[op=add axis=1] doubled" in str(graph)
    assert "cumulative_maximum: float32[5, 7] = cumulative[op=maximum axis=0] rows" in str(graph)


@pytest.mark.parametrize(
    ("op", "axis", "message"),
    [
        ("add", 2, "cumulative: axis 2 of float32[5, 7]"),
        ("exp", 0, "cumulative: there is no ufunc exp of two operands"),
        ("wrap_index", 0, "cumulative: there is no ufunc wrap_index of two operands"),
        ("less", 0, "cumulative: less of float32 gives another dtype"),
    ],
)
def test_what_is_not_cumulative(op: str, axis: int, message: str) -> None:
    build = GraphBuilder("f")
    with pytest.raises(ValueError, match=re.escape(message)):
        build.apply(p.cumulative, build.input("x", 5, 7), op=op, axis=axis)


def test_along_one_element_nothing_is_computed() -> None:
    build = GraphBuilder("one")
    x = build.input("x", 5, 1)
    graph = build.graph(build.apply(p.cumulative, x, op="add", axis=1))
    assert simplify(graph).outputs == (x,)
    checked_stages(graph)


# --- stages ---------------------------------------------------------------------------------------


def test_stages_scan() -> None:
    stages = checked_stages(sums(GraphBuilder("sums")))
    assert stages_text(stages) == (
        "stages sums(x: float32[5, 7])\n"
        "  doubled[i < 5, j < 7]: float32 = x[i, j] + x[i, j]\n"
        "  rows[i < 5, j < 7]: float32 ="
        " scan over j of doubled[i, j] if j < 1 else so_far + doubled[i, j]\n"
        "  out[i < 5, j < 7]: float32 ="
        " scan over i of rows[i, j] if i < 1 else maximum(so_far, rows[i, j])\n"
        "  return rows, out"
    )
    assert [kind(stage) for stage in stages.stages[1:]] == [Kind.OPAQUE] * 2
    assert additions(stages.stages[1]) == 35  # a select takes none


def test_a_returned_view_is_scanned_in_its_layout() -> None:
    stages = checked_stages(turned(GraphBuilder("turned")))
    assert [stage.name for stage in stages.stages] == ["out"]
    assert stages.stages[0].shape == (5, 7, 3)


X = Stage("x", (Axis("i", 8),), FLOAT32)
ROW = Axis("i", 8)
SO_FAR = Accumulator(FLOAT32)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (Stage("y", (ROW,), FLOAT32, X[(ROW,)], scan=Axis("j", 3)), "it has no axis j to scan"),
        (
            Stage("y", (ROW,), FLOAT32, Op("add", (SO_FAR, X[(ROW,)]), FLOAT32), scan=ROW),
            "its first element needs one before it",
        ),
        (
            Stage("y", (ROW,), FLOAT32, Op("add", (SO_FAR, X[(ROW,)]), FLOAT32)),
            "it accumulates without reduce axes",
        ),
        (
            Stage("y", (ROW,), FLOAT32, SO_FAR, (Axis("k", 2),), init=np.float32(0), scan=ROW),
            "it is a scan, a sort, a scatter or a reduction: more than one of them",
        ),
    ],
)
def test_what_verify_stages_refuses(stage: Stage, message: str) -> None:
    with pytest.raises(VerificationError, match=re.escape(f"stages f, y: {message}")):
        verify_stages(Stages("f", (X,), (stage,), (stage,)))


# --- schedules ------------------------------------------------------------------------------------


def test_producers_move_in_and_readers_stay_out() -> None:
    stages = checked_stages(sums(GraphBuilder("sums")))
    schedule, decisions = default_schedule(stages, REFERENCE)
    assert [str(decision) for decision in decisions] == [
        "doubled -> rows: inline, rows takes each element as it is computed",
        "rows -> out: compute_at, both are small: one kernel computes it, then out",
        "out -> the caller: store, it is an output",
    ]
    assert "doubled: inline" in schedule_text(schedule)


def scan(shape: tuple[int, ...], axis: int) -> Stages:
    build = GraphBuilder("scan")
    x = build.input("x", *shape)
    total = build.apply(p.cumulative, x, name="total", op="add", axis=axis)
    return checked_stages(build.graph(build.op("negative", total)))


@pytest.mark.parametrize(
    ("shape", "axis", "loops"),
    [
        ((300, 200), 1, "i by 4 < 300 parallel, j < 200, i < 300 unroll"),
        ((300, 200), 0, "j by 64 < 200 parallel, i < 300, j < 200 vector"),
        ((20, 300, 9), 1, "i < 20 parallel, j < 300, k < 9 vector"),
        ((300, 20, 9), 0, "j < 20 parallel, i < 300, k < 9 vector"),
        ((9000, 5), 0, "i < 9000, j < 5 vector"),
        ((90000,), 0, "i < 90000"),
        ((3, 4), 0, "i < 3, j < 4 vector"),
    ],
)
def test_threads_share_rows(shape: tuple[int, ...], axis: int, loops: str) -> None:
    stages = scan(shape, axis)
    schedule, decisions = default_schedule(stages, REFERENCE, stored=("total",))
    assert f"  total: root; {loops}\n" in schedule_text(schedule)
    reason = "total -> out: store, each element needs the one before it"
    assert str(decisions[0]) == reason


def test_directives_keep_the_bits() -> None:
    stages = scan((9, 13), 0)
    total, out = stages.stages
    i, j = total.axes
    plain = Schedule(stages)
    for schedule in (
        plain,
        plain.reorder(total, j, i),
        plain.split(total, i, 4),
        plain.split(total, i, 4).reorder(total, Loop(i, 4), j, i),
        plain.split(total, j, 5).reorder(total, Loop(j, 5), i, j).parallel(total, Loop(j, 5)),
        plain.unroll(total, i),
        plain.vectorize(total, j),
        plain.compute_at(total, out, None),
        plain.compute_at(total, out, out.axes[0]),
        plain.reorder(out, out.axes[1], out.axes[0]).compute_at(total, out, out.axes[1]),
    ):
        assert_same_bits(lower(schedule, REFERENCE), stages)


def test_what_would_change_the_meaning_is_refused() -> None:
    stages = scan((9, 13), 1)
    total = named(stages, "total")
    plain = Schedule(stages)
    with pytest.raises(ScheduleError, match="each element needs the one before it"):
        plain.inline(total)
    with pytest.raises(ScheduleError, match="before it along j, whose steps run in order"):
        plain.vectorize(total, total.axes[1])
    with pytest.raises(ScheduleError, match="before it along j, whose steps run in order"):
        plain.reorder(total, *total.axes[::-1]).parallel(total, total.axes[1])


# --- loops and C ----------------------------------------------------------------------------------


def kernel_text(stages: Stages, name: str) -> str:
    schedule, _ = default_schedule(stages, REFERENCE, stored=("total",))
    text = emit_c(lower(schedule, REFERENCE)).text
    return text[text.index(f"static __attribute__((noinline)) void {name}(") :].split("\n}\n")[0]


def test_a_row_is_added_up_in_a_register() -> None:
    assert kernel_text(scan((3, 20), 1), "scan_total") == (
        "static __attribute__((noinline)) void scan_total("
        "const float *restrict x, float *restrict total) {\n"
        "  for (long i = 0; i < 3; i++) {\n"
        "    float total_acc = x[20 * i];\n"
        "    total[20 * i] = total_acc;\n"
        "    for (long j = 1; j < 20; j++) {\n"
        "      total_acc += x[20 * i + j];\n"
        "      total[20 * i + j] = total_acc;\n"
        "    }\n"
        "  }"
    )


def test_rows_are_added_to_the_row_before() -> None:
    assert kernel_text(scan((20, 3), 0), "scan_total") == (
        "static __attribute__((noinline)) void scan_total("
        "const float *restrict x, float *restrict total) {\n"
        "  for (long j = 0; j < 3; j++)\n"
        "    total[j] = x[j];\n"
        "  for (long i = 1; i < 20; i++)\n"
        "    for (long j = 0; j < 3; j++)\n"
        "      total[3 * i + j] = total[3 * i + j - 3] + x[3 * i + j];"
    )


CASES: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (lambda x: np.cumsum(x * 2, axis=0) + 1, (40, 70)),
    (lambda x: np.cumsum(x, axis=1)[:, ::-1].sum(axis=0), (40, 70)),
    (lambda x: np.minimum.accumulate(x.T, axis=1).T, (40, 70)),
    (lambda x: np.cumprod(np.pad(x, 1), axis=1), (5, 7)),
    (lambda x: np.cumsum(np.concatenate([x, x]), axis=0), (5, 7)),
    (lambda x: np.cumsum(x.reshape(-1)[::3]), (5, 7)),
    (lambda x: np.cumsum(np.cumsum(x, axis=0), axis=1), (300, 200)),
    (lambda x: np.cumsum(x), (0, 7)),
    (lambda x: np.cumsum(x, axis=1), (5, 0)),
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


@pytest.mark.parametrize(
    ("shape", "dtype", "axis", "expected"),
    [
        ((8, 32), np.float32, 1, True),
        ((3, 11, 40), np.float64, 2, True),
        ((7, 40), np.float32, 1, False),  # too few rows
        ((8, 31), np.float32, 1, False),  # too short ones
        ((8, 40), np.float32, 0, False),  # whole rows are added
        ((8, 40), np.int32, 1, False),  # which may be added in any order
        ((40,), np.float32, 0, False),
    ],
)
def test_rows_go_side_by_side(
    shape: tuple[int, ...], dtype: type, axis: int, expected: bool
) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)
    for function in (np.cumsum, np.cumprod):
        jitted = tinyfuse.jit(functools.partial(function, axis=axis, dtype=dtype))
        assert ("by 4" in jitted.lower(x).as_text("schedule")) == expected
        np.testing.assert_array_equal(jitted(x), function(x, axis=axis, dtype=dtype))
