"""Whole CUDA programs on the emulated device: launches in order, and the loops around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.emit.launch import (
    ChoiceLaunches,
    CudaBuffer,
    CudaProgram,
    Launch,
    LaunchStep,
    LaunchSteps,
    Moves,
    RepeatLaunches,
    WhileLaunches,
)
from tinyfuse.errors import EmulationError
from tinyfuse.records import dataclass
from tinyfuse.runtime.emulator import (
    DeviceBytes,
    EmulatedKernels,
    LaunchReport,
    Order,
    device_copy,
    emulated,
)


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """What a run of a program gave: flat outputs, in their order, and a report of each launch.

    error: of the launch that went wrong; the run ended there.
    """

    outputs: tuple[np.ndarray, ...]
    launches: tuple[LaunchReport, ...]
    error: str | None


def run_program(
    program: CudaProgram,
    inputs: Sequence[np.ndarray],
    *,
    check: bool = True,
    order: Order = "forward",
    seed: int = 1,
) -> ProgramReport:
    """Run a program on copies of the inputs.

    Args:
        program: with its text and what is launched of it.
        inputs: one for each buffer that is an input, with as many elements of its dtype.
        check: whether every access is checked and counted; without, it takes a half to an eighth of
            the time.
        order: in which threads and blocks run.
        seed: of random orders.

    Raises:
        EmulationError: an input does not fit.
        CompilationError: the compiler refused the text.
    """
    run = _Run(emulated(program.text, check), order, seed, _memories(program.buffers, inputs))
    outputs = [
        (memory, buffer)
        for memory, buffer in zip(run.memories, program.buffers, strict=True)
        if buffer.role == "output"
    ]
    error = next((report.error for report in run.steps(program.steps) if report.error), None)
    arrays = [memory.as_array(buffer.dtype, (buffer.size,)) for memory, buffer in outputs]
    return ProgramReport(tuple(arrays), tuple(run.reports), error)


def _memories(buffers: Sequence[CudaBuffer], inputs: Sequence[np.ndarray]) -> list[DeviceBytes]:
    given = iter(inputs)
    memories = []
    for buffer in buffers:
        if buffer.role == "input":
            memories.append(device_copy(_fitting(next(given, None), buffer), read_only=True))
        else:
            memories.append(DeviceBytes(buffer.nbytes, has_value=False))
    return memories


def _fitting(array: np.ndarray | None, buffer: CudaBuffer) -> np.ndarray:
    if array is None or (array.size, array.dtype) != (buffer.size, buffer.dtype):
        given = "nothing" if array is None else f"{array.dtype.name}[{array.size}]"
        raise EmulationError(
            f"input {buffer.name} is {buffer.dtype.name}[{buffer.size}], and was given {given}"
        )
    return array


class _Run:
    def __init__(
        self, kernels: EmulatedKernels, order: Order, seed: int, memories: list[DeviceBytes]
    ) -> None:
        self.kernels, self.order, self.seed = kernels, order, seed
        self.memories = memories
        self.reports: list[LaunchReport] = []

    def steps(self, steps: LaunchSteps) -> Iterator[LaunchReport]:
        """Reports as launches end: what takes no more of them ends the run."""
        for step in steps.body:
            yield from self._step(step)
        self._move(steps.moves)

    def _step(self, step: LaunchStep) -> Iterator[LaunchReport]:
        if isinstance(step, Launch):
            yield self._launch(step)
        elif isinstance(step, RepeatLaunches):
            place = step.counted
            for turn in range(step.count if place is None else self._read(place, INT64)):
                if step.turn is not None:
                    self._write(step.turn, turn)
                yield from self.steps(step.steps)
        elif isinstance(step, WhileLaunches):
            while self._read(step.test, BOOL):
                yield from self.steps(step.steps)
        else:
            yield from self._branch(step)

    def _branch(self, step: ChoiceLaunches) -> Iterator[LaunchReport]:
        number = self._read(step.index, INT64)
        yield from self.steps(step.branches[min(max(number, 0), len(step.branches) - 1)])

    def _launch(self, step: Launch) -> LaunchReport:
        report = self.kernels.launch(
            step.kernel,
            step.grid,
            step.block,
            [np.uint64(self.memories[place].address) for place in step.arguments],
            [self.memories[place] for place in dict.fromkeys(step.arguments)],
            shared=step.shared,
            order=self.order,
            seed=self.seed,
        )
        self.reports.append(report)
        return report

    def _read(self, place: int, dtype: np.dtype) -> int:
        return int(self.memories[place].block[: dtype.itemsize].view(dtype)[0])

    def _write(self, place: int, value: int) -> None:
        memory = self.memories[place]
        memory.block.view(np.int64)[0] = value
        if memory.written is not None:
            memory.written[:] = 1

    def _move(self, moves: Moves) -> None:
        before = list(self.memories)
        for to, source in moves:
            self.memories[to] = before[source]
