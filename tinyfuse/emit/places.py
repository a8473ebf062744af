"""Places that conditions decide.

Where data says that an element lies at 1 if a condition holds and else at 0, gcc 12 makes vectors
that load at -1 in place of 1: it takes what its own comparisons of vectors give, all bits set. It
sees a condition through names, conversions and what a kernel stores and loads again, but not
through `tf_place`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.loops.ir import Buffer, Kernel, Let, Local, Statement, Store, walk_statements
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Const, Expr, Index, Load, Op, walk

_COMPARING = ("sign", "heaviside")  # operations that compare, but do not give a bool


class Places:
    """What of a kernel conditions decide.

    hidden: names of places that they decide, to be said by `tf_place` once where they are given.
    """

    def __init__(self, kernel: Kernel):
        self.hidden: set[Local] = set()
        self._decided: set[Expr | Buffer] = set()
        statements = list(walk_statements(kernel.body))
        places = list(_places(statements))
        if places:
            self._find(statements, {node for place in places for node in walk(place)})

    def is_decided(self, value: Expr) -> bool:
        """Whether a condition may be all that an expression depends on."""
        decided: set[Expr] = set()
        for node in walk(value):
            if self._comes_of(node, decided):
                decided.add(node)
        return value in decided

    def _find(self, statements: Sequence[Statement], in_places: Container[Expr]) -> None:
        """Note names and buffers of what is decided, until there are no more."""
        before = -1
        while before < len(self._decided):
            before = len(self._decided)
            for each in statements:
                if not isinstance(each, (Let, Store)) or not self.is_decided(each.value):
                    continue
                if isinstance(each, Store):
                    self._decided.add(each.buffer)
                elif each.local in in_places and each.local.dtype == INT64:
                    self.hidden.add(each.local)
                else:
                    self._decided.add(each.local)

    def _comes_of(self, node: Expr, decided: Container[Expr]) -> bool:
        if isinstance(node, Load):
            return node.source in self._decided
        if isinstance(node, (Local, Const)):
            return node in self._decided
        if isinstance(node, Op) and node.name == "select":
            branches = node.operands[1:]
            constant = all(isinstance(branch, (Const, Index)) for branch in branches)
            return constant or any(branch in decided for branch in branches)
        compares = node.dtype == BOOL or (isinstance(node, Op) and node.name in _COMPARING)
        return compares or any(part in decided for part in node.parts)


def _places(statements: Sequence[Statement]) -> Iterator[Expr]:
    """What data adds to the places of loads."""
    for statement in statements:
        for value in values_of(statement):
            for node in walk(value):
                if isinstance(node, Load):
                    yield from node.data
