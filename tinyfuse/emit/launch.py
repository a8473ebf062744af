"""What a CUDA program is for those who run it: its text, its launches, its memory."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tinyfuse.records import dataclass

Moves = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel.

    kernel: the name of an `extern "C" __global__` function of the text. shared: bytes of dynamic
    shared memory. arguments: places in the program's buffers, in the order of its parameters.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaunchSteps:
    """Launches, and loops and choices around others; then buffers that exchange their memory.

    moves: pairs of places: the first has from now on the memory of the second, all at once.
    """

    body: tuple[LaunchStep, ...]
    moves: Moves = ()


@dataclass(frozen=True, slots=True)
class RepeatLaunches:
    """Runs steps `count` times. turn: the place of one int64 that is given the turn's number.
    counted: of one that says how many turns there are, in place of `count`.
    """

    count: int
    steps: LaunchSteps
    turn: int | None = None
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class WhileLaunches:
    """Runs steps as long as the bool at a place is true."""

    test: int
    steps: LaunchSteps


@dataclass(frozen=True, slots=True)
class ChoiceLaunches:
    """Runs the branch whose number the int64 at a place is, or the nearest."""

    index: int
    branches: tuple[LaunchSteps, ...]


LaunchStep = Launch | RepeatLaunches | WhileLaunches | ChoiceLaunches


@dataclass(frozen=True, slots=True)
class CudaBuffer:
    """`size` elements in the memory of the device. offset: bytes into its scratch memory."""

    name: str
    dtype: np.dtype
    size: int
    role: Literal["input", "output", "scratch"]
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """A whole `.cu`, and what runs of it. buffers: inputs, then outputs, then scratch memory."""

    name: str
    text: str
    buffers: tuple[CudaBuffer, ...]
    steps: LaunchSteps
    scratch_bytes: int = 0
