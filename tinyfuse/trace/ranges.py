"""Arrays that a traced function creates of positions: they stay expressions of these."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import is_supported
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.axes import normalize_axis_index, requested_shape
from tinyfuse.trace.builder import active, state
from tinyfuse.trace.constants import Candidate, positions, range_atom
from tinyfuse.trace.eagerly import UnknownError, as_numpy, as_traced_values
from tinyfuse.trace.elementwise import apply
from tinyfuse.trace.joining import concatenate_, stack
from tinyfuse.trace.new_arrays import array
from tinyfuse.trace.operations import (
    Shape,
    broadcast,
    broadcast_shape,
    cast,
    holds_tracer,
    insert_axes,
    reshape,
    traced,
    transpose,
)
from tinyfuse.trace.operations import (
    copy as copied,
)
from tinyfuse.trace.run_time_ranges import run_time_range
from tinyfuse.trace.selection import promoting, where
from tinyfuse.trace.stand_ins import replace, stand_in_for, stands_in_for
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak_integers import refuse_lengths


def _tracer(atom: Atom) -> Tracer:
    return Tracer(active(), atom)


def along(extent: int, shape: Shape, axis: int) -> Tracer:
    """The positions along one axis of an array of this shape, of which they are views."""
    return _tracer(positions(extent, shape, axis))


# -- one axis

_ENDS = {"start", "stop", "step"}  # as names of arguments


def _as_range(made: np.ndarray, candidates: Sequence[Candidate] = ()) -> Any:
    if not is_supported(made.dtype) or made.ndim != 1:
        return as_traced_values(made)
    return _tracer(range_atom(made, candidates))


@stands_in_for(np.arange)
def arange(*args: Any, like: Any = None, **kwargs: Any) -> Any:
    part = run_time_range(args, {"like": like, **kwargs}) if not kwargs.keys() & _ENDS else None
    if part is not None:
        return part
    refuse_lengths("np.arange", (*args, *kwargs.values()))
    try:
        args, kwargs = as_numpy((args, kwargs))
    except UnknownError:
        raise errors.DataDependentShapeError(
            "np.arange(n) of a traced n has a shape that depends on data: n must be a Python "
            "integer, len(x) or a part of x.shape"
        ) from None
    return _as_range(np.arange(*args, **kwargs))


@stands_in_for(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    try:
        start, stop, num = as_numpy((start, stop, num))
    except UnknownError:
        return _traced_linspace(start, stop, operator.index(num), endpoint, retstep, dtype, axis)
    made, step = np.linspace(start, stop, num, endpoint, retstep=True)
    if made.ndim != 1:
        made, step = np.linspace(start, stop, num, endpoint, dtype=dtype, axis=axis, retstep=True)
        found = as_traced_values(made)
    elif endpoint and len(made) > 2:
        found = _converted(_tracer(_with_last(made, step)), dtype)
    else:
        found = _converted(_as_range(made, [(made[0], step)] if made.size else []), dtype)
    return (found, step) if retstep else found


def _with_last(made: np.ndarray, step: Any) -> Atom:
    """numpy puts in the last element by itself."""
    builder = active()
    inner = made.copy()
    inner[-1] = made.dtype.type(len(made) - 1) * made.dtype.type(step) + made[0]
    atom = range_atom(inner, [(made[0], step)])
    if inner[-1] == made[-1]:
        return atom
    last = Literal(np.int64(len(made) - 1))
    at_end = builder.emit(p.elementwise, positions(len(made)), last, op="equal")
    return builder.emit(p.elementwise, at_end, Literal(made[-1]), atom, op="select")


def _traced_linspace(
    start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    """numpy's own steps."""
    if num < 0:
        raise errors.InvalidArgumentError(f"Number of samples, {num}, must be non-negative.")
    exact = np.result_type(promoting(start), promoting(stop), 0.0)
    first, last = cast(array(start), exact), cast(array(stop), exact)
    shape = broadcast_shape([first, last])
    delta = apply(np.subtract, (last, first))
    counted = cast(_tracer(positions(num)), exact)
    counted = reshape(counted, (num, *(1,) * len(shape)))
    parts = num - 1 if endpoint else num
    step: Any = np.nan
    if parts > 0:
        step = apply(np.divide, (delta, parts))
        whole = apply(np.multiply, (apply(np.divide, (counted, parts)), delta))
        none = apply(np.equal, (step, 0)).any()
        scaled = where(none, whole, apply(np.multiply, (counted, step)))
    else:
        scaled = apply(np.multiply, (counted, delta))
    line = apply(np.add, (scaled, first))
    if endpoint and num > 1:
        at_end = apply(np.equal, (reshape(_tracer(positions(num)), counted.shape), num - 1))
        line = where(at_end, last, line)
    line = _converted(line, dtype)
    line = _moved(line, axis)
    return (line, step) if retstep else line


