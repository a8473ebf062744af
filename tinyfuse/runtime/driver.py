"""NVIDIA's driver, through cffi: devices, memory, streams, events, kernels, graphs.

What belongs to the device is given back when nothing in Python refers to it any more. No call
waits for the device but those that say so.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from typing import Any

import numpy as np

from tinyfuse.errors import CudaError, DeviceMemoryError, NoGpuError
from tinyfuse.runtime.driver_declarations import ffi
from tinyfuse.runtime.linking import address

LIBRARY = "libcuda.so.1"
REMEDY = 'run the same kernels on the CPU with target="cuda-emulated"'

OUT_OF_MEMORY = 2
_MULTIPROCESSORS, _MAJOR, _MINOR, _MOST_SHARED = 16, 75, 76, 97  # attributes of devices
_DYNAMIC_SHARED = 8  # attribute of functions
_OWNER = 9  # attribute of addresses
_NOT_READY = 600
_STATIC_SHARED = 48 * 1024  # bytes of shared memory that a kernel may have without asking
_NON_BLOCKING = 1
_RELAXED = 2  # other threads may call the driver during a capture


class Driver:
    """The functions of a driver's library.

    Args:
        library: its name, as dlopen takes it.

    Raises:
        NoGpuError: it cannot be loaded, or finds no GPU.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self.functions = ffi.dlopen(library)
        except OSError as error:
            raise NoGpuError(
                f"there is no GPU to run on: {error}; install NVIDIA's driver, or {REMEDY}"
            ) from None
        code = self.functions.cuInit(0)
        if code:
            raise NoGpuError(f"there is no GPU to run on: {self.words(code)}; {REMEDY}")

    def check(self, code: int, attempted: str) -> None:
        """Raises CudaError, or DeviceMemoryError, where a call of the driver gave an error."""
        if code:
            kind = DeviceMemoryError if code == OUT_OF_MEMORY else CudaError
            raise kind(f"{attempted} failed: {self.words(code)}")

    def words(self, code: int) -> str:
        """An error by its name and words: `CUDA_ERROR_NO_DEVICE (no CUDA-capable device …)`."""
        name = self._text("cuGetErrorName", code)
        return f"{name} ({self._text('cuGetErrorString', code)})" if name else f"error {code}"

    def _text(self, function: str, code: int) -> str:
        found = ffi.new("char **")
        failed = getattr(self.functions, function)(code, found)
        return "" if failed else ffi.string(found[0]).decode(errors="replace")

    def made(self, kind: str, attempted: str, make: Callable[[Any], int]) -> Any:
        """What a function of the driver writes to its first argument, of a type of C."""
        place = ffi.new(f"{kind} *")
        self.check(make(place), attempted)
        return place[0]


class _OfThread(threading.local):
    """What a thread has of a device: a stream, and what it has to keep until events happen."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.held: deque[tuple[Event, Sequence[object]]] = deque()


class Device:
    """A GPU, on which this process's memory, streams and kernels are.

    Raises:
        NoGpuError: there is none of this number.
    """

    def __init__(self, driver: Driver, number: int = 0) -> None:
        self.driver, self.number = driver, number
        self._own = _OfThread()
        functions = driver.functions
        count = driver.made("int", "counting GPUs", functions.cuDeviceGetCount)
        if not 0 <= number < count:
            raise NoGpuError(f"there is no GPU {number}: there are {count}; {REMEDY}")
        self._handle = driver.made(
            "int", f"opening GPU {number}", lambda place: functions.cuDeviceGet(place, number)
        )
        self.context = driver.made(
            "void *",
            f"opening GPU {number}",
            lambda place: functions.cuDevicePrimaryCtxRetain(place, self._handle),
        )
        with self.current():
            pass  # a thread without any other has this one from now on

    def use(self) -> None:
        """Make it the one that the calling thread's calls are about."""
        code = self.driver.functions.cuCtxSetCurrent(self.context)
        self.driver.check(code, f"using GPU {self.number}")

    @contextmanager
    def current(self) -> Iterator[None]:
        """Use it inside this block, after which the thread's calls are about what they were, if
        they were about any: other libraries may be at work on another GPU."""
        functions = self.driver.functions
        before = self.driver.made("void *", "asking which GPU is used", functions.cuCtxGetCurrent)
        if before == self.context:
            yield
            return
        self.use()
        try:
            yield
        finally:
            if before != ffi.NULL:
                functions.cuCtxSetCurrent(before)

    @property
    def stream(self) -> Stream:
        """One that only the calling thread puts work into."""
        if self._own.stream is None:
            with self.current():
                self._own.stream = Stream(self)
        return self._own.stream

    def hold(self, stream: Stream, objects: Sequence[object]) -> None:
        """Keep objects until all that is in the stream by now is done. Waits for nothing."""
        held = self._own.held
        while held and held[0][0].has_happened:
            held.popleft()
        if objects:
            event = Event(self)
            event.record(stream)
            held.append((event, objects))

    @cached_property
    def name(self) -> str:
        room = ffi.new("char[256]")
        code = self.driver.functions.cuDeviceGetName(room, 256, self._handle)
        self.driver.check(code, f"naming GPU {self.number}")
        return ffi.string(room).decode(errors="replace")

    @cached_property
    def architecture(self) -> str:
        """As nvcc names it: "sm_90"."""
        return f"sm_{self._attribute(_MAJOR)}{self._attribute(_MINOR)}"

    @cached_property
    def multiprocessors(self) -> int:
        return self._attribute(_MULTIPROCESSORS)

    @cached_property
    def most_shared(self) -> int:
        """Bytes of shared memory that a block may have."""
        return self._attribute(_MOST_SHARED)

    def owner(self, address: int) -> int | None:
        """The number of the GPU that has an address in its memory; None where none has."""
        number = ffi.new("int *")
        code = self.driver.functions.cuPointerGetAttribute(number, _OWNER, address)
        return None if code else number[0]

    def _attribute(self, number: int) -> int:
        functions = self.driver.functions
        return self.driver.made(
            "int",
            f"asking for attribute {number} of GPU {self.number}",
            lambda place: functions.cuDeviceGetAttribute(place, number, self._handle),
        )

    def __repr__(self) -> str:
        return f"<GPU {self.number}: {self.name}>"


