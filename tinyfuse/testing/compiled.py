"""Programs compiled many to a library, and run under a pool that divides all it can, backwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tinyfuse.emit.c import emit_c_many
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.loops.ir import Buffer, Loops
from tinyfuse.runtime.build import build
from tinyfuse.runtime.declarations import ffi
from tinyfuse.runtime.library import aligned
from tinyfuse.runtime.linking import closing, find, open_library
from tinyfuse.runtime.pool import pool

GUARD = 64  # bytes before and after each array that have to stay as they are
PATTERN = 0xA5

# Threads that take turns: every parallel loop is cut into pieces however short it is, and the last
# piece runs first, so that whatever one piece needs of another is missing.
SPLITTING_POOL = (
    (runtime_c() / "entry.h").read_text()
    + """
struct splitting_pool {
    tf_pool pool;
    long pieces;
};

static void run(const tf_pool *pool, tf_task task, void *const *buffers, long extent, long grain)
{
    long pieces = ((const struct splitting_pool *)pool)->pieces;
    (void)grain;
    for (long piece = pieces; piece-- > 0;) {
        long begin = extent * piece / pieces, end = extent * (piece + 1) / pieces;
        if (begin < end)
            task(buffers, begin, end);
    }
}

const tf_pool *splitting_pool(int pieces)
{
    static struct splitting_pool pools[17];
    pools[pieces].pool.run = run;
    pools[pieces].pieces = pieces;
    return &pools[pieces].pool;
}
"""
)


@cache
def _pool_of() -> Any:
    library = open_library(build(SPLITTING_POOL, "splitting pool"))
    return find(library, "splitting_pool", "tf_pool_of")


def splitting_pool(pieces: int) -> Any:
    """A pool that cuts every parallel loop into so many pieces (at most 16); for 1 none."""
    return _pool_of()(pieces) if pieces > 1 else ffi.NULL


class Library:
    """Compiled programs, each of another name.

    flags: for the compiler, after the usual ones.
    """

    def __init__(
        self,
        programs: Iterable[Loops],
        flags: Sequence[str] = ("-O1",),
        name: str = "random programs",
    ):
        self.programs = tuple(programs)
        module = emit_c_many(self.programs)
        self._handle = closing(open_library(build(module.text, name, flags=tuple(flags))))
        self._entries = {p.name: find(self._handle, p.name, "tf_entry") for p in self.programs}

    def run(
        self, program: Loops, arrays: Sequence[np.ndarray], pieces: int = 1
    ) -> list[np.ndarray]:
        """The outputs, flat, with every parallel loop cut into so many pieces.

        Raises AssertionError where the program reports an error or writes beside its arrays.
        """
        return self._run(program, arrays, splitting_pool(pieces))

    def run_threads(
        self, program: Loops, arrays: Sequence[np.ndarray], threads: int
    ) -> list[np.ndarray]:
        """The outputs, flat, computed by tinyfuse's own threads."""
        return self._run(program, arrays, pool(threads))

    def _run(
        self, program: Loops, arrays: Sequence[np.ndarray], pool_address: Any
    ) -> list[np.ndarray]:
        outputs = [_Guarded(buffer.nbytes) for buffer in program.outputs]
        scratch = _Guarded(program.scratch_bytes)
        given = [np.require(array, requirements=["C", "A"]) for array in arrays]
        addresses = [_address(array) for array in (*given, *(output.inside for output in outputs))]
        status = self._entries[program.name](addresses, _address(scratch.inside), pool_address)
        assert status == 0, f"status {status}"
        for name, block in [
            *((b.name, block) for b, block in zip(program.outputs, outputs, strict=True)),
            ("scratch", scratch),
        ]:
            assert block.is_intact(), f"writes beside {name}"
        return [
            block.as_array(buffer) for buffer, block in zip(program.outputs, outputs, strict=True)
        ]


def _address(array: np.ndarray) -> Any:
    return ffi.cast("void *", array.ctypes.data)


class _Guarded:
    """Memory with a guard on both sides, full of bytes that no result may depend on."""

    def __init__(self, size: int):
        self._block = aligned(size + 2 * GUARD)
        self._block[...] = PATTERN
        self.inside = self._block[GUARD : GUARD + size]

    def is_intact(self) -> bool:
        guards = self._block[:GUARD], self._block[GUARD + len(self.inside) :]
        return all((guard == PATTERN).all() for guard in guards)

    def as_array(self, buffer: Buffer) -> np.ndarray:
        return self.inside[: buffer.nbytes].view(buffer.dtype)
