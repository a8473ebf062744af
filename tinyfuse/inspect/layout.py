"""Where the boxes of a drawing lie: layers from the longest path, everything in whole pixels."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.records import dataclass

WIDEST = 10  # boxes beside one another

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Placed:
    """Boxes with the upper left corner of each, and the extent of all."""

    corners: tuple[tuple[int, int], ...]
    width: int
    height: int


def layers(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Nodes 0 … count - 1 in rows, each at least one row below all that lead to it.

    edges: (from, to) with from < to; others do not count. Within a row a node stands about below
    those that lead to it.
    """
    before: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        if source < target:
            before[target].append(source)
    depth: list[int] = []
    for sources in before:
        depth.append(max([depth[source] + 1 for source in sources], default=0))
    rows: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node, row in enumerate(depth):
        rows[row].append(node)
    return _ordered(rows, before)


def _ordered(rows: list[list[int]], before: Sequence[Sequence[int]]) -> list[list[int]]:
    """Each row by the mean place of what leads to its nodes, cut where it is too wide."""
    place: dict[int, float] = {}
    ordered = []
    for row in rows:
        wanted = {node: _mean([place[source] for source in before[node]]) for node in row}
        row = sorted(row, key=lambda node: (wanted[node], node))
        place.update({node: (at + 0.5) / len(row) for at, node in enumerate(row)})
        ordered += [row[start : start + WIDEST] for start in range(0, len(row), WIDEST)]
    return ordered


def _mean(places: Sequence[float]) -> float:
    return sum(places) / len(places) if places else 0.5


def placed(sizes: Sequence[tuple[int, int]], edges: Sequence[Edge], gap: tuple[int, int]) -> Placed:
    """Boxes of these widths and heights in layers from top to bottom, each row centred."""
    rows = layers(len(sizes), edges)
    widths = [sum([sizes[node][0] for node in row]) + gap[0] * (len(row) - 1) for row in rows]
    width, top = max(widths, default=0), 0
    corners: dict[int, tuple[int, int]] = {}
    for row, row_width in zip(rows, widths, strict=True):
        left = (width - row_width) // 2
        for node in row:
            corners[node] = left, top
            left += sizes[node][0] + gap[0]
        top += max([sizes[node][1] for node in row]) + gap[1]
    return Placed(tuple([corners[node] for node in range(len(sizes))]), width, max(0, top - gap[1]))