def _converted(line: Tracer, dtype: Any) -> Tracer:
    if dtype is None:
        return line
    to = np.dtype(dtype)
    return cast(apply(np.floor, (line,)) if to.kind in "iu" else line, to)


def _moved(line: Tracer, axis: int) -> Tracer:
    at = normalize_axis_index(axis, line.ndim)
    order = [*range(1, at + 1), 0, *range(at + 1, line.ndim)]
    return transpose(line, order)


def _of_known(function: Callable[..., Any]) -> None:
    @stands_in_for(function)
    def create(*args: Any, **kwargs: Any) -> Any:
        try:
            args, kwargs = as_numpy((args, kwargs))
        except UnknownError:
            raise errors.UnlistedFunctionError(
                f"np.{function.__name__} of traced values is not among the functions that tinyfuse "
                "traces"
            ) from None
        return as_traced_values(function(*args, **kwargs))


for _function in (
    *(np.logspace, np.geomspace, np.fromiter, np.frombuffer, np.fromstring),
    *(np.hanning, np.hamming, np.blackman, np.bartlett, np.kaiser),
    *(np.tril_indices, np.triu_indices, np.diag_indices, np.mask_indices),
):
    _of_known(_function)


# -- two axes


@stands_in_for(np.eye)
def eye(
    N: Any,  # noqa: N803
    M: Any = None,  # noqa: N803
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    rows = operator.index(N)
    columns = rows if M is None else operator.index(M)
    return _compared(rows, columns, np.equal, operator.index(k), dtype)


@stands_in_for(np.identity)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return eye(n, dtype=float if dtype is None else dtype)


@stands_in_for(np.tri)
def tri(
    N: Any,  # noqa: N803
    M: Any = None,  # noqa: N803
    k: Any = 0,
    dtype: Any = float,
    *,
    like: Any = None,
) -> Any:
    rows = operator.index(N)
    columns = rows if M is None else operator.index(M)
    return _compared(rows, columns, np.greater_equal, operator.index(k), dtype)


def _compared(rows: int, columns: int, ufunc: np.ufunc, k: int, dtype: Any) -> Any:
    """Ones where `row + k` compares so with the column, else zeros."""
    if min(rows, columns) < 0 or not is_supported(np.dtype(dtype)):
        return NotImplemented
    return cast(compared_positions(rows, columns, ufunc, k), np.dtype(dtype))


def compared_positions(rows: int, columns: int, ufunc: np.ufunc, k: int) -> Tracer:
    """Where `row + k` compares so with the column, as bool."""
    row: Tracer = _tracer(positions(rows))
    row = insert_axes(apply(np.add, (row, k)) if k else row, (1,))
    compared: Tracer = apply(ufunc, (row, _tracer(positions(columns))))
    return compared


# -- grids


@stands_in_for(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape, to = requested_shape(dimensions), np.dtype(dtype)
    if not is_supported(to) or min(shape, default=0) < 0 or not shape:
        return NotImplemented
    axes = [_grid_axis(shape, at, to) for at in range(len(shape))]
    if sparse:
        return tuple(axes)
    return stack([broadcast(each, shape) for each in axes])


def _grid_axis(shape: Shape, axis: int, dtype: np.dtype) -> Tracer:
    """The positions along an axis, with size 1 along the others."""
    alone = tuple([extent if at == axis else 1 for at, extent in enumerate(shape)])
    return reshape(cast(_tracer(positions(shape[axis])), dtype), alone)


def fromfunction(
    function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """The function's operations are the user's, each with a place of its own."""
    return function(*stand_in_for(np.indices)(shape, dtype), **kwargs)


replace(np.fromfunction, functools.wraps(np.fromfunction)(fromfunction))


@stands_in_for(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        return NotImplemented
    pieces = [reshape(x, (x.size,)) for x in [traced(array(each)) for each in xi]]
    order = list(range(len(pieces)))
    if indexing == "xy" and len(pieces) > 1:
        order[:2] = [1, 0]
    shaped = [
        insert_axes(x, [axis for axis in range(len(pieces)) if axis != order[at]])
        for at, x in enumerate(pieces)
    ]
    if sparse:
        return tuple([copied(x, "C") for x in shaped]) if copy else shaped
    shape = broadcast_shape(shaped) if shaped else ()
    full = [broadcast(x, shape) for x in shaped]
    return tuple([copied(x, "C") for x in full] if copy else full)


class _Grid:
    """np.mgrid and np.ogrid."""

    def __init__(self, original: Any, sparse: bool) -> None:
        self.__wrapped__ = original
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if state.builder is None:
            return self.__wrapped__[key]
        if not isinstance(key, tuple):
            key = _known(key)
            return _as_range(self.__wrapped__[key], _slice_candidates(key))
        key = _known(key)
        pieces = np.ogrid[key]
        axes = [
            reshape(_as_range(np.ravel(piece), _slice_candidates(part)), piece.shape)
            for piece, part in zip(pieces, key, strict=True)
        ]
        return tuple(axes) if self._sparse else stack(self._broadcast(axes))

    def _broadcast(self, axes: Sequence[Tracer]) -> list[Tracer]:
        shape = broadcast_shape(axes)
        return [broadcast(each, shape) for each in axes]


def _known(key: Any) -> Any:
    _refuse_lengths(key if isinstance(key, tuple) else (key,))
    try:
        return as_numpy(key)
    except UnknownError:
        raise errors.DataDependentShapeError(
            "a grid from or to a traced number has a shape that depends on data: its ends must be "
            "Python numbers, len(x) or parts of x.shape"
        ) from None


def _refuse_lengths(items: Sequence[Any]) -> None:
    for item in items:
        if isinstance(item, slice):
            refuse_lengths("a grid", (item.start, item.stop, item.step))


def _slice_candidates(part: slice) -> list[Candidate]:
    """Where the range may begin, and its step, as numpy computes them."""
    start = 0 if part.start is None else part.start
    step = part.step
    if isinstance(step, complex):
        count = int(abs(step))
        return [(start, (part.stop - start) / (count - 1))] if count > 1 else []
    return [(start, 1 if step is None else step)]


replace(np.mgrid, _Grid(np.mgrid, sparse=False))
replace(np.ogrid, _Grid(np.ogrid, sparse=True))


# -- concatenation by index


class _Concatenator:
    """np.r_ and np.c_ without their texts."""

    def __init__(self, original: Any, columns: bool) -> None:
        self.__wrapped__ = original
        self._columns = columns

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        _refuse_lengths(items)
        if not holds_tracer(list(items)):
            return (
                as_traced_values(self.__wrapped__[key]) if _is_tracing() else self.__wrapped__[key]
            )
        if any(isinstance(item, str) for item in items):
            raise errors.UnsupportedArgumentError(
                "np.r_ with a text among traced arrays is not supported: use np.concatenate"
            )
        pieces = [self._piece(item) for item in items]
        return concatenate_(pieces, -1 if self._columns else 0)

    def _piece(self, item: Any) -> Tracer:
        if isinstance(item, slice):
            item = np.r_[_known(item)]
        x: Tracer = array(item)
        if self._columns:
            return insert_axes(x, range(x.ndim, 2)) if x.ndim else reshape(x, (1, 1))
        return insert_axes(x, range(1 - x.ndim))


def _is_tracing() -> bool:
    return state.builder is not None


replace(np.r_, _Concatenator(np.r_, columns=False))
replace(np.c_, _Concatenator(np.c_, columns=True))
