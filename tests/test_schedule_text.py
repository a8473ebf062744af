"""Schedules as text: what is printed can be read, and what does not fit a program is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.graphs import GraphBuilder
from tests.test_lower import product, softmax, stages_of
from tinyfuse.compilation import Lowered
from tinyfuse.errors import ScheduleError
from tinyfuse.lower.lower import lower
from tinyfuse.schedule.loop_nest import loop_nest_text
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.reading import read_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import NO_LOOPS, WORDS, schedule_text
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.ir import Stages
from tinyfuse.testing import program_case, random_program
from tinyfuse.testing.choices import SeededChoices
from tinyfuse.testing.schedules import DIRECTIVES, random_schedule
from tinyfuse.testing.variants import fused, plain, unfused

X = np.arange(12, dtype=np.float32).reshape(3, 4)

PRODUCT = """schedule product
  matmul: compute_at(out, i by 2); i < 5, j < 4, k < 9 reduced
  add: inline
  out: root; i by 2 < 5, i < 5, j < 4 vector
"""


def read(text: str, stages: Stages, place: str = "text") -> Schedule:
    return Schedule(*read_schedule(text, stages, place), f"load({place})")


def product_schedule() -> Schedule:
    stages = stages_of(product)
    matmul, add, out = stages.stages
    schedule = Schedule(stages).inline(add).split(out, out.axes[0], 2)
    return schedule.compute_at(matmul, out, Loop(out.axes[0], 2)).vectorize(out, out.axes[1])


def test_a_schedule_is_saved_and_loaded(tmp_path: Path) -> None:
    schedule = product_schedule()
    path = tmp_path / "product.schedule"
    schedule.save(path)
    assert str(schedule) == PRODUCT
    assert path.read_text() == PRODUCT.replace("inline", "inline; i < 5, j < 4")
    assert Schedule.load(path, schedule.stages) == schedule
    path.write_text(PRODUCT)
    assert Schedule.load(str(path), schedule.stages) == schedule


def test_of_an_inlined_stage_the_loops_are_kept() -> None:
    stages = stages_of(product)
    add = stages.stages[1]
    schedule = Schedule(stages).vectorize(add, add.axis("j")).inline(add)
    again = read(schedule_text(schedule, whole=True), stages)
    assert again == schedule
    assert again.store(add) == schedule.store(add)
    assert read(schedule_text(schedule), stages) == Schedule(stages).inline(add)


def test_streamed_stages() -> None:
    stages = stages_of(product)
    schedule = Schedule(stages).stream_store(stages.outputs[0])
    assert str(schedule).splitlines()[-1] == "  out: root; streamed; i < 5, j < 4"
    assert read(str(schedule), stages) == schedule


def test_folded_stages() -> None:
    build = GraphBuilder("blur")
    x = build.input("x", 12, 10)
    across = build.op("add", x, x, name="across")
    lines = [build.slice(across, (slice(at, at + 10), slice(None))) for at in range(3)]
    down = build.op("add", build.op("add", lines[0], lines[1]), lines[2], name="down")
    stages = build_stages(build.graph(down))
    first, middle, last = stages.stages
    start = Schedule(stages).inline(middle)
    schedule = start.compute_at(first, last, last.axis("i"), store_at=(last, None))
    schedule = schedule.fold(first, first.axis("i"), 4)
    text = "  across: compute_at(down, i); store_at(down); fold(i, 4); i < 12, j < 10"
    assert str(schedule).splitlines()[1] == text
    assert loop_nest_text(schedule).splitlines()[:3] == [
        "compute down:",
        "  for i < 10:",
        "    compute across, store_at(down), fold(i, 4):",
    ]
    assert read(str(schedule), stages) == schedule
    with pytest.raises(ScheduleError, match="fold of across takes an axis and a length"):
        read(str(schedule).replace("fold(i, 4)", "fold(i, x)"), stages)


def test_random_schedules_of_random_programs() -> None:
    texts = []
    for seed in range(150):
        case = program_case(random_program(seed))
        for start in (plain, fused, unfused):
            schedule = random_schedule(SeededChoices(seed), start(case))
            whole = schedule_text(schedule, whole=True)
            assert read(whole, case.stages) == schedule, whole
            text = schedule_text(schedule)
            again = read(text, case.stages)
            assert (str(again), loop_nest_text(again)) == (text, loop_nest_text(schedule))
            texts.append(text)
    words = [word for word in WORDS if word not in ("streamed", "fold", "registers")]
    for said in (*words, " along ", " by ", "unroll", "parallel", "vector", "reduced", NO_LOOPS):
        assert sum(said in text for text in texts) > 5, said


HEAD, MATMUL, ADD, OUT = PRODUCT.splitlines()
EXPECTED = f"expected one of {', '.join(WORDS)}, or a loop as `i by 4 < 100 vector`"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text, line 1: expected schedule NAME, not ''"),
        ("schedule a b\n", "text, line 1: expected schedule NAME, not 'schedule a b'"),
        (
            f"{HEAD}\n{MATMUL}\n__import__('os').abort()\n",
            "text, line 3: expected `  STAGE: PLACE; LOOPS`, not \"__import__('os').abort()\"",
        ),
        (
            f"{HEAD}\n  add: __import__('os').abort(); i < 5\n",
            f"text, line 2: {EXPECTED}, not \"__import__('os').abort()\"",
        ),
        (f"{HEAD}\n  add: root; root; i < 5\n", f"text, line 2: {EXPECTED}, not 'root'"),
        (
            f"{HEAD}\n  add: root; i < 5; j < 4\n",
            f"text, line 2: expected one of {', '.join(WORDS)}, not 'j < 4'",
        ),
        (
            f"{HEAD}\n  add: root; inline\n",
            "text, line 2: expected one of root, inline, compute_at, compute_with, not "
            "'root; inline'",
        ),
        (
            f"{HEAD}\n  add: i < 5\n",
            "text, line 2: expected one of root, inline, compute_at, compute_with, not 'i < 5'",
        ),
        (f"{HEAD}\n  add: root\n", "text, line 2: expected loops, or `no loops`, not 'root'"),
        (f"{HEAD}\n  add: root; i in 5\n", f"text, line 2: {EXPECTED}, not 'i in 5'"),
        (f"{HEAD}\n  add: root; i by 0 < 5\n", f"text, line 2: {EXPECTED}, not 'i by 0 < 5'"),
        (
            f"{HEAD}\n  add: root; i < 5 sideways\n",
            f"text, line 2: {EXPECTED}, not 'i < 5 sideways'",
        ),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        read(text, stages_of(product))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("old", "new", "differences"),
    [
        ("add", "sum", ["it has a stage sum, the program has none", "the program has a stage add,"
                        " it has none"]),
        (ADD, MATMUL, ["it has more than one line for matmul", "the program has a stage add, it"
                       " has none"]),
        ("j < 4 vector", "j < 7 vector", ["out: it has j < 7, the program has j < 4"]),
        ("j < 4 vector", "l < 4 vector", ["out: it has l < 4, the program has no such axis",
                                          "out: it has no such axis, the program has j < 4"]),
        ("k < 9 reduced", "k < 9", ["matmul: it has k < 9, the program has k < 9 reduced"]),
    ],
)  # fmt: skip
def test_a_schedule_of_another_program_is_refused(
    old: str, new: str, differences: list[str]
) -> None:
    with pytest.raises(ScheduleError) as caught:
        read(PRODUCT.replace(old, new), stages_of(product), "a.schedule")
    head = "a.schedule is a schedule of another program than product; what differs:"
    assert str(caught.value).split("\n  ") == [head, *differences]


def test_the_function_may_have_another_name() -> None:
    text = PRODUCT.replace("product", "renamed")
    assert schedule_text(read(text, stages_of(product))) == PRODUCT


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("i by 2 < 5, i < 5", "i < 5", "text, line 2: out has no loop i by 2; its loops: i, j"),
        ("out, i by 2", "sum", "text, line 2: there is no stage sum; the stages: matmul, add, out"),
        ("out, i by 2", "out, i, j", "text, line 2: out has no loop i, j; its loops: i by 2, i, j"),
        ("compute_at(out, i by 2)", "compute_at", "text, line 2: there is no stage of no name; "),
        ("k < 9 reduced", "k < 9 reduced vector", "vectorize(matmul, k): "),
        ("  out: root", "  out: inline", "inline(out): "),
        ("i by 2 < 5, i < 5", "i < 5, i by 2 < 5", "load(text): out: the inner part of i would "),
        ("add: inline", "add: compute_at(matmul); i < 5, j < 4", "load(text): "),
        ("  out: root", "  out: root; store_at(matmul)",
         "store_at(out): it is not computed inside another stage"),
        ("i by 2 < 5, i < 5", "i by 2 < 5",
         "load(text): out would have 0 loops over i in steps of 1, not one"),
        ("i < 5, j < 4, k", "i < 5, i < 5, j < 4, k",
         "load(text): matmul would have 2 loops over i in steps of 1, not one"),
        ("i by 2 <", "i by 2 < 5, i by 2 <",
         "load(text): out would have 2 loops over i in steps of 2, not one"),
    ],
)  # fmt: skip
def test_illegal_schedules_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        read(PRODUCT.replace(old, new), stages_of(product))
    assert str(caught.value).startswith(message)


def test_a_long_unrolled_loop_is_refused() -> None:
    stages = stages_of(softmax)
    text = str(Schedule(stages)).replace("j < 130\n", "j < 130 unroll\n")
    with pytest.raises(ScheduleError, match=r"unroll\(e\): the loop has 130 steps, more than 64"):
        read(text, stages)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(ScheduleError, match="noise, line 1: expected schedule NAME, not"):
        Schedule.load(path, stages_of(product))
    with pytest.raises(FileNotFoundError):
        Schedule.load(tmp_path / "nothing", stages_of(product))


def test_a_loop_nest_is_pseudo_code(capsys: pytest.CaptureFixture[str]) -> None:
    product_schedule().print_loop_nest()
    assert capsys.readouterr().out == (
        "compute out:\n"
        "  for i by 2 < 5:\n"
        "    compute matmul:\n"
        "      for i:\n"
        "        for j:\n"
        "          for k reduced:\n"
        "            matmul[i, j] from x, w\n"
        "    for i:\n"
        "      for j < 4 vector:\n"
        "        out[i, j] from matmul, bias; add inline\n"
    )


def test_a_loop_nest_without_loops() -> None:
    lowered = tinyfuse.jit(lambda x: x + 1).lower(np.float32(2))
    assert loop_nest_text(lowered.schedule) == "compute out:\n  out from x\n"


# -- from the planner's schedule to one's own


@tinyfuse.jit
def normalized(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=0)


Change = Callable[[Schedule], Schedule]

CHANGES: dict[str, Change] = {
    "inline": lambda s: s.inline(s.stage("subtract")),
    "split": lambda s: s.split(s.stage("out"), s.stage("out").axis("j"), 2),
    "reorder": lambda s: s.reorder(s.stage("sum"), *map(s.stage("sum").axis, "ki")),
    "parallel": lambda s: s.parallel(s.stage("out"), s.stage("out").axis("i")),
    "vectorize": lambda s: s.vectorize(s.stage("out"), s.stage("out").axis("j")),
    "unroll": lambda s: s.unroll(s.stage("sum"), s.stage("sum").axis("k")),
    "compute_at": lambda s: s.compute_at(s.stage("max_rank"), s.stage("max"), None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_one_directive_and_the_same_bits(change: str) -> None:
    lowered = normalized.lower(X)
    start = Schedule(lowered.stages)
    schedule = CHANGES[change](start)
    assert schedule != start
    assert_same_bits(lowered, schedule)


@pytest.mark.parametrize("seed", range(10))
def test_the_planners_schedule_with_one_directive_more(seed: int) -> None:
    lowered = normalized.lower(X)
    choices = SeededChoices(seed)
    assert_same_bits(lowered, _changed(choices, lowered))


def _changed(choices: SeededChoices, lowered: Lowered) -> Schedule:
    """The planner's schedule after one random directive that it takes, and lowering does."""
    for _ in range(200):
        try:
            schedule = choices.choose(DIRECTIVES)(choices, lowered.schedule)
            lower(schedule, lowered.machine)
        except ScheduleError:
            continue
        if schedule != lowered.schedule:
            return schedule
    raise AssertionError("no directive is legal")


