"""Parts of a function that are recorded apart: the bodies of loops, the branches of choices.

What such a part writes that was there before becomes something that a loop carries, or that a
choice gives: the part is recorded again, with a parameter in every array that it has written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyfuse import errors
from tinyfuse.dtypes import BOOL
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.records import dataclass
from tinyfuse.source import here
from tinyfuse.trace.builder import GraphBuilder
from tinyfuse.trace.cells import STATE, Cell, note, put_back, write
from tinyfuse.trace.operation import explained
from tinyfuse.trace.specs import Check, NeedsValue

MOST_RECORDINGS = 8  # of one part; each finds more that it writes


@dataclass(slots=True)
class Recording:
    """One run of a part of the function.

    params: what it takes. outputs: what it gives. written: the arrays from before that it has
    written, with what they hold at its end. checks: of values that it computes.
    """

    params: list[Var]
    eqns: list[Eqn]
    outputs: list[Atom]
    written: list[tuple[Cell, Atom]]
    checks: list[Check]

    def reads(self) -> list[Var]:
        """The values from outside, in the order of their first use."""
        own = {*self.params, *[var for eqn in self.eqns for var in eqn.outputs]}
        used = [atom for eqn in self.eqns for atom in eqn.inputs]
        used += [*self.outputs, *[atom for _, atom in self.written]]
        used += [check.output for check in self.checks]
        return [atom for atom in dict.fromkeys(used) if isinstance(atom, Var) and atom not in own]


class Recorder:
    """Records what is traced from when it is made until it ends, apart from the rest.

    Whatever it changes in tracers from before is undone.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self._start, self._checks, self._born = (
            len(builder.eqns),
            len(builder.checks),
            builder.cells,
        )
        self._outer, builder.changed = builder.changed, {}

    def written(self) -> list[tuple[Cell, Atom]]:
        """The arrays from before that have been written, with what they hold now."""
        return [
            (cell, cell._value)
            for cell, state in (self.builder.changed or {}).values()
            if self.is_older(cell) and cell._root is None and cell._value is not state[_VALUE]
        ]

    def is_older(self, cell: Cell) -> bool:
        """Whether a cell was there before."""
        return cell._born <= self._born

    def end(self, params: Sequence[Var], outputs: Sequence[Atom] = ()) -> Recording:
        builder, written = self.builder, self.written()
        for cell, state in (builder.changed or {}).values():
            put_back(cell, state)
        builder.changed = self._outer
        checks = builder.checks[self._checks :]
        del builder.checks[self._checks :]
        eqns = builder.cut(self._start)
        return Recording(list(params), eqns, list(outputs), written, checks)


def record(
    builder: GraphBuilder, params: Sequence[Var], run: Callable[[], Sequence[Atom]]
) -> Recording:
    """Run a part of the function."""
    recorder, outputs = Recorder(builder), []
    try:
        outputs = list(run())
    except NeedsValue as needed:
        if needed.index is None:
            raise explained(unknown_number(needed), here()) from None
        raise
    finally:
        recording = recorder.end(params, outputs)
    return recording


_VALUE = STATE.index("_value")


def unknown_number(needed: NeedsValue) -> errors.NumberConversionError:
    return errors.NumberConversionError(
        f"{needed.reason} needs the value of a number that is computed in a loop or a branch, "
        "which is known only when the compiled function runs; use arrays and numpy's functions"
    )


class Part:
    """A part of the function, recorded until all that it writes is known."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.cells: list[Cell] = []  # that it writes, or another part beside it

    def record(
        self, params: Sequence[Var], run: Callable[[], Sequence[Atom]]
    ) -> tuple[Recording, list[Var]]:
        """The recording, and for each cell that is written the parameter it begins with."""
        for _ in range(MOST_RECORDINGS):
            begun = self.parameters()

            def run_with_parameters(begun: Sequence[Var] = begun) -> Sequence[Atom]:
                self.hold(begun)
                return run()

            recording = record(self.builder, [*params, *begun], run_with_parameters)
            if not self.add(recording):
                return recording, begun
        raise errors.SideEffectError(
            "a loop or a branch writes other arrays each time that it is traced: write arrays that "
            "are made before it, always the same ones"
        )

    def add(self, recording: Recording) -> bool:
        """Whether arrays are written that were not known to be."""
        new = [cell for cell, _ in recording.written if not any(cell is c for c in self.cells)]
        self.cells += new
        return bool(new)

    def values(self, recording: Recording) -> list[Atom]:
        """What the cells hold at the end."""
        return [_held(recording, cell, var) for cell, var in self._begun(recording)]

    def _begun(self, recording: Recording) -> list[tuple[Cell, Var]]:
        count = len(self.cells)
        return list(zip(self.cells, recording.params[len(recording.params) - count :], strict=True))

    def parameters(self) -> list[Var]:
        """New variables for what the cells hold."""
        return [self._parameter(cell) for cell in self.cells]

    def hold(self, begun: Sequence[Var]) -> None:
        """Let the cells hold these, in a part that is being recorded."""
        for cell, var in zip(self.cells, begun, strict=True):
            self._hold(cell, var)

    def _parameter(self, cell: Cell) -> Var:
        old = cell._value
        var = Var(old.shape, old.dtype, getattr(old, "name", None))
        self.builder.memory.stay(var, cell)
        return var

    def _hold(self, cell: Cell, var: Var) -> None:
        note(cell)
        if cell._layout is None:
            cell._layout = cell._value
        self.builder.writes += 1
        cell._value, cell._version = var, self.builder.writes

    def write_back(self, outputs: Sequence[Var]) -> None:
        """Let the cells hold what is there after the loop or the choice."""
        for cell, output in zip(self.cells, outputs, strict=True):
            write(cell, output, follow=False)  # what may be the same array is among them


def _held(recording: Recording, cell: Cell, begun: Var) -> Atom:
    return next((atom for each, atom in recording.written if each is cell), begun)


def closed(name: str, recording: Recording, outputs: Sequence[Atom], reads: Sequence[Var]) -> Graph:
    """The graph of a recording: of its parameters, then of what it reads from outside."""
    inputs = (*recording.params, *reads)
    return Graph(name, inputs, tuple(recording.eqns), tuple(outputs))


def also(recording: Recording, op: str, first: Atom, second: Atom) -> Var:
    """A truth of two, computed at the end of a recording."""
    output = Var((), BOOL)
    recording.eqns.append(Eqn(p.elementwise, (first, second), {"op": op}, output))
    return output


FALSE = Literal(BOOL.type(False))
