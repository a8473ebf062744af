"""Schedules as values: the loops of every stage, and where each stage is computed.

The loops of a stage are an ordered list; each narrows the current range of one axis to `step`
elements. `split` and `reorder` edit that list. A directive returns a new schedule and raises
`ScheduleError` where it would change what the program means.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from pathlib import Path

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.loop_nest import loop_nest_text
from tinyfuse.schedule.text import read_schedule, schedule_text
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Order, Sort, Stage, Stages

MOST_UNROLLED = 64  # steps
# A loop over which index tests change more often than this is not cut: its tests run.
MAX_PIECES = 8


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over an axis in steps of `step` elements; the last step may be shorter."""

    axis: Axis
    step: int = 1
    kind: LoopKind = LoopKind.SERIAL

    def same(self, other: Loop) -> bool:
        """Whether it is the same loop, of whatever kind."""
        return self.axis is other.axis and self.step == other.step


@dataclass(frozen=True, slots=True)
class Site:
    """Inside which loop of which stage another is computed; without a loop, before all of them."""

    stage: Stage
    loop: Loop | None


@dataclass(frozen=True, slots=True)
class StagePlan:
    """loops: outermost first. compute_at: None for the root, a kernel of its own."""

    loops: tuple[Loop, ...]
    inlined: bool = False
    compute_at: Site | None = None


