"""Memory for arrays that stay, one after the other in large pages.

A processor finds its way in small pages for the last few hundred of them only. Who reads the
weights of a network at each call, from beginning to end, spends a fifth of the time on that and
more. numpy asks the system for large pages where an array is large itself: weights are many of some
hundred kilobytes.
"""

from __future__ import annotations

import threading

import numpy as np

ALIGNMENT = 64
PAGE = 2 << 20
# Bytes that are asked for at once.
BLOCK = 8 * PAGE
# Smaller arrays do not matter, and would keep a block that others have left.
LEAST = 1 << 15

_lock = threading.Lock()
_free = np.empty(0, np.uint8)  # what is left of the last block


def lasting(nbytes: int) -> np.ndarray:
    """Fresh memory: uint8[nbytes], aligned to 64 bytes. Raises MemoryError."""
    global _free
    if not LEAST <= nbytes <= BLOCK - PAGE:
        return _from(np.empty(nbytes + ALIGNMENT, np.uint8), ALIGNMENT)[:nbytes]
    taken = -(-nbytes // ALIGNMENT) * ALIGNMENT
    with _lock:
        if taken > _free.size:
            _free = _from(np.empty(BLOCK, np.uint8), PAGE)
        found, _free = _free[:nbytes], _free[taken:]
    return found


def copied(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A copy in C order that nobody can write: the flag cannot be set either."""
    memory = lasting(array.size * dtype.itemsize)
    np.copyto(memory.view(dtype).reshape(array.shape), array)
    return np.asarray(memory.data.toreadonly()).view(dtype).reshape(array.shape)


def _from(block: np.ndarray, alignment: int) -> np.ndarray:
    return block[-block.ctypes.data % alignment :]
