"""Operations on float16 and bfloat16: computed in float32, and rounded after each one.

So numpy computes them, and ml_dtypes. Equations that only move elements take them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOAT16, FLOAT32, FLOAT64, is_half
from tinyfuse.errors import UnsupportedDtypeError
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal, Primitive, Var

Define = Callable[..., Var]  # as GraphBuilder.define

# What looks at the bits of a number, or rounds it at each of many steps.
_OF_BITS = ("nextafter", "spacing")
_COMPUTING = (p.elementwise, p.contract, p.sort, p.argsort, p.cumulative, p.scatter)


def is_computed_in_float32(
    primitive: Primitive, atoms: tuple[Atom, ...], params: Mapping[str, Any], dtype: np.dtype
) -> bool:
    """Whether an equation computes with such numbers, rather than move them."""
    dtypes = [dtype, *[atom.dtype for atom in atoms]]
    if primitive is p.cast:
        return _takes_two_steps(atoms[0].dtype, dtype)
    if primitive not in _COMPUTING or params.get("op") in ("select", "set"):
        return False
    return any(map(is_half, dtypes))


def _takes_two_steps(old: np.dtype, new: np.dtype) -> bool:
    """Whether a conversion goes by way of float32: numpy rounds float64 to float16 at once."""
    if not (is_half(old) or is_half(new)) or FLOAT32 in (old, new) or old == new:
        return False
    return (old, new) != (FLOAT64, FLOAT16)


def define_in_float32(
    define: Define,
    primitive: Primitive,
    atoms: tuple[Atom, ...],
    params: Mapping[str, Any],
    shape: tuple[int, ...],
    dtype: np.dtype,
) -> Var:
    """The same as one equation would be, as several.

    Raises UnsupportedDtypeError for what is not computed so.
    """
    if primitive in (p.cumulative, p.scatter) or params.get("op") in _OF_BITS:
        name = dtype.name if is_half(dtype) else next(a for a in atoms if is_half(a.dtype)).dtype
        raise UnsupportedDtypeError(
            f"{params.get('op', primitive.name)} of {name} is not supported: convert the array "
            "before, with astype(np.float32)"
        )
    wide = tuple([_widened(define, atom) for atom in atoms])
    computed = FLOAT32 if is_half(dtype) else dtype
    inner = {**params, "dtype": computed} if "dtype" in params else params
    result = wide[0]
    if primitive is not p.cast or result.dtype != computed:
        result = define(primitive, wide, inner, shape, computed)
    if computed != dtype:
        result = define(p.cast, (result,), {"dtype": dtype}, shape, dtype)
    assert isinstance(result, Var)
    return result


def _widened(define: Define, atom: Atom) -> Atom:
    if not is_half(atom.dtype):
        return atom
    if isinstance(atom, Literal):
        return Literal(np.float32(atom.value))
    return define(p.cast, (atom,), {"dtype": FLOAT32}, atom.shape, FLOAT32)
