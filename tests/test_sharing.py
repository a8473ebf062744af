"""Memory on the stack that stages of a step share, and where their rows begin in it."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import tinyfuse
from tests.test_controls import ARGUMENTS, Control, first_fault
from tests.test_fusion import lowered
from tinyfuse.compilation import Lowered
from tinyfuse.lower import sharing, storage
from tinyfuse.machine import SM_90
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.testing import schedules


def smoothed(u):
    for _ in range(6):
        u = np.pad(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]), 1)
    return u


def shrinking(u):
    for _ in range(6):
        u = u[2:, 1:-1] + u[:-2, 1:-1] * u[1:-1, 2:] - u[1:-1, :-2]
    return u


def mirrored(u):
    for _ in range(6):
        u = np.pad(u[:-2] + u[2:, ::-1], ((1, 1), (0, 0)))
    return u


def text_of(function: Callable[..., np.ndarray], *shape: int) -> str:
    program = lowered(function, np.ones(shape, np.float32))
    assert len(program.kernels) == 1
    return program.as_text("c")


def stack_of(text: str) -> list[tuple[str, str]]:
    """The arrays that a kernel declares, without those that it streams from."""
    found = re.findall(r"float (\w+)\[(\d+)\];", text)
    return [(name, size) for name, size in found if "block" not in name]


def test_steps_of_a_stencil_lie_in_one_array() -> None:
    """Each row where the one above it was in the step before: so in strips that begin at an edge
    there is room for more of the first steps."""
    first, middle, last = stack_of(text_of(smoothed, 2048, 2040))
    assert [name for name, _ in (first, middle, last)] == [
        f"u_1_and_u_2{n}" for n in ("", "_1", "_2")
    ]
    rows = [(int(size) - 15) / 2064 for _, size in (first, middle, last)]
    assert rows == [64 + 5 + 4, 64 + 2 * 5, 64 + 5]


def test_rows_begin_with_cache_lines_where_vectors_begin() -> None:
    """The first element is no sum."""
    text = text_of(smoothed, 2048, 2040)
    assert "for (long j = 1; j < 2039; j++)" in text
    assert "u_1_and_u_2_1[2064 * i + j + 15] = multiply;" in text
    assert "u_1_and_u_2_1[2064 * i + 15] = 0.0f;" in text


def test_rows_of_other_lengths_lie_in_other_arrays() -> None:
    """From 127 lines on to 128: what is read of one element lies further and further on."""
    found = stack_of(text_of(shrinking, 2048, 2040))
    assert [name for name, _ in found] == ["u_1_and_u_2", "u_4", "u_1_and_u_2_1", "u_4"]


def test_what_is_read_backwards_is_not_overwritten() -> None:
    names = {name for name, _ in stack_of(text_of(mirrored, 2048, 2040))}
    assert names == {f"u_{n}_and_u_{n + 2}{at}" for n in (1, 2) for at in ("", "_1", "_2")}


def test_threads_of_a_device_overwrite_nothing_that_others_read() -> None:
    """They go through the rows in no order."""
    traced = tinyfuse.jit(smoothed).trace(np.ones((2048, 2048), np.float32))
    names = re.findall(r"scratch (\w+):", Lowered(traced, traced.options, SM_90).as_text("loops"))
    assert len(names) == 6
    assert all(re.match("u_[12]_and_u_[34]", name) for name in names)


def framed(x):
    for _ in range(3):
        x = np.pad(x[:-2, 1:-1] - x[1:-1, :-2] * x[1:-1, 2:], 1)
    return x + 1


def divided(x):
    y = x[1:] + x[:-1]
    z = y[2:] * y[:-2]
    return np.pad(z[2:] - z[1:-1] * z[:-2], ((1, 0), (0, 0))) + 1


def in_strips(schedule: Schedule) -> Schedule:
    """All steps are computed for every few rows of the last one."""
    schedule = Schedule(schedule.stages)
    *before, last = schedule.stages.stages
    schedule = schedule.split(last, last.axes[0], 4)
    strip = schedule[last].loops[0]
    for stage in before[::-1]:
        schedule = schedule.compute_at(stage, last, strip)
    return schedule


STRIPS = Control([framed], [schedules._reorder, schedules._split, schedules._inline], in_strips)


@pytest.fixture
def small_ones_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "SHARED_BYTES", 1)
    monkeypatch.setattr(storage, "LONG_ROW", 1)
    monkeypatch.setitem(ARGUMENTS, framed, ((12, 7),))
    monkeypatch.setitem(ARGUMENTS, divided, ((12, 5),))


@pytest.mark.usefixtures("small_ones_share")
@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("_goes_in_order", lambda *arguments: True),
        ("_computes_once", lambda *arguments: True),
        ("_line_before", lambda places, itemsize: max(places)),
    ],
)
def test_without_a_check_of_memory_something_goes_wrong(
    name: str, replacement: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored takes the place of nothing that is read later."""
    assert first_fault(STRIPS) is None
    monkeypatch.setattr(sharing, name, replacement)
    assert first_fault(STRIPS)
