"""Kernels whose steps take so long that a processor sees little more than one of them at a time.

A core looks ahead for instructions that need not wait, some hundred of them. Where a step of a loop
has more, each waiting for the one before, gcc has to put independent ones next to each other; as it
does not by default for this kind of processors. In short steps that would only cost registers.
"""

from __future__ import annotations

from tinyfuse.loops.ir import For, Kernel, walk_statements
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.analysis import point_cost

# The name of what such kernels are declared with, and what that is.
INTERLEAVED = "tf_interleaved"
INTERLEAVED_TEXT = """\
// for gcc, which does not move instructions before it gives them registers
#if defined(__GNUC__) && !defined(__clang__)
#define tf_interleaved __attribute__((optimize("schedule-insns", "no-tree-pre")))
#else
#define tf_interleaved
#endif"""
# What a step takes, in additions.
LONG_STEP = 100


def has_long_steps(kernel: Kernel) -> bool:
    return any(
        isinstance(node, For)
        and sum(point_cost(value) for each in node.body for value in values_of(each)) >= LONG_STEP
        for node in walk_statements(kernel.body)
    )
