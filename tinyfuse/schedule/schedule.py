"""Schedules as values: the loops of every stage, and where each stage is computed.

The loops of a stage are an ordered list; each narrows the current range of one axis to `step`
elements. `split` and `reorder` edit that list. A directive returns a new schedule and raises
`ScheduleError` where it would change what the program means.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.records import replace
from tinyfuse.schedule.copying import with_local, with_padding, with_read_copied, with_rounds
from tinyfuse.schedule.edits import alignment, placed, with_loop
from tinyfuse.schedule.loop_nest import loop_nest_text
from tinyfuse.schedule.places import Loop, Place, Prefetch, Site, StagePlan
from tinyfuse.schedule.planned import PlannedStages
from tinyfuse.schedule.reading import read_schedule
from tinyfuse.schedule.refusal import refused
from tinyfuse.schedule.text import loop_name, schedule_text
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages


class Schedule(PlannedStages):
    """How the stages of a program run. Immutable, hashable; equal when every stage's plan is.

    Directives return another schedule. They raise ScheduleError where that would change what the
    program means, and where a stage or a loop is not there; the message says what is legal.
    """

    __slots__ = ()

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

        It is checked as one made by directives is, and never executed. Raises OSError, and
        ScheduleError where the file is no schedule, an illegal one, or one of other stages, axes or
        extents.
        """
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        return cls(*read_schedule(text, stages, os.fspath(path)), f"load({os.fspath(path)})")

    def print_loop_nest(self) -> None:
        """Print which loops run inside which, and what they compute, as pseudo code."""
        print(loop_nest_text(self), end="")

    # --- directives -------------------------------------------------------------------------------

    def inline(self, stage: Stage) -> Schedule:
        """Compute the stage's expression wherever it is read, and never store it."""
        plan = placed(self._plan(stage), inlined=True)
        return self._with(stage, plan, "inline")

    def store(self, stage: Stage) -> Schedule:
        """Compute the stage at the root, in a kernel of its own: the opposite of `inline`."""
        plan = placed(self._plan(stage))
        return self._with(stage, plan, "store")

    def compute_at(
        self,
        stage: Stage,
        consumer: Stage,
        loop: Axis | Loop | None,
        store_at: tuple[Stage, Axis | Loop | None] | None = None,
    ) -> Schedule:
        """Compute what one step of the consumer's loop needs of the stage, inside that loop.

        loop: one of the consumer's; an axis stands for the innermost loop over it; None for the
        place before all loops. store_at: the same for where the elements are kept, if that is
        further out; see the directive of that name. What reads the stage has to be inside the loop
        too, or to come later and find all of it stored. An output is always stored whole.
        """
        kept = None if store_at is None else self._site(*store_at)
        site = self._site(consumer, loop)
        plan = placed(self._plan(stage), compute_at=site, store_at=kept)
        return self._with(stage, plan, "compute_at")

    def compute_with(
        self,
        stage: Stage,
        leader: Stage,
        loop: Axis | Loop | None,
        store_at: tuple[Stage, Axis | Loop | None] | None = None,
    ) -> Schedule:
        """Compute the stage inside a loop of another one which need not read it.

        The leader's loops, down to this one, then go over the stage's elements as well: each of
        its axes goes along with the leader's axis at the same place, or else with the first one of
        the same extent that is free. Inside a loop that reduces, a reduction takes its next
        elements in each step; it is kept around that loop, and read after it. store_at: as of
        `compute_at`.
        """
        kept = None if store_at is None else self._site(*store_at)
        stage, leader = self.current(stage), self.current(leader)
        known = None if loop is None else self.find(leader, loop)
        around = self[leader].loops[: self[leader].loops.index(known) + 1] if known else ()
        aligned = alignment(stage, leader, [each.axis for each in around])
        site = Site(leader, known, aligned)
        plan = placed(self._plan(stage), compute_at=site, store_at=kept)
        return self._with(stage, plan, "compute_with")

    def store_at(
        self, stage: Stage, consumer: Stage | None = None, loop: Axis | Loop | None = None
    ) -> Schedule:
        """Keep the stage's elements further out than where they are computed.

        consumer, loop: as of `compute_at`, around that place; None for the program's own memory,
        which lasts to the end.
        """
        place: Site | Place = Place.ROOT
        if consumer is not None:
            place = self._site(consumer, loop)
        return self._with(stage, replace(self._plan(stage), store_at=place), "store_at")

    def fold(self, stage: Stage, axis: Axis, length: int) -> Schedule:
        """Keep only so many positions along an axis at a time: those that are still read.

        The stage is kept further out than the loop it is computed in, whose steps move along the
        axis; position p lies where p + length will. Steps that read some of the same positions
        compute only the new ones, and those before the first step are computed before the loop.
        A scan is kept so along its own axis where that goes along with what another stage reduces
        (`compute_with`): at one position, that of the step, at whose end it moves on to the next.
        """
        plan = replace(self._plan(stage), ring=(axis, operator.index(length)))
        return self._with(stage, plan, "fold")

    def split(
        self,
        stage: Stage,
        loop: Axis | Loop,
        factor: int,
        tail: Literal["peel", "shift", "pad"] = "peel",
    ) -> Schedule:
        """Put a loop that advances `factor` elements at a time around the loop given.

        tail: what becomes of the last step where the factor does not divide the extent. "peel": it
        is shorter. "shift": it begins earlier, so that all steps are of one size, and computes some
        elements a second time. "pad": it is of one size too, as there are elements past the end
        that nobody asks for; the axis of the stage is then another, longer one. Of what is
        computed inside another stage, "pad" makes any part that is needed as long.
        """
        stage, inner, factor = self.current(stage), self.find(stage, loop), operator.index(factor)
        attempt = f"split({stage.name}, {inner.axis.name}, {factor})"
        if factor < 1 or factor % inner.step:
            reason = f"the factor must be a positive multiple of {inner.step}"
            raise refused(self, "split", stage, f"{attempt}: {reason}")
        if any(known.same(Loop(inner.axis, factor)) for known in self[stage].loops):
            raise refused(self, "split", stage, f"{attempt}: there is such a loop already")
        if tail not in ("peel", "shift", "pad"):
            raise refused(self, "split", stage, f"{attempt}: a tail is peeled, shifted or padded")
        loops, outer = self[stage].loops, Loop(inner.axis, factor, shifted=tail == "shift")
        place = loops.index(inner)
        split = self._with_loops(stage, (*loops[:place], outer, *loops[place:]), "split")
        return split.pad(stage, outer) if tail == "pad" else split

    def pad(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Make the last step of a loop as long as the others: `split(tail="pad")` of a loop that
        is there."""
        stage, known = self.current(stage), self.find(stage, loop)
        make = partial(with_padding, self._places, stage, known)
        return self._changed(make, "pad", stage, f"{stage.name}, {loop_name(known)}")

    def wrap(self, stage: Stage, axis: Axis, before: int, after: int) -> Schedule:
        """Let an axis go round: so many of its last elements stand before the first one once more,
        and so many of the first ones after the last.

        What reads the stage as `np.roll` does then need not test for its ends, so that it can be
        computed in parts. What is inlined into the stage goes round as well. The axes are others,
        longer ones.
        """
        stage, before, after = self.current(stage), operator.index(before), operator.index(after)
        make = partial(with_rounds, self._places, stage, axis, before, after)
        return self._changed(make, "wrap", stage, f"{stage.name}, {axis.name}, {before}, {after}")

    def tile(
        self, stage: Stage, rows: Axis | Loop, columns: Axis | Loop, height: int, width: int
    ) -> Schedule:
        """Go through two axes in tiles of height by width elements."""
        first, second = self.find(stage, rows), self.find(stage, columns)
        split = self.split(stage, first, height).split(stage, second, width)
        tiles = Loop(first.axis, height), Loop(second.axis, width)
        return split.reorder(stage, *tiles, first, second)

    def reorder(self, stage: Stage, *order: Axis | Loop) -> Schedule:
        """Put the loops named into this order; loops not named keep their places."""
        chosen = [self.find(stage, loop) for loop in order]
        if len(set(chosen)) < len(chosen):
            attempt = f"reorder({', '.join([stage.name, *map(loop_name, chosen)])})"
            raise refused(self, "reorder", stage, f"{attempt}: a loop is named twice")
        loops = list(self[stage].loops)
        places = sorted(loops.index(loop) for loop in chosen)
        for place, loop in zip(places, chosen, strict=True):
            loops[place] = loop
        return self._with_loops(stage, tuple(loops), "reorder")

    def fuse(self, stage: Stage, outer: Axis | Loop, inner: Axis | Loop) -> Schedule:
        """Make one loop of two, of which one is right inside the other: over the steps of both.

        Threads then share the steps of both, where the outer one is marked parallel.
        """
        first, second = self.find(stage, outer), self.find(stage, inner)
        loops = self[stage].loops
        if loops.index(second) != loops.index(first) + 1:
            attempt = f"fuse({self.current(stage).name}, {loop_name(first)}, {loop_name(second)})"
            raise refused(self, "fuse", stage, f"{attempt}: one is not right inside the other")
        return self._edited(stage, first, replace(first, fused=True), "fuse")

    def parallel(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Let threads share the steps of the outermost loop."""
        return self._mark(stage, loop, LoopKind.PARALLEL)

    def vectorize(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Keep a loop fit for the C compiler's vectorizer: innermost, over independent elements."""
        return self._mark(stage, loop, LoopKind.VECTOR)

    def unroll(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Write the steps of a loop out one after the other; at most `MOST_UNROLLED` of them."""
        return self._mark(stage, loop, LoopKind.UNROLL)

    def stream_store(self, stage: Stage) -> Schedule:
        """Store the stage past the caches, where nothing will soon look for it.

        Rows of less than a page are stored as others are, unless they are whole lines of memory.
        """
        return self._with(stage, replace(self[stage], streamed=True), "stream_store")

    def serial(self, stage: Stage, loop: Axis | Loop) -> Schedule:
        """Run the steps of a loop one after the other: take a mark off it."""
        return self._mark(stage, loop, LoopKind.SERIAL)

    def prefetch(
        self,
        stage: Stage,
        source: Stage,
        loop: Axis | Loop,
        ahead: tuple[Stage, Axis | Loop],
        distance: int = 1,
    ) -> Schedule:
        """In each step of the stage's loop ask for what it reads there of a source later.

        source: an input, or a stage in the memory of the program. ahead: a stage and one of its
        loops, around this one: what is asked for will be read `distance` of its steps later.
        """
        found = Prefetch(
            self.current(source),
            self.find(stage, loop),
            self._site(*ahead),
            operator.index(distance),
        )
        return self._with(stage, replace(self._plan(stage), prefetch=found), "prefetch")

    def cache_read(
        self,
        stage: Stage,
        source: Stage,
        loop: Axis | Loop | None = None,
        along: Axis | None = None,
        index: Axis | None = None,
    ) -> Schedule:
        """Let a stage read a copy of a source.

        The copy is a stage of its own, `y_copy` of `y`: all of the source, at the root, or with a
        loop of the stage what each step of that reads. along: an axis of the stage; what it reads
        at indices that do not depend on that is no copy. index: an axis of the source, where only
        its index counts: of `x[i, j] + x[j, i]` one operand is read where the last index goes along
        with i.
        """
        stage, source = self.current(stage), self.current(source)
        at = None if loop is None else self.find(stage, loop)
        make = partial(with_read_copied, self._places, stage, source, at, along, index)
        return self._changed(make, "cache_read", stage, f"{stage.name}, {source.name}")

    def cache_write(
        self,
        stage: Stage,
        loop: Axis | Loop | None = None,
        memory: Literal["stack", "registers"] = "stack",
    ) -> Schedule:
        """Compute in a local buffer what a step of a loop computes of a stage, then write it.

        What is computed is a stage of its own, `out_local` of `out`, inside that loop, with the
        loops inside it. The stage itself, a copy, keeps those over its own axes. A reduction
        accumulates there, so the loop has to be around all of it. Without a loop it is all computed
        before all of it is written.

        memory: where the buffer is. On the stack it becomes vector registers where it can; with
        "registers" it has to, or lowering for a machine raises ScheduleError: the loops over its
        rows unrolled, the innermost one of vectors, no more of them than there are registers for.
        """
        stage = self.current(stage)
        self._plan(stage)
        at = None if loop is None else self.find(stage, loop)
        if memory not in ("stack", "registers"):
            attempt = f"cache_write({stage.name}, {memory!r})"
            raise refused(self, "cache_write", stage, f"{attempt}: it is no kind of memory")
        make = partial(with_local, self._places, stage, at, memory == "registers")
        return self._changed(make, "cache_write", stage, stage.name)

    def layout(self, stage: Stage, *order: Axis | Loop) -> Schedule:
        """Store a stage with its axes in another order in memory, the outermost first.

        order: every axis; or instead of one several parts of it, as `Loop(j, 16)` and `j` are.
        """
        parts = tuple([Loop(part) if isinstance(part, Axis) else part for part in order])
        return self._with(stage, replace(self[stage], layout=parts), "layout")

    def _changed(
        self,
        make: Callable[[], tuple[Stages, Mapping[Stage, StagePlan]]],
        directive: str,
        stage: Stage,
        arguments: str,
    ) -> Schedule:
        """The schedule of another program, which a directive on a stage makes of this one."""
        attempt = f"{directive}({arguments})"
        try:
            return type(self)(*make(), attempt)
        except ScheduleError as error:
            message = str(error) if str(error).startswith(directive) else f"{attempt}: {error}"
            raise refused(self, directive, stage, message) from None

    # --- edits ------------------------------------------------------------------------------------

    def _with(self, stage: Stage, plan: StagePlan, directive: str) -> Schedule:
        return self._with_plans({stage: plan}, stage, directive)

    def _with_loops(self, stage: Stage, loops: tuple[Loop, ...], directive: str) -> Schedule:
        return self._with(stage, replace(self[stage], loops=loops), directive)

    def _mark(self, stage: Stage, target: Axis | Loop, kind: LoopKind) -> Schedule:
        loop = self.find(stage, target)
        return self._edited(stage, loop, replace(loop, kind=kind), MARKS[kind])

    def _edited(self, stage: Stage, loop: Loop, edited: Loop, directive: str) -> Schedule:
        """With another loop in place of one, also where it says where something happens."""
        stage = self.current(stage)
        return self._with_plans(with_loop(self._plans, stage, loop, edited), stage, directive)

    def _with_plans(
        self, plans: Mapping[Stage, StagePlan], stage: Stage, directive: str
    ) -> Schedule:
        """With other plans, which a directive on a stage says."""
        stage = self.current(stage)
        plans = {self.current(each): plan for each, plan in plans.items()}
        try:
            return type(self)(self.stages, {**self._plans, **plans}, f"{directive}({stage.name})")
        except ScheduleError as error:
            raise refused(self, directive, stage, error) from None


class Draft(Schedule):
    """A schedule that is not checked, nor are those that directives make of it: for many of them
    after each other, each of which would take the time of the whole program."""

    __slots__ = ()
    checked = False


# The directives that say how the steps of a loop run.
MARKS = {
    LoopKind.SERIAL: "serial",
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTOR: "vectorize",
    LoopKind.UNROLL: "unroll",
}
