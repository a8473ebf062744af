"""Reductions and contractions as stages: each order becomes a chain of ordinary ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph.ir import Atom, Eqn
from tinyfuse.graph.numerics import COMBINATIONS, start_value
from tinyfuse.graph.orders import LANES, SERIAL, Chain, Lanes, RowBlocks, Serial
from tinyfuse.graph.orders import Order as StepOrder
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import Accumulator, Cast, Const, Expr, Index, IndexTest, Load, Op, select
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Order, Stage
from tinyfuse.stage.views import ZERO, axis_indices, split_index

if TYPE_CHECKING:
    from tinyfuse.stage.build import Builder

# For some of an array's axes the index along it; along the others it has one element.
Position = Mapping[int, Affine]
# (value so far, position) -> the value with the element at that position.
Accumulate = Callable[[Expr, Position], Expr]


@dataclass(frozen=True, slots=True)
class Step:
    """One reduction over a run of axes, which are flattened in C order.

    combine: the scalar operation that joins partial results. finish: adds the stage of the result,
    from the axes it keeps, its body, and the fields of its reduction.
    """

    builder: Builder
    name: str  # of the result; helper stages are called so too, with a suffix
    kept: tuple[int, ...]
    run: tuple[int, ...]
    extents: Mapping[int, int]
    accumulate: Accumulate
    combine: str
    start: np.generic
    finish: Callable[..., Stage]

    @property
    def run_extents(self) -> list[int]:
        return [self.extents[axis] for axis in self.run]

    @property
    def size(self) -> int:
        return prod(self.run_extents)

    @property
    def so_far(self) -> Accumulator:
        return Accumulator(self.start.dtype)

    def kept_axes(self) -> tuple[Axis, ...]:
        return self.builder.axes(tuple([self.extents[axis] for axis in self.kept]))

    def kept_position(self, axes: Sequence[Axis]) -> Position:
        return dict(zip(self.kept, axis_indices(axes), strict=True))

    def special_axis(self, kept: Sequence[Axis], letter: str, word: str, extent: int) -> Axis:
        name = self.builder.axis_names.special(letter, word, [axis.name for axis in kept])
        return Axis(name, extent)

    def link(self, kept: Sequence[Axis], index: Affine) -> Expr:
        """The value so far with the run's element at a flat index, where there is one."""
        parts = split_index(index, self.run_extents)
        position = {**self.kept_position(kept), **dict(zip(self.run, parts, strict=True))}
        inside = IndexTest(index, None, self.size)
        return select(inside, self.accumulate(self.so_far, position), self.so_far)

    def partial(self, suffix: str, axes: tuple[Axis, ...], body: Expr, **reduction: Any) -> Stage:
        """Add a stage that helps to compute the result."""
        name = self.builder.names.fresh(f"{self.name}_{suffix}")
        return self.builder.add(name, axes, body, **reduction)


def _single(step: Step) -> Stage:
    """The start value, combined with the only element."""
    kept = step.kept_axes()
    return step.finish(kept, step.accumulate(Const(step.start), step.kept_position(kept)))


def _serial(step: Step) -> Stage:
    kept = step.kept_axes()
    names = step.builder.axis_names.reduced([axis.name for axis in kept], len(step.run))
    run = tuple([Axis(name, extent) for name, extent in zip(names, step.run_extents, strict=True)])
    position = dict(zip(step.kept + step.run, axis_indices(kept + run), strict=True))
    body = step.accumulate(step.so_far, position)
    return step.finish(kept, body, reduce_axes=run, init=step.start)


