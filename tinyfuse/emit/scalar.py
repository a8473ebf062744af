"""The C text of scalar operations, casts and constants.

Each operation is a row of `_RULES`: for bool, signed, unsigned and floating operands the form that it
has in C. A form is an operator where C's meaning is numpy's, else a call to the C library or to a
function of the prelude. What a text needs besides itself (prelude functions, library functions,
typedefs) is entered into `used`, from which `prelude.prelude_text` makes the head of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tinyfuse.dtypes import BOOL, FLOATING, INT64, SIGNED, UNSIGNED

C_TYPES: dict[np.dtype, str] = {
    BOOL: "bool8_t",  # gcc does not vectorize loops that load _Bool
    **{dtype: f"{dtype.name}_t" for dtype in (*SIGNED, *UNSIGNED)},
    **dict(zip(FLOATING, ("float", "double"), strict=True)),
}
# How prelude functions are told apart: tf_maximum_float, tf_floor_divide_int32.
SUFFIXES = {dtype: name.removesuffix("_t") for dtype, name in C_TYPES.items()}


class Precedence(IntEnum):
    """How tightly C operators bind, loosest first."""

    CONDITIONAL = 1
    LOGICAL_OR = 2
    LOGICAL_AND = 3
    BITWISE_OR = 4
    BITWISE_XOR = 5
    BITWISE_AND = 6
    EQUALITY = 7
    RELATIONAL = 8
    SHIFT = 9
    ADDITIVE = 10
    MULTIPLICATIVE = 11
    UNARY = 12
    PRIMARY = 13


class CText(NamedTuple):
    """An expression in C, and the precedence of its outermost operator."""

    text: str
    precedence: int = Precedence.PRIMARY


class Operation(NamedTuple):
    """One operation to be written: what a form gets to see."""

    name: str
    operands: Sequence[CText]
    dtypes: Sequence[np.dtype]
    dtype: np.dtype
    used: dict[str, None]


Form = Callable[[Operation], CText]


def op_text(
    name: str, operands: Sequence[CText], dtypes: Sequence[np.dtype], dtype: np.dtype, used: dict[str, None]
) -> CText:
    """The operation `name` on operands of `dtypes`, with a result of `dtype`.

    `name` is a row of `SCALAR_OPS`, or `fma`. The dtypes must be those of a loop of numpy's ufunc.
    """
    operation = Operation(name, operands, dtypes, dtype, used)
    return _RULES[name][dtypes[-1].kind](operation)


def type_text(dtype: np.dtype, used: dict[str, None]) -> str:
    """The C type of a dtype, with its typedef noted in `used`."""
    name = C_TYPES[dtype]
    if name.endswith("_t"):
        used[name] = None
    return name


def enclosed(operand: CText, precedence: int) -> str:
    """The operand's text, in parentheses where it binds less tightly than `precedence`."""
    return operand.text if operand.precedence >= precedence else f"({operand.text})"


def call(function: str, *arguments: str) -> CText:
    return CText(f"{function}({', '.join(arguments)})")


# Casts


def cast_text(operand: CText, from_dtype: np.dtype, to_dtype: np.dtype, used: dict[str, None]) -> CText:
    """A conversion with numpy's result.

    Floating-point values that do not fit an integer give what x86-64's instructions give: to 32 and
    64 bits the smallest integer, and wrapped around to narrower ones. To uint32, where numpy's answer
    depends on the position in the array, they wrap around within 64 bits.
    """
    if from_dtype == to_dtype:
        return operand
    if to_dtype == BOOL:
        return _not_zero(operand, from_dtype)
    if from_dtype.kind == "f" and to_dtype.kind != "f":
        return _float_to_integer(operand, from_dtype, to_dtype, used)
    return _converted(operand, to_dtype, used)


def _converted(operand: CText, dtype: np.dtype, used: dict[str, None]) -> CText:
    return CText(f"({type_text(dtype, used)}){enclosed(operand, Precedence.UNARY)}", Precedence.UNARY)


