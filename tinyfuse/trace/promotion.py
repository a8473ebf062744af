"""Which dtypes a ufunc computes in: numpy's own answer, remembered."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOAT32, is_complex, is_half, is_supported
from tinyfuse.errors import UnsupportedDtypeError
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.graph.special_functions import SPECIAL_FUNCTIONS
from tinyfuse.records import dataclass

# A dtype, or the type of a Python number, which gives way to the dtypes of arrays.
OperandKind = np.dtype | type

# The scalar operation of each output of a ufunc.
OPERATIONS: dict[np.ufunc, tuple[str, ...]] = {
    row.evaluate: (row.name,) for row in SCALAR_OPS.values() if isinstance(row.evaluate, np.ufunc)
} | {
    np.divmod: ("floor_divide", "remainder"),
    np.modf: ("modf_fraction", "modf_integral"),
    np.frexp: ("frexp_mantissa", "frexp_exponent"),
}


def operations(ufunc: np.ufunc) -> tuple[str, ...]:
    """The scalar operation of each output of a ufunc of numpy or scipy.special, () if unknown."""
    known = OPERATIONS.get(ufunc, ())
    if not known and ufunc.__name__ in SPECIAL_FUNCTIONS and is_special(ufunc):
        return (ufunc.__name__,)
    return known


def is_special(ufunc: np.ufunc) -> bool:
    """Whether it is scipy.special's: whoever has it has imported scipy, which may not be there."""
    return getattr(sys.modules.get("scipy.special"), ufunc.__name__, None) is ufunc


@dataclass(frozen=True, slots=True)
class Loop:
    """How a ufunc computes: the dtypes of operands and outputs, and the equations' parameters."""

    operands: tuple[np.dtype, ...]
    outputs: tuple[np.dtype, ...]
    params: tuple[Mapping[str, Any], ...]


@cache
def resolve(
    ufunc: np.ufunc,
    kinds: tuple[OperandKind, ...],
    dtype: np.dtype | None = None,
    casting: str = "same_kind",
) -> Loop:
    """The loop that numpy chooses for these operands.

    Raises TypeError with numpy's words where it has none, UnsupportedDtypeError where it computes
    in a dtype that tinyfuse does not have.
    """
    outputs = (None,) * ufunc.nout
    options: dict[str, Any] = {} if casting == "same_kind" else {"casting": casting}
    if dtype is not None:
        options["signature"] = (None,) * ufunc.nin + (dtype,) * ufunc.nout
    found = ufunc.resolve_dtypes((*kinds, *outputs), **options)
    if not any(map(is_half, found[ufunc.nin :])):
        # a predicate: float32 holds all that these do, and the answer is the same
        found = tuple([FLOAT32 if is_half(each) else each for each in found])
    for candidate in found:
        if not is_supported(candidate):
            raise UnsupportedDtypeError(_unsupported(ufunc, kinds, candidate))
    if any(map(is_complex, found)):
        _require_complex(ufunc)
    params = tuple([{"op": name} for name in operations(ufunc)])
    return Loop(found[: ufunc.nin], found[ufunc.nin :], params)


def _require_complex(ufunc: np.ufunc) -> None:
    from tinyfuse.graph.complex_rules import RULES  # only here: few programs need it

    if any(name not in RULES for name in operations(ufunc)):
        raise UnsupportedDtypeError(
            f"np.{ufunc.__name__} of complex numbers is not supported: write it with those that "
            "are, as np.exp, np.log and np.sqrt"
        )


def _unsupported(ufunc: np.ufunc, kinds: tuple[OperandKind, ...], dtype: np.dtype) -> str:
    given = ", ".join(kind.name if isinstance(kind, np.dtype) else kind.__name__ for kind in kinds)
    return (
        f"np.{ufunc.__name__} of {given} computes in {dtype}, which tinyfuse does not support: "
        "convert the operand first, as in x.astype(np.float32)"
    )


def converted_number(value: Any, dtype: np.dtype) -> np.generic:
    """A number as np.pad and np.where convert it: through an array, wrapped where out of range."""
    array: np.ndarray = np.asarray(value)
    number: np.generic = dtype.type(value) if array.dtype == object else _first(array, dtype)
    return number


def _first(array: np.ndarray, dtype: np.dtype) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype)[()]
