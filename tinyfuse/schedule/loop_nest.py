"""Loop nests as a schedule says them, in pseudo code: what is computed inside which loop.

::

    compute out:
      for i by 2 < 5:
        compute matmul:
          for i:
            for j:
              for k reduced:
                matmul[i, j] from x, w
        for i:
          for j < 4 vector:
            out[i, j] from matmul, bias; add inline
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tinyfuse.loops.ir import LoopKind
from tinyfuse.schedule.places import Places, Site
from tinyfuse.schedule.text import PROPERTIES, loop_name, part_texts
from tinyfuse.stage.ir import Stage

if TYPE_CHECKING:
    from tinyfuse.schedule.schedule import Schedule


class Line(NamedTuple):
    """depth: how many lines it is inside of. site: what would be computed there; None for none."""

    depth: int
    text: str
    site: Site | None


def loop_nest_text(schedule: Schedule) -> str:
    """The nests of a whole program, in the order they run."""
    lines = loop_nest_lines(schedule.places)
    return "".join([f"{'  ' * line.depth}{line.text}\n" for line in lines])


def loop_nest_lines(places: Places, only: Collection[Stage] | None = None) -> Iterator[Line]:
    """The lines of all nests, or of those that compute, or take in, one of some stages."""
    for stage, plan in places.plans.items():
        if plan.inlined or plan.compute_at:
            continue
        if only is None or not _members(places, stage).isdisjoint(only):
            yield from _nest_lines(places, stage)


def _members(places: Places, root: Stage) -> set[Stage]:
    """What is computed in a nest, inlined stages among it."""
    stored = [root, *places.inside(Site(root, None))]
    return {*stored, *[each for stage in stored for each in _operands(places, stage)[1]]}


def _nest_lines(places: Places, root: Stage) -> Iterator[Line]:
    """The nest of a stage; what is computed at a site stands before the next loop."""
    waiting = [(0, root, -1)]  # depth, stage, and which of its loops; -1 in front of them
    while waiting:
        depth, stage, at = waiting.pop()
        loops = places.plans[stage].loops
        if at == len(loops):
            yield Line(depth, _element_text(places, stage), None)
            continue
        site = Site(stage, loops[at] if at >= 0 else None)
        text = _loop_text(places, stage, at) if site.loop else _head(places, stage)
        yield Line(depth, f"{text}:", site)
        waiting.append((depth + 1, stage, at + 1))
        inner = [each for each in places.attached.get(stage, ()) if _is_at(places, each, site)]
        waiting += [(depth + 1, each, -1) for each in reversed(inner)]


def _is_at(places: Places, stage: Stage, site: Site) -> bool:
    at = places.plans[stage].compute_at
    return at is not None and at.loop == site.loop


def _head(places: Places, stage: Stage) -> str:
    return ", ".join([f"compute {stage.name}", *part_texts(places.plans[stage], PROPERTIES)])


def _loop_text(places: Places, stage: Stage, at: int) -> str:
    """The extent stands where a loop goes along a whole axis, as the outermost of a root."""
    plan = places.plans[stage]
    loop = plan.loops[at]
    outermost = all(other.axis is not loop.axis for other in plan.loops[:at])
    extent = f" < {loop.axis.extent}" if outermost and not plan.compute_at else ""
    reduced = " reduced" if loop.axis in stage.reduce_axes else ""
    kind = "" if loop.kind is LoopKind.SERIAL else f" {loop.kind.value}"
    fused = " fused" if loop.fused else ""
    return f"for {loop_name(loop)}{extent}{reduced}{fused}{kind}"


def _element_text(places: Places, stage: Stage) -> str:
    stored, inlined = _operands(places, stage)
    indices = ", ".join([axis.name for axis in stage.axes])
    element = f"{stage.name}[{indices}]" if indices else stage.name
    operands = f" from {', '.join(_names(stored))}" if stored else ""
    return element + operands + (f"; {', '.join(_names(inlined))} inline" if inlined else "")


def _operands(places: Places, stage: Stage) -> tuple[list[Stage], list[Stage]]:
    """The stored stages that a stage reads, and the inlined ones through which it does."""
    found: dict[Stage, None] = {stage: None}
    through = [stage]
    for reader in through:
        for load in reader.reads():
            source = load.source
            if source not in found:
                found[source] = None
                if source in places.plans and places.plans[source].inlined:
                    through.append(source)
    return [each for each in found if each not in through], through[1:]


def _names(stages: Sequence[Stage]) -> list[str]:
    return [stage.name for stage in stages]
