"""`tinyfuse.bisect`: which decisions of the planner make a check fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tinyfuse.api import jitted
from tinyfuse.compilation import Lowered
from tinyfuse.inspect.measure import given, kept
from tinyfuse.inspect.writing import plural
from tinyfuse.records import dataclass
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import PLACES, part_texts
from tinyfuse.source import Source
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.trace.builder import place_text

Check = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A decision without which the check passes. sources: of what the stage computes."""

    decision: Decision
    sources: tuple[Source, ...]

    def __str__(self) -> str:
        return f"  {self.decision}" + "".join(
            [place_text(source).replace("\n  ", "\n    ") for source in self.sources]
        )


@dataclass(frozen=True, slots=True)
class Bisection:
    """What `bisect` has found out: `print` it.

    passes_fused, passes_unfused: whether the check passes with all decisions, and with none.
    decisions: how many there are. culprits: the fewest with which it fails; none where fusion is
    not what makes it fail. runs: how many programs were compiled and run.
    """

    function: str
    passes_fused: bool
    passes_unfused: bool
    decisions: int
    culprits: tuple[Culprit, ...]
    runs: int

    def __str__(self) -> str:
        head = f"bisect {self.function}: {plural(self.decisions, 'decision')} to fuse"
        return f"{head}, {plural(self.runs, 'program')} run\n{self._verdict()}"

    def _verdict(self) -> str:
        if self.passes_fused:
            return "The check passes with all of them: there is nothing to find."
        if not self.passes_unfused:
            return "The check fails with none of them too: fusion is not at fault."
        which = "this decision" if len(self.culprits) == 1 else "these decisions together"
        stored = " or ".join([each.decision.producer for each in self.culprits])
        lines = [f"The check fails because of {which}:", *map(str, self.culprits)]
        return "\n".join([*lines, f"It passes where {stored} is stored."])


def bisect(function: Callable[..., Any], args: Any, check: Check) -> Bisection:
    """Turn decisions of the planner off by halves, and name those that make a check fail.

    ::

        expected = f.__wrapped__(x)
        print(tinyfuse.bisect(f, (x,), lambda result: np.allclose(result, expected)))

    Fusion changes no bit, so what this names is a fault of tinyfuse's (please report it), or
    a check that depends on more than the result. Arrays that the function writes are as they were
    before at each run, and afterwards.

    Args:
        function: jitted or not. A schedule of its own is left out.
        args: a tuple of its arguments; anything else is its only argument.
        check: says of a result whether it is right.

    Raises:
        TypeError: function cannot be called, or the check returns neither True nor False.
        What the function's `lower` and `compile`, a call and the check raise.
    """
    values = args if isinstance(args, tuple) else (args,)
    return _Search(jitted(function, "bisect").lower(*values), values, check).result()


class _Search:
    """The programs of a function that leave some stages alone, and what the check says of them."""

    def __init__(self, lowered: Lowered, args: tuple[Any, ...], check: Check):
        self.lowered, self.args, self.check = lowered, args, check
        self.names = _fused_stages(lowered)
        self.known: dict[tuple[str, ...], bool] = {}

    def result(self) -> Bisection:
        fused = self.passes(self.names)
        unfused = fused or self.passes(())
        found = () if fused or not unfused else self.smallest()
        return Bisection(
            self.lowered.traced.name,
            fused,
            unfused,
            len(self.names),
            self.culprits(found),
            len(self.known),
        )

    def smallest(self) -> tuple[str, ...]:
        """A set of decisions with which the check fails, and passes without any one of them.

        Zeller's and Hildebrandt's delta debugging (IEEE Trans. Softw. Eng. 28, 2002): halves, then
        what is left without smaller and smaller parts.
        """
        current, parts = self.names, 2
        while len(current) > 1:
            chunks = _chunks(current, parts)
            rest = [tuple([n for n in current if n not in chunk]) for chunk in chunks]
            failing = next((each for each in (*chunks, *rest) if not self.passes(each)), None)
            if failing is not None:
                current, parts = failing, max(2, parts - 1 if failing in rest else 2)
            elif parts < len(current):
                parts = min(2 * parts, len(current))
            else:
                break
        return current

    def passes(self, fused: tuple[str, ...]) -> bool:
        """Whether the check passes where only these decisions to fuse are left."""
        if fused not in self.known:
            schedules = [schedule for schedule, _ in self.planned(fused)]
            program = self.lowered.with_schedules(schedules).compile()
            call, executable = program.prepared(self.args, {})
            with kept(executable, given(executable, call)):
                passes = self.check(program(*self.args))
            if not isinstance(passes, bool | np.bool_):
                raise TypeError(f"check returned {passes!r:.60}: it has to return True or False")
            self.known[fused] = bool(passes)
        return self.known[fused]

    def planned(self, fused: Sequence[str]) -> list[tuple[Schedule, tuple[Decision, ...]]]:
        """For each part of the program."""
        stored = {name for name in self.names if name not in fused}
        return [
            default_schedule(
                part, self.lowered.machine, stored=[s.name for s in part.stages if s.name in stored]
            )
            for part in _parts(self.lowered)
        ]

    def culprits(self, names: Sequence[str]) -> tuple[Culprit, ...]:
        return tuple(
            [
                Culprit(decision, schedule.stage(decision.producer).sources)
                for schedule, decisions in self.planned(names)
                for decision in decisions
                if decision.producer in names
            ]
        )


def _fused_stages(lowered: Lowered) -> tuple[str, ...]:
    """The stages that are computed elsewhere than they would be without fusion, or reduced by loops
    in another order."""
    found: list[str] = []
    for part in _parts(lowered):
        fused, _ = default_schedule(part, lowered.machine)
        unfused, _ = default_schedule(part, lowered.machine, fuse=False, tile=False)
        found += [s.name for s in part.stages if _place(fused, s) != _place(unfused, s)]
    return tuple(found)


def _parts(lowered: Lowered) -> list[Stages]:
    return [segment.stages for segment in lowered.program.segments]


def _place(schedule: Schedule, stage: Stage) -> list[str]:
    loops = [loop.axis.name for loop in schedule[stage].loops] if stage.reduce_axes else []
    return part_texts(schedule[stage], PLACES) + loops


def _chunks(names: tuple[str, ...], parts: int) -> list[tuple[str, ...]]:
    ends = [len(names) * at // parts for at in range(parts + 1)]
    return [names[start:end] for start, end in pairwise(ends)]
