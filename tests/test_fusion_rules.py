"""The planner's rules, each with a program that would break without it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.test_fusion import bytes_moved, lowered
from tinyfuse.compilation import Lowered
from tinyfuse.errors import ScheduleError
from tinyfuse.graph.simplify import simplify
from tinyfuse.loops.ir import Alloc, For, Kernel, LoopKind, Scope, Statement, Store, walk_statements
from tinyfuse.loops.rewrite import values_of
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.schedule import group_seats, groups, planner, stencils, written_out
from tinyfuse.schedule.groups import Grouping
from tinyfuse.schedule.places import STACK_LIMIT
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.expr import Load, walk
from tinyfuse.stage.ir import Stages
from tinyfuse.trace import loop_statements


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def assert_refused(reason: str, function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """The planner's schedule is refused: then a program runs unfused."""
    with pytest.raises(ScheduleError, match=reason):
        lower(default_schedule(stages_of(function, *arrays), REFERENCE)[0], REFERENCE)


def stages_of(function: Callable[..., Any], *arrays: np.ndarray) -> Stages:
    return build_stages(simplify(tinyfuse.jit(function).trace(*arrays).graph))


def kernels_of(program: Lowered) -> list[str]:
    """The stage at the root of each."""
    return [kernel.stages[-1] for kernel in program.kernels]


def times(program: Lowered, operation: str) -> int:
    """How often an operation is computed."""
    counts = [each for kernel in program.kernels for each in kernel.cost.operations]
    return sum(number for found, number in counts if found.name == operation)


# --- circles, readers that do not agree -----------------------------------------------------------


def shares_of_all(x):
    e = np.exp(x)
    return e / e.sum()


def test_no_way_leads_from_a_group_through_another_kernel_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """e and the quotient go through the same rows, but the sum of all of e stands in between."""
    assert kernels_of(lowered(shares_of_all, ones(300, 400))) == ["e", "sum_blocks", "sum", "out"]
    monkeypatch.setattr(Grouping, "_crossing", lambda self, units: None)
    assert_refused("before it is computed", shares_of_all, ones(300, 400))


def along_and_across(x):
    """A diamond: one way along the rows, one across them."""
    e = np.exp(x)
    return e - e.T


def test_readers_of_a_diamond_that_do_not_agree_are_not_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = lowered(along_and_across, ones(300, 300))
    assert kernels_of(program) == ["e", "out"]
    assert times(program, "exp") == 300 * 300
    monkeypatch.setattr(groups, "_common", lambda *read: 1)
    assert times(lowered(along_and_across, ones(300, 300)), "exp") == 300 * 300 * 300


def around_a_root(x, y):
    root = np.exp(x) * y
    return np.sin(root), np.cos(root)


def test_a_costly_producer_of_several_readers_is_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrays = ones(300, 400), ones(400)
    assert times(lowered(around_a_root, *arrays), "exp") == 300 * 400
    monkeypatch.setattr(planner, "CHEAP_FOR_EACH", 1000)
    assert times(lowered(around_a_root, *arrays), "exp") == 2 * 300 * 400


def two_spreads(x):
    centred = x - x.max(axis=-1, keepdims=True)
    return (centred * centred).sum(axis=-1), np.abs(centred).max(axis=-1)


def test_a_reduction_that_feeds_two_others_is_kept_for_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = lowered(two_spreads, ones(300, 400))
    assert kernels_of(program) == ["out_1"]
    assert program.scratch_bytes == 0
    one_value = planner._Planner._makes_one_value
    monkeypatch.setattr(
        planner._Planner, "_makes_one_value", lambda self, s, uses: one_value(self, s, uses[:1])
    )
    assert_refused("reads it elsewhere", two_spreads, ones(300, 400))


def shares_of_long_rows(x):
    return x / x.sum(axis=-1, keepdims=True)


def test_a_sum_of_blocks_that_threads_share_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(lowered(shares_of_long_rows, ones(3, 50000)).kernels) == 3
    monkeypatch.setattr(Grouping, "_combines_stored", lambda self, unit: False)
    monkeypatch.setattr(groups, "PLACES_PER_CORE", 0)
    assert_refused(
        "combines in place what is stored only once", shares_of_long_rows, ones(3, 50000)
    )


# --- too much of it -------------------------------------------------------------------------------


def weighted_totals(x, weights):
    return (np.exp(x)[:, None] * weights).sum(axis=-1)


