"""Tables, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.inspect.page import Markup, element
from tinyfuse.inspect.writing import cut, printable
from tinyfuse.records import dataclass

WIDEST_LABEL = 32  # columns; a longer one has a line to itself


@dataclass(frozen=True, slots=True)
class Table:
    """Labels on the left, quantities on the right. Each row is as long as the head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> list[str]:
        """Its lines, columns aligned."""
        rows = [tuple(map(printable, row)) for row in (self.head, *self.rows)]
        labels = [len(row[0]) for row in rows if len(row[0]) <= WIDEST_LABEL]
        widths = [max(labels), *[max(map(len, column)) for column in list(zip(*rows, strict=True))]]
        del widths[1]
        return [line for row in rows for line in _row_lines(row, widths)]

    def html(self) -> Markup:
        head = element("tr", *[element("th", cell) for cell in self.head])
        rows = [element("tr", *[element("td", cell) for cell in row]) for row in self.rows]
        return element("table", element("thead", head), element("tbody", *rows))


def _row_lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    label, *quantities = row
    above = cut([label]) if len(label) > widths[0] else []
    cells = [f"{cell:>{width}}" for cell, width in zip(quantities, widths[1:], strict=True)]
    return [*above, "  ".join([f"{'' if above else label:<{widths[0]}}", *cells]).rstrip()]
