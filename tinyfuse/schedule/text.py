"""Schedules as text, and back: one line for each stage, nothing that is ever executed.

::

    schedule product
      matmul: compute_at(out, i by 2); i < 5, j < 4, k < 9 reduced
      add: inline
      out: root; i by 2 < 5, i < 5, j < 4 vector

A line says where a stage is computed, what else is decided about it, and its loops, the outermost
one first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.schedule.places import Loop, Place, Prefetch, Site, StagePlan
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages

if TYPE_CHECKING:
    from tinyfuse.schedule.schedule import Schedule

Arguments = tuple[str, ...]


def schedule_text(schedule: Schedule, whole: bool = False) -> str:
    """One line for each stage.

    whole: inlined stages too have the loops that they would have if they were stored.
    """
    stages = schedule.stages
    lines = [f"  {each.name}: {_plan_text(each, schedule[each], whole)}" for each in stages.stages]
    return "\n".join([f"schedule {stages.name}", *lines, ""])


def _plan_text(stage: Stage, plan: StagePlan, whole: bool) -> str:
    texts = part_texts(plan, PARTS)
    if whole or not plan.inlined:
        texts.append(", ".join([_loop_text(stage, loop) for loop in plan.loops]) or NO_LOOPS)
    return "; ".join(texts)


def part_texts(plan: StagePlan, parts: Sequence[Part]) -> list[str]:
    """What a plan says beside its loops: `root`, or `compute_at(out, i by 2)`."""
    texts = []
    for part in parts:
        arguments = part.write(plan)
        if arguments is not None:
            texts.append(f"{part.word}({', '.join(arguments)})" if arguments else part.word)
    return texts


def _loop_text(stage: Stage, loop: Loop) -> str:
    kind = "" if loop.kind is LoopKind.SERIAL else f" {loop.kind.value}"
    reduced = " reduced" if loop.axis in stage.reduce_axes else ""
    shifted = " shifted" if loop.shifted else ""
    return f"{loop_name(loop)} < {loop.axis.extent}{reduced}{shifted}{kind}"


def loop_name(loop: Loop) -> str:
    """`i`, or `i by 4` for steps of more than one element."""
    return loop.axis.name if loop.step == 1 else f"{loop.axis.name} by {loop.step}"


# -- the fields of a plan, each as a word with arguments


class Part(NamedTuple):
    """A field of a plan as text.

    write: the arguments of the word, for a plan; None where the plan does not say it.
    read: the field's value, by its name, for arguments that are said of a stage.
    """

    word: str
    write: Callable[[StagePlan], Arguments | None]
    read: Callable[[_Program, Stage, Arguments], dict[str, Any]]


def _site(site: Site) -> Arguments:
    return (site.stage.name, loop_name(site.loop)) if site.loop else (site.stage.name,)


def _computed_at(plan: StagePlan) -> Arguments | None:
    site = plan.compute_at
    return None if site is None or site.aligned else _site(site)


def _computed_with(plan: StagePlan) -> Arguments | None:
    site = plan.compute_at
    if site is None or not site.aligned:
        return None
    return (*_site(site), *[f"{own.name} along {other.name}" for own, other in site.aligned])


def _read_leader(program: _Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    site = program.site(arguments[:2])
    pairs = [text.partition(" along ") for text in arguments[2:]]
    aligned = [(stage.axis(own), site.stage.axis(other)) for own, _, other in pairs]
    return {"compute_at": Site(site.stage, site.loop, tuple(aligned))}


def _stored_at(plan: StagePlan) -> Arguments | None:
    place = plan.store_at
    return (place.value,) if isinstance(place, Place) else _site(place) if place else None


def _read_storage(program: _Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    root = arguments == (Place.ROOT.value,)
    return {"store_at": Place.ROOT if root else program.site(arguments)}


def _read_ring(program: _Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    if len(arguments) != 2 or not arguments[1].isdigit():
        raise ScheduleError(f"fold of {stage.name} takes an axis and a length")
    return {"ring": (stage.axis(arguments[0]), int(arguments[1]))}


def _prefetched(plan: StagePlan) -> Arguments | None:
    found = plan.prefetch
    if found is None:
        return None
    return (found.source.name, loop_name(found.at), *_site(found.ahead), str(found.distance))


def _read_prefetch(program: _Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    if len(arguments) != 5 or not arguments[4].isdigit():
        raise ScheduleError(
            f"prefetch of {stage.name} takes a source, a loop, a stage, its loop and a distance"
        )
    at, ahead = program.site((stage.name, arguments[1])).loop, program.site(arguments[2:4])
    assert at is not None
    source = program.source(arguments[0])
    return {"prefetch": Prefetch(source, at, ahead, int(arguments[4]))}


# Where a stage is computed; each has one of these.
PLACES = (
    Part(
        "root",
        lambda plan: None if plan.inlined or plan.compute_at else (),
        lambda program, stage, arguments: {},
    ),
    Part(
        "inline",
        lambda plan: () if plan.inlined else None,
        lambda program, stage, arguments: {"inlined": True},
    ),
    Part(
        "compute_at",
        _computed_at,
        lambda program, stage, arguments: {"compute_at": program.site(arguments)},
    ),
    Part("compute_with", _computed_with, _read_leader),
)
# What else is decided about it.
PROPERTIES = (
    Part("store_at", _stored_at, _read_storage),
    Part(
        "fold",
        lambda plan: (plan.ring[0].name, str(plan.ring[1])) if plan.ring else None,
        _read_ring,
    ),
    Part(
        "streamed",
        lambda plan: () if plan.streamed else None,
        lambda program, stage, arguments: {"streamed": True},
    ),
    Part("prefetch", _prefetched, _read_prefetch),
)
PARTS = (*PLACES, *PROPERTIES)
WORDS = tuple([part.word for part in PARTS])
NO_LOOPS = "no loops"


# -- from text


class _LoopText(NamedTuple):
    axis: str
    step: int
    extent: int
    reduced: bool
    kind: LoopKind
    shifted: bool


class _Line(NamedTuple):
    """What is said of a stage. loops: None where nothing is said of them."""

    place: str
    stage: str
    parts: dict[str, Arguments]
    loops: tuple[_LoopText, ...] | None


_HEAD = re.compile(r"schedule (\w+)", re.ASCII)
_STAGE = re.compile(r"  (\w+): (.+)", re.ASCII)
_PART = re.compile(r"(\w+)(?:\((.+)\))?", re.ASCII)
_KINDS = "|".join([kind.value for kind in LoopKind if kind is not LoopKind.SERIAL])
_COUNT = r"[1-9]\d{0,17}"
_LOOP = re.compile(
    rf"(\w+)(?: by ({_COUNT}))? < (0|{_COUNT})( reduced)?( shifted)?(?: ({_KINDS}))?", re.ASCII
)


def read_plans(text: str, stages: Stages, place: str) -> dict[Stage, StagePlan]:
    """What a text says of each stage of a program.

    place: where the text is from, for messages. Raises ScheduleError for what is no schedule, or is
    one of another program; whether it is a legal one is not looked at.
    """
    head, *rest = text.splitlines() or [""]
    if not _HEAD.fullmatch(head):
        raise _unreadable(f"{place}, line 1", head, "schedule NAME")
    lines = [_line(f"{place}, line {at}", line) for at, line in enumerate(rest, 2) if line]
    _require_same_program(lines, stages, place)
    return _Program(stages, lines).plans()


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
    axis, step, extent, reduced, shifted, kind = match.groups()
    marked = LoopKind(kind) if kind else LoopKind.SERIAL
    return _LoopText(axis, int(step or 1), int(extent), bool(reduced), marked, bool(shifted))


class _Program:
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
        [Loop(stage.axis(each.axis), each.step, each.kind, each.shifted) for each in line.loops]
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
