"""Where boxes lie: in rows by the longest paths, everything in whole pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyfuse.records import dataclass

WIDEST = 10  # boxes beside one another

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle by its upper left corner."""

    x: int
    y: int
    width: int
    height: int

    @property
    def middle(self) -> int:
        return self.x + self.width // 2

    @property
    def bottom(self) -> int:
        return self.y + self.height

    def moved(self, x: int, y: int) -> Box:
        return Box(self.x + x, self.y + y, self.width, self.height)


def rows_of(count: int, edges: Iterable[Edge]) -> list[int]:
    """For nodes 0 … count - 1 a row each, below those of all that lead to it.

    A row is one more than the longest path there, and more where rows before were too wide for one.
    edges: (from, to) with from < to; others do not count.
    """
    before: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        if source < target:
            before[target].append(source)
    depth: list[int] = []
    for sources in before:
        depth.append(max([depth[source] + 1 for source in sources], default=0))
    members: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node, level in enumerate(depth):
        members[level].append(node)
    parts = [row[at : at + WIDEST] for row in members for at in range(0, len(row), WIDEST)]
    found = {node: row for row, part in enumerate(parts) for node in part}
    return [found[node] for node in range(count)]


def placed(
    rows: Sequence[int],
    sizes: Sequence[tuple[int, int]],
    before: Sequence[Sequence[int]],
    gap: tuple[int, int],
) -> list[Box]:
    """A box of each size in its row, each row centred, beginning at (0, 0).

    before: for each box those above it that it should stand below, one of the rows before; a box
    with none stands at the right. All in a row are as high as the highest.
    """
    ordered = _ordered(rows, before)
    widths = [sum([sizes[at][0] for at in row]) + gap[0] * (len(row) - 1) for row in ordered]
    boxes: dict[int, Box] = {}
    top = 0
    for row, width in zip(ordered, widths, strict=True):
        left = (max(widths) - width) // 2
        height = max([sizes[at][1] for at in row], default=0)
        for at in row:
            boxes[at] = Box(left, top, sizes[at][0], sizes[at][1] or height)
            left += sizes[at][0] + gap[0]
        top += height + gap[1]
    return [boxes[at] for at in range(len(sizes))]


def _ordered(rows: Sequence[int], before: Sequence[Sequence[int]]) -> list[list[int]]:
    """The members of each row from left to right."""
    members: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
    for at, row in enumerate(rows):
        members[row].append(at)
    place: dict[int, float] = {}
    for row, found in enumerate(members):
        wanted = {at: _mean([place[a] for a in before[at] if a in place]) for at in found}
        members[row] = sorted(found, key=lambda at, wanted=wanted: (wanted[at], at))  # type: ignore[misc]
        place.update({at: (n + 0.5) / len(found) for n, at in enumerate(members[row])})
    return members


def _mean(places: Sequence[float]) -> float:
    return sum(places) / len(places) if places else 1.0
