"""Which rows `HalveRow` can halve: those of the lanes of floating-point sums."""

from __future__ import annotations

import numpy as np

from tinyfuse.graph.orders import LANES


def can_halve(dtype: np.dtype, extent: int, operation: str = "add") -> bool:
    """Whether `halving_rows.h` can combine so many elements of a dtype by an operation."""
    return dtype.kind == "f" and extent in (LANES.lanes, LANES.few) and operation == "add"
