"""What is said of a directive that is refused: the line, what is legal, and where."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.test_lower import product, stages_of
from tinyfuse.errors import ScheduleError
from tinyfuse.schedule.refusal import MOST_LINES
from tinyfuse.schedule.schedule import Schedule

X = np.zeros((64, 100), np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


E_LINE = "e = np.exp(x - x.max(axis=-1, keepdims=True))"
OUT_LINE = "return e / e.sum(axis=-1, keepdims=True)"


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(softmax)
    return first + [line.strip() for line in lines].index(text)


def plain() -> Schedule:
    return Schedule(tinyfuse.jit(softmax).lower(X).stages)


Directive = Callable[[Schedule], Schedule]


@pytest.mark.parametrize(
    ("directive", "line", "message"),
    [
        (
            lambda s: s.parallel(s.stage("e"), s.stage("e").axis("j")),
            E_LINE,
            """
parallel(e, j): only the outermost loop over independent elements can be shared by threads
  at …
  legal: parallel(e, i)
      compute e:
    *   for i < 64:
          for j < 100:
            e[i, j] from subtract
""",
        ),
        (
            lambda s: s.inline(s.stage("max_rank")),
            E_LINE,
            """
inline(max_rank): it is a reduction, which needs a loop of its own
  at …
  legal: store; compute_at where the loop nest has a *
      compute max_rank:
        for i < 64:
          for k < 100 reduced:
            max_rank[i] from x
    * compute max:
    *   for i < 64:
          max[i] from max_rank
""",
        ),
        (
            lambda s: s.compute_at(s.stage("out"), s.stage("e"), None),
            OUT_LINE,
            """
compute_at(out): e would read subtract before it is computed
  at …
  legal: store
      compute out:
        for i < 64:
          for j < 100:
            out[i, j] from e, sum
""",
        ),
        (
            lambda s: s.unroll(s.stage("out"), s.stage("out").axis("j")),
            OUT_LINE,
            """
unroll(out): the loop has 100 steps, more than 64; split it first
  at …
  legal: unroll(out, i)
      compute out:
    *   for i < 64:
          for j < 100:
            out[i, j] from e, sum
""",
        ),
        (
            lambda s: s.split(s.stage("out"), s.stage("out").axis("j"), 0),
            OUT_LINE,
            """
split(out, j, 0): the factor must be a positive multiple of 1
  at …
      compute out:
        for i < 64:
          for j < 100:
            out[i, j] from e, sum
""",
        ),
        (
            lambda s: s.store_at(s.stage("out")),
            OUT_LINE,
            """
store_at(out): it is not computed inside another stage
  at …
  legal: nothing of the kind
      compute out:
        for i < 64:
          for j < 100:
            out[i, j] from e, sum
""",
        ),
    ],
)
def test_messages(directive: Directive, line: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        directive(plain())
    place = f"at test_refusal.py:{line_of(line)}, in softmax: {line}"
    assert str(caught.value) == message.strip("\n").replace("at …", place)


def test_orders_that_are_legal() -> None:
    stages = stages_of(product)
    matmul = stages.stages[0]
    schedule = Schedule(stages).split(matmul, matmul.axis("k"), 3)
    outer, inner = schedule[matmul].loops[2:]
    with pytest.raises(ScheduleError) as caught:
        schedule.reorder(matmul, inner, outer)
    first, legal, *_ = str(caught.value).split("\n")
    assert first == "reorder(matmul): the inner part of k would lie outside its outer part"
    assert legal.startswith(
        "  legal: reorder(matmul, i, j, k by 3, k); reorder(matmul, i, k by 3, "
    )
    assert legal.count("reorder") == 12


@pytest.mark.parametrize("name", ["e", "max_rank", "sum"])
def test_what_is_marked_is_legal_and_nothing_else(name: str) -> None:
    """Of the places in what reads a stage."""
    schedule = plain()
    stage = schedule.stage(name)
    with pytest.raises(ScheduleError) as caught:
        schedule.compute_at(stage, stage, None)
    marked = str(caught.value).count("\n    * ")
    legal = 0
    for reader in schedule.readers(stage):
        for loop in (None, *schedule[reader].loops):
            try:
                schedule.compute_at(stage, reader, loop)
                legal += 1
            except ScheduleError:
                pass
    assert marked == legal
    assert ("compute_at where" in str(caught.value)) == (legal > 0)


def test_a_long_loop_nest_is_cut() -> None:
    def chain(x: Any) -> Any:
        return [x + number for number in range(20)]

    lowered = tinyfuse.jit(chain).lower(X)
    schedule = Schedule(lowered.stages)
    first = schedule.stages.stages[0]
    for stage in schedule.stages.stages[1:]:
        schedule = schedule.compute_with(stage, first, first.axes[0])
    with pytest.raises(ScheduleError) as caught:
        schedule.parallel(first, first.axes[1])
    lines = str(caught.value).split("\n")
    assert lines[-1].strip() == "…"
    assert len(lines) == MOST_LINES + 4


def test_an_error_is_pickled_with_its_message() -> None:
    schedule = plain()
    with pytest.raises(ScheduleError) as caught:
        schedule.inline(schedule.stages.outputs[0])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (ScheduleError, str(caught.value))