def test_nothing_costly_is_computed_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = ones(30, 400), ones(50, 400)
    assert times(lowered(weighted_totals, *arrays), "exp") == 30 * 400
    monkeypatch.setattr(planner, "CHEAP", 1000)
    monkeypatch.setattr(planner, "SLOW_ALONE", 1000)
    tiles_of_columns = 2
    assert times(lowered(weighted_totals, *arrays), "exp") == tiles_of_columns * 30 * 400
    monkeypatch.setattr(
        planner, "tile_reductions", lambda schedule, known, machine, alone: (schedule, known)
    )
    assert times(lowered(weighted_totals, *arrays), "exp") == 50 * 30 * 400


def pyramid(x):
    """Each element of the last row needs two of the one before, and so on."""
    for _ in range(12):
        x = x[1:] * x[:-1] + np.float32(1)
    return x


def test_recomputing_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    few = times(lowered(pyramid, ones(5000)), "multiply")
    assert few <= 2 * 12 * 5000
    monkeypatch.setattr(planner, "CHEAP", 10**9)
    monkeypatch.setattr(planner, "OPERATION_BUDGET", 10**9)
    assert times(lowered(pyramid, ones(5000)), "multiply") > 4 * few


def curvature(x):
    """Of a signal, or of narrow rows."""
    e = np.exp(x)
    slope = e[1:] - e[:-1]
    return slope[1:] - slope[:-1]


@pytest.mark.parametrize("shape", [(1 << 20,), (1 << 17, 8)])
def test_short_rows_are_not_kept_in_rings(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps along a ring wait for one another, so that a signal would be computed one by one."""
    program = lowered(curvature, ones(*shape))
    assert re.search(r"e: compute_at\(out, i by \d+\)", program.as_text("schedule"))
    assert "fold" not in program.as_text("schedule")
    monkeypatch.setattr(stencils, "RING_ROW", 0)
    assert "fold" in lowered(curvature, ones(*shape)).as_text("schedule")


def curvature_of_planes(x):
    e = np.exp(x)
    slope = e[:, 1:] - e[:, :-1]
    return slope[:, 1:] - slope[:, :-1]


def test_rows_that_no_stack_holds_are_not_strips(caplog: pytest.LogCaptureFixture) -> None:
    """Of planes of a megabyte not one fits the stack of a thread."""
    assert kernels_of(lowered(curvature_of_planes, ones(8, 512, 512))) == ["e", "out"]
    assert kernels_of(lowered(curvature_of_planes, ones(32, 64, 512))) == ["out"]
    assert not caplog.records


def updates(number: int) -> Callable[..., Any]:
    def momentum(*arrays):
        pairs = zip(arrays[:number], arrays[number:], strict=True)
        return [p - np.float32(0.1) * np.tanh(g) for p, g in pairs]

    return momentum


def most_streams(program: Lowered) -> int:
    """Of any innermost loop: how many arrays it goes through."""
    found = 0
    for kernel in program.kernels:
        for statement in walk_statements(kernel.body):
            if isinstance(statement, For) and not _loops(statement.body):
                found = max(found, len(_arrays(statement.body)))
    return found


def _loops(body: tuple[Statement, ...]) -> bool:
    return any(isinstance(statement, For) for statement in walk_statements(body))


def _arrays(body: tuple[Statement, ...]) -> set[str]:
    outside = (Scope.ARGUMENT, Scope.SCRATCH)
    buffers = []
    for statement in walk_statements(body):
        nodes = [node for value in values_of(statement) for node in walk(value)]
        buffers += [node.source for node in nodes if isinstance(node, Load)]
        buffers += [statement.buffer] if isinstance(statement, Store) else []
    return {buffer.name for buffer in buffers if buffer.scope in outside}


def test_a_loop_does_not_go_through_too_many_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [ones(300, 100)] * 16
    program = lowered(updates(8), *arrays)
    assert (len(program.kernels), most_streams(program)) == (1, 3)
    monkeypatch.setattr(group_seats, "STREAMS", 1000)
    assert most_streams(lowered(updates(8), *arrays)) == 24


def test_a_kernel_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [ones(300, 100)] * 160
    program = lowered(updates(80), *arrays)
    assert len(program.kernels) == 4
    assert max(len(kernel.written) for kernel in program.kernels) <= groups.GROUP_UNITS
    monkeypatch.setattr(groups, "GROUP_UNITS", 1000)
    monkeypatch.setattr(groups, "GROUP_OPERATIONS", 10**9)
    assert [len(kernel.written) for kernel in lowered(updates(80), *arrays).kernels] == [80]


def shares(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def test_rows_that_no_cache_holds_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are stored, and read again."""
    program = lowered(shares, ones(64, 300000))
    assert kernels_of(program) == ["sum", "out"]
    monkeypatch.setattr(groups, "FRAME_BYTES", 1 << 40)
    assert_refused("fit a thread's stack", shares, ones(64, 300000))


# --- too little of it -----------------------------------------------------------------------------


def with_running_totals(x):
    e = np.exp(x)
    return e, np.cumsum(e, axis=-1)


def fewest_steps(program: Lowered) -> int:
    """That threads share, of any kernel; 1 where they share none."""
    return min(
        max([s.variable.extent for s in kernel.body if _is_shared(s)], default=1)
        for kernel in program.kernels
    )


def _is_shared(statement: Statement) -> bool:
    return isinstance(statement, For) and statement.kind is LoopKind.PARALLEL


def test_threads_keep_enough_to_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running totals have a step for each row; what is elementwise has more."""
    program = lowered(with_running_totals, ones(2, 100000))
    assert kernels_of(program) == ["e", "out"]
    monkeypatch.setattr(groups, "PLACES_PER_CORE", 0)
    joined = lowered(with_running_totals, ones(2, 100000))
    assert kernels_of(joined) == ["out"]
    assert fewest_steps(joined) == 2


def unrelated_rows(x, y):
    return np.exp(x), np.cumsum(y, axis=1)


def test_where_nothing_is_gained_nothing_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = ones(6, 20000), ones(6, 20000)  # few rows: running sums do not go side by side
    apart = lowered(unrelated_rows, *arrays)
    assert len(apart.kernels) == 2
    monkeypatch.setattr(Grouping, "_saves", lambda self, units: None)
    joined = lowered(unrelated_rows, *arrays)
    assert len(joined.kernels) == 1
    assert bytes_moved(joined) == bytes_moved(apart)


# --- many stages ----------------------------------------------------------------------------------


def chain(length: int) -> Callable[..., Any]:
    def operations(x, y):
        for step in range(length):
            x = np.sqrt(np.abs(x * y)) if step % 2 else x + y
        return x

    return operations


def rows(length: int) -> Callable[..., Any]:
    def normalized(x, y):
        for _ in range(length):
            x = x - x.max(axis=-1, keepdims=True) * y
        return x

    return normalized


def side_by_side(length: int) -> Callable[..., Any]:
    def independent(x, y):
        return [x * np.float32(step) + y for step in range(length)]

    return independent


def calls_to_plan(function: Callable[..., Any], *arrays: np.ndarray) -> int:
    """How many functions are called to plan a program that is traced already."""
    stages = stages_of(function, *arrays)
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        default_schedule(stages, REFERENCE)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(("program", "length"), [(chain, 1000), (rows, 250), (side_by_side, 250)])
def test_planning_takes_time_in_proportion(
    program: Any, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the operations, 2,000 of the chain, take no more than 2.4 times the work."""
    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 2 * length)
    arrays = ones(60, 500), ones(60, 500)
    once, twice = (calls_to_plan(program(size), *arrays) for size in (length, 2 * length))
    assert twice < 2.4 * once


