"""Bounds inference: which elements of a stage have to be computed inside a loop of another.

The region of a stage is the image of its readers' ranges, from the consumer backwards.
"""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.errors import ScheduleError
from tinyfuse.lower.bounds import Range, Ranges, changes, excluded, image, whole
from tinyfuse.lower.reads import Reads
from tinyfuse.schedule.places import Places, Site
from tinyfuse.stage.expr import IndexTest, Load
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Stage


class Regions:
    """The regions of the stages of a schedule. reads: those of every stored stage."""

    def __init__(self, places: Places, reads: Mapping[Stage, Reads]):
        self.places = places
        self.reads = reads
        # Those that are kept further out than they are computed.
        self.kept = {
            stage
            for stages in places.attached.values()
            for stage in stages
            if places.storage(stage) != places.plans[stage].compute_at
        }

    def at(
        self, site: Site, ranges: Ranges, variable: Axis | None = None, clip: bool = True
    ) -> dict[Stage, Ranges]:
        """For each stage computed inside a site what is needed of it while the loops around leave
        these ranges to the axes of the site's stage. In the order of the program; a stage of which
        nothing is needed is left out.

        variable: of the loop of the site, whose steps leave out what was computed in the one before
        and is kept since. clip: whether what lies outside of a stage is left out.
        """
        if site.stage not in self.places.attached:
            return {}
        inside = self._inside(site)
        needed = self.at(site, ranges) if variable else {}
        demands: dict[Stage, list[list[Range]]] = {stage: [] for stage in inside}
        self._demand(site.stage, ranges, demands)
        found: dict[Stage, Ranges] = {}
        around = {site.stage: ranges}
        for stage in inside:
            region = self._region(stage, demands[stage], around, clip)
            if region is not None:
                if variable and self.is_kept(stage, site):
                    region = self._new_part(stage, region, needed[stage], variable)
                elif self.is_kept(stage, site):
                    self._check_ring(stage, region)
                found[stage] = region
                around[stage] = {**region, **self.reduced(stage, around)}
                if stage.scan and self.places.is_carried(stage):  # at the end of the step
                    after = region[stage.scan]
                    around[stage] = {**region, stage.scan: Range(after.base + 1, after.extent)}
                self._demand(stage, around[stage], demands)
        return {stage: found[stage] for stage in self.places.inside(site) if stage in found}

    def _inside(self, site: Site) -> list[Stage]:
        """What is computed inside a site: each stage after those that read it, and after the one
        that it is computed in."""
        waiting = self.places.inside(site)[::-1]
        plans, order = self.places.plans, self.places.order
        hosts = {each: plans[each].compute_at.stage for each in waiting}  # type: ignore[union-attr]
        if all(host is site.stage or order[host] > order[each] for each, host in hosts.items()):
            return waiting
        found: list[Stage] = []
        while waiting:
            others = {*waiting}
            free = [
                stage
                for stage in waiting
                if hosts[stage] not in others and others.isdisjoint(self.places.readers[stage])
            ]
            found += free or waiting
            waiting = [stage for stage in waiting if free and stage not in free]
        return found

    def reduced(self, stage: Stage, around: Mapping[Stage, Ranges]) -> Ranges:
        """What a stage reduces at a time: its reduced axes, or what the ranges around leave of
        them."""
        site = self.places.plans[stage].compute_at
        leader = around.get(site.stage) if site else None
        pairs = dict(site.aligned) if site and leader else {}
        return {
            axis: leader[pairs[axis]] if leader and axis in pairs else whole(axis)
            for axis in stage.reduce_axes
        }

    def along(self, stage: Stage, ranges: Ranges) -> Ranges:
        """The region of a stage that goes along with these ranges of its leader's axes."""
        site = self.places.plans[stage].compute_at
        assert site is not None
        return {
            **{axis: whole(axis) for axis in stage.axes},
            **{axis: ranges[other] for axis, other in site.aligned},
        }

    def edges(self, site: Site, ranges: Ranges, variable: Axis, alone: bool = False) -> list[int]:
        """Where along a loop what is computed inside it meets the end of a stage, or a test on its
        indices changes. ranges: in terms of the loop's variable. alone: whether only where that is
        the same in all steps of the loops around."""
        cuts = []
        for stage, region in self.at(site, ranges, clip=False).items():
            for axis, range_ in region.items():
                inside = IndexTest(range_.base, 0, axis.extent - range_.extent + 1)
                cuts += changes(inside, variable, {})
            if self.places.is_carried(stage):  # begun before the loop
                continue
            for test in (test for each in self.reads[stage].conditions for test in each):
                if all(axis in region for axis in test.index.axes()):
                    for extreme in _extremes(test.index, region):
                        if not alone or all(axis is variable for axis in extreme.axes()):
                            cuts += changes(IndexTest(extreme, test.low, test.high), variable, {})
        return cuts

    def before(self, site: Site, ranges: Ranges, variable: Axis) -> dict[Stage, Ranges]:
        """What has to be computed before the first step of a loop, as each step computes only what
        the one before did not. Empty where each step computes all that it needs."""
        inside = self.places.inside(site)
        first = {variable: affine(variable.start)}
        everything = self.at(site, ranges)
        early: dict[Stage, Ranges] = {}
        for stage, region in everything.items():
            step = self._step(stage, region, variable) if self.is_kept(stage, site) else None
            if step:
                axis, moved = step
                start = {a: Range(r.base.substitute(first), r.extent) for a, r in region.items()}
                early[stage] = {**start, axis: Range(start[axis].base, start[axis].extent - moved)}
        demands: dict[Stage, list[list[Range]]] = {stage: [] for stage in inside}
        found: dict[Stage, Ranges] = {}
        for stage in reversed(inside if early else ()):
            if stage in early:
                demands[stage].append([early[stage][axis] for axis in stage.axes])
            if demands[stage]:
                region = found[stage] = _covering(stage, demands[stage])
                self._check_ring(stage, region)
                self._demand(
                    stage, {**region, **{axis: whole(axis) for axis in stage.reduce_axes}}, demands
                )
        return dict(reversed(found.items()))

    def of_source(self, stage: Stage, source: Stage, ranges: Ranges) -> list[Range] | None:
        """What a stage reads of one source, an input perhaps, for each axis; None where data
        decides that, or nothing is read."""
        found = [load for load in self.reads[stage].loads if load.source is source]
        if not found or not source.axes or any(load.data for load in found):
            return None
        region = _covering(source, [_image(load, ranges) for load in found])
        return [region[axis] for axis in source.axes]

    def is_kept(self, stage: Stage, site: Site) -> bool:
        """Whether a stage is computed in the steps of this very loop, and kept around it."""
        if stage not in self.kept:
            return False
        at, kept = self.places.plans[stage].compute_at, self.places.storage(stage)
        here = at is not None and at.stage is site.stage and at.loop == site.loop
        return here and not (kept and kept.stage is site.stage and kept.loop == site.loop)

    def keeps(self, site: Site) -> bool:
        """Whether any stage is computed in the steps of this very loop, and kept around it."""
        attached = self.places.attached.get(site.stage, ())
        return any(self.is_kept(stage, site) for stage in attached)

    def _new_part(self, stage: Stage, region: Ranges, needed: Ranges, variable: Axis) -> Ranges:
        """What of a region the step before has not computed. needed: all that the step reads."""
        step = self._step(stage, needed, variable)
        if step is None:
            return region
        axis, moved = step
        range_ = region[axis]
        return {**region, axis: Range(range_.base + (range_.extent - moved), moved)}

    def _step(self, stage: Stage, region: Ranges, variable: Axis) -> tuple[Axis, int] | None:
        """The axis along which the steps of a loop move a region, and how far; None where they do
        not, along one alone, or where each leaves behind all that the one before covered."""
        moving = [axis for axis in stage.axes if region[axis].base.depends_on(variable)]
        if len(moving) != 1:
            return None
        moved = region[moving[0]].base.coefficient(variable)
        return (moving[0], moved) if 0 < moved < region[moving[0]].extent else None

    def _check_ring(self, stage: Stage, region: Ranges) -> None:
        ring = self.places.plans[stage].ring
        if ring and region[ring[0]].extent > ring[1]:
            raise ScheduleError(
                f"fold({stage.name}, {ring[0].name}, {ring[1]}): {region[ring[0]].extent} positions"
                f" are needed at once"
            )

    def _demand(
        self, reader: Stage, ranges: Ranges, demands: Mapping[Stage, list[list[Range]]]
    ) -> None:
        """Add what a stage reads of others while its axes run over the ranges."""
        reads = self.reads[reader]
        for load, guards in zip(reads.loads, reads.guards, strict=True):
            demanded = demands.get(load.source)
            if demanded is not None and any(
                not any(excluded(test, ranges) for test in guard) for guard in guards
            ):
                demanded.append(_image(load, ranges))

    def _region(
        self,
        stage: Stage,
        demands: list[list[Range]],
        around: Mapping[Stage, Ranges],
        clip: bool,
    ) -> Ranges | None:
        """The smallest region that covers all demands; without any, what goes along with the
        leader's ranges, or nothing where the stage is read but not here."""
        site = self.places.plans[stage].compute_at
        assert site is not None
        leader = around.get(site.stage)
        if leader is not None and self.places.is_carried(stage):
            return self._carried(stage, self.along(stage, leader), demands)
        if leader is not None and (site.aligned or self._is_whole(stage, site)):
            along = self.along(stage, leader)
            demands = [[along[axis] for axis in stage.axes], *demands]
        if not demands:
            return None
        region = dict(_covering(stage, demands, clip))
        for loop in self.places.plans[stage].loops:
            if loop.padded:
                range_ = region[loop.axis]
                steps = -(-range_.extent // loop.step)
                whole_steps = Range(range_.base, steps * loop.step)
                region[loop.axis] = whole_steps.within(loop.axis) if clip else whole_steps
        return region

    def _carried(self, stage: Stage, region: Ranges, demands: list[list[Range]]) -> Ranges:
        """The region of a scan that its leader's step carries on: no other may be read."""
        for demand in demands:
            for axis, range_ in zip(stage.axes, demand, strict=True):
                low, high = (range_.base - region[axis].base).interval()
                if low < 0 or high + range_.extent > region[axis].extent:
                    raise ScheduleError(
                        f"fold({stage.name}, {stage.scan.name}, 1): it is read where another step"  # type: ignore[union-attr]
                        " of the loop is"
                    )
        return region

    def _is_whole(self, stage: Stage, site: Site) -> bool:
        """Whether all of a stage is computed at a site, whatever is read there: where a kernel
        begins, if it or what is computed inside it is kept in the memory of the program."""
        if site.loop is None and self.places.plans[site.stage].compute_at is None:
            inside = (stage, *self.places.inside(Site(stage, None)))
            if any(self.places.storage(each) is None for each in inside):
                return True
        return not self._is_read_inside(stage, site)

    def _is_read_inside(self, stage: Stage, site: Site) -> bool:
        return any(self.places.within(reader, site) for reader in self.places.readers[stage])


def _extremes(index: Affine, region: Ranges) -> tuple[Affine, Affine]:
    """The smallest and the largest value of an index while its axes run over a region."""
    first = {axis: range_.base for axis, range_ in region.items()}
    last = {axis: range_.base + (range_.extent - 1) for axis, range_ in region.items()}
    rising = {axis for axis in region if index.coefficient(axis) >= 0}
    low = {axis: (first if axis in rising else last)[axis] for axis in region}
    high = {axis: (last if axis in rising else first)[axis] for axis in region}
    return index.substitute(low), index.substitute(high)


def _image(load: Load, ranges: Ranges) -> list[Range]:
    """The ranges, one for each axis of its source, that a load covers."""
    pairs = zip(load.source.axes, load.places, strict=True)
    return [whole(axis) if at is None else image(at, ranges) for axis, at in pairs]


def _covering(stage: Stage, demands: list[list[Range]], clip: bool = True) -> Ranges:
    each = zip(stage.axes, *demands, strict=True)
    hulls = {axis: _hull(stage, axis, *ranges) for axis, *ranges in each}
    return {axis: range_.within(axis) for axis, range_ in hulls.items()} if clip else hulls


def _hull(stage: Stage, axis: Axis, first: Range, *others: Range) -> Range:
    everything = whole(axis)
    if axis is stage.row_axis or everything in (first, *others):
        return everything
    try:
        for other in others:
            first = first.hull(other)
    except ScheduleError as error:
        raise ScheduleError(f"compute_at({stage.name}): {error}") from None
    return first
