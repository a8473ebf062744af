"""Where the elements of a region lie, and the names of what a nest declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyfuse.loops.ir import Buffer
from tinyfuse.stage.expr import Load
from tinyfuse.stage.index import Affine, flat_index


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a region of a stage lies: element `origin` is first, the last axis is contiguous."""

    buffer: Buffer
    origin: tuple[Affine, ...]
    extents: tuple[int, ...]

    def position(self, indices: Sequence[Affine]) -> Affine:
        return flat_index(
            [i - start for i, start in zip(indices, self.origin, strict=True)], self.extents
        )

    def load(self, indices: Sequence[Affine]) -> Load:
        return Load(self.buffer, (self.position(indices),))


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
