"""NVIDIA's compiler as a library (NVRTC), where its package is installed; nvcc where it is not.

It takes a fraction of nvcc's time, and the same text; its cubins lie in the same cache.
"""

from __future__ import annotations

import importlib.util
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from tinyfuse.emit.prelude import runtime_c
from tinyfuse.runtime.nvcc import (
    MADE,
    SOURCE,
    Compiler,
    Cubin,
    compile_cubin,
    cubin_of,
    find_nvcc,
)
from tinyfuse.runtime.nvrtc_declarations import ffi

# Names of packages, and what of them the libraries are in: nvidia-cuda-nvrtc, and -cu12 of it.
PACKAGES = ("nvidia.cu13", "nvidia.cuda_nvrtc")

# Those of nvcc; unions are initialized by names of their fields, which C++17 is without.
FLAGS = (
    *("-std=c++20", "-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false"),
    "--ptxas-options=-v",
)


def built_cubin(text: str, name: str, architecture: str) -> Cubin:
    """The kernels of a CUDA text: from the disk cache, or compiled by what there is.

    Raises:
        CudaCompilerNotFoundError: there is neither NVRTC nor nvcc.
        CompilationError: the compiler refused the text.
        CacheError: the cache directory is not safe to use.
    """
    library = find_nvrtc()
    if library is None:
        return compile_cubin(text, name, architecture)
    options = (*FLAGS, f"-arch={architecture}")
    stat = library.stat()
    compiler = Compiler(
        ["NVRTC", *options],
        repr((str(library), stat.st_size, stat.st_mtime_ns)),
        lambda folder, where: _compile(library, folder, options),
    )
    return cubin_of(text, name, architecture, compiler, head=_head())


def require_compiler() -> None:
    """Raises CudaCompilerNotFoundError where there is neither NVRTC nor nvcc."""
    if find_nvrtc() is None:
        find_nvcc()


def find_nvrtc() -> Path | None:
    """The library; None where its package is not installed, or NVCC names another compiler."""
    return None if os.environ.get("NVCC", "").strip() else _find()


@lru_cache(maxsize=1)
def _find() -> Path | None:
    for package in PACKAGES:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:  # there is no package `nvidia` at all
            return None
        for place in spec.submodule_search_locations or () if spec else ():
            found = sorted(Path(place, "lib").glob("libnvrtc.so.*"))
            if found:
                return found[-1]
    return None


@lru_cache(maxsize=1)
def _head() -> str:
    return (runtime_c() / "cuda_nvrtc.h").read_text()


@lru_cache(maxsize=1)
def _opened(library: Path) -> Any:
    for other in sorted(library.parent.glob("libnvrtc-builtins.so.*")):
        ffi.dlopen(str(other))  # which is not searched for beside the library
    return ffi.dlopen(str(library))


def _compile(library: Path, folder: Path, options: tuple[str, ...]) -> tuple[int, str]:
    """Makes a cubin of the text in a folder; the status, and what the compiler said."""
    nvrtc, place = _opened(library), ffi.new("void **")
    text = (folder / SOURCE).read_bytes()
    code = nvrtc.nvrtcCreateProgram(place, text, SOURCE.encode(), 0, ffi.NULL, ffi.NULL)
    if code:
        return code, ffi.string(nvrtc.nvrtcGetErrorString(code)).decode()
    try:
        words = [ffi.new("char[]", option.encode()) for option in options]
        code = nvrtc.nvrtcCompileProgram(place[0], len(words), ffi.new("char *[]", words))
        said = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, place[0])
        if not code:
            cubin = _read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, place[0])
            (folder / MADE).write_bytes(cubin)
        return code, said.rstrip(b"\0").decode(errors="replace")
    finally:
        nvrtc.nvrtcDestroyProgram(place)


def _read(size: Any, read: Any, program: Any) -> bytes:
    count = ffi.new("size_t *")
    size(program, count)
    room = ffi.new("char[]", max(count[0], 1))
    read(program, room)
    return bytes(ffi.buffer(room, count[0]))
