"""The element types that tinyfuse computes with, and how they are named."""

from __future__ import annotations

import numpy as np

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
UINT64 = np.dtype(np.uint64)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
COMPLEX64 = np.dtype(np.complex64)
COMPLEX128 = np.dtype(np.complex128)

SIGNED = tuple(np.dtype(name) for name in ("int8", "int16", "int32", "int64"))
UNSIGNED = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
FLOATING = (FLOAT32, FLOAT64)
SUPPORTED = (BOOL, *SIGNED, *UNSIGNED, *FLOATING)  # of stages, loops and C
# Of graphs as they are traced; compiled as two real arrays.
COMPLEX: tuple[np.dtype, ...] = (COMPLEX64, COMPLEX128)

_SUPPORTED = frozenset((*SUPPORTED, *COMPLEX))
_PARTS: dict[np.dtype, np.dtype] = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
COMPLEX_OF = {part: whole for whole, part in _PARTS.items()}


SUPPORTED_TEXT = (
    "bool, int8..int64, uint8..uint64, float16, bfloat16, float32, float64, complex64 and "
    "complex128"
)


def is_supported(dtype: np.dtype) -> bool:
    """Whether values of this dtype (in native byte order) can be computed with."""
    return dtype in _SUPPORTED or is_half(dtype)


def is_complex(dtype: np.dtype) -> bool:
    return dtype in _PARTS


def part_dtype(dtype: np.dtype) -> np.dtype:
    """That of the real and the imaginary part of complex numbers; itself of real ones."""
    return _PARTS.get(dtype, dtype)


def native(dtype: np.dtype) -> np.dtype:
    """The dtype in native byte order; itself if it is so."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def is_half(dtype: np.dtype) -> bool:
    """Whether it is a dtype of 16 bits that values are stored in, and computed with in float32."""
    return dtype == FLOAT16 or is_bfloat16(dtype)


def is_bfloat16(dtype: np.dtype) -> bool:
    """Whether it is that of the package ml_dtypes, which numpy takes for a kind of bytes."""
    return dtype.kind == "V" and dtype.name == "bfloat16"


def is_floating(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or is_bfloat16(dtype)


def describe(shape: tuple[int, ...], dtype: np.dtype) -> str:
    """The type of an array as messages and printers write it: `float32[3, 4]`, `int64[]`."""
    return f"{dtype.name}[{', '.join(map(str, shape))}]"
