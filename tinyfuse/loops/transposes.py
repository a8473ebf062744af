"""Which blocks `Transpose` can transpose: of vectors that `transposes.h` has functions for."""

from __future__ import annotations

# For each number of bytes of an element, the lanes of vectors of 16 to 64 bytes; no more than 16,
# as many vectors have to be in registers.
LANES = {1: (16,), 2: (8, 16), 4: (4, 8, 16), 8: (4, 8)}


def lanes_for(itemsize: int, extent: int, vector_bytes: int) -> int | None:
    """The most lanes for blocks of so many rows or columns at least; None for too few of them."""
    widest = max(vector_bytes // itemsize, LANES[itemsize][0])
    return max((n for n in LANES[itemsize] if n <= min(extent, widest)), default=None)
