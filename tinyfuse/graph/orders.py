"""In which order a reduction combines its elements. This is the one place that decides it.

The order belongs to the meaning of a program: it follows from the simplified graph and its static
sizes, before any fusion, and never from strides, schedules or machines.

Every order starts chains from the start value (+0 for sums, 1 for products) and combines the
results of the chains by the same operation. With n the number of elements and k = 0 … n-1:

- `Serial`: one chain, k ascending.
- `Chain(block)`, `RowBlocks(block)`: chains of `block` elements each, k ascending, the last chain
  shorter; their results are combined pairwise. Up to `block` elements that is one chain.
- `Lanes(lanes, few, block)`: in each block of `block` elements, lane l is a chain over elements l,
  l + lanes, l + 2 lanes, … of the block (in the last block some lanes are shorter or stay at the
  start value); the lanes are halved: `a[l] + a[l + lanes/2]`, then `a[l] + a[l + lanes/4]`, …
  `a[0] + a[1]`; the blocks' results are combined pairwise. Fewer than `lanes` elements have `few`
  lanes; fewer than that are one chain.
- `Free(block)`: any order gives the same bits. Chains of `block` elements where few results are
  computed, so that threads can share them; else one chain.

Pairwise: the neighbours (0, 1), (2, 3), … are combined, then the results in the same way, until
one is left; an odd last one goes to the next round unchanged. (Pairwise summation: N. J. Higham,
The accuracy of floating point summation, 1993.)

Which order, where only axes of a size other than 1 count:

- contract: one step over all contracted labels (in their order in `lhs`); each link is
  `fma(a, b, chain)`, combinations are additions. `Lanes(64, 32, 1024)` for dot products and
  matrix-vector products along the last axis: where one operand's labels are among the other's, and
  the contracted labels are the last axes of both, in one order. Else `Chain(4096)`.
- sum, prod of an array that varies along no more axes than its leaves do only together: one step
  over all reduced axes, `Chain(4096)`. Precisely: where no leaf of the reduced array is indexed by
  all axes of that array. See `leaf_axes`.
- any other sum, prod: reduced axes that are neighbours form a run; each run is one step over its
  elements in C order, the last run first. The run with the array's last axis is
  `Lanes(64, 32, 1024)`, the others `RowBlocks(128)`.
- max, min, fmax, fmin, any, all, and sums and products of integers: the same runs, but `Free(1024)`
  along the last axis; of extremes and truths the others are `Serial`. Floating-point extremes are
  compared as integers (`rank_nan_last` and its like).
- argmax, argmin: one step, along the last axis `Free(128)` (beyond 1024 elements `Free(256)`,
  beyond 16384 `Free(1024)`), else `Serial`; the first index wins, the first NaN before all others.
  The extreme of each block is computed first, then the index in the first block that has the
  extreme of all.

`softmax_contract` has an order of its own, which `online_softmax` defines.

No step is left where all reduced axes have size 1: the start value is combined with the one
element (`0 + x`, `fma(a, b, 0)`; for argmax and argmin the index is 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Primitive
from tinyfuse.graph.reduce_ops import REDUCE_OPS
from tinyfuse.records import dataclass


@dataclass(frozen=True, slots=True)
class Serial:
    """One chain."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Chains of `block` elements, combined pairwise: for sums that vectorize over other axes."""

    block: int


@dataclass(frozen=True, slots=True)
class RowBlocks:
    """Chains of `block` elements, combined pairwise: for sums of whole rows."""

    block: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """Interleaved chains, halved, in blocks that are combined pairwise: for sums along rows."""

    lanes: int
    few: int
    block: int

    def width(self, length: int) -> int:
        """How many lanes so many elements have; 1 where they are one chain."""
        return next((lanes for lanes in (self.lanes, self.few) if length >= lanes), 1)


@dataclass(frozen=True, slots=True)
class Free:
    """Any order gives the same bits; `block` elements are enough work for a thread."""

    block: int


Order = Serial | Chain | RowBlocks | Lanes | Free

SERIAL = Serial()
CHAIN = Chain(4096)
ROW_BLOCKS = RowBlocks(128)
LANES = Lanes(64, 32, 1024)
FREE = Free(1024)
# Up to how many elements a place is searched for in which blocks: only one is searched twice.
PLACES = ((1024, Free(128)), (16384, Free(256)))


@dataclass(frozen=True, slots=True)
class ReductionStep:
    """Reduces `axes` (flattened in C order) at once.

    Axes count in the equation's operand as it is before all steps; of a contract's, in the first.
    """

    axes: tuple[int, ...]
    order: Order


Steps = tuple[ReductionStep, ...]


