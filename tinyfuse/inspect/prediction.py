"""What a machine should take for a kernel, and what it can do at most."""

from __future__ import annotations

from tinyfuse.loops.ir import Kernel
from tinyfuse.machine import Machine

# A second's worth of simple work on one core, for a rough guess.
_FLOPS = 4e9
_BYTES = 20e9


def predicted_seconds(kernel: Kernel, machine: Machine, threads: int = 1) -> float:
    """How long a run of a kernel should take, its work shared by so many threads."""
    cost = kernel.cost
    one = cost.flops / _FLOPS + (cost.bytes_read + cost.bytes_written) / _BYTES
    return one / (min(threads, machine.cores) if kernel.parallel else 1)


def bytes_per_second(kernel: Kernel, machine: Machine, threads: int = 1) -> float | None:
    """How much the machine can move at most, where that is known."""
    return None


def operations_per_second(kernel: Kernel, machine: Machine, threads: int = 1) -> float | None:
    """How much the machine can compute at most, where that is known."""
    return None
