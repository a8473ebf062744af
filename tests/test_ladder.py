"""Every level of random programs computes the same bits; and the harness that says so can fail."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import tinyfuse.lower.lower
import tinyfuse.testing.compiled
from tests import thorough
from tests.programs import PROGRAMS
from tests.sanitized import check_sanitized
from tinyfuse.emit.c import CModule, emit_c_many
from tinyfuse.graph.interpreter import interpret
from tinyfuse.graph.numerics import NumpyNumerics
from tinyfuse.loops.ir import LoopKind
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.runtime.toolchain import find_compiler
from tinyfuse.schedule.places import StagePlan
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.interpreter import interpret_program
from tinyfuse.stage.ir import Order
from tinyfuse.testing import (
    Case,
    Ladder,
    Program,
    Report,
    Variant,
    program_case,
    programs,
    random_program,
)
from tinyfuse.testing.compare import difference
from tinyfuse.testing.compiled import Library
from tinyfuse.testing.program import Statement, effect
from tinyfuse.testing.variants import fused, plain, random, unfused, usual_variants

BATCH = 100
BATCHES = 10  # of programs without effects, and of those with some
LOOPS_EVERY = 4  # interpreted element by element in Python, the loops of one program in so many


def climb(cases: list[Case], *compiled: Variant, loops: bool = True) -> Report:
    return Ladder(compiled, lambda case: loops).climb(cases)


def example_cases() -> list[Case]:
    return [
        Case(each.function, each.arguments(), name, name != "batched")
        for name, each in PROGRAMS.items()
    ]


@pytest.mark.parametrize("effects", [False, True], ids=["expressions", "effects"])
@pytest.mark.parametrize("first", range(0, BATCH * BATCHES, BATCH))
def test_random_programs(first: int, effects: bool):
    drawn = [random_program(seed, effects=effects) for seed in range(first, first + BATCH)]
    chosen = {str(program) for program in drawn[::LOOPS_EVERY]}
    report = Ladder(usual_variants(first), lambda case: case.text in chosen).climb(
        map(program_case, drawn)
    )
    report.check()


@settings(max_examples=60)
@given(programs())
def test_drawn_programs(program: Program):
    """Through hypothesis, which finds a small program where one fails."""
    report = climb([program_case(program)])
    report.check()


@pytest.mark.parametrize(
    "flags", [("-O3",), ("-O3", "-march=x86-64-v3"), ("-O2", "-march=x86-64"), ("-O0",)]
)
def test_flags_of_the_compiler(flags: tuple[str, ...]):
    cases = [program_case(random_program(seed)) for seed in range(5000, 5040)] + example_cases()
    compiled = [Variant("fused C", fused, flags, (1, 2)), Variant("unfused C", unfused, flags)]
    report = climb(cases, *compiled, loops=False)
    report.check()


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs the ziglang wheel")
def test_another_compiler(monkeypatch: pytest.MonkeyPatch):
    cases = [program_case(random_program(seed)) for seed in range(6000, 6030)] + example_cases()
    ladder = Ladder(
        [Variant("fused C by zig", fused, ()), Variant("unfused C by zig", unfused)],
        lambda case: False,
    )
    monkeypatch.setenv("CC", shlex.join([sys.executable, "-m", "ziglang", "cc"]))
    assert find_compiler().kind == "zig"
    report = ladder.climb(cases)
    report.check()


def test_jit():
    """What users call returns what the ladder says: kinds, dtypes, shapes and bits."""
    cases = [program_case(random_program(seed)) for seed in range(4000, 4040)] + example_cases()
    report = Ladder((), lambda case: False, lambda case: True).climb(cases)
    report.check()


def test_writes_in_the_callers_arrays():
    """A case compares them too, those that the function finds among its globals included."""
    program = Program(
        "by hand",
        {"x": np.arange(6.0)[::-2], "same": None, "ids": np.array([0, -1, 0])},
        {"table": np.ones(3, np.float32)},
        (
            Statement("", effect("{0}[{1}] = {2}", "x", "ids", "table")),
            Statement("", effect("np.add.at({0}, {1}, 2)", "table", "ids")),
            Statement("", effect("{0} += 1", "same")),
        ),
        ("x",),
    )
    program.arguments["same"] = program.arguments["x"]
    case = program_case(program)
    changed = [[2, 4, 2], [2, 4, 2], [2, 4, 2], [0, -1, 0], [5, 1, 3]]
    assert [array.tolist() for array in case.expected] == changed
    assert [array.tolist() for array in case.traced()] == changed
    assert [array.tolist() for array in case.jitted()[:-1]] == changed
    assert case.shared == (
        "shared memory: output 0 and the caller's array 0, output 0 and the caller's array 1"
    )
    assert program.captured["table"].tolist() == [1, 1, 1]
    report = climb([case])
    report.check()


def test_threads():
    """Tinyfuse's own pool, on loops that are long enough to be shared."""

    def rows(x, y):
        return np.exp(x) * y, (x - y).sum(axis=1), (x + y).sum(axis=0)

    generator = np.random.default_rng(0)
    case = Case(rows, [generator.standard_normal((900, 700)) for _ in range(2)], "rows")
    loops = lower(fused(case), REFERENCE)
    assert any(kernel.parallel for kernel in loops.kernels)
    library = Library([loops], ())
    expected = library.run_threads(loops, case.arrays, 1)
    for threads in (2, 3, 7):
        for want, have in zip(
            expected, library.run_threads(loops, case.arrays, threads), strict=True
        ):
            assert difference(want, have) is None


