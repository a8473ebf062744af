"""NVIDIA's compiler: from the text of a `.cu` to a cubin, and what its kernels take of a GPU.

No GPU is needed. Cubins lie in the disk cache beside compiled C.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tinyfuse.cache_directory import sha256
from tinyfuse.errors import CompilationError, CudaCompilerNotFoundError
from tinyfuse.records import dataclass
from tinyfuse.runtime import cache
from tinyfuse.runtime.build import keep_refused, log, refusal, run_compiler, without_comments
from tinyfuse.runtime.toolchain import ask_version, environment, programs

CACHE_VERSION = "2"
PLACES = ("/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc")

# No contraction of multiply and add, divisions and roots rounded once, subnormals as they are: the
# bits are those of C.
FLAGS = (
    *("-std=c++17", "-O3", "-cubin", "-fmad=false", "-prec-div=true", "-prec-sqrt=true"),
    *("-ftz=false", "-Xptxas", "-v"),
)
SOURCE, MADE = "kernel.cu", "kernel.so"  # in the folder where a compiler works
_REPORT = "// ptxas: "  # stands before each line of its words, in the text that is kept

_ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes of a GPU, as ptxas reports it.

    registers: of each thread. spilled: bytes of registers that do not fit and are stored and
    loaded again. stack: bytes of each thread's arrays in local memory. shared: bytes of a block,
    those of the launch left out. barriers: of a block, that are used.
    """

    registers: int
    spilled: int
    stack: int
    shared: int
    barriers: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """Compiled kernels for one architecture, and what each of them takes."""

    path: Path
    architecture: str
    resources: dict[str, Resources]


def compile_cubin(text: str, name: str, architecture: str, *, head: str = "") -> Cubin:
    """The kernels of a CUDA text: from the disk cache, or compiled and put there.

    Args:
        text: a `.cu`.
        name: what messages call it; no part of the key.
        architecture: of the GPU, as "sm_90".
        head: stands before the text; messages count lines without it.

    Raises:
        CudaCompilerNotFoundError: there is no nvcc.
        CompilationError: nvcc refused the text.
        CacheError: the cache directory is not safe to use.
    """
    command, identity = find_nvcc()
    line = [*command, *FLAGS, f"-arch={architecture}", SOURCE, "-o", MADE]
    return cubin_of(text, name, architecture, Compiler(line, identity, _run(line)), head=head)


class Compiler(NamedTuple):
    """How a text becomes a cubin.

    command: what is said of it, with all options. identity: the same for the same cubins.
    run: makes `MADE` of `SOURCE` in a folder, and may leave other files in another one; gives a
    status, 0 if that went well, and what ptxas said.
    """

    command: list[str]
    identity: str
    run: Callable[[Path, Path], tuple[int, str]]


def _run(line: list[str]) -> Callable[[Path, Path], tuple[int, str]]:
    return lambda folder, where: run_compiler(line, folder, environment(where))


def cubin_of(
    text: str, name: str, architecture: str, compiler: Compiler, *, head: str = ""
) -> Cubin:
    """As `compile_cubin`, by any compiler."""
    parts = (CACHE_VERSION, compiler.identity, *compiler.command, without_comments(head + text))
    key = sha256("\0".join(parts).encode())
    found = cache.lookup(key)
    if found is None:
        found = _compile(head, text, name, compiler, key)
    return Cubin(found, architecture, parse_resources(_words(found)))


def parse_resources(words: str) -> dict[str, Resources]:
    """What ptxas says (`-v`) of each kernel, by its name."""
    starts = list(_ENTRY.finditer(words))
    ends = [*[match.start() for match in starts[1:]], len(words)]
    return {
        match[1]: _resources(words[match.end() : end])
        for match, end in zip(starts, ends, strict=True)
    }


def _resources(words: str) -> Resources:
    stack = _STACK.search(words)
    frame, stores, loads = (int(number) for number in stack.groups()) if stack else (0, 0, 0)
    return Resources(
        registers=_number(_USED, words),
        spilled=stores + loads,
        stack=frame,
        shared=_number(_SHARED, words),
        barriers=_number(_BARRIERS, words),
    )


def _number(pattern: re.Pattern[str], words: str) -> int:
    match = pattern.search(words)
    return int(match[1]) if match else 0


def find_nvcc() -> tuple[tuple[str, ...], str]:
    """The command that NVCC names, or else the nvcc on PATH or of CUDA_HOME; and its identity.

    Raises:
        CudaCompilerNotFoundError: there is none, or NVCC names none.
    """
    environ = os.environ
    return _find(environ.get("NVCC", ""), environ.get("PATH", ""), environ.get("CUDA_HOME", ""))


@lru_cache(maxsize=16)
def _find(chosen: str, path: str, home: str) -> tuple[tuple[str, ...], str]:
    if chosen.strip():
        command = tuple(shlex.split(chosen))
        program = shutil.which(command[0], path=path)
        if program is None:
            raise CudaCompilerNotFoundError(f"NVCC={chosen!r}: there is no program {command[0]!r}")
        return _identified((program, *command[1:]))
    places = (shutil.which("nvcc", path=path), f"{home}/bin/nvcc" if home else None, *PLACES)
    for place in places:
        if place and os.access(place, os.X_OK):
            return _identified((place,))
    raise CudaCompilerNotFoundError(
        "compiling for a GPU needs nvcc, and there is none on PATH, in CUDA_HOME or in "
        "/usr/local/cuda: install NVIDIA's CUDA toolkit or its package nvidia-cuda-nvrtc, or name "
        'nvcc in the environment variable NVCC; target="cuda-emulated" runs the same kernels on '
        "the CPU"
    )


def _identified(command: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    files = programs(command)
    asked = repr((command, files))
    version = cache.recall("compilers", asked, lambda: ask_version(command), _is_nvcc)
    if not _is_nvcc(version):
        raise CudaCompilerNotFoundError(
            f"{shlex.join(command)} does not say that it is NVIDIA's compiler: name one in the "
            "environment variable NVCC"
        )
    return command, repr((command, files, version))


def _is_nvcc(version: str) -> bool:
    return "NVIDIA" in version and "Cuda compiler" in version


def _compile(head: str, text: str, name: str, compiler: Compiler, key: str) -> Path:
    cache.log.info("miss: %s %s", name, key[:12])
    start = time.perf_counter()
    place = cache.written(lambda where: _compile_in(where, head, text, name, compiler, key))
    spent = (time.perf_counter() - start) * 1e3
    log.info("%s: %s in %.0f ms", name, shlex.join(compiler.command), spent)
    return place


def _compile_in(where: Path, head: str, text: str, name: str, compiler: Compiler, key: str) -> Path:
    with cache.building(where) as folder:
        source, cubin, kept = folder / SOURCE, folder / MADE, folder / "kernel.c"
        source.write_text(f'{head}#line 1 "{SOURCE}"\n{text}' if head else text)
        status, words = compiler.run(folder, where)
        if status or not cubin.exists():
            cache.require_space(where, words)
            refused = keep_refused(where, source, name, key)
            raise CompilationError(refusal(name, text, compiler.command, status, words, refused))
        kept.write_text(text + "".join(f"\n{_REPORT}{line}" for line in words.splitlines()))
        return cache.store(where, key, kept, cubin)


def _words(cubin: Path) -> str:
    """What ptxas said of a cubin when it was compiled; it is kept with the text."""
    lines = cubin.with_suffix(".c").read_text().splitlines()
    return "\n".join(line.removeprefix(_REPORT) for line in lines if line.startswith(_REPORT))
