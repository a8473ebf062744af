"""Scalar operations: what one elementwise equation does to one element.

The name of a row is the ufunc's name, but for ufuncs with two outputs, which have a row for each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOAT32, FLOATING, INT64
from tinyfuse.graph.ranks import UNSIGNED, of_rank, rank
from tinyfuse.graph.special_functions import special_function
from tinyfuse.records import dataclass, field

Loops = Mapping[tuple[np.dtype, ...], np.dtype]


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """A function of scalars.

    evaluate: what numpy computes, on arrays. exact: whether tinyfuse promises numpy's bits.
    cost: the time it takes in vector code, in additions; 0 for what only moves a value. like: the
    operation, of those that `calibrate` measures, whose cost it shares in proportion.
    ufunc, output: the ufunc and which of its outputs it is.
    loops: for what is no ufunc, and no select, the dtype of the result for those of the operands.
    """

    name: str
    evaluate: Callable[..., Any]
    arity: int
    cost: int = 1
    exact: bool = True
    like: str = ""
    ufunc: np.ufunc | None = None
    output: int = 0
    loops: Loops = field(default_factory=dict)


def _rows(names: str, cost: int = 1, exact: bool = True, like: str = "") -> list[ScalarOp]:
    ufuncs = [getattr(np, name) for name in names.split()]
    return [
        ScalarOp(ufunc.__name__, ufunc, ufunc.nin, cost, exact, like, ufunc) for ufunc in ufuncs
    ]


def _wrap_index(index: Any, extent: Any) -> Any:
    """A position along an axis, counted from its end where negative; the nearest one if outside."""
    return np.clip(np.where(index < 0, index + extent, index), 0, extent - 1)


def _slice_end(end: Any, extent: Any) -> Any:
    """An end of a slice, counted from that of the axis where negative; the nearest if outside."""
    return np.clip(np.where(end < 0, end + extent, end), 0, extent)


def _rank_row(nan: str) -> ScalarOp:
    loops: Loops = {(real,): bits for real, bits in UNSIGNED.items()}
    return ScalarOp(f"rank_nan_{nan}", lambda x: rank(x, nan), 1, 3, loops=loops)


def _of_rank_row(nan: str) -> ScalarOp:
    loops: Loops = {(bits,): real for real, bits in UNSIGNED.items()}
    return ScalarOp(f"of_rank_nan_{nan}", lambda x: of_rank(x, nan), 1, 3, loops=loops)


# Powers of exponents that are known when a program is traced, which a few multiplications,
# divisions and roots give within two units in the last place. Exponents, and costs.
CONSTANT_POWERS: dict[str, tuple[float, int]] = {
    "power_3": (3.0, 2),
    "power_4": (4.0, 2),
    "power_3_halves": (1.5, 10),
    "power_minus_half": (-0.5, 18),
    "power_minus_3_halves": (-1.5, 26),
    "power_minus_2": (-2.0, 9),
}


def _constant_power_row(name: str, exponent: float, cost: int) -> ScalarOp:
    loops: Loops = {(dtype,): dtype for dtype in FLOATING}
    like = "sqrt" if exponent % 1 else "divide" if exponent < 0 else ""
    return ScalarOp(
        name, lambda x: np.power(x, x.dtype.type(exponent)), 1, cost, False, like, loops=loops
    )


def _special_row(name: str, cost: int) -> ScalarOp:
    loops: Loops = {(dtype,): dtype for dtype in FLOATING}
    return ScalarOp(name, lambda x: special_function(name, x), 1, cost, False, "exp", loops=loops)


# e^x where x is known not to be above 0: the bits of exp.
EXP_NONPOSITIVE = "exp_nonpositive"


def _exp_nonpositive_row() -> ScalarOp:
    loops: Loops = {(dtype,): dtype for dtype in FLOATING}
    return ScalarOp(EXP_NONPOSITIVE, lambda x: np.exp(x), 1, 16, False, "exp", loops=loops)


def _fma_row() -> ScalarOp:
    loops: Loops = {(dtype,) * 3: dtype for dtype in FLOATING}
    return ScalarOp(FMA, _fused, 3, 1, False, loops=loops)


# a * b + c, rounded once.
FMA = "fma"


def _fused(a: Any, b: Any, c: Any) -> Any:
    """As near as numpy comes: rounded to 64 bits of precision before."""
    wide = np.multiply(a, b, dtype=np.longdouble) + c
    return wide.astype(np.result_type(a, b, c))


# What tensor cores multiply: the nearest number of another format, as float32. Bits of its mantissa
# fewer than those of float32.
NEAREST = {"nearest_tf32": 13, "nearest_bfloat16": 16, "nearest_float16": 13}


def _nearest_row(name: str) -> ScalarOp:
    return ScalarOp(name, lambda x: _nearest(name, x), 1, 4, loops={(FLOAT32,): FLOAT32})


def _nearest(name: str, x: Any) -> Any:
    """Rounded to nearest, ties to even; NaN and infinities as they are."""
    if name == "nearest_float16":
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(x).astype(np.float16).astype(np.float32)
    bits, dropped = np.asarray(x).view(np.uint32), np.uint32(NEAREST[name])
    half = (np.uint32(1) << (dropped - np.uint32(1))) - np.uint32(1)
    rounded = (bits + half + ((bits >> dropped) & np.uint32(1))) >> dropped << dropped
    return np.where(np.isfinite(x), rounded.view(np.float32), x)


_SPECIAL_COSTS = {"erf": 36, "expit": 45, "erfc": 106, "gamma": 220, "gammaln": 300}

# Costs are those of float32, on the machine that the default constants of `Machine` were measured
# on; of special and rarer functions, in proportion to exp.


SCALAR_OPS: dict[str, ScalarOp] = {
    op.name: op
    for op in [
        *_rows("positive conjugate", cost=0),
        *_rows("add subtract multiply negative absolute fabs sign square"),
        *_rows("degrees radians deg2rad rad2deg"),
        *_rows("bitwise_and bitwise_or bitwise_xor invert left_shift right_shift bitwise_count"),
        *_rows("logical_and logical_or logical_xor logical_not"),
        *_rows("equal not_equal less less_equal greater greater_equal"),
        *_rows("isfinite isinf isnan signbit copysign rint floor ceil trunc", cost=2),
        *_rows("spacing nextafter heaviside", cost=2),
        # Not exact: +0 is above -0, wherever they stand.
        *_rows("maximum minimum fmax fmin", cost=2, exact=False),
        *_rows("divide reciprocal", cost=8, like="divide"),
        *_rows("sqrt", cost=8, like="sqrt"),
        *_rows("floor_divide remainder fmod ldexp", cost=160, like="floor_divide"),
        *_rows("gcd lcm", cost=4000, like="floor_divide"),
        *_rows("exp exp2 arcsin", cost=16, exact=False, like="exp"),
        *_rows("expm1 cbrt cosh tanh arccos", cost=30, exact=False, like="exp"),
        *_rows("log log2 log10", cost=32, exact=False, like="log"),
        *_rows("sin cos", cost=46, exact=False, like="sin"),
        *_rows("log1p arctan", cost=50, exact=False, like="exp"),
        *_rows("tan sinh arctan2 hypot", cost=60, exact=False, like="exp"),
        *_rows("arcsinh arccosh arctanh", cost=70, exact=False, like="log"),
        *_rows("power float_power", cost=130, exact=False, like="power"),
        *_rows("logaddexp logaddexp2", cost=200, exact=False, like="exp"),
        _exp_nonpositive_row(),
        *itertools.starmap(_special_row, _SPECIAL_COSTS.items()),
        *[_constant_power_row(name, *row) for name, row in CONSTANT_POWERS.items()],
        ScalarOp("modf_fraction", lambda x: np.modf(x)[0], 1, 2, ufunc=np.modf, output=0),
        ScalarOp("modf_integral", lambda x: np.modf(x)[1], 1, 2, ufunc=np.modf, output=1),
        ScalarOp("frexp_mantissa", lambda x: np.frexp(x)[0], 1, 4, ufunc=np.frexp, output=0),
        ScalarOp("frexp_exponent", lambda x: np.frexp(x)[1], 1, 4, ufunc=np.frexp, output=1),
        ScalarOp("select", np.where, 3, cost=0),
        _fma_row(),
        *map(_nearest_row, NEAREST),
        ScalarOp("wrap_index", _wrap_index, 2, loops={(INT64, INT64): INT64}),
        ScalarOp("slice_end", _slice_end, 2, loops={(INT64, INT64): INT64}),
        *[row(nan) for row in (_rank_row, _of_rank_row) for nan in ("last", "first")],
    ]
}

# Of what is no row. A sort's is that of one comparison, with what follows from it; nothing of it is
# vector code. Division of an integer by a constant is multiplication by another one.
_OTHER_COSTS = {"cast": 1, "sort": 5, "divide_by_constant": 16}


def cost(name: str) -> int:
    """The time in vector code, in additions, of a row or of one of `_OTHER_COSTS`."""
    return SCALAR_OPS[name].cost if name in SCALAR_OPS else _OTHER_COSTS[name]