class Schedule:
    """How the stages of a program run. Immutable, hashable; equal when every stage's plan is."""

    __slots__ = ("_plans", "stages")

    stages: Stages
    _plans: Mapping[Stage, StagePlan]

    def __init__(self, stages: Stages, plans: Mapping[Stage, StagePlan] | None = None):
        self.stages = stages
        self._plans = plans if plans is not None else {s: _root_plan(s) for s in stages.stages}

    def __getitem__(self, stage: Stage) -> StagePlan:
        return self._plans[stage]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return self.stages is other.stages and self._plans == other._plans

    def __hash__(self) -> int:
        return hash((self.stages, tuple(self._plans.values())))

    def __str__(self) -> str:
        return schedule_text(self)

    def __repr__(self) -> str:
        return f"<schedule of {self.stages.name}, {len(self.stages.stages)} stages>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what `print` shows, for `Schedule.load`. Raises OSError.

        Of inlined stages it has the loops too, which count when they are stored one day.
        """
        Path(path).write_text(schedule_text(self, whole=True), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], stages: Stages) -> Schedule:
        """The schedule in a file, for the program that it was saved of: `lowered.stages`.

        Every directive in it is checked, and none is executed as Python. Raises OSError, and
        ScheduleError where the file is no schedule, or one of other stages, axes or extents.
        """
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        return read_schedule(text, cls(stages), os.fspath(path))

    def print_loop_nest(self) -> None:
        """Print which loops run inside which, and what they compute, as pseudo code."""
        print(loop_nest_text(self), end="")

    # --- directives -------------------------------------------------------------------------------

    def inline(self, stage: Stage) -> Schedule:
        """Compute the stage's expression wherever it is read, and never store it."""
        if stage.reduce_axes:
            raise ScheduleError(
                f"inline({stage.name}): it is a reduction, which needs a loop of its own"
            )
        if stage in self.stages.outputs:
            raise ScheduleError(f"inline({stage.name}): it is an output, which has to be stored")
        if stage.scatter:
            raise ScheduleError(f"inline({stage.name}): its elements are put in one by one")
        if stage.scan or stage.sort:
            raise ScheduleError(f"inline({stage.name}): {WHOLE_ROWS[stage.sort]}")
        for reader in self.stages.stages:
            if any(read.source is stage and read.data for read in reader.reads()):
                raise ScheduleError(
                    f"inline({stage.name}): data decides where {reader.name} reads it"
                )
            if reader.order is not Order.SERIAL and any(r.source is stage for r in reader.reads()):
                raise ScheduleError(
                    f"inline({stage.name}): {reader.name} combines its elements in place"
                )
        return self._with(stage, replace(self[stage], inlined=True, compute_at=None), "inline")

    def store(self, stage: Stage) -> Schedule:
        """Compute the stage at the root, in a kernel of its own: the opposite of `inline`."""
        return self._with(stage, replace(self[stage], inlined=False, compute_at=None), "store")

    def compute_at(self, stage: Stage, consumer: Stage, loop: Axis | Loop | None) -> Schedule:
        """Compute what one step of the consumer's loop reads of the stage, inside that loop.

        loop: one of the consumer's; an axis stands for the innermost loop over it; None for the
        place before all loops. The consumer has to be the only reader.
        """
        if stage in self.stages.outputs:
            raise ScheduleError(f"compute_at({stage.name}): it is an output, which is stored whole")
        readers = self.readers(stage)
        if readers != (consumer,):
            names = ", ".join(reader.name for reader in readers) or "nothing"
            raise ScheduleError(
                f"compute_at({stage.name}, {consumer.name}): {stage.name} is read by {names}"
            )
        site = Site(consumer, None if loop is None else self.find(consumer, loop))
        return self._with(stage, replace(self[stage], inlined=False, compute_at=site), "compute_at")

    def split(self, stage: Stage, loop: Axis | Loop, factor: int) -> Schedule:
        """Put a loop that advances `factor` elements at a time around the loop given."""
        inner, factor = self.find(stage, loop), operator.index(factor)
        if factor < 1 or factor % inner.step:
            raise ScheduleError(
                f"split({stage.name}, {inner.axis.name}, {factor}): the factor must be a positive"
                f" multiple of {inner.step}"
            )
        if any(known.same(Loop(inner.axis, factor)) for known in self[stage].loops):
            raise ScheduleError(
                f"split({stage.name}, {inner.axis.name}, {factor}): there is such a loop already"
            )
        loops = self[stage].loops
        place = loops.index(inner)
        return self._with_loops(
            stage, (*loops[:place], Loop(inner.axis, factor), *loops[place:]), "split"
        )

    def reorder(self, stage: Stage, *order: Axis | Loop) -> Schedule:
        """Put the loops named into this order; loops not named keep their places."""
        chosen = [self.find(stage, loop) for loop in order]
        loops = list(self[stage].loops)
        places = sorted(loops.index(loop) for loop in chosen)
        for place, loop in zip(places, chosen, strict=True):
            loops[place] = loop
        return self._with_loops(stage, tuple(loops), "reorder")

    def parallel(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Let threads share the steps of the outermost loop."""
        return self._mark(stage, loop, LoopKind.PARALLEL)

    def vectorize(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Keep a loop fit for the C compiler's vectorizer: innermost, over independent elements."""
        return self._mark(stage, loop, LoopKind.VECTOR)

    def unroll(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Write the steps of a loop out one after the other; at most `MOST_UNROLLED` of them."""
        steps = self._steps(stage, self.find(stage, loop))
        if steps > MOST_UNROLLED:
            raise ScheduleError(
                f"unroll({stage.name}): the loop has {steps} steps, more than {MOST_UNROLLED};"
                f" split it first"
            )
        return self._mark(stage, loop, LoopKind.UNROLL)

    def serial(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Run the steps of a loop one after the other: take a mark off it."""
        return self._mark(stage, loop, LoopKind.SERIAL)

    # --- questions --------------------------------------------------------------------------------

    def stage(self, name: str) -> Stage:
        """The stage of this name. Raises ScheduleError, which lists the names."""
        for stage in self.stages.stages:
            if stage.name == name:
                return stage
        names = ", ".join([stage.name for stage in self.stages.stages]) or "none"
        raise ScheduleError(f"{self.stages.name} has no stage {name}; its stages: {names}")

    def find(self, stage: Stage, loop: Axis | Loop) -> Loop:
        """The stage's loop of this axis and step; an axis stands for its innermost loop."""
        if stage not in self._plans:
            known_stages = ", ".join(known.name for known in self._plans)
            raise ScheduleError(
                f"{stage!r} is no stage of this schedule; its stages: {known_stages}"
            )
        for known in reversed(self[stage].loops):
            if known.axis is loop if isinstance(loop, Axis) else known.same(loop):
                return known
        name = loop.name if isinstance(loop, Axis) else f"{loop.axis.name} by {loop.step}"
        legal = ", ".join(f"{known.axis.name} by {known.step}" for known in self[stage].loops)
        raise ScheduleError(f"{stage.name} has no loop {name}; its loops are: {legal or 'none'}")

    def readers(self, stage: Stage) -> tuple[Stage, ...]:
        """The stored stages that read a stage, directly or through inlined ones."""
        found: dict[Stage, None] = {stage: None}
        result = []
        for reader in self.stages.stages:
            if any(read.source in found for read in reader.reads()):
                if self[reader].inlined:
                    found[reader] = None
                else:
                    result.append(reader)
        return tuple(result)

    def _steps(self, stage: Stage, loop: Loop) -> int:
        """How many steps a loop has: to the end of its axis, or of the next larger step."""
        larger = [known.step for known in self[stage].loops if known.axis is loop.axis]
        whole = min([step for step in larger if step > loop.step], default=loop.axis.extent)
        return -(-whole // loop.step)

    # --- edits ------------------------------------------------------------------------------------

    def _with(self, stage: Stage, plan: StagePlan, directive: str) -> Schedule:
        return self._with_plans({stage: plan}, f"{directive}({stage.name})")

    def _with_loops(self, stage: Stage, loops: tuple[Loop, ...], directive: str) -> Schedule:
        _check_nesting(stage, loops, directive)
        return self._with(stage, replace(self[stage], loops=loops), directive)

    def _mark(self, stage: Stage, target: Axis | Loop, kind: LoopKind) -> Schedule:
        loop = self.find(stage, target)
        marked = replace(loop, kind=kind)
        loops = tuple(marked if known is loop else known for known in self[stage].loops)
        _check_nesting(stage, loops, kind.value)
        plans = {stage: replace(self[stage], loops=loops)}
        for other, plan in self._plans.items():
            if plan.compute_at == Site(stage, loop):
                plans[other] = replace(plan, compute_at=Site(stage, marked))
        return self._with_plans(plans, f"{kind.value}({stage.name})")

    def _with_plans(self, plans: Mapping[Stage, StagePlan], directive: str) -> Schedule:
        schedule = Schedule(self.stages, {**self._plans, **plans})
        for stage, plan in schedule._plans.items():
            if plan.compute_at:
                schedule._check_site(stage, plan.compute_at, directive)
        return schedule

    def _is_inside(self, tree: Stage) -> bool:
        """Whether what a tree combines is computed anew each time the tree is."""
        site = self[tree.reads()[0].source].compute_at
        return site is not None and site.stage is tree

    def _check_site(self, stage: Stage, site: Site, directive: str) -> None:
        """Refuse a place that its only reader does not have, or where it cannot be computed."""
        consumer, loops = site.stage, self[site.stage].loops
        place = f"{directive}: {stage.name} is computed at {consumer.name}"
        if stage.scatter or consumer.scatter:
            raise ScheduleError(f"{place}, where elements are put in one after the other")
        if self[consumer].inlined or self.readers(stage) != (consumer,):
            raise ScheduleError(f"{place}, which is not its only reader any more")
        if any(loop.kind is LoopKind.PARALLEL for loop in self[stage].loops):
            raise ScheduleError(f"{place}, so its own loops cannot be shared by threads")
        if site.loop is None:
            if any(loop.kind is LoopKind.PARALLEL for loop in loops):
                raise ScheduleError(f"{place} before its loops, of which threads share the first")
        elif site.loop not in loops:
            raise ScheduleError(f"{place}, which has no loop {site.loop.axis.name} any more")
        elif consumer.order is not Order.SERIAL and _rounds_began(consumer, loops, site.loop):
            raise ScheduleError(f"{place} inside its rounds, which combine it in place")
        if stage.order is not Order.SERIAL and not self._is_inside(stage):
            raise ScheduleError(
                f"{place}, step after step, but it combines in place what is stored only once;"
                f" compute that at {stage.name} first"
            )


# Why a stage is computed in whole rows: it is sorted in some way, or a scan.
WHOLE_ROWS = {
    None: "each element needs the one before it",
    Sort.ELEMENTS: "its rows are sorted as a whole",
    Sort.POSITIONS: "its rows are sorted as a whole",
}


def _rounds_began(tree: Stage, loops: tuple[Loop, ...], at: Loop) -> bool:
    return any(loop.axis in tree.reduce_axes for loop in loops[: loops.index(at) + 1])


def _root_plan(stage: Stage) -> StagePlan:
    return StagePlan(tuple(Loop(axis) for axis in (*stage.axes, *stage.reduce_axes)))


def _check_nesting(stage: Stage, loops: tuple[Loop, ...], directive: str) -> None:
    """Refuse orders of loops that would reorder a sum or share a carried loop among threads."""
    for axis in (*stage.axes, *stage.reduce_axes):
        steps = [loop.step for loop in loops if loop.axis is axis]
        if steps != sorted(steps, reverse=True):
            raise ScheduleError(
                f"{directive}({stage.name}): the inner part of {axis.name} would lie outside its"
                f" outer part"
            )
    reduced = [
        stage.reduce_axes.index(loop.axis) for loop in loops if loop.axis in stage.reduce_axes
    ]
    if reduced != sorted(reduced):
        raise ScheduleError(f"{directive}({stage.name}): the order of summation would change")
    if stage.order is not Order.SERIAL and len(reduced) > 1:
        raise ScheduleError(f"{directive}({stage.name}): the rounds of a tree cannot be split")
    _check_rows(stage, loops, directive)
    for place, loop in enumerate(loops):
        if loop.kind is LoopKind.PARALLEL and stage.scatter:
            raise ScheduleError(
                f"parallel({stage.name}, {loop.axis.name}): its elements are put in one after the"
                f" other"
            )
        if loop.kind is LoopKind.PARALLEL and (place or loop.axis in stage.reduce_axes):
            raise ScheduleError(
                f"parallel({stage.name}, {loop.axis.name}): only the outermost loop over"
                f" independent elements can be shared by threads"
            )
        inside = [inner.kind for inner in loops[place + 1 :]]
        if loop.kind is LoopKind.VECTOR and (
            loop.axis in stage.reduce_axes or any(kind is not LoopKind.UNROLL for kind in inside)
        ):
            raise ScheduleError(
                f"vectorize({stage.name}, {loop.axis.name}): only the innermost loop over"
                f" independent elements can be vectorized"
            )


def _check_rows(stage: Stage, loops: tuple[Loop, ...], directive: str) -> None:
    """Refuse loops that would not go through the rows of a scan or a sort as a whole, in order."""
    ordered = (LoopKind.SERIAL, LoopKind.UNROLL)
    if stage.scan:
        for loop in loops:
            if loop.axis is stage.scan and loop.kind not in ordered:
                raise ScheduleError(
                    f"{directive}({stage.name}): each element needs the one before it along"
                    f" {loop.axis.name}, whose steps run in order"
                )
    if stage.sort:
        axis = stage.row_axis
        assert axis is not None
        inside = [loop.axis is axis for loop in loops]
        if inside != sorted(inside) or any(
            loop.axis is axis and loop.kind is LoopKind.PARALLEL for loop in loops
        ):
            raise ScheduleError(
                f"{directive}({stage.name}): its rows are sorted as a whole, so the loops over"
                f" {axis.name} are the innermost ones, and no threads share them"
            )
