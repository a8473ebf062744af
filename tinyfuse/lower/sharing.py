"""Memory on the stack that several stages use one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyfuse.records import dataclass
from tinyfuse.schedule.places import Places, Site
from tinyfuse.stage.ir import Stage

# Bytes from which on memory is worth sharing; less than that is in the nearest cache anyway, and
# reads better under the stage's own name.
SHARED_BYTES = 1 << 14


@dataclass(eq=False, slots=True)
class Share:
    """Memory of one dtype, in elements, for stages of which no two are needed at once."""

    dtype: np.dtype
    size: int
    stages: list[Stage]
    busy_until: int


def shares(
    places: Places,
    site: Site,
    sizes: Mapping[Stage, int],
    in_place: Callable[[Stage, Stage], bool],
) -> list[Share]:
    """How the stages kept during a step of a loop share memory. sizes: elements of each, in the
    order in which they are computed. in_place: whether a stage reads of another one, for each of
    its elements, no other than the one that would lie there."""
    order = {stage: place for place, stage in enumerate(_computed_here(places, site))}
    found: list[Share] = []
    for stage, size in sizes.items():
        first, last = _life(places, site, stage, order)
        known = next((s for s in found if _takes(s, stage, size, first, in_place)), None)
        if known is None:
            found.append(Share(stage.dtype, size, [stage], last))
        else:
            known.stages.append(stage)
            known.size, known.busy_until = max(known.size, size), last
    return found


def _takes(
    share: Share,
    stage: Stage,
    size: int,
    first: int,
    in_place: Callable[[Stage, Stage], bool],
) -> bool:
    smaller = min(share.size, size) * stage.dtype.itemsize
    if share.dtype != stage.dtype or smaller < SHARED_BYTES or share.busy_until > first:
        return False
    return share.busy_until < first or in_place(stage, share.stages[-1])


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
