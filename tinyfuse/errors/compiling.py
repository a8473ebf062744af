"""What stands between a program and its compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyfuse.errors.base import TinyfuseError


class ScheduleError(TinyfuseError, ValueError):
    """A directive would change what the program means, or names a loop that is not there.

    A schedule moves and cuts loops; it cannot reorder a sum, let threads share a loop whose steps
    depend on one another, or store what other stages need whole inside a loop.

    Example::

        schedule.parallel(total, k)  # k is the axis that `total` sums over

    What to do: the message names the stage, its loops and what is legal. Sums are made parallel
    over the elements they are computed for, or over the blocks of a long sum, which are a stage of
    their own.
    """

    def __init__(self, message: str = "", details: Callable[[], str] | None = None) -> None:
        """details: what follows the message, found when somebody reads it."""
        super().__init__(message)
        self._details = details

    def __str__(self) -> str:
        return super().__str__() + (self._details() if self._details else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)


class CompilerNotFoundError(TinyfuseError):
    """There is no C compiler, or the environment variable CC names none.

    tinyfuse looks for what CC says (a program and perhaps arguments, quoted as for a shell), then
    for gcc, clang and cc on PATH, then for the compiler in the `ziglang` wheel::

        $ CC=gcc-42 python program.py
        CompilerNotFoundError: CC='gcc-42': there is no program 'gcc-42'.

    Install one: `apt install gcc`, or, without any rights on the system, `pip install ziglang`.
    Without a compiler, functions still run as they are under `tinyfuse.disable_jit()`.
    """


class CompilationError(TinyfuseError):
    """The C compiler failed on the C of a function, or what it made cannot be loaded.

    The message has the compiler's words, the line of C that they are about, and the place where the
    C was kept. Likely causes are a compiler that is old (tinyfuse needs C11 with the vector types
    of gcc and clang), half installed (`cannot find -lm`, no `as`: `apt install gcc libc6-dev`) or
    asked for what it does not know::

        $ CC='gcc -march=pentium9' python program.py
        CompilationError: gcc failed on the C of softmax (exit status 1).

    Try another compiler through CC. If a current one refuses the C, tinyfuse is wrong: please
    report it together with the file that was kept.
    """


class ThreadCountError(TinyfuseError, ValueError):
    """TINYFUSE_NUM_THREADS, or the argument of a call that sets it, is no number of threads.

    ::

        $ TINYFUSE_NUM_THREADS=all python program.py
        ThreadCountError: TINYFUSE_NUM_THREADS='all' is no number of threads, such as 4

    Write a whole number from 1. Without any, tinyfuse uses the cores that the process may use.
    """


class CacheError(TinyfuseError):
    """The directory for compiled code cannot be used, or its settings make no sense.

    Code from that directory runs in the user's processes, so it has to belong to that user and
    nobody else may write into it::

        $ TINYFUSE_CACHE_DIR=/tmp/shared python program.py
        CacheError: other users can write into the cache directory /tmp/shared (mode 0777), …

    Set TINYFUSE_CACHE_DIR to a directory of your own, or, where the directory was only created too
    openly, `chmod 700` it. Such a directory can be deleted at any time: it fills itself again.
    """


class VerificationError(TinyfuseError, AssertionError):
    """One of tinyfuse's own levels (graph, stages, loops) is malformed: a fault in tinyfuse.

    The verifiers run in tests, and wherever a graph, stages or loops are built by hand::

        verify_graph(Graph("f", (), (), (Var((3,), np.dtype("float32")),)))
        VerificationError: graph f, an output: a variable: float32[3] is not defined before

    If it comes from a function under `tinyfuse.jit`, tinyfuse is wrong: please report it together
    with that function. `tinyfuse.disable_jit()` runs the function as it is.
    """
