"""What a schedule may not do: each check refuses one kind of schedule that would compute wrongly.

Which elements are computed where is a question of ranges; lowering checks that.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import SHARED
from tinyfuse.schedule.loop_legality import LOOP_CHECKS, WHOLE_ROWS, Check, of
from tinyfuse.schedule.places import Loop, Places, Site, StagePlan
from tinyfuse.schedule.streamable import obstacle
from tinyfuse.stage.analysis import moves_with_data
from tinyfuse.stage.expr import Load, loads, substitute
from tinyfuse.stage.index import Axis, IndexLike
from tinyfuse.stage.ir import Order, Stage


def check(places: Places, directive: str) -> None:
    """Raise ScheduleError where a check fails."""
    for each in CHECKS.values():
        each(places, directive)


# --- stages computed where they are read ----------------------------------------------------------


def _check_inlined(places: Places, directive: str) -> None:
    """What is inlined can be computed element by element, wherever it is read."""
    inlined = [stage for stage, plan in places.plans.items() if plan.inlined]
    for stage in inlined:
        reason = _never_inlined(stage, places)
        if reason:
            raise ScheduleError(f"inline({stage.name}): {reason}")
    gathered: set[Stage] = set()
    for reader in reversed(places.stages.stages) if inlined else ():
        for read in reader.reads():
            plan = places.plans.get(read.source)
            if plan is None or not plan.inlined:
                continue
            if read.data or reader in gathered:
                gathered.add(read.source)
            if read.source in gathered and not moves_with_data(read.source):
                raise ScheduleError(
                    f"inline({read.source.name}): data decides where {reader.name} reads it, and"
                    " its own expression divides or tests indices"
                )
            if reader.order is not Order.SERIAL:
                raise ScheduleError(
                    f"inline({read.source.name}): {reader.name} combines its elements in place"
                )


def _never_inlined(stage: Stage, places: Places) -> str | None:
    if stage.reduce_axes:
        return "it is a reduction, which needs a loop of its own"
    if stage in places.outputs:
        return "it is an output, which has to be stored"
    if stage.scatter:
        return "its elements are put in one by one"
    return WHOLE_ROWS[stage.sort] if stage.scan or stage.sort else None


# --- stages computed in loops of others -----------------------------------------------------------


def _check_hosts(places: Places, directive: str) -> None:
    """The loop that a stage is computed in is there."""
    for stage, site in places.seated:
        at = f"{directive}: {stage.name} is computed at {site.stage.name}"
        if places.plans[site.stage].inlined:
            raise ScheduleError(f"{at}, which has no loops any more")
        if site.loop is not None and site.loop not in places.plans[site.stage].loops:
            raise ScheduleError(f"{at}, which has no loop {site.loop.axis.name} any more")
        chain = places.chain(site.stage)
        if stage in chain:
            raise ScheduleError(f"{at}, which is computed inside {stage.name}")


def _check_scatters(places: Places, directive: str) -> None:
    """No loop goes through the elements of a scatter one by one."""
    for stage, site in places.seated:
        if stage.scatter or site.stage.scatter:
            raise ScheduleError(
                f"{directive}: {stage.name} is computed at {site.stage.name}, where elements are"
                f" put in one after the other"
            )


def _check_inner_threads(places: Places, directive: str) -> None:
    """Threads share only the outermost loop of a kernel."""
    for stage, site in places.seated:
        at = f"{directive}: {stage.name} is computed at {site.stage.name}"
        if _is_shared(places, stage):
            raise ScheduleError(f"{at}, so its own loops cannot be shared by threads")
        for verb, place in (("computed", site), ("stored", places.storage(stage))):
            if place is not None and place.loop is None and _is_shared(places, place.stage):
                raise ScheduleError(
                    f"{directive}: {stage.name} is {verb} at {place.stage.name} before its loops,"
                    f" of which threads share the first"
                )


def _is_shared(places: Places, stage: Stage) -> bool:
    return any(loop.kind in SHARED for loop in places.plans[stage].loops)


def _check_rounds(places: Places, directive: str) -> None:
    """Nothing is computed between the rounds of a tree, and nothing combined twice in place."""
    for stage, site in places.seated:
        at = f"{directive}: {stage.name} is computed at {site.stage.name}"
        if site.loop is not None and _rounds_began(places.plans, site.stage, site.loop):
            raise ScheduleError(f"{at} inside its rounds, which combine it in place")
        if stage.order is not Order.SERIAL and not _is_combined_once(places, stage):
            raise ScheduleError(
                f"{at}, step after step, but it combines in place what is stored only once;"
                f" compute that at {stage.name} first"
            )


def _rounds_began(plans: Mapping[Stage, StagePlan], tree: Stage, at: Loop) -> bool:
    loops = plans[tree].loops
    reduced = tree.reduce_axes if tree.order is not Order.SERIAL else ()
    return any(loop.axis in reduced for loop in loops[: loops.index(at) + 1])


def _is_combined_once(places: Places, tree: Stage) -> bool:
    """Whether what a tree combines is computed anew each time the tree is, or that is once."""
    site = places.plans[tree.reads()[0].source].compute_at
    if site is not None and site.stage is tree:
        return True
    around = [places.plans[stage].compute_at for stage in places.chain(tree)]
    return all(at is None or at.loop is None for at in around)


def _check_alignment(places: Places, directive: str) -> None:
    """Axes that go along with others are of the same extent, and each of its own."""
    for stage, site in places.seated:
        for axis, leader in site.aligned:
            free = axis in stage.axes and leader in site.stage.axes
            carried = axis is stage.scan and leader in site.stage.reduce_axes
            reduced = axis in stage.reduce_axes and leader in site.stage.reduce_axes
            if not (free or reduced or carried) or axis.extent != leader.extent:
                raise ScheduleError(
                    f"{directive}: {axis.name} of {stage.name} cannot go along with {leader.name}"
                    f" of {site.stage.name}"
                )
        if len({leader for _, leader in site.aligned}) < len(site.aligned):
            raise ScheduleError(f"{directive}: two axes of {stage.name} would go along with one")


def _check_joined(places: Places, directive: str) -> None:
    """A reduction in the loop of another one takes each element once, in order, from its start to
    its end."""
    for stage, site in places.seated:
        if not places.is_joined(stage):
            continue
        leader, aligned = site.stage, dict(site.aligned)
        at = f"{directive}: {stage.name} is reduced in the loops of {leader.name}"
        if stage.order is not Order.SERIAL or stage.scatter:
            raise ScheduleError(f"{at}, but not in its order")
        if leader.order is not Order.SERIAL or places.is_joined(leader):
            raise ScheduleError(f"{at}, which starts elsewhere")
        if tuple([aligned.get(axis) for axis in stage.reduce_axes]) != leader.reduce_axes:
            raise ScheduleError(f"{at}, which takes its elements in another order")
        start = places.accumulation(leader)
        reducing = places.plans[leader].loops[places.depth(start) : places.depth(site)]
        if any(loop.axis not in aligned.values() for loop in reducing):
            raise ScheduleError(f"{at}, which would take each of its elements several times")
        kept = places.storage(stage)
        if kept is not None and (kept.stage is leader and places.depth(kept) > places.depth(start)):
            raise ScheduleError(f"{at}, and would be kept for a step of these at a time")
        if any(places.within(reader, start) for reader in places.readers[stage]):
            raise ScheduleError(f"{at}, where it is read before its end")


# --- the order in which stages are computed, and how long they are kept ---------------------------


def _check_storage(places: Places, directive: str) -> None:
    """What is read is still stored."""
    for stage, plan in places.plans.items():
        if plan.store_at is not None and plan.compute_at is None:
            raise ScheduleError(f"store_at({stage.name}): it is not computed inside another stage")
    for stage, site in places.seated:
        storage = places.storage(stage)
        if storage is None:
            continue
        at = f"{directive}: {stage.name} is stored at {storage.stage.name}"
        loops = places.plans[storage.stage].loops
        if storage.loop is not None and storage.loop not in loops:
            raise ScheduleError(f"{at}, which has no loop {storage.loop.axis.name} any more")
        inside = places.within(site.stage, storage)
        same = site.stage is storage.stage
        if not inside or (same and places.depth(site) < places.depth(storage)):
            raise ScheduleError(f"{at}, inside the place where it is computed")
        for reader in places.readers[stage]:
            if not places.within(reader, storage):
                raise ScheduleError(f"{at}, but {reader.name} reads it elsewhere")


def _check_streams(places: Places, directive: str) -> None:
    """What is streamed is stored once, in rows."""
    for stage, plan in places.plans.items():
        reason = obstacle(stage, places) if plan.streamed else None
        if reason:
            raise ScheduleError(f"{directive}: {stage.name} cannot be streamed: {reason}")


def _check_prefetches(places: Places, directive: str) -> None:
    """What is prefetched is in memory, and the loops that say when are there."""
    for stage, plan in places.plans.items():
        found = plan.prefetch
        if found is None:
            continue
        at = f"{of(directive, stage)}: {found.source.name} cannot be prefetched"
        if found.at not in plan.loops or found.distance < 1:
            raise ScheduleError(f"{at}: there is no such loop, or distance")
        host, loop = found.ahead.stage, found.ahead.loop
        around = places.chain(stage)
        if host not in around or loop is None or loop not in places.plans[host].loops:
            raise ScheduleError(f"{at}: {host.name} has no such loop around it")
        if host is stage and plan.loops.index(loop) > plan.loops.index(found.at):
            raise ScheduleError(f"{at}: the loop that is ahead lies inside")
        own = places.plans.get(found.source)
        if own is not None and (own.inlined or places.storage(found.source) is not None):
            raise ScheduleError(f"{at}: it is not in the memory of the program")


def _check_layouts(places: Places, directive: str) -> None:
    """Each axis has a place in memory, and what others expect in C order lies so."""
    for stage, plan in places.plans.items():
        if plan.layout is None:
            continue
        at = f"layout({stage.name})"
        if stage in places.outputs:
            raise ScheduleError(f"{at}: it is an output, which is stored in C order")
        for axis in stage.axes:
            steps = [part.step for part in plan.layout if part.axis is axis]
            if not steps or steps[-1] != 1 or any(a % b or a == b for a, b in pairwise(steps)):
                raise ScheduleError(
                    f"{at}: of {axis.name} there have to be parts, down to steps of 1, each in"
                    f" smaller ones that divide those before"
                )
        if any(part.axis not in stage.axes for part in plan.layout):
            raise ScheduleError(f"{at}: there is a part of an axis that it has not")
        last = [part.axis for part in plan.layout].index(stage.axes[-1]) if stage.axes else 0
        if stage.sort and last < len(plan.layout) - 1:
            raise ScheduleError(f"{at}: its rows are sorted as a whole, side by side in memory")
        divided = {part.axis for part in plan.layout if part.step > 1}
        written = len(stage.scatter.targets) if stage.scatter else 0
        for axis in stage.axes[: max(written, places.placed_by_data.get(stage, 0))]:
            if axis in divided:
                raise ScheduleError(f"{at}: data decides where along {axis.name} it is used")


def _check_rings(places: Places, directive: str) -> None:
    """A ring is read only while its loop runs."""
    for stage, plan in places.plans.items():
        if plan.ring is None:
            continue
        (axis, length), site = plan.ring, plan.compute_at
        at = f"fold({stage.name}, {axis.name}, {length})"
        kept = places.storage(stage)
        if site is None or kept is None or kept == site.plain:
            raise ScheduleError(f"{at}: it is not kept inside a stage, around a loop it moves with")
        if places.is_carried(stage):
            _check_carried(places, stage, site, at)
        elif axis not in stage.axes or axis is stage.row_axis:
            raise ScheduleError(f"{at}: its elements do not move along {axis.name}")
        if length < 1:
            raise ScheduleError(f"{at}: at least one position has to be kept")
        for reader in places.readers[stage]:
            if not places.within(reader, site):
                raise ScheduleError(f"{at}: {reader.name} reads it after the loop")
        if places.placed_by_data.get(stage):
            raise ScheduleError(f"{at}: data decides where it is read")


def _check_carried(places: Places, scan: Stage, site: Site, at: str) -> None:
    """A scan that is kept at one position goes along with a reduction, each of whose steps moves it
    on by one, from a first one that reads nothing."""
    leader, pairs = site.stage, dict(site.aligned)
    start, axis = places.accumulation(leader), scan.scan
    assert axis is not None
    step = places.plans[leader].loops[places.depth(start) : places.depth(site)]
    along = pairs.get(axis)
    if places.plans[scan].ring != (axis, 1) or along not in leader.reduce_axes:
        raise ScheduleError(f"{at}: it goes along with no reduction whose steps move it on")
    if [(loop.axis, loop.step) for loop in step] != [(along, 1)] or places.is_joined(leader):
        raise ScheduleError(f"{at}: a step of {leader.name} is not one of its own")
    if leader.order is not Order.SERIAL or places.storage(scan) != start:
        raise ScheduleError(f"{at}: it has to be kept around all steps of {leader.name}, no more")
    for inside in places.attached.get(scan, ()):
        raise ScheduleError(f"{at}: {inside.name} is computed inside it, where nothing moves on")
    if _reads_at(places, scan, {axis: 0}):
        raise ScheduleError(f"{at}: its first position reads something, before any step")
    for load in _reads_at(places, scan, {axis: Axis(axis.name, axis.extent, 1)}):
        extents = load.source.shape[len(load.data) :]
        for index, extent in zip(load.indices, extents, strict=True):
            if index.interval()[1] >= extent:
                raise ScheduleError(f"{at}: its last step would read past {load.source.name}")


def _reads_at(places: Places, stage: Stage, values: Mapping[Axis, IndexLike]) -> list[Load]:
    """What a stage loads from memory where some of its axes have other values."""
    found: list[Load] = []
    pending: list[tuple[Stage, Mapping[Axis, IndexLike]]] = [(stage, values)]
    for reader, at in pending:
        assert reader.body is not None
        for load in loads(substitute(reader.body, at)):
            if load.source in places.inlined and not load.data:
                pending.append(
                    (load.source, dict(zip(load.source.axes, load.indices, strict=True)))
                )
            else:
                found.append(load)
    return found


def _check_order(places: Places, directive: str) -> None:
    """What is read has been computed."""
    for stage, readers in places.readers.items():
        if not places.plans[stage].inlined:
            for reader in readers:
                if not _comes_before(places, stage, reader):
                    raise ScheduleError(
                        f"{directive}: {reader.name} would read {stage.name} before it is computed"
                    )


def _comes_before(places: Places, producer: Stage, reader: Stage) -> bool:
    root, other = places.chain(producer)[-1], places.chain(reader)[-1]
    if root is not other:
        return root in places.kernels and other in places.kernels
    found = places.meeting(producer, reader)
    if found is None:
        return False
    held, around = found
    if around is None:
        return True
    return _time(places, held) < _time(places, around)


def _time(places: Places, attached: Stage) -> tuple[int, int]:
    site = places.plans[attached].compute_at
    assert site is not None
    return places.depth(site), places.order[attached]


CHECKS: dict[str, Check] = {
    **LOOP_CHECKS,
    "inlined": _check_inlined,
    "hosts": _check_hosts,
    "scatters": _check_scatters,
    "inner threads": _check_inner_threads,
    "rounds": _check_rounds,
    "alignment": _check_alignment,
    "joined reductions": _check_joined,
    "storage": _check_storage,
    "layouts": _check_layouts,
    "rings": _check_rings,
    "prefetches": _check_prefetches,
    "streams": _check_streams,
    "order": _check_order,
}
