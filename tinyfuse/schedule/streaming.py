"""Which results go to memory past the caches: those too large to be found there later.

A store to memory that is in no cache first reads the line it is in. A streamed store does not, so
that a large result moves half as many bytes; but who reads it afterwards finds nothing of it in
the caches. Tiles of sums are stored from vector registers, where there is nothing to gather for a
stream.
"""

from __future__ import annotations

from tinyfuse.machine import MIB, Machine
from tinyfuse.schedule.cost import stage_bytes
from tinyfuse.schedule.places import Places
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.streamable import obstacle
from tinyfuse.stage.copies import CacheWrite, changes
from tinyfuse.stage.ir import Stage

# What one program may count on of a last-level cache: dozens of cores share those that are larger.
SHARE_OF_CACHE = 24 * MIB


def stream_large_results(schedule: Schedule, machine: Machine) -> Schedule:
    """Stream the outputs that nothing reads, of half a last-level cache or more, where a nest moves
    more bytes than that cache holds; but for tiles."""
    tiled = {each.stage.name for each in changes(schedule.stages) if isinstance(each, CacheWrite)}
    for stage in schedule.stages.outputs:
        if stage.is_input or stage.name in tiled:
            continue
        if _is_too_large(stage, schedule, machine):
            schedule = schedule.stream_store(stage)
    return schedule


def _is_too_large(stage: Stage, schedule: Schedule, machine: Machine) -> bool:
    cache, size = min(machine.l3, SHARE_OF_CACHE), stage_bytes(stage)
    if 2 * size < cache or schedule.readers(stage) or obstacle(stage, schedule.places):
        return False
    return size + sum(map(stage_bytes, _sources(stage, schedule.places))) >= cache


def _sources(stage: Stage, places: Places) -> list[Stage]:
    """What a stage reads from memory, itself or through what is inlined into it."""
    sources = dict.fromkeys(load.source for load in places.loads(stage))
    return [s for s in sources if s.is_input or not places.plans[s].inlined]