class Stream:
    """What is put into it is done in order.

    handle: of a stream of somebody else's, which is not destroyed here; 0 is the usual one.
    keeps: what owns that.
    """

    def __init__(self, device: Device, handle: int | None = None, keeps: object = None) -> None:
        self.device, self.keeps = device, keeps
        functions = device.driver.functions
        if handle is not None:
            self.handle = ffi.cast("void *", handle)
            return
        self.handle = device.driver.made(
            "void *",
            "making a stream",
            lambda place: functions.cuStreamCreate(place, _NON_BLOCKING),
        )
        weakref.finalize(self, functions.cuStreamDestroy_v2, self.handle)

    @property
    def number(self) -> int:
        return address(self.handle)

    def wait(self) -> None:
        """Wait until all that was put into it is done. Raises CudaError if that went wrong."""
        driver = self.device.driver
        driver.check(driver.functions.cuStreamSynchronize(self.handle), "waiting for a stream")

    def wait_for(self, event: Event) -> None:
        """What is put into it from now on waits for the event; this call does not."""
        driver = self.device.driver
        code = driver.functions.cuStreamWaitEvent(self.handle, event.handle, 0)
        driver.check(code, "waiting for an event")

    def after(self, other: Stream) -> None:
        """What is put into it from now on waits for all that is in the other one by now."""
        if other.number != self.number:
            event = Event(self.device)
            event.record(other)
            self.wait_for(event)

    @contextmanager
    def capture(self) -> Iterator[Graph]:
        """What is put into it meanwhile becomes a graph instead of being done."""
        driver, functions = self.device.driver, self.device.driver.functions
        code = functions.cuStreamBeginCapture_v2(self.handle, _RELAXED)
        driver.check(code, "beginning to capture a graph")
        graph = Graph(self.device)
        try:
            yield graph
        finally:
            made = driver.made(
                "void *",
                "capturing a graph",
                lambda place: functions.cuStreamEndCapture(self.handle, place),
            )
            graph.keep(made)


class Event:
    """A point in a stream."""

    def __init__(self, device: Device) -> None:
        self.device = device
        functions = device.driver.functions
        self.handle = device.driver.made(
            "void *", "making an event", lambda place: functions.cuEventCreate(place, 0)
        )
        weakref.finalize(self, functions.cuEventDestroy_v2, self.handle)

    def record(self, stream: Stream) -> None:
        """It happens when all that is in the stream by now is done."""
        driver = self.device.driver
        code = driver.functions.cuEventRecord(self.handle, stream.handle)
        driver.check(code, "recording an event")

    def wait(self) -> None:
        """Wait until it has happened."""
        driver = self.device.driver
        driver.check(driver.functions.cuEventSynchronize(self.handle), "waiting for an event")

    @property
    def has_happened(self) -> bool:
        driver = self.device.driver
        code = driver.functions.cuEventQuery(self.handle)
        if code != _NOT_READY:
            driver.check(code, "asking for an event")
        return not code

    def seconds_since(self, earlier: Event) -> float:
        """Between two events that have happened."""
        functions = self.device.driver.functions
        milliseconds = self.device.driver.made(
            "float",
            "measuring time",
            lambda place: functions.cuEventElapsedTime(place, earlier.handle, self.handle),
        )
        return milliseconds / 1e3


