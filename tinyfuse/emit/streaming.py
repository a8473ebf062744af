"""The C of loops that stream: block after block is computed on the stack, then stored from there.

So the compiler vectorizes the loop as it does others, and need not be told of streamed stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyfuse.emit.ctext import type_text
from tinyfuse.loops.ir import Buffer
from tinyfuse.records import dataclass

# Bytes of a block: few, so that loads and stores go on at once. `streamed_stores.h` counts on it.
BLOCK = 1024


@dataclass(frozen=True, slots=True)
class StreamedRow:
    """Where the elements of a buffer go: first into an array of that name, then to `target`."""

    buffer: Buffer
    block: str
    target: str

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.buffer.dtype.itemsize

    def declaration(self, used: dict[str, None], count: int = 0) -> str:
        """count: of the elements, if a block of them is smaller than others."""
        return f"{type_text(self.buffer.dtype, used)} {self.block}[{count or BLOCK // self.size}]"

    def stored(self, count: str | int, call: Callable[..., str]) -> str:
        if isinstance(count, int):
            nbytes = str(self.size * count)
        else:
            nbytes = f"{self.size} * ({count})" if self.size > 1 else count
        return call("tf_stream", self.target, self.block, nbytes)


def in_one_block(
    rows: Sequence[StreamedRow],
    steps: Sequence[str],
    count: int,
    used: dict[str, None],
    call: Callable[..., str],
) -> list[str]:
    """The lines of a loop of `count` steps, so few that one block holds what they store of each
    row; as of `in_blocks`."""
    return [
        *[f"{row.declaration(used, count)};" for row in rows],
        *steps,
        *[f"{row.stored(count, call)};" for row in rows],
    ]


def in_blocks(
    rows: Sequence[StreamedRow],
    steps: Sequence[str],
    bounds: tuple[str, str, str, str],
    used: dict[str, None],
    call: Callable[..., str],
) -> list[str]:
    """The lines of a loop over blocks.

    steps: the lines of the loop over one block. bounds: where the first block begins and the last
    one ends, and the names of the variables that say so of each. call: the text of a call of a
    function of the prelude.
    """
    begin, end, first, following = bounds
    largest = str(max(row.size for row in rows))
    length = call("tf_stream_length", rows[0].target, f"{end} - {first}", largest)
    inside = [
        *[f"{row.declaration(used)};" for row in rows],
        f"{following} = {first} + {length};",
        *steps,
        *[f"{row.stored(f'{following} - {first}', call)};" for row in rows],
    ]
    head = f"for (long {first} = {begin}, {following}; {first} < {end}; {first} = {following}) {{"
    return [head, *[f"  {line}" for line in inside], "}"]
