"""What sorting a row needs besides the row itself."""

from __future__ import annotations

import numpy as np

from tinyfuse.stage.ir import Sort

WIDEST = np.dtype(np.uint64)


def work_type(sort: Sort, dtype: np.dtype) -> tuple[np.dtype, int]:
    """(dtype, how many for each element) of the memory to sort elements of a dtype in.

    Elements become keys, unsigned integers of their size: these, and as many to merge them into.
    With positions: a key of at most four bytes and its position are one integer, and the result has
    room for these; wider ones are pairs.
    """
    if sort is Sort.ELEMENTS:
        return np.dtype(f"u{dtype.itemsize}"), 2
    return WIDEST, 1 if dtype.itemsize <= 4 else 4


# A row that is not shorter has positions that do not fit into an integer beside a narrow key.
LONGEST_ROW = 1 << 32
