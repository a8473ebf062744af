"""Reductions and contractions as stages: each order becomes a chain of ordinary ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.graph.ir import Atom, Eqn
from tinyfuse.graph.orders import Chain, Free, Lanes, RowBlocks, Serial
from tinyfuse.graph.orders import Order as StepOrder
from tinyfuse.graph.ranks import UNSIGNED
from tinyfuse.graph.reduce_ops import REDUCE_OPS
from tinyfuse.records import dataclass, replace
from tinyfuse.stage.expr import Accumulator, Cast, Const, Expr, Index, IndexTest, Load, Op, select
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Order, Stage
from tinyfuse.stage.merged_axes import Split, merged_extents
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
    element: Callable[[Position], Expr] | None = None  # what is accumulated, where it is a value

    @property
    def run_extents(self) -> list[int]:
        return [self.extents[axis] for axis in self.run]

    @property
    def kept_extents(self) -> list[int]:
        return [self.extents[axis] for axis in self.kept]

    @property
    def size(self) -> int:
        return prod(self.run_extents)

    @property
    def so_far(self) -> Accumulator:
        return Accumulator(self.start.dtype)

    def kept_axes(self) -> tuple[Axis, ...]:
        return self.builder.axes(tuple(self.kept_extents))

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
    if lanes == 1:
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


def _free(step: Step, size: int) -> Stage:
    """One chain, which C compilers may split; several where few results leave threads idle."""
    step = _ranked(step)
    if step.size <= size or prod(step.kept_extents) >= MANY_RESULTS:
        return _serial(step)
    return _joined(step, _free_blocks(step, size))


def _free_blocks(
    step: Step, size: int, where: Callable[[Sequence[Axis]], Expr] | None = None
) -> Stage:
    """A chain over each block; where(axes of the blocks) says in which of them."""
    kept = step.kept_axes()
    block = step.special_axis(kept, "b", "block", -(-step.size // size))
    place = step.special_axis(kept, "e", "element", size)
    body = step.link(kept, block * size + place)
    axes = _block_axes(step, block, kept)
    if where is not None:
        body = select(where(axes), body, step.so_far)
    return step.partial("blocks", axes, body, reduce_axes=(place,), init=step.start)


def _block_axes(step: Step, block: Axis, kept: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The outermost axis is the one that threads share: that of the blocks, where rows are few."""
    return (*kept, block) if prod(step.kept_extents) >= MANY_RESULTS else (block, *kept)


def _joined(step: Step, blocks: Stage) -> Stage:
    """The chain over the results of all blocks, which stay as they are."""
    axes = tuple([Axis(axis.name, axis.extent) for axis in blocks.axes])
    block, kept = _split_block(step, axes)
    body = Op(step.combine, (step.so_far, Load(blocks, axis_indices(axes))), step.start.dtype)
    return step.finish(kept, body, reduce_axes=(block,), init=step.start)


def _split_block(step: Step, axes: Sequence[Axis]) -> tuple[Axis, tuple[Axis, ...]]:
    """The opposite of `_block_axes`."""
    if prod(step.kept_extents) >= MANY_RESULTS:
        return axes[-1], tuple(axes[:-1])
    return axes[0], tuple(axes[1:])


# Results from which on each is enough for a thread.
MANY_RESULTS = 64

# How floating-point extremes are compared: where NaN ranks, and what combines the ranks.
RANKS = {
    "maximum": ("last", "maximum"),
    "minimum": ("first", "minimum"),
    "fmax": ("first", "maximum"),
    "fmin": ("last", "minimum"),
}


def _ranked(step: Step) -> Step:
    """An extreme of floating-point values, as one of their ranks; any other step as it is."""
    dtype = step.start.dtype
    if dtype.kind != "f" or step.combine not in RANKS or step.element is None:
        return step
    nan, combine = RANKS[step.combine]
    element, bits = step.element, UNSIGNED[dtype]

    def rank(position: Position) -> Expr:
        return Op(f"rank_nan_{nan}", (element(position),), bits)

    def finish(axes: tuple[Axis, ...], body: Expr, **reduction: Any) -> Stage:
        ranks = step.partial("rank", axes, body, **reduction)
        own = tuple([Axis(axis.name, axis.extent) for axis in axes])
        return step.finish(own, _of_rank(nan, Load(ranks, axis_indices(own)), dtype))

    return replace(
        step,
        accumulate=_accumulates(combine, rank),
        combine=combine,
        start=bits.type(0) if combine == "maximum" else bits.type(2 ** (8 * bits.itemsize) - 1),
        finish=finish,
        element=rank,
    )


def _of_rank(nan: str, rank: Expr, dtype: np.dtype) -> Expr:
    return Op(f"of_rank_nan_{nan}", (rank,), dtype)


def _expand(step: Step, order: StepOrder) -> Stage:
    match order:
        case Serial():
            return _serial(step)
        case Lanes():
            return _lanes(step, order.width(step.size), order.block)
        case Free(size):
            return _free(step, size)
        case RowBlocks(size) | Chain(size):
            return _blocks(step, size)


