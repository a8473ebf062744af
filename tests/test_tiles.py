"""Arrays read across their rows: by tiles, the next one asked for ahead, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.graphs import GraphBuilder
from tests.test_lower import inputs_of
from tinyfuse.graph.ir import Graph
from tinyfuse.loops.ir import Alloc, For, If, Loops, Prefetch, Transpose, walk_statements
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.build import build_stages
from tinyfuse.testing.compiled import Library

# Caches so small that arrays of a few pages come from far.
SMALL = replace(REFERENCE, l1=1 << 12, l2=1 << 12)


def transposed(rows: int, columns: int) -> Callable[[GraphBuilder], Graph]:
    def program(build: GraphBuilder) -> Graph:
        x, y = build.input("x", rows, columns), build.input("y", columns, rows)
        return build.graph(build.op("add", x, build.transpose(build.op("exp", y), 1, 0)))

    return program


def lowered(program: Callable[[GraphBuilder], Graph], machine: Any = SMALL) -> tuple[Loops, Any]:
    stages = build_stages(program(GraphBuilder("ahead")))
    return lower(default_schedule(stages, machine)[0], machine), stages


def prefetches(loops: Loops) -> list[Prefetch]:
    return [
        statement
        for kernel in loops.kernels
        for statement in walk_statements(kernel.body)
        if isinstance(statement, Prefetch)
    ]


def test_a_transpose_goes_by_tiles_and_asks_for_the_next_one() -> None:
    stages = build_stages(transposed(512, 512)(GraphBuilder("ahead")))
    schedule, _ = default_schedule(stages, SMALL)
    assert "i by 32 < 512 parallel, j by 32 < 512, i < 512, j < 512 vector" in schedule_text(
        schedule
    )
    lines = loops_text(lower(schedule, SMALL)).splitlines()
    assert [line.strip() for line in lines[2:11]] == [
        "for i_outer < 16 parallel",
        "for j_outer < 16",
        "alloc y_copy: float32[1024] on the stack",
        "transpose 32 by 32 elements of y[16384 * j_outer + 32 * i_outer…] by 512"
        " to y_copy[0…] by 32, 16 lanes",
        "for i < 32",
        "prefetch 32 elements of y[16384 * j_outer + 512 * i + 32 * i_outer + 16384…]",
        "prefetch 32 elements of x[16384 * i_outer + 512 * i + 32 * j_outer + 32…]",
        "prefetch 32 elements of out[16384 * i_outer + 512 * i + 32 * j_outer + 32…]",
        "for j < 32 vector",
    ]


def test_rows_of_another_number_are_asked_for_in_a_loop_of_their_own() -> None:
    """In the last rows of tiles: 8 of x, but still 32 of y."""
    loops = lowered(transposed(520, 512))[0]
    choice = next(s for s in walk_statements(loops.kernels[0].body) if isinstance(s, If))
    for part, rows in ((choice.then, []), (choice.otherwise, [32])):
        (tiles,) = part
        assert isinstance(tiles, For)
        *first, alloc, copy, last = tiles.body
        assert [loop.variable.extent for loop in first] == rows
        assert isinstance(alloc, Alloc)
        assert isinstance(copy, Transpose)
        assert isinstance(last, For)


@pytest.mark.parametrize(
    ("program", "machine"),
    [
        (transposed(512, 512), REFERENCE),  # in the L2
        (transposed(64, 16), SMALL),  # few lines, which stay in the L1
    ],
)
def test_what_is_near_is_not_asked_for(program: Any, machine: Any) -> None:
    assert prefetches(lowered(program, machine)[0]) == []


@pytest.mark.parametrize(
    "program", [transposed(rows, columns) for rows in (300, 320) for columns in (257, 288)]
)
def test_bits_stay(program: Any) -> None:
    loops, stages = lowered(program)
    verify_loops(loops)
    arrays = inputs_of(stages)
    unfused = lower(default_schedule(stages, REFERENCE, fuse=False)[0], REFERENCE)
    assert not prefetches(unfused)
    (want,) = Library([replace(unfused, name="plain")]).run(replace(unfused, name="plain"), arrays)
    library = Library([loops], flags=("-O3",))
    for pieces in (1, 2, 3):
        (result,) = library.run(loops, arrays, pieces)
        assert result.tobytes() == want.tobytes()
