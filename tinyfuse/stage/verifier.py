"""What stages must be, checked: what the planner and lowering rely on."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tinyfuse.dtypes import INT64, is_complex, is_supported
from tinyfuse.errors import VerificationError
from tinyfuse.graph.reduce_ops import REDUCE_OPS
from tinyfuse.graph.shapes import result_dtype
from tinyfuse.stage.analysis import consumers
from tinyfuse.stage.bounds import Facts
from tinyfuse.stage.expr import Accumulator, Expr, IndexTest, Load, Op, substitute, walk
from tinyfuse.stage.index import Affine, Axis, index_text
from tinyfuse.stage.interpreter import Grid, index_grid, index_values, test_values
from tinyfuse.stage.ir import Order, Scatter, Sort, Stage, Stages
from tinyfuse.stage.names import RESERVED, identifier

# The operations that partial results may be combined with.
COMBINING = frozenset([op.combine for op in REDUCE_OPS.values()])


def verify_stages(stages: Stages) -> None:
    """Checks a program; raises VerificationError with the first thing that is wrong.

    Names are C identifiers, each used once; producers stand before consumers; every index lies
    within its array wherever it is evaluated; dtypes are those that numpy computes in; reductions
    have the form that their order asks for; outputs are computed stages, each another one.
    """
    try:
        _verify(stages)
    except _MalformedError as error:
        stage, message = error.args
        raise VerificationError(f"stages {stages.name}, {stage.name}: {message}") from None


class _MalformedError(Exception):
    """(stage, message)"""


def _verify(stages: Stages) -> None:
    declared: dict[Stage, None] = {}
    names: dict[str, None] = {}
    for stage in (*stages.inputs, *stages.stages):
        _check_name(stage, names)
        _check_axes(stage)
        _require((stage in stages.inputs) == stage.is_input, stage, "only inputs have no body")
        if stage.body is not None:
            for expression in stage.expressions:
                _check_expression(stage, expression, declared)
            _check_body(stage, stage.body)
        declared[stage] = None
    readers = consumers(stages)
    for stage in stages.stages:
        if stage.order is not Order.SERIAL:
            _check_tree(stage, readers, stages.outputs)
    for number, stage in enumerate(stages.outputs):
        computed = stage in declared and not stage.is_input
        _require(computed, stage, "it is an output, but not computed")
        _require(stage not in stages.outputs[:number], stage, "it is an output twice")


def _require(condition: bool, stage: Stage, message: str) -> None:
    if not condition:
        raise _MalformedError(stage, message)


def _check_name(stage: Stage, names: dict[str, None]) -> None:
    usable = identifier(stage.name) == stage.name and stage.name not in RESERVED
    _require(usable, stage, "its name is no identifier that C leaves free")
    _require(stage.name not in names, stage, "its name is used twice")
    names[stage.name] = None


def _check_axes(stage: Stage) -> None:
    axes = (*stage.axes, *stage.reduce_axes)
    distinct = len({axis.name for axis in axes}) == len(dict.fromkeys(axes)) == len(axes)
    _require(distinct, stage, f"two axes are one, or called alike: {_names(axes)}")
    fit = all(axis.start == 0 and axis.extent >= 0 for axis in axes)
    _require(fit, stage, "an axis does not start at 0, or has a negative extent")


def _names(axes: tuple[Axis, ...]) -> str:
    return ", ".join([axis.name for axis in axes])


def _check_expression(stage: Stage, expression: Expr, declared: dict[Stage, None]) -> None:
    for node in walk(expression):
        if isinstance(node, Load):
            _check_load(stage, node, declared)
        _check_dtype(stage, node)


def _check_body(stage: Stage, body: Expr) -> None:
    computes = INT64 if stage.sort is Sort.POSITIONS else body.dtype
    _require(computes == stage.dtype, stage, f"it is {stage.dtype}, but computes {computes}")
    if stage.scan or stage.sort:
        _check_rows(stage)
    if stage.scatter:
        _check_scatter(stage, stage.scatter)
    elif stage.order is Order.SERIAL:
        _check_chain(stage, body)
    if all(axis.extent for axis in (*stage.axes, *stage.reduce_axes)):
        for expression in stage.expressions:
            _check_bounds(stage, expression)


def _check_scatter(stage: Stage, scatter: Scatter) -> None:
    _require(scatter.start.dtype == stage.dtype, stage, f"it starts from {scatter.start.dtype}")
    fits = 0 < len(scatter.targets) <= len(stage.axes)
    _require(fits, stage, f"it has {len(scatter.targets)} targets and {len(stage.axes)} axes")
    for target in scatter.targets:
        _require(target.dtype == INT64, stage, f"a target is {target.dtype}, not int64")
    serial = stage.order is Order.SERIAL and stage.init is None
    _require(serial, stage, "it is a scatter and a reduction")


def _check_rows(stage: Stage) -> None:
    """Of what is computed row by row: a scan or a sort, and nothing else."""
    alone = not (stage.reduce_axes or stage.scatter or (stage.scan and stage.sort))
    _require(alone, stage, "it is a scan, a sort, a scatter or a reduction: more than one of them")
    _require(bool(stage.axes), stage, "it has no axis to sort along")
    if stage.scan:
        _require(stage.scan in stage.axes, stage, f"it has no axis {stage.scan.name} to scan")
        assert stage.body is not None
        first = substitute(stage.body, {stage.scan: 0})
        needs = any(isinstance(node, Accumulator) for node in walk(first))
        _require(not needs, stage, "its first element needs one before it")


def _check_load(stage: Stage, load: Load, declared: dict[Stage, None]) -> None:
    source = load.source
    _require(source in declared, stage, f"it reads {source.name}, which is not computed before")
    rank = len(source.axes)
    count = len(load.data) + len(load.indices)
    integers = all(index.dtype == INT64 for index in load.data)
    _require(integers, stage, f"it reads {source.name} at indices that are not int64")
    _require(count == rank, stage, f"it reads {source.name} of {rank} axes at {count} indices")
    axes = (*stage.axes, *stage.reduce_axes)
    own = all(axis in axes for index in load.indices for axis in index.axes())
    _require(own, stage, f"it reads {source.name} at axes that it does not have")


def _check_dtype(stage: Stage, node: Expr) -> None:
    real = is_supported(node.dtype) and not is_complex(node.dtype)
    _require(real, stage, f"{node.dtype} is not supported")
    if isinstance(node, Accumulator):
        _require(node.dtype == stage.dtype, stage, f"it accumulates {node.dtype} in {stage.dtype}")
    if not isinstance(node, Op):
        return
    dtypes = tuple([operand.dtype for operand in node.parts])
    try:
        dtype = _fma_dtype(dtypes) if node.name == "fma" else result_dtype(node.name, dtypes)
    except ValueError as error:
        raise _MalformedError(stage, str(error)) from None
    _require(node.dtype == dtype, stage, f"{node.name} gives {dtype}, not {node.dtype}")


def _fma_dtype(dtypes: tuple[np.dtype, ...]) -> np.dtype:
    if len(dtypes) != 3 or len(set(dtypes)) != 1:
        raise ValueError(f"fma of {', '.join(map(str, dtypes))}, not of three of one dtype")
    return dtypes[0]


def _check_chain(stage: Stage, body: Expr) -> None:
    accumulates = any(isinstance(node, Accumulator) for node in walk(body))
    reduces = bool(stage.reduce_axes)
    allowed = reduces or stage.scan is not None
    _require(accumulates <= allowed, stage, "it accumulates without reduce axes")
    _require(
        reduces == (stage.init is not None), stage, "it has a start value, or reduces: not both"
    )
    if stage.init is not None:
        start = stage.init.dtype
        _require(start == stage.dtype, stage, f"it is {stage.dtype}, but starts from {start}")


def _check_tree(
    stage: Stage, readers: dict[Stage, list[Stage]], outputs: tuple[Stage, ...]
) -> None:
    body, axes = stage.body, stage.reduce_axes
    _require(len(axes) == 1, stage, f"a {stage.order.value} reduction has one reduce axis")
    _require(stage.init is None, stage, f"a {stage.order.value} reduction has no start value")
    combines = (
        isinstance(body, Op)
        and body.name in COMBINING
        and isinstance(body.operands[0], Accumulator)
        and isinstance(body.operands[1], Load)
    )
    _require(combines, stage, "it does not combine the value so far with an element")
    (load,) = stage.reads()
    source = load.source
    _require(readers[source] == [stage], stage, f"other stages read {source.name} too")
    _require(not source.is_input and source not in outputs, stage, f"{source.name} is not its own")
    extents = {index: axis.extent for index, axis in zip(load.indices, source.axes, strict=True)}
    over_all = extents.get(Affine(((axes[0], 1),))) == axes[0].extent
    _require(over_all or axes[0].extent == 1, stage, f"it does not read all of {source.name}")
    power = axes[0].extent > 0 and axes[0].extent & axes[0].extent - 1 == 0
    halves = stage.order is not Order.HALVING or power
    _require(halves, stage, f"{axes[0].extent} elements are not halved to one")


# (condition, whether it holds) for each select around a node
Path = tuple[tuple[Expr, bool], ...]
# Points of a domain up to which indices are looked at one by one where intervals prove nothing.
LOOKED_AT = 1 << 20


def _check_bounds(stage: Stage, body: Expr) -> None:
    """Every load within its source, where the selects around it choose it."""
    pending: list[tuple[Expr, Facts, Path]] = [(body, Facts(), ())]
    seen: dict[tuple[int, int], Facts] = {}
    while pending:
        node, facts, path = pending.pop()
        if (id(node), id(facts)) in seen or facts.contradictory:
            continue
        seen[id(node), id(facts)] = facts
        if isinstance(node, Load):
            _check_inside(stage, node, facts, path)
        elif isinstance(node, Op) and node.name == "select":
            condition, chosen, other = node.operands
            pending += [
                (condition, facts, path),
                (chosen, facts.where(condition, True), (*path, (condition, True))),
                (other, facts.where(condition, False), (*path, (condition, False))),
            ]
        else:
            pending += [(operand, facts, path) for operand in node.parts]


def _check_inside(stage: Stage, load: Load, facts: Facts, path: Path) -> None:
    extents = load.source.shape[len(load.data) :]
    for index, extent in zip(load.indices, extents, strict=True):
        low, high = facts.interval(index)
        if (low < 0 or high >= extent) and not _stays_inside(stage, index, extent, path):
            place = f"{index_text(index)}, {low} … {high}"
            raise _MalformedError(stage, f"it reads {load.source.name} at {place}: beyond {extent}")


def _stays_inside(stage: Stage, index: Affine, extent: int, path: Path) -> bool:
    """The same, by looking at each point of a small domain."""
    axes = (*stage.axes, *stage.reduce_axes)
    if prod([axis.extent for axis in axes]) > LOOKED_AT:
        return False
    grid = index_grid(axes)
    values = index_values(index, grid)
    outside = (values < 0) | (values >= extent)
    for condition, holds in path:
        known = _truth(condition, grid)
        if known is not None:
            outside = outside & (known == holds)
    return not np.any(outside)


def _truth(condition: Expr, grid: Grid) -> Any:
    """Where a condition on indices holds; None where it is about values."""
    if isinstance(condition, IndexTest):
        return test_values(condition, grid)
    if isinstance(condition, Op) and condition.name == "logical_and":
        first, second = (_truth(part, grid) for part in condition.operands)
        return None if first is None or second is None else np.logical_and(first, second)
    return None
