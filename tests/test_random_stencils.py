"""Random chains of stencils, planned as if caches were small: rings and strips, the same bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tinyfuse
from tests.graphs import PlainNumerics
from tests.racing import interpret_racing
from tinyfuse.graph.simplify import simplify
from tinyfuse.loops.ir import Loops
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower import sharing, storage
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, Machine
from tinyfuse.records import replace
from tinyfuse.schedule import groups, loop_order, small, stencils
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.interpreter import interpret_stages
from tinyfuse.stage.ir import Stages
from tinyfuse.testing import difference
from tinyfuse.testing.choices import Choices, SeededChoices

MACHINES = [
    replace(REFERENCE, l1=64, l2=l2, cores=cores) for l2, cores in ((300, 2), (1200, 1), (6000, 2))
]

Step = Callable[[Choices, list[np.ndarray]], np.ndarray]


def rows(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    array, apart = arrays[-1], 1 + choices.below(3)
    return array[apart:] * np.float32(choices.choose((1, 2, 0.5))) + array[:-apart]


def three_rows(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    array = arrays[-1]
    return array[2:] - 2 * array[1:-1] + array[:-2]


def corners(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    array = arrays[-1]
    return array[1:-1, 1:] * 2 - array[2:, 1:] - array[:-2, :-1]


def columns(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[-1][:, 1:] - arrays[-1][:, :-1]


def framed(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    widths = [[choices.below(3) for _ in range(2)] for _ in range(2)]
    return np.pad(arrays[-1] * 2, widths, mode=choices.choose(("constant", "edge")))


def mixed(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    """With rows of an array before, moved down."""
    array, other = arrays[-1], choices.choose(arrays)
    height, width = map(min, zip(array.shape, other.shape, strict=True))
    first = choices.below(array.shape[0] - height + 1)
    return array[first : first + height, :width] * other[:height, :width]


def costly(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    return np.sqrt(np.abs(arrays[-1])) / (1 + arrays[-1] * arrays[-1])


def around(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[-1] - np.roll(arrays[-1], choices.choose((-1, 1, 2)), axis=choices.below(2))


def every_second(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    half = arrays[-1].shape[0] // 2 * 2
    return arrays[-1][0:half:2] + arrays[-1][1:half:2]


def less_its_sum(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[-1] - arrays[-1].sum(axis=-1, keepdims=True)


def rolled(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    """As `around`, with what is computed of another array, and further."""
    array, other = arrays[-1], choices.choose(arrays)
    shift = choices.choose((-1, 1, -2, 3))
    return np.roll(other * 2, shift, axis=0) + array * np.roll(array, -shift, choices.below(2))


def upwind(choices: Choices, arrays: list[np.ndarray]) -> np.ndarray:
    array = arrays[-1]
    down, up = array - np.roll(array, 1, 0), np.roll(array, -1, 0) - array
    return np.where(choices.choose(arrays) > 0, down, up) + np.roll(array, 1, (0, 1))


STEPS: tuple[Step, ...] = (
    *(rows, rows, rows, three_rows, three_rows, corners, columns, framed, framed),
    *(mixed, mixed, costly, around, every_second, less_its_sum),
)


ROUND: tuple[Step, ...] = (around, around, rolled, upwind, costly)


def chain(seed: int, steps: tuple[Step, ...]) -> Callable[..., tuple[np.ndarray, ...]]:
    """The last array of a chain, and now and then one before it."""

    def stencil_chain(x, y):
        choices, arrays = SeededChoices(seed), [x, y]
        for _ in range(3 + choices.below(5)):
            arrays.append(choices.choose(steps)(choices, arrays))
        kept = [array for array in arrays[2:-1] if choices.chance(1, 12)]
        return (*kept, arrays[-1])

    return stencil_chain


def inputs(seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    shape = random.integers(30, 60), random.integers(6, 12)
    return [random.standard_normal(shape).astype(np.float32) for _ in range(2)]


def planned(stages: Stages, machine: Machine, found: list[str]) -> Loops:
    schedule, _ = default_schedule(stages, machine)
    found.append(schedule_text(schedule))
    loops = lower(schedule, machine)
    verify_loops(loops)
    return loops


@pytest.fixture
def threads_share_what_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_order, "PARALLEL_ELEMENTS", 1)
    monkeypatch.setattr(groups, "PARALLEL_ELEMENTS", 1)
    monkeypatch.setattr(small, "PARALLEL_ELEMENTS", 1)
    monkeypatch.setattr(stencils, "PLACES_PER_CORE", 1)
    monkeypatch.setattr(stencils, "RING_ROW", 1)
    monkeypatch.setattr(sharing, "SHARED_BYTES", 1)
    monkeypatch.setattr(storage, "LONG_ROW", 1)


@pytest.mark.usefixtures("threads_share_what_is_small")
@pytest.mark.parametrize(
    ("most_rings", "steps", "text"), [(3, STEPS, "fold("), (0, STEPS, " by "), (3, ROUND, "wrap(")]
)
def test_random_chains_of_stencils(
    most_rings: int, steps: tuple[Step, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rings, and where these are not wanted, in strips; in strips of rows that go round."""
    monkeypatch.setattr(stencils, "MOST_RINGS", most_rings)
    found: list[str] = []
    for seed in range(16):
        arrays = inputs(seed)
        stages = build_stages(simplify(tinyfuse.jit(chain(seed, steps)).trace(*arrays).graph))
        given = arrays[: len(stages.inputs)]
        expected = interpret_stages(stages, given, PlainNumerics())
        for machine in MACHINES:
            results = interpret_racing(planned(stages, machine, found), given, PlainNumerics())
            for wanted, result in zip(expected, results, strict=True):
                assert difference(wanted, result.reshape(wanted.shape)) is None, found[-1]
    assert sum(text in each for each in found) >= 5
