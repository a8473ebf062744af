"""Views as index maps: which element of its operand each element of a view is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Primitive
from tinyfuse.graph.orders import axis_groups
from tinyfuse.stage.expr import Const, Expr, Load
from tinyfuse.stage.index import Affine, Axis, affine, flat_index
from tinyfuse.stage.ir import Stage

Indices = tuple[Affine, ...]
ZERO = Affine()

# (parameters, shape of the operand, indices of an element of the view) -> indices into the operand
IndexMap = Callable[[Mapping[str, Any], tuple[int, ...], Indices], Indices]


def axis_indices(axes: Sequence[Axis]) -> Indices:
    """The indices that run over axes; that of an axis of one element is 0."""
    return tuple([ZERO if axis.extent == 1 else affine(axis) for axis in axes])


class View(NamedTuple):
    """An array whose element at `axes` is the element of a stage at `indices`, or a constant.

    What views of views there were is composed already: an element costs one substitution.
    """

    base: Stage | Const
    axes: tuple[Axis, ...]
    indices: Indices
    whole: bool = False  # the stage itself; then `indices` is left out

    def at(self, indices: Indices) -> Expr:
        """The element at these indices."""
        if isinstance(self.base, Const):
            return self.base
        return Load(self.base, indices if self.whole else self._mapped(indices))

    def seen(self, axes: tuple[Axis, ...], indices: Indices) -> View:
        """The view over `axes` whose element is the one of this view at `indices`."""
        return View(self.base, axes, indices if self.whole else self._mapped(indices))

    def _mapped(self, indices: Indices) -> Indices:
        values = dict(zip(self.axes, indices, strict=True))
        return tuple([index.substitute(values) for index in self.indices])

    @property
    def depth(self) -> int:
        """How many divisions stand inside one another in its indices."""
        return max(map(division_depth, self.indices), default=0)


def whole(stage: Stage) -> View:
    """The view of all of a stage."""
    return View(stage, stage.axes, (), whole=True)


def division_depth(index: Affine) -> int:
    inner = [term.index for term, _ in index.terms if not isinstance(term, Axis)]
    return 1 + max(map(division_depth, inner)) if inner else 0


def _broadcast(params: Mapping[str, Any], shape: tuple[int, ...], indices: Indices) -> Indices:
    aligned = indices[len(indices) - len(shape) :]
    return tuple([ZERO if n == 1 else index for n, index in zip(shape, aligned, strict=True)])


def _transpose(params: Mapping[str, Any], shape: tuple[int, ...], indices: Indices) -> Indices:
    of_operand = dict(zip(params["axes"], indices, strict=True))
    return tuple([of_operand[axis] for axis in range(len(shape))])


def _slice(params: Mapping[str, Any], shape: tuple[int, ...], indices: Indices) -> Indices:
    each = zip(params["starts"], params["steps"], indices, strict=True)
    return tuple([index * step + start for start, step, index in each])


def _windows(params: Mapping[str, Any], shape: tuple[int, ...], indices: Indices) -> Indices:
    result = list(indices[: len(shape)])
    for axis, index in zip(params["axes"], indices[len(shape) :], strict=True):
        result[axis] += index
    return tuple(result)


def _reshape(params: Mapping[str, Any], shape: tuple[int, ...], indices: Indices) -> Indices:
    """Only axes that are merged with others cost divisions: those of one group."""
    new = tuple(params["shape"])
    result = [ZERO] * len(shape)
    for old_group, new_group in axis_groups(shape, new) if 0 not in shape else ():
        flat = flat_index([indices[axis] for axis in new_group], [new[axis] for axis in new_group])
        parts = split_index(flat, [shape[axis] for axis in old_group])
        for axis, part in zip(old_group, parts, strict=True):
            result[axis] = part
    return tuple(result)


def split_index(position: Affine, extents: Sequence[int]) -> list[Affine]:
    """The indices of the element at a position in C order."""
    parts: list[Affine] = []
    for extent in reversed(extents[1:]):
        parts.append(position % extent)
        position = position // extent
    return [position, *reversed(parts)] if extents else []


INDEX_MAPS: dict[Primitive, IndexMap] = {
    p.broadcast: _broadcast,
    p.reshape: _reshape,
    p.transpose: _transpose,
    p.slice_: _slice,
    p.windows: _windows,
}
