"""A GPU that is none: NVIDIA's driver as far as tinyfuse calls it, on the emulated device."""

from __future__ import annotations

import gc
import struct

from tinyfuse.emit.launch import CudaProgram
from tinyfuse.records import dataclass
from tinyfuse.runtime.driver import Device, Driver
from tinyfuse.runtime.driver_declarations import ffi
from tinyfuse.runtime.emulator import EmulatedKernels, emulated, machine_library

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class FakeState:
    """What is on the device now; launches: done so far."""

    nbytes: int
    memories: int
    streams: int
    events: int
    graphs: int
    launches: int


class FakeDriver(Driver):
    """A driver for tests. What is put into a stream is done when it is waited for, not before.

    Args:
        devices: how many GPUs it has.
        nbytes: of memory.
    """

    def __init__(self, devices: int = 1, nbytes: int = GIB) -> None:
        self._library = ffi.dlopen(str(machine_library()))
        gc.collect()  # what was left of another one is given back to that
        self._library.tf_fake_reset(devices, nbytes)
        self._loaded: list[EmulatedKernels] = []
        super().__init__(str(machine_library()))

    def image(self, program: CudaProgram, device: Device) -> bytes:
        """What takes the place of a cubin: the text, compiled for the CPU."""
        return self.image_of(program.text)

    def image_of(self, text: str) -> bytes:
        kernels = emulated(text, True)
        self._loaded.append(kernels)  # a module must not outlive its library
        return b"emulated" + struct.pack("@N", int(ffi.cast("uintptr_t", kernels.opened)))

    def fail(self, function: str, code: int) -> None:
        """The next call of one of the driver's functions, "cuMemAllocAsync", gives this error."""
        self._library.tf_fake_fail(function.encode(), code)

    @property
    def state(self) -> FakeState:
        numbers = ffi.new("unsigned long[6]")
        self._library.tf_fake_state(numbers)
        return FakeState(*numbers)

    @property
    def message(self) -> str:
        """What a kernel did wrong, after which the device takes no more calls."""
        return ffi.string(self._library.tf_fake_message()).decode(errors="replace")
