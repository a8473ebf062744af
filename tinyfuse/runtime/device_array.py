"""Arrays on a GPU, and their exchange with CuPy, PyTorch, JAX and Numba without copies.

Two protocols: `__cuda_array_interface__` (version 3), a dictionary, and DLPack, a C structure in a
capsule. An array is ready in its stream: a consumer that names another one makes that wait.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tinyfuse.dtypes import describe, is_supported
from tinyfuse.errors import CudaError, DeviceArrayError
from tinyfuse.memory import OnDevice, is_on_device
from tinyfuse.runtime.device_streams import current_stream
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


class DeviceArray(OnDevice):
    """An array on a GPU: a result of a function there, or a copy that `device_put` has made.

    shape, dtype, strides: as numpy has them. stream: in which its elements come to be.
    """

    __slots__ = (
        *("__weakref__", "address", "dtype", "given", "keeps", "producer", "read_only", "shape"),
        *("stream", "strides"),
    )

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        stream: Stream,
        keeps: object,
        *,
        strides: tuple[int, ...] | None = None,
        read_only: bool = False,
        given: Any = None,
        producer: Stream | None = None,
    ) -> None:
        """keeps: what owns the memory. strides: None: of C order. given: what it was taken of.
        producer: the stream in which its owner works, if that is known."""
        self.address, self.shape, self.dtype = address, shape, dtype
        self.strides = _in_c_order(shape, dtype) if strides is None else strides
        self.stream, self.producer = stream, producer
        self.keeps, self.given = keeps, given
        self.read_only = read_only

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """A copy in the memory of the host; waits until the elements have come to be."""
        low, high = byte_bounds(self.place) if self.size else (self.address, self.address)
        memory = np.empty(high - low, np.uint8)
        with self.stream.device.current():
            if self.size:
                copy_to_host(memory, low, self.stream)
            self.stream.wait()
        array = np.ndarray(self.shape, self.dtype, memory, self.address - low, self.strides)
        return array if self.is_contiguous else array.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError("numpy does not copy arrays from a GPU unasked: write x.numpy()")

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie in C order, without gaps."""
        return self.place.flags.c_contiguous

    def view(self, place: np.ndarray) -> DeviceArray:
        """A part of it, or another order: as such a view of `self.place` lies."""
        dtype = self.dtype if place.dtype == self.place.dtype else place.dtype
        return DeviceArray(
            *(_address(place), place.shape, dtype, self.stream, self),
            strides=place.strides,
            read_only=not place.flags.writeable,
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, self.read_only),
            "strides": None if self.is_contiguous else self.strides,
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
            with self.stream.device.current():
                self._read_in(_stream(self.stream.device, stream))
        steps = tuple([step // self.dtype.itemsize for step in self.strides])
        return export(
            Managed(self.address, self.shape, self.dtype, self.stream.device.number, self, steps)
        )

    def _read_in(self, reader: Stream) -> None:
        """Let a stream wait for the elements, and the memory be given back after its work."""
        reader.after(self.stream)
        owner: object = self
        while isinstance(owner, DeviceArray):
            owner = owner.keeps
        if isinstance(owner, Memory) and reader.number != owner.stream.number:
            owner.readers[reader.number] = reader

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


def device_put(array: Any) -> DeviceArray:
    """A copy of a numpy array on the GPU, for functions of `jit(target="cuda")`.

    Raises:
        NoGpuError: there is none.
        DeviceArrayError: tinyfuse does not compute with such a dtype.
        DeviceMemoryError: there is no memory for it.
    """
    host = np.asarray(array)
    _require_dtype(host.shape, host.dtype)
    stream = current_stream()
    with stream.device.current():
        return copied(host, stream)


def as_device_array(value: Any, stream: Stream) -> DeviceArray:
    """The same memory as an array that is ready in this stream; `value` lives as long as it does.

    Raises:
        DeviceArrayError: it is no array on this device, has a dtype that tinyfuse does not compute
            with, or its elements do not lie in C order.
    """
    if not is_on_device(value) and not hasattr(value, "__dlpack__"):
        raise DeviceArrayError(
            f"an object of type {type(value).__name__} is no array on a GPU: it has neither "
            "__cuda_array_interface__ nor __dlpack__"
        )
    if isinstance(value, DeviceArray):
        return _of_own(value, stream)
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
        if interface is None or not _is_enough(value, interface):
            return _of_capsule(value, stream)
    except (RuntimeError, BufferError, TypeError, ValueError) as error:
        if isinstance(error, CudaError):
            raise
        raise DeviceArrayError(f"a {type(value).__name__} is not handed over: {error}") from error
    return _of_interface(value, interface, stream)


# Of libraries whose interface does not name the stream that its arrays are made in: that.
_CURRENT: dict[str, Callable[[Any], int]] = {
    "torch": lambda torch: torch.cuda.current_stream().cuda_stream,
}


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _is_enough(value: Any, interface: dict[str, Any]) -> bool:
    """Whether it says all that DLPack does: the kind of numbers, and when they are there."""
    if not hasattr(value, "__dlpack__"):
        return True
    named = interface.get("stream") is not None or _library(value) in _CURRENT
    return named and np.dtype(interface["typestr"]).kind != "V"  # bfloat16 has no name there


def as_argument(value: Any) -> DeviceArray:
    """As `as_device_array`, ready in the stream that the calling thread's work is put into."""
    stream = current_stream()
    with stream.device.current():
        return as_device_array(value, stream)


def _of_own(array: DeviceArray, stream: Stream) -> DeviceArray:
    shape, dtype = array.shape, array.dtype
    _require(shape, dtype, _steps(array.strides, dtype))
    _require_owner(array.stream.device.number, shape, dtype, stream.device)
    stream.after(array.stream)
    return DeviceArray(
        *(array.address, shape, dtype, stream, array),
        read_only=array.read_only,
        given=array,
        producer=array.stream,
    )


def _of_interface(value: Any, interface: dict[str, Any], stream: Stream) -> DeviceArray:
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if interface.get("mask") is not None:
        raise DeviceArrayError(f"{describe(shape, dtype)}: arrays with a mask are not taken")
    _require(shape, dtype, _steps(interface.get("strides"), dtype))
    address, read_only = interface["data"]
    if 0 not in shape:
        _require_owner(stream.device.owner(address), shape, dtype, stream.device)
    producer = _producer(value, interface, stream.device)
    stream.after(producer)
    return DeviceArray(
        *(address, shape, dtype, stream, value),
        read_only=read_only,
        given=value,
        producer=producer,
    )


def _producer(value: Any, interface: dict[str, Any], device: Device) -> Stream:
    ready = interface.get("stream")
    if ready is None and _library(value) in _CURRENT:
        ready = _CURRENT[_library(value)](sys.modules[_library(value)]) or _LEGACY
    return _stream(device, ready)


def _of_capsule(value: Any, stream: Stream) -> DeviceArray:
    kind, number = value.__dlpack_device__()
    if not is_on_device(value) or number != stream.device.number:
        raise DeviceArrayError(
            f"the array lies on device {(int(kind), number)} of DLPack, and not on "
            f"{stream.device!r}, {(ON_CUDA, stream.device.number)}"
        )
    found = imported(value.__dlpack__(stream=stream.number or _LEGACY))
    _require(found.shape, found.dtype, found.steps)
    return DeviceArray(
        *(found.address, found.shape, found.dtype, stream, found),
        read_only=_library(value) in ("jax", "jaxlib"),  # whose arrays never change
        given=value,
    )


def _stream(device: Device, number: int | None) -> Stream:
    """Somebody else's stream. In both protocols 1 is the usual one, which None is too."""
    if number == 0:
        raise DeviceArrayError("stream 0 is ambiguous: name 1 (legacy) or 2 (of each thread)")
    return Stream(device, 0 if number in (None, _LEGACY) else number)


def _steps(strides: tuple[int, ...] | None, dtype: np.dtype) -> tuple[int, ...] | None:
    return None if strides is None else tuple([step // dtype.itemsize for step in strides])


def _in_c_order(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    """Strides in bytes."""
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def _address(place: np.ndarray) -> int:
    found: int = place.__array_interface__["data"][0]
    return found


def _require_owner(
    owner: int | None, shape: tuple[int, ...], dtype: np.dtype, device: Device
) -> None:
    if owner != device.number:
        where = "in no memory of a GPU" if owner is None else f"on GPU {owner}"
        raise DeviceArrayError(f"{describe(shape, dtype)} lies {where}, and not on {device!r}")


def _require_dtype(shape: tuple[int, ...], dtype: np.dtype) -> None:
    if not (dtype.isnative and is_supported(dtype)):
        raise DeviceArrayError(f"{describe(shape, dtype)}: tinyfuse does not compute with {dtype}")


def _require(shape: tuple[int, ...], dtype: np.dtype, steps: tuple[int, ...] | None) -> None:
    _require_dtype(shape, dtype)
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
