"""Ranks: floating-point values as unsigned integers in the same order.

-0 comes before +0. All NaN come after +inf ("last") or before -inf ("first"), so that maximum and
minimum of ranks, which C compilers may combine in any order, are those of the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNSIGNED: dict[np.dtype, np.dtype] = {
    np.dtype(np.float32): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.uint64),
}
_INFINITY = {"u4": 0x7F80_0000, "u8": 0x7FF0_0000_0000_0000}  # its bits


def _ordered(bits: Any) -> Any:
    """Bits of values to signed integers in the same order, as unsigned ones; its own inverse."""
    top = np.array(8 * bits.itemsize - 1, bits.dtype)
    negative = (bits >> top).astype(bool)
    return np.where(negative, bits ^ np.array(np.iinfo(bits.dtype).max >> 1, bits.dtype), bits)


def _offset(dtype: np.dtype, nan: str) -> Any:
    """What moves the NaN of both signs to one end."""
    above = dtype.type(_INFINITY[dtype.str[1:]] + 1)
    return above if nan == "last" else dtype.type(2 ** (8 * dtype.itemsize) - int(above))


def rank(x: Any, nan: str) -> Any:
    """The ranks of values, with NaN "first" or "last"."""
    bits = np.atleast_1d(x).view(UNSIGNED[np.dtype(x.dtype)])
    return (_ordered(bits) + _offset(bits.dtype, nan)).reshape(np.shape(x))[()]


def of_rank(rank: Any, nan: str) -> Any:
    """The values of ranks."""
    ranks = np.atleast_1d(rank)
    bits = _ordered(ranks - _offset(ranks.dtype, nan))
    return bits.view(f"f{bits.dtype.itemsize}").reshape(np.shape(rank))[()]
