"""What a stored stage reads and tests once the stages inlined into it are seen through."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.records import dataclass
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.expr import (
    Accumulator,
    Expr,
    IndexTest,
    Load,
    Op,
    axes_of,
    loads,
    substitute,
    walk,
)
from tinyfuse.stage.index import Affine
from tinyfuse.stage.ir import Stage

Condition = tuple[IndexTest, ...]  # all of which have to hold


@dataclass(frozen=True, slots=True)
class Reads:
    """In terms of the reader's axes. inlined: the stages seen through, in order of the program."""

    loads: tuple[Load, ...]
    conditions: tuple[Condition, ...]
    inlined: tuple[Stage, ...]


def reads_of(schedule: Schedule, expressions: Sequence[Expr]) -> Reads:
    """All loads of stored stages and all conditions on indices, each distinct one once."""
    loads: dict[tuple[Stage, tuple[Affine, ...], tuple[Expr, ...]], Load] = {}
    conditions: dict[Condition, None] = {}
    inlined: dict[Stage, None] = {}
    seen: set[tuple[Stage, tuple[Affine, ...]]] = set()
    pending = list(expressions)
    while pending:
        body = pending.pop()
        for node in walk(body):
            if isinstance(node, Op) and node.name == "select":
                conditions.update(_condition(node.operands[0]))
            elif isinstance(node, Load):
                key = (node.source, node.indices)
                if not is_inlined(schedule, node.source):
                    loads.setdefault((*key, node.data), node)
                elif key not in seen:
                    seen.add(key)
                    inlined[node.source] = None
                    pending.append(inlined_body(node.source, node.indices))
    ordered = tuple(s for s in schedule.stages.stages if s in inlined) if inlined else ()
    return Reads(tuple(loads.values()), tuple(conditions), ordered)


def _condition(root: Expr) -> dict[Condition, None]:
    """The tests that a select's condition is a conjunction of; none where it is anything else."""
    tests = []
    for node in walk(root):
        if isinstance(node, IndexTest):
            tests.append(node)
        elif not isinstance(node, Op) or node.name != "logical_and" or not node.parts:
            return {}
    return {tuple(tests): None}


def mentions(schedule: Schedule, reader: Stage, source: Stage) -> bool:
    """Whether a stage, or what is inlined into it, loads another, whatever its tests decide."""
    pending, seen = [reader], {reader}
    while pending:
        for expression in pending.pop().expressions:
            for load in loads(expression):
                if load.source is source:
                    return True
                if load.source not in seen and is_inlined(schedule, load.source):
                    seen.add(load.source)
                    pending.append(load.source)
    return False


def is_inlined(schedule: Schedule, stage: Stage) -> bool:
    return not stage.is_input and schedule[stage].inlined


def inlined_body(stage: Stage, indices: Sequence[Affine]) -> Expr:
    """The expression of one element of a stage, its axes replaced by indices."""
    assert stage.body is not None
    return substitute(stage.body, dict(zip(stage.axes, indices, strict=True)))


def condition_before(stage: Stage) -> tuple[Expr | None, Expr]:
    """What decides for all elements of a chain alike whether they count, and the rest of the body.

    Conditions on indices are no such: loops are cut where these change.
    """
    body, reduced = stage.body, stage.reduce_axes
    assert body is not None
    if not isinstance(body, Op) or body.name != "select":
        return None, body
    condition, links, otherwise = body.operands
    parts = list(walk(condition))
    changes = any(axis in reduced for part in parts for axis in axes_of(part))
    fixed = not any(isinstance(part, (Accumulator, IndexTest)) for part in parts)
    if isinstance(otherwise, Accumulator) and fixed and not changes:
        return condition, links
    return None, body