class Memory:
    """`nbytes` bytes of a device, from when the stream gets there on; given back in its order.

    readers: other streams that read it until then, by their numbers.
    """

    def __init__(self, stream: Stream, nbytes: int) -> None:
        self.stream, self.nbytes = stream, nbytes
        self.readers: dict[int, Stream] = {}
        driver, functions = stream.device.driver, stream.device.driver.functions
        self.address: int = driver.made(
            "unsigned long",
            f"allocating {nbytes} bytes on {stream.device.name}",
            lambda place: functions.cuMemAllocAsync(place, max(nbytes, 1), stream.handle),
        )
        # the stream lives until its memory is given back
        weakref.finalize(self, _free, stream, self.address, self.readers)


def _free(stream: Stream, place: int, readers: dict[int, Stream]) -> None:
    functions = stream.device.driver.functions
    with suppress(CudaError), stream.device.current():  # any thread may be the one that lets go
        for reader in readers.values():
            with suppress(CudaError):  # of one that is no more
                stream.after(reader)
        functions.cuMemFreeAsync(place, stream.handle)


def copy_to_device(place: int, array: np.ndarray, stream: Stream) -> None:
    """Copy the elements of a C-contiguous array to an address, when the stream gets there."""
    driver = stream.device.driver
    code = driver.functions.cuMemcpyHtoDAsync_v2(
        place, ffi.from_buffer(array), array.nbytes, stream.handle
    )
    driver.check(code, f"copying {array.nbytes} bytes to {stream.device.name}")


def copy_to_host(array: np.ndarray, place: int, stream: Stream) -> None:
    """Copy from an address to a C-contiguous array, which has it once the stream is waited for."""
    driver = stream.device.driver
    code = driver.functions.cuMemcpyDtoHAsync_v2(
        ffi.from_buffer(array), place, array.nbytes, stream.handle
    )
    driver.check(code, f"copying {array.nbytes} bytes from {stream.device.name}")


def copy_on_device(place: int, source: int, nbytes: int, stream: Stream) -> None:
    """Copy between two addresses of the device, when the stream gets there."""
    driver = stream.device.driver
    code = driver.functions.cuMemcpyDtoDAsync_v2(place, source, nbytes, stream.handle)
    driver.check(code, f"copying {nbytes} bytes on {stream.device.name}")


class Module:
    """The kernels of a compiled text, on a device."""

    def __init__(self, device: Device, image: bytes) -> None:
        self.device = device
        functions = device.driver.functions
        self._image = ffi.from_buffer(image)
        self._handle = device.driver.made(
            "void *",
            "loading kernels",
            lambda place: functions.cuModuleLoadData(place, self._image),
        )
        weakref.finalize(self, functions.cuModuleUnload, self._handle)

    def function(self, name: str, shared: int = 0) -> Any:
        """A kernel, which may be launched with so many bytes of dynamic shared memory."""
        driver, functions = self.device.driver, self.device.driver.functions
        found = driver.made(
            "void *",
            f"finding kernel {name}",
            lambda place: functions.cuModuleGetFunction(place, self._handle, name.encode()),
        )
        if shared > _STATIC_SHARED:
            code = functions.cuFuncSetAttribute(found, _DYNAMIC_SHARED, shared)
            driver.check(code, f"giving kernel {name} {shared} bytes of shared memory")
        return found


class Graph:
    """Launches that were captured, and are put into a stream again in one call."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._executable: Any = None
        self.memory: Memory | None = None  # that what was captured works in

    def keep(self, captured: Any) -> None:
        """Make it of what was captured."""
        driver, functions = self.device.driver, self.device.driver.functions
        try:
            self._executable = driver.made(
                "void *",
                "making a graph",
                lambda place: functions.cuGraphInstantiateWithFlags(place, captured, 0),
            )
        finally:
            functions.cuGraphDestroy(captured)
        weakref.finalize(self, functions.cuGraphExecDestroy, self._executable)

    def launch(self, stream: Stream) -> None:
        """Do it all again, when the stream gets there, in the same memory."""
        driver = self.device.driver
        code = driver.functions.cuGraphLaunch(self._executable, stream.handle)
        driver.check(code, "launching a graph")


@cache
def default_device() -> Device:
    """GPU 0 of NVIDIA's driver.

    Raises:
        NoGpuError: there is no driver, or no GPU.
    """
    return Device(Driver())


def launch(
    function: Any,
    stream: Stream,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Sequence[np.generic],
    shared: int = 0,
) -> None:
    """Put one launch of a kernel into a stream. Addresses are numbers of type uint64."""
    driver = stream.device.driver
    cells = [np.array([value]) for value in arguments]
    places = ffi.new("void *[]", [ffi.cast("void *", cell.ctypes.data) for cell in cells])
    code = driver.functions.cuLaunchKernel(
        function, *grid, *block, shared, stream.handle, places, ffi.NULL
    )
    driver.check(code, "launching a kernel")
