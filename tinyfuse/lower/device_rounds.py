"""Rounds of pairs on a device: sums over a first axis, whose blocks of rows are added two by two.

Each round needs what the one before it did in its own column alone. A block of the device takes
some columns and goes through all rounds, where each round would be a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tinyfuse.loops.independence import accesses
from tinyfuse.loops.ir import Buffer, For, If, LoopKind, Statement, Store
from tinyfuse.loops.names import unused
from tinyfuse.loops.rewrite import substitute_axes
from tinyfuse.lower.barriers import WARP
from tinyfuse.lower.device_nests import Arranged, arranged, nested
from tinyfuse.records import replace
from tinyfuse.stage.expr import IndexTest, Load, Op
from tinyfuse.stage.index import Affine, Axis, affine, flat_index


def with_rounds_together(body: Sequence[Statement]) -> list[Statement]:
    """The nests with those that are rounds in each column as one."""
    made: list[Statement] = []
    at = 0
    while at < len(body):
        end = at + 1
        while end < len(body) and _is_next(body[at], body[end]):
            end += 1
        both = _together(body[at:end]) if end > at + 1 else None
        made += [both] if both else body[at:end]
        at = end
    return made


def _is_next(first: Statement, second: Statement) -> bool:
    combined = _combined(first)
    return combined is not None and _combined(second) is combined


def _combined(node: Statement) -> Buffer | None:
    """The buffer whose elements a nest combines, in place."""
    if not isinstance(node, For):
        return None
    nest = arranged(node, ())
    stores = [each for each in nest.body if isinstance(each, Store)]
    if nest.serial or len(stores) < len(nest.body) or not isinstance(stores[0].value, Op):
        return None
    loads = [each for each in stores[0].value.operands if isinstance(each, Load)]
    alike = len(loads) == 2 and all(each.source is stores[0].buffer for each in loads)
    return stores[0].buffer if alike else None


def _together(rounds: Sequence[Statement]) -> Statement | None:
    """The columns around all rounds, so many that a warp reads them at once; None if rounds need
    what others do in other columns."""
    nests = [arranged(each, ()) for each in rounds if isinstance(each, For)]
    loops = [[loop.variable for loop in nest.shared] for nest in nests]
    count = len(_common(loops))
    if not count or not all(map(_is_in_column, nests, [axes[-count:] for axes in loops])):
        return None
    taken = {axis.name for axes in loops for axis in axes}
    *outer, last = [replace(axis, name=unused("column", taken)) for axis in loops[0][-count:]]
    part = Axis(unused("part", taken), -(-last.extent // WARP))
    within = Axis(unused("within", taken), min(WARP, last.extent))
    place = affine(part) * WARP + within
    inside: list[Statement] = []
    for nest, axes in zip(nests, loops, strict=True):
        values = {old: affine(new) for old, new in zip(axes[-count:-1], outer, strict=True)}
        body = substitute_axes(nest.body, {**values, axes[-1]: place + last.start})
        if last.extent % WARP and last.extent > WARP:
            body = (If(IndexTest(place, None, last.extent), body, ()),)
        inside.append(nested((*nest.shared[:-count], _loop(within)), LoopKind.SERIAL, body))
    around = [_loop(axis) for axis in (*outer, part)]
    return nested(around, LoopKind.PARALLEL, tuple(inside))  # as shown above


def _is_in_column(nest: Arranged, columns: Sequence[Axis]) -> bool:
    """Whether all that is stored, and loaded from where something is, lies in a column of its own:
    where the number of the column is the rest of the place by their number."""
    extents = [axis.extent for axis in columns]
    number, total = flat_index(columns, extents), prod(extents)
    found = accesses(nest.body, {})
    places = [access.place for writes, others in found.values() if writes for access in writes]
    places += [access.place for writes, others in found.values() if writes for access in others]
    return all(place is not None and _divides(total, place - number) for place in places)


def _divides(total: int, place: Affine) -> bool:
    return all(each % total == 0 for each in (place.constant, *[f for _, f in place.terms]))


def _loop(axis: Axis) -> For:
    return For(axis, LoopKind.SERIAL, ())


def _common(loops: Sequence[Sequence[Axis]]) -> list[Axis]:
    """The last loops of a nest that all the others have too."""
    found: list[Axis] = []
    for axes in zip(*[reversed(each) for each in loops], strict=False):
        if len({(axis.start, axis.extent) for axis in axes}) > 1:
            break
        found.insert(0, axes[0])
    return found
