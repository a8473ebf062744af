"""How many steps of a parallel loop a thread takes at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinyfuse.loops.cost import Cost
from tinyfuse.loops.ir import Statement, parallel_loop
from tinyfuse.machine import Machine
from tinyfuse.schedule.cost import seconds


def grain(body: Sequence[Statement], spent: Cost, machine: Machine) -> int:
    """The least number of steps worth a thread; 1 where the kernel has no parallel loop.

    They take as long as waking the thread. spent: by the whole kernel.
    """
    loop = parallel_loop(body)
    if loop is None:
        return 1
    extent = loop.variable.extent
    worth = math.ceil(machine.constants.wake * extent / seconds(spent, machine))
    return max(1, min(extent, worth))
