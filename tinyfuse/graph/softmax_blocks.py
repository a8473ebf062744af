"""What a softmax_contract computes, block by block; `online_softmax` defines it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyfuse.graph.index_limits import Form
from tinyfuse.graph.ir import Eqn
from tinyfuse.graph.labels import aligned

if TYPE_CHECKING:
    from tinyfuse.graph.numerics import OrderedNumerics

Array = Any  # np.ndarray, or np.generic where numpy gives a scalar

# Keys, and rows, that a limit may exclude at once from sums of values.
GROUP = 8


def key_axis(eqn: Eqn) -> int:
    """The axis of the scores that a softmax_contract goes along."""
    lhs, out = eqn.params["lhs"], eqn.params["out"]
    return next(axis for axis, label in enumerate(lhs) if label not in out)


def forms(eqn: Eqn) -> list[Form]:
    """The limits of a softmax_contract: for each axis of the scores a factor, then a constant."""
    limits, length = eqn.params["limits"], len(eqn.params["lhs"]) + 1
    return [limits[at : at + length] for at in range(0, len(limits), length)]


def forms_of_blocks(eqn: Eqn) -> list[Form]:
    """The same in terms of blocks of keys: of the key in each for which it is largest."""
    return [_of_runs(form, key_axis(eqn), eqn.params["block"]) for form in forms(eqn)]


def forms_of_groups(eqn: Eqn) -> list[Form]:
    """The same in terms of groups of keys: at least 0 for all rows of a group alike, where they are
    for any of these. None where groups do not fill blocks, or rows are told apart otherwise."""
    axis, found = key_axis(eqn), []
    for form in forms(eqn) if eqn.params["block"] % GROUP == 0 else ():
        *factors, constant = _of_runs(form, axis, GROUP)
        apart = [factor for factor in factors if factor % GROUP]
        if apart in ([1], [-1]):
            largest = GROUP - 1 if apart == [1] else 0  # the row of each group for which it is
            constant = (constant + largest) // GROUP * GROUP + GROUP - 1 - largest
        if apart in ([], [1], [-1]):
            found.append((*factors, constant))
    return found


def _of_runs(form: Form, axis: int, size: int) -> Form:
    """A form in terms of runs of so many keys: of the key in each for which it is largest."""
    last = max(form[axis], 0) * (size - 1)
    scaled = [n * size if at == axis else n for at, n in enumerate(form[:-1])]
    return (*scaled, form[-1] + last)


def _hold(found: Sequence[Form], shape: Sequence[int]) -> Array:
    """Where all forms are at least 0, for all values of axes."""
    places = np.ogrid[tuple([slice(extent) for extent in shape])]
    sums = [
        sum([factor * place for factor, place in zip(form, places, strict=False)], form[-1])
        for form in found
    ]
    return np.all(np.broadcast_arrays(True, *[each >= 0 for each in sums]), axis=0)


def within_limits(eqn: Eqn, shape: Sequence[int]) -> Array:
    """Which scores of this shape no limit excludes."""
    return _hold(forms(eqn), shape)


def live_blocks(eqn: Eqn, shape: Sequence[int]) -> Array:
    """For which rows and blocks no limit excludes all keys."""
    return _hold(forms_of_blocks(eqn), _in_runs(eqn, shape, eqn.params["block"]))


def live_groups(eqn: Eqn, shape: Sequence[int]) -> Array:
    """For which rows and groups of keys no limit excludes all these keys for all rows of a
    group."""
    return _hold(forms_of_groups(eqn), _in_runs(eqn, shape, GROUP))


def _in_runs(eqn: Eqn, shape: Sequence[int], size: int) -> list[int]:
    """A shape of scores with runs of so many keys in place of keys."""
    axis = key_axis(eqn)
    return [-(-n // size) if at == axis else n for at, n in enumerate(shape)]


class OnlineSoftmax:
    """An online softmax, as `online_softmax` defines it: the keys in front, block by block."""

    def __init__(self, numerics: OrderedNumerics, eqn: Eqn, scores: Array, values: Array):
        self.numerics, self.eqn, self.dtype = numerics, eqn, np.dtype(eqn.output.dtype)
        lhs, out = eqn.params["lhs"], eqn.params["out"]
        key = next(label for label in lhs if label not in out)
        scores = np.where(within_limits(eqn, scores.shape), scores, self.dtype.type(-np.inf))
        self.scores = aligned(scores, lhs, [key, *out])
        self.values = aligned(values, eqn.params["rhs"], [key, *out])
        blocks, groups = live_blocks(eqn, scores.shape), live_groups(eqn, scores.shape)
        self.live, self.live_groups = [
            aligned(np.broadcast_to(live, _in_runs(eqn, scores.shape, size)), lhs, [key, *out])
            for live, size in ((blocks, eqn.params["block"]), (groups, GROUP))
        ]

    def result(self) -> Array:
        infinity, zero = self.dtype.type(-np.inf), self.dtype.type(0)
        rows, block = self.scores.shape[1:], self.eqn.params["block"]
        largest, total = np.full(rows, infinity), np.full(rows, zero)
        weighted = np.full(self.eqn.output.shape, zero)
        for number, start in enumerate(range(0, len(self.scores), block)):
            scores = self.scores[start : start + block]
            top = functools.reduce(self._larger, [largest, *scores])
            base = np.where(top == infinity, zero, top)
            weights = self._exp(scores, base)
            scale = self._exp(largest, base)
            sums, sums_of_values = np.full(rows, zero), np.full_like(weighted, zero)
            keys = zip(weights, self.values[start:], strict=False)
            for at, (weight, values) in enumerate(keys, start):
                sums = self._op("add", sums, weight)
                more = self.numerics.fma(weight, values, sums_of_values)
                sums_of_values = np.where(self.live_groups[at // GROUP], more, sums_of_values)
            live = self.live[number]
            largest = np.where(live, top, largest)
            total = np.where(live, self.numerics.fma(total, scale, sums), total)
            scaled = self.numerics.fma(weighted, scale, sums_of_values)
            weighted = np.where(live, scaled, weighted)
        return self._op("divide", weighted, total)

    def _larger(self, a: Array, b: Array) -> Array:
        return self._op("maximum", a, b)

    def _exp(self, x: Array, base: Array) -> Array:
        return self._op("exp_nonpositive", self._op("subtract", x, base))

    def _op(self, name: str, *operands: Array) -> Array:
        shape = np.broadcast_shapes(*[operand.shape for operand in operands])
        whole = [np.broadcast_to(operand, shape) for operand in operands]
        return self.numerics.scalar(name, whole, self.dtype)
