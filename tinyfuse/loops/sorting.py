"""How a row is sorted, and what that needs besides the row itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tinyfuse.graph.shapes import MOST_POSITIONS
from tinyfuse.stage.ir import Sort

WIDEST = np.dtype(np.uint64)


class NetworkBlock(NamedTuple):
    """What is sorted at once in registers: so many vectors, each of so many lanes."""

    rows: int
    lanes: int

    @property
    def size(self) -> int:
        return self.rows * self.lanes


# By bytes of an item, smaller ones first. Of no fewer vectors than lanes, columns fill vectors.
BLOCKS = {
    2: (NetworkBlock(8, 8), NetworkBlock(16, 8), NetworkBlock(16, 16)),
    4: (
        NetworkBlock(4, 4),
        NetworkBlock(8, 4),
        NetworkBlock(8, 8),
        NetworkBlock(16, 8),
        NetworkBlock(16, 16),
    ),
    8: (
        NetworkBlock(4, 2),
        NetworkBlock(4, 4),
        NetworkBlock(8, 4),
        NetworkBlock(8, 8),
        NetworkBlock(16, 8),
    ),
}

# By bytes of an element: how long rows are that take less time sorted by one byte after the other.
BYTEWISE = {Sort.ELEMENTS: {1: 1024, 2: 1 << 18}, Sort.POSITIONS: {1: 256, 2: 512, 4: 8192}}


def item_size(sort: Sort, dtype: np.dtype) -> int:
    """Bytes of what is sorted in vectors: an element, or one and its position."""
    return max(dtype.itemsize, 2 if sort is Sort.ELEMENTS else 8)


def block_for(sort: Sort, dtype: np.dtype, extent: int, vector_bytes: int) -> NetworkBlock | None:
    """In which blocks to sort a row: the smallest that holds it, or the largest. None: by bytes."""
    if extent >= BYTEWISE[sort].get(dtype.itemsize, MOST_POSITIONS):
        return None
    size = item_size(sort, dtype)
    blocks = [block for block in BLOCKS[size] if block.lanes * size <= max(vector_bytes, 16)]
    return next((block for block in blocks if block.size >= extent), blocks[-1])


def work_type(
    sort: Sort, dtype: np.dtype, extent: int, block: NetworkBlock | None
) -> tuple[np.dtype, int]:
    """(dtype, how many) of the memory to sort a row of so many elements of a dtype in.

    Elements become keys, unsigned integers of their size: these, and as many to merge them into.
    With positions: a key of at most four bytes and its position are one integer, and the result has
    room for these; wider ones are pairs. In vectors, items of a row and as many to merge them into,
    with room for a block more each; positions of wide elements need a third.
    """
    if block:
        wide = sort is Sort.POSITIONS and dtype.itemsize == 8
        return np.dtype(f"i{item_size(sort, dtype)}"), (2 + wide) * (extent + block.size)
    if sort is Sort.ELEMENTS:
        return np.dtype(f"u{dtype.itemsize}"), 2 * extent
    return WIDEST, (1 if dtype.itemsize <= 4 else 4) * extent
