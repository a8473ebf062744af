"""Arrays on a GPU, and their exchange with CuPy, PyTorch, JAX and Numba without copies.

Two protocols: `__cuda_array_interface__` (version 3), a dictionary, and DLPack, a C structure in a
capsule. An array is ready in its stream: a consumer that names another one makes that wait.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyfuse.dtypes import describe, is_supported
from tinyfuse.errors import DeviceArrayError
from tinyfuse.runtime.driver import (
    Device,
    Memory,
    Stream,
    copy_on_device,
    copy_to_device,
    copy_to_host,
)
from tinyfuse.runtime.exchange import Managed, export, imported

ON_CUDA = 2  # DLPack's number for memory of NVIDIA's GPUs
ALIGNMENT = 16  # bytes, of which kernels load as many at once
_LEGACY, _NO_WAIT = 1, -1  # of streams, in both protocols


class DeviceArray:
    """An array on a GPU, its elements in C order.

    shape, dtype: as numpy has them. stream: in which its elements come to be.
    """

    __slots__ = ("__weakref__", "address", "dtype", "keeps", "read_only", "shape", "stream")

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        stream: Stream,
        keeps: object,
        *,
        read_only: bool = False,
    ) -> None:
        self.address, self.shape, self.dtype = address, shape, dtype
        self.stream = stream
        self.keeps = keeps  # what owns the memory
        self.read_only = read_only

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """A copy in the memory of the host; waits until the elements have come to be."""
        array = np.empty(self.shape, self.dtype)
        if array.size:
            copy_to_host(array.reshape(-1).view(np.uint8), self.address, self.stream)
        self.stream.wait()
        return array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, self.read_only),
            "strides": None,
            "stream": self.stream.number or _LEGACY,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return ON_CUDA, self.stream.device.number

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule with the array, for a consumer that works in a stream of this number."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("an array on a GPU is handed over as it is, where it is: copy it")
        if self.read_only:
            raise BufferError("this array can only be read, which DLPack cannot say: copy it")
        if stream != _NO_WAIT:
            _stream(self.stream.device, stream).after(self.stream)
        return export(
            Managed(self.address, self.shape, self.dtype, self.stream.device.number, self)
        )

    def __repr__(self) -> str:
        return f"<{describe(self.shape, self.dtype)} on {self.stream.device.name}>"


def empty(shape: tuple[int, ...], dtype: np.dtype, stream: Stream) -> DeviceArray:
    """An array whose elements have no value yet.

    Raises DeviceMemoryError where there is no memory for it.
    """
    memory = Memory(stream, math.prod(shape) * dtype.itemsize)
    return DeviceArray(memory.address, shape, dtype, stream, memory)


def copied(array: np.ndarray, stream: Stream) -> DeviceArray:
    """A copy of a numpy array on the device."""
    made = empty(array.shape, array.dtype, stream)
    if array.size:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        copy_to_device(made.address, flat, stream)
    return made


def aligned(array: DeviceArray) -> DeviceArray:
    """The array, or a copy of it where its memory does not begin where kernels want it to."""
    if array.address % ALIGNMENT == 0 or not array.size:
        return array
    made = empty(array.shape, array.dtype, array.stream)
    copy_on_device(made.address, array.address, array.nbytes, array.stream)
    return made


def is_on_device(value: object) -> bool:
    """Whether it is an array in the memory of a GPU of NVIDIA's, of any library."""
    if hasattr(value, "__cuda_array_interface__"):
        return True
    place = getattr(value, "__dlpack_device__", None)
    return place is not None and not isinstance(value, np.ndarray) and place()[0] == ON_CUDA


def as_device_array(value: Any, stream: Stream) -> DeviceArray:
    """The same memory as an array that is ready in this stream; `value` lives as long as it does.

    Raises:
        DeviceArrayError: it is no array on this device, has a dtype that tinyfuse does not compute
            with, or its elements do not lie in C order.
    """
    if isinstance(value, DeviceArray):
        stream.after(value.stream)
        return DeviceArray(
            *(value.address, value.shape, value.dtype, stream, value), read_only=value.read_only
        )
    if hasattr(value, "__cuda_array_interface__"):
        return _of_interface(value, value.__cuda_array_interface__, stream)
    if hasattr(value, "__dlpack__"):
        return _of_capsule(value, stream)
    raise DeviceArrayError(
        f"an object of type {type(value).__name__} is no array on a GPU: it has neither "
        "__cuda_array_interface__ nor __dlpack__"
    )


def _of_interface(value: Any, interface: dict[str, Any], stream: Stream) -> DeviceArray:
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if interface.get("mask") is not None:
        raise DeviceArrayError(f"{describe(shape, dtype)}: arrays with a mask are not taken")
    _require(shape, dtype, _steps(interface.get("strides"), dtype))
    ready = interface.get("stream")
    if ready is not None:
        stream.after(_stream(stream.device, ready))
    address, read_only = interface["data"]
    return DeviceArray(address, shape, dtype, stream, value, read_only=read_only)


def _of_capsule(value: Any, stream: Stream) -> DeviceArray:
    kind, number = value.__dlpack_device__()
    if (kind, number) != (ON_CUDA, stream.device.number):
        raise DeviceArrayError(
            f"the array lies on device {(kind, number)} of DLPack, and not on "
            f"{stream.device!r}, {(ON_CUDA, stream.device.number)}"
        )
    found = imported(value.__dlpack__(stream=stream.number or _LEGACY))
    _require(found.shape, found.dtype, found.steps)
    return DeviceArray(found.address, found.shape, found.dtype, stream, found)


def _stream(device: Device, number: int | None) -> Stream:
    """Somebody else's stream. In both protocols 1 is the usual one, which None is too."""
    if number == 0:
        raise DeviceArrayError("stream 0 is ambiguous: name 1 (legacy) or 2 (of each thread)")
    return Stream(device, 0 if number in (None, _LEGACY) else number)


def _steps(strides: tuple[int, ...] | None, dtype: np.dtype) -> tuple[int, ...] | None:
    return None if strides is None else tuple([step // dtype.itemsize for step in strides])


def _require(shape: tuple[int, ...], dtype: np.dtype, steps: tuple[int, ...] | None) -> None:
    if not (dtype.isnative and is_supported(dtype)):
        raise DeviceArrayError(f"{describe(shape, dtype)}: tinyfuse does not compute with {dtype}")
    if steps is None or 0 in shape:
        return
    step = 1
    for extent, own in zip(reversed(shape), reversed(steps), strict=True):
        if extent != 1 and own != step:
            raise DeviceArrayError(
                f"{describe(shape, dtype)}: its elements do not lie in C order (steps {steps}): "
                "make a contiguous copy"
            )
        step *= extent
