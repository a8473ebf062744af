"""Programs that note when each of their kernels begins and ends: built from the same loop nests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tinyfuse.emit.c import emit_c
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.inspect.counters import EVENTS
from tinyfuse.loops.ir import Loops
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import loaded, scratch
from tinyfuse.runtime.linking import address, find, open_library

_HEAD = 3  # words: the function to tell, how many files, how many sums


class Watched:
    """A program with the arrays of one call. Its kernels are the very same C.

    arrays: inputs and outputs, C-contiguous, as `Entry` takes them; the outputs are written.
    """

    def __init__(
        self, name: str, loops: Loops, arrays: Sequence[np.ndarray], threads: int | None
    ) -> None:
        module = emit_c(loops, watched=True)
        self._entry = loaded(module.text, f"{name}, watched", module.entry)
        self._loops, self._threads = loops, threads
        self._arrays = list(arrays)

    def seconds(self) -> np.ndarray:
        """Run it: float64[kernels], how long each took."""
        before, after = self._around(self._noted(()))
        return (after[:, 0] - before[:, -1]) * 1e-9

    def counts(self, files: Sequence[tuple[int, int]]) -> np.ndarray:
        """Run it: int64[kernels, events], how often each event came about within each.

        files: descriptors of counters, each with the place of its event.
        """
        before, after = self._around(self._noted(files))
        return np.maximum(after[:, 1:-1] - before[:, 1:-1], 0)

    def _around(self, noted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The moments before and after each kernel; the sum of all of its runs."""
        return (noted[::2], noted[1::2]) if self._loops.steps else (noted[:-1], noted[1:])

    def _noted(self, files: Sequence[tuple[int, int]]) -> np.ndarray:
        """int64[moments, 2 + events]: time in nanoseconds, sums of counts, time."""
        places = np.array(files, np.int64).reshape(-1)
        kernels = len(self._loops.kernels)
        moments = 2 * kernels if self._loops.steps else kernels + 1
        width = len(EVENTS) + 2
        words = np.zeros(_HEAD + len(places) + moments * width, np.int64)
        words[:_HEAD] = _note(), len(files), len(EVENTS)
        words[_HEAD : _HEAD + len(places)] = places
        memory = scratch(self._loops.scratch_bytes)
        status = self._entry([*self._arrays, words], memory, self._threads)
        if status:
            raise RuntimeError(f"the compiled {self._loops.name} failed with status {status}")
        return words[_HEAD + len(places) :].reshape(moments, width)


@cache
def _note() -> int:
    """The address of `tf_note`, whose library stays loaded."""
    text = (runtime_c() / "watch.c").read_text()
    return address(find(open_library(build(text, "watch", libc=True)), "tf_note", "tf_entry"))
