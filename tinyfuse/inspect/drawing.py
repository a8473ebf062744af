"""The drawing of a program as SVG: each kernel a box around the stages that it computes."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.compilation import Lowered
from tinyfuse.inspect.diagram import INPUTS, Diagram, Node, diagram_of
from tinyfuse.inspect.layout import Edge, Placed, placed
from tinyfuse.inspect.page import Markup, element, joined
from tinyfuse.inspect.writing import plural
from tinyfuse.records import dataclass

MOST_NODES = 200  # that are drawn
MOST_LETTERS = 24  # of a name

LETTER = 8  # pixels, a little more than a letter is wide
NODE_HEIGHT = 24
NODE_GAP = (14, 26)
KERNEL_GAP = (28, 40)
MARGIN = 12
TITLE = 22  # above the stages of a kernel
HEAD = 4  # of an arrow, half as wide


@dataclass(frozen=True, slots=True)
class _Box:
    x: int
    y: int
    width: int
    height: int

    def rectangle(self, kind: str, radius: int) -> Markup:
        return element(
            "rect", x=self.x, y=self.y, width=self.width, height=self.height, rx=radius, class_=kind
        )


def drawing(lowered: Lowered) -> Markup:
    """The program drawn; of a large one a sentence that says so."""
    diagram = diagram_of(lowered)
    count = len(diagram.nodes)
    if count > MOST_NODES:
        words = f"Not drawn: {plural(count, 'stage')} are more than the {MOST_NODES} that are."
        return joined(element("p", words), _listed(diagram))
    return element("div", _svg(diagram), class_="drawing")


def _listed(diagram: Diagram) -> Markup:
    """In place of a drawing: which kernels each one reads."""
    read: dict[int, dict[str, None]] = {group: {} for group in range(1, len(diagram.groups))}
    for source, target in diagram.edges:
        one, other = diagram.nodes[source], diagram.nodes[target]
        if one.group != other.group:
            read[other.group][diagram.groups[one.group] or one.name] = None
    return element(
        "ul",
        *[
            element("li", f"{diagram.groups[group]} reads {', '.join(names) or 'nothing'}")
            for group, names in read.items()
        ],
    )


def _svg(diagram: Diagram) -> Markup:
    groups, nodes, extent = _boxes(diagram)
    edges = [_edge(nodes[source], nodes[target]) for source, target in diagram.edges]
    shapes = [_group(name, box) for name, box in zip(diagram.groups, groups, strict=True) if name]
    labels = [_node(node, box) for node, box in zip(diagram.nodes, nodes, strict=True)]
    width, height = extent[0] + 2 * MARGIN, extent[1] + 2 * MARGIN
    return element(
        "svg",
        *[*shapes, *edges, *labels],
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"{-MARGIN} {-MARGIN} {width} {height}",
        role="img",
    )


def _boxes(diagram: Diagram) -> tuple[list[_Box], list[_Box], tuple[int, int]]:
    """The boxes of the kernels, those of the stages, and the width and height of all."""
    members: list[list[int]] = [[] for _ in diagram.groups]
    for at, node in enumerate(diagram.nodes):
        members[node.group].append(at)
    inner = [_inner(diagram, found) for found in members]
    sizes = [_outer_size(group, found) for group, found in enumerate(inner)]
    group_of = [node.group for node in diagram.nodes]
    outer = placed(sizes, _between(group_of, diagram.edges), KERNEL_GAP)
    corners = zip(outer.corners, sizes, strict=True)
    groups = [_Box(x, y, width, height) for (x, y), (width, height) in corners]
    nodes: dict[int, _Box] = {}
    for group, (box, found) in enumerate(zip(groups, members, strict=True)):
        inset = (0, 0) if group == INPUTS else (MARGIN, TITLE + MARGIN // 2)
        left = box.x + (box.width - inner[group].width) // 2
        for at, (x, y) in zip(found, inner[group].corners, strict=True):
            nodes[at] = _Box(left + x, box.y + inset[1] + y, _width(diagram.nodes[at]), NODE_HEIGHT)
    return groups, [nodes[at] for at in range(len(nodes))], (outer.width, outer.height)


def _inner(diagram: Diagram, members: Sequence[int]) -> Placed:
    """The stages of one kernel among themselves."""
    place = {node: at for at, node in enumerate(members)}
    edges = [(place[a], place[b]) for a, b in diagram.edges if a in place and b in place]
    return placed([(_width(diagram.nodes[at]), NODE_HEIGHT) for at in members], edges, NODE_GAP)


def _outer_size(group: int, inner: Placed) -> tuple[int, int]:
    if group == INPUTS:
        return inner.width, inner.height
    return inner.width + 2 * MARGIN, inner.height + TITLE + 2 * MARGIN


def _between(group_of: Sequence[int], edges: Sequence[Edge]) -> list[Edge]:
    pairs = [(group_of[source], group_of[target]) for source, target in edges]
    return list(dict.fromkeys([pair for pair in pairs if pair[0] != pair[1]]))


def _width(node: Node) -> int:
    return LETTER * len(_short(node.name)) + 2 * MARGIN


def _short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 3]}..."


def _group(name: str, box: _Box) -> Markup:
    letters = max(4, box.width // LETTER - 1)
    shown = name if len(name) <= letters else f"{name[: letters - 3]}..."
    label = element("text", shown, x=box.x + MARGIN // 2, y=box.y + TITLE - 6)
    return element("g", element("title", name), box.rectangle("kernel", 6), label)


def _node(node: Node, box: _Box) -> Markup:
    middle = box.x + box.width // 2
    label = element("text", _short(node.name), x=middle, y=box.y + 16, text_anchor="middle")
    shape = box.rectangle(f"node {node.kind}", 12 if node.kind == "input" else 3)
    return element("g", element("title", node.about), shape, label)


def _edge(source: _Box, target: _Box) -> Markup:
    """From the lower edge of one to the upper edge of the other."""
    x, y = source.x + source.width // 2, source.y + source.height
    to_x, to_y = target.x + target.width // 2, target.y
    bend = max(12, abs(to_y - HEAD - y) // 2)
    curve = f"M{x} {y}C{x} {y + bend} {to_x} {to_y - HEAD - bend} {to_x} {to_y - HEAD}"
    head = f"M{to_x} {to_y}l{-HEAD} {-2 * HEAD}h{2 * HEAD}z"
    return joined(element("path", d=curve, class_="edge"), element("path", d=head, class_="head"))
