"""What the emulator says, asked of a GPU: `make gpu`, or `python -m tests.gpu`.

Kernels written by hand against numpy, compiled programs against C bit for bit, then how fast they
are, beside CuPy, PyTorch and JAX. `python -m tests.gpu --sanitize` runs all of it again under
NVIDIA's checkers. Without a GPU it says so and fails: nothing has been checked.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import tinyfuse
from tests import gpu_speed
from tests.cuda_kernels import LAUNCHES, Launch, elementwise, gemm, softmax, source, transpose
from tests.device_programs import PROGRAMS
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import CudaCompilerNotFoundError, NoGpuError
from tinyfuse.runtime.device_array import DeviceArray, copied, empty
from tinyfuse.runtime.driver import Device, Event, Module, Stream, default_device, launch
from tinyfuse.runtime.nvcc import compile_cubin
from tinyfuse.testing import ArraySpec

ROUNDS = 20
SANITIZERS = ("racecheck", "memcheck", "initcheck")


class Measured(NamedTuple):
    """A launch to be timed, and what it moves (bytes) and computes (operations)."""

    name: str
    launch: Launch
    nbytes: int
    flops: int


def measured() -> Iterator[Measured]:
    """Arrays that do not fit into caches."""
    n = 1 << 26
    yield Measured("elementwise", elementwise(n)._replace(grid=(132 * 8,)), 12 * n, 8 * n)
    yield Measured("softmax", softmax(8192, 4096), 8 * 8192 * 4096, 5 * 8192 * 4096)
    yield Measured("transpose", transpose(8192, 8192), 8 * 8192 * 8192, 0)
    yield Measured("gemm", gemm(2048, 2048, 2048), 4 * 3 * 2048**2, 2 * 2048**3)


@cache
def module(file: str) -> Module:
    device = default_device()
    head = (runtime_c() / "cuda_on_gpu.h").read_text()
    cubin = compile_cubin(source(file), file, device.architecture, head=head)
    return Module(device, cubin.path.read_bytes())


def prepared(made: Launch, stream: Stream) -> tuple[Callable[[], None], list[DeviceArray]]:
    """What puts the launch into the stream, and the arrays that its pointers point to."""
    arrays: list[DeviceArray] = []
    numbers: list[np.generic] = []
    for argument in made.arguments:
        if isinstance(argument, np.ndarray):
            arrays.append(copied(argument, stream))
        elif isinstance(argument, ArraySpec):
            arrays.append(empty(argument.shape, np.dtype(argument.dtype), stream))
        else:
            numbers.append(
                np.float32(argument) if isinstance(argument, float) else np.int32(argument)
            )
            continue
        numbers.append(np.uint64(arrays[-1].address))
    function = module(made.file).function(made.kernel, made.shared)
    grid, block = ((*extents, 1, 1)[:3] for extents in (made.grid, made.block))
    return lambda: launch(function, stream, grid, block, numbers, made.shared), arrays


def check_kernel(made: Launch, stream: Stream) -> bool:
    put, arrays = prepared(made, stream)
    put()
    results = [array.numpy() for array in arrays]
    worst = max(
        float(np.max(np.abs(results[place].astype(np.float64) - expected)))
        for place, expected in made.expected.items()
    )
    right = worst <= 4 * made.tolerance  # exp and tanh are not those of the CPU
    print(f"  {made.kernel:16} {'equal' if not worst else f'differs by {worst:.1e}'}", end="")
    print("" if right else f", and must not by more than {4 * made.tolerance:.1e}")
    return right


def check_program(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Whether a program gives on the GPU what it gives on the CPU, bit for bit, and about what
    numpy gives: for numpy's arrays, and for such that are there."""
    jitted = tinyfuse.jit(function, target="cuda")
    copied, there = jitted(*arguments), jitted(*map(tinyfuse.device_put, arguments))
    results = [_parts(each) for each in (tinyfuse.jit(function)(*arguments), copied, there)]
    expected = results[0]
    right = all(
        len(made) == len(expected)
        and all(one.tobytes() == other.tobytes() for one, other in zip(made, expected, strict=True))
        for made in results[1:]
    )
    near = all(map(_near, expected, _parts(function(*arguments))))
    words = "the same bits" if right else "DIFFERS"
    print(f"  {name:22} {words}{'' if near else ', and NOT what numpy gives'}")
    return right and near


def _parts(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple | list) else (result,)
    return [each.numpy() if isinstance(each, DeviceArray) else np.asarray(each) for each in parts]


def _near(made: np.ndarray, expected: np.ndarray) -> bool:
    return np.allclose(made, expected, rtol=1e-3, atol=1e-4, equal_nan=True)


def time_kernel(each: Measured, stream: Stream) -> None:
    """Prints the median of some launches."""
    put, _arrays = prepared(each.launch, stream)
    put()
    seconds = []
    for _ in range(ROUNDS):
        first, last = Event(stream.device), Event(stream.device)
        first.record(stream)
        put()
        last.record(stream)
        last.wait()
        seconds.append(last.seconds_since(first))
    median = float(np.median(seconds))
    rates = f"{each.nbytes / median / 1e9:8.0f} GB/s {each.flops / median / 1e12:6.2f} TFLOP/s"
    print(f"  {each.name:16} {median * 1e6:8.0f} us {rates}")


def check(device: Device) -> bool:
    stream = Stream(device)
    print(f"{device!r}, {device.architecture}\nKernels written by hand, against numpy:")
    right = [check_kernel(made(), stream) for made in LAUNCHES]
    print("Compiled programs, against C and numpy:")
    right += [check_program(name, p.function, p.arguments) for name, p in PROGRAMS.items()]
    return all(right)


def sanitize() -> bool:
    """The same under NVIDIA's checkers."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        print("compute-sanitizer is not on PATH: races are only those that the emulator finds")
        return True
    return all(
        subprocess.run([program, "--tool", tool, "--error-exitcode", "1", *this()]).returncode == 0
        for tool in SANITIZERS
    )


def this() -> list[str]:
    return [sys.executable, "-m", "tests.gpu", "--check-only"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check-only", action="store_true", help="do not measure")
    parser.add_argument("--sanitize", action="store_true", help="once more under NVIDIA's checkers")
    options = parser.parse_args()
    try:
        right = check(default_device())
    except (NoGpuError, CudaCompilerNotFoundError) as error:
        print(error)
        return 1
    if not options.check_only:
        print("Times of kernels written by hand:")
        for each in measured():
            time_kernel(each, Stream(default_device()))
        print("Times of calls of compiled programs:")
        gpu_speed.report()
    if options.sanitize:
        right = sanitize() and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
