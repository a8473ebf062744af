"""How many bytes kernels write: each store to an array counts, as often as it runs."""

from __future__ import annotations

from collections.abc import Iterable

from tinyfuse.loops.cost import repeated
from tinyfuse.loops.ir import Kernel, Scope, Store


def written_bytes(kernels: Iterable[Kernel]) -> int:
    """Of one run of each, without what they keep on the stack and in registers."""
    return sum(
        times * statement.buffer.dtype.itemsize
        for kernel in kernels
        for statement, times, _ in repeated(kernel.body)
        if isinstance(statement, Store)
        and statement.buffer.scope in (Scope.ARGUMENT, Scope.SCRATCH)
    )
