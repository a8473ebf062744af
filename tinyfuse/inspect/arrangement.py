"""A diagram on a plane: kernels in rows, their stages in rows within them, and the lines between.

A line that goes further than to the next row has a narrow cell in each row that it passes, so that
it crosses no box. Lines from one stage share their cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tinyfuse.inspect.diagram import INPUTS, Diagram
from tinyfuse.inspect.layout import Box, placed, rows_of
from tinyfuse.records import dataclass

LETTER = 8  # pixels, a little more than a letter is wide
MOST_LETTERS = 24  # of a name
NODE_HEIGHT = 24
NODE_GAP = (14, 26)
KERNEL_GAP = (24, 40)
MARGIN = 12
TITLE = 22  # above the stages of a kernel

BETWEEN = -1  # in place of a group: the rows of the groups themselves


class Cell(NamedTuple):
    """Where lines from a stage pass a row of a group, or of the groups."""

    source: int
    group: int
    row: int


Key = int | Cell  # a box, by its number, or a cell
Path = list[Key]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Boxes of the groups and the nodes; for each edge the boxes it runs through, ends included."""

    groups: list[Box]
    nodes: list[Box]
    lines: list[list[Box]]
    width: int
    height: int


def short(name: str, letters: int = MOST_LETTERS) -> str:
    return name if len(name) <= letters else f"{name[: letters - 3]}..."


def arranged(diagram: Diagram) -> Arrangement:
    """The same for the same diagram."""
    rows = _Rows(diagram)
    paths: list[Path] = [[a, *rows.passed(a, b), b] for a, b in diagram.edges]
    inner = [_inside(diagram, rows, group, paths) for group in range(len(diagram.groups))]
    extents = [_extent(*each) for each in zip(diagram.groups, inner, strict=True)]
    outer = _outside(rows, extents, paths)
    places: dict[Key, Box] = {k: box for k, box in outer.items() if isinstance(k, Cell)}
    for group, found in enumerate(inner):
        frame = outer[group]
        x = frame.x + (frame.width - _reach(found.values())[0]) // 2
        y = frame.y + (0 if group == INPUTS else TITLE + MARGIN // 2)
        places.update({key: box.moved(x, y) for key, box in found.items()})
    return Arrangement(
        [outer[group] for group in range(len(inner))],
        [places[node] for node in range(len(diagram.nodes))],
        [[places[key] for key in path] for path in paths],
        *_reach(outer.values()),
    )


class _Rows:
    """The row of each group, and of each node within its group."""

    def __init__(self, diagram: Diagram) -> None:
        self.group = [node.group for node in diagram.nodes]
        self.of_group = rows_of(
            len(diagram.groups), [(self.group[a], self.group[b]) for a, b in diagram.edges]
        )
        self.members: list[list[int]] = [[] for _ in diagram.groups]
        for node, group in enumerate(self.group):
            self.members[group].append(node)
        self.of_node: dict[int, int] = {}
        for found in self.members:
            place = {node: at for at, node in enumerate(found)}
            edges = [(place[a], place[b]) for a, b in diagram.edges if a in place and b in place]
            self.of_node.update(zip(found, rows_of(len(found), edges), strict=True))

    def passed(self, source: int, target: int) -> Iterator[Cell]:
        """The rows between two nodes: of the one's group, of the groups, of the other's group."""
        start, end = self.group[source], self.group[target]
        below, above = self.of_node[source] + 1, self.of_node[target]
        if start == end:
            yield from [Cell(source, end, row) for row in range(below, above)]
            return
        last = max([self.of_node[node] for node in self.members[start]])
        between = range(self.of_group[start] + 1, self.of_group[end])
        yield from [Cell(source, start, row) for row in range(below, last + 1)]
        yield from [Cell(source, BETWEEN, row) for row in between]
        yield from [Cell(source, end, row) for row in range(above)]


def _inside(diagram: Diagram, rows: _Rows, group: int, paths: Sequence[Path]) -> dict[Key, Box]:
    """The nodes and cells of a group, from (0, 0)."""
    nodes = {node: rows.of_node[node] for node in rows.members[group]}
    sizes = {node: (_width(diagram.nodes[node].name), NODE_HEIGHT) for node in nodes}
    return _placed([*nodes.items(), *_cells(paths, group)], sizes, paths, NODE_GAP)


def _outside(
    rows: _Rows, extents: Sequence[tuple[int, int]], paths: Sequence[Path]
) -> dict[Key, Box]:
    """The groups and the cells between them."""

    def outer(key: Key) -> Key:
        if isinstance(key, int):
            return rows.group[key]
        return key if key.group == BETWEEN else key.group

    groups = enumerate(rows.of_group)
    seen = [[outer(key) for key in path] for path in paths]
    sizes = dict(enumerate(extents))
    return _placed([*groups, *_cells(paths, BETWEEN)], sizes, seen, KERNEL_GAP)


def _cells(paths: Sequence[Path], group: int) -> list[tuple[Key, int]]:
    """The cells of a group, each with its row."""
    keys = dict.fromkeys([key for path in paths for key in path])
    return [(key, key.row) for key in keys if isinstance(key, Cell) and key.group == group]


def _placed(
    rows: Sequence[tuple[Key, int]],
    sizes: Mapping[int, tuple[int, int]],
    paths: Sequence[Path],
    gap: tuple[int, int],
) -> dict[Key, Box]:
    """A box for each key with a row; a cell is as high as its row."""
    place = {key: at for at, (key, _) in enumerate(rows)}
    before: list[list[int]] = [[] for _ in rows]
    for path in paths:
        for one, other in pairwise(path):
            if one != other and one in place and other in place:
                before[place[other]].append(place[one])
    extents = [sizes[key] if isinstance(key, int) else (1, 0) for key in place]
    boxes = placed([row for _, row in rows], extents, before, gap)
    return dict(zip(place, boxes, strict=True))


def _extent(name: str, inner: Mapping[Key, Box]) -> tuple[int, int]:
    """Of a group: the inputs have no name, and no frame."""
    width, height = _reach(inner.values())
    if not name:
        return width, height
    return max(width, LETTER * len(short(name))) + 2 * MARGIN, height + TITLE + 2 * MARGIN


def _reach(boxes: Iterable[Box]) -> tuple[int, int]:
    """How far they go, to the right and down."""
    ends = [(box.x + box.width, box.bottom) for box in boxes]
    return max([x for x, _ in ends], default=0), max([y for _, y in ends], default=0)


def _width(name: str) -> int:
    return LETTER * len(short(name)) + 2 * MARGIN
