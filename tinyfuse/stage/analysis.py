"""What a planner asks about stages: their kind, their work, their readers."""

from __future__ import annotations

from enum import Enum

from tinyfuse.graph.scalar_ops import cost
from tinyfuse.stage.expr import Cast, Const, Expr, Index, IndexTest, Load, Op, walk
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Stage, Stages


class Kind(Enum):
    """How the elements that a stage reads lie to those that it computes.

    ELEMENTWISE: all at the same indices. BROADCAST: as well, but some along fewer axes. INJECTIVE:
    by any other index map, one point at a time. REDUCTION: many points become one. CONTRACTION: a
    reduction of products, whose factors are indexed by different axes. OPAQUE: a whole row becomes
    a row, by a scan or a sort.
    """

    ELEMENTWISE = "elementwise"
    BROADCAST = "broadcast"
    INJECTIVE = "injective"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    OPAQUE = "opaque"


def kind(stage: Stage) -> Kind:
    """The kind of a computed stage, from its index maps."""
    if stage.scan or stage.sort:
        return Kind.OPAQUE
    if stage.reduce_axes:
        return Kind.CONTRACTION if _multiplies(stage) else Kind.REDUCTION
    reads = [load for load in stage.reads() if load.indices]
    if all(_is_same_element(load, stage) for load in reads):
        return Kind.ELEMENTWISE
    if all(_is_along_fewer_axes(load, stage) for load in reads):
        return Kind.BROADCAST
    return Kind.INJECTIVE


def _is_same_element(load: Load, stage: Stage) -> bool:
    return load.source.shape == stage.shape and _is_along_fewer_axes(load, stage)


def _is_along_fewer_axes(load: Load, stage: Stage) -> bool:
    """Whether the indices are axes of the stage in their order, over all of the source, or 0."""
    places = {axis: place for place, axis in enumerate(stage.axes)}
    last = -1
    for index, extent in zip(load.indices, load.source.shape, strict=True):
        axis = only_axis(index)
        if axis is None:
            if not index.is_constant or extent != 1:
                return False
        elif axis.extent != extent or places[axis] <= last:
            return False
        else:
            last = places[axis]
    return True


def moves_with_data(stage: Stage) -> bool:
    """Whether a stage's expression can be computed at places that data decide: no test on an index
    has to run for it, and no division."""
    return not any(
        isinstance(node, IndexTest)
        or any(not isinstance(term, Axis) for index in _indices(node) for term, _ in index.terms)
        for node in walk(_body(stage))
    )


def _indices(node: Expr) -> tuple[Affine, ...]:
    if isinstance(node, Load):
        return node.indices
    return (node.index,) if isinstance(node, Index) else ()


def only_axis(index: Affine) -> Axis | None:
    """The axis that an index is, if it is one."""
    if len(index.terms) != 1 or index.constant or index.terms[0][1] != 1:
        return None
    term = index.terms[0][0]
    return term if isinstance(term, Axis) else None


def _multiplies(stage: Stage) -> bool:
    products = [node for node in walk(_body(stage)) if isinstance(node, Op) and node.name == "fma"]
    return any(
        _axes(product.operands[0], stage) != _axes(product.operands[1], stage)
        for product in products
    )


def _axes(root: Expr, stage: Stage) -> list[Axis]:
    used = {
        axis
        for node in walk(root)
        if isinstance(node, Load)
        for index in node.indices
        for axis in index.axes()
    }
    return [axis for axis in (*stage.axes, *stage.reduce_axes) if axis in used]


def _body(stage: Stage) -> Expr:
    assert stage.body is not None, f"{stage.name} is an input"
    return stage.body


def comparisons(count: int) -> int:
    """How often each of so many elements is compared until they are sorted."""
    return max(1, (count - 1).bit_length())


def point_cost(body: Expr) -> int:
    """The time of an expression in vector code, in additions; shared parts count once."""
    return sum([cost(operation_name(node)) for node in walk(body) if is_operation(node)])


def is_operation(node: Expr) -> bool:
    """Whether a node computes anything: unlike loads, constants and indices."""
    return isinstance(node, (Op, Cast))


def operation_name(node: Expr) -> str:
    """What `graph.scalar_ops.cost` calls the operation of a node."""
    if not isinstance(node, Op):
        return "cast"
    if node.name in _DIVISIONS and node.dtype.kind in "iu" and isinstance(node.operands[1], Const):
        return "divide_by_constant"
    return node.name


_DIVISIONS = ("floor_divide", "remainder", "fmod")


def consumers(stages: Stages) -> dict[Stage, list[Stage]]:
    """For every stage, inputs too, the stages that read it, in the order of the program."""
    readers: dict[Stage, list[Stage]] = {stage: [] for stage in (*stages.inputs, *stages.stages)}
    for stage in stages.stages:
        for producer in dict.fromkeys([load.source for load in stage.reads()]):
            readers[producer].append(stage)
    return readers


def axes_telling(index: Affine) -> tuple[Axis, ...]:
    """The axes that an index is made of, if each of its values has other ones: one axis, or blocks
    and places in them. None of them where that is not so."""
    only = only_axis(index)
    if only is not None:
        return (only,)
    if len(index.terms) == 2 and not index.constant:
        (inner, step), (outer, stride) = sorted(index.terms, key=lambda term: term[1])
        if (
            isinstance(inner, Axis)
            and isinstance(outer, Axis)
            and 1 == step <= inner.extent <= stride
        ):
            return (outer, inner)
    return ()


def fixed_stages(stages: Stages) -> dict[Stage, frozenset[Stage]]:
    """The stages that are the same at every call, outputs apart, each with the constants that it
    is computed of."""
    found = {stage: frozenset([stage]) for stage in stages.inputs if stage.constant}
    for stage in stages.stages if found else ():
        sources = {load.source for load in stage.reads()}
        if sources and sources <= found.keys() and stage not in stages.outputs:
            found[stage] = frozenset().union(*[found[source] for source in sources])
    return {stage: constants for stage, constants in found.items() if not stage.is_input}
