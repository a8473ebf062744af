"""`ufunc.at`: an operation at places that may come several times, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.advanced_indexing import Taken
from tinyfuse.trace.arrays import holds_tracer, joined_array
from tinyfuse.trace.elementwise import METHODS
from tinyfuse.trace.index_keys import Key, basic_part, take_apart
from tinyfuse.trace.known import known_value
from tinyfuse.trace.masks import Masked
from tinyfuse.trace.operations import cast, traced, type_text
from tinyfuse.trace.promotion import operations, resolve
from tinyfuse.trace.tracer import Tracer

# Where the result in a narrow integer depends on the operands in that integer only.
_MODULAR = (*(np.add, np.subtract, np.multiply, np.bitwise_and, np.bitwise_or, np.bitwise_xor),)

# Of float32 operands, rounding to float64 first makes no difference.
_ROUNDED_ONCE = (np.add, np.subtract, np.multiply, np.divide)


def at(ufunc: np.ufunc, a: Any, indices: Any, *operands: Any) -> None:
    """`ufunc.at(a, indices, b)`."""
    if type(a) is not Tracer or a._scalar:
        raise errors.ArgumentTypeError("first operand must be array")
    if len(operands) != ufunc.nin - 1:
        raise errors.InvalidArgumentError(f"{ufunc.__name__}.at takes {ufunc.nin - 1} operands")
    if not operations(ufunc) or ufunc.nout != 1:
        raise errors.UnlistedFunctionError(
            f"np.{ufunc.__name__}.at is not supported on traced arrays"
        )
    key = take_apart(a, indices)
    values = [_operand(each) for each in operands]
    if key.masks or not key.positions or _is_unique(a, key):
        _each_once(ufunc, a, indices, values)
    elif not values:
        raise errors.UnlistedFunctionError(
            f"np.{ufunc.__name__}.at is traced for places that are known while tracing, each once"
        )
    else:
        value = _in_dtype(ufunc, a, values[0])
        Taken(basic_part(a, key), key).write(operations(ufunc)[0], value)


METHODS["at"] = at


def _operand(value: Any) -> Any:
    if type(value) is Masked:
        return value
    if holds_tracer(value) and isinstance(value, (list, tuple)):
        return joined_array(value)
    return traced(np.asarray(value) if type(value) in (int, float, bool, list, tuple) else value)


def _each_once(ufunc: np.ufunc, a: Tracer, indices: Any, values: list[Any]) -> None:
    part = a[indices]  # type: ignore[index]
    made = ufunc(part, *values)
    a[indices] = made.astype(a.dtype)


def _is_unique(a: Tracer, key: Key) -> bool:
    """Whether the positions are known and none comes twice."""
    counted = []
    for each in key.positions:
        known = each.known
        if known is None:
            return False
        counted.append(np.where(known < 0, known + a.shape[each.axis], known))
    extents = [a.shape[each.axis] for each in key.positions]
    try:
        flat = np.ravel_multi_index(np.broadcast_arrays(*counted), extents)
    except ValueError:  # out of range, or of different shapes
        return False
    return len(np.unique(flat)) == flat.size


def _in_dtype(ufunc: np.ufunc, a: Tracer, value: Tracer) -> Tracer:
    """The values in the array's dtype, if numpy's steps in a wider one give the same elements."""
    loop = resolve(ufunc, (a.dtype, value.dtype))
    to = a.dtype
    if (loop.operands, loop.outputs) == ((to, to), (to,)):
        return cast(value, to)
    integers = all(dtype.kind in "iu" for dtype in (to, value.dtype, *loop.operands))
    if integers and ufunc in _MODULAR:
        return cast(value, to)
    known = known_value(value)
    if known is not None and to.kind == "f" and ufunc in _ROUNDED_ONCE:
        with np.errstate(all="ignore"):
            if (known.astype(to).astype(known.dtype) == known).all():
                return cast(value, to)
    raise errors.UnsupportedArgumentError(
        f"np.{ufunc.__name__}.at of {type_text(a)} with {type_text(value)}, where numpy computes "
        f"in {loop.operands[0]}, is not supported: convert the values with astype(np.{to.name})"
    )
