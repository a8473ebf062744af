"""Which equation is the first to make a NaN or an infinity that its operands have not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyfuse.graph import primitives as p
from tinyfuse.graph.interpreter import interpret
from tinyfuse.graph.ir import Atom, Eqn, Graph, Primitive
from tinyfuse.graph.numerics import Array, Numerics
from tinyfuse.records import dataclass


@dataclass(frozen=True, slots=True)
class Made:
    """An equation that made values which are not finite, and where it did (bool, as its output)."""

    eqn: Eqn
    operands: tuple[np.ndarray, ...]
    value: np.ndarray
    new: np.ndarray


def first_made(graph: Graph, arrays: Sequence[np.ndarray], numerics: Numerics) -> Made | None:
    """What first makes a NaN where no operand is one, or an infinity where all are finite.

    Equations that are parts of one operation of the user's are one: what they make on the way does
    not count if all that leaves the operation is finite.
    """
    finder = _Finder(graph)
    interpret(graph, arrays, numerics, finder.look_at)
    return finder.first or finder.settled()


class _Finder:
    """Follows the equations of a graph, operation by operation."""

    def __init__(self, graph: Graph):
        self.leaving = _leaving(graph)
        self.first: Made | None = None
        self._operation: object = None
        self._made: Made | None = None
        self._spoilt = False  # whether something that is not finite leaves the operation

    def look_at(self, eqn: Eqn, operands: Sequence[Array], value: Array) -> None:
        if self.first is not None:
            return
        if eqn.source is not self._operation:
            self.first = self.settled()
            self._operation, self._made, self._spoilt = eqn.source, None, False
        if self.first is None and _is_spoilt(value):
            self._made = self._made or _made(eqn, operands, value)
            self._spoilt = self._spoilt or eqn.output in self.leaving

    def settled(self) -> Made | None:
        """What the operation has made that has just ended."""
        return self._made if self._spoilt else None


def _leaving(graph: Graph) -> set[Atom]:
    """The values that are returned, or read by other operations than the one that computes them."""
    sources = {eqn.output: eqn.source for eqn in graph.eqns}
    leaving = set(graph.outputs)
    for eqn in graph.eqns:
        leaving.update([a for a in eqn.inputs if a in sources and sources[a] is not eqn.source])
    return leaving


def _is_spoilt(value: Array) -> bool:
    """Whether some element is not finite."""
    return value.dtype.kind == "f" and not np.isfinite(value).all()


def _made(eqn: Eqn, operands: Sequence[Array], value: Array) -> Made | None:
    spread = SPREAD.get(eqn.primitive)
    if spread is None:  # elements are only moved
        return None
    nan, not_finite = [
        np.broadcast_to(spread(eqn, operands, [_where(test, x) for x in operands]), value.shape)
        for test in (np.isnan, _is_not_finite)
    ]
    new = np.asarray((np.isnan(value) & ~nan) | (np.isinf(value) & ~not_finite))
    if not new.any():
        return None
    return Made(eqn, tuple(map(np.asarray, operands)), np.asarray(value), new)


def _where(test: Callable[[Array], Array], operand: Array) -> np.ndarray:
    return np.asarray(test(operand) if operand.dtype.kind == "f" else np.zeros(operand.shape, bool))


def _is_not_finite(x: Array) -> Array:
    return ~np.isfinite(x)


# -- where elements of an output have a true element among those that they are computed from

Masks = Sequence[np.ndarray]


def _elementwise(eqn: Eqn, operands: Sequence[Array], masks: Masks) -> np.ndarray:
    return functools.reduce(np.logical_or, masks)


def _reduce(eqn: Eqn, operands: Sequence[Array], masks: Masks) -> np.ndarray:
    return np.asarray(masks[0].any(axis=tuple(eqn.params["axes"])))


def _cumulative(eqn: Eqn, operands: Sequence[Array], masks: Masks) -> np.ndarray:
    return np.logical_or.accumulate(masks[0], axis=eqn.params["axis"])


def _contract(eqn: Eqn, operands: Sequence[Array], masks: Masks) -> np.ndarray:
    out = eqn.params["out"]
    sides = zip(masks, (eqn.params["lhs"], eqn.params["rhs"]), strict=True)
    lhs, rhs = [_along(mask, labels, out) for mask, labels in sides]
    return np.asarray(lhs | rhs)


def _along(mask: np.ndarray, labels: Sequence[int], out: Sequence[int]) -> np.ndarray:
    """Any along the labels that are summed, with the axes of the output."""
    kept = [label for label in labels if label in out]
    summed = tuple([at for at, label in enumerate(labels) if label not in out])
    order = sorted(range(len(kept)), key=lambda at: out.index(kept[at]))
    found = np.asarray(mask.any(axis=summed)).transpose(order)
    return np.expand_dims(found, tuple([at for at, label in enumerate(out) if label not in kept]))


def _scatter(eqn: Eqn, operands: Sequence[Array], masks: Masks) -> np.ndarray:
    result = masks[0].copy()
    np.logical_or.at(result, tuple(map(np.asarray, operands[2:])), masks[1])
    return result


# Of primitives that compute; others move elements.
SPREAD: Mapping[Primitive, Callable[[Eqn, Sequence[Array], Masks], np.ndarray]] = {
    p.elementwise: _elementwise,
    p.cast: _elementwise,
    p.reduce: _reduce,
    p.cumulative: _cumulative,
    p.contract: _contract,
    p.softmax_contract: _contract,
    p.scatter: _scatter,
}
