"""Axes that go round: what stands at one end of a stage is copied to the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.test_copies import ones, started
from tests.test_fusion import lowered
from tests.test_lower import assert_same_bits
from tinyfuse.errors import ScheduleError
from tinyfuse.loops.printer import loops_text
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage import wrapping
from tinyfuse.stage.printer import stages_text
from tinyfuse.stage.verifier import verify_stages


def differences(x):
    squares = x * x
    return np.roll(squares, 1, axis=0) - np.roll(squares, -2, axis=0)


def of_rows(x):
    """The second row, and one row after the other."""
    squares = x * x
    return squares[1] + np.roll(squares, 1, axis=0)


def looked_up(x, places):
    squares = x * x
    return squares[places] + squares


def numbered(x):
    squares = x * np.arange(len(x))[:, None]
    return np.roll(squares, 1, axis=0)


def wrapped(start: Schedule, before: int, after: int) -> Schedule:
    squares = start.stage("squares")
    return start.wrap(squares, squares.axis("i"), before, after)


def inlined(schedule: Schedule) -> Schedule:
    """With all that comes before squares in it."""
    stages = schedule.stages.stages
    for stage in stages[: stages.index(schedule.stage("squares"))]:
        schedule = schedule.inline(stage)
    return schedule


def test_what_reads_a_stage_round_and_round_does_not_test_for_its_ends() -> None:
    start = started(differences, ones(8, 3))
    text = stages_text(start.stages)
    assert "squares[7, j] if i < 1 else squares[i - 1, j]" in text
    schedule = wrapped(start, 1, 2)
    verify_stages(schedule.stages)
    lines = stages_text(schedule.stages).splitlines()
    assert "  concat[i < 8, j < 3]: float32 = squares[i, j]" in lines
    assert "  concat_1[i < 8, j < 3]: float32 = squares[i + 3, j]" in lines
    assert any(line.startswith("  squares[i < 11, j < 3]") for line in lines)


@pytest.mark.parametrize("before", [0, 1, 3, 8])
@pytest.mark.parametrize("after", [0, 2, 8])
@pytest.mark.parametrize("program", [differences, of_rows])
def test_the_same_bits_with_any_number_of_copies(
    program: Callable[..., Any], before: int, after: int
) -> None:
    start = started(program, ones(8, 3))
    if before or after:
        schedule = wrapped(start, before, after)
        assert_same_bits(lower(schedule, REFERENCE), start.stages)


def test_strips_of_what_goes_round() -> None:
    """Each finds all that it needs of the rows around."""
    start = started(differences, ones(8, 3))
    schedule = wrapped(start, 1, 2)
    for name in ("concat", "concat_1"):
        schedule = schedule.inline(schedule.stage(name))
    out, squares = schedule.stage("out"), schedule.stage("squares")
    schedule = schedule.split(out, out.axis("i"), 4)
    loops = lower(schedule.compute_at(squares, out, schedule[out].loops[0]), REFERENCE)
    assert "alloc squares: float32[21] on the stack" in loops_text(loops)
    assert_same_bits(loops, start.stages)


def test_a_schedule_with_axes_that_go_round_is_saved(tmp_path: Path) -> None:
    program = lowered(steps, ones(512, 512), ones())
    path = tmp_path / "schedule"
    program.schedule.save(path)
    saved = path.read_text()
    assert "q_copy along i < 4 + 512 + 0" in saved
    assert "q_copy along j < 4 + 512 + 0" in saved
    assert tinyfuse.Schedule.load(path, program.stages) == program.schedule


def steps(q, speed):
    for _ in range(4):
        q = q - speed * (q - np.roll(q, 1, axis=0)) - speed * (q - np.roll(q, 1, axis=1))
    return q


@pytest.mark.parametrize(
    ("program", "arrays", "wrap", "message"),
    [
        (
            differences,
            (ones(8, 3),),
            lambda s, squares, out: s.wrap(out, out.axis("i"), 1, 1),
            "wrap(out, i, 1, 1): out cannot go round: it is an output, which has no room past",
        ),
        (
            differences,
            (ones(8, 3),),
            lambda s, squares, out: s.wrap(squares, squares.axis("i"), 9, 0),
            "squares cannot go round: there are only 8 elements to go on with",
        ),
        (
            differences,
            (ones(8, 3),),
            lambda s, squares, out: s.wrap(squares, squares.axis("i"), 0, 0),
            "there are no elements to go on with",
        ),
        (
            differences,
            (ones(8, 3),),
            lambda s, squares, out: s.wrap(squares, out.axis("i"), 1, 0),
            "i is not one of its axes, or is reduced",
        ),
        (
            differences,
            (ones(8, 3),),
            lambda s, squares, out: wrapped(wrapped(s, 1, 1), 1, 1),
            "squares cannot go round: it does not read x at its own places",
        ),
        (
            differences,
            (ones(0, 3),),
            lambda s, squares, out: wrapped(s, 1, 0),
            "squares cannot go round: it does not read x at its own places",
        ),
        (
            looked_up,
            (ones(8, 3), np.arange(8)),
            lambda s, squares, out: wrapped(s, 1, 1),
            "squares cannot go round: data decides where it is read",
        ),
        (
            numbered,
            (ones(8, 3),),
            lambda s, squares, out: wrapped(inlined(s), 1, 1),
            "cannot go round: it depends on where along i it is",
        ),
    ],
)
def test_what_cannot_go_round(
    program: Callable[..., Any], arrays: Any, wrap: Callable[..., Schedule], message: str
) -> None:
    start = started(program, *arrays)
    with pytest.raises(ScheduleError) as caught:
        wrap(start, start.stage("squares"), start.stage("out"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("along i < 1 + 8 + 2", "along i < 1 + 9 + 2", "i of squares has no 9 elements"),
        ("along i < 1 + 8 + 2", "along k < 1 + 8 + 2", "squares has no axis k; its axes: i, j"),
        ("along i < 1 + 8 + 2", "along i < 8", "wrap of squares takes stages, as `y along i < 1"),
        ("along i < 1 + 8 + 2", "along i < 9 + 8 + 2", "there are only 8 elements to go on with"),
        ("squares along", "out along", "out cannot go round: it is an output"),
        ("squares along", "nothing along", "there is no nothing; there are: "),
    ],
)
def test_texts_that_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    start = started(differences, ones(8, 3))
    text = str(wrapped(start, 1, 2))
    assert old in text
    path = tmp_path / "changed"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ScheduleError) as caught:
        Schedule.load(path, start.stages)
    assert message in str(caught.value)


def test_data_must_not_decide_where_a_stage_is_read_that_goes_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody would move such a place on by the copies in front."""
    start = started(looked_up, ones(8, 3), np.arange(8))
    monkeypatch.setattr(wrapping, "_check", lambda *arguments: None)
    with pytest.raises(ValueError, match="longer"):
        lower(wrapped(start, 1, 1), REFERENCE)
