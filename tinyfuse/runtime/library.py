"""Shared libraries in this process: entries called with numpy arrays, through cffi.

cffi lets go of the interpreter lock (GIL) during a call.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinyfuse.errors import CompilationError
from tinyfuse.runtime.build import build
from tinyfuse.runtime.declarations import ffi
from tinyfuse.runtime.linking import closing, find, open_library
from tinyfuse.runtime.pool import pool

SCRATCH_ALIGNMENT = 64  # bytes: a cache line, the widest vector

_address = ffi.from_buffer
_NULL = ffi.NULL
_NOTHING = np.empty(0, np.uint8)


class Entry:
    """A compiled function `int symbol(void *const *arrays, void *scratch, const tf_pool *pool)`.

    Its library stays loaded for as long as it, or a call of it, lives.
    """

    __slots__ = ("_function", "_library", "path", "symbol")

    def __init__(self, path: Path, symbol: str, library: Any, function: Any) -> None:
        self.path = path
        self.symbol = symbol
        self._library = library
        self._function = function

    @property
    def nbytes(self) -> int:
        """Bytes of the library."""
        return self.path.stat().st_size

    @property
    def function(self) -> Any:
        """The function itself, which cffi calls; only the entry keeps its library loaded."""
        return self._function

    def __call__(
        self,
        arrays: Sequence[np.ndarray],
        scratch: np.ndarray | None = None,
        threads: int | None = None,
    ) -> int:
        """Call it on the elements of the arrays; from several threads at once if so wished.

        Args:
            arrays: C-contiguous, inputs before outputs; what they hold is not checked.
            scratch: memory for intermediates, as `scratch` gives it.
            threads: how many to use; None: as many as `num_threads` says; 1: this one only.

        Returns:
            The function's status, 0 if all went well.

        Raises:
            ValueError: an array is not C-contiguous.
        """
        memory = _NULL if scratch is None else _address(scratch)
        return self._function([_address(array) for array in arrays], memory, pool(threads))

    def __repr__(self) -> str:
        return f"<entry {self.symbol} of {self.path}>"


def load(path: Path, symbol: str) -> Entry:
    """The function of this name in a shared library, which is unloaded when the entry is dropped.

    Raises:
        CompilationError: the library cannot be loaded, or has no such function.
    """
    library = closing(open_library(path))
    return Entry(path, symbol, library, find(library, symbol, "tf_entry"))


def loaded(text: str, name: str, symbol: str) -> Entry:
    """The function of this name of a C text, compiled if need be: see `build` and `load`."""
    path = build(text, name)
    try:
        return load(path, symbol)
    except CompilationError:
        if path.exists():
            raise
    return load(build(text, name), symbol)  # somebody has emptied the cache meanwhile


class _Memory(threading.local):
    """What a thread's last call needed."""

    block = _NOTHING


_memory = _Memory()


def scratch(size: int) -> np.ndarray | None:
    """At least `size` bytes, uint8, aligned to 64, the same ones for every call of a thread.

    None for size 0. What the memory holds is not defined.

    Raises:
        MemoryError: there is not that much.
    """
    if not size:
        return None
    if _memory.block.size < size:
        _memory.block = _NOTHING  # let go of the old one first
        _memory.block = aligned(size)
    return _memory.block


def drop_scratch() -> None:
    """Give back the memory that this thread's calls have used."""
    _memory.block = _NOTHING


def aligned(size: int) -> np.ndarray:
    """Fresh memory: uint8[at least size], aligned to 64 bytes."""
    try:
        block = np.empty(size + SCRATCH_ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):  # ValueError: more than an address can count
        raise MemoryError(f"there are no {size} bytes of memory for intermediate arrays") from None
    start = -block.ctypes.data % SCRATCH_ALIGNMENT
    return block[start : start + size]
