"""Sums of which gcc 12 gets the sign of a zero wrong.

gcc 12 makes -x of 0.0 - x and of -x + 0.0 where it sees that x is never -0: a converted integer, an
absolute value. But 0.0 - 0.0 is +0. It sees this only within one expression of C, hence not across
a call: see `tf_add` and `tf_subtract` in the prelude.
"""

from __future__ import annotations

from tinyfuse.loops.ir import Local
from tinyfuse.stage.expr import Cast, Const, Expr, Op

_SUMS = ("add", "subtract")
# The constants with which these keep the zeros of their other operand.
_KEEPING = {**dict.fromkeys(("multiply", "divide"), (1, -1)), **dict.fromkeys(_SUMS, (0,))}


class Zeros:
    """What is known of the nodes of an expression, each noted after its parts."""

    def __init__(self) -> None:
        self._constant: set[Expr] = set()
        self._positive: set[Expr] = set()  # what is seen to be no -0
        self._changed: set[Expr] = set()  # what is seen to be made of that, perhaps its opposite

    def note(self, node: Expr) -> None:
        if _folds(node) or (node.parts and self._constant.issuperset(node.parts)):
            self._constant.add(node)
        if _is_positive(node):
            self._positive.add(node)
        elif isinstance(node, Op) and _keeps_zeros(node) and any(map(self._is_known, node.parts)):
            self._changed.add(node)

    def meet_in(self, node: Op) -> bool:
        """Whether the node is a sum of what may be the constant 0 and of zeros of known sign."""
        if node.dtype.kind != "f" or node.name not in _SUMS:
            return False
        first, second = node.operands
        if node.name == "subtract" and self._may_be_zero(first) and self._is_known(second):
            return True
        return any(
            self._may_be_zero(one) and other in self._changed
            for one, other in ((first, second), (second, first))
        )

    def _is_known(self, node: Expr) -> bool:
        return node in self._positive or node in self._changed

    def _may_be_zero(self, node: Expr) -> bool:
        return node.value == 0 if isinstance(node, Const) else node in self._constant


def _is_positive(node: Expr) -> bool:
    if isinstance(node, Cast):
        return node.operand.dtype.kind != "f"
    return isinstance(node, Op) and node.name in ("absolute", "fabs")


def _folds(node: Expr) -> bool:
    """Whether a constant may come of the node even if not all of its parts are constant.

    As of x & 0, and of what is chosen by x == x. Compilers see through the names of constants.
    """
    if isinstance(node, Cast):
        return isinstance(node.operand, Op) and node.operand.dtype.kind != "f"
    return isinstance(node, (Const, Local)) or (isinstance(node, Op) and node.name == "select")


def _keeps_zeros(node: Op) -> bool:
    """Whether the zeros of an operand are zeros of the result, their signs changed at most."""
    if node.name in ("negative", "select", "positive", "conjugate"):
        return True
    constants = _KEEPING.get(node.name, ())
    return any(isinstance(part, Const) and part.value in constants for part in node.parts)
