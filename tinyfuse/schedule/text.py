"""Schedules as text, and back: one line for each stage, nothing that is ever executed.

::

    schedule product
      matmul: compute_at(out, i by 2); i < 5, j < 4, k < 9 reduced
      add: inline
      out: root; i by 2 < 5, i < 5, j < 4 vector

What is read goes through the directives of a schedule, so that an illegal one is refused as if it
had been written in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind

if TYPE_CHECKING:
    from tinyfuse.schedule.schedule import Loop, Schedule, Site, StagePlan
    from tinyfuse.stage.index import Axis
    from tinyfuse.stage.ir import Stage

Arguments = tuple[str, ...]


def schedule_text(schedule: Schedule, whole: bool = False) -> str:
    """One line for each stage: where it is computed and its loops, outermost first.

    whole: inlined stages too have the loops that they would have if they were stored.
    """
    stages = schedule.stages
    lines = [f"  {each.name}: {_plan_text(each, schedule[each], whole)}" for each in stages.stages]
    return "\n".join([f"schedule {stages.name}", *lines, ""])


def _plan_text(stage: Stage, plan: StagePlan, whole: bool) -> str:
    texts = part_texts(plan, PARTS)
    if whole or not plan.inlined:
        loops = ", ".join([_loop_text(stage, loop) for loop in plan.loops])
        texts.append(loops or NO_LOOPS)
    return "; ".join(texts)


def part_texts(plan: StagePlan, parts: Sequence[Part]) -> list[str]:
    """What a plan says beside its loops: `root`, or `compute_at(out, i by 2)`."""
    texts = []
    for part in parts:
        arguments = part.arguments(plan)
        if arguments is not None:
            texts.append(f"{part.word}({', '.join(arguments)})" if arguments else part.word)
    return texts


def _loop_text(stage: Stage, loop: Loop) -> str:
    kind = "" if loop.kind is LoopKind.SERIAL else f" {loop.kind.value}"
    reduced = " reduced" if loop.axis in stage.reduce_axes else ""
    return f"{loop_name(loop)} < {loop.axis.extent}{reduced}{kind}"


def loop_name(loop: Loop) -> str:
    """`i`, or `i by 4` for steps of more than one element."""
    return loop.axis.name if loop.step == 1 else f"{loop.axis.name} by {loop.step}"


# -- what a plan says of a stage, part by part


class Part(NamedTuple):
    """A field of a plan as text.

    arguments: of the word, for a plan; None where the plan does not say it. apply: the directive
    that says it.
    """

    word: str
    arguments: Callable[[StagePlan], Arguments | None]
    apply: Callable[[Schedule, Stage, Arguments], Schedule]


def _site(site: Site) -> Arguments:
    return (site.stage.name, loop_name(site.loop)) if site.loop else (site.stage.name,)


def _computed_at(schedule: Schedule, stage: Stage, arguments: Arguments) -> Schedule:
    name, *loops = arguments
    consumer = schedule.stage(name)
    return schedule.compute_at(
        stage, consumer, _named_loop(schedule, consumer, loops[0]) if loops else None
    )


def _named_loop(schedule: Schedule, stage: Stage, name: str) -> Loop:
    for loop in schedule[stage].loops:
        if loop_name(loop) == name:
            return loop
    known = ", ".join(map(loop_name, schedule[stage].loops)) or "none"
    raise ScheduleError(f"{stage.name} has no loop {name}; its loops are: {known}")


# In the order in which they stand in a line, and are applied: each to all stages.
PLACES = (
    Part(
        "root",
        lambda plan: None if plan.inlined or plan.compute_at else (),
        lambda schedule, stage, arguments: schedule.store(stage),
    ),
    Part(
        "inline",
        lambda plan: () if plan.inlined else None,
        lambda schedule, stage, arguments: schedule.inline(stage),
    ),
    Part(
        "compute_at",
        lambda plan: _site(plan.compute_at) if plan.compute_at else None,
        _computed_at,
    ),
)
# What is said of a stage beside its place.
PROPERTIES: tuple[Part, ...] = ()
PARTS = (*PLACES, *PROPERTIES)
NO_LOOPS = "no loops"


# -- from text


class _LoopText(NamedTuple):
    axis: str
    step: int
    extent: int
    reduced: bool
    kind: LoopKind


class _Line(NamedTuple):
    """What is said of a stage. loops: None where an inlined one has nothing said of them."""

    place: str
    stage: str
    parts: dict[str, Arguments]
    loops: tuple[_LoopText, ...] | None


_HEAD = re.compile(r"schedule (\w+)", re.ASCII)
_STAGE = re.compile(r"  (\w+): (.+)", re.ASCII)
_PART = re.compile(r"(\w+)(?:\((.+)\))?", re.ASCII)
_KINDS = "|".join([kind.value for kind in LoopKind if kind is not LoopKind.SERIAL])
_LOOP = re.compile(
    rf"(\w+)(?: by (\d{{1,18}}))? < (\d{{1,18}})( reduced)?(?: ({_KINDS}))?", re.ASCII
)


def read_schedule(text: str, schedule: Schedule, place: str = "text") -> Schedule:
    """The schedule that a text describes, from one without any directive, of the same program.

    place: where the text is from, for messages. Raises ScheduleError for what is no schedule, is
    one of another program, or is illegal.
    """
    head, *rest = text.splitlines() or [""]
    if not _HEAD.fullmatch(head):
        raise _unreadable(f"{place}, line 1", head, "schedule NAME")
    lines = [_line(f"{place}, line {at}", line) for at, line in enumerate(rest, 2) if line]
    _require_same_program(lines, schedule, place)
    for line in lines:
        if line.loops:
            schedule = _applied(line, schedule, _with_loops, line.loops)
    for part in PARTS:
        for line in lines:
            if part.word in line.parts:
                schedule = _applied(line, schedule, part.apply, line.parts[part.word])
    return schedule


def _unreadable(place: str, text: str, expected: str) -> ScheduleError:
    return ScheduleError(f"{place}: expected {expected}, not {text!r:.80}")


def _line(place: str, text: str) -> _Line:
    match = _STAGE.fullmatch(text)
    if match is None:
        raise _unreadable(place, text, "`  STAGE: PLACE; LOOPS`")
    stage, said = match.groups()
    *texts, last = said.split("; ")
    if last == "inline":
        return _Line(place, stage, _parts(place, [*texts, last]), None)
    loops = () if last == NO_LOOPS else tuple([_loop(place, loop) for loop in last.split(", ")])
    return _Line(place, stage, _parts(place, texts), loops)


def _parts(place: str, texts: Iterable[str]) -> dict[str, Arguments]:
    found: dict[str, Arguments] = {}
    words = [part.word for part in PARTS]
    for text in texts:
        match = _PART.fullmatch(text)
        if match is None or match[1] not in words or match[1] in found:
            raise _unreadable(place, text, f"one of {', '.join(words)}, each once")
        found[match[1]] = tuple(match[2].split(", ")) if match[2] else ()
    if sum(part.word in found for part in PLACES) != 1:
        raise _unreadable(place, "; ".join(found), "one place of the stage")
    return found


def _loop(place: str, text: str) -> _LoopText:
    match = _LOOP.fullmatch(text)
    if match is None:
        raise _unreadable(place, text, "a loop as `i by 4 < 100 vector`")
    axis, step, extent, reduced, kind = match.groups()
    return _LoopText(
        axis, int(step or 1), int(extent), bool(reduced), LoopKind(kind or LoopKind.SERIAL)
    )


def _require_same_program(lines: Sequence[_Line], schedule: Schedule, place: str) -> None:
    """Raises ScheduleError that says in what the program of a text is another one."""
    differences = list(_differences(lines, schedule.stages.stages))
    if differences:
        raise ScheduleError(
            f"{place} is a schedule of another program than {schedule.stages.name}; what differs:"
            + "".join([f"\n  {line}" for line in differences])
        )


def _differences(lines: Sequence[_Line], stages: Sequence[Stage]) -> Iterator[str]:
    said = {line.stage: line for line in lines}
    names = {stage.name: stage for stage in stages}
    repeated = [line.stage for line in lines if said[line.stage] is not line]
    added = [name for name in said if name not in names]
    missing = [name for name in names if name not in said]
    yield from [f"it has more than one line for {name}" for name in dict.fromkeys(repeated)]
    yield from [f"it has a stage {name}, the program has none" for name in added]
    yield from [f"the program has a stage {name}, it has none" for name in missing]
    for name, stage in names.items():
        if name in said and said[name].loops is not None:
            yield from _axis_differences(said[name], stage)


def _axis_differences(line: _Line, stage: Stage) -> Iterator[str]:
    """What is another one in the axes of a stage, of which all have to have a loop by 1."""
    program = {axis.name: _axis_text(axis, axis in stage.reduce_axes) for axis in _axes(stage)}
    loops = line.loops or ()
    said = {loop.axis: f"{loop.axis} < {loop.extent}{' reduced' * loop.reduced}" for loop in loops}
    for name in dict.fromkeys([*said, *program]):
        if said.get(name) != program.get(name):
            theirs, ours = said.get(name, "no such axis"), program.get(name, "no such axis")
            yield f"{line.stage}: it has {theirs}, the program has {ours}"
    for name in said:
        whole = sum((loop.axis, loop.step) == (name, 1) for loop in loops)
        if name in program and whole != 1:
            yield f"{line.stage}: it has {whole} loops over {name} in steps of 1, not one"


def _axes(stage: Stage) -> tuple[Axis, ...]:
    return (*stage.axes, *stage.reduce_axes)


def _axis_text(axis: Axis, reduced: bool) -> str:
    return f"{axis.name} < {axis.extent}{' reduced' * reduced}"


def _applied(
    line: _Line, schedule: Schedule, apply: Callable[..., Schedule], said: Any
) -> Schedule:
    """What a directive makes of a schedule; its errors begin with the line that says it."""
    try:
        return apply(schedule, schedule.stage(line.stage), said)
    except ScheduleError as error:
        raise ScheduleError(f"{line.place}: {error}") from None


def _with_loops(schedule: Schedule, stage: Stage, loops: tuple[_LoopText, ...]) -> Schedule:
    """The schedule with these loops of a stage, which has none split yet."""
    for loop in sorted(loops, key=lambda loop: -loop.step):
        if loop.step != 1:
            schedule = schedule.split(stage, stage.axis(loop.axis), loop.step)
    schedule = schedule.reorder(stage, *[_same(schedule, stage, loop) for loop in loops])
    for kind, mark in _MARKS.items():
        for loop in loops:
            if loop.kind is kind:
                schedule = mark(schedule, stage, _same(schedule, stage, loop))
    return schedule


# In an order in which no mark is refused because of one that is still to come.
_MARKS: dict[LoopKind, Callable[[Schedule, Stage, Loop], Schedule]] = {
    LoopKind.UNROLL: lambda schedule, stage, loop: schedule.unroll(stage, loop),
    LoopKind.PARALLEL: lambda schedule, stage, loop: schedule.parallel(stage, loop),
    LoopKind.VECTOR: lambda schedule, stage, loop: schedule.vectorize(stage, loop),
}


def _same(schedule: Schedule, stage: Stage, wanted: _LoopText) -> Loop:
    loops = schedule[stage].loops
    return next(loop for loop in loops if (loop.axis.name, loop.step) == wanted[:2])
