"""The C of loops that stream a short row: it is computed on the stack, then stored from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyfuse.emit.ctext import type_text
from tinyfuse.loops.ir import Buffer
from tinyfuse.records import dataclass


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

    def declaration(self, used: dict[str, None], count: int) -> str:
        return f"{type_text(self.buffer.dtype, used)} {self.block}[{count}]"

    def stored(self, count: int, call: Callable[..., str]) -> str:
        return call("tf_stream", self.target, self.block, str(self.size * count))


def in_one_block(
    rows: Sequence[StreamedRow],
    steps: Sequence[str],
    count: int,
    used: dict[str, None],
    call: Callable[..., str],
) -> list[str]:
    """The lines of a loop of `count` steps.

    steps: the lines of the loop that computes the rows. call: the text of a call of a function of
    the prelude.
    """
    return [
        *[f"{row.declaration(used, count)};" for row in rows],
        *steps,
        *[f"{row.stored(count, call)};" for row in rows],
    ]
