"""Comments in the C: what a kernel computes, in the user's own words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tinyfuse.loops.ir import Buffer, Kernel, Loops
from tinyfuse.machine import KIB

SHOWN_STAGES = 8  # of a kernel
WIDTH = 100  # of what is not the user's
UNBROKEN = "\N{NO-BREAK SPACE}"  # a space where no line ends


def kernel_comment(kernel: Kernel, others: Sequence[Kernel] = ()) -> list[str]:
    """The user's statements, then the stages, bytes and operations of the nest; others: what calls
    the same function."""
    statements = dict.fromkeys(source.statement for source in kernel.sources if source.statement)
    lines = [safe(line) for text in statements for line in text.splitlines()]
    spent = kernel.cost
    summary = (
        f"[{names_text(kernel.stages)}] reads {size_text(spent.bytes_read)},"
        f" writes {size_text(spent.bytes_written)}, {count_text(spent.flops)}"
    )
    if others:
        results = [b.name for other in others for b in other.parameters if b in other.written]
        summary += f"; also called for {names_text(results)}"
    return [*[f"// {line}".rstrip() for line in lines], *_wrapped(summary)]


def names_text(names: Sequence[str]) -> str:
    """The first few: a search alone is a hundred stages."""
    more = len(names) - SHOWN_STAGES
    return ", ".join([*names[:SHOWN_STAGES], *([f"... and {more} more"] if more > 0 else [])])


def _wrapped(text: str) -> list[str]:
    if len(text) <= WIDTH - len("// "):
        return [f"// {text}".rstrip().replace(UNBROKEN, " ")]
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent="// ",
        subsequent_indent="//   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(UNBROKEN, " ") for line in lines]


def entry_comment(loops: Loops) -> list[str]:
    """What the entry takes: the arrays in their order, and how much scratch memory."""
    arrays = [_type_text(buffer) for buffer in loops.inputs]
    results = [_type_text(buffer) for buffer in loops.outputs]
    return [
        *_wrapped(f"arrays: {', '.join(arrays) or 'none'}; then the results: {', '.join(results)}"),
        f"// scratch: {loops.scratch_bytes} bytes; returns 0",
    ]


def _type_text(buffer: Buffer) -> str:
    return f"{buffer.name}{UNBROKEN}{buffer.dtype.name}[{buffer.size}]"


def safe(line: str) -> str:
    """A line of the user's that cannot leave its comment or change what a reader sees.

    A backslash at its end, also as a trigraph, would continue the comment on the next line.
    """
    shown = line.rstrip()
    if not shown.isprintable():
        shown = "".join([character if character.isprintable() else "?" for character in shown])
    shown = shown.replace("??", "? ?")
    return shown + " (line continues)" if shown.endswith("\\") else shown


def size_text(nbytes: int) -> str:
    """Bytes as a person reads them: `512 B`, `1.5 KiB`, `8 MiB`."""
    value, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if value < KIB:
            break
        value, unit = value / KIB, larger
    return f"{value:.0f} {unit}" if value >= 999.5 else f"{value:.3g} {unit}"


def count_text(flops: int) -> str:
    return f"{flops} operation{'' if flops == 1 else 's'}"
