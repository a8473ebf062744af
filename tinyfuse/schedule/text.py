"""Schedules as text: one line for each stage.

::

    schedule product
      matmul: compute_at(out, i by 2); i < 5, j < 4, k < 9 reduced
      add: inline
      out: root; i by 2 < 5, i < 5, j < 4 vector

A schedule with stages that the program has not begins with a line for each::

    schedule distances
      out_local = cache_write(out)
      y_copy = cache_read(y, subtract along j)
      y_copy: compute_at(out, j by 32); layout(k, j); j < 512, k < 64
      …

A line says where a stage is computed, what else is decided about it, and its loops, the outermost
one first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyfuse.errors import ScheduleError
from tinyfuse.loops.ir import LoopKind
from tinyfuse.schedule.places import Loop, Place, Prefetch, Site, StagePlan
from tinyfuse.stage.copies import CacheWrite, Change, Pad, changes
from tinyfuse.stage.ir import Stage
from tinyfuse.stage.wrapping import Round, Wrap

if TYPE_CHECKING:
    from tinyfuse.schedule.reading import Program
    from tinyfuse.schedule.schedule import Schedule

Arguments = tuple[str, ...]


def schedule_text(schedule: Schedule, whole: bool = False) -> str:
    """One line for each stage.

    whole: inlined stages too have the loops that they would have if they were stored.
    """
    stages = schedule.stages
    lines = [f"  {each.name}: {_plan_text(each, schedule[each], whole)}" for each in stages.stages]
    return "\n".join([f"schedule {stages.name}", *map(_change_text, changes(stages)), *lines, ""])


def _change_text(change: Change) -> str:
    if isinstance(change, CacheWrite):
        return f"  {change.name} = cache_write({change.stage.name})"
    if isinstance(change, Pad):
        return f"  {change.name} = pad({change.stage.name}, {change.axis.name} < {change.extent})"
    if isinstance(change, Wrap):
        rounds = [_round_text(stage, known) for stage, known in change.rounds]
        return f"  {change.name} = wrap({', '.join(rounds)})"
    readers = [
        f"{reader.name} along {axis.name}" if axis else reader.name
        for reader, axis in change.readers
    ]
    source = f"{change.source.name} at {change.index.name}" if change.index else change.source.name
    return f"  {change.name} = cache_read({', '.join([source, *readers])})"


def _round_text(stage: Stage, known: Round) -> str:
    axis = stage.axes[known.place]
    return f"{stage.name} along {axis.name} < {known.before} + {known.period} + {known.after}"


def _plan_text(stage: Stage, plan: StagePlan, whole: bool) -> str:
    texts = part_texts(plan, PARTS)
    if whole or not plan.inlined:
        texts.append(", ".join([_loop_text(stage, loop) for loop in plan.loops]) or NO_LOOPS)
    return "; ".join(texts)


def part_texts(plan: StagePlan, parts: Sequence[Part]) -> list[str]:
    """What a plan says beside its loops: `root`, or `compute_at(out, i by 2)`."""
    texts = []
    for part in parts:
        arguments = part.write(plan)
        if arguments is not None:
            texts.append(f"{part.word}({', '.join(arguments)})" if arguments else part.word)
    return texts


def _loop_text(stage: Stage, loop: Loop) -> str:
    kind = "" if loop.kind is LoopKind.SERIAL else f" {loop.kind.value}"
    reduced = " reduced" if loop.axis in stage.reduce_axes else ""
    tail = " shifted" if loop.shifted else " padded" if loop.padded else ""
    fused = " fused" if loop.fused else ""
    return f"{loop_name(loop)} < {loop.axis.extent}{reduced}{tail}{fused}{kind}"


def loop_name(loop: Loop) -> str:
    """`i`, or `i by 4` for steps of more than one element."""
    return loop.axis.name if loop.step == 1 else f"{loop.axis.name} by {loop.step}"


# -- the fields of a plan, each as a word with arguments


class Part(NamedTuple):
    """A field of a plan as text.

    write: the arguments of the word, for a plan; None where the plan does not say it.
    read: the field's value, by its name, for arguments that are said of a stage.
    """

    word: str
    write: Callable[[StagePlan], Arguments | None]
    read: Callable[[Program, Stage, Arguments], dict[str, Any]]


def _site(site: Site) -> Arguments:
    return (site.stage.name, loop_name(site.loop)) if site.loop else (site.stage.name,)


def _computed_at(plan: StagePlan) -> Arguments | None:
    site = plan.compute_at
    return None if site is None or site.aligned else _site(site)


def _computed_with(plan: StagePlan) -> Arguments | None:
    site = plan.compute_at
    if site is None or not site.aligned:
        return None
    return (*_site(site), *[f"{own.name} along {other.name}" for own, other in site.aligned])


def _read_leader(program: Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    site = program.site(arguments[:2])
    pairs = [text.partition(" along ") for text in arguments[2:]]
    aligned = [(stage.axis(own), site.stage.axis(other)) for own, _, other in pairs]
    return {"compute_at": Site(site.stage, site.loop, tuple(aligned))}


def _stored_at(plan: StagePlan) -> Arguments | None:
    place = plan.store_at
    return (place.value,) if isinstance(place, Place) else _site(place) if place else None


def _read_storage(program: Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    root = arguments == (Place.ROOT.value,)
    return {"store_at": Place.ROOT if root else program.site(arguments)}


def _read_ring(program: Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    if len(arguments) != 2 or not arguments[1].isdigit():
        raise ScheduleError(f"fold of {stage.name} takes an axis and a length")
    return {"ring": (stage.axis(arguments[0]), int(arguments[1]))}


def _prefetched(plan: StagePlan) -> Arguments | None:
    found = plan.prefetch
    if found is None:
        return None
    return (found.source.name, loop_name(found.at), *_site(found.ahead), str(found.distance))


def _read_prefetch(program: Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    if len(arguments) != 5 or not arguments[4].isdigit():
        raise ScheduleError(
            f"prefetch of {stage.name} takes a source, a loop, a stage, its loop and a distance"
        )
    at, ahead = program.site((stage.name, arguments[1])).loop, program.site(arguments[2:4])
    assert at is not None
    source = program.source(arguments[0])
    return {"prefetch": Prefetch(source, at, ahead, int(arguments[4]))}


def _laid_out(plan: StagePlan) -> Arguments | None:
    return tuple([loop_name(part) for part in plan.layout]) if plan.layout is not None else None


def _read_layout(program: Program, stage: Stage, arguments: Arguments) -> dict[str, Any]:
    parts = [argument.partition(" by ") for argument in arguments]
    if not all(step.isdigit() for _, by, step in parts if by):
        raise ScheduleError(f"layout of {stage.name} takes axes, or parts of them as `j by 16`")
    return {"layout": tuple([Loop(stage.axis(axis), int(step or 1)) for axis, _, step in parts])}


# Where a stage is computed; each has one of these.
PLACES = (
    Part(
        "root",
        lambda plan: None if plan.inlined or plan.compute_at else (),
        lambda program, stage, arguments: {},
    ),
    Part(
        "inline",
        lambda plan: () if plan.inlined else None,
        lambda program, stage, arguments: {"inlined": True},
    ),
    Part(
        "compute_at",
        _computed_at,
        lambda program, stage, arguments: {"compute_at": program.site(arguments)},
    ),
    Part("compute_with", _computed_with, _read_leader),
)
# What else is decided about it.
PROPERTIES = (
    Part("store_at", _stored_at, _read_storage),
    Part(
        "fold",
        lambda plan: (plan.ring[0].name, str(plan.ring[1])) if plan.ring else None,
        _read_ring,
    ),
    Part(
        "streamed",
        lambda plan: () if plan.streamed else None,
        lambda program, stage, arguments: {"streamed": True},
    ),
    Part(
        "registers",
        lambda plan: () if plan.registers else None,
        lambda program, stage, arguments: {"registers": True},
    ),
    Part("prefetch", _prefetched, _read_prefetch),
    Part("layout", _laid_out, _read_layout),
)
PARTS = (*PLACES, *PROPERTIES)
WORDS = tuple([part.word for part in PARTS])
NO_LOOPS = "no loops"