def _not_zero(operand: CText, dtype: np.dtype) -> CText:
    zero = _float_text(dtype.type(0)) if dtype.kind == "f" else "0"
    return CText(f"{enclosed(operand, Precedence.RELATIONAL)} != {zero}", Precedence.EQUALITY)


def _float_to_integer(operand: CText, from_dtype: np.dtype, to_dtype: np.dtype, used: dict[str, None]) -> CText:
    through = _CONVERSIONS[to_dtype]
    function = f"tf_{through}_{SUFFIXES[from_dtype]}"
    used[function] = None
    result = call(function, operand.text)
    return result if through == to_dtype.name else _converted(result, to_dtype, used)


_CONVERSIONS = {
    np.dtype(name): through
    for names, through in [
        ("int8 int16 int32 uint8 uint16", "int32"),
        ("int64 uint32", "int64"),
        ("uint64", "uint64"),
    ]
    for name in names.split()
}


# Constants


def const_text(value: np.generic, used: dict[str, None]) -> CText:
    """A constant: floating-point ones as the shortest decimal that reads back as the same value."""
    if value.dtype.kind == "f":
        text = _float_text(value)
    elif value.dtype.kind == "b":
        text = str(int(value))
    else:
        return _integer_text(int(value), value.dtype)
    return CText(text, Precedence.UNARY if text.startswith("-") else Precedence.PRIMARY)


def _float_text(value: np.generic) -> str:
    suffix = "f" if value.dtype.itemsize == 4 else ""
    if np.isnan(value):
        return f'__builtin_nan{suffix}("")'
    if np.isinf(value):
        return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
    return f"{value}{suffix}"


def _integer_text(value: int, dtype: np.dtype) -> CText:
    if dtype.kind == "i" and value == np.iinfo(dtype).min and dtype.itemsize >= 4:
        return CText(f"{value + 1} - 1", Precedence.ADDITIVE)  # C has no negative literals
    suffix = "u" if dtype.kind == "u" and dtype.itemsize >= 4 else ""
    return CText(f"{value}{suffix}", Precedence.UNARY if value < 0 else Precedence.PRIMARY)


# Forms


def _infix(symbol: str, precedence: Precedence, operands_bind: Precedence | None = None) -> Form:
    """`a symbol b`. Operands that bind less tightly than `operands_bind` get parentheses.

    By default those that C needs; more where readers, and compilers' warnings, expect them.
    """
    left = operands_bind or precedence
    right = operands_bind or Precedence(precedence + 1)

    def form(operation: Operation) -> CText:
        a, b = _typed(operation)
        second = enclosed(b, right)
        if second.startswith("-"):
            second = f"({second})"
        text = CText(f"{enclosed(a, left)} {symbol} {second}", precedence)
        return _narrowed(text, operation)

    return form


def _prefix(symbol: str) -> Form:
    def form(operation: Operation) -> CText:
        (a,) = _typed(operation)
        text = enclosed(a, Precedence.UNARY)
        if text.startswith("-"):
            text = f"({text})"
        return _narrowed(CText(f"{symbol}{text}", Precedence.UNARY), operation)

    return form


def _typed(operation: Operation) -> Sequence[CText]:
    """The operands, the first one cast if all are literals that C would compute with as an int."""
    operands = operation.operands
    dtype = operation.dtypes[0]
    if dtype.kind in "iu" and dtype.itemsize == 8 and all(_is_literal(operand) for operand in operands):
        return [_converted(operands[0], dtype, operation.used), *operands[1:]]
    return operands


def _is_literal(operand: CText) -> bool:
    return operand.text.lstrip("-").rstrip("u").isdigit()


def _narrowed(text: CText, operation: Operation) -> CText:
    """C computes with small integers as ints; numpy wraps around at their own width."""
    dtype = operation.dtype
    if dtype.kind in "iu" and dtype.itemsize < 4:
        return _converted(text, dtype, operation.used)
    return text


def _library(name: str) -> Form:
    """A call to the C library: expf for float32, exp for float64."""

    def form(operation: Operation) -> CText:
        function = name + ("f" if operation.dtypes[0].itemsize == 4 else "")
        if not function.startswith("__builtin_"):
            operation.used[function] = None
        return call(function, *(operand.text for operand in operation.operands))

    return form


