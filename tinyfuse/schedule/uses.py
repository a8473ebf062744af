"""Where stored stages read the elements of others, through what is inlined into them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tinyfuse.records import dataclass
from tinyfuse.schedule.content import Content, Indices
from tinyfuse.schedule.places import MAX_PIECES
from tinyfuse.stage.expr import IndexTest, depends_on, walk
from tinyfuse.stage.index import Affine, Axis, flat_index
from tinyfuse.stage.ir import Stage


@dataclass(slots=True)
class Use:
    """Where a stored stage reads an element, in terms of its axes, through what is inlined into it.
    An index that data decides is an axis of no stage.

    guarded: operations on the way that stand behind a test that will run; 0 without one. repeated:
    what is computed on the way for several readers, in additions.
    """

    reader: Stage
    indices: Indices
    guarded: int
    repeated: int = 0

    @property
    def is_gather(self) -> bool:
        """Whether data decides where the element is."""
        own = (*self.reader.axes, *self.reader.reduce_axes)
        return any(axis not in own for index in self.indices for axis in index.axes())


def computations(stage: Stage, uses: list[Use]) -> float:
    """How often all readers together compute each element."""
    readers = dict.fromkeys(use.reader for use in uses)
    return sum(
        computations_in_reader(stage, [u for u in uses if u.reader is reader]) for reader in readers
    )


def computations_in_reader(stage: Stage, uses: list[Use]) -> int:
    """How often each element would be computed if the stage moved into its reader.

    An element that depends on outer loops only is named in front of the inner ones.
    """
    reader = uses[0].reader
    own = (*reader.axes, *reader.reduce_axes)
    order = [axis for axis in own if axis.extent > 1]
    total = 0
    for use in uses:
        used = {axis for index in use.indices for axis in index.axes()}
        depth = max((place + 1 for place, axis in enumerate(order) if axis in used), default=0)
        if not used.issubset(own):
            depth = len(order)
        total += math.prod([axis.extent for axis in order[:depth]])
    return round(total / max(1, math.prod(stage.shape)))


def lies_across(uses: list[Use]) -> bool:
    """Whether a stage is read both at rows and at columns, as in a matrix times its transpose."""
    axes = [{axis for index in use.indices for axis in index.axes()} for use in uses]
    return any(each != axes[0] for each in axes)


def stands_across(use: Use) -> bool:
    """Whether the rows of a stage are columns of its reader."""
    if not use.indices or use.indices[-1].is_constant:
        return False
    return len(use.reader.axes) > 1 and not use.indices[-1].depends_on(use.reader.axes[-1])


def divides(stage: Stage, content: Content, use: Use) -> bool:
    """Whether the reader would have to divide for the addresses or tests of the expression."""
    values = dict(zip(stage.axes, use.indices, strict=True))
    found = [test.index.substitute(values) for test in content.tests]
    for load, places in content.loads:
        indices = [index.substitute(values) for index in places]
        found.append(flat_index(indices, load.source.shape))
    return any(not isinstance(term, Axis) for index in found for term, _ in index.terms)


def decidable(tests: tuple[IndexTest, ...], values: Mapping[Axis, Affine]) -> bool:
    """Whether loops can be cut where the tests change, so that none is left to run."""
    return len(tests) < MAX_PIECES and all(
        isinstance(term, Axis) for test in tests for term, _ in test.index.substitute(values).terms
    )


def goes_along(use: Use) -> bool:
    """Whether the last index of a use moves with the last axis of its reader."""
    axes = use.reader.axes
    return bool(axes and use.indices) and use.indices[-1].depends_on(axes[-1])


def looks_for_each(stage: Stage) -> bool:
    """Whether data decides anew for each element of a row where something is read."""
    return any(
        depends_on(node, stage.axes[-1])
        for load in (stage.reads() if stage.axes else ())
        for part in load.data
        for node in walk(part)
    )
