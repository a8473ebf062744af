"""Which rows are asked for ahead of their use: those of arrays that no cache holds.

Processors fetch ahead of loops by themselves, but not from the end of a row to the next one when
other loops run in between. So while a kernel computes on a row that it has loaded, it asks for the
next, a few lines at a time; but only while it streams what it computes, for memory is busy with
fetching the lines of other results.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from tinyfuse.loops.ir import LoopKind
from tinyfuse.loops.streaming import BLOCK, LONG_COMPUTATION
from tinyfuse.machine import LINE_BYTES, Machine
from tinyfuse.schedule.cost import stage_bytes
from tinyfuse.schedule.places import Loop, Site
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.analysis import point_cost
from tinyfuse.stage.ir import Stage

# Bytes of a row from which on it is worth asking for.
LEAST_ROW = 1 << 10


def prefetch_rows(schedule: Schedule, machine: Machine) -> Schedule:
    """In kernels that go through the rows of a large array more than once, and compute long on each
    element of a result that they stream, ask for the rows that follow."""
    places = schedule.places
    streaming = [root for root in places.kernels if schedule[root].streamed]
    large = _large(schedule, machine) if streaming else set[Stage]()
    for root in streaming if large else ():
        for source in _read(schedule, root, large):
            others = [s for s in places.inside(Site(root, None)) if _reads(schedule, s, source)]
            if others and _reads(schedule, root, source) and _is_whole_lines(root):
                schedule = _prefetched(schedule, root, source)
    return schedule


def _large(schedule: Schedule, machine: Machine) -> set[Stage]:
    """What of the memory of the program is larger than the second cache, in several rows."""
    return {
        source
        for source in (*schedule.stages.inputs, *schedule.stages.stages)
        if stage_bytes(source) > 2 * machine.l2
        and len(source.axes) > 1
        and _is_at_root(schedule, source)
    }


def _read(schedule: Schedule, root: Stage, sources: Collection[Stage]) -> list[Stage]:
    """What of these a kernel reads."""
    inside = [*schedule.places.inside(Site(root, None)), root]
    read = dict.fromkeys(source for stage in inside for source in _sources(schedule, stage))
    return [source for source in read if source in sources]


def _sources(schedule: Schedule, stage: Stage) -> dict[Stage, None]:
    """What a stage reads at indices, inlined stages seen through."""
    loads = schedule.places.loads(stage)
    return dict.fromkeys(load.source for load in loads if not load.data)


def _reads(schedule: Schedule, stage: Stage, source: Stage) -> bool:
    return source in _sources(schedule, stage)


def _is_at_root(schedule: Schedule, stage: Stage) -> bool:
    return stage.is_input or (
        not schedule[stage].inlined and schedule.places.storage(stage) is None
    )


def _prefetched(schedule: Schedule, root: Stage, source: Stage) -> Schedule:
    """Ask for the next row, a block of the result at a time."""
    rows = _rows(schedule, root, source)
    if rows is None or schedule[root].prefetch or not _computes_long(schedule, root):
        return schedule
    axis, step = root.axes[-1], BLOCK // root.dtype.itemsize
    return schedule.split(root, axis, step).prefetch(root, source, Loop(axis, step), (root, rows))


def _is_whole_lines(root: Stage) -> bool:
    """Whether rows of a result end where lines of memory do, so that blocks of it do too."""
    return bool(root.axes) and root.axes[-1].extent * root.dtype.itemsize % LINE_BYTES == 0


def _rows(schedule: Schedule, root: Stage, source: Stage) -> Loop | None:
    """The loop of a kernel each of whose steps is a row of an array."""
    sites = [schedule[stage].compute_at for stage in schedule.places.attached.get(root, ())]
    loops = list(dict.fromkeys(site.loop for site in sites if site))
    if len(loops) != 1 or loops[0] is None or loops[0].step != 1 or loops[0].axis.extent < 2:
        return None
    row = math.prod(source.shape[1:]) * source.dtype.itemsize
    return loops[0] if loops[0].axis is root.axes[0] and row >= LEAST_ROW else None


def _computes_long(schedule: Schedule, stage: Stage) -> bool:
    """Whether a stage computes its elements one by one, and memory has time for more meanwhile."""
    loop = schedule[stage].loops[-1]
    if loop.kind is not LoopKind.VECTOR or loop.axis.extent * stage.dtype.itemsize <= BLOCK:
        return False
    return _cost(schedule, stage) >= LONG_COMPUTATION


def _cost(schedule: Schedule, stage: Stage) -> int:
    """What an element takes in additions, inlined stages included."""
    inlined = [s for s in _sources(schedule, stage) if not s.is_input and schedule[s].inlined]
    return sum(point_cost(each.body) for each in (stage, *inlined) if each.body is not None)
