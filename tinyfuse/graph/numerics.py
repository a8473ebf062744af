"""Two meanings of a graph's arithmetic: numpy's own, and tinyfuse's with its reduction orders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tinyfuse.graph.ir import Eqn
from tinyfuse.graph.labels import Labels, aligned
from tinyfuse.graph.orders import Chain, Lanes, Order, RowBlocks, Steps
from tinyfuse.graph.reduce_ops import REDUCE_OPS, ReduceOp
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.graph.softmax_blocks import OnlineSoftmax, key_axis, within_limits

Array = Any  # np.ndarray, or np.generic where numpy gives a scalar


class Numerics(Protocol):
    """How graphs are computed. `scalar` and `cast` take arrays that broadcast."""

    def scalar(self, op_name: str, operands: Sequence[Array], dtype: np.dtype) -> Array:
        """A row of `SCALAR_OPS` on each element; `dtype` is the result's."""

    def cast(self, x: Array, dtype: np.dtype) -> Array:
        """`x.astype(dtype)`."""

    def reduce(self, eqn: Eqn, x: Array, steps: Steps) -> Array:
        """The output of a reduce equation."""

    def contract(self, eqn: Eqn, a: Array, b: Array, steps: Steps) -> Array:
        """The output of a contract equation."""

    def softmax_contract(self, eqn: Eqn, scores: Array, values: Array) -> Array:
        """The output of a softmax_contract equation."""

    def cumulative(self, eqn: Eqn, x: Array) -> Array:
        """The output of a cumulative equation."""

    def sort(self, eqn: Eqn, x: Array) -> Array:
        """The output of a sort equation."""

    def argsort(self, eqn: Eqn, x: Array) -> Array:
        """The output of an argsort equation."""


class NumpyNumerics:
    """Every equation by the numpy function that it stands for: the bits of the plain function."""

    def scalar(self, op_name: str, operands: Sequence[Array], dtype: np.dtype) -> Array:
        return SCALAR_OPS[op_name].evaluate(*operands)

    def cast(self, x: Array, dtype: np.dtype) -> Array:
        return x.astype(dtype)

    def reduce(self, eqn: Eqn, x: Array, steps: Steps) -> Array:
        params = eqn.params
        return REDUCE_OPS[params["op"]].evaluate(x, tuple(params["axes"]), params["dtype"])

    def contract(self, eqn: Eqn, a: Array, b: Array, steps: Steps) -> Array:
        lhs, rhs, out = eqn.params["lhs"], eqn.params["rhs"], eqn.params["out"]
        product = NUMPY_PRODUCTS.get(eqn.params["via"])
        if product is not None and product[1](lhs, rhs) == out:
            return product[0](a, b)
        return _einsum(a, lhs, b, rhs, out)

    def softmax_contract(self, eqn: Eqn, scores: Array, values: Array) -> Array:
        lhs, rhs, out = [eqn.params[key] for key in ("lhs", "rhs", "out")]
        scores = np.where(within_limits(eqn, scores.shape), scores, scores.dtype.type(-np.inf))
        axis = key_axis(eqn)
        e = np.exp(scores - scores.max(axis, keepdims=True))
        return _einsum(e / e.sum(axis, keepdims=True), lhs, values, rhs, out)

    def cumulative(self, eqn: Eqn, x: Array) -> Array:
        ufunc = SCALAR_OPS[eqn.params["op"]].ufunc
        assert ufunc is not None
        return ufunc.accumulate(x, eqn.params["axis"], eqn.output.dtype)

    def sort(self, eqn: Eqn, x: Array) -> Array:
        return np.sort(x, eqn.params["axis"], kind=eqn.params["kind"])

    def argsort(self, eqn: Eqn, x: Array) -> Array:
        return np.argsort(x, eqn.params["axis"], kind=eqn.params["kind"])


def _matmul_labels(lhs: Labels, rhs: Labels) -> Labels | None:
    """The labels of `np.matmul(a, b)`; None where it would not contract what these labels say."""
    if not lhs or not rhs or lhs[-1] != rhs[-2:][0]:
        return None
    batch, other = sorted((lhs[:-2], rhs[:-2]), key=len, reverse=True)
    if batch[len(batch) - len(other) :] != other:
        return None
    return (*batch, *lhs[-2:-1], *rhs[-2:][1:])


