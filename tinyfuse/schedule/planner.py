"""The default schedule: elementwise stages and index maps move into their reader, others stay."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.machine import Machine
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import plans
from tinyfuse.schedule.schedule import Schedule, Site
from tinyfuse.stage.expr import IndexTest, Load, Op, walk
from tinyfuse.stage.index import Affine, Axis, flat_index
from tinyfuse.stage.ir import Order, Stage, Stages

# Operations of inlined stages that one stage may take in: the C compiler's time grows faster than
# the length of a loop's body.
OPERATION_BUDGET = 200
# Operations that may move behind an index test, where nothing can be named and reused.
GUARDED_BUDGET = 16
# What a repeated computation may cost, in additions, before storing the result is better.
CHEAP = 1
# Bytes of a stage's region that may lie on the stack inside a kernel.
STACK_LIMIT = 1 << 15
# Rows to sum, for each core, from which on threads share rows rather than blocks of a row.
ROWS_PER_CORE = 2

INLINE, STORE, COMPUTE_AT = "inline", "store", "compute_at"


def default_schedule(
    stages: Stages, machine: Machine, fuse: bool = True
) -> tuple[Schedule, tuple[Decision, ...]]:
    """The schedule of a program and the decision on each stage, in the order of the program.

    fuse: False stores every stage; only the parts of one reduction stay together.
    """
    planner = _Planner(stages, machine, fuse)
    decisions = tuple(planner.decide(stage) for stage in stages.stages)
    return Schedule(stages, plans(stages, planner.inlined, planner.sites, machine)), decisions


@dataclass(slots=True)
class _Use:
    """How one stage reads another: at which indices, and whether behind the test of an edge."""

    reader: Stage
    guarded: bool
    indices: dict[tuple[Affine, ...], None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Content:
    """What computing one element takes, with all that is inlined.

    operations: how many. cost: in additions, of the stage's own. loads: of stored stages.
    """

    operations: int
    cost: int
    loads: dict[tuple[Stage, tuple[Affine, ...]], None]


class _Planner:
    def __init__(self, stages: Stages, machine: Machine, fuse: bool):
        self.machine, self.fuse = machine, fuse
        self.outputs = set(stages.outputs)
        self.uses = _uses(stages)
        self.content: dict[Stage, _Content] = {}
        self.inlined: set[Stage] = set()
        self.sites: dict[Stage, Site] = {}

    def decide(self, stage: Stage) -> Decision:
        """Decide on one stage; its producers are decided already."""
        self.content[stage] = self._content_of(stage)
        uses = self.uses.get(stage, [])
        action, reason = self._action(stage, uses)
        if action == INLINE:
            self.inlined.add(stage)
        return Decision(stage.name, tuple(use.reader.name for use in uses), action, reason)

    def _content_of(self, stage: Stage) -> _Content:
        assert stage.body is not None
        nodes = walk(stage.body)
        operations = sum(bool(node.parts) for node in nodes)
        cost = sum(_cost(node.name) for node in nodes if isinstance(node, Op))
        loads: dict[tuple[Stage, tuple[Affine, ...]], None] = {}
        for load in (node for node in nodes if isinstance(node, Load)):
            if load.source in self.inlined:
                inner = self.content[load.source]
                operations += inner.operations
                values = dict(zip(load.source.axes, load.indices, strict=True))
                for source, indices in inner.loads:
                    loads[source, tuple([index.substitute(values) for index in indices])] = None
            else:
                loads[load.source, load.indices] = None
        return _Content(operations, cost, loads)

    def _action(self, stage: Stage, uses: list[_Use]) -> tuple[str, str]:
        if stage in self.outputs:
            return STORE, "it is an output"
        if not uses:
            return STORE, "nothing reads it"
        if uses[0].reader.order is not Order.SERIAL:
            return self._part_of_reduction(stage, uses[0].reader)
        if not self.fuse:
            return STORE, "fusion is off"
        if stage.reduce_axes:
            return STORE, "it is a reduction"
        if len(uses) > 1:
            return STORE, f"{len(uses)} stages read it"
        return self._into_reader(stage, uses[0])

    def _into_reader(self, stage: Stage, use: _Use) -> tuple[str, str]:
        content = self.content[stage]
        if content.operations >= OPERATION_BUDGET:
            return STORE, f"its reader would do more than {OPERATION_BUDGET} operations"
        if use.guarded and content.operations > GUARDED_BUDGET:
            return STORE, f"{content.operations} operations would stand behind the test of an edge"
        if self._divides(stage, use):
            return STORE, "its reader would divide to find each element"
        repeats = _repeats(stage, use)
        if repeats > 1 and content.cost > CHEAP:
            return STORE, f"it would be computed {repeats} times over"
        return INLINE, "its reader takes each element as it is computed"

    def _divides(self, stage: Stage, use: _Use) -> bool:
        """Whether a reduction's innermost loop would have to divide for the addresses it reads."""
        if not use.reader.reduce_axes:
            return False
        for indices in use.indices:
            values = dict(zip(stage.axes, indices, strict=True))
            for source, inner in self.content[stage].loads:
                flat = flat_index([index.substitute(values) for index in inner], source.shape)
                if any(not isinstance(term, Axis) for term, _ in flat.terms):
                    return True
        return False

    def _part_of_reduction(self, stage: Stage, tree: Stage) -> tuple[str, str]:
        """Lanes and blocks go where they are combined, if they lie side by side and fit a stack."""
        length = tree.reduce_axes[0].extent
        last = next(iter(self.uses[stage][0].indices))[-1]
        together = last.coefficient(tree.reduce_axes[0]) == 1
        fits = length * stage.dtype.itemsize <= STACK_LIMIT
        lanes = tree.order is Order.HALVING
        rows = math.prod(tree.shape)
        if together and fits and (lanes or rows >= ROWS_PER_CORE * self.machine.cores):
            self.sites[stage] = Site(tree, None)
            return COMPUTE_AT, f"its {length} values are combined where they are computed"
        return STORE, "threads share its blocks"


def _uses(stages: Stages) -> dict[Stage, list[_Use]]:
    """For every stage its readers, in order of the program."""
    uses: dict[Stage, list[_Use]] = {}
    for reader in stages.stages:
        assert reader.body is not None
        nodes = walk(reader.body)
        guarded = any(isinstance(node, IndexTest) for node in nodes)
        mine: dict[Stage, _Use] = {}
        for load in (node for node in nodes if isinstance(node, Load)):
            use = mine.get(load.source)
            if use is None:
                use = mine[load.source] = _Use(reader, guarded)
                uses.setdefault(load.source, []).append(use)
            use.indices[load.indices] = None
    return uses


def _cost(name: str) -> int:
    if name == "select":
        return 0
    return SCALAR_OPS[name].cost if name in SCALAR_OPS else 1


def _repeats(stage: Stage, use: _Use) -> int:
    """How often each element would be computed if the stage moved into its reader.

    An element that depends on outer loops only is named in front of the inner ones.
    """
    reader = use.reader
    order = [axis for axis in (*reader.axes, *reader.reduce_axes) if axis.extent > 1]
    total = 0
    for indices in use.indices:
        used = {axis for index in indices for axis in index.axes()}
        depth = max((place + 1 for place, axis in enumerate(order) if axis in used), default=0)
        total += math.prod([axis.extent for axis in order[:depth]])
    return -(-total // max(1, math.prod(stage.shape)))
