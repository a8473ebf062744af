"""What running on a GPU, or on an emulated one, takes and does not find."""

from __future__ import annotations

from tinyfuse.errors.base import TinyfuseError
from tinyfuse.errors.compiling import CompilerNotFoundError


class CudaError(TinyfuseError, RuntimeError):
    """NVIDIA's driver refused what it was asked for, or a kernel went wrong on the GPU.

    The message says what was attempted, and has the driver's name and words for the error::

        CudaError: launching softmax failed: CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)

    After a kernel has gone wrong a GPU takes no more calls of the process. With
    `target="cuda-emulated"` the same kernels run on the CPU, which says what they do wrong.
    """


class NoGpuError(CudaError):
    """There is no GPU that NVIDIA's driver could run kernels on, or no driver.

    `target="cuda-emulated"` runs the same kernels on the CPU; without `target`, functions are
    compiled for the CPU.
    """


class DeviceMemoryError(CudaError, MemoryError):
    """The memory of the GPU does not suffice::

        DeviceMemoryError: allocating 68719476736 bytes on NVIDIA H200 failed: ...

    Free arrays on it, or call the function on fewer elements at a time.
    """


class DeviceArrayError(CudaError, ValueError):
    """An object was taken for an array or a stream on a GPU that is none, or that does not fit.

    Arrays of CuPy, PyTorch, JAX and others are taken that have `__cuda_array_interface__` or
    `__dlpack__`, are in the memory of GPU 0, and whose elements lie in C order::

        f(x.T)               # DeviceArrayError: argument x: ... its elements do not lie in C order
        f(x.T.contiguous())  # of PyTorch
    """


class EmulationError(TinyfuseError):
    """A CUDA text was run on the CPU in a way that it does not allow for, or did what it must not.

    ::

        emulate(text, "softmax", (4, 1, 1), (256, 1, 1), x)
        EmulationError: kernel softmax takes 3 arguments (x, y, c), and was given 1

    The message says what does not fit. Faults of the text itself are in `Emulation.errors`.
    """


class CudaCompilerNotFoundError(CompilerNotFoundError):
    """There is no nvcc and no NVRTC, or the environment variable NVCC names no nvcc.

    tinyfuse looks for what NVCC says (a program and perhaps arguments, quoted as for a shell), then
    for NVRTC, which compiles within this process (`pip install nvidia-cuda-nvrtc`), then for nvcc
    on PATH, in CUDA_HOME and in /usr/local/cuda: it comes with NVIDIA's CUDA toolkit. Without all
    of these, `target="cuda-emulated"` runs the same kernels on the CPU.
    """