def _dot_labels(lhs: Labels, rhs: Labels) -> Labels | None:
    """The labels of `np.dot(a, b)`; None where it would not contract what these labels say."""
    if not lhs or not rhs or lhs[-1] != rhs[-2:][0]:
        return None
    return (*lhs[:-1], *rhs[:-2], *rhs[-2:][1:])


# A product, and the labels that its output has for those of its operands.
Product = tuple[Callable[..., Array], Callable[[Labels, Labels], Labels | None]]

NUMPY_PRODUCTS: dict[str, Product] = {
    "matmul": (np.matmul, _matmul_labels),
    "dot": (np.dot, _dot_labels),
}


def _einsum(a: Array, lhs: Labels, b: Array, rhs: Labels, out: Labels) -> Array:
    """np.einsum with labels in the same order, which is the order that it sums in."""
    number = {label: at for at, label in enumerate(sorted({*lhs, *rhs}))}
    labels = [[number[label] for label in part] for part in (lhs, rhs, out)]
    return np.einsum(a, labels[0], b, labels[1], labels[2])


# Combines a chain's value so far with the next element of each operand.
Link = Callable[..., Array]
# Combines the values of two chains.
Combine = Callable[[Array, Array], Array]


class OrderedNumerics(ABC):
    """Reductions, contractions and sorting in tinyfuse's orders, over any `scalar` and `fma`.

    All arithmetic goes through these two and `cast`, one rounding at a time.
    """

    @abstractmethod
    def scalar(self, op_name: str, operands: Sequence[Array], dtype: np.dtype) -> Array:
        """A row of `SCALAR_OPS` on each element; maximum and minimum put +0 above -0."""

    @abstractmethod
    def fma(self, a: Array, b: Array, c: Array) -> Array:
        """a * b + c of one dtype: rounded once; integers wrap; of bool, `a & b | c`."""

    def cast(self, x: Array, dtype: np.dtype) -> Array:
        with np.errstate(all="ignore"):
            return x.astype(dtype)

    def reduce(self, eqn: Eqn, x: Array, steps: Steps) -> Array:
        op, dtype = REDUCE_OPS[eqn.params["op"]], np.dtype(eqn.params["dtype"])
        if op.finds_place:
            return op.evaluate(x, tuple(eqn.params["axes"]), dtype)
        combine, start = self._combination(op, dtype), op.start(dtype)
        x = np.asarray(self.cast(x, dtype))
        if not steps:
            return np.reshape(combine(np.full_like(x, start, order="C"), x), eqn.output.shape)
        for step in steps:
            terms = _flat_in_front(x, step.axes)
            order = step.order if op.depends_on_order(dtype) else Chain(1)  # any is right
            total = combine_in_order(order, (terms,), start, combine, combine)
            x = total.reshape([1 if at in step.axes else n for at, n in enumerate(x.shape)])
        return x.reshape(eqn.output.shape)

    def contract(self, eqn: Eqn, a: Array, b: Array, steps: Steps) -> Array:
        out = eqn.params["out"]
        summed = [eqn.params["lhs"][axis] for step in steps for axis in step.axes]
        factors = tuple(
            _flat_in_front(aligned(x, labels, [*summed, *out]), range(len(summed)))
            for x, labels in ((a, eqn.params["lhs"]), (b, eqn.params["rhs"]))
        )
        dtype = np.dtype(eqn.output.dtype)
        total = REDUCE_OPS["sum"]
        add, start = self._combination(total, dtype), total.start(dtype)
        order = steps[0].order if steps else Chain(1)
        product = combine_in_order(order, factors, start, lambda c, x, y: self.fma(x, y, c), add)
        return product.reshape(eqn.output.shape)

    def softmax_contract(self, eqn: Eqn, scores: Array, values: Array) -> Array:
        return OnlineSoftmax(self, eqn, scores, values).result()

    def cumulative(self, eqn: Eqn, x: Array) -> Array:
        result = np.array(x, order="C")
        steps = np.moveaxis(result, eqn.params["axis"], 0)
        for at in range(1, len(steps)):
            steps[at] = self.scalar(eqn.params["op"], [steps[at - 1], steps[at]], result.dtype)
        return result

    def sort(self, eqn: Eqn, x: Array) -> Array:
        return np.sort(x, eqn.params["axis"], kind="stable")

    def argsort(self, eqn: Eqn, x: Array) -> Array:
        return np.argsort(x, eqn.params["axis"], kind="stable")

    def _combination(self, op: ReduceOp, dtype: np.dtype) -> Combine:
        return lambda a, b: self.scalar(op.combine, [a, b], dtype)


