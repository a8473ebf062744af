"""Reductions: what one reduce equation does to the elements along its axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse.dtypes import BOOL, COMPLEX, INT64, SUPPORTED
from tinyfuse.records import dataclass

Array = Any  # np.ndarray, or np.generic where numpy gives a scalar
Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReduceOp:
    """A reduction.

    evaluate: what numpy computes of an array, over axes, in a dtype. combine: the scalar operation
    that joins elements; of those that find a place, the elements they compare by. start: what
    changes no element that it is combined with, for a dtype; for sums +0, which makes a sum of -0
    +0. dtypes: those that the result may have, for a dtype of the elements.
    rounds: whether results depend on the order in which floating-point elements are combined.
    finds_place: whether the result is an index. needs_elements: whether numpy refuses no elements.
    """

    name: str
    evaluate: Callable[[Array, Axes, np.dtype], Array]
    combine: str
    start: Callable[[np.dtype], np.generic]
    dtypes: Callable[[np.dtype], Sequence[np.dtype]]
    rounds: bool = False
    finds_place: bool = False
    needs_elements: bool = False

    def depends_on_order(self, dtype: np.dtype) -> bool:
        """Whether the bits of a result of this dtype depend on the order."""
        return self.rounds and dtype.kind == "f"


def _accumulated(name: str, ufunc: np.ufunc, start: int) -> ReduceOp:
    def evaluate(x: Array, axes: Axes, dtype: np.dtype) -> Array:
        return ufunc.reduce(x, axis=axes, dtype=dtype)

    return ReduceOp(
        name,
        evaluate,
        ufunc.__name__,
        lambda dtype: dtype.type(start),
        lambda dtype: (*SUPPORTED, *COMPLEX),
        rounds=True,
    )


def _truth(name: str, ufunc: np.ufunc, start: bool) -> ReduceOp:
    def evaluate(x: Array, axes: Axes, dtype: np.dtype) -> Array:
        return ufunc.reduce(x, axis=axes)

    def dtypes(dtype: np.dtype) -> Sequence[np.dtype]:
        return (BOOL,) if dtype == BOOL else ()

    return ReduceOp(name, evaluate, ufunc.__name__, lambda dtype: np.bool_(start), dtypes)


def _extreme(name: str, ufunc: np.ufunc, start: Callable[[np.dtype], np.generic]) -> ReduceOp:
    def evaluate(x: Array, axes: Axes, dtype: np.dtype) -> Array:
        return ufunc.reduce(x, axis=axes)

    return ReduceOp(
        name, evaluate, ufunc.__name__, start, lambda dtype: (dtype,), needs_elements=True
    )


def _place(name: str, function: Callable[..., Any], combine: str) -> ReduceOp:
    def evaluate(x: Array, axes: Axes, dtype: np.dtype) -> Array:
        return function(x, axis=axes[0])

    start = _lowest if combine == "maximum" else _highest
    return ReduceOp(
        name,
        evaluate,
        combine,
        start,
        lambda dtype: (INT64,),
        finds_place=True,
        needs_elements=True,
    )


def _lowest(dtype: np.dtype) -> np.generic:
    if dtype.kind == "c":
        return dtype.type(complex(-np.inf, -np.inf))
    return dtype.type(-np.inf if dtype.kind == "f" else _limits(dtype)[0])


def _highest(dtype: np.dtype) -> np.generic:
    if dtype.kind == "c":
        return dtype.type(complex(np.inf, np.inf))
    return dtype.type(np.inf if dtype.kind == "f" else _limits(dtype)[1])


def _limits(dtype: np.dtype) -> tuple[Any, Any]:
    return (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def _nan_or(start: Callable[[np.dtype], np.generic]) -> Callable[[np.dtype], np.generic]:
    """NaN, which fmax and fmin pass over; of integers the start that is given."""
    return lambda dtype: dtype.type(np.nan) if dtype.kind == "f" else start(dtype)


REDUCE_OPS: dict[str, ReduceOp] = {
    op.name: op
    for op in [
        _accumulated("sum", np.add, 0),
        _accumulated("prod", np.multiply, 1),
        _extreme("max", np.maximum, _lowest),
        _extreme("min", np.minimum, _highest),
        _extreme("fmax", np.fmax, _nan_or(_lowest)),
        _extreme("fmin", np.fmin, _nan_or(_highest)),
        _truth("any", np.logical_or, False),
        _truth("all", np.logical_and, True),
        _place("argmax", np.argmax, "maximum"),
        _place("argmin", np.argmin, "minimum"),
    ]
}
