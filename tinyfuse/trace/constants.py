"""Arrays that are known while tracing, as values of the graph.

One value everywhere is a stretched literal, a range is an expression of positions, and what is
neither becomes a hidden input: the C has no long list of numbers in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.builder import active

Shape = tuple[int, ...]


def filled_atom(shape: Shape, value: np.generic) -> Atom:
    """An array of one value; it is no literal unless it has no axes."""
    return active().emit(p.broadcast, Literal(value), shape=shape) if shape else Literal(value)


def positions(extent: int, shape: Shape | None = None, axis: int = 0) -> Atom:
    """0 … extent - 1 in int64, as an array of this shape that varies along one axis only."""
    builder = active()
    counted: Atom = builder.emit(p.iota, extent=extent)
    if shape is None or shape == (extent,):
        return counted
    aligned = [1] * len(shape)
    aligned[axis] = extent
    if len(shape) > 1:
        counted = builder.emit(p.reshape, counted, shape=tuple(aligned))
    return builder.emit(p.broadcast, counted, shape=shape)


def constant_atom(array: np.ndarray) -> Atom:
    """An array with these elements."""
    if not array.shape:
        return Literal(array.dtype.type(array))
    if array.size == 0:
        return filled_atom(array.shape, array.dtype.type(0))
    first = array.flat[0]
    bits = _bits(array).reshape(array.size, -1)
    if (bits == bits[0]).all():
        return filled_atom(array.shape, first)
    return active().constant(array)


# Where a range begins, and its step.
Candidate = tuple[Any, Any]


def range_atom(array: np.ndarray, candidates: Sequence[Candidate] = ()) -> Atom:
    """A 1-D array, as `start + step * position` if that gives the same bits."""
    if len(array) > 1 and array.dtype.kind != "c":
        for start, step in ((array[0], array[1] - array[0]), *candidates):
            found = _affine(array, start, step)
            if found is not None:
                return found
    return constant_atom(array)


def _affine(array: np.ndarray, start: Any, step: Any) -> Atom | None:
    dtype = array.dtype if array.dtype.kind == "f" else np.dtype(np.int64)
    if dtype.kind == "i" and not _fits_int64(array):
        return None
    start, step = dtype.type(start), dtype.type(step)
    with np.errstate(all="ignore"):
        counted = np.arange(len(array)).astype(dtype)
        scaled = counted * step if step != 1 else counted
        for moved in (scaled, scaled + start):
            if np.array_equal(_bits(moved.astype(array.dtype)), _bits(array)):
                return _range(
                    len(array), dtype, start if moved is not scaled else None, step, array
                )
    return None


def _range(extent: int, dtype: np.dtype, start: Any, step: Any, array: np.ndarray) -> Atom:
    atom = positions(extent)
    builder = active()
    if dtype != atom.dtype:
        atom = builder.emit(p.cast, atom, dtype=dtype)
    if step != 1:
        atom = builder.emit(p.elementwise, atom, Literal(step), op="multiply")
    if start is not None:
        atom = builder.emit(p.elementwise, atom, Literal(start), op="add")
    return atom if dtype == array.dtype else builder.emit(p.cast, atom, dtype=array.dtype)


def _fits_int64(array: np.ndarray) -> bool:
    return array.dtype.kind in "iu" and (array.dtype != np.uint64 or int(array.max()) < 2**63)


def _bits(array: np.ndarray) -> np.ndarray:
    """The elements as unsigned integers; of complex numbers each part."""
    size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    return np.ascontiguousarray(array).view(f"u{size}")
