"""The stages of a program with the plan of each, checked, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tinyfuse.errors import ScheduleError
from tinyfuse.schedule.edits import root_plan
from tinyfuse.schedule.legality import check
from tinyfuse.schedule.places import Loop, Places, Site, StagePlan
from tinyfuse.stage.copies import current, original
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages


class PlannedStages:
    """Stages with the plan of each. Immutable, hashable; equal when every stage's plan is."""

    __slots__ = ("_places", "_plans", "stages")

    stages: Stages
    _plans: Mapping[Stage, StagePlan]
    _places: Places
    checked: ClassVar[bool] = True  # whether each is when it is made

    def __init__(
        self,
        stages: Stages,
        plans: Mapping[Stage, StagePlan] | None = None,
        directive: str = "Schedule",
    ):
        """Raises ScheduleError where the plans, which the directive led to, are not legal."""
        self.stages = stages
        known = {s: root_plan(s) for s in stages.stages} if plans is None else plans
        missing = [stage.name for stage in stages.stages if stage not in known]
        if missing:
            raise ScheduleError(f"{directive}: there is no plan for {', '.join(missing)}")
        self._plans = {stage: known[stage] for stage in stages.stages}
        self._places = Places(stages, self._plans)
        if plans is not None and self.checked:
            check(self._places, directive)

    def __getitem__(self, stage: Stage) -> StagePlan:
        return self._plan(stage)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlannedStages):
            return NotImplemented
        return self.stages is other.stages and self._plans == other._plans

    def __hash__(self) -> int:
        return hash((self.stages, tuple(self._plans.values())))

    @property
    def program(self) -> Stages:
        """The stages of the program, without those that the schedule has added."""
        return original(self.stages)

    def current(self, stage: Stage) -> Stage:
        """What a stage, of the program or of a schedule before this one, has become: itself, or
        one that reads a copy, or is one."""
        return current(stage, self.stages)

    def stage(self, name: str) -> Stage:
        """The stage of this name. Raises ScheduleError, which lists the names."""
        for stage in self.stages.stages:
            if stage.name == name:
                return stage
        names = ", ".join([stage.name for stage in self.stages.stages]) or "none"
        raise ScheduleError(f"{self.stages.name} has no stage {name}; its stages: {names}")

    def find(self, stage: Stage, loop: Axis | Loop) -> Loop:
        """The stage's loop of this axis and step; an axis stands for its innermost loop."""
        if not isinstance(loop, Axis | Loop):
            hint = f"{stage.name}.axis({loop!r})" if isinstance(loop, str) else "an axis or a Loop"
            raise ScheduleError(f"{loop!r} is no loop: write {hint}")
        for known in reversed(self._plan(stage).loops):
            if known.axis is loop if isinstance(loop, Axis) else known.same(loop):
                return known
        name = loop.name if isinstance(loop, Axis) else f"{loop.axis.name} by {loop.step}"
        legal = ", ".join(f"{known.axis.name} by {known.step}" for known in self[stage].loops)
        raise ScheduleError(f"{stage.name} has no loop {name}; its loops are: {legal or 'none'}")

    @property
    def places(self) -> Places:
        """Where every stage is computed and stored."""
        return self._places

    def readers(self, stage: Stage) -> tuple[Stage, ...]:
        """The stored stages that read a stage, directly or through inlined ones."""
        return tuple(self._places.readers[self.current(stage)])

    def _site(self, stage: Stage, loop: Axis | Loop | None) -> Site:
        stage = self.current(stage)
        self._plan(stage)
        return Site(stage, None if loop is None else self.find(stage, loop))

    def _plan(self, stage: Stage) -> StagePlan:
        stage = self.current(stage)
        if stage not in self._plans:
            known = ", ".join(known.name for known in self._plans)
            raise ScheduleError(f"{stage!r} is no stage of this schedule; its stages: {known}")
        return self._plans[stage]
