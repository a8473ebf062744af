"""Programs with loops: parts without any, built into stages, and the loops around them.

Parts are cut where a loop or a choice stands, and before what is put into an array that the part
has read: so it is put there in place. Between parts values lie in arrays. An array holds one value
after the other: what a loop carries is in the same array before, during and after the loop.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tinyfuse.records import dataclass
from tinyfuse.stage.ir import Stages


@dataclass(eq=False, slots=True)
class Array:
    """Memory for `size` elements that several parts use. same: the array that it is one with.
    constant: whether it is an input with the same elements at every call.
    """

    dtype: np.dtype
    size: int
    name: str = ""
    same: Array | None = None
    constant: bool = False

    def itself(self) -> Array:
        array = self
        while array.same is not None:
            array = array.same
        return array


@dataclass(frozen=True, eq=False, slots=True)
class Segment:
    """Stages, with the arrays that hold their inputs and their outputs."""

    stages: Stages
    reads: tuple[Array, ...]
    writes: tuple[Array, ...]


# Which array holds from now on what another one holds: of each cycle all, so that none gets lost.
Moves = tuple[tuple[Array, Array], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Steps one after the other, then arrays that are exchanged."""

    steps: tuple[Step, ...]
    moves: Moves = ()


@dataclass(frozen=True, eq=False, slots=True)
class Repeat:
    """Turns of a block: `extent` of them, or as many as there are while `test` holds true.

    turn: holds the number of the turn. count: holds how many turns there are, at most `extent`.
    """

    body: Block
    extent: int | None = None
    turn: Array | None = None
    test: Array | None = None
    count: Array | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """The block of the number that `index` holds, or the nearest."""

    index: Array
    branches: tuple[Block, ...]


Step = Segment | Repeat | Choice


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """A block with the arrays that it takes and gives; the stages of the inputs."""

    name: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    block: Block

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All parts, in the order of their text."""
        return tuple(_segments(self.block))

    @property
    def alone(self) -> Stages | None:
        """The stages of a program without loops."""
        steps = self.block.steps
        return steps[0].stages if len(steps) == 1 and isinstance(steps[0], Segment) else None


def _segments(block: Block) -> Iterable[Segment]:
    for step in block.steps:
        if isinstance(step, Segment):
            yield step
        elif isinstance(step, Repeat):
            yield from _segments(step.body)
        else:
            for branch in step.branches:
                yield from _segments(branch)


def all_stages(program: Program) -> Stages:
    """The stages of all parts together, to be looked at: each reads others by name."""
    if program.alone is not None:
        return program.alone
    parts = program.segments
    given = {array.itself() for array in program.inputs}
    taken = {array.itself() for array in program.outputs}
    inputs = {
        stage.name: stage
        for part in parts
        for stage, array in zip(part.stages.inputs, part.reads, strict=True)
        if array.itself() in given
    }
    outputs = {
        stage.name: stage
        for part in parts
        for stage, array in zip(part.stages.outputs, part.writes, strict=True)
        if array.itself() in taken
    }
    stages = tuple([stage for part in parts for stage in part.stages.stages])
    return Stages(program.name, tuple(inputs.values()), stages, tuple(outputs.values()))
