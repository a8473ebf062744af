"""From a graph to stages: equations become element-wise definitions, views become index maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Var
from tinyfuse.graph.merged_axes import merged_axes
from tinyfuse.graph.orders import Steps, reduction_steps
from tinyfuse.stage.expr import Const, Expr, Index
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.stage.layout import AxisMap, output_layouts
from tinyfuse.stage.names import AxisNames, Names, StageName, stage_names
from tinyfuse.stage.rules import RULES
from tinyfuse.stage.views import INDEX_MAPS, Indices, View, axis_indices, split_index, whole

if TYPE_CHECKING:
    from tinyfuse.source import Source


class Part(NamedTuple):
    """A graph that is a part of a larger program: steps of reductions are those of the whole.

    called: the names of inputs that stages have already. returned_as: what copies of values that it
    returns are called.
    """

    name: str
    names: Names
    called: Mapping[Var, StageName]
    steps: Mapping[Eqn, Steps]
    returned_as: Sequence[str]


# A view whose indices have more divisions inside one another than this is computed and stored.
DEEPEST_DIVISION = 2


def build_stages(graph: Graph) -> Stages:
    """The stages of a graph, with the scalar operations and the order of each reduction fixed.

    The graph's views are gone: they are in the indices at which stages read one another. Outputs
    are computed stages, each another one, with the elements of the graph's output in their order.
    """
    graph = merged_axes(graph)
    return built(Builder(graph), graph)


def built(builder: Builder, graph: Graph) -> Stages:
    for eqn in graph.eqns:
        builder.sources = (eqn.source,) if eqn.source else ()
        RULES[eqn.primitive](builder, eqn)
    pairs = zip(graph.outputs, builder.returned_as, strict=False)
    outputs = tuple([builder.output(atom, name) for atom, name in pairs])
    return Stages(builder.name, builder.inputs, _needed(builder.stages, outputs), outputs)


def _needed(stages: Sequence[Stage], outputs: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages without those that hold only indices and that nothing reads."""
    positions = [stage for stage in stages if isinstance(stage.body, Index)]
    if not positions:
        return tuple(stages)
    read = {load.source for stage in stages for load in stage.reads()}.union(outputs)
    return tuple([stage for stage in stages if stage not in positions or stage in read])


