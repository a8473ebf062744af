"""Loop nests: the loops of a stage opened one after the other, cut where tests change.

Where an index test (padding, concatenation, the tail of a blocked sum) changes within a loop, the
loop is cut there, so that the test is decided in each part; where the loop is further out, an If
chooses.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from tinyfuse.loops.ir import Block, For, If, LoopKind, Statement
from tinyfuse.lower.bounds import Range, Ranges, changes, excluded
from tinyfuse.lower.coverage import Coverage
from tinyfuse.lower.guards import Guards, condition, guard_of, leaves_alone, needed_where
from tinyfuse.lower.pieces import (
    MAX_FILLED_PIECES,
    Piece,
    assembled,
    choice,
    choices,
    numbered_steps,
    parts,
    repeat,
    run,
    steps,
)
from tinyfuse.lower.reads import Reads
from tinyfuse.lower.regions import Regions
from tinyfuse.lower.storage import Names
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.places import MAX_PIECES, Loop, Site
from tinyfuse.stage.expr import IndexTest, Op, walk
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Stage

# Operations that lanes may run behind a test.
LANE_BUDGET = 6

Leaf = Callable[[Ranges], list[Statement]]


class NestLowering(ABC):
    """The loops around what `lower` computes of a stage at a point."""

    machine: Machine
    reads: dict[Stage, Reads]
    lanes: set[Stage]  # stages whose last axis is halved to one element
    names: Names
    loop_stack: list[Axis]
    counters: dict[tuple[Stage, Loop], Axis | None]  # of the loops around
    regions: Regions
    coverage: Coverage  # of the kernel at hand
    guards: Guards

    @abstractmethod
    def _prefetched(self, stage: Stage, loop: Loop, ranges: Ranges) -> list[Statement]:
        """What a step of a loop asks for ahead of its use."""

    @abstractmethod
    def _attached(
        self,
        site: Site,
        ranges: Ranges,
        kept: Mapping[Stage, Ranges],
        computed: Mapping[Stage, Ranges],
    ) -> list[Statement]:
        """Storage for what is kept during one step of a loop, and what is computed in it."""

    def _with_attached(
        self,
        site: Site,
        ranges: Ranges,
        body: Callable[[], list[Statement]],
        variable: Axis | None = None,
    ) -> list[Statement]:
        """One step of a loop: what is computed in it of other stages, then its own.

        variable: that of the loop, if its steps run one after the other.
        """
        if (site.stage, site.loop) not in self.regions.places.sites:
            return body()
        regions = self.regions.at(site, ranges)
        new_only = variable and self.regions.keeps(site)
        computed = self.regions.at(site, ranges, variable) if new_only else regions
        with self.coverage.checked(site, regions):
            return self._attached(site, ranges, regions, computed) + body()

    def _step(
        self,
        site: Site,
        ranges: Ranges,
        body: Callable[[], list[Statement]],
        variable: Axis | None,
    ) -> list[Statement]:
        """One step of a loop with what is computed and carried on in it, if anything changes."""
        assert site.loop is not None
        loop = site.loop

        def step() -> list[Statement]:
            statements = self._with_attached(site, ranges, body, variable)
            return statements + self._moved_on(site.stage, loop, ranges)

        tests = guard_of(self.regions.places, site.stage, loop) or self._needed(site)
        return self._where_some(tests, ranges, step)

    def _link(
        self, stage: Stage, loop: Loop, ranges: Ranges, body: Callable[[], list[Statement]]
    ) -> list[Statement]:
        """One step of a loop in which nothing else is computed; of a chain in a guarded step, if it
        changes anything."""
        if not self.guards.steps or self.machine.device or loop.axis not in stage.reduce_axes:
            return body()
        assert stage.body is not None
        tests = [test for test in leaves_alone(stage.body) if test.index.depends_on(loop.axis)]
        return self._where_some(tests, ranges, body)

    def _tests_links(self, stage: Stage, tests: Sequence[IndexTest], ranges: Ranges) -> bool:
        """Whether tests of links hold everywhere in those steps of a chain's loops where they do
        somewhere; on a device, whose threads take the elements of one loop, that they are such."""
        if stage.body is None or tests != [*leaves_alone(stage.body)]:
            return False
        if self.machine.device:
            return True
        step = {**ranges, **{axis: Range(affine(axis), 1) for axis in stage.reduce_axes}}
        with self.guards.behind(self.guards.some(tests, step)):
            return not self.guards.all(tests, step)

    def _where_some(
        self, tests: Sequence[IndexTest], ranges: Ranges, body: Callable[[], list[Statement]]
    ) -> list[Statement]:
        """What is done in a step if each of some tests holds somewhere in it."""
        if not tests:
            return body()
        facts = self.guards.some(tests, ranges)
        if any(fact.interval()[1] < 0 for fact in facts):
            return []
        with self.guards.step(facts):
            statements = body()
        return [If(condition(facts), tuple(statements), ())] if facts else statements

    def _needed(self, site: Site) -> tuple[IndexTest, ...]:
        """In a guarded step, the tests one of which fails where nothing reads what a tile of a
        stage is."""
        places, stage = self.regions.places, site.stage
        if not self.guards.steps or site.loop is None or site.loop.step == 1 or self.machine.device:
            return ()
        if stage in places.outputs or stage.reduce_axes:
            return ()
        readers = [self.reads[reader] for reader in places.readers[stage]]
        pairs = [pair for each in readers for pair in zip(each.loads, each.guards, strict=True)]
        return needed_where([(load, guards) for load, guards in pairs if load.source is stage])

    @abstractmethod
    def _moved_on(self, leader: Stage, loop: Loop, ranges: Ranges) -> list[Statement]:
        """At the end of a step of the leader's loop, the next position of the scans in it."""

    def _versions(
        self, stage: Stage, ranges: Ranges, make: Callable[[], list[Statement]]
    ) -> list[Statement]:
        """What computes a region of a stage in a guarded step: once for where all that its masks
        test holds, and once for the rest, unless each link of a chain is tested by itself."""
        conditions = self.reads[stage].conditions if self.guards.steps else ()
        tests = [test for each in conditions for test in each]
        facts = self.guards.all(tests, ranges)
        if not facts or any(fact.interval()[1] < 0 for fact in facts):
            return make()
        if self._tests_links(stage, tests, ranges):
            return make()
        with self.guards.behind(facts):
            plain = make()
        return [If(condition(facts), tuple(plain), tuple(make()))]

    def _before(self, site: Site, ranges: Ranges, variable: Axis | None) -> list[Statement]:
        """What the first step of a loop finds computed, where each computes only what is new."""
        if variable is None or not self.regions.keeps(site):
            return []
        regions = self.regions.before(site, ranges, variable)
        return [Block(tuple(self._attached(site, ranges, regions, regions)))] if regions else []

    def _nest(
        self, stage: Stage, loops: Sequence[Loop], ranges: Ranges, leaf: Leaf, bare: bool = False
    ) -> list[Statement]:
        """Open the loops one after the other and put leaf(ranges) inside the last.

        bare: the leaf runs no body, so nothing is attached and no test is met.
        """
        if not loops:
            return leaf(ranges)
        loop, rest = loops[0], loops[1:]
        if loop.fused:
            return self._fused(stage, loops, ranges, leaf, bare)
        mark = len(self.names.active)
        pieces = self._pieces(stage, loop, ranges, bare)
        shared = self._shared_counter(loop, pieces)
        bodies, before, depth = [], [], len(self.loop_stack)
        site = None if bare or (stage, loop) not in self.regions.places.sites else Site(stage, loop)
        for piece in pieces:
            inner = {**ranges, loop.axis: piece.range}
            serial = piece.variable if loop.kind is not LoopKind.PARALLEL else None
            before.append(self._before(site, inner, serial) if site else [])
            self.coverage.enter(loop, piece)
            self.loop_stack += [piece.variable] if piece.variable else []
            self.counters[stage, loop] = piece.variable
            body = [] if bare else self._prefetched(stage, loop, inner)
            own = functools.partial(self._nest, stage, rest, inner, leaf, bare)
            body += (
                self._step(site, inner, own, serial)
                if site
                else self._link(stage, loop, inner, own)
            )
            bodies.append(body)
            del self.loop_stack[depth:]
            self.coverage.leave(piece)
        del self.names.active[mark:]
        return assembled(loop, shared, pieces, bodies, before)

    def _fused(
        self, stage: Stage, loops: Sequence[Loop], ranges: Ranges, leaf: Leaf, bare: bool
    ) -> list[Statement]:
        """Open the first two loops as one, whose counter tells the steps of both."""
        outer, inner, *rest = loops
        mark, depth = len(self.names.active), len(self.loop_stack)
        pieces = [self._numbered(stage, each, ranges, bare) for each in (outer, inner)]
        if not all(pieces):
            return []
        first, second = pieces
        size = second[-1].stop
        counter = Axis(
            self.names.fresh(f"{outer.axis.name}_{inner.axis.name}"), first[-1].stop * size
        )
        self.counters[stage, outer] = self.counters[stage, inner] = None

        def step(own: Axis, around: Piece, piece: Piece) -> list[Statement]:
            moved = {outer.axis: around.at(own // size), inner.axis: piece.at(own % size)}
            of_both = {**ranges, **moved}
            body = functools.partial(self._nest, stage, rest, of_both, leaf, bare)
            run_of_both = Piece(moved[inner.axis], 0, own.extent, own)
            self.loop_stack.append(own)
            self.coverage.enter(outer, run_of_both)
            site = Site(stage, inner)
            statements = body() if bare else self._with_attached(site, of_both, body)
            self.coverage.leave(run_of_both)
            del self.loop_stack[depth:]
            return statements

        bodies = []
        for around in first:
            own = counter
            if len(first) > 1:  # in its own piece of the steps
                own = Axis(counter.name, (around.stop - around.first) * size, around.first * size)
            bodies.append(choice(own % size, second, [step(own, around, each) for each in second]))
        steps = [replace(around, stop=around.stop * size) for around in first]
        body = choice(affine(counter), steps, bodies)
        del self.names.active[mark:]
        return [For(counter, outer.kind, tuple(body))] if body else []

    def _numbered(self, stage: Stage, loop: Loop, ranges: Ranges, bare: bool) -> list[Piece]:
        """The steps of a loop, cut where they can be, all numbered from 0."""
        range_ = ranges[loop.axis]
        if not range_.base.is_constant:
            return steps(loop, range_, self.names.fresh)
        cuts = [] if bare else self._cuts(stage, loop, ranges)
        return numbered_steps(loop, range_.base.constant, range_.extent, cuts, self.names.fresh)

    def _shared_counter(self, loop: Loop, pieces: Sequence[Piece]) -> Axis | None:
        """The counter of a parallel loop of which threads share several different pieces."""
        if loop.kind is not LoopKind.PARALLEL or len(pieces) < 2:
            return None
        name = next((piece.variable.name for piece in pieces if piece.variable), "")
        first = pieces[0].first
        return Axis(name or self.names.fresh(loop.axis.name), pieces[-1].stop - first, first)

    def _pieces(self, stage: Stage, loop: Loop, ranges: Ranges, bare: bool) -> list[Piece]:
        """Cut a loop into runs of steps of one extent, with every test decided that can be."""
        range_ = ranges[loop.axis]
        if loop.step > 1:
            return self._steps(stage, loop, ranges, bare)
        if loop.kind is LoopKind.UNROLL:
            return [Piece(Range(range_.base + s, 1), s, s + 1) for s in range(range_.extent)]
        keeps_lanes = range_.extent > 1 and self._keeps_lanes(stage, loop)
        cuts = [] if bare or keeps_lanes else self._cuts(stage, loop, ranges)
        if range_.base.is_constant:
            name = self.names.fresh(loop.axis.name) if range_.extent > 1 else ""
            start = range_.base.constant
            most = MAX_FILLED_PIECES if stage in self.regions.places.attached else MAX_PIECES
            edges = parts(start, start + range_.extent, cuts, most)
            make = repeat if keeps_lanes else run
            return [make(name, low, high) for low, high in edges]
        if range_.extent == 1:
            return choices(range_.base, cuts)
        variable = Axis(self.names.fresh(loop.axis.name), range_.extent)
        return [Piece(Range(range_.base + variable, 1), 0, range_.extent, variable)]

    def _keeps_lanes(self, stage: Stage, loop: Loop) -> bool:
        """Whether all lanes run where a row ends among them: its last ones stay as they are.

        So lanes are written and read in vectors of one width, which processors forward from one to
        the other. Only short expressions, as nothing behind a test is named.
        """
        if stage not in self.lanes or loop.axis is not stage.axes[-1]:
            return False
        bodies = [s.body for s in (stage, *self.reads[stage].inlined) if s.body]
        return sum(isinstance(node, Op) for body in bodies for node in walk(body)) <= LANE_BUDGET

    def _cuts(self, stage: Stage, loop: Loop, ranges: Ranges) -> list[int]:
        """Where along a loop conditions change: in the stage's body, or in what is computed inside
        the loop."""
        guarded = self.guards.steps or guard_of(self.regions.places, stage, loop)
        cuts = [
            cut
            for condition in self.reads[stage].conditions
            if not any(excluded(test, ranges) for test in condition)
            for test in condition
            if not guarded or _depends_on_step_alone(test.index, loop.axis, ranges)
            for cut in changes(test, loop.axis, ranges)
        ]
        range_ = ranges[loop.axis]
        if stage in self.regions.places.attached and range_.base.is_constant:
            place = Axis(loop.axis.name, range_.extent, range_.base.constant)
            step = Range(affine(place), min(loop.step, range_.extent))
            inner = {**ranges, loop.axis: step}
            for edge in self.regions.edges(Site(stage, loop), inner, place, bool(guarded)):
                steps_before = -(-(edge - place.start) // loop.step)
                cuts.append(place.start + steps_before * loop.step)
        return cuts

    def _steps(self, stage: Stage, loop: Loop, ranges: Ranges, bare: bool) -> list[Piece]:
        """Steps of several elements, cut where they can be, with a shorter one at each end."""
        range_ = ranges[loop.axis]
        if bare or not range_.base.is_constant:
            return steps(loop, range_, self.names.fresh)
        start = range_.base.constant
        cuts = self._cuts(stage, loop, ranges)
        filled = stage in self.regions.places.attached and loop.kind is not LoopKind.UNROLL
        if filled or loop.kind is LoopKind.PARALLEL:
            return numbered_steps(loop, start, range_.extent, cuts, self.names.fresh)
        return [
            piece
            for low, high in parts(start, start + range_.extent, cuts)
            for piece in steps(loop, Range(affine(low), high - low), self.names.fresh)
        ]


def _depends_on_step_alone(index: Affine, axis: Axis, ranges: Ranges) -> bool:
    """Whether the loops further out leave an index to that of one axis."""
    return all(other is axis or ranges[other].base.is_constant for other in index.axes())
