"""CUDA programs that are called as compiled C is, or with arrays that are on a GPU already."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyfuse.emit.launch import CudaBuffer, CudaProgram
from tinyfuse.errors import DeviceArrayError
from tinyfuse.runtime.device_array import ALIGNMENT, DeviceArray, aligned, copied, empty
from tinyfuse.runtime.device_plan import DevicePlan
from tinyfuse.runtime.driver import Device, Graph, Stream, copy_to_host, default_device
from tinyfuse.runtime.nvrtc import built_cubin

Compile = Callable[[CudaProgram, Device], bytes]


def cubin(program: CudaProgram, device: Device) -> bytes:
    """The program's text, compiled for the device."""
    return built_cubin(program.text, program.name, device.architecture).path.read_bytes()


class DeviceEntry:
    """What an `Entry` is for C. It is compiled and loaded when it is made.

    Args:
        program: what to launch.
        device: where; None: GPU 0.
        compiled: gives what the device loads.

    Raises:
        NoGpuError: there is none.
        CudaCompilerNotFoundError: there is neither NVRTC nor nvcc.
        CompilationError: the compiler refused the text.
        CudaError: the device cannot load the kernels.
    """

    def __init__(
        self, program: CudaProgram, device: Device | None = None, compiled: Compile = cubin
    ) -> None:
        self.program = program
        self.device = device = device or default_device()
        with device.current():
            self.plan = DevicePlan(program, device, compiled(program, device))

    @property
    def nbytes(self) -> int:
        """Bytes of the text."""
        return len(self.program.text)

    def __call__(
        self,
        arrays: Sequence[np.ndarray],
        scratch: np.ndarray | None = None,
        threads: int | None = None,
    ) -> int:
        """Call it on numpy arrays, inputs before outputs: they are copied to the GPU and back.

        Returns 0. Raises CudaError if something goes wrong on the GPU.
        """
        with self.device.current():
            return self._called(arrays, self.device.stream)

    def _called(self, arrays: Sequence[np.ndarray], stream: Stream) -> int:
        count = len(self.buffers("input"))
        inputs = [copied(array, stream) for array in arrays[:count]]
        outputs = self.put(stream, inputs)
        for array, made in zip(arrays[count:], outputs, strict=True):
            if made.nbytes:
                flat = array.reshape(-1).view(np.uint8)[: made.nbytes]
                copy_to_host(flat, made.address, stream)
        stream.wait()
        return 0

    def put(
        self,
        stream: Stream,
        inputs: Sequence[DeviceArray],
        outputs: Sequence[DeviceArray] | None = None,
    ) -> list[DeviceArray]:
        """Put the program into a stream, on flat arrays or such of any shape; waits for nothing.

        Args:
            stream: in which the inputs are ready.
            inputs: in the order of the program's.
            outputs: what is to be written; None: new ones.

        Returns:
            The outputs, ready in the stream.

        Raises:
            DeviceArrayError: an output's memory is not aligned to 16 bytes; inputs are copied then.
            CudaError: the driver refused a launch.
        """
        if outputs is None:
            outputs = [empty((b.size,), b.dtype, stream) for b in self.buffers("output")]
        _require_aligned(outputs)
        inputs = [aligned(array) for array in inputs]
        self.plan.put(stream, [a.address for a in inputs], [a.address for a in outputs])
        return list(outputs)

    def graph(
        self, stream: Stream, inputs: Sequence[DeviceArray], outputs: Sequence[DeviceArray]
    ) -> Graph:
        """A graph of the program on these arrays, for many launches. Raises as `DevicePlan`'s.

        DeviceArrayError where the memory of one of them is not aligned to 16 bytes.
        """
        _require_aligned([*inputs, *outputs])
        return self.plan.capture(stream, [a.address for a in inputs], [a.address for a in outputs])

    def buffers(self, role: str) -> list[CudaBuffer]:
        """Those of the program's with this role, in their order."""
        return [buffer for buffer in self.program.buffers if buffer.role == role]

    def __repr__(self) -> str:
        return f"<{self.program.name} on {self.device!r}>"


def _require_aligned(arrays: Sequence[DeviceArray]) -> None:
    for array in arrays:
        if array.address % ALIGNMENT:
            raise DeviceArrayError(
                f"{array!r} begins {array.address % ALIGNMENT} bytes after a multiple of "
                f"{ALIGNMENT}, where kernels cannot write it: pass an array that is no part of "
                "another one, or a copy"
            )
