"""Returned views of computed values: computed in their own layout, instead of copied into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Eqn, Graph, Primitive, Var

# For each axis of a view, the operand's axis that it is; None for a new axis of one element.
AxisMap = tuple[int | None, ...]


class Layout(NamedTuple):
    """axes: None where the elements lie in the same order, whatever the axes."""

    output: Var
    axes: AxisMap | None


def output_layouts(graph: Graph) -> dict[Var, Layout]:
    """The computed values that are returned only with axes permuted, axes of one element added, or
    another shape.

    A value is stored with the axes of the first such view of it that is returned, or, where that
    has another shape, with its own.
    """
    equations = {eqn.output: eqn for eqn in graph.eqns}
    returned = dict.fromkeys(graph.outputs)
    layouts: dict[Var, Layout] = {}
    for output in graph.outputs:
        if isinstance(output, Var) and output in equations:
            var, axes = _seen_through(output, equations)
            if axes is None:
                var = _reshaped(output, equations)
            if var is not output and var not in returned and var not in layouts:
                layouts[var] = Layout(output, axes)
    return layouts


def _seen_through(output: Var, equations: Mapping[Var, Eqn]) -> tuple[Var, AxisMap | None]:
    """The computed value that a variable is a view of, if that only has other axes."""
    axes: AxisMap = tuple(range(len(output.shape)))
    eqn = equations[output]
    while eqn.primitive in AXIS_MAPS:
        step = AXIS_MAPS[eqn.primitive](eqn)
        operand = eqn.inputs[0]
        if step is None or operand not in equations:
            return output, None
        axes = tuple([None if axis is None else step[axis] for axis in axes])
        eqn = equations[operand]  # type: ignore[index]
    return (eqn.output, axes) if eqn.primitive not in _AS_THEY_ARE else (output, None)


def _reshaped(output: Var, equations: Mapping[Var, Eqn]) -> Var:
    """The computed value that has a variable's elements in the same order."""
    eqn = equations[output]
    while eqn.primitive is p.reshape and eqn.inputs[0] in equations:
        eqn = equations[eqn.inputs[0]]  # type: ignore[index]
    return output if eqn.primitive in (*_AS_THEY_ARE, *AXIS_MAPS) else eqn.output


def _transpose(eqn: Eqn) -> AxisMap | None:
    return tuple(eqn.params["axes"])


def _reshape(eqn: Eqn) -> AxisMap | None:
    old, new = eqn.inputs[0].shape, eqn.output.shape
    long_axes = [axis for axis, extent in enumerate(old) if extent != 1]
    if [old[axis] for axis in long_axes] != [extent for extent in new if extent != 1]:
        return None
    remaining = iter(long_axes)
    return tuple([None if extent == 1 else next(remaining) for extent in new])


AXIS_MAPS: dict[Primitive, Callable[[Eqn], AxisMap | None]] = {
    p.transpose: _transpose,
    p.reshape: _reshape,
}
# Other views; what is put in at the first axes, and sorted along the last one.
_AS_THEY_ARE = (p.broadcast, p.slice_, p.windows, p.scatter, p.sort, p.argsort)
