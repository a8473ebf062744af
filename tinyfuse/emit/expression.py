"""Scalar expressions as C."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tinyfuse.emit.alternating import added_constant
from tinyfuse.emit.casts import cast_text
from tinyfuse.emit.ctext import CText, Precedence, call, const_text, enclosed
from tinyfuse.emit.decided_places import DecidedPlaces
from tinyfuse.emit.jumps import SELDOM, checked_index
from tinyfuse.emit.scalar import op_text
from tinyfuse.emit.zeros import Zeros
from tinyfuse.loops.ir import Buffer, Local, Scope
from tinyfuse.stage.expr import (
    Cast,
    Const,
    Expr,
    Index,
    IndexTest,
    Load,
    Op,
    is_guard,
    is_select,
    walk,
)
from tinyfuse.stage.index import Affine, Axis, affine, index_text


class InLoop(NamedTuple):
    """What is to be known of the loop that is being written.

    written_out: whether gcc makes several of its steps one. reduces: whether it combines all its
    steps, of which gcc makes vectors only without jumps. lane: its variable, if it goes by vectors.
    chained: see `jumps.is_chain`.
    """

    written_out: bool = False
    reduces: bool = False
    lane: Axis | None = None
    chained: bool = False


class Expressions:
    """Writes expressions; `used` collects what they need of the prelude.

    fused: whether the program has fused multiply-adds, whose negation gcc gets wrong, as it does
    that of signed integers. chained: whether the kernel adds up floating-point values, where it
    gets loads behind several conditions wrong, as it does in loops that are written out. places: of
    the kernel, if there is one. subtracted: see `alternating.subtracted_products`.
    """

    def __init__(
        self,
        local_names: Mapping[Local, str],
        used: dict[str, None],
        fused: bool,
        chained: bool,
        places: DecidedPlaces | None = None,
        subtracted: Container[Expr] = (),
    ):
        self.local_names, self.used, self.places = local_names, used, places
        self.exact_negatives = "if" if fused else "i"
        self.chained, self.subtracted = chained, subtracted
        self.inside = InLoop()

    def named(self, local: Local, value: Expr) -> str:
        """The value that a local has."""
        text = self.text(value)
        hidden = self.places is not None and local in self.places.hidden
        return (self._place(text) if hidden else text).text

    def text(self, root: Expr) -> CText:
        done: dict[Expr, CText] = {}
        zeros = Zeros()
        for node in walk(root):
            zeros.note(node)
            done[node] = self._node(node, done, zeros)
        return done[root]

    def element(self, buffer: Buffer, position: Affine, offset: str = "") -> str:
        """offset: the text of what data adds to the position, fit to stand in a sum."""
        if buffer.scope is Scope.REGISTER:
            return buffer.name
        if not offset:
            return f"{buffer.name}[{index_text(position)}]"
        rest = f" + {index_text(position)}" if position != Affine() else ""
        return f"{buffer.name}[{offset}{rest}]".replace("+ -", "- ")

    def _offset(self, place: Expr, text: CText) -> str:
        if self.places is not None and self.places.is_decided(place):
            text = self._place(text)
        return enclosed(text, Precedence.ADDITIVE)

    def _place(self, text: CText) -> CText:
        self.used["tf_place"] = None
        return call("tf_place", text.text)

    def _mixes_up(self, dtype: np.dtype) -> bool:
        return self.inside.written_out or (self.chained and dtype.kind == "f")

    def _unlike_difference(self, node: Op, operands: Sequence[CText]) -> CText:
        """A difference as a sum, or of a sum: see `alternating`."""
        dtypes, dtype, used = [node.dtype] * 2, node.dtype, self.used
        if added_constant(node) is None:
            negative = op_text("exact_negative", [operands[1]], dtypes[1:], dtype, used)
            return op_text("add", [operands[0], negative], dtypes, dtype, used)
        zero = const_text(dtype.type(0), used)
        terms = [
            text if isinstance(part, Const) else op_text("add", [text, zero], dtypes, dtype, used)
            for part, text in zip(node.operands, operands, strict=True)
        ]
        return op_text(node.name, terms, dtypes, dtype, used)

    def _node(self, node: Expr, done: Mapping[Expr, CText], zeros: Zeros) -> CText:
        if isinstance(node, Op):
            exactly = node in self.subtracted or node.dtype.kind in self.exact_negatives
            negated = _negated(node) if exactly else None
            if negated is not None:
                operand = done[negated]
                return op_text("exact_negative", [operand], [node.dtype], node.dtype, self.used)
            checked = checked_index(node) if self.inside.chained else None
            operation, of = ("is_outside", checked) if checked else (node.name, node.operands)
            operands = [done[operand] for operand in of]
            dtypes = [operand.dtype for operand in of]
            exact = zeros.meet_in(node) or (self._mixes_up(node.dtype) and _loads_by_data(node))
            exact = exact or (self.inside.reduces and _chooses_by_data(node))
            if node in self.subtracted and not exact:
                return self._unlike_difference(node, operands)
            if self.inside.chained:
                operation = SELDOM.get(operation, operation)
            name = f"exact_{node.name}" if exact else operation
            return op_text(name, operands, dtypes, node.dtype, self.used)
        if isinstance(node, Cast):
            return cast_text(done[node.operand], node.operand.dtype, node.dtype, self.used)
        if isinstance(node, Load):
            offsets = [self._offset(part, done[part]) for part in node.data]
            return CText(self.element(node.source, node.indices[0], *offsets))
        if isinstance(node, Const):
            return const_text(node.value, self.used)
        if isinstance(node, Local):
            return CText(self.local_names[node])
        if isinstance(node, Index):
            return index_c(node.index)
        assert isinstance(node, IndexTest)
        lane = self.inside.lane
        return _one_lane(node, lane) or _in_lanes(node, lane) or test_c(node)


# Indices up to which, and sums and differences of a few, 32 bits hold.
MOST_LANES = 1 << 29


def _chooses_by_data(node: Op) -> bool:
    """Whether data decides between two values that are there in any case."""
    return _is_decided_by_data(node) and all(
        isinstance(branch, (Const, Local, Load)) for branch in node.operands[1:]
    )


def _loads_by_data(node: Op) -> bool:
    """Whether data decides if a value is loaded that lies there in any case."""
    return _is_decided_by_data(node) and any(
        isinstance(part, Load) for branch in node.operands[1:] for part in walk(branch)
    )


def _is_decided_by_data(node: Op) -> bool:
    return is_select(node) and not is_guard(node)


def _negated(node: Op) -> Expr | None:
    """What an operation only changes the sign of, as C compilers see it."""
    if node.name == "negative":
        return node.operands[0]
    for position, operand in enumerate(node.operands):
        if isinstance(operand, Const) and _changes_sign(node, position, operand.value):
            return node.operands[1 - position]
    return None


def _changes_sign(node: Op, position: int, value: np.generic) -> bool:
    if node.name == "subtract":  # 0.0 - x is not -x where x is 0
        return position == 0 and value == 0 and (node.dtype.kind == "i" or bool(np.signbit(value)))
    return value == -1 and (node.name, position) in _TIMES_MINUS_ONE


_TIMES_MINUS_ONE = {("multiply", 0), ("multiply", 1), ("divide", 1)}


def index_c(index: Affine) -> CText:
    """An index as a value."""
    text = index_text(index)
    if len(index.terms) + bool(index.constant) > 1:
        return CText(text, Precedence.ADDITIVE)
    if index.terms and (index.terms[0][1] != 1 or not isinstance(index.terms[0][0], Axis)):
        return CText(text, Precedence.MULTIPLICATIVE)
    return CText(
        text, Precedence.PRIMARY if index.terms or index.constant >= 0 else Precedence.UNARY
    )


def test_c(test: IndexTest) -> CText:
    """A condition on an index, with constants on the right side."""
    rest = Affine(test.index.terms)
    left = enclosed(index_c(rest), Precedence.ADDITIVE)
    parts = []
    if test.low is not None:
        parts.append(f"{left} >= {test.low - test.index.constant}")
    if test.high is not None:
        parts.append(f"{left} < {test.high - test.index.constant}")
    precedence = Precedence.LOGICAL_AND if len(parts) > 1 else Precedence.RELATIONAL
    return CText(" && ".join(parts), precedence)


def _in_lanes(test: IndexTest, lane: Axis | None) -> CText | None:
    """A test of the lane of a vector loop against something that is the same for all lanes.

    In 32 bits, so that vectors hold as many lanes of it as of values that it chooses between.
    """
    factor = 0 if lane is None else test.index.coefficient(lane)
    if lane is None or abs(factor) != 1:
        return None
    rest = (test.index - affine(lane) * factor) * -factor  # what the lane is compared with, at 0
    ends = (*rest.interval(), lane.start + lane.extent)
    if not rest.terms or rest.depends_on(lane) or not all(abs(end) < MOST_LANES for end in ends):
        return None
    parts = []
    for bound, symbols in ((test.low, (">=", "<=")), (test.high, ("<", ">"))):
        if bound is not None:
            limit = index_text(rest + bound * factor)
            parts.append(f"(int){lane.name} {symbols[factor < 0]} (int)({limit})")
    precedence = Precedence.LOGICAL_AND if len(parts) > 1 else Precedence.RELATIONAL
    return CText(" && ".join(parts), precedence)


def _one_lane(test: IndexTest, lane: Axis | None) -> CText | None:
    """A test that tells the first or the last of 2^n steps of a vector loop from the others.

    It is written so that this step seems to be in the middle. Else gcc 12 takes it out of the loop,
    as it begins or ends there, and uses no vectors for the others.
    """
    count = lane.extent if lane and not lane.start else 0
    if lane is None or count < 4 or count & (count - 1) or test.index.terms != ((lane, 1),):
        return None
    low = 0 if test.low is None else max(0, test.low - test.index.constant)
    high = count if test.high is None else min(count, test.high - test.index.constant)
    half = count // 2
    middle = {
        (0, 1): f"== {half}",
        (1, count): f"!= {half}",
        (0, count - 1): f"!= {half - 1}",
        (count - 1, count): f"== {half - 1}",
    }.get((low, high))
    if middle is None:
        return None
    return CText(f"({lane.name} + {half}) % {count} {middle}", Precedence.EQUALITY)
