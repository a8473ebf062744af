"""The stage rule of each primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING

import numpy as np

from tinyfuse.dtypes import BOOL
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Eqn, Primitive
from tinyfuse.graph.shapes import result_dtype
from tinyfuse.stage.expr import (
    Accumulator,
    Cast,
    Expr,
    Index,
    IndexTest,
    Load,
    Op,
    select,
    substitute_leaf,
)
from tinyfuse.stage.index import Affine, Axis, affine
from tinyfuse.stage.ir import Scatter, Sort
from tinyfuse.stage.online_softmax import softmax_contract
from tinyfuse.stage.reductions import contract, reduce
from tinyfuse.stage.views import ZERO, View, axis_indices

if TYPE_CHECKING:
    from tinyfuse.stage.build import Builder

StageRule = Callable[["Builder", Eqn], None]


def _elementwise(builder: Builder, eqn: Eqn) -> None:
    axes = builder.axes(eqn.output.shape)
    indices = axis_indices(axes)
    operands = tuple([builder.element(atom, indices) for atom in eqn.inputs])
    builder.define(eqn.output, axes, Op(eqn.params["op"], operands, eqn.output.dtype))


def _cast(builder: Builder, eqn: Eqn) -> None:
    axes = builder.axes(eqn.output.shape)
    element = builder.element(eqn.inputs[0], axis_indices(axes))
    builder.define(eqn.output, axes, Cast(element, eqn.output.dtype))


def _view(builder: Builder, eqn: Eqn) -> None:
    builder.see(eqn)


def _pad(builder: Builder, eqn: Eqn) -> None:
    array, fill = eqn.inputs
    axes = builder.axes(eqn.output.shape)
    before, after = eqn.params["before"], eqn.params["after"]
    indices = axis_indices(axes)
    inside = [
        IndexTest(index, first or None, first + extent if last else None)
        for index, extent, first, last in zip(indices, array.shape, before, after, strict=True)
        if first or last
    ]
    moved = tuple([index - first for index, first in zip(indices, before, strict=True)])
    body = builder.element(array, moved)
    if inside:
        body = select(_conjunction(inside), body, builder.element(fill, ()))
    builder.define(eqn.output, axes, body)


def _conjunction(tests: Sequence[Expr]) -> Expr:
    return fold(lambda a, b: Op("logical_and", (a, b), BOOL), tests)


def _concat(builder: Builder, eqn: Eqn) -> None:
    axes, axis = builder.axes(eqn.output.shape), eqn.params["axis"]
    indices = axis_indices(axes)
    parts: list[tuple[int, Expr]] = []  # (end along the axis, element)
    start = 0
    for atom in eqn.inputs:
        end = start + atom.shape[axis]
        if end > start or not eqn.output.shape[axis]:
            within = (*indices[:axis], indices[axis] - start, *indices[axis + 1 :])
            parts.append((end, builder.element(atom, within)))
        start = end
    builder.define(eqn.output, axes, _part_at(indices[axis], parts))


def _part_at(index: Affine, parts: Sequence[tuple[int, Expr]]) -> Expr:
    """The one of several elements that is at an index; each stands before an end.

    By halves, so that many of them make no deep expression.
    """
    if len(parts) == 1:
        return parts[0][1]
    middle = len(parts) // 2
    test = IndexTest(index, None, parts[middle - 1][0])
    return select(test, _part_at(index, parts[:middle]), _part_at(index, parts[middle:]))


def _iota(builder: Builder, eqn: Eqn) -> None:
    axes = builder.axes(eqn.output.shape)
    builder.define(eqn.output, axes, Index(axis_indices(axes)[0]))


def _gather(builder: Builder, eqn: Eqn) -> None:
    array, *indices = eqn.inputs
    axes = builder.axes(eqn.output.shape)
    places = axis_indices(axes)
    rank = len(indices[0].shape)
    data = tuple([_place(builder.element(index, places[:rank])) for index in indices])
    source = builder.stored(array)
    builder.define(eqn.output, axes, Load(source, places[rank:], data))


def _place(element: Expr) -> Expr:
    """A position along an axis; the element of an iota is the index itself."""
    if isinstance(element, Load) and isinstance(element.source.body, Index):
        values = dict(zip(element.source.axes, element.indices, strict=True))
        return substitute_leaf(element.source.body, values)
    return element


def _scatter(builder: Builder, eqn: Eqn) -> None:
    array, values, *indices = eqn.inputs
    axes = builder.axes(eqn.output.shape)
    kept = axes[len(indices) :]
    turns = tuple(builder.turns(axes, indices[0].shape))
    places = axis_indices((*turns, *kept))
    value = builder.element(values, places)
    if eqn.params["op"] != "set":
        value = _combined(eqn, value)
    targets = tuple([builder.element(index, places[: len(turns)]) for index in indices])
    scatter = Scatter(builder.element(array, axis_indices(axes)), targets)
    builder.define(eqn.output, axes, value, reduce_axes=turns, scatter=scatter)


def _combined(eqn: Eqn, value: Expr) -> Expr:
    """An element of a scatter, combined with a value."""
    op, dtype, own = eqn.params["op"], np.dtype(eqn.params["dtype"]), eqn.output.dtype
    so_far: Expr = Accumulator(own)
    if dtype != own:
        so_far = Cast(so_far, dtype)
    made = Op(op, (so_far, value), result_dtype(op, (dtype, value.dtype)))
    return made if made.dtype == own else Cast(made, own)


def _update(builder: Builder, eqn: Eqn) -> None:
    array, values = eqn.inputs
    axes = builder.axes(eqn.output.shape)
    places = axis_indices(axes)
    tests: list[Expr] = []
    inside = []
    slices = zip(eqn.params["starts"], eqn.params["steps"], values.shape, strict=True)
    for place, extent, (start, step, count) in zip(places, array.shape, slices, strict=True):
        index, more = _along_slice(place, extent, start, step, count)
        inside.append(index)
        tests += more
    body = builder.element(array, places)
    if 0 not in values.shape:
        value = builder.element(values, tuple(inside))
        body = select(_conjunction(tests), value, body) if tests else value
    builder.define(eqn.output, axes, body)


def _along_slice(
    place: Affine, extent: int, start: int, step: int, count: int
) -> tuple[Affine, list[Expr]]:
    """(the position in a slice of a place along an axis, the tests that it is in the slice)."""
    distance, pace = (place - start, step) if step > 0 else (start - place, -step)
    tests: list[Expr] = []
    if count != extent:
        tests.append(IndexTest(distance, 0, pace * (count - 1) + 1))
    if pace == 1 or count == 1:
        return (distance if count > 1 else ZERO), tests
    turns = -(-extent // pace)  # what is divided must not be negative
    tests.append(IndexTest((distance + turns * pace) % pace, None, 1))
    return (distance + turns * pace) // pace - turns, tests


def _cumulative(builder: Builder, eqn: Eqn) -> None:
    axes = builder.axes(eqn.output.shape)
    element = builder.element(eqn.inputs[0], axis_indices(axes))
    scan = axes[eqn.params["axis"]]
    if scan.extent < 2:
        builder.define(eqn.output, axes, element)
        return
    combined = Op(eqn.params["op"], (Accumulator(element.dtype), element), element.dtype)
    body = select(IndexTest(affine(scan), None, 1), element, combined)
    builder.define(eqn.output, axes, body, scan=scan)


def _sort(builder: Builder, eqn: Eqn) -> None:
    axes = builder.axes(eqn.output.shape)
    if axes[eqn.params["axis"]].extent < 2:
        builder.define(eqn.output, axes, builder.element(eqn.inputs[0], axis_indices(axes)))
    else:
        _sorted(builder, eqn, axes, Sort.ELEMENTS)


def _argsort(builder: Builder, eqn: Eqn) -> None:
    axes = builder.axes(eqn.output.shape)
    if axes[eqn.params["axis"]].extent < 2:
        builder.define(eqn.output, axes, Index(ZERO))
    else:
        _sorted(builder, eqn, axes, Sort.POSITIONS)


def _sorted(builder: Builder, eqn: Eqn, axes: tuple[Axis, ...], sort: Sort) -> None:
    """Rows are sorted where they lie one after the other: another axis is moved to the end."""
    at = eqn.params["axis"]
    element = builder.element(eqn.inputs[0], axis_indices(axes))
    if at == len(axes) - 1:
        builder.define(eqn.output, axes, element, sort=sort)
        return
    turned = (*axes[:at], *axes[at + 1 :], axes[at])
    name = builder.names.fresh(f"{builder.called[eqn.output].text}_rows")
    rows = builder.add(name, turned, element, dtype=eqn.output.dtype, sort=sort)
    builder.views[eqn.output] = View(rows, axes, axis_indices(turned))


RULES: dict[Primitive, StageRule] = {
    p.elementwise: _elementwise,
    p.cast: _cast,
    p.broadcast: _view,
    p.reshape: _view,
    p.transpose: _view,
    p.slice_: _view,
    p.windows: _view,
    p.pad: _pad,
    p.concat: _concat,
    p.iota: _iota,
    p.gather: _gather,
    p.scatter: _scatter,
    p.update: _update,
    p.cumulative: _cumulative,
    p.sort: _sort,
    p.argsort: _argsort,
    p.reduce: reduce,
    p.contract: contract,
    p.softmax_contract: softmax_contract,
}
