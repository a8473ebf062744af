"""Products of vectors with several matrices share a kernel, part by part of their columns.

Each takes little longer than threads do to meet. So products of one vector, as of the queries, keys
and values of a word, are computed in the same parts, and what takes their results element by
element, as a gate does, in these too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.records import replace
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import reads_through
from tinyfuse.schedule.places import Loop, Place, Places, Site
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.analysis import fixed_stages, only_axis
from tinyfuse.stage.ir import Order, Stage

# Products of one kernel: the C compiler's time grows faster than a function.
MOST_TOGETHER = 8


def join_vector_products(
    schedule: Schedule, decisions: Sequence[Decision], alone: Collection[str]
) -> tuple[Schedule, tuple[Decision, ...]]:
    """Let products of vectors in a schedule of the planner's share kernels where threads do.

    decisions: on all stages. alone: names of stages that stay as they are.
    """
    known = {decision.producer: decision for decision in decisions}
    apart = {*alone, *[stage.name for stage in fixed_stages(schedule.stages)]}
    for find in (_taken, _beside):
        for root in list(schedule.places.kernels):
            members = find(schedule.places, root, apart)
            joined = _joined(schedule, root, members) if members else None
            if joined is not None:
                schedule = joined
                known |= {stage.name: _decision(known, stage, root) for stage in members}
    return schedule, tuple([known[stage.name] for stage in schedule.stages.stages])


def _decision(known: Mapping[str, Decision], stage: Stage, root: Stage) -> Decision:
    action = "compute_with" if root.reduce_axes else "compute_at"
    reason = f"one kernel computes it and {root.name}, in the same parts of columns"
    return replace(known[stage.name], action=action, reason=reason)


def _parts(places: Places, stage: Stage, apart: Collection[str]) -> Loop | None:
    """The loop over parts of the columns that threads share, if a stage is a product of a vector
    that has a kernel of its own."""
    if stage.order is not Order.SERIAL or not stage.reduce_axes or stage.scatter:
        return None
    if stage not in places.kernels or places.attached.get(stage) or stage.name in apart:
        return None
    loop = places.plans[stage].loops[0]
    shared = loop.kind is LoopKind.PARALLEL and loop.step > 1 and loop.axis is stage.axes[-1]
    return loop if shared and _is_row(stage) else None


def _is_row(stage: Stage) -> bool:
    return all(axis.extent == 1 for axis in stage.axes[:-1])


def _taken(places: Places, root: Stage, apart: Collection[str]) -> tuple[Stage, ...]:
    """The products that a stage at the root takes element by element, if it alone does."""
    attached = places.attached.get(root)
    if root.reduce_axes or root.row_axis or root.scatter or attached or root.name in apart:
        return ()
    if not root.axes or not _is_row(root) or places.plans[root].inlined:
        return ()
    found: dict[Stage, Loop] = {}
    for load in reads_through(root, places.inlined):
        parts = _parts(places, load.source, apart) if load.source in places.plans else None
        if parts is None:
            continue
        here = only_axis(load.indices[-1]) is root.axes[-1] and not load.data
        only = places.readers[load.source] == [root] and load.source not in places.outputs
        if not here or not only or load.source.axes[-1].extent != root.axes[-1].extent:
            return ()
        found[load.source] = parts
    return tuple(found) if len({loop.step for loop in found.values()}) == 1 else ()


def _beside(places: Places, root: Stage, apart: Collection[str]) -> tuple[Stage, ...]:
    """The products that read some of what a product reads, later in the program and in the same
    parts, and nothing that is made after it."""
    parts = _parts(places, root, apart)
    if parts is None:
        return ()
    kernels = list(places.kernels)
    later = kernels[kernels.index(root) + 1 :]
    shared, made = _read(places, root), {*later, root}
    return tuple(
        [
            stage
            for stage in later
            if (own := _parts(places, stage, apart))
            and (own.step, own.axis.extent) == (parts.step, parts.axis.extent)
            and not shared.isdisjoint(_read(places, stage))
            and made.isdisjoint(_kernels_read(places, stage))
        ][: MOST_TOGETHER - 1]
    )


def _read(places: Places, stage: Stage) -> set[Stage]:
    return {load.source for load in reads_through(stage, places.inlined)}


def _kernels_read(places: Places, stage: Stage) -> list[Stage]:
    """The kernels that make what a stage reads."""
    made = [source for source in places.sources[stage] if source in places.plans]
    return [places.chain(source)[-1] for source in made]


def _joined(schedule: Schedule, root: Stage, members: Sequence[Stage]) -> Schedule | None:
    """The schedule with products in the kernel of a stage; None where that is not legal."""
    plans, outputs = dict(schedule.places.plans), schedule.places.outputs
    part = plans[members[0]].loops[0]
    taken = not root.reduce_axes
    shared = Loop(root.axes[-1], part.step, LoopKind.PARALLEL)
    if taken:
        inner = [replace(loop, kind=_inner_kind(loop)) for loop in plans[root].loops]
        plans[root] = replace(plans[root], loops=(shared, *inner))
    for stage in members:
        aligned = () if taken else ((stage.axes[-1], root.axes[-1]),)
        kept = None if taken or stage in outputs else Place.ROOT
        site = Site(root, shared, aligned)
        plans[stage] = replace(
            plans[stage], loops=plans[stage].loops[1:], compute_at=site, store_at=kept
        )
    try:
        return Schedule(schedule.stages, plans, "vector products")
    except ScheduleError:
        return None


def _inner_kind(loop: Loop) -> LoopKind:
    return LoopKind.SERIAL if loop.kind is LoopKind.PARALLEL else loop.kind
