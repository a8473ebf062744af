"""Ways to compile a program: schedules, flags for the compiler, numbers of threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import Loops
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.lower.once import Parted, parted
from tinyfuse.lower.program import lower_program
from tinyfuse.machine import REFERENCE
from tinyfuse.records import replace
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.stage.program import Program
from tinyfuse.testing.case import Case, Part
from tinyfuse.testing.choices import SeededChoices
from tinyfuse.testing.schedules import random_schedule

ScheduleOf = Callable[[Part], Schedule]


def unfused(part: Part) -> Schedule:
    """Every stage in a loop nest of its own, over its axes."""
    return default_schedule(part.stages, REFERENCE, fuse=False, tile=False)[0]


def fused(part: Part) -> Schedule:
    """As programs run by default."""
    return default_schedule(part.stages, REFERENCE)[0]


# Caches so small that programs of a few elements are fused as large ones are elsewhere.
SMALL = replace(REFERENCE, name="small", l1=64, l2=512, l3=1024)


def tightly_fused(part: Part) -> Schedule:
    """As programs run by default where caches are small."""
    return default_schedule(part.stages, SMALL)[0]


def plain(part: Part) -> Schedule:
    """No directive at all."""
    return Schedule(part.stages)


def random(seed: int) -> ScheduleOf:
    """A few directives away from one of the others, or that one where lowering refuses it.

    A function of the seed and the part, so that a failure can be made again.
    """

    def schedule_of(part: Part) -> Schedule:
        choices = SeededChoices(seed << 32 | crc32(part.text.encode()))
        start = choices.choose((plain, fused, tightly_fused, unfused))(part)
        schedule = random_schedule(choices, start)
        try:
            lower(schedule, REFERENCE)
        except ScheduleError:
            return start
        return schedule

    return schedule_of


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to compile and run.

    flags: for the compiler, after the usual ones. pieces: for each run, into how many pieces every
    parallel loop is cut; see `compiled.SPLITTING_POOL`.
    """

    name: str
    schedule_of: ScheduleOf
    flags: tuple[str, ...] = ("-O1",)
    pieces: tuple[int, ...] = (1,)

    @property
    def vectors(self) -> bool:
        """Whether compilers make vectors: with what flags, depends on the program."""
        return not {"-O0", "-O1"}.intersection(self.flags)

    def loops(self, case: Case) -> Loops:
        return lowered(case, self.schedule_of)

    def text(self, case: Case) -> str:
        """The schedule, as failures show it."""
        return "\n".join([schedule_text(self.schedule_of(part)) for part in case.parts])


def lowered(case: Case, schedule_of: ScheduleOf) -> Loops:
    """The loops of a case, verified."""
    return _lowered(case.program, case.text, schedule_of)


def lowered_with_constants(case: Case, schedule_of: ScheduleOf) -> Parted:
    """The same, with most inputs as constants, in its two parts."""
    return parted(_lowered(case.constant_program, case.text, schedule_of))


def _lowered(program: Program, text: str, schedule_of: ScheduleOf) -> Loops:
    schedules = {part: schedule_of(Part(part.stages, text)) for part in program.segments}
    loops = lower_program(program, schedules, REFERENCE)
    verify_loops(loops)
    return loops


def usual_variants(seed: int = 0) -> tuple[Variant, ...]:
    """Unfused, fused, and random schedules that are a function of the seed."""
    return (
        Variant("unfused C", unfused),
        Variant("fused C", fused, pieces=(1, 3)),
        Variant("C of a random schedule", random(seed), pieces=(2, 7)),
    )
