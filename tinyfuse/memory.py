"""Where arrays lie in memory, and whether they share it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

Shape = tuple[int, ...]
Strides = tuple[int, ...]

Pair = tuple[int, int]

_C_CONTIGUOUS = 0x1  # in ndarray.flags.num
CONTIGUOUS_AND_ALIGNED = _C_CONTIGUOUS | 0x100
_FEW = 8  # arrays of which each is compared with each
_WORK: Any = 10_000  # what finding a common element may cost; in numpy's unit


class OnDevice:
    """Base of arrays that lie in the memory of a GPU.

    given: the object that one was taken of; None for tinyfuse's own. strides: in bytes.
    """

    __slots__ = ()

    address: int
    shape: Shape
    dtype: np.dtype
    strides: Strides
    read_only: bool
    given: Any

    @property
    def place(self) -> np.ndarray:
        """An array of numpy's at the same addresses, to be asked where it lies.

        The processor cannot read them: nothing may look at its elements.
        """
        return np.asarray(_Place(self))


class _Place:
    def __init__(self, array: OnDevice) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.address, array.read_only),
            "strides": array.strides,
        }


def placed(value: Any) -> Any:
    """What stands for an array on a GPU in questions of places; anything else is itself."""
    return value.place if isinstance(value, OnDevice) else value


def as_given(value: Any) -> Any:
    """The caller's own object, for an array on a GPU that was taken of one."""
    return value.given if isinstance(value, OnDevice) and value.given is not None else value


_ON_CUDA = (2, 13)  # DLPack's numbers for memory of NVIDIA's GPUs; 13: which the host reads too


def is_on_device(value: Any) -> bool:
    """Whether it is an array in the memory of a GPU of NVIDIA's, of any library."""
    if isinstance(value, type | np.ndarray | np.generic):
        return False
    device = getattr(value, "__dlpack_device__", None)
    if device is not None:
        return device()[0] in _ON_CUDA
    return hasattr(value, "__cuda_array_interface__")


def same_memory(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same elements in the same places."""
    if a is b:
        return True
    if a.shape != b.shape or a.strides != b.strides or a.dtype != b.dtype or not a.size:
        return False
    return _address(a) == _address(b)


def share_elements(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether some element of one is in the other; also where that is too hard to find out."""
    try:
        return np.shares_memory(a, b, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def overlaps_itself(array: np.ndarray) -> bool:
    """Whether several indices may mean the same place."""
    if array.flags.num & _C_CONTIGUOUS:
        return False
    axes = [(abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    span = array.itemsize
    for stride, extent in sorted(axes):
        if stride < span:
            return array.size > 0
        span += stride * (extent - 1)
    return False


def near_pairs(arrays: Sequence[np.ndarray], chosen: Collection[int]) -> list[Pair]:
    """Pairs of positions, one of them chosen, of arrays that may share memory by their bounds."""
    count = len(arrays)
    if count > _FEW:
        return _near_by_address(arrays, chosen)
    return [
        (i, j)
        for i in range(count - 1)
        for j in range(i + 1, count)
        if (i in chosen or j in chosen) and np.may_share_memory(arrays[i], arrays[j])
    ]


def _near_by_address(arrays: Sequence[np.ndarray], chosen: Collection[int]) -> list[Pair]:
    bounds = [(*byte_bounds(array), at) for at, array in enumerate(arrays)]
    begun: list[Pair] = []  # (end, position) of those that reach beyond the place looked at
    found: list[Pair] = []
    for low, high, at in sorted(bounds):
        begun = [(end, other) for end, other in begun if end > low]
        for _, other in begun:
            if at in chosen or other in chosen:
                found.append((min(at, other), max(at, other)))
        if high > low:
            begun.append((high, at))
    return sorted(found)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@lru_cache(maxsize=4096)
def layout(shape: Shape, strides: Strides, itemsize: int) -> Strides:
    """The same for arrays that numpy treats alike when it makes views and copies of them."""
    return small_model(shape, strides, itemsize).strides


def small_model(shape: Shape, strides: Strides, itemsize: int) -> np.ndarray:
    """A small array whose axes lie in memory like those of an array with these strides.

    Its strides are the same for arrays that numpy treats alike: their axes are in the same order,
    with gaps, reversed or repeated where those are.
    """
    extents = tuple([min(extent, 2) for extent in shape])
    steps = _small_steps(shape, strides, itemsize)
    span = 1 + sum([abs(step) for step, extent in zip(steps, extents, strict=True) if extent > 1])
    start = sum([-step for step, extent in zip(steps, extents, strict=True) if step < 0 < extent])
    memory = np.zeros(span * itemsize, np.uint8).view(f"V{itemsize}")
    offset = start * itemsize if all(extents) else 0
    return np.ndarray(extents, memory.dtype, memory, offset, tuple([s * itemsize for s in steps]))


def _small_steps(shape: Shape, strides: Strides, itemsize: int) -> list[int]:
    """Strides in elements."""
    steps = [0] * len(shape)
    last, packed = 0, itemsize  # of the axis before, and where the next one lies without a gap
    small_last, small_packed = 0, 1
    axes = [axis for axis, extent in enumerate(shape) if extent > 1 and strides[axis]]
    for axis in sorted(axes, key=lambda axis: (abs(strides[axis]), -axis)):
        stride = abs(strides[axis])
        if stride != last:
            small_last = small_packed if stride == packed else 2 * small_packed
        last, packed, small_packed = stride, stride * shape[axis], 2 * small_last
        steps[axis] = small_last if strides[axis] > 0 else -small_last
    return steps