def _flat_in_front(x: Array, axes: Sequence[int]) -> np.ndarray:
    """`axes` of x flattened in C order as the first axis, then the others."""
    others = [axis for axis in range(x.ndim) if axis not in axes]
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    moved = np.transpose(x, [*axes, *others])
    return moved.reshape(count, *[x.shape[axis] for axis in others])


def combine_in_order(
    order: Order, operands: tuple[np.ndarray, ...], start: np.generic, link: Link, combine: Combine
) -> np.ndarray:
    """Reduces the first axis of the operands (of one length) in an order.

    `link(value, *elements)` extends chains; `combine(a, b)` joins the values of two.
    """
    length = len(operands[0])
    if isinstance(order, Lanes) and (lanes := order.width(length)) > 1:
        return pairwise(_lanes(lanes, order.block, operands, start, link, combine), combine)
    block = order.block if isinstance(order, Chain | RowBlocks) else max(length, 1)
    return pairwise(_chains(block, operands, start, link), combine)


def _chains(
    block: int, operands: tuple[np.ndarray, ...], start: np.generic, link: Link
) -> np.ndarray:
    """The value of the chain over each block of the first axis; at least one."""
    length = len(operands[0])
    values = _started(max(1, -(-length // block)), operands, start)
    for at in range(min(block, length)):
        parts = [operand[at::block] for operand in operands]
        count = len(parts[0])
        values[:count] = link(values[:count], *parts)
    return values


def _started(count: int, operands: tuple[np.ndarray, ...], start: np.generic) -> np.ndarray:
    shape = np.broadcast_shapes(*[operand.shape[1:] for operand in operands])
    return np.full((count, *shape), start)


def _lanes(
    lanes: int,
    block: int,
    operands: tuple[np.ndarray, ...],
    start: np.generic,
    link: Link,
    combine: Combine,
) -> np.ndarray:
    """The value of each block of the first axis: its lanes' chains, halved."""
    rounds = block // lanes
    blocks = len(operands[0]) // block
    whole = blocks * block
    values = []
    if whole:
        by_round = [
            operand[:whole].reshape(blocks, rounds, lanes, *operand.shape[1:]).swapaxes(0, 1)
            for operand in operands
        ]
        values.append(_chains(rounds, tuple(by_round), start, link)[0])
    if whole < len(operands[0]):
        rest = tuple([operand[whole:] for operand in operands])
        values.append(_tail_lanes(lanes, rest, start, link)[None])
    return halving(np.concatenate(values).swapaxes(0, 1), combine)


def _tail_lanes(
    lanes: int, operands: tuple[np.ndarray, ...], start: np.generic, link: Link
) -> np.ndarray:
    values = _started(lanes, operands, start)
    for at in range(0, len(operands[0]), lanes):
        parts = [operand[at : at + lanes] for operand in operands]
        count = len(parts[0])
        values[:count] = link(values[:count], *parts)
    return values


def halving(values: np.ndarray, combine: Combine) -> np.ndarray:
    """Combines the first axis (a power of two): first half with second half, until one is left."""
    while len(values) > 1:
        half = len(values) // 2
        values = combine(values[:half], values[half:])
    return values[0]


def pairwise(values: np.ndarray, combine: Combine) -> np.ndarray:
    """Combines the first axis: neighbours, then their results; an odd last one waits."""
    while len(values) > 1:
        paired = len(values) // 2 * 2
        combined = combine(values[0:paired:2], values[1:paired:2])
        values = np.concatenate([combined, values[paired:]])
    return values[0]
