"""Schedules from text: what `text.py` writes, never executed, and compared with the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import SHARED, LoopKind
from tinyfuse.schedule.places import Loop, Site, StagePlan
from tinyfuse.schedule.text import NO_LOOPS, PARTS, PLACES, WORDS, Arguments, loop_name
from tinyfuse.stage.copies import CacheRead, CacheWrite, Pad, changed
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.stage.wrapping import Round, Wrap


class _LoopText(NamedTuple):
    axis: str
    step: int
    extent: int
    reduced: bool
    kind: LoopKind
    tail: str | None
    fused: bool


class _Line(NamedTuple):
    """What is said of a stage. loops: None where nothing is said of them."""

    place: str
    stage: str
    parts: dict[str, Arguments]
    loops: tuple[_LoopText, ...] | None


_HEAD = re.compile(r"schedule (\w+)", re.ASCII)
_STAGE = re.compile(r"  (\w+): (.+)", re.ASCII)
_PART = re.compile(r"(\w+)(?:\((.+)\))?", re.ASCII)
_KINDS = "|".join([kind.value for kind in (*SHARED, LoopKind.VECTOR, LoopKind.UNROLL)])
_COUNT = r"[1-9]\d{0,17}"
_CHANGE = re.compile(r"  (\w+) = (cache_read|cache_write|pad|wrap)\((.+)\)", re.ASCII)
_PADDED = re.compile(rf"(\w+) < ({_COUNT})", re.ASCII)
_ROUND = re.compile(rf"(\w+) along (\w+) < (\d+) \+ ({_COUNT}) \+ (\d+)", re.ASCII)
_LOOP = re.compile(
    rf"(\w+)(?: by ({_COUNT}))? < (0|{_COUNT})"
    rf"( reduced)?(?: (shifted|padded))?( fused)?(?: ({_KINDS}))?",
    re.ASCII,
)


def read_schedule(text: str, program: Stages, place: str) -> tuple[Stages, dict[Stage, StagePlan]]:
    """The stages that a text schedules, those of a program and copies, and what it says of each.

    place: where the text is from, for messages. Raises ScheduleError for what is no schedule, or is
    one of another program; whether it is a legal one is not looked at.
    """
    head, *rest = text.splitlines() or [""]
    if not _HEAD.fullmatch(head):
        raise _unreadable(f"{place}, line 1", head, "schedule NAME")
    numbered = [(f"{place}, line {at}", line) for at, line in enumerate(rest, 2) if line]
    stages, lines = program, []
    for at, line in numbered:
        made = _CHANGE.fullmatch(line)
        if made:
            stages = _with_copy(stages, at, *made.groups())
        else:
            lines.append(_line(at, line))
    _require_same_program(lines, stages, place)
    return stages, Program(stages, lines).plans()


def _with_copy(stages: Stages, place: str, name: str, directive: str, arguments: str) -> Stages:
    """The stages with one more, as a line of a text says."""
    known = {stage.name: stage for stage in (*stages.inputs, *stages.stages)}

    def found(text: str) -> tuple[Stage, Axis | None]:
        stage_name, _, axis = text.partition(" along ")
        if stage_name not in known:
            raise ScheduleError(f"there is no {stage_name}; there are: {', '.join(known)}")
        return known[stage_name], known[stage_name].axis(axis) if axis else None

    def turned(text: str) -> tuple[Stage, Round]:
        match = _ROUND.fullmatch(text)
        if match is None:
            raise ScheduleError(f"wrap of {name} takes stages, as `y along i < 1 + 64 + 1`")
        stage, axis = found(f"{match[1]} along {match[2]}")
        before, period, after = map(int, match.groups()[2:])
        if axis is None or axis.extent != period or axis not in stage.axes:
            raise ScheduleError(f"{match[2]} of {stage.name} has no {period} elements")
        return stage, Round(stage.axes.index(axis), period, before, after)

    first, *rest = arguments.split(", ")
    try:
        if directive == "wrap":
            return changed(stages, Wrap(tuple(map(turned, arguments.split(", ")))))
        source, _, axis = first.partition(" at ")
        stage, _ = found(source)
        if directive == "cache_read":
            index = stage.axis(axis) if axis else None
            return changed(stages, CacheRead(name, stage, tuple(map(found, rest)), index))
        if directive == "cache_write":
            return changed(stages, CacheWrite(name, stage))
        padded = _PADDED.fullmatch(", ".join(rest))
        if padded is None or stage.name != name:
            raise ScheduleError(f"pad of {name} takes itself, and an axis as `j < 96`")
        return changed(stages, Pad(stage, stage.axis(padded[1]), int(padded[2])))
    except ScheduleError as error:
        raise ScheduleError(f"{place}: {error}") from None


def _unreadable(place: str, text: str, expected: str) -> ScheduleError:
    return ScheduleError(f"{place}: expected {expected}, not {text!r:.80}")


def _line(place: str, text: str) -> _Line:
    match = _STAGE.fullmatch(text)
    if match is None:
        raise _unreadable(place, text, "`  STAGE: PLACE; LOOPS`")
    parts: dict[str, Arguments] = {}
    loops: tuple[_LoopText, ...] | None = None
    for said in match[2].split("; "):
        part = _PART.fullmatch(said)
        if part and part[1] in WORDS and part[1] not in parts:
            parts[part[1]] = tuple(part[2].split(", ")) if part[2] else ()
        elif loops is None:
            loops = _loops(place, said)
        else:
            raise _unreadable(place, said, f"one of {', '.join(WORDS)}")
    if sum(part.word in parts for part in PLACES) != 1:
        raise _unreadable(place, match[2], f"one of {', '.join([part.word for part in PLACES])}")
    if loops is None and "inline" not in parts:
        raise _unreadable(place, match[2], f"loops, or `{NO_LOOPS}`")
    return _Line(place, match[1], parts, loops)


def _loops(place: str, text: str) -> tuple[_LoopText, ...]:
    return () if text == NO_LOOPS else tuple([_loop(place, loop) for loop in text.split(", ")])


def _loop(place: str, text: str) -> _LoopText:
    match = _LOOP.fullmatch(text)
    if match is None:
        words = ", ".join(WORDS)
        raise _unreadable(place, text, f"one of {words}, or a loop as `i by 4 < 100 vector`")
    axis, step, extent, reduced, tail, fused, kind = match.groups()
    marked = LoopKind(kind) if kind else LoopKind.SERIAL
    return _LoopText(axis, int(step or 1), int(extent), bool(reduced), marked, tail, bool(fused))


class Program:
    """The stages of a program with the loops that a text says of them."""

    def __init__(self, stages: Stages, lines: Sequence[_Line]):
        self.lines = {line.stage: line for line in lines}
        self.stages = {stage.name: stage for stage in stages.stages}
        self.sources = {stage.name: stage for stage in (*stages.inputs, *stages.stages)}
        self.loops = {line.stage: _planned(self.stages[line.stage], line) for line in lines}

    def plans(self) -> dict[Stage, StagePlan]:
        return {stage: self._plan(stage, self.lines[name]) for name, stage in self.stages.items()}

    def _plan(self, stage: Stage, line: _Line) -> StagePlan:
        fields: dict[str, Any] = {}
        for part in PARTS:
            if part.word in line.parts:
                try:
                    fields |= part.read(self, stage, line.parts[part.word])
                except ScheduleError as error:
                    raise ScheduleError(f"{line.place}: {error}") from None
        return StagePlan(self.loops[stage.name], **fields)

    def source(self, name: str) -> Stage:
        """A stage or an input. Raises ScheduleError where there is none such."""
        if name not in self.sources:
            raise ScheduleError(f"there is no {name}; there are: {', '.join(self.sources)}")
        return self.sources[name]

    def site(self, arguments: Arguments) -> Site:
        """A stage and perhaps one of its loops. Raises ScheduleError where there is none such."""
        name, *loops = arguments or ("of no name",)
        if name not in self.stages:
            raise ScheduleError(f"there is no stage {name}; the stages: {', '.join(self.stages)}")
        known = {loop_name(loop): loop for loop in self.loops[name]}
        if len(loops) > 1 or not known.keys() >= set(loops):
            raise ScheduleError(
                f"{name} has no loop {', '.join(loops)}; its loops: {', '.join(known) or 'none'}"
            )
        return Site(self.stages[name], known[loops[0]] if loops else None)


def _planned(stage: Stage, line: _Line) -> tuple[Loop, ...]:
    if line.loops is None:
        return tuple(map(Loop, _axes(stage)))
    return tuple(
        [
            Loop(
                stage.axis(each.axis),
                each.step,
                each.kind,
                each.tail == "shifted",
                each.tail == "padded",
                each.fused,
            )
            for each in line.loops
        ]
    )


def _axes(stage: Stage) -> tuple[Axis, ...]:
    return (*stage.axes, *stage.reduce_axes)


# -- texts of another program


def _require_same_program(lines: Sequence[_Line], stages: Stages, place: str) -> None:
    """Raises ScheduleError that says in what the program of a text is another one."""
    differences = list(_differences(lines, stages.stages))
    if differences:
        raise ScheduleError(
            f"{place} is a schedule of another program than {stages.name}; what differs:"
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
        if name in said:
            yield from _axis_differences(stage, said[name].loops)


def _axis_differences(stage: Stage, loops: tuple[_LoopText, ...] | None) -> Iterator[str]:
    """What is another one in the axes of a stage."""
    if loops is None:
        return
    program = {axis.name: _axis_text(axis, axis in stage.reduce_axes) for axis in _axes(stage)}
    said = {loop.axis: f"{loop.axis} < {loop.extent}{' reduced' * loop.reduced}" for loop in loops}
    for name in dict.fromkeys([*said, *program]):
        if said.get(name) != program.get(name):
            theirs, ours = said.get(name, "no such axis"), program.get(name, "no such axis")
            yield f"{stage.name}: it has {theirs}, the program has {ours}"


def _axis_text(axis: Axis, reduced: bool) -> str:
    return f"{axis.name} < {axis.extent}{' reduced' * reduced}"
