"""The stage rule of each primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING

from tinyfuse.dtypes import BOOL
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Eqn, Primitive
from tinyfuse.stage.expr import Cast, Expr, IndexTest, Op, select
from tinyfuse.stage.reductions import contract, reduce
from tinyfuse.stage.views import axis_indices

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
    body = parts.pop()[1]
    for end, element in reversed(parts):
        body = select(IndexTest(indices[axis], None, end), element, body)
    builder.define(eqn.output, axes, body)


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
    p.reduce: reduce,
    p.contract: contract,
}
