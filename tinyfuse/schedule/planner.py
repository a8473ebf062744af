"""The default schedule: what moves into its readers, and what is computed in one kernel."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from tinyfuse.errors import ScheduleError
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.carried import Carried, carried_blocks
from tinyfuse.schedule.carry_blocks import carry_blocks
from tinyfuse.schedule.content import Indices, content_of, large_loads
from tinyfuse.schedule.cost import stage_bytes
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.few_rows import stream_few_rows
from tinyfuse.schedule.group_seats import seats_of
from tinyfuse.schedule.groups import VECTOR_ROW, Grouping, Read, is_same_element
from tinyfuse.schedule.loop_legality import WHOLE_ROWS
from tinyfuse.schedule.loop_order import (
    PARALLEL_ELEMENTS,
    goes_one_by_one,
    plans,
    runs_along_rows,
)
from tinyfuse.schedule.periods import split_at_periods
from tinyfuse.schedule.pools import pool_rows
from tinyfuse.schedule.prefetching import prefetch_rows
from tinyfuse.schedule.register_tiles import tile_reductions
from tinyfuse.schedule.rounds import going_round
from tinyfuse.schedule.row_blocks import block_rows
from tinyfuse.schedule.scans import scan_side_by_side
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.seats import Seat, before, moved
from tinyfuse.schedule.side_by_side import sum_side_by_side
from tinyfuse.schedule.small import SmallKernels
from tinyfuse.schedule.stencils import Chain, Stencils
from tinyfuse.schedule.streaming import stream_large_results
from tinyfuse.schedule.transposes import copy_transposed
from tinyfuse.schedule.uses import (
    Use,
    computations,
    computations_in_reader,
    decidable,
    divides,
    goes_along,
    lies_across,
    looks_for_each,
    stands_across,
)
from tinyfuse.schedule.vector_products import join_vector_products
from tinyfuse.schedule.written_out import Texts
from tinyfuse.stage.analysis import fixed_stages, moves_with_data
from tinyfuse.stage.expr import is_of_rank
from tinyfuse.stage.index import affine
from tinyfuse.stage.ir import Order, Stage, Stages

# Operations of inlined stages that one stage may take in: the C compiler's time grows faster than
# the length of a loop's body.
OPERATION_BUDGET = 700
# Operations that may move behind a test that runs, where nothing can be named and reused.
GUARDED_BUDGET = 16
# What computing an element again may cost, in additions, before storing the result is better.
CHEAP = 1
# The same for what several stages read, which then is neither stored nor loaded.
CHEAP_FOR_EACH = 4
# What an element costs at least, in additions, to be worth a vector loop of its own before a loop
# that takes elements one by one: an exponential.
SLOW_ALONE = 10
# What an element costs at least, in additions, where a function is computed that no instruction is.
EXPONENTIAL = 16
# Bytes of the lanes or blocks of one reduction, less than the innermost cache.
PARTS_BYTES = 1 << 15
# Rows to sum, for each core, from which on threads share rows rather than blocks of a row.
ROWS_PER_CORE = 2

INLINE, STORE, COMPUTE_AT = "inline", "store", "compute_at"


def default_schedule(
    stages: Stages,
    machine: Machine,
    fuse: bool = True,
    stored: Collection[str] = (),
    tile: bool = True,
) -> tuple[Schedule, tuple[Decision, ...]]:
    """The schedule of a program and the decision on each stage, in the order of the program.

    fuse: False stores every stage; only the parts of one reduction stay together. stored: names of
    stages that fusion leaves alone. tile: False, where nothing is fused, leaves each loop nest as
    the program has it: no tiles, and no copies for them.
    """
    if not fuse and not tile:
        return _stored(stages, machine)
    carried = carried_blocks(stages) if fuse else ()
    free = tuple([each for each in carried if not any(s.name in stored for s in each.stages)])
    try:
        return _scheduled(stages, machine, fuse, stored, free)
    except ScheduleError:
        return _scheduled(stages, machine, fuse, stored, ())


def _stored(stages: Stages, machine: Machine) -> tuple[Schedule, tuple[Decision, ...]]:
    """With every stage stored, in loops over its axes."""
    planner = _Planner(stages, machine, False, (), {})
    decided = [planner.decide(stage) for stage in reversed(stages.stages)]
    return stream_large_results(planner.schedule(stages), machine), tuple(decided[::-1])


def _scheduled(
    stages: Stages,
    machine: Machine,
    fuse: bool,
    stored: Collection[str],
    carried: Sequence[Carried],
) -> tuple[Schedule, tuple[Decision, ...]]:
    names = {stage.name for each in carried for stage in each.stages}
    stored = {*stored, *names}
    planner, decisions = _decided(stages, machine, fuse, stored)
    if fuse:
        planner.group(stages, decisions)
    schedule = planner.schedule(stages)
    found = _decisions(schedule, {each.producer: each for each in decisions.values()})
    if carried:
        schedule, found = carry_blocks(schedule, found, machine, carried)
        stored |= {s.name for s in schedule.stages.stages if _is_within(schedule, s, names)}
    if machine.device:
        return schedule, found
    if fuse:
        schedule, found = block_rows(schedule, found, machine, stored)
    schedule, found = stream_few_rows(schedule, found, machine, stored)
    if fuse:
        schedule, found = pool_rows(schedule, found, machine, stored)
    schedule, found = tile_reductions(schedule, found, machine, stored)
    schedule, found = sum_side_by_side(schedule, found, machine, stored)
    schedule, found = copy_transposed(schedule, found, machine, stored)
    schedule = scan_side_by_side(split_at_periods(schedule, stored))
    if fuse:
        schedule, found = join_vector_products(schedule, found, stored)
    return prefetch_rows(stream_large_results(schedule, machine), machine), found


def _decided(
    stages: Stages, machine: Machine, fuse: bool, stored: Collection[str]
) -> tuple[_Planner, dict[Stage, Decision]]:
    """The decisions on all stages, taken again where their text would hold some too often."""
    repeated: dict[Stage, str] = {}
    while True:
        planner = _Planner(stages, machine, fuse, stored, repeated)
        decisions = {stage: planner.decide(stage) for stage in reversed(stages.stages)}
        found = planner.texts.repeated(planner.content)
        if not found:
            return planner, decisions
        repeated |= found


def _is_within(schedule: Schedule, stage: Stage, names: set[str]) -> bool:
    """Whether a stage is computed in a kernel of certain stages."""
    return not names.isdisjoint({each.name for each in schedule.places.chain(stage)})


class _Planner:
    """Decides from the outputs backwards, so that for each stage the stored readers are known."""

    def __init__(
        self,
        stages: Stages,
        machine: Machine,
        fuse: bool,
        stored: Collection[str],
        repeated: Mapping[Stage, str],
    ):
        self.repeated = repeated  # why some are stored without which text would grow
        self.machine, self.fuse = machine, fuse
        self.alone = {stage for stage in stages.stages if stage.name in stored}
        self.fixed = fixed_stages(stages)
        self.outputs = set(stages.outputs)
        self.content = {stage: content_of(stage) for stage in stages.stages}
        self.readers: dict[Stage, list[Stage]] = {}
        self.uses: dict[Stage, dict[tuple[Stage, Indices], Use]] = {}
        self.operations: dict[Stage, int] = {}  # of a stored stage, with what is inlined into it
        self.costs: dict[Stage, int] = {}  # the same in additions, for an element
        self.texts = Texts()
        self.inlined: set[Stage] = set()
        self.gathered: set[Stage] = set()
        self.gathering: set[Stage] = set()  # stored ones that look for each element of a row
        self.seats: dict[Stage, Seat] = {}
        self.round: list[Chain] = []  # those whose rows go round

    def schedule(self, stages: Stages) -> Schedule:
        """What is decided as a schedule, of a program with all copies of rows that it needs."""
        inlined, seats = self.inlined, self.seats
        for chain in self.round:
            stages, inlined, seats = going_round(stages, chain, inlined, seats)
        return Schedule(stages, plans(stages, inlined, seats, self.machine))

    def decide(self, stage: Stage) -> Decision:
        """Decide on one stage; its readers are decided already."""
        uses = list(self.uses.get(stage, {}).values())
        action, reason = self._action(stage, uses)
        repeats = computations(stage, uses) if action == INLINE else 1.0
        own = self.content[stage].operations
        if action == INLINE:
            self.inlined.add(stage)
            for use in uses:
                self.operations[use.reader] += own
                self.costs[use.reader] += self.content[stage].cost
        else:
            self.operations[stage] = own
            self.costs[stage] = self.content[stage].cost
            uses = [Use(stage, tuple(map(affine, stage.axes)), 0)]
        self._pass_on(stage, uses)
        names = tuple(reader.name for reader in reversed(self.readers.get(stage, [])))
        return Decision(stage.name, names, action, reason, repeats)

    def _pass_on(self, stage: Stage, uses: list[Use]) -> None:
        """Tell the producers where they are read, now that it is known where this stage is."""
        content = self.content[stage]
        for source in dict.fromkeys(load.source for load, _ in content.loads):
            self.readers.setdefault(source, []).append(stage)
        several = stage in self.inlined and len({use.reader for use in uses}) > 1
        own = content.cost if several else 0
        for use in uses:
            values = dict(zip(stage.axes, use.indices, strict=True))
            behind = use.guarded or not decidable(content.tests, values)
            guarded = use.guarded + content.operations if behind else 0
            self.texts.note(stage, use, content, stage in self.inlined)
            for load, places in content.loads:
                if load.data or (stage in self.gathered and stage in self.inlined):
                    self.gathered.add(load.source)
                indices = tuple([index.substitute(values) for index in places])
                known = self.uses.setdefault(load.source, {})
                found = Use(use.reader, indices, guarded, use.repeated + own)
                known.setdefault((use.reader, indices), found)
            if looks_for_each(stage) and goes_along(use):
                self.gathering.add(use.reader)

    def _action(self, stage: Stage, uses: list[Use]) -> tuple[str, str]:
        if stage in self.outputs:
            return STORE, "it is an output"
        if not uses:
            return STORE, "nothing reads it"
        if uses[0].reader.order is not Order.SERIAL:
            return self._part_of_reduction(stage, uses[0])
        if stage in self.fixed and self._is_kept(stage, uses):
            return STORE, "constants decide it alone: it is computed once, at the first call"
        if self._makes_one_value(stage, uses):
            self.seats[stage] = Seat(uses[0].reader)
            return COMPUTE_AT, f"{uses[0].reader.name} takes each value as it is computed"
        if not self.fuse:
            return STORE, "fusion is off"
        if stage.scatter:
            return STORE, "its elements are put in one after the other"
        if stage.scan or stage.sort:
            return STORE, WHOLE_ROWS[stage.sort]
        if stage in self.alone:
            return STORE, "it is left alone, as asked for"
        if stage.reduce_axes:
            return STORE, "it is a reduction"
        if stage in self.repeated:
            return STORE, self.repeated[stage]
        if stage in self.gathered and not moves_with_data(stage):
            return STORE, f"data decides where {uses[0].reader.name} reads it"
        if sum(use.is_gather for use in uses) > 1:
            return STORE, f"{uses[0].reader.name} reads it at several places that data decide"
        readers = dict.fromkeys(use.reader for use in uses)
        if len(readers) > 1:
            return self._into_readers(stage, uses, list(readers))
        return self._into_reader(stage, uses)

    def _is_kept(self, stage: Stage, uses: list[Use]) -> bool:
        """Whether what is the same at every call is better loaded than computed by a reader that
        is not: it takes no more bytes than the constants, or long to compute."""
        if all(use.reader in self.fixed for use in uses):
            return False
        slow = stage.reduce_axes or self.content[stage].cost >= SLOW_ALONE
        return bool(slow) or stage_bytes(stage) <= sum(map(stage_bytes, self.fixed[stage]))

    def _makes_one_value(self, stage: Stage, uses: list[Use]) -> bool:
        """Whether a reduction along rows gives what one place of its only reader's loops needs."""
        reader = uses[0].reader
        if len(uses) > 1 or not runs_along_rows(stage):
            return False
        if uses[0].indices != tuple(map(affine, reader.axes)):
            return False
        if reader.body is not None and is_of_rank(reader.body):
            return True
        return self.fuse and stage not in self.alone and runs_along_rows(reader)

    def _into_readers(self, stage: Stage, uses: list[Use], readers: list[Stage]) -> tuple[str, str]:
        """Each computes it for itself, where that takes no more loads than to read it."""
        content, names = self.content[stage], " and ".join(_named(readers))
        each = content.cost + max(use.repeated for use in uses)
        several = 1 if math.prod(stage.shape) == 1 else len(readers) - 1
        if each * several > CHEAP_FOR_EACH or large_loads(stage, content) > 1:
            return STORE, f"{names} read it"
        for reader in readers:
            action, reason = self._into_reader(stage, [u for u in uses if u.reader is reader])
            if action != INLINE:
                return STORE, f"{names} read it, and {reason}"
        return INLINE, f"{names} compute it for themselves: that is cheaper than to load it"

    def _into_reader(self, stage: Stage, uses: list[Use]) -> tuple[str, str]:
        content, reader = self.content[stage], uses[0].reader
        if self.operations[reader] + content.operations * len(uses) > OPERATION_BUDGET:
            return STORE, f"{reader.name} would do more than {OPERATION_BUDGET} operations"
        guarded = max(use.guarded for use in uses)
        if guarded and guarded + content.operations > GUARDED_BUDGET:
            return STORE, f"more than {GUARDED_BUDGET} operations would stand behind a test"
        if reader.reduce_axes and any(divides(stage, content, use) for use in uses):
            return STORE, f"{reader.name} would divide to find each element"
        if content.tests and len(uses) > 1:
            return STORE, f"{reader.name} would test for its edges in {len(uses)} places"
        if content.cost and self._only_joins(reader) and any(map(stands_across, uses)):
            return STORE, f"{reader.name} puts it across its rows: as they lie, it is in vectors"
        one_by_one = reader in self.gathering or goes_one_by_one(reader)
        if content.cost >= SLOW_ALONE and one_by_one:
            return STORE, f"{reader.name} goes from one element to the next: vectors compute it"
        if self.costs[reader] >= EXPONENTIAL and self._splits_rows(stage, uses):
            return STORE, f"rows of {reader.name} are short: it goes through all elements as one"
        if reader.reduce_axes and content.loads and lies_across(uses):
            return STORE, f"{reader.name} reads it along one axis and along another"
        repeats = computations_in_reader(stage, uses)
        if content.cost * (repeats - 1) > CHEAP:
            return STORE, f"{reader.name} would compute it {repeats} times over"
        return INLINE, f"{reader.name} takes each element as it is computed"

    def _only_joins(self, stage: Stage) -> bool:
        """Whether a stage puts others side by side, and computes nothing."""
        content = self.content[stage]
        return bool(content.tests) and not content.cost and not stage.reduce_axes

    def _splits_rows(self, stage: Stage, uses: list[Use]) -> bool:
        """Whether a reader that computes long on each element, all of them as one row, could not
        do so any more."""
        reader = uses[0].reader
        if not self._is_better_flat(reader) or self.content[stage].cost >= EXPONENTIAL:
            return False
        if math.prod(reader.shape) < PARALLEL_ELEMENTS:
            return False
        loads = [(load.source, places) for load, places in self.content[stage].loads]
        flat = all(is_same_element(source, places, stage) for source, places in loads)
        return not flat and all(is_same_element(stage, use.indices, reader) for use in uses)

    def _is_better_flat(self, stage: Stage) -> bool:
        """Whether vectors fit the rows of a stage badly, which is better gone through as one row:
        what is left of each row is computed element by element, and that takes as long as a vector.
        """
        if self.costs[stage] < EXPONENTIAL or len(stage.axes) < 2:
            return False
        if stage.reduce_axes or stage.row_axis or stage.scatter:
            return False
        row, lanes = stage.axes[-1].extent, self.machine.vector_bytes // stage.dtype.itemsize
        return 1 < row < VECTOR_ROW and row % lanes != 0

    # --- groups -----------------------------------------------------------------------------------

    def _apart(self) -> dict[Stage, str]:
        """What is in no group, and why: loops around several that stand behind tests would be cut
        at the tests of all of them."""
        growing = dict.fromkeys(self.repeated, "that is stored so that text does not grow")
        return {**growing, **dict.fromkeys(self.alone, "that is left alone, as asked for")}

    def group(self, stages: Stages, decisions: dict[Stage, Decision]) -> None:
        """Put stages at the root that go through the same outer loops into one kernel."""
        grouping = Grouping(
            stages,
            self.machine,
            self._reads(stages),
            self.seats,
            self.operations,
            {s for s, cost in self.costs.items() if cost >= SLOW_ALONE and not s.reduce_axes},
            {stage for stage in self.costs if self._is_better_flat(stage)},
            self._apart(),
            self.fixed,
        )
        for group in grouping.form():
            for stage, seat in seats_of(grouping, group).items():
                self.seats[stage] = seat
                decisions[stage] = moved(decisions[stage], seat)
        stencils = Stencils(grouping, self.inlined, self.machine)
        for chain, seats in stencils.seats():
            self.seats.update(seats)
            self.round += [chain] if chain.is_round else []
            for stage, seat in seats.items():
                decisions[stage] = _in_chain(stage, decisions[stage], chain, seat)
        for seats in SmallKernels(grouping, self.seats).seats_of_runs():
            self.seats.update(seats)
            for stage, seat in seats.items():
                decisions[stage] = before(decisions[stage], seat)
        for stage, reason in {**grouping.reasons, **stencils.reasons}.items():
            if stage not in {*self.seats, *self.outputs, *self.alone}:
                known = decisions[stage]
                decisions[stage] = replace(known, reason=f"{known.reason}; {reason}")

    def _reads(self, stages: Stages) -> dict[Stage, list[Read]]:
        """What each stored stage reads, in the order of the program."""
        reads: dict[Stage, list[Read]] = {
            stage: [] for stage in stages.stages if stage not in self.inlined
        }
        for source in (*stages.inputs, *stages.stages):
            if source not in self.inlined:
                for use in self.uses.get(source, {}).values():
                    reads[use.reader].append(Read(source, use.indices))
        return reads

    def _part_of_reduction(self, stage: Stage, use: Use) -> tuple[str, str]:
        """Lanes and blocks go where they are combined, if they lie side by side and fit a stack."""
        tree = use.reader
        length = tree.reduce_axes[0].extent
        together = use.indices[-1].coefficient(tree.reduce_axes[0]) == 1
        fits = length * stage.dtype.itemsize <= PARTS_BYTES
        alone = tree.order is Order.HALVING or _elements(stage) < PARALLEL_ELEMENTS
        rows = math.prod(tree.shape)
        if together and fits and (alone or rows >= ROWS_PER_CORE * self.machine.cores):
            self.seats[stage] = Seat(tree)
            return COMPUTE_AT, f"{tree.name} combines its {length} values as they are computed"
        return STORE, "threads share its blocks"