@pytest.mark.parametrize("seed", range(8))
def test_random_schedules(seed: int):
    """Many schedules of programs that have something to schedule."""
    cases = example_cases()
    report = climb(cases, Variant("random", random(seed), pieces=(1, 3)), loops=False)
    report.check()


def test_sanitized_programs(tmp_path: Path):
    """Standalone executables under the sanitizers; `tests.thorough --sanitize` runs hundreds."""
    report = check_sanitized(
        [program_case(random_program(seed)) for seed in range(7000, 7020)], tmp_path
    )
    report.check()


def test_a_thorough_run_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture):
    state = tmp_path / "state.json"
    for count in ("2", "5"):
        assert thorough.main([str(state), "--programs", count, "--jobs", "1"]) == 0
    done, report = thorough.load_state(state)
    assert (done, report.climbed["trace"], report.climbed["fused C"]) == (5, 5, 5)
    assert report.climbed["fused CUDA"] == 2  # the first of each batch
    assert capsys.readouterr().out.count("5 of 5, 0 failures") == 1


def test_some_programs_are_large_enough_for_every_order():
    """Lanes, blocks of lanes, blocks of rows and chains all occur, each in some of the programs."""
    names = [
        stage.name
        for seed in range(400)
        for stage in program_case(random_program(seed, effects=False)).stages.stages
    ]
    assert sum("_lanes" in name for name in names) > 10
    assert sum("_blocks" in name for name in names) > 10


# --- the harness can fail -------------------------------------------------------------------------


def total(x, y):
    return (x * y + x).sum(axis=-1), x - y


def planted() -> Case:
    generator = np.random.default_rng(1)
    return Case(
        total, [generator.standard_normal((6, 300)).astype(np.float32) for _ in range(2)], "total"
    )


def rungs(report: Report) -> list[str]:
    return [failure.rung for failure in report.failures]


def test_nothing_is_planted():
    assert rungs(climb([planted()], *usual_variants())) == []