def _prelude(name: str, *, swapped: bool = False) -> Form:
    """A call to a function of the prelude."""

    def form(operation: Operation) -> CText:
        function = f"tf_{name}_{SUFFIXES[operation.dtypes[0]]}"
        operation.used[function] = None
        arguments = [operand.text for operand in operation.operands]
        return call(function, *(reversed(arguments) if swapped else arguments))

    return form


def _negated(form: Form) -> Form:
    def negation(operation: Operation) -> CText:
        return CText(f"!{enclosed(form(operation), Precedence.UNARY)}", Precedence.UNARY)

    return negation


def _truths(form: Form) -> Form:
    """A form for bools, applied to whether each operand is not zero."""

    def converted(operation: Operation) -> CText:
        pairs = zip(operation.operands, operation.dtypes, strict=True)
        truths = [_not_zero(operand, dtype) for operand, dtype in pairs]
        return form(operation._replace(operands=truths, dtypes=[BOOL] * len(truths)))

    return converted


def _identity(operation: Operation) -> CText:
    return operation.operands[0]


def _constant(text: str) -> Form:
    return lambda operation: CText(text)


def _is_zero(operation: Operation) -> CText:
    text = _not_zero(operation.operands[0], operation.dtypes[0]).text
    return CText(text.replace("!=", "=="), Precedence.EQUALITY)


def _magnitude(symbol: str) -> Form:
    """Whether |x| compares so with infinity."""

    def form(operation: Operation) -> CText:
        suffix = "f" if operation.dtypes[0].itemsize == 4 else ""
        x = operation.operands[0].text
        precedence = Precedence.RELATIONAL if symbol == "<" else Precedence.EQUALITY
        return CText(f"__builtin_fabs{suffix}({x}) {symbol} __builtin_inf{suffix}()", precedence)

    return form


def _times(numerator: float, denominator: float) -> Form:
    """x times a constant quotient, which is computed in the type of x, as numpy does."""

    def form(operation: Operation) -> CText:
        x = enclosed(operation.operands[0], Precedence.MULTIPLICATIVE)
        number = operation.dtype.type
        constant = _float_text(number(numerator) / number(denominator))
        return CText(f"{x} * {constant}", Precedence.MULTIPLICATIVE)

    return form


def _square(operation: Operation) -> CText:
    """`x * x` where x is a name, else a function, so that its text is not doubled."""
    (x,) = operation.operands
    if not x.text.isidentifier():
        return _prelude("square")(operation)
    return _multiply(operation._replace(operands=[x, x], dtypes=[operation.dtypes[0]] * 2))


def _reciprocal(operation: Operation) -> CText:
    x = enclosed(operation.operands[0], Precedence.UNARY)
    one = _float_text(operation.dtype.type(1))
    return CText(f"{one} / {x}", Precedence.MULTIPLICATIVE)


def _fma(operation: Operation) -> CText:
    """a * b + c in the arithmetic of integers, which wraps around."""
    a, b, c = operation.operands
    product = _multiply(operation._replace(operands=[a, b], dtypes=operation.dtypes[:2], dtype=INT64))
    return _add(operation._replace(operands=[product, c], dtypes=operation.dtypes[1:]))


def _fma_bool(operation: Operation) -> CText:
    a, b, c = operation.operands
    both = _and(operation._replace(operands=[a, b]))
    return _or(operation._replace(operands=[both, c]))


def _select(operation: Operation) -> CText:
    condition, chosen, other = operation.operands
    dtype = operation.dtypes[1]
    if dtype.kind in "iu" and dtype.itemsize == 8 and _is_literal(chosen) and _is_literal(other):
        chosen = _converted(chosen, dtype, operation.used)
    test = enclosed(condition, Precedence.EQUALITY)
    middle = enclosed(chosen, Precedence.LOGICAL_OR)
    return CText(f"{test} ? {middle} : {other.text}", Precedence.CONDITIONAL)


