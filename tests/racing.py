"""Loop nests run as badly as threads may run them.

The steps of parallel loops run last to first, and it is an error if one of them touches an element,
of memory from around the loop, that another one stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np

from tinyfuse.graph.numerics import OrderedNumerics
from tinyfuse.loops import interpreter
from tinyfuse.loops.ir import (
    Alloc,
    Buffer,
    For,
    HalveRow,
    LoopKind,
    Loops,
    Row,
    SortRow,
    Statement,
    Store,
    Transpose,
)
from tinyfuse.stage.expr import Expr, Load

Element = tuple[Buffer, int]


class RaceError(AssertionError):
    """Two steps that may run at the same time touch an element that one of them stores."""


def interpret_racing(
    loops: Loops, arrays: Sequence[np.ndarray], numerics: OrderedNumerics
) -> list[np.ndarray]:
    """As `interpret_loops`. Raises RaceError."""
    with patch.object(interpreter, "_Run", _Racing):
        return interpreter.interpret_loops(loops, arrays, numerics)


class _Step:
    """What a step of a loop does with memory that is not its own."""

    def __init__(self) -> None:
        self.own: set[Buffer] = set()
        self.read: set[Element] = set()
        self.stored: set[Element] = set()


class _Racing(interpreter._Run):
    def __init__(self, *arguments: object):
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.steps: list[_Step] = []

    def statement(self, node: Statement) -> None:
        if isinstance(node, For) and node.kind is LoopKind.PARALLEL:
            self.race(node)
            return
        if isinstance(node, Alloc):
            for step in self.steps:
                step.own.add(node.buffer)
        super().statement(node)
        if isinstance(node, Store):
            position = self.index(node.position)
            if node.offset is not None:
                position += int(self.value(node.offset, {}))
            self.note("stored", node.buffer, [position])
        if isinstance(node, Transpose):
            block = self.positions(node.block, node.columns, node.rows)
            to = self.positions(node.to, node.rows, node.columns)
            self.note("read", node.block.buffer, block.ravel().tolist())
            self.note("stored", node.to.buffer, to.ravel().tolist())

    def race(self, loop: For) -> None:
        found = []
        start = loop.variable.start
        for position in reversed(range(start, start + loop.variable.extent)):
            self.counters[loop.variable.name] = position
            self.steps.append(_Step())
            self.block(loop.body)
            found.append(self.steps.pop())
        storing: dict[Element, int] = {}
        for number, step in enumerate(found):
            for element in step.stored:
                if storing.setdefault(element, number) != number:
                    raise RaceError(f"two steps store {element[0].name}[{element[1]}]")
        for number, step in enumerate(found):
            for element in step.read:
                if storing.get(element, number) != number:
                    raise RaceError(f"a step reads what another stores: {element[0].name}")

    def note(self, what: str, buffer: Buffer, positions: Sequence[int]) -> None:
        for step in self.steps:
            if buffer not in step.own:
                getattr(step, what).update((buffer, position) for position in positions)

    def sort(self, node: SortRow) -> None:
        super().sort(node)
        self.note_row("read", node.row, node.extent)
        self.note_row("stored", node.to, node.extent)

    def halve(self, node: HalveRow) -> None:
        super().halve(node)
        self.note_row("stored", node.row, node.extent)

    def note_row(self, what: str, row: Row, extent: int) -> None:
        first = self.index(row.position)
        self.note(what, row.buffer, range(first, first + extent))

    def _value(self, node: Expr, known: dict[int, np.generic]) -> np.generic:
        if isinstance(node, Load) and self.steps:
            position = self.index(node.indices[0])
            position += sum(int(self.value(part, known)) for part in node.data)
            self.note("read", node.source, [position])  # type: ignore[arg-type]
        return super()._value(node, known)
