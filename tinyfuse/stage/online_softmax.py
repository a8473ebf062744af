"""An online softmax as stages: what is carried from block to block, and what each block adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyfuse.dtypes import BOOL
from tinyfuse.graph.index_limits import Form
from tinyfuse.graph.ir import Eqn
from tinyfuse.graph.ranks import UNSIGNED, rank
from tinyfuse.graph.softmax_blocks import (
    GROUP,
    forms,
    forms_of_blocks,
    forms_of_groups,
    key_axis,
)
from tinyfuse.stage.expr import Accumulator, Const, Expr, IndexTest, Load, Op, select
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Stage
from tinyfuse.stage.views import ZERO, axis_indices

if TYPE_CHECKING:
    from tinyfuse.stage.build import Builder

# The index along the axis of each label.
Position = Mapping[int, Affine]


def softmax_contract(builder: Builder, eqn: Eqn) -> None:
    """The stage rule of `primitives.softmax_contract`.

    Arrays of blocks have an axis of blocks in front of those of rows; that of the largest score
    before each block is a scan along it, the sums of weights, and of weighted values, are
    reductions.
    """
    _OnlineSoftmax(builder, eqn).define()


class _OnlineSoftmax:
    def __init__(self, builder: Builder, eqn: Eqn):
        self.builder, self.eqn = builder, eqn
        self.dtype, self.name = eqn.output.dtype, builder.called[eqn.output].text
        scores, _ = eqn.inputs
        self.lhs, self.rhs, self.out = [eqn.params[key] for key in ("lhs", "rhs", "out")]
        self.key = self.lhs[key_axis(eqn)]
        self.rows = tuple([label for label in self.out if label in self.lhs])
        self.extents = dict(zip(self.lhs, scores.shape, strict=True))
        self.extents.update(zip(self.rhs, eqn.inputs[1].shape, strict=True))
        self.block = eqn.params["block"]
        self.blocks = -(-self.extents[self.key] // self.block)

    def define(self) -> None:
        rows, out = self.rows, self.out
        tops = self._block_tops()
        before = self._before(tops)
        base = self._per_block("base", rows, lambda b, at: self._base(before, tops, b, at))
        scale = self._per_block("scale", rows, lambda b, at: self._scale(before, base, b, at))
        weights = self._weights(base)
        sums = self._chain("sums", rows, self.block, lambda at, *w: self._plus(Load(weights, w)))
        group = GROUP if forms_of_groups(self.eqn) else self.block
        products = self._chain(
            "products", out, group, lambda at, *w: self._weighted(weights, at, w)
        )
        total = self._carried("total", rows, scale, sums)
        weighted = self._carried("weighted", out, scale, products)
        axes = self._axes(out)
        at = dict(zip(out, axis_indices(axes), strict=True))
        loads = (self._load(weighted, out, at), self._load(total, rows, at))
        self.builder.define(self.eqn.output, axes, Op("divide", loads, self.dtype))

    # --- axes and elements ------------------------------------------------------------------------

    def _axes(self, labels: Sequence[int]) -> tuple[Axis, ...]:
        return self.builder.axes(tuple([self.extents[label] for label in labels]))

    def _special(self, letter: str, word: str, axes: Sequence[Axis], extent: int) -> Axis:
        names = [axis.name for axis in axes]
        return Axis(self.builder.axis_names.special(letter, word, names), extent)

    def _block_axis(self, axes: Sequence[Axis]) -> Axis:
        return self._special("b", "block", axes, self.blocks)

    def _key_axis(self, axes: Sequence[Axis]) -> Axis:
        return self._special("e", "element", axes, self.block)

    def _group_axes(self, axes: Sequence[Axis], group: int) -> tuple[tuple[Axis, ...], Axis]:
        """Those of the groups in a block, if there are several, and of the keys in each."""
        if group == self.block:
            return (), self._key_axis(axes)
        groups = self._special("g", "group", axes, self.block // group)
        return (groups,), self._special("e", "element", (*axes, groups), group)

    def _load(self, stage: Stage, labels: Sequence[int], at: Position) -> Load:
        return Load(stage, tuple([at[label] for label in labels]))

    def _of_block(self, stage: Stage, b: Affine, at: Position) -> Load:
        """The element of an array of blocks for a row."""
        return Load(stage, (b, *[at[label] for label in self.rows]))

    def _score(self, at: Position, key: Affine) -> Expr:
        """A score, or -inf where a limit excludes its key."""
        indices = tuple([key if label == self.key else at[label] for label in self.lhs])
        score = self.builder.element(self.eqn.inputs[0], indices)
        return self._where(forms(self.eqn), indices, score, Const(self.dtype.type(-np.inf)))

    def _where(
        self, limits: Sequence[tuple[int, ...]], indices: Sequence[Affine], value: Expr, other: Expr
    ) -> Expr:
        """A value where all limits are at least 0."""
        tests: list[Expr] = [IndexTest(_value(form, indices), 0, None) for form in limits]
        if not tests:
            return value
        return select(fold(lambda a, b: Op("logical_and", (a, b), BOOL), tests), value, other)

    def _where_live(
        self, limits: Sequence[Form], run: Affine, at: Position, value: Expr, other: Expr
    ) -> Expr:
        """A value for runs of keys that have one that counts. limits: in terms of these runs."""
        indices = tuple([run if label == self.key else at[label] for label in self.lhs])
        return self._where(limits, indices, value, other)

    def _inside(self, key: Affine) -> IndexTest:
        return IndexTest(key, None, self.extents[self.key])

    # --- stages -----------------------------------------------------------------------------------

    def _add(self, suffix: str, axes: tuple[Axis, ...], body: Expr, **rest: Any) -> Stage:
        name = self.builder.names.fresh(f"{self.name}_{suffix}")
        return self.builder.add(name, axes, body, **rest)

    def _per_block(self, suffix: str, labels: Sequence[int], body: Any) -> Stage:
        """body(block, position): an element for each block and each of some labels."""
        axes = self._axes(labels)
        b = self._block_axis(axes)
        (number,) = axis_indices((b,))
        at = dict(zip(labels, axis_indices(axes), strict=True))
        return self._add(suffix, (b, *axes), body(number, at))

    def _block_tops(self) -> Stage:
        """The rank of the largest score of each block."""
        axes = self._axes(self.rows)
        b = self._block_axis(axes)
        e = self._key_axis((*axes, b))
        at = dict(zip(self.rows, axis_indices(axes), strict=True))
        key, bits = b * self.block + e, UNSIGNED[self.dtype]
        ranked = Op("rank_nan_last", (self._score(at, key),), bits)
        body: Expr = Op("maximum", (Accumulator(bits), ranked), bits)
        body = select(self._inside(key), body, Accumulator(bits))
        return self._add("tops", (b, *axes), body, reduce_axes=(e,), init=bits.type(0))

    def _before(self, tops: Stage) -> Stage:
        """The rank of the largest score before each block."""
        axes = self._axes(self.rows)
        b = self._block_axis(axes)
        at = dict(zip(self.rows, axis_indices(axes), strict=True))
        bits = UNSIGNED[self.dtype]
        so_far = Accumulator(bits)
        larger = Op("maximum", (so_far, self._of_block(tops, b - 1, at)), bits)
        body = self._where_live(forms_of_blocks(self.eqn), b - 1, at, larger, so_far)
        lowest = Const(rank(self.dtype.type(-np.inf), "last"))
        body = select(IndexTest(affine(b), None, 1), lowest, body)
        return self._add("before", (b, *axes), body, scan=b)

    def _base(self, before: Stage, tops: Stage, b: Affine, at: Position) -> Expr:
        """What the exponents of a block are less than: the largest score so far, or 0."""
        loads = (self._of_block(before, b, at), self._of_block(tops, b, at))
        top = self._of_rank(Op("maximum", loads, UNSIGNED[self.dtype]))
        lowest = Op("equal", (top, Const(self.dtype.type(-np.inf))), BOOL)
        return Op("select", (lowest, Const(self.dtype.type(0)), top), self.dtype)

    def _of_rank(self, ranked: Expr) -> Expr:
        return Op("of_rank_nan_last", (ranked,), self.dtype)

    def _scale(self, before: Stage, base: Stage, b: Affine, at: Position) -> Expr:
        """What the sums before a block count in it."""
        largest = self._of_rank(self._of_block(before, b, at))
        return self._exp(largest, self._of_block(base, b, at))

    def _exp(self, x: Expr, base: Expr) -> Expr:
        return Op("exp_nonpositive", (Op("subtract", (x, base), self.dtype),), self.dtype)

    def _weights(self, base: Stage) -> Stage:
        axes = self._axes(self.rows)
        b = self._block_axis(axes)
        e = self._key_axis((*axes, b))
        at = dict(zip(self.rows, axis_indices(axes), strict=True))
        key = b * self.block + e
        (number,) = axis_indices((b,))
        weight = self._exp(self._score(at, key), self._of_block(base, number, at))
        body = select(self._inside(key), weight, Const(self.dtype.type(0)))
        return self._add("weights", (b, e, *axes), body)

    def _chain(self, suffix: str, labels: Sequence[int], group: int, link: Any) -> Stage:
        """A sum over the keys of each block: link(position, indices of the weight) is the value so
        far with the next key. Of several groups in a block those that count alone take part."""
        axes = self._axes(labels)
        b = self._block_axis(axes)
        groups, e = self._group_axes((*axes, b), group)
        at = dict(zip(labels, axis_indices(axes), strict=True))
        element = sum([g * group for g in groups], affine(e))
        at[self.key] = b * self.block + element
        (number,) = axis_indices((b,))
        so_far = Accumulator(self.dtype)
        body = link(at, number, element, *[at[label] for label in self.rows])
        body = select(self._inside(at[self.key]), body, so_far)
        for g in groups:
            body = self._where_live(
                forms_of_groups(self.eqn), b * (self.block // group) + g, at, body, so_far
            )
        start = self.dtype.type(0)
        return self._add(suffix, (b, *axes), body, reduce_axes=(*groups, e), init=start)

    def _plus(self, weight: Load) -> Expr:
        return Op("add", (Accumulator(self.dtype), weight), self.dtype)

    def _weighted(self, weights: Stage, at: Position, indices: tuple[Affine, ...]) -> Expr:
        element = tuple([at[label] for label in self.rhs])
        value = self.builder.element(self.eqn.inputs[1], element)
        return Op("fma", (Load(weights, indices), value, Accumulator(self.dtype)), self.dtype)

    def _carried(self, suffix: str, labels: Sequence[int], scale: Stage, sums: Stage) -> Stage:
        """The sum over all blocks, scaled down to the largest score so far in each."""
        axes = self._axes(labels)
        b = self._block_axis(axes)
        at = dict(zip(labels, axis_indices(axes), strict=True))
        so_far = Accumulator(self.dtype)
        (number,) = axis_indices((b,))
        added = Load(sums, (number, *[at[label] for label in labels]))
        scaled = Op("fma", (so_far, self._of_block(scale, number, at), added), self.dtype)
        body = self._where_live(forms_of_blocks(self.eqn), number, at, scaled, so_far)
        return self._add(suffix, axes, body, reduce_axes=(b,), init=self.dtype.type(0))


def _value(form: tuple[int, ...], indices: Sequence[Affine]) -> Affine:
    terms = [index * factor for index, factor in zip(indices, form, strict=False)]
    return fold(lambda a, b: a + b, terms, ZERO) + form[-1]