def _mixed(name: str, *, signed_first: bool) -> Form:
    """int64 compared with uint64: by three functions, with operands swapped and results negated."""
    names = {"greater": "less_equal", "greater_equal": "less", "not_equal": "equal"}
    mirrored = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
    if not signed_first:
        name = mirrored.get(name, name)
    function = f"tf_{names.get(name, name)}_int64_uint64"

    def form(operation: Operation) -> CText:
        operation.used[function] = None
        arguments = [operand.text for operand in operation.operands]
        text = call(function, *(arguments if signed_first else reversed(arguments)))
        return CText(f"!{text.text}", Precedence.UNARY) if name in names else text

    return form


def _comparison(name: str, symbol: str, precedence: Precedence) -> Form:
    plain = _infix(symbol, precedence, Precedence.SHIFT)
    by_value = {kind: _mixed(name, signed_first=kind == "i") for kind in "iu"}

    def form(operation: Operation) -> CText:
        first, second = operation.dtypes
        return plain(operation) if first is second or first == second else by_value[first.kind](operation)

    return form


_add = _infix("+", Precedence.ADDITIVE)
_multiply = _infix("*", Precedence.MULTIPLICATIVE)
# gcc warns of arithmetic and comparisons without parentheses among these three
_and = _infix("&", Precedence.BITWISE_AND, Precedence.UNARY)
_or = _infix("|", Precedence.BITWISE_OR, Precedence.UNARY)
_xor = _infix("^", Precedence.BITWISE_XOR, Precedence.UNARY)
_equal = _infix("==", Precedence.EQUALITY, Precedence.SHIFT)
_differ = _infix("!=", Precedence.EQUALITY, Precedence.SHIFT)
_not = _prefix("!")


def _bool_order(symbol: str, negated: int) -> Form:
    """An order of bools: `(!a) & b`, in the parentheses that compilers ask for."""
    combine = _and if symbol == "&" else _or

    def form(operation: Operation) -> CText:
        operands = list(operation.operands)
        operands[negated] = CText(f"(!{enclosed(operands[negated], Precedence.UNARY)})")
        return combine(operation._replace(operands=operands))

    return form


def _row(*, b: Form | None = None, i: Form | None = None, u: Form | None = None, f: Form | None = None) -> dict[str, Form]:
    forms = {"b": b, "i": i, "u": u, "f": f}
    return {kind: form for kind, form in forms.items() if form}


def _by(i: Form, u: Form | None = None) -> dict[str, Form]:
    """A row for integers only."""
    return _row(i=i, u=u or i)


def _numbers(form: Form, *, b: Form | None = None) -> dict[str, Form]:
    """A row with one form for integers and floating-point values."""
    return _row(b=b, i=form, u=form, f=form)


def _rounding(name: str) -> dict[str, Form]:
    return _row(b=_identity, i=_identity, u=_identity, f=_library(f"__builtin_{name}"))


def _extremum(name: str, bools: Form) -> dict[str, Form]:
    integers = _prelude(name.replace("fmax", "maximum").replace("fmin", "minimum"))
    return _row(b=bools, i=integers, u=integers, f=_prelude(name))


def _truth(form: Form) -> dict[str, Form]:
    return _numbers(_truths(form), b=form)