def _decisions(schedule: Schedule, known: Mapping[str, Decision]) -> tuple[Decision, ...]:
    """The decision on each stage of a schedule. known: by name, on all but copies."""
    found = []
    for stage in schedule.stages.stages:
        readers = tuple([reader.name for reader in schedule.readers(stage)])
        reason = "what stands at its other end is copied to both: no reader looks for that"
        copy = Decision(stage.name, readers, "cache_read", reason)
        found.append(known.get(stage.name, copy))
    return tuple(found)


def _in_chain(stage: Stage, decision: Decision, chain: Chain, seat: Seat) -> Decision:
    """The decision on a stage that is computed as the rows of another one need it."""
    last, rows = chain.last.root.name, chain.rows.name
    if seat.ring:
        reason = f"{last} reads a few rows of it at a time, and {seat.ring[1]} are kept"
        return replace(decision, action=COMPUTE_AT, reason=reason)
    reason = f"for every {seat.step} steps of {rows}, what {last} needs of it"
    repeats = chain.recompute(stage, seat.step)
    return replace(decision, action=COMPUTE_AT, reason=reason, recompute=repeats)


def _elements(part: Stage) -> int:
    """How many elements are visited for a part of a reduction, lanes and all."""
    chain = part if part.order is Order.SERIAL else part.reads()[0].source
    return math.prod([axis.extent for axis in (*chain.axes, *chain.reduce_axes)])


def _named(stages: Iterable[Stage]) -> list[str]:
    names = [stage.name for stage in stages]
    return names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} others"]
