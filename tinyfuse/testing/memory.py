"""Copies of arrays that lie in memory as the originals do, and share it as they do."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tinyfuse.runtime.library import aligned

ALIGNMENT = 64  # bytes, to which addresses keep their remainders


def fresh(values: Sequence[Any]) -> list[Any]:
    """The values, with a copy in place of each array.

    Copies have the strides, alignment and writability of their originals, and lie over one
    another where those do; one array given twice has one copy. All else is the same object.
    """
    blocks = _blocks([value for value in values if _is_plain(value)])
    copies: dict[int, np.ndarray] = {}
    for value in values:
        if isinstance(value, np.ndarray) and id(value) not in copies:
            copies[id(value)] = _placed(value, blocks) if _is_plain(value) else value.copy()
    return [copies.get(id(value), value) for value in values]


def _is_plain(value: Any) -> bool:
    return type(value) is np.ndarray and value.size > 0 and not value.dtype.hasobject


Blocks = list[tuple[int, int, np.ndarray]]  # first address and that behind the last; the copy


def _blocks(arrays: Sequence[np.ndarray]) -> Blocks:
    """Copies of all memory between the first and last element of each array."""
    merged: list[list[int]] = []
    for low, high in sorted(byte_bounds(array) for array in arrays):
        if merged and low < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return [(low, high, _copied(low, high)) for low, high in merged]


def _copied(low: int, high: int) -> np.ndarray:
    before = low % ALIGNMENT
    block = aligned(before + high - low)[before:]
    block[...] = np.frombuffer(ctypes.string_at(low, high - low), np.uint8)
    return block


def _placed(array: np.ndarray, blocks: Blocks) -> np.ndarray:
    address = array.__array_interface__["data"][0]
    low, _, block = next(each for each in blocks if each[0] <= address < each[1])
    copy = np.ndarray(array.shape, array.dtype, block, address - low, array.strides)
    copy.flags.writeable = array.flags.writeable
    return copy


def share_memory(first: Any, second: Any) -> bool:
    """Whether two values may have elements in the same memory; numpy scalars never have."""
    return (
        isinstance(first, np.ndarray)
        and isinstance(second, np.ndarray)
        and np.may_share_memory(first, second)
    )
