"""Writes into arrays given as `out=`, and what is put into an array in general."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL, describe
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom
from tinyfuse.trace.builder import active, leaked
from tinyfuse.trace.cells import require_writable, write
from tinyfuse.trace.operations import Shape, cast_atom, reshape, shape_text, size_of, traced
from tinyfuse.trace.tracer import Tracer

# -- elements that fit


def fitted_atom(x: Tracer, dtype: np.dtype, shape: Shape) -> Atom:
    """Converted without asking, and stretched. Leading axes of size 1 may be too many."""
    own = x.shape
    while len(own) > len(shape) and own[0] == 1:
        own = own[1:]
    if not broadcasts(own, shape):
        raise errors.ShapeError(
            f"could not broadcast input array from shape {shape_text(x.shape)} into shape "
            f"{shape_text(shape)}"
        )
    return full_atom(cast_atom(reshape(x, own)._atom, dtype), shape)


def full_atom(atom: Atom, shape: Shape) -> Atom:
    """Stretched to this shape, a literal as well."""
    return atom if atom.shape == shape else active().emit(p.broadcast, atom, shape=shape)


def broadcasts(shape: Shape, to: Shape) -> bool:
    if len(shape) > len(to):
        return False
    pairs = zip(shape[::-1], to[::-1], strict=False)
    return all(extent in (1, wanted) for extent, wanted in pairs)


# -- out=

_READ_ONLY = "output array is read-only"


def require_array(out: Any) -> None:
    """Raises unless this is a traced array that can be written."""
    require_traced(out, "return arrays must be of ArrayType")
    if out._builder is not active():
        raise leaked()
    require_writable(out, _READ_ONLY)


def require_traced(target: Any, otherwise: str) -> None:
    """Raises unless this is a traced array; otherwise: numpy's words where it is no array."""
    if type(target) is Tracer and not target._scalar:
        return
    if isinstance(target, np.ndarray) and type(target) is not Tracer:
        raise errors.InPlaceWriteError(
            "a traced value is written into an array that was not made by numpy's functions in the "
            "traced function: make it with np.zeros or np.empty there, or pass it as an argument"
        )
    raise errors.ArgumentTypeError(otherwise)


def write_ufunc_output(
    ufunc: np.ufunc,
    outs: Sequence[Any],
    made: Any,
    casting: str = "same_kind",
    mask: Any = True,
) -> Any:
    """Put the results of a ufunc into the arrays given as `out=`, by its rules."""
    values = made if isinstance(made, tuple) else (made,)
    if len(outs) != len(values):
        raise errors.InvalidArgumentError(
            "The 'out' tuple must have exactly one entry per ufunc output"
        )
    for at, (out, value) in enumerate(zip(outs, values, strict=True)):
        if out is not None:
            number = f" {ufunc.nin + at}" if ufunc.nout > 1 else ""
            _require_output(f"ufunc '{ufunc.__name__}' output{number}", out, value, casting)
    results = tuple(
        [
            value if out is None else _put(out, value, mask)
            for out, value in zip(outs, values, strict=True)
        ]
    )
    return results if len(results) > 1 else results[0]


def _require_output(what: str, out: Any, value: Tracer, casting: str) -> None:
    require_array(out)
    if not np.can_cast(value.dtype, out.dtype, casting):  # type: ignore[arg-type]
        raise errors.DtypeError(
            f"Cannot cast {what} from {value.dtype!r} to {out.dtype!r} with casting rule "
            f"'{casting}'"
        )
    if not broadcasts(value.shape, out.shape):
        raise errors.ShapeError(_words_about_shapes(value, out))


def _words_about_shapes(value: Tracer, out: Tracer) -> str:
    try:
        shape = np.broadcast_shapes(value.shape, out.shape)
    except ValueError:
        return (
            "operands could not be broadcast together with shapes "
            f"{shape_text(value.shape)} {shape_text(out.shape)}: out is "
            f"{describe(out.shape, out.dtype)}"
        )
    return (
        f"non-broadcastable output operand with shape {shape_text(out.shape)} doesn't match the "
        f"broadcast shape {shape_text(shape)}"
    )


def _put(out: Tracer, value: Tracer, mask: Any = True) -> Tracer:
    atom = full_atom(cast_atom(value._atom, out.dtype), out.shape)
    if mask is not True:
        atom = chosen_atom(mask, atom, out)
    if size_of(out.shape):
        write(out, atom, _READ_ONLY)
    return out


def chosen_atom(mask: Any, atom: Atom, target: Tracer) -> Atom:
    """The elements of an atom where a mask is true, elsewhere those of the target."""
    shape = target.shape
    atoms = (full_atom(mask_atom(mask, shape), shape), full_atom(atom, shape), target._atom)
    return active().define(p.elementwise, atoms, {"op": "select"}, shape, target.dtype)


def mask_atom(mask: Any, shape: Shape) -> Atom:
    x = traced(mask)
    if x.dtype != BOOL:
        raise errors.DtypeError(
            f"Cannot cast array data from {x.dtype!r} to {BOOL!r} according to the rule 'safe'"
        )
    if not broadcasts(x.shape, shape):
        raise errors.ShapeError(
            f"where= of shape {shape_text(x.shape)} does not broadcast to {shape_text(shape)}"
        )
    return x._atom


# By what rule functions of numpy convert what they put into `out`; others want its very dtype.
_CASTING: dict[Any, Any] = {
    **dict.fromkeys((np.clip, np.concatenate, np.stack), "same_kind"),
    **dict.fromkeys((np.sum, np.prod, np.max, np.min, np.any, np.all), "unsafe"),
    **dict.fromkeys((np.cumsum, np.cumprod, np.nancumsum, np.nancumprod), "unsafe"),
    **dict.fromkeys((np.nansum, np.nanprod, np.nanmax, np.nanmin), "unsafe"),
}


def write_function_output(function: Any, name: str, out: Any, value: Tracer) -> Tracer:
    """Put the result of a function into the array given as `out=`."""
    require_array(out)
    if out.shape != value.shape and not (
        function is np.clip and broadcasts(value.shape, out.shape)
    ):
        raise errors.ShapeError(
            f"{name}: the output array {describe(out.shape, out.dtype)} does not fit the result "
            f"{describe(value.shape, value.dtype)}"
        )
    rule: Any = "unsafe" if isinstance(function, np.ufunc) else _CASTING.get(function)
    if function is np.take and np.can_cast(out.dtype, value.dtype):
        rule = "unsafe"  # numpy takes into a copy of `out` in the dtype of the elements
    if out.dtype != value.dtype and rule is None:
        raise errors.DtypeError(
            f"{name}(..., out=) of {out.dtype}, where the result is {value.dtype}: pass an array "
            "of that dtype"
        )
    if not np.can_cast(value.dtype, out.dtype, rule or "no"):
        raise errors.DtypeError(
            f"Cannot cast array data from {value.dtype!r} to {out.dtype!r} according to the rule "
            f"'{rule}'"
        )
    return _put(out, value)
