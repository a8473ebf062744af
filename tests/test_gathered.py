"""Elements that data choose of a computed array are computed where they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.test_fusion import lowered
from tests.test_fusion_rules import stages_of
from tinyfuse.errors import ScheduleError
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.expr import Index
from tinyfuse.testing import Case, Ladder, Variant
from tinyfuse.testing.variants import fused, unfused

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((40, 70)).astype(np.float32)
LABELS = RANDOM.integers(-70, 70, 40)
SEVERAL = RANDOM.integers(0, 70, (40, 3))
ROWS = RANDOM.integers(0, 40, 25)


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def loss(x, labels):
    return -log_softmax(x)[np.arange(len(labels)), labels].mean()


def several_losses(x, labels):
    return -np.take_along_axis(log_softmax(x), labels, -1)


def probabilities(x, labels):
    """Exponentials are computed once: the row that is chosen from is kept while it is needed."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True))[np.arange(len(labels)), labels]


def whole_rows(x, rows):
    return (np.exp(x) * 2)[rows]


def beside_and_backwards(x, labels):
    return (np.abs(x[::-1, 1:]) + x[:, :-1])[np.arange(len(labels)), labels % 69]


def one_after_the_other(x, labels, rows):
    return ((x * 2)[rows] + 1)[np.arange(len(rows)), labels[rows]]


def of_either_part(x, labels):
    places = np.arange(len(labels)), labels
    return np.concatenate([(x + 1)[places], (x * 3)[places]])


def also_returned(x, labels):
    logs = log_softmax(x)
    return logs, logs[np.arange(len(labels)), labels]


def beside_their_places(x, labels):
    places = np.arange(len(labels))
    return (x * x + 1)[places, labels] * places, places


def padded(x, labels):
    return (np.pad(x * 2, 1) + 1)[np.arange(len(labels)), np.abs(labels)]


def flattened(x, labels):
    return (np.repeat(x, 2, axis=1) * 2 + 1)[np.arange(len(labels)), labels]


def squared_again_and_again(x, labels):
    for _ in range(25):
        x = x * x + np.float32(0.1)
    return x[np.arange(len(labels)), labels]


PROGRAMS: list[tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = [
    (loss, (X, LABELS)),
    (several_losses, (X, SEVERAL)),
    (probabilities, (X, LABELS)),
    (whole_rows, (X, ROWS)),
    (beside_and_backwards, (X, LABELS)),
    (one_after_the_other, (X, LABELS, ROWS)),
    (of_either_part, (X, LABELS)),
    (also_returned, (X, LABELS)),
    (beside_their_places, (X, LABELS)),
    (padded, (X, LABELS)),
    (flattened, (X, LABELS)),
    (squared_again_and_again, (X, LABELS)),
]


def test_the_same_bits_as_of_the_whole_array() -> None:
    variants = [Variant("unfused C", unfused), Variant("fused C", fused, pieces=(1, 2))]
    cases = [
        Case(function, list(arrays), function.__name__, exact=False)
        for function, arrays in PROGRAMS
    ]
    Ladder(variants).climb(cases).check()


def tall(array: np.ndarray) -> np.ndarray:
    """The same rows again and again, so that no kernel is small."""
    return np.tile(array, (100, *[1] * (array.ndim - 1)))


@pytest.mark.parametrize(
    ("program", "places", "scratch"),
    [
        (several_losses, SEVERAL, 0),
        (probabilities, LABELS, 0),
        (beside_and_backwards, LABELS, 0),
        (flattened, LABELS, 0),  # a row is kept at a time: each of it takes a division to find
        (squared_again_and_again, LABELS, 0),
    ],
)
def test_no_row_is_stored_whole(program: Any, places: np.ndarray, scratch: int) -> None:
    assert lowered(program, tall(X), tall(places)).scratch_bytes == scratch


def test_what_is_read_twice_is_computed_once() -> None:
    """Each square reads the one before it in two places."""
    assert len(lowered(squared_again_and_again, X, LABELS).as_text("c")) < 4000


def test_a_gather_by_an_iota_is_at_its_index() -> None:
    reads = [read for stage in stages_of(loss, X, LABELS).stages for read in stage.reads()]
    (first, _) = next(read.data for read in reads if read.data)
    assert isinstance(first, Index)
    assert not any(stage.name == "iota" for stage in stages_of(loss, X, LABELS).stages)


def test_what_tests_its_indices_is_not_inlined_where_data_decide() -> None:
    schedule = Schedule(stages_of(padded, X, LABELS))
    schedule = schedule.inline(schedule.stage("add"))
    message = "data decides where add reads it, and its own expression divides or tests indices"
    with pytest.raises(ScheduleError, match=message):
        schedule.inline(schedule.stage("pad"))


def test_what_is_gathered_at_two_places_is_computed_once() -> None:
    def steps(x, places, count):
        for _ in range(count):
            x = np.tanh(x)[places] + x[places[::-1]]
        return x

    x, places = np.ones(40, np.float32), np.arange(40)[::-1] // 2
    few, many = (
        len(tinyfuse.jit(steps, static_argnames="count").lower(x, places, count=n).as_text("c"))
        for n in (4, 12)
    )
    assert many < 3 * few
