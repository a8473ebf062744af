"""Text that people read: quantities with their units, lines of limited width, the user's words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

WIDTH = 98  # columns of a text report
TAB = 4

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def printable(text: str) -> str:
    """A line of the user's without what would change how the rest is shown."""
    return "".join(
        character if character.isprintable() else "?" for character in text.expandtabs(TAB)
    )


def wrapped(text: str, indent: str = "", hanging: str = "  ") -> list[str]:
    """Lines of at most `WIDTH` columns, all but the first further to the right."""
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
    )


def cut(lines: Iterable[str], indent: str = "") -> list[str]:
    """Lines as they stand, those that are too long continued on the next."""
    room = WIDTH - len(indent)
    return [
        indent + line[start : start + room]
        for line in map(printable, lines)
        for start in range(0, max(1, len(line)), room)
    ]


def number_text(value: float) -> str:
    """Three digits: `1.25`, `0.333`, `4096`; whole from a thousand on."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def time_text(seconds: float) -> str:
    """`1.25 ms`, `340 ns`."""
    rounded = float(f"{seconds:.3g}")
    scale, unit = next((each for each in _TIMES if rounded >= each[0]), _TIMES[-1])
    return f"{number_text(seconds / scale)} {unit}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
