"""What the expressions of a stage hold, for the planner."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from tinyfuse.graph.scalar_ops import NEAREST, cost
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import IndexTest, Load, Op, walk
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Stage

Indices = tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """What a stage's own expression holds. cost: in additions, conversions left out. loads: each
    with the indices along all axes of its source."""

    operations: int
    cost: int
    tests: tuple[IndexTest, ...]
    loads: tuple[tuple[Load, Indices], ...]


def content_of(stage: Stage) -> Content:
    nodes = [node for expression in stage.expressions for node in walk(expression)]
    return Content(
        len([node for node in nodes if node.parts]),
        sum([cost(n.name) for n in nodes if isinstance(n, Op) and n.name not in NEAREST]),
        tuple([node for node in nodes if isinstance(node, IndexTest)]),
        tuple([(load, _places(load) if load.data else load.indices) for load in stage.reads()]),
    )


def references_of(stage: Stage) -> Mapping[Stage, int]:
    """How often the C of a stage's own expression mentions each source."""
    nodes = [node for expression in stage.expressions for node in walk(expression)]
    parts = [part for node in nodes for part in node.parts]
    return Counter(part.source for part in (*stage.expressions, *parts) if isinstance(part, Load))


def _places(load: Load) -> Indices:
    """The index along each axis of the source; an axis of no stage where data decides it."""
    pairs = zip(load.source.axes, load.places, strict=True)
    return tuple([affine(Axis("data", a.extent)) if at is None else at for a, at in pairs])


def large_loads(stage: Stage, content: Content) -> int:
    """How many arrays of the size of the stage itself, or larger, it reads."""
    size = math.prod(stage.shape)
    sources = dict.fromkeys(load.source for load, _ in content.loads)
    return sum(math.prod(source.shape) >= size for source in sources)
