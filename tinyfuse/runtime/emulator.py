"""CUDA on the CPU: the kernels of a `.cu`, compiled as C++ and run by `runtime_c/cuda_machine.c`.

What runs is checked: races, barriers that not all threads reach, places outside of arrays,
alignment, memory read before it has a value. What a GPU would transfer is counted.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from tinyfuse.cache_directory import sha256
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import CompilationError, CompilerNotFoundError, EmulationError
from tinyfuse.records import dataclass
from tinyfuse.runtime.build import build, without_comments
from tinyfuse.runtime.emulator_declarations import ffi
from tinyfuse.runtime.linking import closing, open_library, symbol

Order = Literal["forward", "reverse", "random", "breadth"]
ORDERS: tuple[Order, ...] = get_args(Order)

ALIGNMENT = 256  # bytes, as that of memory on a device
SECTOR = 32  # bytes that a GPU reads or writes at once

_MACHINE = (
    *("cuda_machine.h", "cuda_fibers.h", "cuda_scheduling.h"),
    *("cuda_counters.h", "cuda_checks.h", "cuda_machine.c", "cuda_fake_driver.c"),
)
_HEADERS = ("stdarg.h", "stddef.h", "stdio.h", "stdlib.h", "string.h", "sys/mman.h")
_FACE = (
    *("cuda_machine.h", "cuda_on_cpu.h"),
    *("cuda_on_cpu_memory.h", "cuda_on_cpu_tensor.h"),
)
_FLAGS = (
    *("-x", "c++", "-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"),
    *("-fno-strict-aliasing", "-fvisibility=hidden", "-Wno-unknown-pragmas", "-w"),
)

_KERNEL = re.compile(
    r"__global__\s+((?:[^(){};]|\([^()]*\))*?)\b(\w+)\s*\(((?:[^(){};]|\([^()]*\))*)\)\s*\{"
)
_BOUND = re.compile(r"__launch_bounds__\s*\(([^()]*)\)")
_LAST_WORD = re.compile(r"(\w+)\s*$")


@dataclass(frozen=True, slots=True)
class Accesses:
    """What one place of a `.cu` did to one array, over all threads of a launch.

    line: of the `.cu`. kind: "read", "write" or "atomic". bytes: of one access of a thread.
    requests: of warps; accesses: of threads. transfers: sectors of 32 bytes for global memory;
    turns of the 32 banks for shared memory, of which `fewest` would do without conflicts.
    worst: most turns that took the place of one.
    """

    kernel: str
    array: str
    line: int
    kind: str
    shared: bool
    bytes: int
    requests: int
    accesses: int
    transfers: int
    fewest: int
    worst: int

    @property
    def efficiency(self) -> float:
        """Bytes asked for per byte transferred; above 1 where lanes ask for the same ones."""
        return self.accesses * self.bytes / (SECTOR * self.transfers)


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """What was wrong with a launch, if anything, and what it did.

    error: the kernel, block, thread and line, and what it did; None: all is right.
    barriers: over all blocks. warp_steps: shuffles, votes and barriers of warps.
    shared: bytes of shared memory of a block.
    """

    kernel: str
    error: str | None
    blocks: int
    barriers: int
    warp_steps: int
    shared: int
    accesses: tuple[Accesses, ...]


class DeviceBytes:
    """Memory of the emulated device: `bytes` zeros, or without a value until they are written."""

    __slots__ = ("block", "read_only", "written")

    def __init__(self, size: int, *, has_value: bool, read_only: bool = False) -> None:
        room = np.zeros(size + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        self.block = room[start : start + size]
        self.written = None if has_value else np.zeros(size, np.uint8)
        self.read_only = read_only

    @property
    def address(self) -> int:
        return int(self.block.ctypes.data)

    def as_array(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """What it holds now; it stays the same memory."""
        return self.block.view(dtype).reshape(shape)


def device_copy(array: np.ndarray, *, read_only: bool = False) -> DeviceBytes:
    """The elements of an array in memory of the emulated device."""
    memory = DeviceBytes(array.nbytes, has_value=True, read_only=read_only)
    memory.block[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memory


@dataclass(frozen=True, slots=True)
class Parameter:
    """element: bytes of what it points to; 0: a number. constant: it points to an input."""

    name: str
    element: int
    constant: bool


class EmulatedKernels:
    """The kernels of a text, ready to run. Its library stays loaded for as long as it lives."""

    def __init__(self, text: str, *, check: bool = True) -> None:
        self.check = check
        self._machine = _machine()
        self._library = closing(open_library(_build(text, check)))
        open_kernels = ffi.cast("tf_open *", symbol(self._library, "tf_open"))
        self.opened = open_kernels(self._machine.address)
        self.kernels = {
            ffi.string(self.opened.kernels[i].name).decode(): self.opened.kernels + i
            for i in range(self.opened.count)
        }

    def kernel(self, name: str) -> Any:
        """Raises EmulationError where the text has none of this name."""
        if name not in self.kernels:
            known = ", ".join(self.kernels) or "none"
            raise EmulationError(f"the text has no kernel {name!r}: there are {known}")
        return self.kernels[name]

    def parameters(self, name: str) -> tuple[Parameter, ...]:
        kernel = self.kernel(name)
        each = [kernel.parameter[i] for i in range(kernel.parameters)]
        return tuple(
            [Parameter(ffi.string(p.name).decode(), p.element, bool(p.constant)) for p in each]
        )

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[np.generic],
        memories: Sequence[DeviceBytes],
        *,
        shared: int = 0,
        order: Order = "forward",
        seed: int = 1,
        count: bool = True,
    ) -> LaunchReport:
        """Run a kernel.

        Args:
            name: of the kernel.
            grid: blocks along x, y, z.
            block: threads of each, likewise.
            arguments: numbers as numpy has them; for pointers addresses as uint64.
            memories: all that pointers may point to.
            shared: bytes of dynamic shared memory.
            order: in which threads and blocks run.
            seed: of random orders.
            count: whether to count transfers; only where the text was built with checks.
        """
        kernel = self.kernel(name)
        cells = [np.array([value]) for value in arguments]
        places = ffi.new("void *[]", [ffi.cast("void *", cell.ctypes.data) for cell in cells])
        records = ffi.new("tf_memory[]", [_record(memory) for memory in memories])
        request = ffi.new("tf_launch *")
        request.kernel, request.arguments = kernel, places
        request.blocks, request.threads, request.shared = grid, block, shared
        request.memories, request.memory_count = records, len(memories)
        request.order, request.seed = ORDERS.index(order), seed
        request.checking, request.counting = self.check, self.check and count
        with self._machine.lock:
            return self._machine.run(request, name, grid)


class _Machine:
    """The library that all kernels of this process run on, one at a time."""

    def __init__(self, library: Any) -> None:
        self.lock = threading.Lock()
        self.address = ffi.cast("tf_cuda_machine *", symbol(library, "tf_cuda_machine"))()
        self._launch = ffi.cast("tf_cuda_launch *", symbol(library, "tf_cuda_launch"))
        self._report = ffi.cast("tf_cuda_report *", symbol(library, "tf_cuda_report"))
        self._reset = ffi.cast("tf_cuda_reset *", symbol(library, "tf_cuda_reset"))

    def run(self, launch: Any, name: str, grid: tuple[int, int, int]) -> LaunchReport:
        self._reset()
        message = self._launch(launch)
        error = ffi.string(message).decode(errors="replace") if message else None
        report = ffi.new("tf_report *")
        self._report(report)
        sites = [_accesses(name, report.site[i]) for i in range(report.sites)]
        sites.sort(key=lambda site: (site.line, site.array, site.kind, site.bytes))
        blocks = grid[0] * grid[1] * grid[2]
        counts = (blocks, report.barriers, report.warp_steps, report.shared)
        return LaunchReport(name, error, *counts, tuple(sites))


_KINDS = ("read", "write", "atomic", "copy")


def _accesses(kernel: str, site: Any) -> Accesses:
    return Accesses(
        *(kernel, ffi.string(site.array).decode(), site.line, _KINDS[site.kind]),
        *(bool(site.shared), site.bytes, site.requests, site.accesses),
        *(site.transfers, site.fewest, site.worst),
    )


def _record(memory: DeviceBytes) -> dict[str, Any]:
    written = memory.written
    return {
        "data": ffi.cast("char *", memory.address),
        "bytes": memory.block.size,
        "written": ffi.NULL if written is None else ffi.from_buffer("unsigned char[]", written),
        "read_only": memory.read_only,
    }


@lru_cache(maxsize=64)
def emulated(text: str, check: bool) -> EmulatedKernels:
    """The kernels of a text, compiled once.

    Raises:
        CompilerNotFoundError: there is no compiler of C++.
        CompilationError: the compiler refused the text.
    """
    return EmulatedKernels(text, check=check)


def kernel_names(text: str) -> list[str]:
    """The kernels that a text defines, in its order."""
    return [match[2] for match in _KERNEL.finditer(without_comments(text))]


def machine_text() -> str:
    """The C of the emulated GPU, in one text."""
    includes = "".join(f"#include <{name}>\n" for name in _HEADERS)
    return f"#define _GNU_SOURCE\n{includes}{_texts(_MACHINE)}"


def machine_library() -> Path:
    """The library of the emulated GPU, which has the functions of NVIDIA's driver as well."""
    return build(machine_text(), "the emulated GPU", libc=True)


