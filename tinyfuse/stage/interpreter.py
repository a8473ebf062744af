"""The slow, obvious meaning of stages: all elements of one stage after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyfuse.graph.numerics import Array, OrderedNumerics, halving, pairwise
from tinyfuse.stage.expr import (
    Accumulator,
    Cast,
    Const,
    Expr,
    Index,
    IndexTest,
    Load,
    Op,
    substitute,
    walk,
)
from tinyfuse.stage.index import Affine, Axis, Quotient
from tinyfuse.stage.ir import Order, Scatter, Sort, Stage, Stages
from tinyfuse.stage.program import Array as Held
from tinyfuse.stage.program import Block, Choice, Moves, Program, Repeat, Segment

# The value of each axis, as arrays that broadcast against one another.
Grid = Mapping[Axis, Array]


def interpret_stages(
    stages: Stages, arrays: Sequence[np.ndarray], numerics: OrderedNumerics
) -> list[np.ndarray]:
    """The outputs of a program, for one array of the right type for each of its inputs."""
    known: dict[Stage, np.ndarray] = dict(zip(stages.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for stage in stages.stages:
            known[stage] = _StageRun(stage, known, numerics).result()
    return [known[stage] for stage in stages.outputs]


def interpret_program(
    program: Program, arrays: Sequence[np.ndarray], numerics: OrderedNumerics
) -> list[np.ndarray]:
    """The outputs of a program with loops, for one array for each of its inputs."""
    memory = {array.itself(): value for array, value in zip(program.inputs, arrays, strict=True)}
    _run_block(program.block, memory, numerics)
    return [memory[array.itself()] for array in program.outputs]


def _run_block(block: Block, memory: dict[Held, np.ndarray], numerics: OrderedNumerics) -> None:
    for step in block.steps:
        if isinstance(step, Segment):
            read = [memory[array.itself()] for array in step.reads]
            made = interpret_stages(step.stages, read, numerics)
            memory.update(zip([array.itself() for array in step.writes], made, strict=True))
        elif isinstance(step, Choice):
            chosen = int(memory[step.index.itself()])
            _run_block(step.branches[min(max(chosen, 0), len(step.branches) - 1)], memory, numerics)
        else:
            _repeat(step, memory, numerics)
    memory.update({to.itself(): memory[source.itself()] for to, source in _held(block, memory)})


def _held(block: Block, memory: Mapping[Held, np.ndarray]) -> Moves:
    """The moves of what has a value: of exchanged arrays one can have none yet."""
    return tuple([move for move in block.moves if move[1].itself() in memory])


def _repeat(step: Repeat, memory: dict[Held, np.ndarray], numerics: OrderedNumerics) -> None:
    turn = 0
    count = memory[step.count.itself()] if step.count else step.extent or 0
    while memory[step.test.itself()] if step.test else turn < count:
        if step.turn:
            memory[step.turn.itself()] = np.array(turn)
        _run_block(step.body, memory, numerics)
        turn += 1


class _StageRun:
    def __init__(self, stage: Stage, known: Mapping[Stage, np.ndarray], numerics: OrderedNumerics):
        assert stage.body is not None
        self.stage, self.known, self.numerics = stage, known, numerics

    def result(self) -> np.ndarray:
        stage = self.stage
        if 0 in stage.shape:
            return np.empty(stage.shape, stage.dtype)
        if stage.scatter:
            value = self.scattered(stage.scatter)
        elif stage.scan:
            value = self.scanned(stage.scan)
        elif stage.sort:
            value = SORTED[stage.sort](self.full(self.body(index_grid(stage.axes))))
        elif stage.reduce_axes:
            value = COMBINED[stage.order](self)
        else:
            value = self.body(index_grid(stage.axes))
        value = np.array(self.full(value))
        assert value.dtype == stage.dtype, f"{stage.name} is {value.dtype}, not {stage.dtype}"
        return value

    def full(self, value: Array) -> np.ndarray:
        """With all elements of the axes, where it varies along some."""
        return np.broadcast_to(value, self.stage.shape)

    def scanned(self, axis: Axis) -> Array:
        """One position of the scan axis after the other."""
        stage = self.stage
        result = np.empty(stage.shape, stage.dtype)
        rows = np.moveaxis(result, stage.axes.index(axis), 0)
        assert stage.body is not None
        grid = index_grid([other for other in stage.axes if other is not axis])
        rows[0] = self.evaluated(substitute(stage.body, {axis: 0}), grid)
        for position in range(1, axis.extent):
            rows[position] = self.body({**grid, axis: np.int64(position)}, rows[position - 1])
        return result

    def scattered(self, scatter: Scatter) -> Array:
        """The start, with elements put in one position of the reduce axes after the other."""
        stage = self.stage
        start = self.evaluated(scatter.start, index_grid(stage.axes))
        result = np.array(np.broadcast_to(start, stage.shape))
        kept = index_grid(stage.updated_axes)
        for position in np.ndindex(*[axis.extent for axis in stage.reduce_axes]):
            grid = {**kept, **dict(zip(stage.reduce_axes, position, strict=True))}
            place = tuple([int(self.evaluated(target, grid)) for target in scatter.targets])
            result[place] = self.body(grid, result[place])
        return result

    def serial(self) -> Array:
        stage, grid = self.stage, index_grid(self.stage.axes)
        so_far: Array = np.full(stage.shape, stage.init)
        for position in np.ndindex(*[axis.extent for axis in stage.reduce_axes]):
            so_far = self.body(
                {**grid, **dict(zip(stage.reduce_axes, position, strict=True))}, so_far
            )
        return so_far

    def tree(self, combine_all: Callable[[np.ndarray, Callable[..., Array]], np.ndarray]) -> Array:
        """The terms along the reduce axis, in front, combined in one of the tree orders."""
        body = self.stage.body
        assert isinstance(body, Op)
        load = body.operands[1]
        assert isinstance(load, Load)
        axes = self.stage.reduce_axes + self.stage.axes
        terms = np.broadcast_to(self.load(load, index_grid(axes)), [axis.extent for axis in axes])
        return combine_all(terms, lambda a, b: self.numerics.scalar(body.name, [a, b], body.dtype))

    def body(self, grid: Grid, so_far: Array | None = None) -> Array:
        """The value of the body at all points of a grid."""
        assert self.stage.body is not None
        return self.evaluated(self.stage.body, grid, so_far)

    def evaluated(self, expression: Expr, grid: Grid, so_far: Array | None = None) -> Array:
        values: dict[int, Any] = {}
        for node in walk(expression):
            values[id(node)] = self.value(node, grid, values, so_far)
        return values[id(expression)]

    def value(self, node: Expr, grid: Grid, values: dict[int, Any], so_far: Array | None) -> Array:
        match node:
            case Const(value):
                return value
            case Load():
                return self.load(node, grid, [values[id(index)] for index in node.data])
            case Accumulator():
                return so_far
            case Index(index):
                return np.int64(index_values(index, grid))
            case IndexTest():
                return test_values(node, grid)
            case Cast(operand, dtype):
                return self.numerics.cast(values[id(operand)], dtype)
            case Op(name, operands, dtype):
                arguments = [values[id(operand)] for operand in operands]
                if name == "fma":
                    return self.numerics.fma(*arguments)
                return self.numerics.scalar(name, arguments, dtype)
        raise AssertionError(f"there is no expression {type(node).__name__}")

    def load(self, node: Load, grid: Grid, data: Sequence[Array] = ()) -> Array:
        """The elements at the indices; what a select does not choose may lie outside."""
        array = self.known[node.source]
        positions = [*data, *(index_values(index, grid) for index in node.indices)]
        if array.size == 0:
            return np.zeros(np.broadcast_shapes(*map(np.shape, positions)), array.dtype)
        limits = [extent - 1 for extent in array.shape]
        clipped = [np.clip(p, 0, limit) for p, limit in zip(positions, limits, strict=True)]
        return array[tuple(clipped)]


COMBINED: dict[Order, Callable[[_StageRun], Array]] = {
    Order.SERIAL: _StageRun.serial,
    Order.HALVING: lambda run: run.tree(halving),
    Order.PAIRWISE: lambda run: run.tree(pairwise),
}


SORTED: dict[Sort, Callable[[np.ndarray], Array]] = {
    Sort.ELEMENTS: lambda rows: np.sort(rows, kind="stable"),
    Sort.POSITIONS: lambda rows: np.argsort(rows, kind="stable"),
}


def index_grid(axes: Sequence[Axis]) -> Grid:
    """The positions along each axis, in a shape that broadcasts against the others'."""
    ranges = np.ogrid[tuple([slice(a.start, a.start + a.extent) for a in axes])] if axes else []
    return dict(zip(axes, ranges, strict=True))


def index_values(index: Affine, grid: Grid) -> Array:
    """The values of an index at all points of a grid."""
    total: Array = index.constant
    for term, coefficient in index.terms:
        if isinstance(term, Axis):
            total = total + grid[term] * coefficient
            continue
        inner = index_values(term.index, grid)
        part = inner // term.divisor if isinstance(term, Quotient) else inner % term.divisor
        total = total + part * coefficient
    return total


def test_values(test: IndexTest, grid: Grid) -> Array:
    """Whether a condition on an index holds, at all points of a grid."""
    values = index_values(test.index, grid)
    above = True if test.low is None else values >= test.low
    return np.logical_and(above, True if test.high is None else values < test.high)
