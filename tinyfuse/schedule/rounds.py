"""Stencils whose rows go round: what a chain of them needs of the program.

Each stage of the chain has copies of its last rows before the first one, and of its first rows
after the last; so have, for the chain alone, the arrays that it begins with. Where these copies are
made an end is tested for, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tinyfuse.errors import ScheduleError
from tinyfuse.schedule.loop_order import with_inlined
from tinyfuse.schedule.seats import Seat, carried
from tinyfuse.schedule.stencils import Chain
from tinyfuse.stage.copies import CacheRead, changed, current, fresh_name
from tinyfuse.stage.ir import Stage, Stages
from tinyfuse.stage.wrapping import Wrap, rounds_of


def going_round(
    program: Stages, chain: Chain, inlined: Collection[Stage], seats: Mapping[Stage, Seat]
) -> tuple[Stages, set[Stage], dict[Stage, Seat]]:
    """The program in which a chain finds all rows, what is inlined there, and the seats in it."""
    members = [current(unit.root, program) for unit in chain.members]
    roots = [each for each in _current(chain.halos, program) if each not in members]
    found = dict(seats)
    for source in _current(chain.copied, program):
        change = _copied(program, source, (*roots, *members), inlined)
        if change:
            program = changed(program, change)
            copy = next(stage for stage in program.stages if stage.name == change.name)
            found[copy] = seats[members[0]]
            members.append(copy)
    for place in range(len(chain.last.root.axes)):
        inner = _current((*members, *inlined), program)
        wanted = dict.fromkeys(_current(roots, program), (0, 0))
        try:
            rounds = rounds_of(program, place, wanted, inner)
        except ScheduleError:
            continue  # along this axis ends are tested for
        program = changed(program, Wrap(rounds)) if rounds else program
    placed = {current(stage, program): carried(stage, found[stage], program) for stage in found}
    return program, set(_current(inlined, program)), placed


def _current(stages: Iterable[Stage], program: Stages) -> dict[Stage, None]:
    return {current(stage, program): None for stage in stages}


def _copied(
    program: Stages, source: Stage, units: Collection[Stage], inlined: Collection[Stage]
) -> CacheRead | None:
    """That units read a copy of a source; None where others would have to read it too."""
    units, inlined = _current(units, program), _current(inlined, program)
    inside = {stage: None for unit in units for stage in with_inlined(unit, inlined)}
    others = [each for each in program.stages if each not in inlined and each not in units]
    outside = {stage for each in others for stage in with_inlined(each, inlined)}
    readers = [stage for stage in inside if any(load.source is source for load in stage.reads())]
    if any(reader in outside for reader in readers):
        return None
    name = fresh_name(f"{source.name}_copy", program)
    return CacheRead(name, source, tuple([(reader, None) for reader in readers]))
