"""Random legal schedules: directives drawn one by one, kept where the schedule takes them."""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.errors import ScheduleError
from tinyfuse.schedule.places import Loop
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.ir import Stage
from tinyfuse.testing.choices import Choices

MOST_DIRECTIVES = 12
MOST_INLINED = 5  # an inlined stage is computed once for each place that reads it


def random_schedule(choices: Choices, schedule: Schedule) -> Schedule:
    """A schedule some directives away from this one, which computes the same bits."""
    for _ in range(choices.below(MOST_DIRECTIVES + 1)):
        directive = choices.choose(DIRECTIVES)
        try:
            schedule = directive(choices, schedule)
        except ScheduleError:
            continue
    return schedule


def _stage(choices: Choices, schedule: Schedule) -> Stage:
    stages = schedule.stages.stages
    if not stages:
        raise ScheduleError("there are no stages")
    return choices.choose(stages)


def _loop(choices: Choices, schedule: Schedule, stage: Stage) -> Loop:
    loops = schedule[stage].loops
    if not loops:
        raise ScheduleError(f"{stage.name} has no loops")
    return choices.choose(loops)


def _split(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    loop = _loop(choices, schedule, stage)
    factor = loop.step * (1 + choices.below(max(2, min(loop.axis.extent, 70))))
    return schedule.split(stage, loop, factor, choices.choose(("peel", "peel", "shift", "pad")))


def _tile(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    rows, columns = _loop(choices, schedule, stage), _loop(choices, schedule, stage)
    height, width = (loop.step * (1 + choices.below(9)) for loop in (rows, columns))
    return schedule.tile(stage, rows, columns, height, width)


def _reorder(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    return schedule.reorder(stage, *choices.shuffled(schedule[stage].loops))


def _parallel(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    return schedule.parallel(stage, _loop(choices, schedule, stage))


def _vectorize(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    return schedule.vectorize(stage, _loop(choices, schedule, stage))


def _unroll(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    loop = _loop(choices, schedule, stage)
    if loop.axis.extent > 8:
        raise ScheduleError("the text would be long")
    return schedule.unroll(stage, loop)


def _inline(choices: Choices, schedule: Schedule) -> Schedule:
    if sum(schedule[stage].inlined for stage in schedule.stages.stages) >= MOST_INLINED:
        raise ScheduleError("the text would be long")
    return schedule.inline(_stage(choices, schedule))


def _store(choices: Choices, schedule: Schedule) -> Schedule:
    return schedule.store(_stage(choices, schedule))


def _compute_at(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    readers = schedule.readers(stage)
    if not readers:
        raise ScheduleError(f"nothing reads {stage.name}")
    return schedule.compute_at(stage, *_place(choices, schedule, choices.choose(readers)))


def _compute_further_in(choices: Choices, schedule: Schedule) -> Schedule:
    """In what a reader is computed in, or in any stage."""
    stage = _stage(choices, schedule)
    around = [host for reader in schedule.readers(stage) for host in schedule.places.chain(reader)]
    consumer = choices.choose(around or schedule.stages.stages)
    site = _place(choices, schedule, consumer)
    if choices.below(2) == 0:
        return schedule.compute_at(stage, *site)
    further_out = choices.choose(schedule.places.chain(consumer))
    return schedule.compute_at(stage, *site, store_at=_place(choices, schedule, further_out))


def _compute_with(choices: Choices, schedule: Schedule) -> Schedule:
    stage, leader = _stage(choices, schedule), _stage(choices, schedule)
    site = _place(choices, schedule, leader)
    if choices.below(2) == 0:
        return schedule.compute_with(stage, *site)
    further_out = choices.choose(schedule.places.chain(leader))
    return schedule.compute_with(stage, *site, store_at=_place(choices, schedule, further_out))


def _store_at(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    if choices.below(3) == 0:
        return schedule.store_at(stage)
    hosts = schedule.places.chain(stage)[1:]
    if not hosts:
        raise ScheduleError(f"{stage.name} is at the root")
    return schedule.store_at(stage, *_place(choices, schedule, choices.choose(hosts)))


def _stream_store(choices: Choices, schedule: Schedule) -> Schedule:
    return schedule.stream_store(_stage(choices, schedule))


def _fold(choices: Choices, schedule: Schedule) -> Schedule:
    kept = [stage for stage, plan in schedule.places.plans.items() if plan.store_at]
    if not kept:
        raise ScheduleError("no stage is kept further out than where it is computed")
    stage = choices.choose(kept)
    if not stage.axes:
        raise ScheduleError(f"{stage.name} has no axes")
    return schedule.fold(stage, choices.choose(stage.axes), 1 << choices.below(4))


def _prefetch(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    read = [load.source for load in stage.reads() if load.source.is_input]
    if not read:
        raise ScheduleError(f"{stage.name} reads no input")
    host = choices.choose(schedule.places.chain(stage))
    loop, ahead = _loop(choices, schedule, stage), _loop(choices, schedule, host)
    return schedule.prefetch(stage, choices.choose(read), loop, (host, ahead))


def _cache_read(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    read = [load.source for load in schedule.places.loads(stage)]
    if not read:
        raise ScheduleError(f"{stage.name} reads nothing")
    along, source = choices.choose((None, None, *stage.axes)), choices.choose(read)
    _, loop = _place(choices, schedule, stage)
    index = choices.choose((None, *source.axes)) if along else None
    return schedule.cache_read(stage, source, loop, along, index)


def _cache_write(choices: Choices, schedule: Schedule) -> Schedule:
    return schedule.cache_write(*_place(choices, schedule, _stage(choices, schedule)))


def _layout(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    parts = [Loop(axis) for axis in choices.shuffled(stage.axes)]
    if parts and choices.below(2):
        blocks = Loop(choices.choose(parts).axis, 1 << choices.below(4))
        parts.insert(choices.below(len(parts)), blocks)
    return schedule.layout(stage, *parts)


def _pad(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    return schedule.pad(stage, _loop(choices, schedule, stage))


def _wrap(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    if not stage.axes:
        raise ScheduleError(f"{stage.name} has no axes")
    return schedule.wrap(stage, choices.choose(stage.axes), choices.below(4), choices.below(4))


def _fuse(choices: Choices, schedule: Schedule) -> Schedule:
    stage = _stage(choices, schedule)
    loops = schedule[stage].loops
    if len(loops) < 2:
        raise ScheduleError(f"{stage.name} has no two loops")
    place = choices.below(len(loops) - 1)
    return schedule.fuse(stage, loops[place], loops[place + 1])


def _place(choices: Choices, schedule: Schedule, stage: Stage) -> tuple[Stage, Loop | None]:
    return stage, choices.choose((None, *schedule[stage].loops))


DIRECTIVES: tuple[Callable[[Choices, Schedule], Schedule], ...] = (
    _split, _split, _tile, _reorder, _parallel, _vectorize, _unroll, _inline, _store,
    _compute_at, _compute_at, _compute_at, _compute_further_in, _compute_with, _store_at, _store_at,
    _stream_store, _fold, _fold, _prefetch, _cache_read, _cache_read, _cache_write, _layout,
    _layout, _pad, _wrap, _fuse,
)  # fmt: skip
