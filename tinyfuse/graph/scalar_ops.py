"""Scalar operations: what one elementwise equation does to one element.

The name of a row is the ufunc's name, but for ufuncs with two outputs, which have a row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOATING, INT64
from tinyfuse.graph.ranks import UNSIGNED, of_rank, rank
from tinyfuse.graph.special_functions import SPECIAL_FUNCTIONS, special_function
from tinyfuse.records import dataclass, field

Loops = Mapping[tuple[np.dtype, ...], np.dtype]


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """A function of scalars.

    evaluate: what numpy computes, on arrays. exact: whether tinyfuse promises numpy's bits.
    cost: in additions, for the planner. ufunc, output: the ufunc and which of its outputs it is.
    loops: for what is no ufunc, and no select, the dtype of the result for those of the operands.
    """

    name: str
    evaluate: Callable[..., Any]
    arity: int
    cost: int = 1
    exact: bool = True
    ufunc: np.ufunc | None = None
    output: int = 0
    loops: Loops = field(default_factory=dict)


def _rows(names: str, cost: int = 1, exact: bool = True) -> list[ScalarOp]:
    ufuncs = [getattr(np, name) for name in names.split()]
    return [ScalarOp(ufunc.__name__, ufunc, ufunc.nin, cost, exact, ufunc) for ufunc in ufuncs]


def _wrap_index(index: Any, extent: Any) -> Any:
    """A position along an axis, counted from its end where negative; the nearest one if outside."""
    return np.clip(np.where(index < 0, index + extent, index), 0, extent - 1)


def _rank_row(nan: str) -> ScalarOp:
    loops: Loops = {(real,): bits for real, bits in UNSIGNED.items()}
    return ScalarOp(f"rank_nan_{nan}", lambda x: rank(x, nan), 1, 3, loops=loops)


def _of_rank_row(nan: str) -> ScalarOp:
    loops: Loops = {(bits,): real for real, bits in UNSIGNED.items()}
    return ScalarOp(f"of_rank_nan_{nan}", lambda x: of_rank(x, nan), 1, 3, loops=loops)


def _special_row(name: str) -> ScalarOp:
    loops: Loops = {(dtype,): dtype for dtype in FLOATING}
    return ScalarOp(name, lambda x: special_function(name, x), 1, 24, exact=False, loops=loops)


SCALAR_OPS: dict[str, ScalarOp] = {
    op.name: op
    for op in [
        *_rows("add subtract multiply negative positive absolute fabs sign conjugate square"),
        *_rows("bitwise_and bitwise_or bitwise_xor invert left_shift right_shift bitwise_count"),
        *_rows("logical_and logical_or logical_xor logical_not"),
        *_rows("equal not_equal less less_equal greater greater_equal"),
        *_rows("isfinite isinf isnan signbit copysign rint floor ceil trunc", cost=2),
        *_rows("spacing nextafter heaviside", cost=2),
        # Not exact: +0 is above -0, wherever they stand.
        *_rows("maximum minimum fmax fmin", cost=2, exact=False),
        *_rows("divide reciprocal sqrt degrees radians deg2rad rad2deg", cost=8),
        *_rows("floor_divide remainder fmod ldexp gcd lcm", cost=16),
        *_rows("exp exp2 expm1 log log2 log10 log1p cbrt", cost=16, exact=False),
        *_rows("sin cos tan arcsin arccos arctan sinh cosh tanh", cost=20, exact=False),
        *_rows("arcsinh arccosh arctanh", cost=24, exact=False),
        *_rows("arctan2 hypot logaddexp logaddexp2 power float_power", cost=24, exact=False),
        *map(_special_row, SPECIAL_FUNCTIONS),
        ScalarOp("modf_fraction", lambda x: np.modf(x)[0], 1, 2, True, np.modf, 0),
        ScalarOp("modf_integral", lambda x: np.modf(x)[1], 1, 2, True, np.modf, 1),
        ScalarOp("frexp_mantissa", lambda x: np.frexp(x)[0], 1, 4, True, np.frexp, 0),
        ScalarOp("frexp_exponent", lambda x: np.frexp(x)[1], 1, 4, True, np.frexp, 1),
        ScalarOp("select", np.where, 3),
        ScalarOp("wrap_index", _wrap_index, 2, loops={(INT64, INT64): INT64}),
        *[row(nan) for row in (_rank_row, _of_rank_row) for nan in ("last", "first")],
    ]
}