def totals_of_exponentials(x):
    return np.exp(x).sum(axis=1)


def test_what_takes_elements_one_by_one_finds_them_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Vectors compute exponentials, of many short rows as one; not a chain over each row."""
    (kernel,) = lowered(totals_of_exponentials, ones(10000, 31)).kernels
    assert [loop.variable.extent for loop in loops_of(kernel)][:4] == [313, 32 * 31, 32, 31]
    monkeypatch.setattr(Grouping, "rows_at_once", lambda self, units, depth: 1)
    assert kernels_of(lowered(totals_of_exponentials, ones(10000, 31))) == ["exp_1", "out"]
    monkeypatch.setattr(groups, "VECTOR_ROW", 1)
    (kernel,) = lowered(totals_of_exponentials, ones(10000, 31)).kernels
    assert [loop.variable.extent for loop in loops_of(kernel)] == [10000, 31, 31]
    monkeypatch.setattr(planner, "SLOW_ALONE", 1000)
    (kernel,) = lowered(totals_of_exponentials, ones(10000, 31)).kernels
    assert [loop.variable.extent for loop in loops_of(kernel)] == [10000, 31]


def shifted_shares(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_exponentials_go_through_rows_that_vectors_do_not_fit_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of each row would be computed element by element."""

    monkeypatch.setattr(Grouping, "rows_at_once", lambda self, units, depth: 1)

    def loops_of_exponentials(columns: int) -> list[int]:
        kernels = lowered(shifted_shares, ones(10000, columns)).kernels
        (kernel,) = [each for each in kernels if each.stages[-1] == "e"]
        return [loop.variable.extent for loop in loops_of(kernel)]

    assert loops_of_exponentials(31) == [310000]
    assert loops_of_exponentials(32) == [10000, 32]
    monkeypatch.setattr(planner, "EXPONENTIAL", 1000)
    assert loops_of_exponentials(31) == [10000, 31]