@lru_cache(maxsize=1)
def _machine() -> _Machine:
    return _Machine(open_library(machine_library()))


@lru_cache(maxsize=1)
def _head() -> str:
    return _texts(_FACE)


def _texts(names: Sequence[str]) -> str:
    return "\n".join((runtime_c() / name).read_text() for name in names)


def _flags(text: str, check: bool) -> tuple[str, ...]:
    if not check:
        return (*_FLAGS, "-O2", "-DTF_CHECK=0")
    # A check is a call, whatever stands around it. Lines, which it names, are part of the result,
    # and not of the key of a text without its comments.
    return (*_FLAGS, "-O1", "-DTF_CHECK=1", f"-DTF_LINES=0x{sha256(text.encode())[:15]}")


def _build(text: str, check: bool) -> Path:
    try:
        return build(text + _table(text), "CUDA text", flags=_flags(text, check), head=_head())
    except CompilationError as error:
        if "cc1plus" in str(error):
            raise CompilerNotFoundError(
                "emulating CUDA needs a compiler of C++, and gcc is installed without one: "
                "`apt install g++`"
            ) from None
        raise


def _table(text: str) -> str:
    """C++ that makes the kernels of a text known to the machine."""
    kernels = list(_KERNEL.finditer(without_comments(text)))
    rows = "".join(_row(i, match) for i, match in enumerate(kernels))
    return f"""
extern "C" __attribute__((visibility("default"))) const tf_library *tf_open(tf_machine *machine) {{
  static tf_kernel kernels[{len(kernels) + 1}];
  static const tf_library library = {{kernels, {len(kernels)}}};
  tf_gpu = machine;
{rows}  return &library;
}}
"""


def _row(number: int, match: re.Match[str]) -> str:
    before, name, parameters = match.groups()
    bound = _BOUND.search(before)
    most = f"TF_FIRST({bound[1]}, 0)" if bound else "0"
    names = [word[1] for p in parameters.split(",") if (word := _LAST_WORD.search(p))]
    listed = ", ".join(f'"{word}"' for word in [*names, ""])
    return (
        f"  static const char *const names_{number}[] = {{{listed}}};\n"
        f"  kernels[{number}] = tf::entry<{name}>::kernel_of"
        f'("{name}", {most}, names_{number});\n'
    )
