"""The element types that tinyfuse computes with, and how they are named."""

from __future__ import annotations

import numpy as np

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
UINT64 = np.dtype(np.uint64)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)

SIGNED = tuple(np.dtype(name) for name in ("int8", "int16", "int32", "int64"))
UNSIGNED = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
FLOATING = (FLOAT32, FLOAT64)
SUPPORTED = (BOOL, *SIGNED, *UNSIGNED, *FLOATING)

_SUPPORTED = frozenset(SUPPORTED)


def is_supported(dtype: np.dtype) -> bool:
    """Whether values of this dtype (in native byte order) can be computed with."""
    return dtype in _SUPPORTED


def describe(shape: tuple[int, ...], dtype: np.dtype) -> str:
    """The type of an array as messages and printers write it: `float32[3, 4]`, `int64[]`."""
    return f"{dtype.name}[{', '.join(map(str, shape))}]"
