"""The forms that scalar operations have in C: an operator, a call, a select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tinyfuse.dtypes import BOOL, INT64, is_half
from tinyfuse.emit.casts import converted, is_zero, not_zero, wide_literal
from tinyfuse.emit.ctext import (
    SUFFIXES,
    CText,
    Precedence,
    call,
    enclosed,
    float_suffix,
    float_text,
    is_literal,
)


class Operation(NamedTuple):
    """One operation to be written, on operands of `dtypes`, with a result of `dtype`."""

    name: str
    operands: Sequence[CText]
    dtypes: Sequence[np.dtype]
    dtype: np.dtype
    used: dict[str, None]


Form = Callable[[Operation], CText]


# Operators


def infix(symbol: str, precedence: Precedence, operands_bind: Precedence | None = None) -> Form:
    """`a symbol b`. Operands that bind less tightly than `operands_bind` get parentheses.

    By default those that C needs; more where readers, and compilers' warnings, expect them.
    """
    left = operands_bind or precedence
    right = operands_bind or Precedence(precedence + 1)

    def form(operation: Operation) -> CText:
        a, b = _wide(operation)
        second = _unsigned_start(enclosed(b, right))
        return _narrowed(CText(f"{enclosed(a, left)} {symbol} {second}", precedence), operation)

    return form


def prefix(symbol: str) -> Form:
    def form(operation: Operation) -> CText:
        text = _unsigned_start(enclosed(_wide(operation)[0], Precedence.UNARY))
        return _narrowed(CText(f"{symbol}{text}", Precedence.UNARY), operation)

    return form


def _unsigned_start(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _wide(operation: Operation) -> Sequence[CText]:
    """The operands, made such that C computes with 64 bits where the dtype has 64."""
    first, *others = operation.operands
    if all(is_literal(operand) for operand in others):
        return [wide_literal(first, operation.dtypes[0], operation.used), *others]
    return operation.operands


def _narrowed(text: CText, operation: Operation) -> CText:
    """C computes with small integers as ints; numpy wraps around at their own width."""
    dtype = operation.dtype
    if dtype.kind in "iu" and dtype.itemsize < 4:
        return converted(text, dtype, operation.used)
    return text


# gcc and clang ask for parentheses around other operators within these.
bitwise_and = infix("&", Precedence.BITWISE_AND, Precedence.UNARY)
bitwise_or = infix("|", Precedence.BITWISE_OR, Precedence.UNARY)
bitwise_xor = infix("^", Precedence.BITWISE_XOR, Precedence.UNARY)
equal = infix("==", Precedence.EQUALITY, Precedence.SHIFT)
not_equal = infix("!=", Precedence.EQUALITY, Precedence.SHIFT)
add = infix("+", Precedence.ADDITIVE)
multiply = infix("*", Precedence.MULTIPLICATIVE)
logical_not = prefix("!")


# Calls


def builtin(name: str) -> Form:
    """A call to the compiler: `__builtin_floorf` for float32, `__builtin_floor` for float64."""

    def form(operation: Operation) -> CText:
        function = f"__builtin_{name}{float_suffix(operation.dtypes[0])}"
        return call(function, *[operand.text for operand in operation.operands])

    return form


def prelude(name: str) -> Form:
    """A call to a function of the prelude."""

    def form(operation: Operation) -> CText:
        function = f"tf_{name}_{SUFFIXES[operation.dtypes[0]]}"
        operation.used[function] = None
        return call(function, *[operand.text for operand in operation.operands])

    return form


def of_bits(name: str) -> Form:
    """A call to a function of the prelude named after its result, a floating-point value."""

    def form(operation: Operation) -> CText:
        function = f"tf_{name}_{SUFFIXES[operation.dtype]}"
        operation.used[function] = None
        return call(function, operation.operands[0].text)

    return form


# Other expressions


def identity(operation: Operation) -> CText:
    return operation.operands[0]


def constant(text: str) -> Form:
    """The same for every value."""
    return lambda operation: CText(text)


def truths(form: Form) -> Form:
    """A form for bools, applied to whether each operand is not zero."""

    def of_truths(operation: Operation) -> CText:
        pairs = zip(operation.operands, operation.dtypes, strict=True)
        operands = [not_zero(operand, dtype) for operand, dtype in pairs]
        return form(operation._replace(operands=operands, dtypes=[BOOL] * len(operands)))

    return of_truths


def zero(operation: Operation) -> CText:
    return is_zero(operation.operands[0], operation.dtypes[0])


def magnitude(symbol: str, precedence: Precedence) -> Form:
    """How |x| compares with infinity."""

    def form(operation: Operation) -> CText:
        suffix = float_suffix(operation.dtypes[0])
        size = f"__builtin_fabs{suffix}({operation.operands[0].text})"
        return CText(f"{size} {symbol} __builtin_inf{suffix}()", precedence)

    return form


def times(numerator: float, denominator: float) -> Form:
    """x times a constant quotient, which is computed in the type of x, as numpy does."""

    def form(operation: Operation) -> CText:
        number = operation.dtype.type
        factor = float_text(number(numerator) / number(denominator)).text
        x = enclosed(operation.operands[0], Precedence.MULTIPLICATIVE)
        return CText(f"{x} * {factor}", Precedence.MULTIPLICATIVE)

    return form


def reciprocal(operation: Operation) -> CText:
    x = enclosed(operation.operands[0], Precedence.UNARY)
    one = float_text(operation.dtype.type(1)).text
    return CText(f"{one} / {x}", Precedence.MULTIPLICATIVE)


def square(operation: Operation) -> CText:
    """`x * x` where x is a name, else a function, so that its text is not doubled."""
    (x,) = operation.operands
    if not x.text.isidentifier():
        return prelude("square")(operation)
    return multiply(operation._replace(operands=[x, x], dtypes=[operation.dtypes[0]] * 2))


def select(operation: Operation) -> CText:
    condition, chosen, other = operation.operands
    if is_literal(other):
        chosen = wide_literal(chosen, operation.dtype, operation.used)
    test = enclosed(condition, Precedence.EQUALITY)
    middle = enclosed(chosen, Precedence.LOGICAL_OR)
    return CText(f"{test} ? {middle} : {other.text}", Precedence.CONDITIONAL)


def prelude_select(operation: Operation) -> CText:
    """A select by a function of the prelude, whose operands are all evaluated."""
    dtype = np.dtype(np.uint16) if is_half(operation.dtype) else operation.dtype
    function = f"tf_select_{'uint8' if dtype == BOOL else SUFFIXES[dtype]}"
    operation.used[function] = None
    return call(function, *[operand.text for operand in operation.operands])


def integer_fma(operation: Operation) -> CText:
    """a * b + c in the arithmetic of integers, which wraps around once at the end."""
    a, b, c = operation.operands
    factors = operation._replace(operands=[a, b], dtypes=operation.dtypes[:2], dtype=INT64)
    product = multiply(factors)
    return add(operation._replace(operands=[product, c], dtypes=operation.dtypes[1:]))


def bool_fma(operation: Operation) -> CText:
    a, b, c = operation.operands
    both = bitwise_and(operation._replace(operands=[a, b]))
    return bitwise_or(operation._replace(operands=[both, c]))


# Comparisons


def comparison(symbol: str, precedence: Precedence, mixed: str) -> Form:
    """`a symbol b`, and for int64 with uint64 functions that compare by value.

    mixed: what to call with a and b of int64 and uint64, `!` before it for the opposite; then the
    same for a and b of uint64 and int64, where b comes first.
    """
    plain = infix(symbol, precedence, Precedence.SHIFT)
    signed_first, unsigned_first = (_by_value(text) for text in mixed.split())

    def form(operation: Operation) -> CText:
        first, second = operation.dtypes
        if first == second:
            return plain(operation)
        return signed_first(operation) if first.kind == "i" else unsigned_first(operation)

    return form


def _by_value(name: str) -> Form:
    function = f"tf_{name.lstrip('!')}_int64_uint64"
    negated = name.startswith("!")

    def form(operation: Operation) -> CText:
        operation.used[function] = None
        signed_last = operation.dtypes[0].kind == "u"
        operands = [operand.text for operand in operation.operands]
        text = call(function, *(operands[::-1] if signed_last else operands))
        return CText(f"!{text.text}", Precedence.UNARY) if negated else text

    return form


def bool_order(combine: Form, negated: int) -> Form:
    """An order of bools: `(!a) & b`, in the parentheses that compilers ask for."""

    def form(operation: Operation) -> CText:
        operands = list(operation.operands)
        operands[negated] = CText(f"(!{enclosed(operands[negated], Precedence.UNARY)})")
        return combine(operation._replace(operands=operands))

    return form
