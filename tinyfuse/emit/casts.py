"""The C text of conversions between dtypes."""

from __future__ import annotations

import numpy as np

from tinyfuse.dtypes import BOOL, is_half
from tinyfuse.emit.ctext import (
    SUFFIXES,
    CText,
    Precedence,
    call,
    enclosed,
    float_text,
    is_literal,
    type_text,
)


def cast_text(
    operand: CText, from_dtype: np.dtype, to_dtype: np.dtype, used: dict[str, None]
) -> CText:
    """A conversion, with the result that `numpy.ndarray.astype` has on x86-64.

    A floating-point value that does not fit an integer of 32 or 64 bits, and NaN, give what the
    machine's instructions give, the smallest integer; in narrower integers they wrap around within
    32 bits. To uint64 they wrap around from below, to uint32 within 64 bits (where numpy's answer
    depends on the position in the array).
    """
    if from_dtype == to_dtype:
        return operand
    if is_half(from_dtype) or is_half(to_dtype):
        return _half(operand, from_dtype, to_dtype, used)
    if to_dtype == BOOL:
        return not_zero(operand, from_dtype)
    if from_dtype.kind == "f" and to_dtype.kind != "f":
        return _float_to_integer(operand, from_dtype, to_dtype, used)
    if from_dtype == BOOL and to_dtype.kind == "f":
        operand = converted(operand, np.dtype(np.int32), used)  # else gcc vectorizes few of these
    return converted(operand, to_dtype, used)


def converted(operand: CText, dtype: np.dtype, used: dict[str, None]) -> CText:
    """C's own conversion."""
    text = f"({type_text(dtype, used)}){enclosed(operand, Precedence.UNARY)}"
    return CText(text, Precedence.UNARY)


def not_zero(operand: CText, dtype: np.dtype) -> CText:
    return _against_zero(operand, "!=", dtype)


def is_zero(operand: CText, dtype: np.dtype) -> CText:
    return _against_zero(operand, "==", dtype)


def _against_zero(operand: CText, symbol: str, dtype: np.dtype) -> CText:
    zero = float_text(dtype.type(0)).text if dtype.kind == "f" else "0"
    text = f"{enclosed(operand, Precedence.SHIFT)} {symbol} {zero}"
    return CText(text, Precedence.EQUALITY)


def wide_literal(operand: CText, dtype: np.dtype, used: dict[str, None]) -> CText:
    """The operand, converted if it is a literal of 64 bits, so that C computes in 64 bits."""
    if dtype.itemsize == 8 and is_literal(operand):
        return converted(operand, dtype, used)
    return operand


def _half(operand: CText, from_dtype: np.dtype, to_dtype: np.dtype, used: dict[str, None]) -> CText:
    """From and to 16-bit floats, of which only the conversions are computed."""
    names = [each.name if is_half(each) else SUFFIXES[each] for each in (to_dtype, from_dtype)]
    function = f"tf_{'_of_'.join(names)}"
    used[function] = None
    return call(function, operand.text)


_THROUGH = {
    np.dtype(name): through
    for through, names in {
        "int32": ("int8", "int16", "int32", "uint8", "uint16"),
        "int64": ("int64", "uint32"),
        "uint64": ("uint64",),
    }.items()
    for name in names
}


def _float_to_integer(
    operand: CText, from_dtype: np.dtype, to_dtype: np.dtype, used: dict[str, None]
) -> CText:
    through = _THROUGH[to_dtype]
    function = f"tf_{through}_{SUFFIXES[from_dtype]}"
    used[function] = None
    result = call(function, operand.text)
    return result if through == to_dtype.name else converted(result, to_dtype, used)
