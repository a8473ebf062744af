"""Memory on the stack that several stages use one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyfuse.loops.ir import LoopKind
from tinyfuse.lower.storage import Storage
from tinyfuse.machine import LINE_BYTES
from tinyfuse.records import dataclass
from tinyfuse.schedule.places import Places, Site, StagePlan
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Stage

# Bytes from which on memory is worth sharing; less than that is in the nearest cache anyway, and
# reads better under the stage's own name.
SHARED_BYTES = 1 << 14


@dataclass(eq=False, slots=True)
class Share:
    """Memory of one dtype for stages of which no two are needed at once.

    starts: where each begins, in elements from the place of the first one on, perhaps before it.
    """

    dtype: np.dtype
    size: int
    starts: dict[Stage, int]
    busy_until: int

    @property
    def stages(self) -> list[Stage]:
        return [*self.starts]

    def lead(self, stage: Stage) -> int:
        """Elements of the memory before those of a stage."""
        return self.starts[stage] - min(self.starts.values())


def shares(
    places: Places,
    site: Site,
    sizes: Mapping[Stage, int],
    in_place: Callable[[Stage, Stage], int | None],
) -> list[Share]:
    """How the stages kept during a step of a loop share memory. sizes: elements of each, in the
    order in which they are computed. in_place: how far from the first element of another one a
    stage may begin that is stored while that one is read; None where it may not. See `place_over`.
    """
    order = {stage: place for place, stage in enumerate(_computed_here(places, site))}
    found: list[Share] = []
    for stage, size in sizes.items():
        first, last = _life(places, site, stage, order)
        for share in found:
            start = _start(share, stage, size, first, in_place)
            if start is not None:
                _add(share, stage, size, start)
                share.busy_until = last
                break
        else:
            found.append(Share(stage.dtype, size, {stage: 0}, last))
    return found


def _start(
    share: Share,
    stage: Stage,
    size: int,
    first: int,
    in_place: Callable[[Stage, Stage], int | None],
) -> int | None:
    """Where in a share a stage can begin that is computed then; None where it cannot be there."""
    smaller = min(share.size, size) * stage.dtype.itemsize
    if share.dtype != stage.dtype or smaller < SHARED_BYTES or share.busy_until > first:
        return None
    before = share.stages[-1]
    if share.busy_until < first:
        return min(share.starts.values())
    moved = in_place(stage, before)
    return None if moved is None else share.starts[before] + moved


def _add(share: Share, stage: Stage, size: int, start: int) -> None:
    begin = min(share.starts.values())
    end = max(begin + share.size, start + size)
    share.starts[stage] = start
    share.size = end - min(begin, start)


def place_over(
    stage: Stage,
    plan: StagePlan,
    loads: Sequence[Load],
    values: Mapping[Axis, Affine],
    own: Storage,
    source: Storage,
    by_threads: bool,
) -> int | None:
    """How far behind the first element of one that it reads a stage can begin, in whole lines.

    Its elements are stored in the order in which they lie, so none of them may lie where one is
    that it reads later: the place of each is the first that is read for it, or before. None where
    that cannot be told. loads: of the other one. values: of the axes, at any element. by_threads:
    whether those of a device go through them, in no order.
    """
    if stage.reduce_axes or stage.row_axis or stage.scatter or any(load.data for load in loads):
        return None
    if not _computes_once(plan):
        return None
    place = own.position([values[axis] for axis in stage.axes])
    found = [[index.substitute(values) for index in load.indices] for load in loads]
    apart = [source.position(indices) - place for indices in found]
    if not apart or not all(each.is_constant for each in apart):
        return None
    in_order = not by_threads and _goes_in_order(stage, plan)
    if any(each.constant for each in apart) and not in_order:
        return None
    return _line_before([each.constant for each in apart], stage.dtype.itemsize)


def _computes_once(plan: StagePlan) -> bool:
    return not any(loop.shifted for loop in plan.loops)


def _goes_in_order(stage: Stage, plan: StagePlan) -> bool:
    """Whether the loops of a stage compute all of it at once, element after element."""
    whole = plan.store_at is None and [*stage.axes] == [loop.axis for loop in plan.loops]
    return whole and all(
        loop.step == 1 and loop.kind in (LoopKind.SERIAL, LoopKind.VECTOR) for loop in plan.loops
    )


def _line_before(places: Sequence[int], itemsize: int) -> int:
    """Where the last line begins that has none of the places before it."""
    line = LINE_BYTES // itemsize
    return min(places) // line * line


def _computed_here(places: Places, site: Site) -> Sequence[Stage]:
    """The stages computed directly in the step, then what is computed further in."""
    depth = places.depth(site)
    attached = places.attached.get(site.stage, ())
    here = [stage for stage in attached if _depth(places, stage) == depth]
    return [*here, *[stage for stage in attached if _depth(places, stage) > depth], site.stage]


def _depth(places: Places, stage: Stage) -> int:
    site = places.plans[stage].compute_at
    assert site is not None
    return places.depth(site)


def _life(places: Places, site: Site, stage: Stage, order: Mapping[Stage, int]) -> tuple[int, int]:
    """When a stage is computed and when it is read last; the end, if not in a step of its own."""
    times = [order[_here(places, site, each)] for each in (stage, *places.readers[stage])]
    end = len(order)
    is_direct = places.plans[stage].compute_at == site.plain
    return (times[0], max(times)) if is_direct and max(times) < end - 1 else (times[0], end)


def _here(places: Places, site: Site, stage: Stage) -> Stage:
    """What of the site's stage, or that stage itself, a stage is computed in."""
    chain = places.chain(stage)
    at = chain.index(site.stage)
    return chain[at - 1] if at else site.stage