_RULES: dict[str, dict[str, Form]] = {
    "add": _numbers(_add, b=_or),
    "subtract": _numbers(_infix("-", Precedence.ADDITIVE)),
    "multiply": _numbers(_multiply, b=_and),
    "negative": _numbers(_prefix("-")),
    "positive": _numbers(_identity),
    "absolute": _row(b=_identity, i=_prelude("absolute"), u=_identity, f=_library("__builtin_fabs")),
    "fabs": _row(f=_library("__builtin_fabs")),
    "sign": _numbers(_prelude("sign")),
    "conjugate": _numbers(_identity),
    "square": _numbers(_square),
    "fma": _row(b=_fma_bool, i=_fma, u=_fma, f=_library("__builtin_fma")),
    "bitwise_and": _row(b=_and, i=_and, u=_and),
    "bitwise_or": _row(b=_or, i=_or, u=_or),
    "bitwise_xor": _row(b=_xor, i=_xor, u=_xor),
    "invert": _row(b=_not, i=_prefix("~"), u=_prefix("~")),
    "left_shift": _by(_prelude("left_shift")),
    "right_shift": _by(_prelude("right_shift")),
    "bitwise_count": _by(_prelude("bitwise_count")),
    "logical_and": _truth(_and),
    "logical_or": _truth(_or),
    "logical_xor": _truth(_differ),
    "logical_not": _numbers(_is_zero, b=_not),
    "equal": _numbers(_comparison("equal", "==", Precedence.EQUALITY), b=_equal),
    "not_equal": _numbers(_comparison("not_equal", "!=", Precedence.EQUALITY), b=_differ),
    "less": _numbers(_comparison("less", "<", Precedence.RELATIONAL), b=_bool_order("&", 0)),
    "less_equal": _numbers(_comparison("less_equal", "<=", Precedence.RELATIONAL), b=_bool_order("|", 0)),
    "greater": _numbers(_comparison("greater", ">", Precedence.RELATIONAL), b=_bool_order("&", 1)),
    "greater_equal": _numbers(_comparison("greater_equal", ">=", Precedence.RELATIONAL), b=_bool_order("|", 1)),
    "isfinite": _row(b=_constant("1"), i=_constant("1"), u=_constant("1"), f=_magnitude("<")),
    "isinf": _row(b=_constant("0"), i=_constant("0"), u=_constant("0"), f=_magnitude("==")),
    "isnan": _row(b=_constant("0"), i=_constant("0"), u=_constant("0"), f=_prelude("isnan")),
    "signbit": _row(f=_prelude("signbit")),
    "copysign": _row(f=_library("__builtin_copysign")),
    "rint": _row(f=_library("__builtin_rint")),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "spacing": _row(f=_prelude("spacing")),
    "nextafter": _row(f=_prelude("nextafter")),
    "heaviside": _row(f=_prelude("heaviside")),
    "fmax": _extremum("fmax", _or),
    "fmin": _extremum("fmin", _and),
    "maximum": _extremum("maximum", _or),
    "minimum": _extremum("minimum", _and),
    "divide": _row(f=_infix("/", Precedence.MULTIPLICATIVE)),
    "reciprocal": {**_by(_prelude("reciprocal")), "f": _reciprocal},
    "sqrt": _row(f=_library("__builtin_sqrt")),
    "degrees": _row(f=_times(180, np.pi)),
    "radians": _row(f=_times(np.pi, 180)),
    "deg2rad": _row(f=_times(np.pi, 180)),
    "rad2deg": _row(f=_times(180, np.pi)),
    "floor_divide": _numbers(_prelude("floor_divide")),
    "remainder": _numbers(_prelude("remainder")),
    "fmod": _row(i=_prelude("fmod"), u=_prelude("remainder"), f=_library("fmod")),
    "ldexp": _by(_prelude("ldexp")),
    "gcd": _by(_prelude("gcd")),
    "lcm": _by(_prelude("lcm")),
    "power": _row(i=_prelude("power"), u=_prelude("power"), f=_library("pow")),
    "float_power": _row(f=_library("pow")),
    "logaddexp": _row(f=_prelude("logaddexp")),
    "logaddexp2": _row(f=_prelude("logaddexp2")),
    "modf_fraction": _row(f=_prelude("modf_fraction")),
    "modf_integral": _row(f=_library("__builtin_trunc")),
    "frexp_mantissa": _row(f=_prelude("frexp_mantissa")),
    "frexp_exponent": _row(f=_prelude("frexp_exponent")),
    "select": _numbers(_select, b=_select),
    **{name: _row(f=_library(name)) for name in "exp exp2 expm1 log log2 log10 log1p cbrt hypot".split()},
    **{name: _row(f=_library(name)) for name in "sin cos tan sinh cosh tanh".split()},
    **{f"arc{name}": _row(f=_library(f"a{name}")) for name in "sin cos tan sinh cosh tanh tan2".split()},
}
