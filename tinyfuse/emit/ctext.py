"""Pieces of C: expressions with their precedence, the names of types, constants."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tinyfuse.dtypes import BOOL, FLOATING, SIGNED, UNSIGNED, is_half

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


def enclosed(operand: CText, precedence: int) -> str:
    """The operand's text, in parentheses where it binds less tightly than `precedence`."""
    return operand.text if operand.precedence >= precedence else f"({operand.text})"


def call(function: str, *arguments: str) -> CText:
    return CText(f"{function}({', '.join(arguments)})")


def type_text(dtype: np.dtype, used: dict[str, None]) -> str:
    """The C type of a dtype, with its typedef noted in `used`; 16-bit floats are their bits."""
    name = f"{dtype.name}_t" if is_half(dtype) else C_TYPES[dtype]
    if name.endswith("_t"):
        used[name] = None
    return name


def const_text(value: np.generic, used: dict[str, None]) -> CText:
    """A constant: floating-point ones as the shortest decimal that reads back as the same value."""
    if is_half(value.dtype):
        return CText(f"0x{value.view(np.uint16):04x}")
    if value.dtype.kind == "f":
        return float_text(value)
    if value.dtype.kind == "b":
        return CText(str(int(value)))
    return _integer_text(int(value), value.dtype)


def float_text(value: np.generic) -> CText:
    suffix = float_suffix(value.dtype)
    if np.isnan(value):
        return CText(f'__builtin_nan{suffix}("")')
    text = f"__builtin_inf{suffix}()" if np.isinf(value) else str(np.abs(value)) + suffix
    return CText(f"-{text}", Precedence.UNARY) if np.signbit(value) else CText(text)


def float_suffix(dtype: np.dtype) -> str:
    """What C puts behind a constant, and its library behind a function's name, in this type."""
    return "f" if dtype.itemsize == 4 else ""


def _integer_text(value: int, dtype: np.dtype) -> CText:
    if dtype.kind == "i" and value == np.iinfo(dtype).min and dtype.itemsize >= 4:
        return CText(f"{value + 1} - 1", Precedence.ADDITIVE)  # C has no negative literals
    suffix = "u" if dtype.kind == "u" and dtype.itemsize >= 4 else ""
    return CText(f"{value}{suffix}", Precedence.UNARY if value < 0 else Precedence.PRIMARY)


def is_literal(operand: CText) -> bool:
    """Whether it is an integer constant, which C may take for an int whatever its dtype is."""
    return operand.text.lstrip("-").rstrip("u").isdigit()
