"""Where the elements of a region lie, and the names of what a nest declares."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tinyfuse.dtypes import INT64
from tinyfuse.loops.ir import Buffer
from tinyfuse.machine import LINE_BYTES
from tinyfuse.records import dataclass
from tinyfuse.schedule.places import LONG_ROW, Loop
from tinyfuse.stage.expr import Const, Expr, Index, Load, Op
from tinyfuse.stage.index import Affine, Axis, flat_index


@dataclass(frozen=True, slots=True)
class Part:
    """Steps of so many elements along an axis, as many as there are in one of the part around it.

    axis: its place among the stage's.
    """

    axis: int
    step: int
    extent: int
    whole: int | None = None  # elements of a step of the part around it, if any

    def number(self, position: Affine) -> Affine:
        """Which of the steps a position is in."""
        return (position % self.whole if self.whole else position) // self.step


def parts_of(
    axes: Sequence[Axis], extents: Sequence[int], layout: Sequence[Loop]
) -> tuple[Part, ...]:
    """The parts of the axes of a region, as a layout orders them.

    The outermost part of an axis has a whole step at its end, where the extent is no multiple.
    """
    found = []
    inside: dict[Axis, int] = {}
    for part in layout:
        place, whole = axes.index(part.axis), inside.get(part.axis)
        extent = -(-(extents[place] if whole is None else whole) // part.step)
        found.append(Part(place, part.step, extent, whole))
        inside[part.axis] = part.step
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a region of a stage lies: element `origin` is first.

    origin: empty where that is the stage's own first element. extents: of the axes. ring: the place
    of an axis along which positions lie where those an extent before did, if any. parts: in the
    order in which they lie in memory, the last one contiguous; None for the axes in their order.
    lead: elements before the first one.
    """

    buffer: Buffer
    origin: tuple[Affine, ...]
    extents: tuple[int, ...]
    ring: int | None = None
    parts: tuple[Part, ...] | None = None
    lead: int = 0

    def position(self, indices: Sequence[Affine]) -> Affine:
        places = [*indices]
        for axis, start in enumerate(self.origin):
            places[axis] -= start
        if self.ring is not None:
            places[self.ring] = places[self.ring] % self.extents[self.ring]
        if self.parts is None:
            return flat_index(places, self.extents) + self.lead
        numbers = [part.number(places[part.axis]) for part in self.parts]
        return flat_index(numbers, [part.extent for part in self.parts])

    def load(self, indices: Sequence[Affine], data: Sequence[Expr] = ()) -> Load:
        """The element at these indices; `data` are those for the first axes."""
        if not data:
            return Load(self.buffer, (self.position(indices),))
        known = [part.index if isinstance(part, Index) else None for part in data]
        position = self.position([*[at or Affine() for at in known], *indices])
        if None not in known:
            return Load(self.buffer, (position,))
        rest = [part if at is None else None for part, at in zip(data, known, strict=True)]
        return Load(self.buffer, (position,), (self.offset(rest),))

    def offset(self, data: Sequence[Expr | None]) -> Expr:
        """What indices for the first axes add to a position; None is an index of 0."""
        total: Expr | None = None
        for axis, index in enumerate(data):
            if index is None:
                continue
            stride = self.stride(axis)
            if stride != 1:
                index = Op("multiply", (index, Const(np.int64(stride))), INT64)
            total = index if total is None else Op("add", (total, index), INT64)
        assert total is not None
        return total

    def stride(self, axis: int) -> int:
        """How many elements the next position along an undivided axis is away."""
        if self.parts is None:
            return prod(self.extents[axis + 1 :])
        place = next(at for at, part in enumerate(self.parts) if part.axis == axis)
        return prod(part.extent for part in self.parts[place + 1 :])


def whole_lines(extents: Sequence[int], itemsize: int, first: int) -> tuple[list[int], int]:
    """The extents of rows that begin with cache lines, and how many elements to leave out for that.

    first: the element of each row from which on it is computed by vectors. A vector that is stored
    across two lines takes twice as long. Short rows stay as they are.
    """
    line = LINE_BYTES // itemsize
    if prod(extents[:-1]) < 2 or extents[-1] * itemsize < LONG_ROW:
        return [*extents], 0
    lead = -first % line
    return [*extents[:-1], -(-(lead + extents[-1]) // line) * line], lead


class Names:
    """Names of loop variables and locals, unique within the nest around them."""

    def __init__(self, reserved: set[str]):
        self.reserved = reserved
        self.active: list[str] = []

    def fresh(self, base: str) -> str:
        name, count = base, 0
        while name in self.active or name in self.reserved:
            count += 1
            name = f"{base}_{count}"
        self.active.append(name)
        return name