def reduction_steps(graph: Graph) -> dict[Eqn, Steps]:
    """For each reduce and contract equation, the steps one after the other."""
    leaves = leaf_axes(graph) if any(map(_rounds, graph.eqns)) else {}
    steps: dict[Eqn, Steps] = {}
    for eqn in graph.eqns:
        if eqn.primitive is p.contract:
            steps[eqn] = _contract_steps(eqn)
        elif eqn.primitive is p.reduce:
            steps[eqn] = _reduce_steps(eqn, leaves)
    return steps


def _rounds(eqn: Eqn) -> bool:
    return eqn.primitive is p.reduce and REDUCE_OPS[eqn.params["op"]].rounds


def _contract_steps(eqn: Eqn) -> Steps:
    lhs, out = eqn.params["lhs"], eqn.params["out"]
    shape = eqn.inputs[0].shape
    axes = [at for at, label in enumerate(lhs) if label not in out and shape[at] != 1]
    order = LANES if _is_along_last_axis(eqn, [lhs[axis] for axis in axes]) else CHAIN
    return (ReductionStep(tuple(axes), order),) if axes else ()


def _is_along_last_axis(eqn: Eqn, contracted: list[int]) -> bool:
    """Whether a contraction is a dot product or a matrix-vector product along contiguous rows."""
    a, b = (
        [label for label, extent in zip(labels, atom.shape, strict=True) if extent != 1]
        for labels, atom in zip((eqn.params["lhs"], eqn.params["rhs"]), eqn.inputs, strict=True)
    )
    if not (set(a) <= set(b) or set(b) <= set(a)):
        return False
    return a[len(a) - len(contracted) :] == contracted == b[len(b) - len(contracted) :]


def _reduce_steps(eqn: Eqn, leaves: Mapping[Atom, Masks]) -> Steps:
    operand, op = eqn.inputs[0], REDUCE_OPS[eqn.params["op"]]
    runs = _runs(operand.shape, eqn.params["axes"])
    if not runs:
        return ()
    last = max(axis for axis, extent in enumerate(operand.shape) if extent != 1)
    if op.finds_place:
        return (ReductionStep(runs[0], _place_order(operand.shape, runs[0], last)),)
    if op.rounds and _long_axes(operand.shape) not in leaves.get(operand, ()):
        return (ReductionStep(tuple([axis for run in runs for axis in run]), CHAIN),)
    along_rows = LANES if op.depends_on_order(np.dtype(eqn.params["dtype"])) else FREE
    of_rows = ROW_BLOCKS if op.rounds else SERIAL
    return tuple(
        ReductionStep(run, along_rows if last in run else of_rows) for run in reversed(runs)
    )


def _place_order(shape: tuple[int, ...], run: tuple[int, ...], last: int) -> Order:
    if last not in run:
        return SERIAL
    length = math.prod([shape[axis] for axis in run])
    return next((order for longest, order in PLACES if length <= longest), FREE)


def _runs(shape: tuple[int, ...], reduced: Sequence[int]) -> list[tuple[int, ...]]:
    """Reduced axes of a size other than 1, grouped where no other such axis stands between."""
    runs: list[list[int]] = []
    joins = False
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if axis not in reduced:
            joins = False
        elif joins:
            runs[-1].append(axis)
        else:
            runs.append([axis])
            joins = True
    return [tuple(run) for run in runs]


# The axes that an element of an array is read with, as a bit mask: one for each leaf.
Mask = int
Masks = tuple[Mask, ...]


def leaf_axes(graph: Graph) -> dict[Atom, Masks]:
    """For each array, by which of its axes its leaves are indexed.

    A leaf is an input of the graph or the output of a reduce, contract, iota, gather, scatter,
    cumulative, sort, argsort, loop, while or cond; it is indexed by all its axes. All other
    equations compute an element from elements of their inputs, and so hand on the leaves of these:

    - elementwise and cast at the same place; transpose, slice, broadcast where numpy says; an axis
      that is new or was stretched does not index;
    - reshape: the axes of both shapes fall into the finest groups of neighbours with equal sizes;
      an axis indexes where its group has an axis that did;
    - windows: where an axis did index, its position and its window axis do;
    - pad along an axis, concat along its axis, update along an axis that its values do not fill:
      this axis indexes all leaves, for it decides what is read.

    Axes of size 1 never index. Only masks that no other mask contains are kept: it is the largest
    that decide, and no equation turns a smaller into a larger one. A `Literal` has no leaves.
    """
    leaves: dict[Atom, Masks] = {var: (_long_axes(var.shape),) for var in graph.inputs}
    for eqn in graph.eqns:
        rule = LEAF_RULES.get(eqn.primitive)
        if rule is None:
            leaves.update({output: (_long_axes(output.shape),) for output in eqn.outputs})
        else:
            leaves[eqn.output] = rule(eqn, [leaves.get(atom, ()) for atom in eqn.inputs])
    return leaves


