"""What a machine can do for a kernel at most, by its constants."""

from __future__ import annotations

import math

from tinyfuse.constants import Constants
from tinyfuse.loops.ir import Kernel
from tinyfuse.machine import Machine
from tinyfuse.schedule.cost import bandwidth, level_of, rate, sharing

UNMEASURED = (
    "what is predicted, and possible at most, is by the constants of another machine:"
    " tinyfuse.calibrate() measures this one"
)


def bytes_per_second(kernel: Kernel, machine: Machine, threads: int) -> float:
    """To and from the nearest cache that holds all that the kernel reads and writes."""
    moved = kernel.cost.bytes_read + kernel.cost.bytes_written
    cores = sharing(kernel, machine, threads)
    return bandwidth(machine, level_of(moved, machine, cores), cores)


def operations_per_second(kernel: Kernel, machine: Machine, threads: int) -> float:
    """If each of its operations took as long as an addition of vector code; 0 without any."""
    spent = math.fsum(
        times / rate(operation, machine) for operation, times in kernel.cost.operations
    )
    return kernel.cost.flops * sharing(kernel, machine, threads) / spent if spent else 0.0


def note(machine: Machine) -> str:
    """A sentence where nobody has measured the machine's constants."""
    return UNMEASURED if machine.constants == Constants() else ""