def change_text(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    def emit(programs: tuple) -> CModule:
        module = emit_c_many(programs)
        assert old in module.text
        return replace(module, text=module.text.replace(old, new, 1))

    monkeypatch.setattr(tinyfuse.testing.compiled, "emit_c_many", emit)


def test_a_wrong_operation_in_the_text_is_found(monkeypatch: pytest.MonkeyPatch):
    change_text(monkeypatch, "j] - y[", "j] + y[")
    report = climb([planted()], Variant("fused C", fused))
    assert rungs(report) == ["fused C"]
    assert "output 1: float32[6, 300] element [0, 0]: expected" in report.failures[0].message


def test_writing_beside_an_array_is_found(monkeypatch: pytest.MonkeyPatch):
    change_text(monkeypatch, "i < 6; i++", "i < 7; i++")
    report = climb([planted()], Variant("unfused C", unfused))
    assert "AssertionError: writes beside out" in report.failures[0].message


def test_text_that_is_not_c_is_found(monkeypatch: pytest.MonkeyPatch):
    change_text(monkeypatch, "return 0;", "return nothing;")
    report = climb([planted()], Variant("fused C", fused))
    assert rungs(report) == ["compiling fused C"]


def test_another_order_of_summation_is_found(monkeypatch: pytest.MonkeyPatch):
    """Lanes combined with their neighbours instead of halved."""
    rounds = tinyfuse.lower.trees.rounds
    monkeypatch.setattr(
        tinyfuse.lower.trees, "rounds", lambda order, length: rounds(Order.PAIRWISE, length)
    )
    monkeypatch.setattr(tinyfuse.lower.trees, "can_halve", lambda *row: False)
    report = climb([planted()], Variant("fused C", fused))
    assert set(rungs(report)) == {"unfused loops", "fused loops", "fused C", "constants"}


def test_a_parallel_loop_that_carries_a_value_is_found():
    """A schedule made past its checks: threads share the elements of a sum."""

    def corrupt(case: Case) -> Schedule:
        schedule = Schedule(case.stages)
        stage = next(
            stage for stage in case.stages.stages if stage.reduce_axes and len(stage.axes) == 3
        )
        loops = tuple(replace(loop, kind=LoopKind.SERIAL) for loop in schedule[stage].loops)
        carried = next(loop for loop in loops if loop.axis in stage.reduce_axes)
        others = tuple(loop for loop in loops if loop is not carried)
        plan = StagePlan((replace(carried, kind=LoopKind.PARALLEL), *others))
        return schedule._with(stage, plan)

    report = climb(
        [planted()], Variant("plain C", plain), Variant("wrong schedule", corrupt, pieces=(3,))
    )
    assert rungs(report)
    assert all("wrong schedule" in rung for rung in rungs(report))


def test_a_wrong_tracing_rule_is_found(monkeypatch: pytest.MonkeyPatch):
    scalar = NumpyNumerics.scalar
    monkeypatch.setattr(
        NumpyNumerics,
        "scalar",
        lambda self, name, operands, dtype: scalar(self, name, operands[::-1], dtype),
    )
    assert rungs(climb([planted()])) == ["traced graph"]


def test_a_lost_write_is_found(monkeypatch: pytest.MonkeyPatch):
    """Into an argument that the function does not return."""

    def fill(x, y):
        x[...] = y
        return y.sum()

    def forgetful(graph, arrays, numerics):
        return [*interpret(graph, arrays, numerics)[:-1], arrays[0]]

    case = Case(fill, [np.zeros(3), np.ones(3)], "fill")
    monkeypatch.setattr("tinyfuse.testing.case.interpret", forgetful)
    report = climb([case])
    assert rungs(report) == ["traced graph"]
    assert "output 1: float64[3] element [0]: expected 1.0" in report.failures[0].message


def test_a_wrong_stage_is_found(monkeypatch: pytest.MonkeyPatch):
    def shifted(*arguments):
        return [
            np.nextafter(array, 1, dtype=array.dtype) for array in interpret_program(*arguments)
        ]

    monkeypatch.setattr("tinyfuse.testing.ladder.interpret_program", shifted)
    assert rungs(climb([planted()]))[0] == "stages"
