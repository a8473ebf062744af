"""Where the elements of a region lie, and the names of what a nest declares."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tinyfuse.dtypes import INT64
from tinyfuse.loops.ir import Buffer
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import Const, Expr, Load, Op
from tinyfuse.stage.index import Affine, flat_index


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a region of a stage lies: element `origin` is first, the last axis is contiguous.

    origin: empty where that is the stage's own first element. ring: the place of an axis along
    which positions lie where those an extent before did, if any.
    """

    buffer: Buffer
    origin: tuple[Affine, ...]
    extents: tuple[int, ...]
    ring: int | None = None

    def position(self, indices: Sequence[Affine]) -> Affine:
        places = [*indices]
        for axis, start in enumerate(self.origin):
            places[axis] -= start
        if self.ring is not None:
            places[self.ring] = places[self.ring] % self.extents[self.ring]
        return flat_index(places, self.extents)

    def load(self, indices: Sequence[Affine], data: Sequence[Expr] = ()) -> Load:
        """The element at these indices; `data` are those for the first axes."""
        if not data:
            return Load(self.buffer, (self.position(indices),))
        position = self.position([*[Affine()] * len(data), *indices])
        return Load(self.buffer, (position,), (self.offset(data),))

    def offset(self, data: Sequence[Expr]) -> Expr:
        """What indices for the first axes add to a position."""
        total: Expr | None = None
        for axis, index in enumerate(data):
            stride = prod(self.extents[axis + 1 :])
            if stride != 1:
                index = Op("multiply", (index, Const(np.int64(stride))), INT64)
            total = index if total is None else Op("add", (total, index), INT64)
        assert total is not None
        return total


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
