"""`ufunc.at`: an operation at places that may come several times, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.trace.advanced_indexing import Taken
from tinyfuse.trace.arrays import joined_array
from tinyfuse.trace.elementwise import METHODS, require_exponents
from tinyfuse.trace.index_keys import Key, basic_part, take_apart
from tinyfuse.trace.known import known_value
from tinyfuse.trace.masks import Masked
from tinyfuse.trace.operations import Shape, cast, holds_tracer, size_of, traced
from tinyfuse.trace.outputs import broadcasts
from tinyfuse.trace.promotion import Loop, operations, resolve
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
        loop = resolve(ufunc, (a.dtype, values[0].dtype))
        narrow = _is_narrow(ufunc, a.dtype, values[0], loop)
        value, dtype = (a.dtype, a.dtype) if narrow else loop.operands[::-1]
        taken = Taken(basic_part(a, key), key)
        _require_fitting(values, taken.result_shape())
        if ufunc is np.power and size_of(taken.result_shape()):
            require_exponents(values[0], loop)
        taken.write(operations(ufunc)[0], cast(values[0], value), dtype)


METHODS["at"] = at


def _operand(value: Any) -> Any:
    if type(value) is Masked:
        return value
    if holds_tracer(value) and isinstance(value, (list, tuple)):
        return joined_array(value)
    return traced(np.asarray(value) if type(value) in (int, float, bool, list, tuple) else value)


def _require_fitting(values: list[Any], shape: Shape) -> None:
    if any(not broadcasts(value.shape, shape) for value in values if type(value) is Tracer):
        raise errors.ShapeError("array is not broadcastable to correct shape")


def _each_once(ufunc: np.ufunc, a: Tracer, indices: Any, values: list[Any]) -> None:
    part: Any = a[indices]  # type: ignore[index]
    if type(part) is not Masked:
        _require_fitting(values, part.shape)
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


def _is_narrow(ufunc: np.ufunc, to: np.dtype, value: Tracer, loop: Loop) -> bool:
    """Whether steps in the array's dtype give the same elements as numpy's in a wider one."""
    if all(dtype.kind in "iu" for dtype in (to, value.dtype, *loop.operands)):
        return ufunc in _MODULAR
    known = known_value(value)
    if known is None or to.kind != "f" or ufunc not in _ROUNDED_ONCE:
        return False
    with np.errstate(all="ignore"):
        return bool((known.astype(to).astype(known.dtype) == known).all())
