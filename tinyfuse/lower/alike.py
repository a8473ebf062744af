"""Kernels that do the same to other arrays: they are lowered, and written in C, once.

A network of a hundred layers has few different ones. Two kernels are alike when one can be told
from the other only by names: stages, axes and arrays are numbered in the order in which they are
met, and what is left of the kernel is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

from tinyfuse.loops.ir import Buffer, Kernel
from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.places import Loop, Places, Site
from tinyfuse.stage.expr import Accumulator, Cast, Const, Expr, Index, IndexTest, Load, Op, walk
from tinyfuse.stage.index import Affine, Axis, Term
from tinyfuse.stage.ir import Stage, sources_of

Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A kernel without its names. stages: those it computes and those it reads, as numbered."""

    key: Key
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A kernel that is lowered. buffers: of the stages that are stored."""

    kernel: Kernel
    form: Form
    buffers: Mapping[Stage, Buffer]

    def again(self, form: Form, buffers: Mapping[Stage, Buffer], name: str) -> Kernel:
        """The kernel of this name that is alike, with its form and buffers."""
        others = dict(zip(self.form.stages, form.stages, strict=True))
        named = {mine.name: other for mine, other in others.items()}
        stages = [named[each] for each in self.kernel.stages]
        given = {
            self.buffers[mine]: buffers[other] for mine, other in others.items() if other in buffers
        }
        return replace(
            self.kernel,
            name=name,
            parameters=tuple([given[buffer] for buffer in self.kernel.parameters]),
            written=frozenset([given[buffer] for buffer in self.kernel.written if buffer in given]),
            stages=tuple([stage.name for stage in stages]),
            sources=sources_of(stages),
            again=self.kernel,
        )


def form_of(places: Places, root: Stage, lanes: Collection[Stage]) -> Form:
    """The form of the kernel that computes a stage; lanes: stages of which rows are halved."""
    return _Numbering(places, root, lanes).form()


class _Numbering:
    def __init__(self, places: Places, root: Stage, lanes: Collection[Stage]):
        self.places, self.lanes = places, lanes
        self.computed = {root, *places.inside(Site(root, None))}
        self.stages: dict[Stage, int] = {}
        self.axes: dict[Axis, int] = {}
        self._number(root)

    def form(self) -> Form:
        parts: list[Hashable] = []
        found: list[Stage] = []
        while len(found) < len(self.stages):
            for stage in [*self.stages][len(found) :]:
                found.append(stage)
                parts.append(self._stage(stage))
        return Form(tuple(parts), tuple(found))

    def _number(self, stage: Stage) -> int:
        number = self.stages.get(stage)
        if number is None:
            number = self.stages[stage] = len(self.stages)
            for axis in (*stage.axes, *stage.reduce_axes):
                self.axes[axis] = len(self.axes)
        return number

    def _stage(self, stage: Stage) -> Key:
        shape = (stage.dtype.char, *[(axis.extent, axis.start) for axis in stage.axes])
        plan = self.places.plans.get(stage)
        if plan is None or not (plan.inlined or stage in self.computed):
            layout = plan and plan.layout
            return ("read", shape, layout and self._loops(layout))
        own = self._definition(stage)
        return (shape, own) if plan.inlined else (shape, own, self._plan(stage))

    def _definition(self, stage: Stage) -> Key:
        init = None if stage.init is None else _constant(stage.init)
        return (
            tuple([(axis.extent, axis.start) for axis in stage.reduce_axes]),
            init,
            stage.order,
            stage.scan and self.axes[stage.scan],
            stage.sort,
            stage.scatter and len(stage.scatter.targets),
            tuple([self._expression(expression) for expression in stage.expressions]),
        )

    # --- where and how it is computed -------------------------------------------------------------

    def _plan(self, stage: Stage) -> Key:
        places, plan = self.places, self.places.plans[stage]
        for inner in places.attached.get(stage, ()):
            self._number(inner)
        prefetch = plan.prefetch
        return (
            self._loops(plan.loops),
            self._place(plan.compute_at),
            self._place(plan.store_at),
            plan.streamed,
            plan.registers,
            plan.ring and (self.axes[plan.ring[0]], plan.ring[1]),
            prefetch
            and (
                self._number(prefetch.source),
                self._loop(prefetch.at),
                self._place(prefetch.ahead),
                prefetch.distance,
            ),
            plan.layout and self._loops(plan.layout),
            stage in self.lanes,
            plan.compute_at and self._kept(stage),
        )

    def _kept(self, stage: Stage) -> Key:
        """Whether a stage is in the memory of the program, and read once the kernel has run."""
        places = self.places
        later = stage in places.outputs or not self.computed.issuperset(places.readers[stage])
        return (places.storage(stage) is None, later)

    def _loops(self, loops: tuple[Loop, ...]) -> Key:
        return tuple([self._loop(loop) for loop in loops])

    def _loop(self, loop: Loop) -> Key:
        axis = self.axes[loop.axis]
        return (axis, loop.step, loop.kind, loop.shifted, loop.padded, loop.fused)

    def _place(self, place: Any) -> Hashable:
        if not isinstance(place, Site):
            return place
        number = self._number(place.stage)
        aligned = tuple([(self.axes[own], self.axes[other]) for own, other in place.aligned])
        return (number, place.loop and self._loop(place.loop), aligned)

    # --- what it computes -------------------------------------------------------------------------

    def _expression(self, root: Expr) -> Key:
        numbers: dict[Expr, int] = {}
        nodes = []
        for node in walk(root):
            nodes.append(_NODES[node.__class__](self, node, numbers))
            numbers[node] = len(numbers)
        return tuple(nodes)

    def load(self, node: Load, numbers: dict[Expr, int]) -> Key:
        data = tuple([numbers[part] for part in node.data])
        indices = tuple([self.index(index) for index in node.indices])
        return (self._number(node.source), data, indices)

    def index(self, index: Affine) -> Key:
        return (index.constant, *[(self._term(term), times) for term, times in index.terms])

    def _term(self, term: Term) -> Hashable:
        if isinstance(term, Axis):
            return self.axes[term]
        return (term.__class__, self.index(term.index), term.divisor)


def _constant(value: Any) -> Key:
    return (value.dtype.char, value.tobytes())


_Node = Callable[[_Numbering, Any, dict[Expr, int]], Key]

_NODES: dict[type[Expr], _Node] = {
    Load: _Numbering.load,
    Op: lambda _, node, numbers: (
        node.name,
        node.dtype.char,
        *[numbers[operand] for operand in node.operands],
    ),
    Const: lambda _, node, numbers: ("constant", *_constant(node.value)),
    Cast: lambda _, node, numbers: ("cast", node.dtype.char, numbers[node.operand]),
    Index: lambda form, node, _: ("index", form.index(node.index)),
    IndexTest: lambda form, node, _: ("test", form.index(node.index), node.low, node.high),
    Accumulator: lambda _, node, numbers: ("so far", node.dtype.char),
}
