"""What a mask that is known at run time only chooses: `x[mask]`.

How many elements that are depends on data, so that there is no array of them. It is kept as the
whole array with the mask. Elementwise functions compute on the whole, reductions skip what is
masked out, and it can be put back where the same mask has chosen: `y[mask] = x[mask] * 2`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import describe
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.arrays import assigned_value
from tinyfuse.trace.builder import active
from tinyfuse.trace.elementwise import call_ufunc
from tinyfuse.trace.index_keys import Key, basic_part
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import (
    cast,
    reshape,
    shape_text,
    stretch_atom,
    traced,
    type_text,
)
from tinyfuse.trace.outputs import broadcasts
from tinyfuse.trace.same import same_value
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.unknown_lengths import UnknownLength

REMEDY = (
    "the shape of x[mask] depends on data: compute on all elements and choose with np.where(mask, "
    "x, other), reduce it (x[mask].sum()), or put it back under the same mask (y[mask] = ...)"
)


def refuse(what: str) -> NoReturn:
    raise errors.DataDependentShapeError(f"{what}: {REMEDY}")


class Masked(UnknownLength):
    """The elements of an array where a mask is true, along one axis in place of the mask's.

    Stands for an ndarray. _whole: all elements. _mask: the mask's atom. _at: the first axis of the
    whole that it takes. _place: where it was first chosen, in the user's code.
    """

    __slots__ = ("_at", "_mask", "_place", "_whole")

    _words: ClassVar = {
        "setitem": "x[mask][...] = value, which writes into a copy",
        "array": "x[mask] stands where an array is needed",
        "len": "len(x[mask]) is np.count_nonzero(mask)",
        "iter": "a loop over x[mask]",
        "bool": "the truth of x[mask]",
    }

    def __init__(self, whole: Tracer, mask: Atom, at: int) -> None:
        self._whole = whole
        self._mask = mask
        self._at = at
        self._place = active().place()

    @property
    def _atom(self) -> Atom:
        return self._whole._atom

    @property
    def _builder(self) -> Any:
        return self._whole._builder

    @property
    def _taken(self) -> int:
        """How many axes of the whole the mask takes."""
        return len(self._mask.shape)

    @property
    def _behind(self) -> int:
        """How many axes come after those."""
        return self._whole.ndim - self._at - self._taken

    @property
    def _spread(self) -> Atom:
        """The mask, broadcasting against the whole."""
        return spread(self._mask, self._behind)

    def _like(self, whole: Tracer) -> Masked:
        like = Masked(whole, self._mask, self._at)
        like._place = self._place
        return like

    @property
    def dtype(self) -> np.dtype:
        return self._whole.dtype

    @property
    def ndim(self) -> int:
        return self._whole.ndim - self._taken + 1

    def astype(self, dtype: Any, **options: Any) -> Masked:
        return self._like(self._whole.astype(dtype, **options))

    def copy(self, order: str = "C") -> Masked:
        return self._like(self._whole)

    def __getitem__(self, index: Any) -> Any:
        return operate(_part, self, index)

    def _refuse(self, what: str) -> NoReturn:
        refuse(what)

    def _ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
        return _call_ufunc(ufunc, method, inputs, kwargs)

    def _function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return _call_function(function, args, kwargs)

    def _attribute(self, name: str) -> Any:
        return operate(refuse, f"x[mask].{name}")

    def __repr__(self) -> str:
        return f"Masked({describe(self._whole.shape, self.dtype)})"


def spread(mask: Atom, behind: int) -> Atom:
    if type(mask) is Literal or not behind or not mask.shape:
        return mask
    return active().emit(p.reshape, mask, shape=(*mask.shape, *(1,) * behind))


# -- x[mask], x[mask] = v


def _mask_of(key: Key) -> Any:
    mask = key.masks[0]
    if len(key.masks) > 1 or key.positions or key.place != mask.at:
        refuse("a mask and other arrays in one index")
    return mask


def masked(x: Tracer, key: Key) -> Masked:
    mask = _mask_of(key)
    whole = Tracer(active(), basic_part(x, key)._atom)
    return Masked(whole, mask.values._atom, mask.at)


def set_masked(target: Tracer, key: Key, value: Any) -> None:
    mask = _mask_of(key)
    part = target if key.is_whole else target[(*key.basic, ...)]  # type: ignore[index]
    chosen = Masked(part, mask.values._atom, mask.at)
    if type(value) is Masked:
        _require_same_mask(chosen, value)
        new = cast(value._whole, target.dtype)
    else:
        new = _fitting(chosen, assigned_value(value, target.dtype))
    part._assign(_chosen(chosen, new))


def _fitting(chosen: Masked, value: Tracer) -> Tracer:
    """A value beside the whole array, with axes of size 1 where the mask chooses.

    Raises DataDependentShapeError where it is to be as long as what the mask chooses.
    """
    shape = value.shape
    while len(shape) > chosen.ndim and shape[0] == 1:
        shape = shape[1:]
    at = len(shape) - chosen._behind - 1
    if at >= 0:
        if at > chosen._at or shape[at] != 1:
            refuse(f"x[mask] = {_kind(chosen, value)}")
        shape = (*shape[:at], *(1,) * chosen._taken, *shape[at + 1 :])
    if not broadcasts(shape, chosen._whole.shape):
        raise errors.ShapeError(
            f"shape mismatch: value array of shape {shape_text(value.shape)} could not be "
            f"broadcast to what a mask chooses of {type_text(chosen._whole)}"
        )
    return reshape(value, shape)


def _kind(chosen: Masked, value: Tracer) -> str:
    if value.ndim == 1 and not chosen._at:
        return f"an array of {value.size} elements"
    return f"an array of shape {shape_text(value.shape)}"


def _chosen(chosen: Masked, new: Tracer) -> Tracer:
    """The whole array with new elements where the mask is true."""
    whole, atom = chosen._whole, new._atom
    atom = stretch_atom(atom, whole.shape) if atom.shape else atom
    return Tracer(active(), select_atom(chosen._spread, atom, whole._atom, whole.shape))


def _require_same_mask(one: Masked, other: Masked) -> None:
    same = one._at == other._at and one._whole.ndim == other._whole.ndim
    if not same or not same_value(active(), one._mask, other._mask):
        refuse("x[mask] meets what another mask has chosen")


# -- x[mask][index], with what the same mask has chosen


def _part(x: Masked, index: Any) -> Masked:
    if type(index) is not Masked or index.dtype != np.bool_ or index._behind or x._at:
        refuse("x[mask][...]")
    if not same_value(active(), x._mask, index._mask):
        refuse("x[mask] is indexed with what another mask has chosen")
    both = index._whole & Tracer(active(), x._mask)  # type: ignore[operator]
    return Masked(x._whole, both._atom, 0)


def taken_from(table: Tracer, index: Masked) -> Masked:
    """`table[index]` for integers that a mask has chosen; those that it has not count as 0."""
    zero = Literal(index.dtype.type(0))
    atom = select_atom(index._spread, index._atom, zero, index._whole.shape)
    found = table[Tracer(active(), atom)]  # type: ignore[index]
    return Masked(found, index._mask, index._at)


# -- functions


def _call_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    like = next(value for value in inputs if type(value) is Masked)
    options = {key: value for key, value in kwargs.items() if value is not None}
    out = options.pop("out", (None,))[0]
    if method != "__call__" or ufunc.signature or (out is not None and type(out) is not Masked):
        refuse(f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method} of x[mask]")
    wholes = [_operand(ufunc, like, value) for value in inputs]
    made = call_ufunc(ufunc, "__call__", wholes, options)
    if isinstance(made, tuple):
        return tuple([like._like(each) for each in made])
    if out is None:
        return like._like(made)
    out._whole = _as_output(ufunc, made, out)
    return out


def _as_output(ufunc: np.ufunc, made: Tracer, out: Masked) -> Tracer:
    """In place: `part = x[mask]; part += y` changes the elements that were copied."""
    if made.shape != out._whole.shape:
        raise errors.ShapeError(
            f"what a mask has chosen of {type_text(out._whole)} can't hold "
            f"np.{ufunc.__name__} of it and a larger array"
        )
    if not np.can_cast(made.dtype, out.dtype, "same_kind"):
        raise errors.DtypeError(
            f"Cannot cast ufunc '{ufunc.__name__}' output from {made.dtype!r} to {out.dtype!r} "
            "with casting rule 'same_kind'"
        )
    return cast(made, out.dtype)


def _operand(ufunc: np.ufunc, like: Masked, value: Any) -> Any:
    if type(value) is Masked:
        _require_same_mask(like, value)
        return _harmless(value) if ufunc in _CHECKED else value._whole
    if type(value) in (int, float, bool):
        return value
    x = traced(value)
    return value if x.ndim <= like._behind else _beside(ufunc, like, x)


def _beside(ufunc: np.ufunc, like: Masked, x: Tracer) -> Tracer:
    """An array with an axis of size 1 where the other one has what its mask chooses."""
    at = x.ndim - like._behind - 1
    if at > like._at or x.shape[at] != 1:
        refuse(f"np.{ufunc.__name__} of x[mask] and an array of shape {shape_text(x.shape)}")
    return reshape(x, (*x.shape[:at], *(1,) * like._taken, *x.shape[at + 1 :]))


_CHECKED = (np.power,)  # what raises for some elements


def _harmless(value: Masked) -> Tracer:
    """1 in place of what is masked out."""
    one = Literal(value.dtype.type(1))
    atom = select_atom(value._spread, value._atom, one, value._whole.shape)
    return Tracer(active(), atom)


def _call_function(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    implementation = FUNCTIONS.get(function)
    if implementation is None or not args or type(args[0]) is not Masked:
        refuse(f"np.{function.__name__} of x[mask]")
    return implementation(*args, **kwargs)


# Functions of numpy whose first argument may be what a mask has chosen.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