def contract(builder: Builder, eqn: Eqn) -> None:
    """The stage rule of `primitives.contract`: chains of fused multiply-adds.

    An axis that operands divide, as one into which a reshape has merged several, is split into
    what it was merged of: the order of the products is the same.
    """
    a, b = eqn.inputs
    lhs, rhs = eqn.params["lhs"], eqn.params["rhs"]
    dtype = eqn.output.dtype

    def factors(indices: Mapping[int, Affine]) -> list[Expr]:
        return [
            builder.element(atom, tuple([indices[label] for label in labels]))
            for atom, labels in ((a, lhs), (b, rhs))
        ]

    sizes = {**dict(zip(lhs, a.shape, strict=True)), **dict(zip(rhs, b.shape, strict=True))}
    # An axis of both, as of batches, is no row or column of a tile.
    apart = tuple([label for label in eqn.params["out"] if (label in lhs) != (label in rhs)])
    whole = () if builder.keeps_shape(eqn.output) else apart
    run = tuple([lhs[axis] for step in builder.steps[eqn] for axis in step.axes])
    split = Split(sizes, merged_extents(factors, sizes, (*whole, *run)))

    def accumulate(so_far: Expr, position: Position) -> Expr:
        return Op("fma", (*factors(split.merged(position)), so_far), dtype)

    steps = builder.steps[eqn]
    step = Step(
        builder,
        builder.called[eqn.output].text,
        kept=split.parts(eqn.params["out"]),
        run=split.parts(run),
        extents=split.extents,
        accumulate=accumulate,
        combine=REDUCE_OPS["sum"].combine,
        start=REDUCE_OPS["sum"].start(dtype),
        finish=partial(builder.define_split, eqn.output, split.of(eqn.params["out"])),
    )
    _expand(step, steps[0].order) if steps else _single(step)


def reduce(builder: Builder, eqn: Eqn) -> None:
    """The stage rule of `primitives.reduce`."""
    if REDUCE_OPS[eqn.params["op"]].finds_place:
        _index_of_extreme(builder, eqn)
    else:
        steps = [(step.axes, step.order) for step in builder.steps[eqn]]
        _fold(_step(builder, eqn, eqn.output.dtype), steps)


def _step(builder: Builder, eqn: Eqn, dtype: np.dtype) -> Step:
    """A reduce equation as a step over no axes yet, in the dtype it accumulates in."""
    (operand,), row = eqn.inputs, REDUCE_OPS[eqn.params["op"]]
    axes = range(len(operand.shape))
    element = _elements(builder, operand, dtype)
    return Step(
        builder,
        builder.called[eqn.output].text,
        kept=tuple([axis for axis in axes if axis not in eqn.params["axes"]]),
        run=(),
        extents=dict(enumerate(operand.shape)),
        accumulate=_accumulates(row.combine, element),
        combine=row.combine,
        start=row.start(dtype),
        finish=builder.defines(eqn.output),
        element=element,
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
        loads = _loads(part, kept)
        step = replace(step, accumulate=_accumulates(step.combine, loads), element=loads)
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


def _index_of_extreme(builder: Builder, eqn: Eqn) -> None:
    """The extreme element, then the smallest index that has it; a NaN is every extreme's."""
    step = _step(builder, eqn, eqn.inputs[0].dtype)
    if not builder.steps[eqn]:
        step.finish(step.kept_axes(), Index(ZERO))
        return
    ((run, order),) = [(found.axes, found.order) for found in builder.steps[eqn]]
    step, suffix = replace(step, run=run), eqn.params["op"].removeprefix("arg")
    of_extreme = replace(step, name=f"{step.name}_{suffix}", finish=_adds(step, suffix))
    if isinstance(order, Free) and step.size > order.block:
        _index_in_blocks(step, of_extreme, order.block)
        return
    extreme = _serial(_ranked(of_extreme) if isinstance(order, Free) else of_extreme)
    _serial(_searching(step, _loads(extreme, step.kept)))


def _searching(step: Step, best: Callable[[Position], Expr]) -> Step:
    """The smallest index along the run of what matches the best element."""
    element, (axis,) = step.element, step.run
    assert element is not None
    count = np.int64(step.size)

    def accumulate(so_far: Expr, position: Position) -> Expr:
        matches = _matches(element(position), best(position))
        found = select(matches, Index(position[axis]), Const(count))
        return Op("minimum", (so_far, found), INT64)

    return replace(step, accumulate=accumulate, combine="minimum", start=count, element=None)


def _index_in_blocks(step: Step, of_extreme: Step, size: int) -> None:
    """Looks only into the first block whose own extreme is that of all."""
    ranked = _ranked(of_extreme)
    blocks = _free_blocks(ranked, size)
    best = _loads(_joined(ranked, blocks), step.kept)
    first = _first_block(step, blocks, lambda load: _value_of(step, ranked, load), best)
    searching = _searching(step, best)

    def is_first(axes: Sequence[Axis]) -> Expr:
        block, kept = _split_block(step, axes)
        return Op("equal", (Index(affine(block)), Load(first, axis_indices(kept))), BOOL)

    _joined(searching, _free_blocks(searching, size, is_first))


def _first_block(
    step: Step, blocks: Stage, value: Callable[[Expr], Expr], best: Callable[[Position], Expr]
) -> Stage:
    """The number of the first block whose extreme matches the best one."""
    axes = tuple([Axis(axis.name, axis.extent) for axis in blocks.axes])
    block, kept = _split_block(step, axes)
    count = np.int64(block.extent)
    own, position = value(Load(blocks, axis_indices(axes))), step.kept_position(kept)
    found = select(_matches(own, best(position)), Index(affine(block)), Const(count))
    body = Op("minimum", (Accumulator(INT64), found), INT64)
    return step.partial("first", kept, body, reduce_axes=(block,), init=count)


def _value_of(step: Step, ranked: Step, load: Expr) -> Expr:
    """An element of a stage of ranks, or of values where these are compared themselves."""
    if ranked.start.dtype == step.start.dtype:
        return load
    return _of_rank(RANKS[step.combine][0], load, step.start.dtype)


def _matches(value: Expr, extreme: Expr) -> Expr:
    """Whether a value is the extreme one: equal, or NaN, for then the extreme is NaN too."""
    equal = Op("equal", (value, extreme), BOOL)
    if value.dtype.kind != "f":
        return equal
    return Op("logical_or", (equal, Op("not_equal", (value, value), BOOL)), BOOL)