def _blocks(step: Step, size: int) -> Stage:
    """Chains over blocks, combined pairwise. Blocks are the outer axis: rows stay contiguous."""
    if step.size <= size:
        return _serial(step)
    kept = step.kept_axes()
    block = step.special_axis(kept, "b", "block", -(-step.size // size))
    row = step.special_axis(kept, "r", "row", size)
    body = step.link(kept, block * size + row)
    chains = step.partial("blocks", (block, *kept), body, reduce_axes=(row,), init=step.start)
    return _tree(step, chains, 0, Order.PAIRWISE, step.finish)


def _lanes(step: Step, lanes: int, size: int) -> Stage:
    """Interleaved chains, halved; in blocks, combined pairwise, where there are several."""
    if step.size < lanes:
        return _serial(step)
    kept = step.kept_axes()
    lane = step.special_axis(kept, "l", "lane", lanes)
    turn = step.special_axis(kept, "s", "step", -(-min(step.size, size) // lanes))
    index = axis_indices((turn,))[0] * lanes + lane
    chains = {"reduce_axes": (turn,), "init": step.start}
    if step.size <= size:
        first = step.partial("lanes", (*kept, lane), step.link(kept, index), **chains)
        return _tree(step, first, -1, Order.HALVING, step.finish)
    block = step.special_axis(kept, "b", "block", -(-step.size // size))
    body = step.link(kept, block * size + index)
    first = step.partial("lanes", (*kept, block, lane), body, **chains)
    halved = _tree(step, first, -1, Order.HALVING, lambda *a, **r: step.partial("blocks", *a, **r))
    return _tree(step, halved, -1, Order.PAIRWISE, step.finish)


def _tree(step: Step, partial: Stage, at: int, order: Order, finish: Callable[..., Stage]) -> Stage:
    """The stage that combines all of another one along its axis `at`."""
    axes = tuple([Axis(axis.name, axis.extent) for axis in partial.axes])
    body = Op(step.combine, (step.so_far, Load(partial, axis_indices(axes))), step.start.dtype)
    kept = tuple([axis for axis in axes if axis is not axes[at]])
    return finish(kept, body, reduce_axes=(axes[at],), order=order)


def _expand(step: Step, order: StepOrder) -> Stage:
    match order:
        case Serial():
            return _serial(step)
        case Lanes(lanes, size):
            return _lanes(step, lanes, size)
        case RowBlocks(size) | Chain(size):
            return _blocks(step, size)


def contract(builder: Builder, eqn: Eqn) -> None:
    """The stage rule of `primitives.contract`: chains of fused multiply-adds."""
    a, b = eqn.inputs
    lhs, rhs = eqn.params["lhs"], eqn.params["rhs"]
    dtype = eqn.output.dtype

    def accumulate(so_far: Expr, position: Position) -> Expr:
        factors = [
            builder.element(atom, tuple([position.get(label, ZERO) for label in labels]))
            for atom, labels in ((a, lhs), (b, rhs))
        ]
        return Op("fma", (*factors, so_far), dtype)

    steps = builder.steps[eqn]
    step = Step(
        builder,
        builder.called[eqn.output].text,
        kept=tuple(eqn.params["out"]),
        run=tuple([lhs[axis] for step in steps for axis in step.axes]),
        extents={**dict(zip(lhs, a.shape, strict=True)), **dict(zip(rhs, b.shape, strict=True))},
        accumulate=accumulate,
        combine=COMBINATIONS["sum"],
        start=start_value("sum", dtype),
        finish=builder.defines(eqn.output),
    )
    _expand(step, steps[0].order) if steps else _single(step)


def reduce(builder: Builder, eqn: Eqn) -> None:
    """The stage rule of `primitives.reduce`."""
    if eqn.params["op"] in EXTREMES:
        _index_of_extreme(builder, eqn)
    else:
        steps = [(step.axes, step.order) for step in builder.steps[eqn]]
        _fold(_step(builder, eqn, eqn.params["op"], eqn.output.dtype), steps)


def _step(builder: Builder, eqn: Eqn, op: str, dtype: np.dtype) -> Step:
    """A reduce equation as a step over no axes yet, in the dtype it accumulates in."""
    (operand,) = eqn.inputs
    axes = range(len(operand.shape))
    return Step(
        builder,
        builder.called[eqn.output].text,
        kept=tuple([axis for axis in axes if axis not in eqn.params["axes"]]),
        run=(),
        extents=dict(enumerate(operand.shape)),
        accumulate=_accumulates(COMBINATIONS[op], _elements(builder, operand, dtype)),
        combine=COMBINATIONS[op],
        start=start_value(op, dtype),
        finish=builder.defines(eqn.output),
    )


def _fold(step: Step, runs: Sequence[tuple[tuple[int, ...], StepOrder]]) -> Stage:
    """The stages that reduce one run of axes after the other, each in its order."""
    if not runs:
        return _single(step)
    *first, (last, last_order) = runs
    for number, (run, order) in enumerate(first):
        still = [axis for later, _ in runs[number + 1 :] for axis in later]
        kept = tuple(sorted([*step.kept, *still]))
        part = _expand(replace(step, kept=kept, run=run, finish=_adds(step, "part")), order)
        step = replace(step, accumulate=_accumulates(step.combine, _loads(part, kept)))
    return _expand(replace(step, run=last), last_order)


def _adds(step: Step, suffix: str) -> Callable[..., Stage]:
    return lambda axes, body, **reduction: step.partial(suffix, axes, body, **reduction)


def _accumulates(combine: str, element: Callable[[Position], Expr]) -> Accumulate:
    def accumulate(so_far: Expr, position: Position) -> Expr:
        return Op(combine, (so_far, element(position)), so_far.dtype)

    return accumulate


def _elements(builder: Builder, atom: Atom, dtype: np.dtype) -> Callable[[Position], Expr]:
    """The element of an atom at a position, in another dtype."""

    def element(position: Position) -> Expr:
        indices = tuple([position.get(axis, ZERO) for axis in range(len(atom.shape))])
        value = builder.element(atom, indices)
        return value if value.dtype == dtype else Cast(value, dtype)

    return element


def _loads(stage: Stage, axes: Sequence[int]) -> Callable[[Position], Expr]:
    return lambda position: Load(stage, tuple([position.get(axis, ZERO) for axis in axes]))


# The reduction that finds what argmax and argmin give the index of.
EXTREMES = {"argmax": "max", "argmin": "min"}


def _index_of_extreme(builder: Builder, eqn: Eqn) -> None:
    """The extreme element, then the smallest index that has it; a NaN is every extreme's."""
    step = _step(builder, eqn, EXTREMES[eqn.params["op"]], eqn.inputs[0].dtype)
    if not builder.steps[eqn]:
        step.finish(step.kept_axes(), Index(ZERO))
        return
    (axis,) = eqn.params["axes"]
    is_last = all(extent == 1 for at, extent in step.extents.items() if at > axis)
    order = LANES if is_last else SERIAL
    suffix = EXTREMES[eqn.params["op"]]
    of_extreme = replace(step, name=f"{step.name}_{suffix}", finish=_adds(step, suffix))
    extreme = _fold(of_extreme, [((axis,), order)])
    element = _elements(builder, eqn.inputs[0], step.start.dtype)
    count = np.int64(step.extents[axis])

    def accumulate(so_far: Expr, position: Position) -> Expr:
        value, best = element(position), _loads(extreme, step.kept)(position)
        found = select(_matches(value, best), Index(position[axis]), Const(count))
        return Op("minimum", (so_far, found), INT64)

    found = replace(step, run=(axis,), accumulate=accumulate, combine="minimum", start=count)
    _expand(found, order)


def _matches(value: Expr, extreme: Expr) -> Expr:
    """Whether a value is the extreme one: equal, or NaN, for then the extreme is NaN too."""
    equal = Op("equal", (value, extreme), BOOL)
    if value.dtype.kind != "f":
        return equal
    return Op("logical_or", (equal, Op("not_equal", (value, value), BOOL)), BOOL)
