"""Pieces of rows that tiles read: which are copied, and what is asked for ahead of its use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.loops.printer import loops_text
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.testing import difference


def product(x, w):
    return x @ w


def across(x, w):
    return x.T @ w


def planned(
    function: Any, rows: tuple[int, ...], columns: tuple[int, ...], machine: Machine = REFERENCE
) -> Schedule:
    x, w = np.ones(rows, np.float32), np.ones(columns, np.float32)
    return default_schedule(tinyfuse.jit(function).lower(x, w).stages, machine)[0]


@pytest.mark.parametrize(
    ("rows", "columns", "machine", "copied"),
    [
        ((16, 1024), (1024, 1024), REFERENCE, False),
        ((256, 1024), (1024, 1024), REFERENCE, False),
        ((768, 1024), (1024, 1024), REFERENCE, True),  # that many rows meet the copies
        ((16, 2048), (2048, 2048), REFERENCE, True),  # not all of it stays in the third cache
        ((15, 2048), (2048, 2048), REFERENCE, False),
        ((16, 1024), (1024, 1024), REFERENCE_AVX2, True),  # whose tiles are narrow
        ((64, 4096), (4096, 64), REFERENCE, False),  # rows follow each other
        ((64, 4096), (4096, 64), REFERENCE_AVX2, True),
    ],
)
def test_columns_are_copied_where_that_pays(
    rows: tuple[int, ...], columns: tuple[int, ...], machine: Machine, copied: bool
) -> None:
    assert ("w_copy = cache_read(w" in str(planned(product, rows, columns, machine))) is copied


@pytest.mark.parametrize(
    ("rows", "columns", "height", "width"),
    [
        (16, 256, 8, 32),
        (32, 256, 8, 32),
        (20, 256, 5, 64),
        (64, 256, 5, 64),
        (28, 256, 14, 32),
        (600, 256, 6, 64),
        (600, 48, 8, 48),
    ],
)
def test_tiles_leave_little_over(rows: int, columns: int, height: int, width: int) -> None:
    schedule = str(planned(product, (rows, 256), (256, columns)))
    assert f"i by {height} < {rows}" in schedule
    assert f"j by {width} < {columns}" in schedule


def test_tiles_ask_for_the_next_tile_along_the_rows() -> None:
    text = loops_text(lower(planned(product, (64, 600), (600, 512)), REFERENCE))
    asked = "prefetch 64 elements of w[512 * k + 64 * j_outer + 79…] into the second cache"
    assert asked in text
    small = loops_text(lower(planned(product, (64, 500), (500, 512)), REFERENCE))
    assert "prefetch" not in small


def test_copies_ask_for_later_rows() -> None:
    schedule = planned(product, (768, 600), (600, 512), replace(REFERENCE, cores=1))
    asked = "prefetch 79 elements of w[512 * i + 64 * j_outer + 16384…] into the second cache"
    assert asked in loops_text(lower(schedule, REFERENCE))
    schedule = planned(product, (64, 600), (600, 512), replace(REFERENCE_AVX2, cores=1))
    lines = loops_text(lower(schedule, REFERENCE_AVX2)).splitlines()
    first = next(n for n, line in enumerate(lines) if "prefetch" in line)
    assert [line.strip() for line in lines[first : first + 3]] == [
        "prefetch 79 elements of w[512 * i + 64 * j_outer + 16384…] into the second cache",
        "for j_outer_1 < 4",
        "for j < 16",
    ]


def test_what_is_asked_for_ahead_changes_nothing() -> None:
    random = np.random.default_rng(5)
    w = random.standard_normal((700, 516)).astype(np.float32)
    for rows in (17, 800):
        x = random.standard_normal((rows, 700)).astype(np.float32)
        lowered = tinyfuse.jit(product).lower(x, w)
        assert "  __builtin_prefetch((const char *)from + at, 0, 2);" in lowered.as_text("c")
        found, expected = lowered.compile()(x, w), lowered.unfused().compile()(x, w)
        assert difference(expected, found) is None


def test_rows_that_lie_close_are_copied_for_narrow_tiles() -> None:
    assert "x_copy" not in str(planned(across, (4096, 64), (4096, 64)))
    assert "x_copy: root" in str(planned(across, (4096, 64), (4096, 64), REFERENCE_AVX2))


def test_threads_share_a_loop_with_even_parts() -> None:
    schedule = str(planned(across, (20000, 256), (20000, 256)))
    assert "  out_blocks: root; j by 32 < 256 padded parallel, b < 5, i by 8 < 256" in schedule
    assert "  w_copy: compute_at(out_blocks, b); layout(j by 32, i, j)" in schedule
    even = str(planned(across, (30000, 256), (30000, 256)))
    assert "  out_blocks: root; b < 8 parallel, j by 32 < 256 padded" in even


def test_constants_are_copied_once_for_all_calls() -> None:
    weights = tinyfuse.constant(np.ones((1024, 1024), np.float32))
    traced = tinyfuse.jit(lambda x: x @ weights).lower(np.ones((16, 1024), np.float32))
    schedule = str(default_schedule(traced.stages, REFERENCE)[0])
    assert "weights_copy: root; layout(j by 32, i, j)" in schedule


def test_what_is_kept_inside_a_kernel_has_no_copy_outside() -> None:
    def weighted(x, w):
        return np.einsum("ber,bec->brc", np.exp(x), w)

    schedule = str(planned(weighted, (4, 64, 18), (4, 64, 32), REFERENCE_AVX2))
    assert "  exp_1: compute_at(out, i);" in schedule
    assert "out_local: compute_at(out, j by 6);" in schedule
    assert "exp_1_copy" not in schedule
