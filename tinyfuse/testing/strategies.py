"""Hypothesis strategies for dtypes, arrays and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies
from hypothesis.extra import numpy as numpy_strategies

from tinyfuse.dtypes import FLOATING, SUPPORTED
from tinyfuse.testing.choices import DrawnChoices
from tinyfuse.testing.generate import draw_program
from tinyfuse.testing.program import Program
from tinyfuse.testing.values import LAYOUTS, layouts_of, special_values

Strategy = strategies.SearchStrategy


def dtypes() -> Strategy[np.dtype]:
    """The dtypes that tinyfuse computes with; float32 is the simplest."""
    return strategies.sampled_from((*FLOATING, *SUPPORTED[: -len(FLOATING)]))


def shapes(max_dims: int = 4, max_side: int = 6) -> Strategy[tuple[int, ...]]:
    """Shapes of 0 to `max_dims` axes, axes of size 0 and 1 among them."""
    return numpy_strategies.array_shapes(
        min_dims=0, max_dims=max_dims, min_side=0, max_side=max_side
    )


def elements_of(dtype: Any) -> Strategy[Any]:
    """Values of a dtype, about half of them `special_values`, at which operations go wrong."""
    dtype = np.dtype(dtype)
    special = strategies.sampled_from([value.item() for value in special_values(dtype)])
    return strategies.one_of(numpy_strategies.from_dtype(dtype), special)


@strategies.composite
def arrays(
    draw: Any,
    dtype: Any | Strategy[Any] | None = None,
    shape: int | Sequence[int] | Strategy[Any] | None = None,
    *,
    elements: Strategy[Any] | None = None,
    layouts: Sequence[str] = tuple(LAYOUTS),
) -> np.ndarray:
    """Arrays whose values and memory layouts break compilers.

    dtype, shape: fixed, strategies for them, or any. elements: a strategy for the values; by
    default NaN, infinities, zeros of both signs, subnormal numbers and the extremes of integers
    are common. layouts: keys of `tinyfuse.testing.LAYOUTS` to choose from: negative strides,
    steps, Fortran order, stride 0, read-only, misaligned, overlapping elements. An array for which
    none of them exists is contiguous.
    """
    dtype = np.dtype(_drawn(draw, dtypes() if dtype is None else dtype))
    extents = _drawn(draw, shapes() if shape is None else shape)
    values = elements_of(dtype) if elements is None else elements
    array = draw(numpy_strategies.arrays(dtype, extents, elements=values))
    possible = [name for name in layouts if name in layouts_of(array.shape)]
    return LAYOUTS[draw(strategies.sampled_from(possible))](array) if possible else array


def _drawn(draw: Any, value: Any) -> Any:
    return draw(value) if isinstance(value, Strategy) else value


@strategies.composite
def programs(draw: Any, *, composed: bool = True, effects: bool = True) -> Program:
    """Random programs that numpy accepts, with their arguments: values of class `Program`.

    They shrink to few statements over small arrays of small integers.

    composed: whether they may hold functions that tinyfuse composes otherwise than numpy does
    (einsum, masked sums), so that numpy's bits cannot be expected. effects: whether they may write
    into their arguments and their own arrays, index with arrays, and make arrays.
    """
    choices = DrawnChoices(lambda n: draw(strategies.integers(0, n - 1)))
    return draw_program(choices, composed=composed, effects=effects)