@pytest.mark.parametrize("columns", [3, 10, 16, 31, 32, 63])
def test_short_rows_are_computed_many_at_a_time(columns: int) -> None:
    """So that nothing of them is stored, and vectors are full."""
    program = lowered(shifted_shares, ones(10000, columns))
    assert kernels_of(program) == ["out"]
    assert program.scratch_bytes == 0
    rows = {3: 256, 10: 64, 16: 64, 31: 32, 32: 32, 63: 16}[columns]
    first = loops_of(program.kernels[0])[0]
    assert first.variable.extent == -(-10000 // rows)


def looked_up_logs(x, places):
    logs = x - np.log(np.abs(x).sum(axis=-1, keepdims=True))
    return logs[np.arange(len(places)), places]


def test_what_looks_for_each_element_finds_others_computed() -> None:
    """Vectors compute logarithms, not a loop that goes from one place to the next."""
    places = np.zeros(10000, np.int64)
    text = lowered(looked_up_logs, ones(10000, 3), places).as_text("loops")
    assert re.search(r"log\w*\[i\] = log\(", text)


def loops_of(kernel: Kernel) -> list[For]:
    return [each for each in walk_statements(kernel.body) if isinstance(each, For)]


def nine_times(u):
    rows = [np.exp(u)]
    for _ in range(9):
        rows.append(np.sin(rows[-1][1:] + rows[-1][:-1]))
    total = 0
    for each in rows:
        total = total + each[: len(rows[-1])] * each[-len(rows[-1]) :]
    return total


def test_all_that_is_alive_at_once_fits_a_stack() -> None:
    for kernel in lowered(nine_times, ones(1024, 1024)).kernels:
        for strip in kernel.body[-1].body:
            stack = [each for each in walk_statements([strip]) if isinstance(each, Alloc)]
            assert sum(each.buffer.nbytes for each in stack) <= 2 * STACK_LIMIT


def four_times(u):
    for _ in range(4):
        v = u.copy()
        v[1:-1] = u[2:] + u[:-2]
        u = v
    return u


@pytest.mark.parametrize("cores", [1, 2])
def test_edges_of_many_stages_do_not_keep_a_loop_whole(cores: int) -> None:
    traced = tinyfuse.jit(four_times).trace(ones(1024, 1024))
    machine = replace(REFERENCE, cores=cores)
    assert len(Lowered(traced, traced.options, machine).kernels) == 1


def sought_at_every_other(table):
    places = np.digitize(table, np.cumsum(table > 0), right=True)
    places[::2] = 1
    return places


def test_what_stands_behind_a_test_is_not_written_out_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing has a name there: a search of seven halvings would be seven times as long each."""
    text = lowered(sought_at_every_other, ones(100)).as_text("c")
    assert len(text) < 30_000
    monkeypatch.setattr(written_out, "WRITTEN_OUT_BUDGET", 1 << 60)
    assert len(lowered(sought_at_every_other, ones(100)).as_text("c")) > 10 * len(text)


def updated_in_one_place(p, a, turns):
    o = np.zeros(10)
    for i in iter([*range(turns)]):
        if p[i] > 5:
            o[min(i, 9)] += a
    return o


def chosen_below_a_diagonal(p, a, turns):
    y = np.outer(p, p)
    for _ in iter([*range(turns)]):
        y = np.where(y > a, np.where(y < 9, y * 1.5, y), y)
    return np.tril(y)


def clipped_among_others(p, a, turns):
    y = p * a
    for _ in iter([*range(turns)]):
        y = np.clip(y * a, -y, y + 1)
    return np.concatenate([y[start:] for start in range(12)])


@pytest.mark.parametrize(
    "function", [updated_in_one_place, chosen_below_a_diagonal, clipped_among_others]
)
@pytest.mark.parametrize("target", ["c", "cuda"])
def test_text_behind_tests_grows_with_the_program(function: Callable[..., Any], target: str):
    """And not twofold with each turn that mentions the result of the one before two times."""
    arguments = np.arange(160.0), 0.5
    for turns in (20, 40, 80, 160):
        low = tinyfuse.jit(function).lower(*arguments, turns)
        text = (low if target == "c" else low.on("cuda")).as_text(target)
        assert len(text) < 800 * turns


@pytest.mark.parametrize("turns", [9, 40])
@pytest.mark.parametrize(
    "function", [updated_in_one_place, chosen_below_a_diagonal, clipped_among_others]
)
def test_what_is_stored_for_its_length_is_numpys(function: Callable[..., Any], turns: int):
    p = np.arange(160.0) % 11
    np.testing.assert_array_equal(tinyfuse.jit(function)(p, 0.5, turns), function(p, 0.5, turns))