class Builder:
    """The stages so far, and for each value of the graph how its elements are read.

    part: of what the graph is a part, if of anything.
    """

    def __init__(self, graph: Graph, part: Part | None = None):
        self.layouts = {} if part else output_layouts(graph)
        self.outputs = frozenset(graph.outputs)
        self.names = part.names if part else Names()
        self.name = part.name if part else self.names.fresh(graph.name)
        called = part.called if part else None
        self.called = stage_names(graph, self.names, INDEX_MAPS, self.layouts, called)
        self.returned_as = part.returned_as if part else repeat("out")
        self.axis_names = AxisNames(self.names)
        self.steps = part.steps if part else reduction_steps(graph)
        self.sources: tuple[Source, ...] = ()
        self.stages: list[Stage] = []
        self.views: dict[Var, View] = {}
        self.inputs = tuple([self._input(var) for var in graph.inputs])
        self._homes = {layout.output: var for var, layout in self.layouts.items()}
        self._returned: dict[Stage, None] = {}
        self._stored: dict[Atom, Stage] = {}  # copies of views

    def _input(self, var: Var) -> Stage:
        name, named = self.called[var].text, var.name is not None
        axes = self.axes(var.shape)
        stage = Stage(name, axes, var.dtype, named=named, constant=var.constant)
        self.views[var] = whole(stage)
        return stage

    def view(self, atom: Atom) -> View:
        """How the elements of an atom are read."""
        return View(Const(atom.value), (), ()) if isinstance(atom, Literal) else self.views[atom]

    def element(self, atom: Atom, indices: Indices) -> Expr:
        """The element of an atom; a literal is the same at all indices."""
        return Const(atom.value) if isinstance(atom, Literal) else self.views[atom].at(indices)

    def axes(self, shape: tuple[int, ...]) -> tuple[Axis, ...]:
        """New axes of these extents, for a stage to keep."""
        names = self.axis_names.kept(len(shape))
        return tuple([Axis(name, extent) for name, extent in zip(names, shape, strict=True)])

    def turns(self, axes: tuple[Axis, ...], shape: tuple[int, ...]) -> list[Axis]:
        """New axes of these extents to reduce over, beside axes that are kept."""
        names = self.axis_names.reduced([axis.name for axis in axes], len(shape))
        return [Axis(name, extent) for name, extent in zip(names, shape, strict=True)]

    def stored(self, atom: Atom) -> Stage:
        """A stage that holds an array as it is, to be read at places that depend on data."""
        view = self.view(atom)
        if view.whole and isinstance(view.base, Stage):
            return view.base
        if atom not in self._stored:
            axes = self.axes(atom.shape)
            name = self.names.fresh("copy")
            self._stored[atom] = self.add(name, axes, view.at(axis_indices(axes)))
        return self._stored[atom]

    def define(self, var: Var, axes: tuple[Axis, ...], body: Expr, **reduction: Any) -> Stage:
        """Add the stage that computes a value of the graph."""
        name, named = self.called[var]
        layout = self.layouts.get(var)
        order = layout.axes if layout else None
        stored = axes if order is None else self._laid_out(order, axes, reduction)
        stage = self.add(name, stored, body, var.dtype, named=named, **reduction)
        self.views[var] = whole(stage) if order is None else View(stage, axes, axis_indices(stored))
        return stage

    def keeps_shape(self, var: Var) -> bool:
        """Whether the stage of a value has to have its axes: it is returned, or laid out."""
        layout = self.layouts.get(var)
        return var in self.outputs or (layout is not None and layout.axes is not None)

    def define_split(
        self,
        var: Var,
        split: Sequence[tuple[int, ...]],
        axes: tuple[Axis, ...],
        body: Expr,
        **reduction: Any,
    ) -> Stage:
        """Add the stage that computes a value of the graph, each axis of which is split into some.

        split: the extents for each axis of the value.
        """
        stage = self.define(var, axes, body, **reduction)
        if len(axes) > len(split):
            logical = self.axes(var.shape)
            indices = zip(axis_indices(logical), split, strict=True)
            parts = [part for index, sizes in indices for part in split_index(index, sizes)]
            self.views[var] = View(stage, logical, tuple(parts))
        return stage

    def _laid_out(
        self, order: AxisMap, axes: tuple[Axis, ...], reduction: Mapping[str, Any]
    ) -> tuple[Axis, ...]:
        """The axes of a stage in the order of a layout, with new ones of one element."""
        rank = len(order)
        used = [axis.name for axis in (*axes, *reduction.get("reduce_axes", ()))]
        names = [*self.axis_names.kept(rank), *self.axis_names.reduced((), len(used) + rank)]
        new = iter([name for name in dict.fromkeys(names) if name not in used])
        return tuple([Axis(next(new), 1) if at is None else axes[at] for at in order])

    def defines(self, var: Var) -> Callable[..., Stage]:
        return partial(self.define, var)

    def add(
        self,
        name: str,
        axes: tuple[Axis, ...],
        body: Expr,
        dtype: np.dtype | None = None,
        **rest: Any,
    ) -> Stage:
        """Add a stage, for the equation at hand. dtype: if it is not that of the body."""
        stage = Stage(name, axes, dtype or body.dtype, body, sources=self.sources, **rest)
        self.stages.append(stage)
        return stage

    def see(self, eqn: Eqn) -> None:
        """Make the output of a view equation readable: through an index map, computing nothing."""
        operand = eqn.inputs[0]
        axes = self.axes(eqn.output.shape)
        index_map = INDEX_MAPS[eqn.primitive]
        indices = index_map(eqn.params, operand.shape, axis_indices(axes))
        view = self.view(operand).seen(axes, indices)
        if view.depth > DEEPEST_DIVISION:
            view = whole(self.add(self.names.fresh("copy"), axes, view.at(axis_indices(axes))))
        self.views[eqn.output] = view

    def output(self, atom: Atom, name: str) -> Stage:
        """The stage that holds an output: its own, or a copy of a view or of what is returned."""
        stage = self._own_stage(atom)
        if stage is None or stage.is_input or stage in self._returned:
            stage = self._copy(atom, self.view(atom), name)
        self._returned[stage] = None
        return stage

    def _own_stage(self, atom: Atom) -> Stage | None:
        """The stage whose elements are those of an atom, at the same indices."""
        laid_out = isinstance(atom, Var) and atom in self._homes
        view = self.views[self._homes[atom]] if laid_out else self.view(atom)  # type: ignore[index]
        own = isinstance(view.base, Stage) and (laid_out or view.whole)
        return view.base if own else None  # type: ignore[return-value]

    def _copy(self, atom: Atom, view: View, called: str) -> Stage:
        axes = self.axes(atom.shape)
        self.sources = view.base.sources if isinstance(view.base, Stage) else ()
        body = view.at(axis_indices(axes))
        if atom in self.called and not view.whole:
            name, named = self.called.pop(atom)
            return self.add(name, axes, body, named=named)
        return self.add(self.names.fresh(called), axes, body)
