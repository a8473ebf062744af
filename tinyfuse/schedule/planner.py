"""The default schedule: what is elementwise or an index map moves into its reader, the rest is stored."""

from __future__ import annotations

from dataclasses import dataclass, field

from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.machine import Machine
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.loop_order import with_loops
from tinyfuse.schedule.schedule import Schedule, Site
from tinyfuse.stage.expr import Expr, IndexTest, Load, Op, operands, walk
from tinyfuse.stage.index import Affine, Axis
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

INLINE, STORE, COMPUTE_AT = "inline", "store", "compute_at"


def default_schedule(
    stages: Stages, machine: Machine, fuse: bool = True
) -> tuple[Schedule, tuple[Decision, ...]]:
    """The schedule of a program and the decision on each stage, in the order of the program.

    fuse: False stores every stage; only the parts of one reduction stay together.
    """
    planner = _Planner(stages, machine, fuse)
    decisions = tuple(planner.decide(stage) for stage in stages.stages)
    return planner.schedule(), decisions


@dataclass(frozen=True, slots=True)
class _Use:
    """How often one stage reads another, and where."""

    reader: Stage
    indices: dict[tuple[Affine, ...], None] = field(default_factory=dict)
    guarded: bool = False


class _Planner:
    def __init__(self, stages: Stages, machine: Machine, fuse: bool):
        self.stages, self.machine, self.fuse = stages, machine, fuse
        self.outputs = set(stages.outputs)
        self.uses = _uses(stages)
        self.inlined: dict[Stage, None] = {}
        self.sites: dict[Stage, Site] = {}
        self.operations: dict[Stage, int] = {}  # of the body, with what is inlined into it

    def decide(self, stage: Stage) -> Decision:
        """Decide on one stage; its producers are decided already."""
        self.operations[stage] = _operations(stage) + sum(
            self.operations[producer] for producer in _producers(stage) if producer in self.inlined
        )
        uses = self.uses.get(stage, [])
        action, reason = self._action(stage, uses)
        if action == INLINE:
            self.inlined[stage] = None
        return Decision(stage.name, tuple(use.reader.name for use in uses), action, reason)

    def _action(self, stage: Stage, uses: list[_Use]) -> tuple[str, str]:
        if stage in self.outputs:
            return STORE, "it is an output"
        if uses and uses[0].reader.order is not Order.SERIAL:
            return self._part_of_reduction(stage, uses[0].reader)
        if not self.fuse:
            return STORE, "fusion is off"
        if stage.reduce_axes:
            return STORE, "it is a reduction"
        if len(uses) > 1:
            return STORE, f"{len(uses)} stages read it"
        return self._into_reader(stage, uses[0])

    def _into_reader(self, stage: Stage, use: _Use) -> tuple[str, str]:
        reader, total = use.reader, self.operations[stage]
        if total + _operations(reader) > OPERATION_BUDGET:
            return STORE, f"its reader would do more than {OPERATION_BUDGET} operations"
        if use.guarded and total > GUARDED_BUDGET:
            return STORE, f"{total} operations behind the test of an edge"
        if _divides(use) and (reader.reduce_axes or not stage.is_input):
            if any(_reads_elements(stage)):
                return STORE, "its reader would divide to find each element"
        repeats = _repeats(stage, use)
        cost = _cost(stage)
        if repeats > 1 and cost > CHEAP:
            return STORE, f"it would be computed {repeats} times over"
        return INLINE, "its reader takes each element as it is computed"

    def _part_of_reduction(self, stage: Stage, tree: Stage) -> tuple[str, str]:
        """Lanes and blocks of a reduction go where they are combined, if a thread's stack holds them."""
        outer = [axis for axis in tree.axes if axis.extent > 1]
        length = tree.reduce_axes[0].extent
        lanes = tree.order is Order.HALVING
        rows = _product(tree.axes)
        last = tree.axes[-1] if tree.axes else None
        contiguous = _tree_axis_is_last(tree)
        fits = length * stage.dtype.itemsize <= STACK_LIMIT
        if contiguous and fits and (lanes or rows >= 2 * self.machine.cores):
            self.sites[stage] = Site(tree, None)
            return COMPUTE_AT, f"its {length} values are combined at once" if outer or last else "lanes"
        return STORE, "threads share its blocks"

    def schedule(self) -> Schedule:
        schedule = Schedule(self.stages)
        for stage in self.inlined:
            schedule = schedule.inline(stage)
        return with_loops(schedule, self.sites, self.machine)


def _uses(stages: Stages) -> dict[Stage, list[_Use]]:
    """For every stage its readers, in order of the program."""
    uses: dict[Stage, list[_Use]] = {}
    for reader in stages.stages:
        guarded = _guarded(reader.body)
        mine: dict[Stage, _Use] = {}
        for load in reader.reads():
            if load.source not in mine:
                mine[load.source] = _Use(reader, guarded=guarded)
                uses.setdefault(load.source, []).append(mine[load.source])
            mine[load.source].indices[load.indices] = None
    return uses


def _producers(stage: Stage) -> dict[Stage, None]:
    return {load.source: None for load in stage.reads()}


def _operations(stage: Stage) -> int:
    assert stage.body is not None
    return sum(bool(operands(node)) for node in walk(stage.body))


def _cost(stage: Stage) -> int:
    assert stage.body is not None
    names = [node.name for node in walk(stage.body) if isinstance(node, Op)]
    return sum(SCALAR_OPS[name].cost if name in SCALAR_OPS else 1 for name in names if name != "select")


def _guarded(body: Expr | None) -> bool:
    return body is not None and any(isinstance(node, IndexTest) for node in walk(body))


def _divides(use: _Use) -> bool:
    return any(
        not isinstance(term, Axis) for indices in use.indices for index in indices for term, _ in index.terms
    )


def _reads_elements(stage: Stage) -> list[Load]:
    return [load for load in stage.reads() if load.indices]


def _repeats(stage: Stage, use: _Use) -> int:
    """How often each element would be computed if the stage moved into its reader.

    An element that depends on outer loops only is named in front of the inner ones.
    """
    size = max(1, _product(stage.axes))
    reader = use.reader
    order = [axis for axis in (*reader.axes, *reader.reduce_axes) if axis.extent > 1]
    total = 0
    for indices in use.indices:
        used = {axis for index in indices for axis in index.axes()}
        depth = max((place + 1 for place, axis in enumerate(order) if axis in used), default=0)
        total += _product(order[:depth])
    return -(-total // size)


def _product(axes: tuple[Axis, ...] | list[Axis]) -> int:
    size = 1
    for axis in axes:
        size *= axis.extent
    return size


def _tree_axis_is_last(tree: Stage) -> bool:
    """Whether what the tree combines lies side by side, so that it can stay inside the kernel."""
    load = tree.reads()[0]
    return load.indices[-1].coefficient(tree.reduce_axes[0]) == 1
