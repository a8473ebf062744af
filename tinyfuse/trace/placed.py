"""Parts of arrays at integers that are known at run time only, in loops: `x[1:, i]`.

Outside of loops the axes that integers index are moved to the front. In a loop that would copy the
array at each turn: there all leading axes are indexed, those of slices by their positions.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom
from tinyfuse.trace.builder import active
from tinyfuse.trace.index_keys import Key, Positions
from tinyfuse.trace.operations import reshape, traced
from tinyfuse.trace.placing import broadcast_value, positions_along, stretched
from tinyfuse.trace.tracer import Tracer

Shape = tuple[int, ...]


def can_be_placed(x: Tracer, key: Key) -> bool:
    """Whether an index has integers and slices only, and the part is recorded for a loop."""
    plain = all(type(item) in (slice, int) for item in key.basic) and not key.copied
    single = all(not each.values.shape for each in key.positions)
    return active().changed is not None and plain and single and 0 not in _counts(x, key)


def _counts(x: Tracer, key: Key) -> list[int]:
    """How many positions a slice takes along each axis; 1 for an integer."""
    return [
        len(range(*item.indices(extent))) if type(item) is slice else 1
        for item, extent in zip(key.basic, x.shape, strict=True)
    ]


class Placed:
    """A part of an array, as the elements at indices along all leading axes."""

    def __init__(self, x: Tracer, key: Key) -> None:
        self._x = x
        self._positions = {each.axis: each for each in key.positions}
        self._counts = _counts(x, key)
        chosen = [
            axis in self._positions or item != slice(None) for axis, item in enumerate(key.basic)
        ]
        last = max(axis for axis, each in enumerate(chosen) if each)
        self._kept = [axis for axis in range(x.ndim) if self._is_slice(key, axis)]
        self._lead = tuple([self._counts[axis] for axis in self._kept if axis <= last])
        self._indices = [self._index(key, axis) for axis in range(last + 1)]

    def _is_slice(self, key: Key, axis: int) -> bool:
        return axis not in self._positions and type(key.basic[axis]) is slice

    def result_shape(self) -> Shape:
        return tuple([self._counts[axis] for axis in self._kept])

    @property
    def is_view(self) -> bool:
        return True

    def view(self, scalar: bool) -> Tracer:
        builder = active()
        found = builder.emit(p.gather, self._array(), *self._indices)
        view = Tracer(builder, found, scalar and not found.shape)
        if not view._scalar:
            view._become_view(self._x, builder.eqns[-1])
        return view

    def write(self, op: str, value: Tracer) -> None:
        values = stretched(broadcast_value(value, self.result_shape()), self.result_shape())
        array = self._array()
        new = active().emit(p.scatter, array, values, *self._indices, op=op, dtype=array.dtype)
        self._x._assign(Tracer(active(), new))

    def _array(self) -> Atom:
        return stretched(self._x._atom, self._x.shape)

    def _index(self, key: Key, axis: int) -> Atom:
        item, extent = key.basic[axis], self._x.shape[axis]
        if not self._is_slice(key, axis):
            given = self._positions.get(axis)
            if given is None:
                given = Positions(traced(np.int64(item)), axis, axis)
            return stretched(positions_along(given, extent), self._lead)
        start, stop, step = item.indices(extent)
        count = len(range(start, stop, step))
        builder = active()
        atom: Atom = builder.emit(p.iota, extent=extent)
        if (start, step, count) != (0, 1, extent):
            atom = builder.emit(p.slice_, atom, starts=(start,), steps=(step,), shape=(count,))
        place = [each for each in self._kept if each <= axis].index(axis)
        alone = tuple([count if at == place else 1 for at in range(len(self._lead))])
        aligned = reshape(Tracer(builder, atom), alone)._atom
        return stretched(aligned, self._lead)
