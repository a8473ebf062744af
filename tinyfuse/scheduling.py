"""Programs with the schedules that options ask for."""

from __future__ import annotations

from tinyfuse.config import compile_log as log
from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.program import lower_program
from tinyfuse.machine import Machine
from tinyfuse.parameters import Options
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.ir import Stages
from tinyfuse.stage.program import Program

# The schedule of each part, and why it is so.
Scheduled = tuple[tuple[Schedule, tuple[Decision, ...]], ...]


def scheduled(program: Program, options: Options, machine: Machine) -> tuple[Scheduled, Loops]:
    """The schedules that the options ask for, and the loop nests of all.

    A schedule of the planner's that lowering refuses is a fault of the planner's, not of the
    program: that runs unfused then, without tiles, and a warning says so.
    """
    parts = [segment.stages for segment in program.segments]
    if options.schedule is not None:
        made: Scheduled = tuple([(_users_schedule(options, stages), ()) for stages in parts])
        return made, _lowered(program, made, machine)
    for fuse, tile in ((options.fuse, True), (False, False)):
        try:
            made = tuple([default_schedule(stages, machine, fuse, (), tile) for stages in parts])
            return made, _lowered(program, made, machine)
        except ScheduleError as error:
            if not tile:
                raise
            log.warning(
                "%s is not %s: the planner made a schedule that is refused (%s)",
                program.name,
                "fused" if fuse else "tiled",
                error,
            )
    raise AssertionError  # the loop returns or raises


def _users_schedule(options: Options, stages: Stages) -> Schedule:
    assert options.schedule is not None
    schedule = options.schedule(stages)
    if not isinstance(schedule, Schedule) or schedule.program is not stages:
        raise ScheduleError(
            f"the schedule for {stages.name} is {schedule!r:.60}, which is no schedule of its"
            " stages: begin with lowered.schedule, or with Schedule(stages) of those it is for"
        )
    return schedule


def _lowered(program: Program, made: Scheduled, machine: Machine) -> Loops:
    pairs = zip(program.segments, made, strict=True)
    return lower_program(program, {segment: each for segment, (each, _) in pairs}, machine)
