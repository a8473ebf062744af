"""Reductions of what a mask has chosen: `x[mask].sum()` and others, over all or some axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import BOOL
from tinyfuse.trace import averages, reductions
from tinyfuse.trace.axes import reduced_axes
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import FUNCTIONS as LISTED
from tinyfuse.trace.masking import selected
from tinyfuse.trace.masks import FUNCTIONS, Masked
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import elementwise, reduce, reshape
from tinyfuse.trace.placing import check_none
from tinyfuse.trace.tracer import Tracer

# A reduction of the whole array: over these axes, with the mask or True.
Reduction = Callable[..., Tracer]


def _reduced(x: Masked, axis: Any, keepdims: Any, compute: Reduction) -> Any:
    """compute(axes, keepdims, where) reduces the whole array."""
    axes = reduced_axes(axis, x.ndim)
    behind = x._taken - 1
    whole_axes = tuple([at + behind if at > x._at else at for at in axes if at != x._at])
    kept = keepdims is not np._NoValue and bool(keepdims)
    if x._at not in axes:
        before = 0 if kept else sum([at < x._at for at in axes])
        return Masked(compute(whole_axes, kept, True), x._mask, x._at - before)
    taken = range(x._at, x._at + x._taken)
    mask = Tracer(active(), x._spread)
    total = compute(tuple(sorted((*whole_axes, *taken))), kept, mask)
    if not kept:
        return total
    shape = total.shape
    return reshape(total, (*shape[: x._at], 1, *shape[x._at + x._taken :]))


def _by_numpy(whole_reduction: Callable[..., Any], *functions: Callable[..., Any]) -> None:
    """A function that numpy has with `where=`, and the method of that name."""

    def run(a: Masked, axis: Any = None, *args: Any, keepdims: Any = False, **options: Any) -> Any:
        def compute(axes: tuple[int, ...], kept: bool, where: Any) -> Tracer:
            found: Tracer = whole_reduction(
                a._whole, axes, *args, keepdims=kept, where=where, **options
            )
            return found

        return _reduced(a, axis, keepdims, compute)

    _register(functions[0].__name__, run, *functions)


def _register(name: str, run: Callable[..., Any], *functions: Callable[..., Any]) -> None:
    for function in functions:
        FUNCTIONS[function] = run

    def method(self: Masked, *args: Any, **kwargs: Any) -> Any:
        return operate(run, self, *args, **kwargs)

    method.__name__ = name
    setattr(Masked, name, method)


def _truth(name: str, function: Callable[..., Any]) -> None:
    def run(a: Masked, axis: Any = None, *args: Any, keepdims: Any = False) -> Any:
        def compute(axes: tuple[int, ...], kept: bool, where: Any) -> Tracer:
            return reductions.truth(name, a._whole, axes, kept, where)

        return _reduced(a, axis, keepdims, compute)

    _register(name, run, function)


def _extreme(name: str, ufunc: np.ufunc, *functions: Callable[..., Any]) -> None:
    def run(
        a: Masked,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = np._NoValue,
    ) -> Any:
        def compute(axes: tuple[int, ...], kept: bool, where: Any) -> Tracer:
            if where is not True and initial is np._NoValue:
                _require_some(a, ufunc)
            whole = selected(name, a._whole, where)
            return reductions.extreme(name, ufunc, whole, axes, kept, initial)

        return _reduced(a, axis, keepdims, compute)

    _register(name, run, *functions)


def _require_some(x: Masked, ufunc: np.ufunc) -> None:
    """At run time: numpy has no maximum of nothing."""
    chosen = Tracer(active(), x._mask)
    if chosen.ndim:
        chosen = reduce("any", chosen, range(chosen.ndim), BOOL)
    check_none(
        elementwise("logical_not", chosen)._atom,  # type: ignore[arg-type]
        errors.InvalidArgumentError,
        f"zero-size array to reduction operation {ufunc.__name__} which has no identity",
    )


_by_numpy(reductions.sum_, np.sum)
_by_numpy(reductions.prod, np.prod)
_by_numpy(averages.mean, np.mean)
_by_numpy(averages.var, np.var)
_by_numpy(averages.std, np.std)
_truth("any", np.any)
_truth("all", np.all)
_extreme("max", np.maximum, np.max, np.amax)
_extreme("min", np.minimum, np.min, np.amin)


def _count(a: Masked, axis: Any = None, *, keepdims: Any = False) -> Any:
    truth = a.astype(BOOL)

    def compute(axes: tuple[int, ...], kept: bool, where: Any) -> Tracer:
        return reductions.sum_(truth._whole, axes, np.int64, keepdims=kept, where=where)

    return _reduced(truth, axis, keepdims, compute)


FUNCTIONS[np.count_nonzero] = _count


def _without_nan(function: Callable[..., Any]) -> None:
    """A function of numpy's that leaves out NaN too, and has `where=`."""

    def run(a: Masked, axis: Any = None, *args: Any, keepdims: Any = False, **options: Any) -> Any:
        def compute(axes: tuple[int, ...], kept: bool, where: Any) -> Any:
            return LISTED[function](a._whole, axes, *args, keepdims=kept, where=where, **options)

        return _reduced(a, axis, keepdims, compute)

    FUNCTIONS[function] = run


for _function in (np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd):
    _without_nan(_function)
