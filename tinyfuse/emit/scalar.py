"""The C text of scalar operations: one row for each, with its form for each kind of operand.

A form is an operator where C's meaning is numpy's, else a call to the compiler or to a function of
the prelude. What a text needs besides itself (functions of the prelude, typedefs) is entered into
`used`, from which `prelude.prelude_text` makes the file's head.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.dtypes import is_half
from tinyfuse.emit.ctext import CText, Precedence
from tinyfuse.emit.forms import (
    Form,
    Operation,
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    bool_fma,
    bool_order,
    builtin,
    comparison,
    constant,
    equal,
    identity,
    infix,
    integer_fma,
    logical_not,
    magnitude,
    multiply,
    not_equal,
    of_bits,
    prefix,
    prelude,
    prelude_select,
    reciprocal,
    select,
    square,
    times,
    truths,
    zero,
)
from tinyfuse.graph.scalar_ops import CONSTANT_POWERS, EXP_NONPOSITIVE, NEAREST


def op_text(
    name: str,
    operands: Sequence[CText],
    dtypes: Sequence[np.dtype],
    dtype: np.dtype,
    used: dict[str, None],
) -> CText:
    """The operation `name` on operands of `dtypes`, with a result of `dtype`.

    `name` is a row of `SCALAR_OPS`, `fma`, what stands for an operator that gcc would get wrong
    (`exact_add`, `exact_subtract`, `exact_negative`, `exact_select`: see the prelude), or what
    jumps in its place (`wrap_seldom`, `is_outside`: see `jumps`); the dtypes are those of a loop of
    numpy's ufunc. A select evaluates only what it chooses.
    """
    kind = "u" if is_half(dtypes[-1]) else dtypes[-1].kind  # of those the bits are chosen
    return _FORMS[name][kind](Operation(name, operands, dtypes, dtype, used))


Row = dict[str, Form]  # for bool, signed, unsigned and floating operands (the last one, if mixed)


def _bools(form: Form) -> Row:
    return {"b": form}


def _integers(form: Form) -> Row:
    return {"i": form, "u": form}


def _floats(form: Form) -> Row:
    return {"f": form}


def _numbers(form: Form) -> Row:
    return {"i": form, "u": form, "f": form}


def _all(form: Form) -> Row:
    return {"b": form, **_numbers(form)}


def _rounding(name: str) -> Row:
    return _all(identity) | _floats(builtin(name))


def _test(of_integers: str, of_floats: Form) -> Row:
    return _all(constant(of_integers)) | _floats(of_floats)


def _truth(of_bools: Form) -> Row:
    return _all(truths(of_bools)) | _bools(of_bools)


_EQUALITY, _RELATIONAL = Precedence.EQUALITY, Precedence.RELATIONAL
_ADDITIVE, _MULTIPLICATIVE = Precedence.ADDITIVE, Precedence.MULTIPLICATIVE

# Functions of an angle that the prelude also has for small ones alone, of float64.
ANGULAR = ("sin", "cos", "tan")
# Functions of the prelude that have a name of C's own.
_C_NAMES = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "float_power": "pow",
    "gammaln": "lgamma",
}
_MATHEMATICS = {
    **{name: name for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt")},
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "hypot")},
    **{name: name for name in ("logaddexp", "logaddexp2", "erf", "erfc", "expit", "gamma")},
    **_C_NAMES,
    **{name: name for name in (EXP_NONPOSITIVE, *CONSTANT_POWERS)},
}

_FORMS: dict[str, Row] = {
    "add": _numbers(add) | _bools(bitwise_or),
    "subtract": _integers(infix("-", _ADDITIVE)) | _floats(infix("-", _ADDITIVE)),
    "multiply": _numbers(multiply) | _bools(bitwise_and),
    "divide": _floats(infix("/", _MULTIPLICATIVE)),
    "fma": _integers(integer_fma) | _bools(bool_fma) | _floats(builtin("fma")),
    "negative": _numbers(prefix("-")) | {"i": prelude("negative")},
    "exact_add": _floats(prelude("add")),
    "exact_subtract": _floats(prelude("subtract")),
    "exact_select": _all(prelude_select),
    "exact_negative": {"i": prelude("negative"), "f": prelude("negative")},
    "positive": _numbers(identity),
    "conjugate": _numbers(identity),
    "absolute": _all(identity) | {"i": prelude("absolute"), "f": builtin("fabs")},
    "fabs": _floats(builtin("fabs")),
    "sign": _numbers(prelude("sign")),
    "square": _numbers(square),
    "reciprocal": _integers(prelude("reciprocal")) | _floats(reciprocal),
    "sqrt": _floats(builtin("sqrt")),
    "power": _integers(prelude("power")) | _floats(prelude("pow")),
    "degrees": _floats(times(180, np.pi)),
    "rad2deg": _floats(times(180, np.pi)),
    "radians": _floats(times(np.pi, 180)),
    "deg2rad": _floats(times(np.pi, 180)),
    "floor_divide": _numbers(prelude("floor_divide")),
    "remainder": _numbers(prelude("remainder")),
    "fmod": _floats(prelude("fmod")) | {"i": prelude("fmod"), "u": prelude("remainder")},
    "gcd": _integers(prelude("gcd")),
    "lcm": _integers(prelude("lcm")),
    "bitwise_and": _all(bitwise_and),
    "bitwise_or": _all(bitwise_or),
    "bitwise_xor": _all(bitwise_xor),
    "invert": _integers(prefix("~")) | _bools(logical_not),
    "left_shift": _integers(prelude("left_shift")),
    "right_shift": _integers(prelude("right_shift")),
    "bitwise_count": _integers(prelude("bitwise_count")),
    "logical_and": _truth(bitwise_and),
    "logical_or": _truth(bitwise_or),
    "logical_xor": _truth(not_equal),
    "logical_not": _numbers(zero) | _bools(logical_not),
    "equal": _all(comparison("==", _EQUALITY, "equal equal")) | _bools(equal),
    "not_equal": _all(comparison("!=", _EQUALITY, "!equal !equal")) | _bools(not_equal),
    "less": _numbers(comparison("<", _RELATIONAL, "less !less_equal"))
    | _bools(bool_order(bitwise_and, 0)),
    "less_equal": _numbers(comparison("<=", _RELATIONAL, "less_equal !less"))
    | _bools(bool_order(bitwise_or, 0)),
    "greater": _numbers(comparison(">", _RELATIONAL, "!less_equal less"))
    | _bools(bool_order(bitwise_and, 1)),
    "greater_equal": _numbers(comparison(">=", _RELATIONAL, "!less less_equal"))
    | _bools(bool_order(bitwise_or, 1)),
    "maximum": _numbers(prelude("maximum")) | _bools(bitwise_or),
    "minimum": _numbers(prelude("minimum")) | _bools(bitwise_and),
    "fmax": _integers(prelude("maximum")) | _bools(bitwise_or) | _floats(prelude("fmax")),
    "fmin": _integers(prelude("minimum")) | _bools(bitwise_and) | _floats(prelude("fmin")),
    "select": _all(select),
    "wrap_index": _integers(prelude("wrap_index")),
    "wrap_seldom": _integers(prelude("wrap_seldom")),
    "is_outside": _integers(prelude("is_outside")),
    "slice_end": _integers(prelude("slice_end")),
    "rank_nan_last": _floats(prelude("rank_nan_last")),
    "rank_nan_first": _floats(prelude("rank_nan_first")),
    "of_rank_nan_last": _integers(of_bits("of_rank_nan_last")),
    "of_rank_nan_first": _integers(of_bits("of_rank_nan_first")),
    "isfinite": _test("1", magnitude("<", _RELATIONAL)),
    "isinf": _test("0", magnitude("==", _EQUALITY)),
    "isnan": _test("0", prelude("isnan")),
    "signbit": _floats(prelude("signbit")),
    "copysign": _floats(builtin("copysign")),
    "rint": _floats(builtin("rint")),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    **{name: _floats(prelude(name)) for name in NEAREST},
    "spacing": _floats(prelude("spacing")),
    "nextafter": _floats(prelude("nextafter")),
    "heaviside": _floats(prelude("heaviside")),
    "ldexp": _integers(prelude("ldexp")),
    "modf_fraction": _floats(prelude("modf_fraction")),
    "modf_integral": _floats(builtin("trunc")),
    "frexp_mantissa": _floats(prelude("frexp_mantissa")),
    "frexp_exponent": _floats(prelude("frexp_exponent")),
    **{op: _floats(prelude(name)) for op, name in _MATHEMATICS.items()},
    **{f"{name}_small": _floats(prelude(f"{name}_small")) for name in ANGULAR},
    "is_large_angle": _floats(prelude("is_large_angle")),
}
