"""np.pad."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Literal
from tinyfuse.trace.axes import normalize_axis_tuple
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.operations import (
    broadcast,
    cast,
    concatenate,
    copy,
    reshape,
    slice_axis,
    traced,
)
from tinyfuse.trace.stand_ins import NUMPY
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat


@listed(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tracer:
    x = traced(array)
    widths = _pad_widths(pad_width, x.ndim)
    if mode == "empty":  # numpy leaves the elements open
        mode = "constant"
    if mode == "constant":
        return _pad_constant(x, widths, **kwargs)
    for axis, width in enumerate(widths):
        if any(width) and not x.shape[axis]:
            raise errors.InvalidArgumentError(
                f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
            )
    if mode == "linear_ramp":
        return _pad_ramp(x, widths, **kwargs)
    if mode in _STATISTICS:
        return _pad_statistic(x, widths, _STATISTICS[mode], **kwargs)
    if mode not in _INDEX_MODES:
        raise errors.UnsupportedArgumentError(
            f"np.pad(..., mode={mode!r}) is not supported; supported are constant, empty, "
            + ", ".join([*_INDEX_MODES, *_STATISTICS, "linear_ramp"])
        )
    if kwargs.get("reflect_type", "even") != "even":
        raise errors.UnsupportedArgumentError(
            "np.pad(..., reflect_type='odd') is not supported: join the parts with np.concatenate, "
            "2 * x[0] - x[n:0:-1] in front for instance"
        )
    if not any(map(any, widths)):
        return copy(x)
    for axis, width in enumerate(widths):
        if width != (0, 0):
            x = _pad_from_inside(x, axis, width, mode)
    return x


_STATISTICS: dict[str, Any] = {
    "maximum": np.max,
    "mean": np.mean,
    "median": np.median,
    "minimum": np.min,
}
_INDEX_MODES = ("edge", "reflect", "symmetric", "wrap")
Width = tuple[int, int]


def _pad_widths(pad_width: Any, ndim: int) -> list[Width]:
    if isinstance(pad_width, dict):
        pairs: list[Any] = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            pairs[normalize_axis_tuple(axis, ndim)[0]] = tuple(np.broadcast_to(width, 2))
    else:
        if np.min(pad_width, initial=0) < 0:
            raise errors.InvalidArgumentError("index can't contain negative values")
        pairs = np.broadcast_to(pad_width, (ndim, 2)).tolist()
    widths = [(operator.index(before), operator.index(after)) for before, after in pairs]
    if any(min(width) < 0 for width in widths):
        raise errors.InvalidArgumentError("index can't contain negative values")
    return widths


def _pad_constant(x: Tracer, widths: list[Width], constant_values: Any = 0) -> Tracer:
    if not any(map(any, widths)):
        return copy(x)
    if type(constant_values) in (Tracer, TracedFloat):
        return _padded(x, widths, reshape(cast(traced(constant_values), x.dtype), ())._atom)
    fills = _fills(x, constant_values)
    if len({fill.tobytes() for pair in fills for fill in pair}) < 2:
        return _padded(x, widths, fills[0][0])
    for axis, (width, (before, after)) in enumerate(zip(widths, fills, strict=True)):
        x = _padded(x, _only(axis, (width[0], 0), x.ndim), before)
        x = _padded(x, _only(axis, (0, width[1]), x.ndim), after)
    return x


def _fills(x: Tracer, constant_values: Any) -> list[tuple[np.generic, np.generic]]:
    """What numpy fills in before and after along each axis: looked up in a small array it pads."""
    with np.errstate(all="ignore"):
        padded = np.pad(np.zeros((1,) * x.ndim, x.dtype), 1, constant_values=constant_values)
    middle = (1,) * x.ndim
    places = [(middle[:axis], middle[axis + 1 :]) for axis in range(x.ndim)]
    return [(padded[(*low, 0, *high)], padded[(*low, 2, *high)]) for low, high in places]


def _only(axis: int, width: Width, ndim: int) -> list[Width]:
    return [width if at == axis else (0, 0) for at in range(ndim)]


def _padded(x: Tracer, widths: list[Width], fill: Atom | np.generic) -> Tracer:
    if not any(map(any, widths)):
        return x
    value = Literal(fill) if isinstance(fill, np.generic) else fill
    before, after = zip(*widths, strict=True)
    builder = active()
    return Tracer(builder, builder.emit(p.pad, x._atom, value, before=before, after=after))


def _pad_from_inside(x: Tracer, axis: int, width: Width, mode: str) -> Tracer:
    """Padding made of the array's own elements: numpy says which, for one axis."""
    places = np.pad(np.arange(x.shape[axis]), width, mode=mode)  # type: ignore[call-overload]
    return concatenate([_run(x, axis, run) for run in _runs(places.tolist())], axis)


def _runs(places: list[int]) -> Iterator[list[int]]:
    """Cuts a list of positions into runs with steps of 1, -1 or 0."""
    run: list[int] = []
    for place in places:
        step = place - run[-1] if run else 0
        if (len(run) > 1 and step != run[1] - run[0]) or (run and abs(step) > 1):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _run(x: Tracer, axis: int, run: list[int]) -> Tracer:
    step = run[1] - run[0] if len(run) > 1 else 1
    if step:
        return slice_axis(x, axis, run[0], len(run), step)
    shape = (*x.shape[:axis], len(run), *x.shape[axis + 1 :])
    return broadcast(slice_axis(x, axis, run[0], 1), shape)


# -- what edges and statistics give: the steps of numpy's own functions, one axis after the other


def _pad_ramp(x: Any, widths: list[Width], end_values: Any = 0) -> Tracer:
    ends = np.broadcast_to(np.asarray(end_values), (x.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        first, last = _at(x, axis, 0), _at(x, axis, x.shape[axis] - 1)
        options = {"endpoint": False, "dtype": x.dtype, "axis": axis}
        left = NUMPY.linspace(ends[axis, 0], first, num=before, **options)
        right = NUMPY.linspace(ends[axis, 1], last, num=after, **options)
        x = np.concatenate([left, x, np.flip(right, axis)], axis)
    return copy(x)


def _at(x: Any, axis: int, place: int) -> Any:
    return np.squeeze(slice_axis(x, axis, place, 1), axis)


def _pad_statistic(
    x: Any, widths: list[Width], statistic: Callable[..., Any], stat_length: Any = None
) -> Tracer:
    lengths = np.broadcast_to(np.asarray(stat_length), (x.ndim, 2))
    for axis, width in enumerate(widths):
        extent = x.shape[axis]
        counts = [extent if each is None else min(each, extent) for each in lengths[axis]]
        if min(counts) < 1 and statistic in (np.max, np.min):
            raise errors.InvalidArgumentError("stat_length of 0 yields no value for padding")
        parts = [slice_axis(x, axis, 0, counts[0])]
        parts.append(slice_axis(x, axis, extent - counts[1], counts[1]))
        shapes = [(*x.shape[:axis], count, *x.shape[axis + 1 :]) for count in width]
        left, right = [
            broadcast(_rounded(statistic(part, axis=axis, keepdims=True), x.dtype), shape)
            for part, shape in zip(parts, shapes, strict=True)
        ]
        x = concatenate([left, x, right], axis)
    return copy(x)


def _rounded(value: Any, dtype: np.dtype) -> Tracer:
    whole: Tracer = (np.rint(value) if dtype.kind in "iu" else value).astype(dtype)
    return whole
