"""CUDA kernels run on the CPU, checked and counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.errors import EmulationError
from tinyfuse.records import dataclass
from tinyfuse.runtime.emulator import (
    Accesses,
    DeviceBytes,
    LaunchReport,
    Order,
    Parameter,
    device_copy,
    emulated,
)
from tinyfuse.testing.equivalence import ArraySpec

Argument = np.ndarray | ArraySpec | int | float | np.generic
Extents = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Emulation:
    """What a launch of a kernel gave.

    arrays: what the kernel's pointers point to afterwards, in the order of its parameters.
    error: what was wrong first, with kernel, block, thread and line of the text; or None.
    barriers: of whole blocks, over all blocks. shared: bytes of shared memory of a block.
    accesses: by places of the text; see `Accesses`.
    """

    arrays: tuple[np.ndarray, ...]
    error: str | None
    barriers: int
    warp_steps: int
    shared: int
    accesses: tuple[Accesses, ...]

    def efficiency(self, array: str) -> float:
        """Bytes that warps ask for, of an array in global memory, per byte transferred."""
        found = self._of(array, shared=False)
        return sum(a.accesses * a.bytes for a in found) / (32 * sum(a.transfers for a in found))

    def conflicts(self, array: str) -> int:
        """Most turns that banks take for what one turn could do, of a shared array; 1: none."""
        return max(access.worst for access in self._of(array, shared=True))

    def _of(self, array: str, *, shared: bool) -> list[Accesses]:
        found = [a for a in self.accesses if a.array == array and a.shared == shared]
        if not found:
            where = "shared" if shared else "global"
            raise EmulationError(f"the kernel accesses no array {array!r} in {where} memory")
        return found


def emulate(
    text: str,
    kernel: str,
    grid: Extents,
    block: Extents,
    *arguments: Argument,
    shared: int = 0,
    order: Order = "forward",
    seed: int = 1,
    check: bool = True,
) -> Emulation:
    """Run a kernel of a CUDA text on the CPU, with every access to memory checked::

        result = emulate(text, "softmax", 4, 256, x, ArraySpec("float32", x.shape), 300)
        assert result.error is None
        assert result.arrays[1].sum() == ...

    Blocks run one after another; the threads of a block in an order of choice. Reported are races
    between threads and between blocks (also those that did no harm in this order), barriers that
    not all threads of a block reach, shuffles that not all lanes reach, places outside of arrays,
    vector accesses that are not aligned, and reads of memory without a value.

    Args:
        text: of a `.cu` without includes. Its kernels are `extern "C" __global__`; pointers among
            their parameters are `TF_IN(float) x` or `TF_OUT(float) y`, shared arrays
            `TF_SHARED(float, tile, [32][33])`, vectors `TF_LOAD(float4, &x[i])` and
            `TF_STORE(float4, &y[i], v)`: macros, so that accesses can be seen. It is compiled once.
        kernel: its name.
        grid: blocks along x, or along x, y, z.
        block: threads of each, likewise.
        arguments: for a pointer an array, of which the device has a copy, or an `ArraySpec` for
            memory that has no value until the kernel writes it; for a number a number, of the size
            of the parameter: an int is an int32, a float a float32, others are numpy's.
        shared: bytes of dynamic shared memory, `TF_DYN_SHARED(float, name)`.
        order: "forward", "reverse", "random", or "breadth": each thread up to its next barrier.
        seed: of random orders.
        check: without, pointers are plain ones and nothing is reported but barriers and shuffles;
            two to eight times as fast.

    Raises:
        EmulationError: the text has no such kernel, or the arguments do not fit it.
        CompilerNotFoundError: there is no compiler of C++.
        CompilationError: the compiler refused the text.
    """
    kernels = emulated(text, check)
    parameters = kernels.parameters(kernel)
    _require_arguments(kernel, parameters, arguments)
    memories = [_memory(*pair) for pair in zip(parameters, arguments, strict=True)]
    values = [_value(*pair) for pair in zip(memories, arguments, strict=True)]
    report = kernels.launch(
        kernel,
        _extents(grid),
        _extents(block),
        values,
        [memory for memory in memories if memory is not None],
        shared=shared,
        order=order,
        seed=seed,
    )
    return _emulation(report, memories, arguments)


def _emulation(
    report: LaunchReport, memories: Sequence[DeviceBytes | None], arguments: Sequence[Argument]
) -> Emulation:
    arrays = [
        memory.as_array(np.dtype(argument.dtype), argument.shape)
        for memory, argument in zip(memories, arguments, strict=True)
        if memory is not None and isinstance(argument, np.ndarray | ArraySpec)
    ]
    counts = (report.barriers, report.warp_steps, report.shared)
    return Emulation(tuple(arrays), report.error, *counts, report.accesses)


def _require_arguments(
    kernel: str, parameters: Sequence[Parameter], arguments: Sequence[Argument]
) -> None:
    if len(parameters) != len(arguments):
        names = ", ".join(parameter.name for parameter in parameters)
        raise EmulationError(
            f"kernel {kernel} takes {len(parameters)} arguments ({names}), "
            f"and was given {len(arguments)}"
        )
    for parameter, argument in zip(parameters, arguments, strict=True):
        is_array = isinstance(argument, np.ndarray | ArraySpec)
        if is_array != bool(parameter.element):
            wanted = "an array or an ArraySpec" if parameter.element else "a number"
            raise EmulationError(
                f"argument {parameter.name} of kernel {kernel} must be {wanted}, not {argument!r}"
            )


def _memory(parameter: Parameter, argument: Argument) -> DeviceBytes | None:
    if not isinstance(argument, np.ndarray | ArraySpec):
        return None
    dtype = np.dtype(argument.dtype)
    if dtype.itemsize != parameter.element:
        raise EmulationError(
            f"elements of {parameter.name} have {parameter.element} bytes, "
            f"and those of its argument, {dtype.name}, {dtype.itemsize}"
        )
    if isinstance(argument, np.ndarray):
        return device_copy(argument, read_only=parameter.constant)
    size = int(np.prod(argument.shape, dtype=np.int64))
    return DeviceBytes(size * dtype.itemsize, has_value=False)


def _value(memory: DeviceBytes | None, argument: Argument) -> np.generic:
    if memory is not None:
        return np.uint64(memory.address)
    if isinstance(argument, np.generic):
        return argument
    assert isinstance(argument, int | float)
    return np.float32(argument) if isinstance(argument, float) else np.int32(argument)


def _extents(given: Extents) -> tuple[int, int, int]:
    x, y, z = (*((given,) if isinstance(given, int) else given), 1, 1)[:3]
    return x, y, z
