"""What is the same in every step of an innermost loop: the C compiler computes it once."""

from __future__ import annotations

from tinyfuse.loops.ir import Buffer, For, Local, walk_statements, written_by
from tinyfuse.stage.expr import Expr, Load, depends_on


class Varying:
    """The expressions of an innermost loop that differ between its steps."""

    def __init__(self, loop: For) -> None:
        self.variable = loop.variable
        self.written: set[Buffer] = {
            buffer for inner in walk_statements(loop.body) for buffer in written_by(inner)
        }
        self.found: set[Expr] = set()

    def look_at(self, node: Expr) -> bool:
        """Whether a node differs. Its parts, and what it names, have been looked at before."""
        differs = (
            node in self.found
            or not self.found.isdisjoint(node.parts)
            or depends_on(node, self.variable)
            or (isinstance(node, Load) and node.source in self.written)
        )
        if differs:
            self.found.add(node)
        return differs

    def name(self, local: Local, value: Expr) -> None:
        """A scalar of this value is named within the loop."""
        if value in self.found:
            self.found.add(local)


def varying_in(loop: For) -> Varying | None:
    """None for a loop around others."""
    return None if any(isinstance(inner, For) for inner in loop.body) else Varying(loop)
