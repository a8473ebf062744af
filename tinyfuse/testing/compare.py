"""Equality to the bit, and what to say where it fails."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse.dtypes import describe, is_floating
from tinyfuse.graph.complex_parts import parts_array


def bits(array: np.ndarray) -> np.ndarray:
    """The elements as unsigned integers, with one pattern for all NaNs.

    Of complex numbers the parts, along another axis.
    """
    array = parts_array(np.ascontiguousarray(array))
    unsigned = array.view(f"u{array.itemsize}")
    if not is_floating(array.dtype):
        return unsigned
    return np.where(np.isnan(array), np.array(np.nan, array.dtype).view(unsigned.dtype), unsigned)


def difference(expected: Any, actual: Any) -> str | None:
    """How a result differs from the expected one in kind, dtype, shape or a bit, or None.

    Numpy scalars, 0-d arrays and Python floats are different kinds. NaN is equal to NaN.
    """
    if _kind(expected) != _kind(actual):
        return f"expected {_article(expected)}, found {_article(actual)}"
    if not isinstance(expected, np.ndarray | np.generic | float):
        return None if expected == actual else f"expected {expected!r}, found {actual!r}"
    expected, actual = np.asarray(expected), np.asarray(actual)
    if (expected.dtype, expected.shape) != (actual.dtype, actual.shape):
        return f"expected {_type(expected)}, found {_type(actual)}"
    return _first_element(expected, actual)


def _first_element(expected: np.ndarray, actual: np.ndarray) -> str | None:
    expected, actual = parts_array(expected), parts_array(actual)
    want, have = bits(expected).reshape(expected.shape), bits(actual).reshape(actual.shape)
    differing = np.argwhere(want != have)
    if not len(differing):
        return None
    index = tuple(differing[0].tolist())
    both = [
        f"{value[index]} (0x{pattern[index]:0{2 * pattern.itemsize}x})"
        for value, pattern in ((expected, want), (actual, have))
    ]
    return (
        f"{_type(expected)} element {list(index)}: expected {both[0]}, found {both[1]};"
        f" {len(differing)} of {want.size} elements differ"
    )


def _type(array: np.ndarray) -> str:
    return describe(array.shape, array.dtype)


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "array"
    return "numpy scalar" if isinstance(value, np.generic) else type(value).__name__


def _article(value: Any) -> str:
    kind = _kind(value)
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def ulps(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Distance of floats in units in the last place; 0 where both are NaN, huge where one is.

    For arrays of one dtype; unsigned integers of its width, in the shape they broadcast to.
    """
    steps = [_ordinal(np.asarray(value)) for value in (expected, actual)]
    distance = np.where(steps[0] > steps[1], steps[0] - steps[1], steps[1] - steps[0])
    nan = np.isnan(expected), np.isnan(actual)
    huge = np.iinfo(distance.dtype).max
    return np.where(nan[0] & nan[1], 0, np.where(nan[0] | nan[1], huge, distance))


def _ordinal(array: np.ndarray) -> np.ndarray:
    """Unsigned integers in the order of the floats; the zeros have one place."""
    unsigned = array.view(f"u{array.itemsize}")
    middle = unsigned.dtype.type(1 << (8 * array.itemsize - 1))
    magnitude = unsigned & ~middle
    return np.where(np.signbit(array), middle - magnitude, middle + magnitude)
