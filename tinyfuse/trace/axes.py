"""Axes and shapes as users give them, checked and normalized as numpy does."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from tinyfuse import errors
from tinyfuse.trace.operations import Shape, shape_text, size_of

__all__ = [
    "axis_tuple",
    "normalize_axis_index",
    "normalize_axis_tuple",
    "reduced_axes",
    "requested_shape",
]


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction, ascending; all for None."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple):
        # numpy lets -1 and 0 stand for all the axes of a scalar
        if ndim == 0 and operator.index(axis) in (0, -1):
            return ()
        return (normalize_axis_index(operator.index(axis), ndim),)
    axes = [normalize_axis_index(operator.index(each), ndim) for each in axis]
    if len(set(axes)) < len(axes):
        raise errors.InvalidArgumentError("duplicate value in 'axis'")
    return tuple(sorted(axes))


def axis_tuple(axis: Any) -> tuple[int, ...]:
    """One axis or several, as given."""
    try:
        return (operator.index(axis),)
    except TypeError:
        return tuple([operator.index(each) for each in axis])


def requested_shape(shape: Any) -> Shape:
    """A shape given as an integer or as a sequence of integers."""
    if isinstance(shape, (int, np.integer)):
        return (operator.index(shape),)
    try:
        return tuple([operator.index(extent) for extent in shape])
    except errors.TinyfuseError:
        raise
    except TypeError as error:
        raise errors.ArgumentTypeError(str(error)) from None


def completed_shape(shape: Sequence[int], size: int) -> Shape:
    """A shape for `size` elements, with its -1 filled in."""
    asked = shape_text(tuple(shape))
    unknown = [at for at, extent in enumerate(shape) if extent < 0]
    if len(unknown) > 1:
        raise errors.InvalidArgumentError("can only specify one unknown dimension")
    known = size_of(tuple([extent for extent in shape if extent >= 0]))
    fits = known and size % known == 0 if unknown else known == size
    if not fits:
        raise errors.ShapeError(f"cannot reshape array of size {size} into shape {asked}")
    return tuple([size // known if extent < 0 else extent for extent in shape])