def assert_same_bits(lowered: Lowered, schedule: Schedule) -> None:
    """Also by `jit(f, schedule=...)`, which sees other stages of the same names."""
    expected = lowered.compile()(X)
    changed = lowered.with_schedule(schedule)
    assert (changed.schedule, changed.stages) == (schedule, lowered.stages)
    assert changed.decisions == ()
    assert changed.compile()(X).tobytes() == expected.tobytes()
    again = tinyfuse.jit(
        normalized.__wrapped__, schedule=lambda stages: read(str(schedule), stages)
    )
    assert again(X).tobytes() == expected.tobytes()


def test_a_mark_is_taken_off() -> None:
    start = Schedule(normalized.lower(X).stages)
    out = start.stage("out")
    parallel = start.parallel(out, out.axis("i"))
    assert parallel.serial(out, out.axis("i")) == start
    with pytest.raises(ScheduleError):
        parallel.split(out, out.axis("i"), 2)
    start.split(out, out.axis("i"), 2)


def test_other_schedules_of_a_program_share_its_stages() -> None:
    lowered = normalized.lower(X)
    unfused = lowered.unfused()
    assert unfused.schedule.stages is lowered.stages
    assert lowered.with_schedule(unfused.schedule).as_text() == unfused.as_text()


def test_a_schedule_of_other_stages_is_refused() -> None:
    lowered = normalized.lower(X)
    with pytest.raises(ScheduleError) as caught:
        lowered.with_schedule(normalized.lower(X).schedule)
    assert str(caught.value) == (
        "the schedule for normalized is <schedule of normalized, 6 stages>, which is no schedule "
        "of its stages: begin with lowered.schedule, or with Schedule(stages) of those it is for"
    )


def test_stages_and_axes_are_found_by_name() -> None:
    schedule = product_schedule()
    matmul = schedule.stage("matmul")
    assert matmul is schedule.stages.stages[0]
    assert [matmul.axis(name) for name in "ijk"] == [*matmul.axes, *matmul.reduce_axes]
    with pytest.raises(ScheduleError) as caught:
        schedule.stage("blur")
    assert str(caught.value) == "product has no stage blur; its stages: matmul, add, out"
    with pytest.raises(ScheduleError) as caught:
        matmul.axis("y")
    assert str(caught.value) == "matmul has no axis y; its axes: i, j, k"
