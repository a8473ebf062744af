"""What a compiled program has computed of constants, and keeps for all of its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tinyfuse.large_pages import lasting
from tinyfuse.runtime.library import aligned

if TYPE_CHECKING:
    from tinyfuse.compilation import Lowered

Named = tuple[tuple[str, np.ndarray], ...]


class Kept:
    """Arrays that are computed when any thread asks for them first. entry: builds what does so."""

    def __init__(self, lowered: Lowered, entry: Callable[[], Callable[..., int] | None]) -> None:
        self._lowered = lowered
        self._entry = entry
        self._lock = threading.Lock()
        self._arrays: Named | None = None

    def arrays(self) -> Named:
        """The last arrays that the program reads, flat, with their names."""
        with self._lock:
            if self._arrays is None:
                self._arrays = tuple(self._computed())
        return self._arrays

    def _computed(self) -> Iterator[tuple[str, np.ndarray]]:
        loops, entry = self._lowered.once, self._entry() if self._lowered.once else None
        if loops is None or entry is None:
            return
        constants = self._constants()
        given = [constants[buffer.name] for buffer in loops.inputs]
        made = [lasting(buffer.nbytes) for buffer in loops.outputs]
        threads = self._lowered.options.threads if loops.shares_work else 1
        memory = aligned(loops.scratch_bytes)  # not kept, as that of calls is
        status = entry([*given, *made], memory, threads)
        if status:
            raise RuntimeError(f"the compiled {loops.name} failed with status {status}")
        for buffer, array in zip(loops.outputs, made, strict=True):
            yield buffer.name, array.view(buffer.dtype)

    def _constants(self) -> dict[str, np.ndarray]:
        """Those that the program reads, by the names of their buffers."""
        lowered = self._lowered
        trace = lowered.traced.trace
        hidden = trace.graph.inputs[len(trace.graph.inputs) - len(trace.captured) :]
        arrays = dict(zip(hidden, [found.array for found in trace.captured], strict=True))
        inputs = [trace.graph.inputs[at] for at in lowered.plan.operands]
        pairs = zip(lowered.loops.inputs, inputs, strict=False)
        return {buffer.name: arrays[var] for buffer, var in pairs if var.constant}
