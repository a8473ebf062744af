"""How many blocks of a kernel a multiprocessor of a GPU can hold at once."""

from __future__ import annotations

from tinyfuse.records import dataclass

WARP = 32  # threads
_REGISTERS_AT_ONCE = 256  # a warp is given registers in such pieces
_SHARED_AT_ONCE = 128  # bytes
_RESERVED = 1024  # bytes of shared memory that the system takes of each block
_PARTITIONS = 4  # of a multiprocessor, each with its part of the registers


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """Of one multiprocessor: 32-bit registers, threads, blocks, bytes of shared memory."""

    registers: int
    threads: int
    blocks: int
    shared: int

    @property
    def most_shared(self) -> int:
        """Bytes of shared memory that one block may have."""
        return self.shared - _RESERVED


MULTIPROCESSORS = {
    "sm_80": Multiprocessor(65536, 2048, 32, 164 * 1024),
    "sm_86": Multiprocessor(65536, 1536, 16, 100 * 1024),
    "sm_89": Multiprocessor(65536, 1536, 24, 100 * 1024),
    "sm_90": Multiprocessor(65536, 2048, 32, 228 * 1024),
}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """blocks: at once on a multiprocessor. part: their threads, of those that it could hold.

    limit: what allows for no more: "registers", "shared memory" or "threads".
    """

    blocks: int
    part: float
    limit: str


def occupancy(architecture: str, threads: int, registers: int, shared: int) -> Occupancy:
    """How many blocks of `threads` threads fit on a multiprocessor.

    Args:
        architecture: one of `MULTIPROCESSORS`.
        threads: of a block.
        registers: of each thread, as ptxas reports them.
        shared: bytes of shared memory of a block, static and dynamic.

    The rules are those of NVIDIA's `cuda_occupancy.h`.
    """
    has = MULTIPROCESSORS[architecture]
    warps = -(-threads // WARP)
    of_warp = _rounded(max(registers, 1) * WARP, _REGISTERS_AT_ONCE)
    blocks = {
        "threads": min(has.blocks, has.threads // WARP // warps),
        "registers": has.registers // _PARTITIONS // of_warp * _PARTITIONS // warps,
        "shared memory": has.shared // (_rounded(shared, _SHARED_AT_ONCE) + _RESERVED),
    }
    limit = min(blocks, key=lambda name: blocks[name])
    fit = blocks[limit]
    return Occupancy(fit, fit * warps * WARP / has.threads, limit)


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit
