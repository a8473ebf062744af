"""Stages: arrays defined element by element, independent of loops, storage and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tinyfuse.errors import ScheduleError
from tinyfuse.records import dataclass, field, replace
from tinyfuse.stage.expr import Expr, Load, loads, rewrite
from tinyfuse.stage.index import Axis, IndexLike, affine

if TYPE_CHECKING:
    from tinyfuse.source import Source
    from tinyfuse.stage.copies import Change, Origin


class Order(Enum):
    """How the elements along a stage's reduce axis are combined.

    SERIAL: a chain from `init`, indices ascending, the last reduce axis fastest.
    HALVING: `a[l] + a[l + n/2]` for n, n/2 … 2, with n a power of two.
    PAIRWISE: adjacent pairs, pairs of pairs, …; what has no partner waits for the next round.
    The tree orders have one reduce axis; their body combines the accumulator with one load of a
    stage that only they read, over the whole axis.
    """

    SERIAL = "serial"
    HALVING = "halving"
    PAIRWISE = "pairwise"


@dataclass(frozen=True, eq=False, slots=True)
class Scatter:
    """Where a stage puts what it computes, one element after the other.

    start: the stage's elements before that, in terms of its axes. targets: int64 positions along
    its first axes, in terms of its reduce axes. The body is in terms of the reduce axes and of the
    axes without a target.
    """

    start: Expr
    targets: tuple[Expr, ...]


class Sort(Enum):
    """What a stage whose rows are sorted holds of a row of its body: along its last axis, in
    ascending order, equal elements in their order, NaN last.
    """

    ELEMENTS = "sorted"
    POSITIONS = "positions of sorted"  # int64, whatever the dtype of the body


@dataclass(frozen=True, eq=False)
class Stage:
    """`name[axes] = body`, or with reduce axes the combination of `body` over them, from `init`.

    With a scan axis each element is computed after the one before it along that axis, which is the
    value so far in the body; at 0 the body does without. An input has no body. The meaning of a
    stage is all here: its scalar operations, each rounded to its dtype, and the order of its
    reduction. A schedule cannot change it.
    """

    name: str  # unique among the stages of a program, a C identifier
    axes: tuple[Axis, ...]
    dtype: np.dtype
    body: Expr | None = None
    reduce_axes: tuple[Axis, ...] = ()
    init: np.generic | None = None  # where a SERIAL reduction starts
    order: Order = Order.SERIAL
    sources: tuple[Source, ...] = ()
    named: bool = False  # whether the name is the user's variable
    scatter: Scatter | None = None
    scan: Axis | None = None  # one of its axes
    sort: Sort | None = None
    constant: bool = False  # whether it is an input with the same elements at every call

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple([axis.extent for axis in self.axes])

    @property
    def is_input(self) -> bool:
        return self.body is None

    def axis(self, name: str) -> Axis:
        """The axis of this name, reduced or not. Raises ScheduleError, which lists the names."""
        axes = (*self.axes, *self.reduce_axes)
        for axis in axes:
            if axis.name == name:
                return axis
        names = ", ".join([axis.name for axis in axes]) or "none"
        raise ScheduleError(f"{self.name} has no axis {name}; its axes: {names}")

    def __getitem__(self, indices: tuple[IndexLike, ...]) -> Load:
        return Load(self, tuple(affine(index) for index in indices))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The body, and what else it computes."""
        if self.body is None:
            return ()
        scatter = self.scatter
        return (scatter.start, *scatter.targets, self.body) if scatter else (self.body,)

    @property
    def updated_axes(self) -> tuple[Axis, ...]:
        """The axes that the body is in terms of."""
        return self.axes[len(self.scatter.targets) :] if self.scatter else self.axes

    @property
    def row_axis(self) -> Axis | None:
        """The axis that a scan goes along or a sort puts in order: as a whole or not at all."""
        return self.axes[-1] if self.sort else self.scan

    def reads(self) -> tuple[Load, ...]:
        """All loads, in order of first use."""
        return self._loads

    @cached_property
    def _loads(self) -> tuple[Load, ...]:
        return tuple([load for expression in self.expressions for load in loads(expression)])

    def __repr__(self) -> str:
        return f"<stage {self.name}>"


@dataclass(frozen=True, eq=False, slots=True)
class Stages:
    """A program: stages in an order where producers stand before consumers.

    outputs: for each output of the graph, the stage that holds it. origin: the program that this
    one was made of, where it has copies for a schedule. derived: those that were made of this one.
    """

    name: str
    inputs: tuple[Stage, ...]
    stages: tuple[Stage, ...]  # all but the inputs
    outputs: tuple[Stage, ...]
    origin: Origin | None = None
    derived: dict[Change, Stages] = field(default_factory=dict)


def rewritten(
    stage: Stage, leaf: Callable[[Expr], Expr], call: Callable[[Expr], Expr] | None = None
) -> Stage:
    """A stage with all its expressions rewritten; itself where that changes none."""
    assert stage.body is not None
    body, scatter = rewrite(stage.body, leaf, call), stage.scatter
    if scatter:
        start = rewrite(scatter.start, leaf, call)
        targets = tuple([rewrite(target, leaf, call) for target in scatter.targets])
        if start is not scatter.start or targets != scatter.targets:
            scatter = Scatter(start, targets)
    if body is stage.body and scatter is stage.scatter:
        return stage
    return replace(stage, body=body, scatter=scatter)


def sources_of(stages: Iterable[Stage]) -> tuple[Source, ...]:
    """The places in the user's code that stages come from, each once."""
    return tuple(dict.fromkeys([source for stage in stages for source in stage.sources]))
