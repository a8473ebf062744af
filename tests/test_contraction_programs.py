"""Random programs around products: planned for many machines, in tiles, the same bits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import tinyfuse
from tests.contraction_programs import contraction_program
from tests.sanitized import check_sanitized
from tinyfuse.loops.ir import Alloc, Loops, Scope, walk_statements
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, REFERENCE_AVX2, Machine
from tinyfuse.records import replace
from tinyfuse.schedule import groups, loop_order, pairs, planner, register_tiles, small
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.testing import Case, Ladder, Variant, program_case
from tinyfuse.testing.variants import unfused

ONE_CORE = replace(REFERENCE, cores=1)
MACHINES = (
    *(REFERENCE, REFERENCE_AVX2, ONE_CORE, replace(REFERENCE, cores=16)),
    *(replace(REFERENCE, vector_bytes=16), replace(REFERENCE, l1=1 << 10, l2=1 << 14)),
)


@pytest.fixture
def tiles_of_few_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "LEAST_VISITS", 1 << 9)
    monkeypatch.setattr(pairs, "LEAST_LENGTH", 2)
    for module in (register_tiles, loop_order, groups, small, planner):
        monkeypatch.setattr(module, "PARALLEL_ELEMENTS", 1)


@dataclass(frozen=True)
class Planned(Variant):
    """As the planner has it for one machine. tiled: cases whose tiles are in vector registers."""

    machine: Machine = REFERENCE
    tiled: list[Case] = field(default_factory=list, compare=False)

    def schedule(self, case: Case) -> Schedule:
        return default_schedule(case.stages, self.machine)[0]

    def loops(self, case: Case) -> Loops:
        schedule = self.schedule(case)
        verify_stages(schedule.stages)
        loops = lower(schedule, self.machine)
        verify_loops(loops)
        if has_vectors(loops):
            self.tiled.append(case)
        return loops

    def text(self, case: Case) -> str:
        return schedule_text(self.schedule(case))


def has_vectors(loops: Loops) -> bool:
    """Whether a kernel has a tile in vector registers."""
    statements = [s for kernel in loops.kernels for s in walk_statements(kernel.body)]
    return any(isinstance(s, Alloc) and s.buffer.scope is Scope.VECTORS for s in statements)


def planned(machine: Machine) -> Planned:
    return Planned("C", lambda case: Schedule(case.stages), pieces=(1, 3), machine=machine)


@pytest.mark.usefixtures("tiles_of_few_elements")
@pytest.mark.parametrize("number", range(len(MACHINES)))
def test_random_products_keep_the_bits(number: int) -> None:
    variant = planned(MACHINES[number])
    programs = [contraction_program(seed, 150_000) for seed in range(number, 72, len(MACHINES))]
    ladder = Ladder([Variant("unfused C", unfused), variant], lambda case: False)
    ladder.climb(map(program_case, programs)).check()
    assert variant.tiled


@pytest.mark.usefixtures("tiles_of_few_elements")
def test_the_loops_of_random_products() -> None:
    """Element by element, in Python."""
    programs = [contraction_program(seed, 2_000) for seed in range(200, 205)]
    Ladder([]).climb(map(program_case, programs)).check()


@pytest.mark.usefixtures("tiles_of_few_elements")
def test_random_products_touch_no_memory_beside_theirs(tmp_path) -> None:
    cases = [program_case(contraction_program(seed, 30_000)) for seed in range(300, 315)]
    check_sanitized(cases, tmp_path).check()


def of_masked(x, mask):
    kept = np.where(mask, x, x.dtype.type(0))
    return kept @ kept.T


def of_absolutes(x, mask):
    kept = np.where(mask, np.abs(x), x.dtype.type(0))
    return kept.T @ kept


def in_short_blocks(x, mask):
    return np.tanh(x @ x.T) @ x


@pytest.mark.parametrize("machine", MACHINES, ids=range(len(MACHINES)))
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("rows", [17, 40, 97, 200])
@pytest.mark.parametrize("function", [of_masked, of_absolutes, in_short_blocks])
def test_products_with_themselves_are_planned(function, rows, dtype, machine) -> None:
    """For rows and columns of the same elements, for few rows in blocks."""
    arguments = np.ones((rows, 40), dtype), np.ones((rows, 40), bool)
    lowered = tinyfuse.jit(function).lower(*arguments)
    loops = lower(default_schedule(lowered.stages, machine)[0], machine)
    verify_loops(loops)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def two_heads(x, w, u):
    y, z = [(x @ each).reshape(-1, 2, 8).swapaxes(0, 1) for each in (w, u)]
    heads = softmax(y @ z.swapaxes(-1, -2)) @ z
    return softmax(heads.swapaxes(0, 1).reshape(x.shape) @ w + x)


@pytest.mark.usefixtures("tiles_of_few_elements")
@pytest.mark.parametrize("machine", MACHINES, ids=range(len(MACHINES)))
def test_products_inside_products_are_planned(machine: Machine) -> None:
    arguments = [np.ones(shape, np.float32) for shape in ((12, 16), (16, 16), (16, 16))]
    schedule, _ = default_schedule(tinyfuse.jit(two_heads).lower(*arguments).stages, machine)
    verify_loops(lower(schedule, machine))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "length", "columns"), [(13, 97, 33), (50, 5000, 17)])
def test_products_are_as_near_as_chains_are(rows, length, columns, dtype) -> None:
    """To numpy's in twice the precision: each step rounds a sum of at most Σ|terms| once."""
    random = np.random.default_rng(5)
    x = random.standard_normal((rows, length)).astype(dtype)
    w = random.standard_normal((length, columns)).astype(dtype)
    exact = x.astype(np.longdouble) @ w.astype(np.longdouble)
    bound = length * np.finfo(dtype).eps * (np.abs(x) @ np.abs(w))
    for found in (
        tinyfuse.jit(lambda x, w: x @ w)(x, w),
        tinyfuse.jit(lambda a, b: a @ b.T)(x, w.T.copy()),
    ):
        assert (np.abs(found - exact) <= bound).all()
