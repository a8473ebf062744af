"""tinyfuse.bisect: a wrong rule of fusion is found by the decisions that use it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.inspect.bisect import Bisection
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE, Machine
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.expr import Const, Op
from tinyfuse.stage.ir import Stage

X = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6)


def chain(x: Any) -> Any:
    a = x + 1
    b = np.exp(a)
    c = b * x
    d = np.sqrt(c)
    e = d - a
    total = e.sum(axis=0)
    f = total / 2
    return np.maximum(f, 0)


def plant(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """A wrong rule: where all these stages are inlined, the first one is off by one."""

    def lower_wrongly(schedule: Schedule, machine: Machine) -> Loops:
        stages = [schedule.stage(name) for name in names]
        if not all(schedule[stage].inlined for stage in stages):
            return lower(schedule, machine)
        return _with_other_body(stages[0], lambda: lower(schedule, machine))

    monkeypatch.setattr("tinyfuse.lower.program.lower", lower_wrongly)


def _with_other_body(stage: Stage, work: Callable[[], Loops]) -> Loops:
    body = stage.body
    assert body is not None
    wrong = Op("add", (body, Const(stage.dtype.type(1))), stage.dtype)
    object.__setattr__(stage, "body", wrong)
    try:
        return work()
    finally:
        object.__setattr__(stage, "body", body)


def is_right(result: Any) -> bool:
    return np.allclose(result, chain(X), rtol=1e-5)


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(chain)
    return first + next(at for at, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("name", ["b", "c", "d"])
def test_one_wrong_decision_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plant(monkeypatch, name)
    found = tinyfuse.bisect(tinyfuse.jit(chain), (X,), is_right)
    assert [each.decision.producer for each in found.culprits] == [name]
    assert [each.decision.action for each in found.culprits] == ["inline"]
    assert (found.passes_fused, found.passes_unfused) == (False, True)
    assert found.runs <= 8


def test_what_is_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "c")
    found = tinyfuse.bisect(chain, (X,), is_right)
    lines = str(found).splitlines()
    counts = f"{found.decisions} decisions to fuse, {found.runs} programs run"
    assert lines[0] == f"bisect chain: {counts}"
    assert lines[1:] == [
        "The check fails because of this decision:",
        "  c -> d: inline, d takes each element as it is computed",
        f"    at test_bisect.py:{line_of('c = b * x')}, in chain: c = b * x",
        "It passes where c is stored.",
    ]


def test_two_decisions_that_are_wrong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "b", "d")
    found = tinyfuse.bisect(chain, X, is_right)
    assert [each.decision.producer for each in found.culprits] == ["b", "d"]
    lines = str(found).splitlines()
    assert lines[1] == "The check fails because of these decisions together:"
    assert lines[-1] == "It passes where b or d is stored."


def test_a_check_that_fails_without_fusion() -> None:
    found = tinyfuse.bisect(chain, (X,), lambda result: False)
    assert (found.passes_fused, found.passes_unfused, found.culprits) == (False, False, ())
    assert str(found).splitlines()[1] == (
        "The check fails with none of them too: fusion is not at fault."
    )


def test_a_check_that_passes() -> None:
    found = tinyfuse.bisect(chain, (X,), is_right)
    assert (found.passes_fused, found.runs) == (True, 1)
    assert str(found) == (
        f"bisect chain: {found.decisions} decisions to fuse, 1 program run\n"
        "The check passes with all of them: there is nothing to find."
    )
    assert tinyfuse.bisect(lambda x: x + 1, (X,), lambda result: True) == Bisection(
        "lambda", True, True, 0, (), 1
    )


def test_arrays_that_are_written_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(x: Any) -> None:
        a = x + 1
        b = a * a
        x[:] = b - x

    x, expected = X.copy(), X.copy()
    step(expected)
    plant(monkeypatch, "a")
    found = tinyfuse.bisect(step, (x,), lambda result: np.allclose(x, expected))
    assert [each.decision.producer for each in found.culprits] == ["a"]
    assert x.tobytes() == X.tobytes()


def test_a_check_has_to_say_yes_or_no() -> None:
    with pytest.raises(TypeError, match="check returned None: it has to return True or False"):
        tinyfuse.bisect(chain, (X,), lambda result: None)  # type: ignore[arg-type, return-value]


def test_only_functions_are_bisected() -> None:
    for other in (None, 3):
        with pytest.raises(TypeError, match=f"bisect takes a function, not {other}"):
            tinyfuse.bisect(other, (X,), lambda result: True)  # type: ignore[arg-type]


def differences(x: Any) -> Any:
    return np.abs(x[:, None, 0] - x[:, 0]).sum(axis=1)


def distances(x: Any) -> Any:
    return np.abs(x[:, None] - x).sum(axis=2)


@pytest.mark.parametrize("function", [differences, distances])
def test_sums_whose_loops_are_in_another_order_are_bisected(function: Callable[..., Any]) -> None:
    x = np.ones((64, 16), np.float32)
    program = tinyfuse.jit(function).lower(x)
    found = tinyfuse.bisect(function, (x,), lambda result: True)
    (total,) = [stage for stage in program.stages.stages if stage.reduce_axes]
    assert found.decisions == sum(decision.action == "inline" for decision in program.decisions) + 1
    schedule, _ = default_schedule(program.stages, REFERENCE, stored=(total.name,))
    loops = [loop.axis for loop in schedule[schedule.stage(total.name)].loops]
    assert loops == [*total.axes, *total.reduce_axes]


def test_stages_are_left_alone_on_request() -> None:
    stages = tinyfuse.jit(chain).lower(X).stages
    schedule, decisions = default_schedule(stages, REFERENCE, stored=("c", "total"))
    (decision,) = [each for each in decisions if each.producer == "c"]
    assert (decision.action, decision.reason.split(";")[0]) == (
        "store",
        "it is left alone, as asked for",
    )
    assert not schedule[schedule.stage("c")].inlined
    assert schedule[schedule.stage("b")].inlined
