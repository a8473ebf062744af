"""Bits of bytes as elements, and back."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.axes import normalize_axis_index
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.operations import reshape, traced
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer

_BYTE = np.dtype(np.uint8)


@listed(np.packbits)
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Tracer:
    x, at = _along(a, axis)
    if x.dtype.kind not in "biu":
        raise errors.ArgumentTypeError("Expected an input array of integer or boolean data type")
    filling = [(0, -extent % 8 if each == at else 0) for each, extent in enumerate(x.shape)]
    padded = np.pad(x != 0, filling)
    count = padded.shape[at] // 8
    groups = padded.reshape((*x.shape[:at], count, 8, *x.shape[at + 1 :]))
    weights = _shifts(bitorder).reshape((8, *(1,) * (x.ndim - 1 - at)))
    placed = np.left_shift(groups.astype(_BYTE), weights)
    packed: Tracer = placed.sum(axis=at + 1, dtype=_BYTE)
    return packed


@listed(np.unpackbits)
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    x, at = _along(a, axis)
    if x.dtype != _BYTE:
        raise errors.ArgumentTypeError("Expected an input array of unsigned byte data type")
    spread = reshape(x, (*x.shape[: at + 1], 1, *x.shape[at + 1 :]))
    shifts = _shifts(bitorder).reshape((8, *(1,) * (x.ndim - 1 - at)))
    bits: Any = np.right_shift(spread, shifts) & _BYTE.type(1)
    found = bits.reshape((*x.shape[:at], 8 * x.shape[at], *x.shape[at + 1 :]))
    return found if count is None else _of_length(found, at, operator.index(count))


def _of_length(bits: Any, axis: int, count: int) -> Any:
    """With as many along the axis, filled up with zeros; a negative count leaves as many out."""
    extent = bits.shape[axis]
    kept = count if count >= 0 else extent + count
    if kept < 0:
        raise errors.InvalidArgumentError(
            f"-count {count} is larger than the number of elements to unpack"
        )
    if kept > extent:
        filling = [(0, kept - extent if each == axis else 0) for each in range(bits.ndim)]
        return np.pad(bits, filling)
    return bits[(slice(None),) * axis + (slice(kept),)]


def _along(a: Any, axis: Any) -> tuple[Tracer, int]:
    x = traced(a)
    if axis is None:
        return reshape(x, (x.size,)), 0
    return x, normalize_axis_index(operator.index(axis), x.ndim)


def _shifts(order: str) -> Any:
    """How far left the bit of each of eight elements lies."""
    if order not in ("big", "little"):
        raise errors.InvalidArgumentError("'order' must be either 'little' or 'big'")
    shifts = NUMPY.arange(8, dtype=_BYTE)
    return 7 - shifts if order == "big" else shifts
