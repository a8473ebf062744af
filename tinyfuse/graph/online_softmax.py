"""The named rewrite "online softmax": attention without an array of all weights.

A softmax along an axis over which its results are then contracted with others,

    e = exp(scores - max(scores));  e / sum(e) @ values,  or  e @ values / sum(e)

becomes one equation, which goes through the axis (the keys) in blocks and carries the largest score
so far, the sum and the weighted values; these are scaled down where a block has a larger score. (M.
Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.) That is another order
of summation, and so other bits: it is part of the meaning, whatever the schedule.

Per row, from m = -inf, l = +0 and o = +0, for each block with scores s and values v:

    top = max(m, max(s));  base = 0 where top is -inf, else top
    w = exp(s - base);  a = exp(m - base)
    l = fma(l, a, sum of w);  o = fma(o, a, sum of w * v);  m = top

and o / l in the end. The sums are chains of fused multiply-adds, and of additions, from +0 on, keys
ascending. A row all of whose scores are -inf gives NaN, and so do scores of NaN or +inf, as in the
two-pass form. Scores that a mask of positions (`limits`: forms that have to be at least 0) replaces
by -inf, or adds -inf to, count as -inf whatever they were; blocks all of whose keys one of the
forms excludes leave a row's state alone, whatever their values. So do eight keys the sums of w * v
where one of the forms that tells rows apart one by one, or not at all, excludes all of them for all
of eight rows, both counted from the first: tiles of rows go through the keys up to a diagonal.

A mask of large negative numbers, -1e9 say, is no such mask: only data tells whether a row has other
scores, and a weight of 0 makes NaN of an infinite value, so that its blocks are visited.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tinyfuse.dtypes import FLOATING
from tinyfuse.graph import primitives as p
from tinyfuse.graph.index_limits import Form, limits
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.simplify import simplify
from tinyfuse.records import replace

# Keys of a block. Fewer than two blocks are left to the two-pass form.
BLOCK = 64


def online_softmax(graph: Graph) -> Graph:
    """The graph with each softmax that is contracted with values as one equation."""
    found = _Matcher(graph)
    eqns = [found.rewritten(eqn) or eqn for eqn in graph.eqns]
    if all(new is old for new, old in zip(eqns, graph.eqns, strict=True)):
        return graph
    return simplify(Graph(graph.name, graph.inputs, tuple(eqns), graph.outputs))


class _Softmax(NamedTuple):
    """exp(scores - max) along an axis, not yet divided by its sum."""

    scores: Atom
    exponential: Var
    axis: int


class _Matcher:
    def __init__(self, graph: Graph):
        self.producers: Mapping[Atom, Eqn] = {eqn.output: eqn for eqn in graph.eqns}
        self.uses = Counter([atom for eqn in graph.eqns for atom in eqn.inputs])
        self.uses.update(graph.outputs)

    def rewritten(self, eqn: Eqn) -> Eqn | None:
        """The equation that computes the same, where this is the last one of an attention."""
        if eqn.primitive is p.contract:
            return self._of_weights(eqn)
        return self._divided(eqn) if _is(eqn, "divide") else None

    def _of_weights(self, eqn: Eqn) -> Eqn | None:
        """`contract(e / sum, values)`"""
        for side in (0, 1):
            weights = self.producers.get(eqn.inputs[side])
            if weights is None or not _is(weights, "divide") or self.uses[weights.output] != 1:
                continue
            axis = _summed_axis(eqn, side)
            found = None if axis is None else self._softmax(weights.inputs[0], axis)
            if found and self._is_sum(weights.inputs[1], found, found.exponential.shape):
                return self._made(eqn, side, found, eqn)
        return None

    def _divided(self, eqn: Eqn) -> Eqn | None:
        """`contract(e, values) / sum`"""
        product = self.producers.get(eqn.inputs[0])
        if product is None or product.primitive is not p.contract:
            return None
        if self.uses[product.output] != 1:
            return None
        for side in (0, 1):
            axis = _summed_axis(product, side)
            found = None if axis is None else self._softmax(product.inputs[side], axis)
            labels, out = _labels(product)[side], product.params["out"]
            if found is None or [a for a in labels if a in out] != [a for a in out if a in labels]:
                continue
            shape = [n if a in labels else 1 for a, n in zip(out, eqn.output.shape, strict=True)]
            if self._is_sum(eqn.inputs[1], found, shape):
                return self._made(product, side, found, eqn)
        return None

    def _softmax(self, atom: Atom, axis: int) -> _Softmax | None:
        eqn = self.producers.get(atom)
        if eqn is None or not _is(eqn, "exp_nonpositive") or self.uses[atom] != 2:
            return None
        less = self.producers.get(eqn.inputs[0])
        if less is None or not _is(less, "subtract") or less.output.dtype not in FLOATING:
            return None
        scores = less.inputs[0]
        largest = self._reduced(less.inputs[1], "max", axis, scores.shape)
        return _Softmax(scores, eqn.output, axis) if largest is scores else None

    def _is_sum(self, atom: Atom, of: _Softmax, shape: Sequence[int]) -> bool:
        """Whether an atom is the sums along the axis, as of an array whose shape is `shape` but for
        that axis."""
        return self._reduced(atom, "sum", of.axis, shape) is of.exponential

    def _reduced(self, atom: Atom, op: str, axis: int, shape: Sequence[int]) -> Atom | None:
        """What is reduced along an axis alone to give an atom, which may be a view that puts each
        result where its row is in an array of this shape."""
        view = self._seen(atom, p.broadcast)
        wanted = list(shape)
        eqn = self.producers.get(self._seen(view, p.reshape))
        if eqn is None or eqn.primitive is not p.reduce or eqn.params["op"] != op:
            return None
        operand = eqn.inputs[0]
        if eqn.params["axes"] != (axis,) or eqn.output.dtype != operand.dtype:
            return None
        if len(wanted) == len(operand.shape) and wanted == list(operand.shape):
            wanted[axis] = 1
        alone = not view.shape and math.prod(wanted) == 1
        return operand if alone or list(view.shape) == wanted else None

    def _seen(self, atom: Atom, primitive: Primitive) -> Atom:
        """What an atom is such a view of, or itself."""
        eqn = self.producers.get(atom)
        return eqn.inputs[0] if eqn is not None and eqn.primitive is primitive else atom

    # --- the equation -----------------------------------------------------------------------------

    def _made(self, product: Eqn, side: int, found: _Softmax, last: Eqn) -> Eqn | None:
        if found.scores.shape[found.axis] <= BLOCK or not self._is_of_products(found.scores):
            return None
        scores, forms = self._unmasked(found.scores, len(found.scores.shape))
        labels = _labels(product)
        params = {
            "lhs": labels[side],
            "rhs": labels[1 - side],
            "out": product.params["out"],
            "block": BLOCK,
            "limits": tuple([number for form in forms for number in form]),
        }
        inputs = (scores, product.inputs[1 - side])
        return replace(last, primitive=p.softmax_contract, inputs=inputs, params=params)

    def _is_of_products(self, scores: Atom) -> bool:
        """Whether a contraction made the scores, but for elementwise operations after it: what is
        in memory anyway is read as it is."""
        pending, seen = [scores], {scores}
        while pending:
            eqn = self.producers.get(pending.pop())
            if eqn is not None and eqn.primitive is p.contract:
                return True
            if eqn is not None and eqn.primitive in (p.elementwise, p.cast):
                pending += [a for a in eqn.inputs if a not in seen and a.shape == scores.shape]
                seen.update(eqn.inputs)
        return False

    def _unmasked(self, scores: Atom, rank: int) -> tuple[Atom, tuple[Form, ...]]:
        """Scores before masks of positions took some out, and the forms of these."""
        forms: tuple[Form, ...] = ()
        while (eqn := self.producers.get(scores)) is not None:
            found = self._selected(eqn, rank) or self._added(eqn, rank)
            if found is None:
                break
            scores, more = found
            forms = (*forms, *more)
        return scores, forms

    def _selected(self, eqn: Eqn, rank: int) -> tuple[Atom, tuple[Form, ...]] | None:
        """`where(mask, scores, -inf)`"""
        if not _is(eqn, "select") or not _is_minus_infinity(eqn.inputs[2]):
            return None
        found = limits(self.producers.get, eqn.inputs[0], rank)
        return (eqn.inputs[1], found) if found is not None else None

    def _added(self, eqn: Eqn, rank: int) -> tuple[Atom, tuple[Form, ...]] | None:
        """`scores + where(mask, 0, -inf)`"""
        if not _is(eqn, "add"):
            return None
        for scores, bias in (eqn.inputs, eqn.inputs[::-1]):
            seen = bias
            while (view := self.producers.get(seen)) and view.primitive is p.broadcast:
                seen = view.inputs[0]
            chosen = self.producers.get(seen)
            if chosen is None or not _is(chosen, "select") or len(seen.shape) > rank:
                continue
            zero = isinstance(chosen.inputs[1], Literal) and chosen.inputs[1].value == 0
            if zero and _is_minus_infinity(chosen.inputs[2]) and seen.shape[-1:] != (1,):
                stretched = [n for n in seen.shape if n == 1]
                found = (
                    None
                    if stretched
                    else limits(self.producers.get, chosen.inputs[0], len(seen.shape))
                )
                if found is not None and scores.shape == eqn.output.shape:
                    before = rank - len(seen.shape)
                    return scores, tuple([(*[0] * before, *form) for form in found])
        return None


def _is(eqn: Eqn, op: str) -> bool:
    return eqn.primitive is p.elementwise and eqn.params["op"] == op


def _is_minus_infinity(atom: Atom) -> bool:
    return isinstance(atom, Literal) and bool(atom.value == -np.inf)


def _labels(eqn: Eqn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return eqn.params["lhs"], eqn.params["rhs"]


def _summed_axis(eqn: Eqn, side: int) -> int | None:
    """The axis of an operand that a contraction sums over, if that is one alone."""
    labels = _labels(eqn)[side]
    summed = [axis for axis, label in enumerate(labels) if label not in eqn.params["out"]]
    return summed[0] if len(summed) == 1 else None
