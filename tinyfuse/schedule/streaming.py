"""Which results go to memory past the caches: those too large to be found there later.

A store to memory that is in no cache first reads the line it is in. A streamed store does not, so
that a large result moves half as many bytes; but who reads it afterwards finds nothing of it in
the caches. Tiles of sums are stored from vector registers, where there is nothing to gather for a
stream. And while a kernel computes long on each element, the caches fetch and write lines by
themselves, but a stream of a whole row has to be waited for: there, what is stored is to find
the caches full before it is streamed. So it is where several cores each go along their rows, as
one stream after another is all that memory takes from them.
"""

from __future__ import annotations

import math

from tinyfuse.machine import MIB, Machine
from tinyfuse.schedule.cost import stage_bytes
from tinyfuse.schedule.kept_rows import rows_in_result
from tinyfuse.schedule.places import Places, Site
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.streamable import obstacle
from tinyfuse.stage.analysis import point_cost
from tinyfuse.stage.copies import CacheWrite, changes
from tinyfuse.stage.index import Affine
from tinyfuse.stage.ir import Stage

# What one program may count on of a last-level cache: dozens of cores share those that are larger.
SHARE_OF_CACHE = 24 * MIB
# The same for kernels that compute long, or on several cores along rows; a part of what they move
# is not in the cache then.
SHARE_IN_TIME = 40 * MIB
PART_IN_TIME = 1.25
# What computing an element takes, in additions, so that it is long: an exponential and a quotient.
LONG = 24


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
    size = stage_bytes(stage)
    if 2 * size < min(machine.l3, SHARE_OF_CACHE) or schedule.readers(stage):
        return False
    if obstacle(stage, schedule.places) or rows_in_result(stage, schedule.places):
        return False
    moved = size + sum(map(stage_bytes, _sources(stage, schedule.places)))
    along = machine.cores > 1 and _goes_along_rows(stage, schedule.places)
    if along or _computes_long(stage, schedule.places):
        return moved > min(PART_IN_TIME * machine.l3, SHARE_IN_TIME)
    return moved >= min(machine.l3, SHARE_OF_CACHE)


def _computes_long(stage: Stage, places: Places) -> bool:
    """Whether a kernel does, all its stages included, for each element of its result."""
    stages = dict.fromkeys((stage, *places.inside(Site(stage, None))))
    for each in [*stages]:
        stages.update(dict.fromkeys(s for s in _loaded(each, places) if not _is_stored(s, places)))
    spent = [_elements(s) * point_cost(s.body) for s in stages if s.body is not None]
    return sum(spent) >= LONG * _elements(stage)


def _goes_along_rows(stage: Stage, places: Places) -> bool:
    """Whether a kernel reads nothing but what lies at the same indices along each axis."""
    stages = (stage, *places.inside(Site(stage, None)))
    loads = [load for each in stages for load in places.loads(each)]
    stored = [load for load in loads if _is_stored(load.source, places)]
    return all(_is_axis(index) and not load.data for load in stored for index in load.indices)


def _is_axis(index: Affine) -> bool:
    """Whether it is one alone, or a number."""
    (_, factor), *others = index.terms or ((None, 1),)
    return factor == 1 and not others and not (index.terms and index.constant)


def _elements(stage: Stage) -> int:
    """How many it computes, or combines."""
    return math.prod([axis.extent for axis in (*stage.axes, *stage.reduce_axes)])


def _sources(stage: Stage, places: Places) -> list[Stage]:
    """What a stage reads from memory, itself or through what is inlined into it."""
    return [source for source in _loaded(stage, places) if _is_stored(source, places)]


def _loaded(stage: Stage, places: Places) -> dict[Stage, None]:
    return dict.fromkeys(load.source for load in places.loads(stage))


def _is_stored(stage: Stage, places: Places) -> bool:
    return stage.is_input or not places.plans[stage].inlined
