"""Which C compiler there is, and how it is called."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tinyfuse.cache_directory import directory
from tinyfuse.errors import CompilerNotFoundError
from tinyfuse.records import dataclass
from tinyfuse.runtime import cache

ON_PATH = ("gcc", "clang", "cc")

REMEDY = """\
Install one, for example by `apt install gcc` or `pip install ziglang` (the wheel brings a C
compiler along and needs no rights on the system), or name one in the environment variable CC."""

# A result must not depend on which compiler made it: no contraction of multiply and add, integers
# that wrap, nothing folded at compile time that was written as a call.
_COMMON = (
    *("-std=c11", "-O3", "-march=native", "-fPIC", "-shared"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fno-builtin"),
)
# Functions that are declared inline are inlined, however often they are used: else a loop over one,
# say a power, would not be vectorized.
_INLINE_LIMITS = (
    *("max-inline-insns-single", "inline-unit-growth", "large-function-growth"),
    "large-stack-frame-growth",
)
# Where a choice has a constant in it, gcc would work out ahead of time what follows from that one,
# part by part: a function of it is then so many choices that the loop is not vectorized.
_NO_CHOICES_AHEAD = "-fno-tree-pre"
# gcc 12 may count through two arrays of a loop by one number, the distance of the one to the other:
# a store then looks to it like one near address 0, and a call that only stores so is left out.
_STORES_ANYWHERE = "-fno-delete-null-pointer-checks"
_GCC = (
    *_COMMON,
    "-pipe",
    _NO_CHOICES_AHEAD,
    _STORES_ANYWHERE,
    *[f"--param={limit}=100000" for limit in _INLINE_LIMITS],
)
_CLANG = (*_COMMON, "-mllvm", "-inline-threshold=100000")
FLAGS = {
    "gcc": _GCC,
    "clang": _CLANG,
    "apple clang": _CLANG,
    "zig": (*_CLANG, "-fno-sanitize=all", "-nostdlib"),  # links libc all the same where it is used
}
# Kernels read no header and need no start-up code: without libc linking takes a sixth less time.
# What a compiler calls on its own account (memset) is found all the same, since the process has it.
WITHOUT_LIBC = {"gcc": ("-nostdlib",), "clang": ("-nostdlib",), "apple clang": (), "zig": ()}

Identified = tuple[tuple[str, int, int], ...]  # path, size and time of change of each program


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: how to start it, which flags it takes, and what tells it from others.

    identity: its path, size, time of change and what it says of its version.
    """

    command: tuple[str, ...]
    kind: str  # a key of FLAGS
    identity: str

    def arguments(self, flags: tuple[str, ...] = (), *, libc: bool = False) -> list[str]:
        """All that it is told but its files; later flags override earlier ones."""
        return [*FLAGS[self.kind], *(() if libc else WITHOUT_LIBC[self.kind]), *flags]

    def call(self, source: str, library: str, arguments: list[str]) -> list[str]:
        """The command that makes a library of a source file."""
        return [*self.command, *arguments, source, "-o", library]


def find_compiler() -> Compiler:
    """The compiler that CC names, or else the first of gcc, clang, cc and the ziglang wheel's.

    Raises:
        CompilerNotFoundError: there is none, or CC names none.
    """
    return _find_compiler(os.environ.get("CC", ""), os.environ.get("PATH", os.defpath))


@lru_cache(maxsize=16)
def _find_compiler(cc: str, path: str) -> Compiler:
    if cc.strip():
        return named_compiler(cc, path)
    for command in candidates(path):
        compiler = identify(command)
        if compiler is not None:
            return compiler
    tried = ", ".join((*ON_PATH, "python -m ziglang cc"))
    raise CompilerNotFoundError(
        f"tinyfuse needs a C compiler and found none (tried: {tried}).\n{REMEDY}"
    )


def named_compiler(cc: str, path: str) -> Compiler:
    """The compiler of a value of CC: a program and perhaps arguments, quoted as for a shell."""
    try:
        words = shlex.split(cc)
    except ValueError as error:
        raise CompilerNotFoundError(f"CC={cc!r} cannot be read: {error}.\n{REMEDY}") from None
    program = shutil.which(words[0], path=path)
    if program is None:
        raise CompilerNotFoundError(f"CC={cc!r}: there is no program {words[0]!r}.\n{REMEDY}")
    compiler = identify((program, *words[1:]))
    if compiler is None:
        known = "gcc, clang and zig cc"
        raise CompilerNotFoundError(f"CC={cc!r} is none of the compilers known: {known}.\n{REMEDY}")
    return compiler


def candidates(path: str) -> Iterator[tuple[str, ...]]:
    """Commands that may be C compilers, best first."""
    for name in ON_PATH:
        program = shutil.which(name, path=path)
        if program is not None:
            yield (program,)
    yield from _zig()


def _zig() -> Iterator[tuple[str, ...]]:
    """What `python -m ziglang cc` would start, without Python in between."""
    import importlib.util  # only here: hardly any process needs it

    wheel = importlib.util.find_spec("ziglang")
    if wheel is None or wheel.origin is None:
        return
    program = Path(wheel.origin).with_name("zig")
    yield (str(program), "cc") if program.exists() else (sys.executable, "-m", "ziglang", "cc")


def identify(command: tuple[str, ...]) -> Compiler | None:
    """What compiler a command starts; None if it cannot be started or is none.

    What it says of its version is kept in the cache directory, for as long as the program's file
    stays the same, since asking costs more than loading a cached kernel.
    """
    files = programs(command)
    version = cache.recall(
        "compilers",
        repr((command, files)),
        lambda: ask_version(command),
        lambda answer: kind_of(command, answer) is not None,
    )
    kind = kind_of(command, version)
    if kind is None:
        return None
    return Compiler(command, kind, repr((command, files, version)))


def programs(command: tuple[str, ...]) -> Identified:
    """The files that a command's words name: of `ccache gcc` both."""
    files = []
    for word in command:
        found = None if word.startswith("-") else shutil.which(word)
        if found is not None:
            real = os.path.realpath(found)
            status = os.stat(real)
            files.append((real, status.st_size, status.st_mtime_ns))
    return tuple(files)


def ask_version(command: tuple[str, ...]) -> str:
    """What the command says of its version; empty if it fails."""
    import subprocess  # only here and where it compiles: its import alone takes milliseconds

    try:
        answer = subprocess.run(
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(directory()),
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.decode(errors="replace").strip()


def kind_of(command: tuple[str, ...], version: str) -> str | None:
    """The key of FLAGS for a compiler with this version text; `gcc` may well be a clang."""
    if "Apple" in version and "clang" in version:
        return "apple clang"
    if "clang" in version:
        return "zig" if "ziglang" in version or is_zig(command) else "clang"
    return "gcc" if "Free Software Foundation" in version else None


def is_zig(command: tuple[str, ...]) -> bool:
    """Zig's compiler gives the version of the clang in it."""
    return "cc" in command[1:] and ("ziglang" in command or Path(command[0]).name.startswith("zig"))


def environment(where: Path) -> dict[str, str]:
    """For a compiler's process: messages in English, zig's own cache inside that directory."""
    zig = str(where / "zig")
    return {**os.environ, "LC_ALL": "C", "ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig}
