"""Where the stages of fusion groups are computed: in the loops of the last of each group."""

from __future__ import annotations

from typing import Any

from tinyfuse.records import replace
from tinyfuse.schedule.groups import CHUNK, Group, Grouping, Unit
from tinyfuse.schedule.seats import Seat
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage

# Arrays that one loop may go through together: more than that, and processors lose sight of them.
STREAMS = 12


def seats_of(
    grouping: Grouping, group: Group, around: tuple[tuple[Group, Seat], ...] = ()
) -> dict[Stage, Seat]:
    """Where the units of a group, but for the leader, are computed.

    around: the groups that this one is inside of and where in them it is, the innermost first.
    """
    leader, depth, step = group.leader, group.depth, 1
    whole = all(depth == len(unit.outer) and unit.is_elementwise for unit in group.units)
    if not whole:
        step = grouping.rows_at_once(group.units, depth)
    elif not around and _streams(grouping, group) > STREAMS:
        depth, step = (depth - 1, 1) if depth > 1 else (1, CHUNK)
    found = {}
    place = Seat(leader.root, leader.outer[depth - 1], step)
    for unit in group.units[:-1]:
        pairs = tuple(zip(unit.outer[:depth], leader.outer[:depth], strict=True))
        found[unit.root] = replace(
            place,
            is_one_element=whole and depth == len(leader.outer) and step == 1,
            **_memory(grouping, unit, group, pairs, around),
        )
    for inner in group.inner:
        found.update(seats_of(grouping, inner, ((group, place), *around)))
    return found


def _memory(
    grouping: Grouping,
    unit: Unit,
    group: Group,
    pairs: tuple[tuple[Axis, Axis], ...],
    around: tuple[tuple[Group, Seat], ...],
) -> dict[str, Any]:
    """What a seat in a group says of the memory of a unit."""
    inside = set(group.units)
    if not grouping.is_kept(unit, inside):
        read = any(reader in inside for reader in grouping.readers.get(unit.root, ()))
        leads = any(unit is inner.leader for inner in group.inner)  # others need all of it
        return {"aligned": () if read and not leads else pairs}
    if unit.root in grouping.outputs:
        return {"aligned": pairs}
    kept = [seat for each, seat in around if not grouping.is_kept(unit, each.units)]
    return {"aligned": pairs, "kept_at": kept[0] if kept else None, "at_root": not kept}


def _streams(grouping: Grouping, group: Group) -> int:
    """How many arrays a group goes through."""
    inside = set(group.units)
    sources = [source for unit in group.units for source in grouping.sources[unit]]
    read = dict.fromkeys(each for each in sources if grouping.unit_of.get(each) not in inside)
    written = [unit for unit in group.units if grouping.is_kept(unit, inside)]
    return len(read) + len(written)
