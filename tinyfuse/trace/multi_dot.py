"""Products of several matrices, in the order that takes the fewest multiplications."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.linear_algebra import dot, scalar_if_0d
from tinyfuse.trace.operations import reshape, traced
from tinyfuse.trace.tracer import Tracer


@listed(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Tracer:
    """The order is that of a matrix chain (T. H. Cormen and others, Introduction to Algorithms,
    chapter 15.2), of three matrices the cheaper of both, as in numpy."""
    factors = [traced(array) for array in arrays]
    if len(factors) < 2:
        raise errors.InvalidArgumentError("Expecting at least two arrays.")
    if len(factors) == 2:
        return dot(*factors)
    first, last = factors[0], factors[-1]
    if first.ndim == 1:
        factors[0] = reshape(first, (1, first.size))
    if last.ndim == 1:
        factors[-1] = reshape(last, (last.size, 1))
    for factor in factors:
        if factor.ndim != 2:
            raise errors.ShapeError(
                f"{factor.ndim}-dimensional array given. Array must be two-dimensional"
            )
    sizes = [factors[0].shape[0], *[factor.shape[1] for factor in factors]]
    product = _product(factors, _splits(sizes), 0, len(factors) - 1)
    vectors = (first.ndim == 1) + (last.ndim == 1)
    if not vectors:
        return product
    return scalar_if_0d(reshape(product, (product.size,) if vectors == 1 else ()))


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """After which factor each run of factors is divided. sizes: of the rows of each, and of the
    columns of the last."""
    count = len(sizes) - 1
    if count == 3:
        a, b, c, d = sizes
        return {(0, 2): 1 if a * c * (b + d) < b * d * (a + c) else 0}
    costs = {(at, at): 0 for at in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for low in range(count - length):
            high, least = low + length, math.inf
            for middle in range(low, high):
                multiplications = sizes[low] * sizes[middle + 1] * sizes[high + 1]
                cost = costs[low, middle] + costs[middle + 1, high] + multiplications
                if cost < least:
                    least, splits[low, high], costs[low, high] = cost, middle, cost
    return splits


def _product(
    factors: Sequence[Tracer], splits: dict[tuple[int, int], int], low: int, high: int
) -> Tracer:
    if low == high:
        return factors[low]
    middle = splits.get((low, high), low)
    left = _product(factors, splits, low, middle)
    return dot(left, _product(factors, splits, middle + 1, high))
