"""Bounds inference: which elements of a stage have to be computed inside a loop of another.

The region of a stage is the image of its readers' ranges, from the consumer backwards.
"""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.lower.bounds import Range, Ranges, excluded, image, whole
from tinyfuse.lower.reads import Reads
from tinyfuse.schedule.places import Places, Site
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage


class Regions:
    """The regions of the stages of a schedule. reads: those of every stored stage."""

    def __init__(self, places: Places, reads: Mapping[Stage, Reads]):
        self.places = places
        self.reads = reads

    def at(self, site: Site, ranges: Ranges) -> dict[Stage, Ranges]:
        """For each stage computed inside a site what is needed of it while the loops around leave
        these ranges to the axes of the site's stage. In the order of the program; a stage of which
        nothing is needed is left out.
        """
        if site.stage not in self.places.attached:
            return {}
        inside = self.places.inside(site)
        demands: dict[Stage, list[list[Range]]] = {stage: [] for stage in inside}
        self._demand(site.stage, ranges, demands)
        found: dict[Stage, Ranges] = {}
        for stage in reversed(inside):
            region = self._region(stage, demands[stage], {site.stage: ranges, **found})
            if region is not None:
                found[stage] = region
                reduced = {axis: whole(axis) for axis in stage.reduce_axes}
                self._demand(stage, {**region, **reduced}, demands)
        return dict(reversed(found.items()))

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
        self, stage: Stage, demands: list[list[Range]], around: Mapping[Stage, Ranges]
    ) -> Ranges | None:
        """The smallest region that covers all demands; without any, what goes along with the
        leader's ranges, or nothing where the stage is read but not here."""
        site = self.places.plans[stage].compute_at
        assert site is not None
        leader = around.get(site.stage)
        if leader is not None and (site.aligned or not self._is_read_inside(stage, site)):
            along = {axis: leader[other] for axis, other in site.aligned}
            demands = [[along.get(axis) or whole(axis) for axis in stage.axes], *demands]
        if not demands:
            return None
        each = zip(stage.axes, *demands, strict=True)
        return {axis: _hull(stage, axis, *ranges) for axis, *ranges in each}

    def _is_read_inside(self, stage: Stage, site: Site) -> bool:
        return any(self.places.within(reader, site) for reader in self.places.readers[stage])


def _image(load: Load, ranges: Ranges) -> list[Range]:
    """The ranges, one for each axis of its source, that a load covers."""
    by_data = [whole(axis) for axis in load.source.axes[: len(load.data)]]
    return [*by_data, *(image(index, ranges) for index in load.indices)]


def _hull(stage: Stage, axis: Axis, first: Range, *others: Range) -> Range:
    if axis is stage.row_axis:
        return whole(axis)
    for other in others:
        first = first.hull(other)
    return first.within(axis)