def _long_axes(shape: tuple[int, ...]) -> Mask:
    return sum([1 << axis for axis, extent in enumerate(shape) if extent != 1])


def _largest(masks: Sequence[Mask]) -> Masks:
    distinct = tuple(dict.fromkeys(masks))
    if len(distinct) < 2:
        return distinct
    return tuple(
        mask for mask in distinct if not any(mask & other == mask != other for other in distinct)
    )


def _joined(eqn: Eqn, masks: list[Masks]) -> Masks:
    first = masks[0]
    if all(other is first or not other for other in masks):
        return first
    return _largest([mask for operand in masks for mask in operand])


def _moved(masks: Masks, targets: Sequence[Mask]) -> Masks:
    """Masks with each axis replaced by the axes that it becomes."""
    return _largest(
        [
            _union([target for axis, target in enumerate(targets) if mask >> axis & 1])
            for mask in masks
        ]
    )


def _union(masks: Sequence[Mask]) -> Mask:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _broadcast(eqn: Eqn, masks: list[Masks]) -> Masks:
    new = len(eqn.output.shape) - len(eqn.inputs[0].shape)
    return tuple([mask << new for mask in masks[0]])


def _transpose(eqn: Eqn, masks: list[Masks]) -> Masks:
    axes = eqn.params["axes"]
    return _moved(masks[0], [1 << axes.index(axis) for axis in range(len(axes))])


def _slice(eqn: Eqn, masks: list[Masks]) -> Masks:
    long_axes = _long_axes(eqn.output.shape)
    return _largest([mask & long_axes for mask in masks[0]])


def _windows(eqn: Eqn, masks: list[Masks]) -> Masks:
    rank, long_axes = len(eqn.inputs[0].shape), _long_axes(eqn.output.shape)
    targets = [1 << axis for axis in range(rank)]
    for at, axis in enumerate(eqn.params["axes"]):
        targets[axis] |= 1 << rank + at
    return _moved(masks[0], [target & long_axes for target in targets])


def _reshape(eqn: Eqn, masks: list[Masks]) -> Masks:
    shape = eqn.inputs[0].shape
    targets = [0] * len(shape)
    for old, new in axis_groups(shape, eqn.output.shape):
        for axis in old:
            targets[axis] = _union([1 << at for at in new if eqn.output.shape[at] != 1])
    return _moved(masks[0], targets)


def axis_groups(
    old: tuple[int, ...], new: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The finest partition of the axes of two shapes of one size into neighbours of equal size.

    Each group holds an axis that is not of size 1; axes of size 1 join the group that comes before
    them (or stand in none). Where the size is 0, all axes are one group.
    """
    if 0 in old:
        return [(tuple(range(len(old))), tuple(range(len(new))))]
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = j = 0
    while True:
        i, j = _next_long(old, i), _next_long(new, j)
        if i == len(old):
            return groups
        first = i, j
        size_i, size_j, i, j = old[i], new[j], i + 1, j + 1
        while size_i != size_j:
            if size_i < size_j:
                size_i, i = size_i * old[i], i + 1
            else:
                size_j, j = size_j * new[j], j + 1
        groups.append((tuple(range(first[0], i)), tuple(range(first[1], j))))


def _next_long(shape: tuple[int, ...], axis: int) -> int:
    while axis < len(shape) and shape[axis] == 1:
        axis += 1
    return axis


def _pad(eqn: Eqn, masks: list[Masks]) -> Masks:
    before, after = eqn.params["before"], eqn.params["after"]
    deciding = _union([1 << at for at, n in enumerate(before) if n + after[at]])
    deciding &= _long_axes(eqn.output.shape)
    return _largest([mask | deciding for operand in masks for mask in operand])


def _concat(eqn: Eqn, masks: list[Masks]) -> Masks:
    deciding = 1 << eqn.params["axis"] & _long_axes(eqn.output.shape)
    return _largest([mask | deciding for operand in masks for mask in operand])


def _update(eqn: Eqn, masks: list[Masks]) -> Masks:
    """Where the values stand decides along every axis that they do not fill."""
    shape, values = eqn.output.shape, eqn.inputs[1].shape
    deciding = _union([1 << at for at, n in enumerate(values) if n != shape[at]])
    return _largest([mask | deciding for operand in masks for mask in operand])


LEAF_RULES: dict[Primitive, Callable[[Eqn, list[Masks]], Masks]] = {
    p.elementwise: _joined,
    p.cast: _joined,
    p.broadcast: _broadcast,
    p.reshape: _reshape,
    p.transpose: _transpose,
    p.slice_: _slice,
    p.windows: _windows,
    p.pad: _pad,
    p.concat: _concat,
    p.update: _update,
}
