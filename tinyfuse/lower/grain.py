"""How many steps of a parallel loop a thread takes at a time."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import Statement, parallel_loop

# Work, in additions, below which handing steps to another thread costs more than it saves: a few
# microseconds of vector code, against about one for the hand-over.
MIN_WORK = 1 << 16


def grain(body: Sequence[Statement], work: int) -> int:
    """The least number of steps worth a thread; 1 where the kernel has no parallel loop.

    work: of the whole kernel, in additions.
    """
    loop = parallel_loop(body)
    if loop is None:
        return 1
    extent = loop.variable.extent
    return max(1, min(extent, MIN_WORK * extent // max(1, work)))
