"""The drawing of a program as SVG: each kernel a box around the stages that it computes."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.compilation import Lowered
from tinyfuse.inspect.arrangement import MARGIN, TITLE, arranged, short
from tinyfuse.inspect.diagram import Diagram, Node, diagram_of
from tinyfuse.inspect.layout import Box
from tinyfuse.inspect.page import Markup, element, joined
from tinyfuse.inspect.writing import plural

MOST_NODES = 200  # that are drawn
HEAD = 4  # of an arrow, half as wide
BASELINE = 16  # of a letter below the upper edge of its box


def drawing(lowered: Lowered) -> Markup:
    """The program drawn; of a large one a sentence that says so, and a list."""
    diagram = diagram_of(lowered)
    count = len(diagram.nodes)
    if count > MOST_NODES:
        words = f"Not drawn: {plural(count, 'stage')} are more than the {MOST_NODES} that are."
        return joined(element("p", words), _listed(diagram))
    return element("div", _svg(diagram), class_="drawing")


def _listed(diagram: Diagram) -> Markup:
    """In place of a drawing: what each kernel reads of the others."""
    read: dict[int, dict[str, None]] = {group: {} for group in range(1, len(diagram.groups))}
    for source, target in diagram.edges:
        one, other = diagram.nodes[source], diagram.nodes[target]
        if one.group != other.group:
            read[other.group][one.name] = None
    lines = [
        f"{diagram.groups[group]} reads {', '.join(names) or 'nothing'}"
        for group, names in read.items()
    ]
    return element("ul", *[element("li", line) for line in lines])


def _svg(diagram: Diagram) -> Markup:
    found = arranged(diagram)
    named = zip(diagram.groups, found.groups, strict=True)
    width, height = found.width + 2 * MARGIN, found.height + 2 * MARGIN
    return element(
        "svg",
        *[_group(name, box) for name, box in named if name],
        *map(_line, found.lines),
        *map(_node, diagram.nodes, found.nodes),
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"{-MARGIN} {-MARGIN} {width} {height}",
        role="img",
    )


def _group(name: str, box: Box) -> Markup:
    label = element("text", short(name), x=box.x + MARGIN // 2, y=box.y + TITLE - MARGIN // 2)
    return element("g", element("title", name), _rectangle(box, "kernel", 6), label)


def _node(node: Node, box: Box) -> Markup:
    label = element(
        "text", short(node.name), x=box.middle, y=box.y + BASELINE, text_anchor="middle"
    )
    shape = _rectangle(box, f"node {node.kind}", 12 if node.kind == "input" else 3)
    return element("g", element("title", node.about), shape, label)


def _rectangle(box: Box, kind: str, radius: int) -> Markup:
    return element(
        "rect", x=box.x, y=box.y, width=box.width, height=box.height, rx=radius, class_=kind
    )


def _line(boxes: Sequence[Box]) -> Markup:
    """From the lower edge of the first, straight down through the cells, to the last, an arrow."""
    x, y = boxes[0].middle, boxes[0].bottom
    steps = [f"M{x} {y}"]
    for box in boxes[1:]:
        end = box.y if box is not boxes[-1] else box.y - HEAD
        bend = max(HEAD, (end - y) // 2)
        steps.append(f"C{x} {y + bend} {box.middle} {end - bend} {box.middle} {end}")
        x, y = box.middle, box.bottom
        steps += [f"V{y}"] if box is not boxes[-1] else []
    x, y = boxes[-1].middle, boxes[-1].y
    head = f"M{x} {y}l{-HEAD} {-2 * HEAD}h{2 * HEAD}z"
    path = "".join(steps)
    return joined(element("path", d=path, class_="edge"), element("path", d=head, class_="head"))
