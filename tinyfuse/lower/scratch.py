"""Scratch memory: buffers whose lifetimes do not overlap share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyfuse.loops.ir import Buffer, Kernel

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


def plan_scratch(
    kernels: Sequence[Kernel], buffers: Sequence[Buffer]
) -> tuple[tuple[tuple[Buffer, int], ...], int]:
    """(buffer, byte offset) of each buffer, and the bytes in all: first fit, in order of use."""
    return placed_for(_lifetimes(kernels), buffers)


def placed_for(
    lives: Mapping[Buffer, tuple[int, int]], buffers: Sequence[Buffer]
) -> tuple[tuple[tuple[Buffer, int], ...], int]:
    """The same, for the first and the last time that each buffer is used."""
    placed: list[tuple[Buffer, int]] = []
    alive: list[tuple[int, int, int]] = []  # first byte, end and last use of those still used
    total = 0
    for buffer in sorted((b for b in buffers if b in lives), key=lambda b: lives[b][0]):
        first, last = lives[buffer]
        alive = [each for each in alive if first <= each[2]]
        offset = 0
        for start, stop, _ in sorted(alive):
            if offset + aligned(buffer.nbytes) <= start:
                break
            offset = max(offset, stop)
        placed.append((buffer, offset))
        alive.append((offset, offset + aligned(buffer.nbytes), last))
        total = max(total, offset + aligned(buffer.nbytes))
    return tuple(placed), total


def aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _lifetimes(kernels: Sequence[Kernel]) -> dict[Buffer, tuple[int, int]]:
    """The first and the last kernel that touches each buffer."""
    lives: dict[Buffer, tuple[int, int]] = {}
    for place, kernel in enumerate(kernels):
        for buffer in kernel.parameters:
            lives[buffer] = (lives.get(buffer, (place, place))[0], place)
    return lives
