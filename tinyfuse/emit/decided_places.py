"""Places that conditions decide.

Where data says that an element lies at 1 if a condition holds and else at 0, gcc 12 makes vectors
that load at -1 in place of 1: it takes what its own comparisons of vectors give, all bits set. It
sees a condition through names, conversions, sums, and what a kernel stores and loads again, but not
through `tf_place`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from enum import IntEnum

from tinyfuse.dtypes import BOOL, INT64
from tinyfuse.loops.ir import Buffer, Kernel, Let, Local, Statement, Store, walk_statements
from tinyfuse.loops.rewrite import values_of
from tinyfuse.stage.expr import Cast, Const, Expr, Load, Op, is_select, walk

_COMPARING = ("sign", "heaviside")  # operations that compare, but do not give a bool
# Operations through which C compilers follow an address, and those that may fold to nothing.
_FOLLOWED = (
    *("add", "subtract", "multiply", "negative", "minimum", "maximum"),
    *("wrap_index", "slice_end"),
)


class _Share(IntEnum):
    """What part conditions have in a value."""

    NONE = 0
    TERM = 1  # of a sum
    WHOLE = 2


class DecidedPlaces:
    """What of a kernel conditions decide.

    hidden: names of places that they decide, to be said by `tf_place` once where they are given.
    """

    def __init__(self, kernel: Kernel):
        self.hidden: set[Local] = set()
        self._shares: dict[Expr | Buffer, _Share] = {}
        statements = list(walk_statements(kernel.body))
        places = list(_places(statements))
        if places:
            self._find(statements, {node for place in places for node in walk(place)})

    def is_decided(self, value: Expr) -> bool:
        return self._share(value) > _Share.NONE

    def _find(self, statements: Sequence[Statement], in_places: Container[Expr]) -> None:
        """Note the shares in names and buffers, until nothing changes."""
        before: dict[Expr | Buffer, _Share] | None = None
        while before != self._shares:
            before = dict(self._shares)
            for each in statements:
                if not isinstance(each, (Let, Store)) or not self.is_decided(each.value):
                    continue
                if isinstance(each, Let) and each.local in in_places and each.local.dtype == INT64:
                    self.hidden.add(each.local)
                    continue
                target = each.local if isinstance(each, Let) else each.buffer
                known = self._shares.get(target, _Share.NONE)
                self._shares[target] = max(known, self._share(each.value))

    def _share(self, value: Expr) -> _Share:
        shares: dict[Expr, _Share] = {}
        for node in walk(value):
            shares[node] = self._share_in(node, shares)
        return shares[value]

    def _share_in(self, node: Expr, shares: dict[Expr, _Share]) -> _Share:
        if isinstance(node, (Load, Local, Const)):
            target = node.source if isinstance(node, Load) else node
            return self._shares.get(target, _Share.NONE)
        if node.dtype == BOOL or (isinstance(node, Op) and node.name in _COMPARING):
            return _Share.WHOLE
        select = is_select(node)
        if select and _is_zero_or_one(*node.parts[1:]):
            return _Share.WHOLE
        parts = node.parts[1:] if select else node.parts
        found = [shares[part] for part in parts if not isinstance(part, Const)]
        least, most = min(found, default=_Share.NONE), max(found, default=_Share.NONE)
        if least == _Share.WHOLE or isinstance(node, Cast):
            return most
        followed = select or (isinstance(node, Op) and node.name in _FOLLOWED)
        return min(most, _Share.TERM) if followed else _Share.NONE


def _is_zero_or_one(chosen: Expr, other: Expr) -> bool:
    """Whether what is chosen is a condition, converted, but for a sign and a constant added."""
    if not isinstance(chosen, Const) or not isinstance(other, Const):
        return False
    return bool(abs(float(chosen.value) - float(other.value)) == 1)


def _places(statements: Sequence[Statement]) -> Iterator[Expr]:
    """What data adds to the places of loads."""
    for statement in statements:
        for value in values_of(statement):
            for node in walk(value):
                if isinstance(node, Load):
                    yield from node.data
