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
from tinyfuse.schedule.text import PROPERTIES, loop_name, part_texts

if TYPE_CHECKING:
    from tinyfuse.schedule.schedule import Loop, Schedule
    from tinyfuse.stage.ir import Stage


class Place(NamedTuple):
    """Inside a loop of a stage; without a loop, before all of them."""

    stage: Stage
    loop: Loop | None

    def __str__(self) -> str:
        return f"{self.stage.name}, {loop_name(self.loop)}" if self.loop else self.stage.name


class Line(NamedTuple):
    """depth: how many lines it is inside of. place: what would be computed there; None for none."""

    depth: int
    text: str
    place: Place | None


def loop_nest_text(schedule: Schedule) -> str:
    """The nests of a whole program, in the order they run."""
    return "".join([f"{'  ' * line.depth}{line.text}\n" for line in loop_nest_lines(schedule)])


def loop_nest_lines(schedule: Schedule, only: Collection[Stage] | None = None) -> Iterator[Line]:
    """The lines of all nests, or of those that compute some stages."""
    nests = _Nests(schedule)
    for root in nests.roots:
        if only is None or not nests.members(root).isdisjoint(only):
            yield from nests.lines(root)


class _Nests:
    """The stages of a schedule by where they are computed."""

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.placed: dict[Place, list[Stage]] = {}
        self.roots: list[Stage] = []
        for stage in schedule.stages.stages:
            site = schedule[stage].compute_at
            if site:
                self.placed.setdefault(Place(site.stage, site.loop), []).append(stage)
            elif not schedule[stage].inlined:
                self.roots.append(stage)

    def members(self, root: Stage) -> set[Stage]:
        """What is computed in a nest, inlined stages among it."""
        found = {line.place.stage for line in self.lines(root) if line.place}
        for stage in list(found):
            found.update(self._operands(stage)[1])
        return found

    def lines(self, root: Stage) -> Iterator[Line]:
        """The nest of a stage; what is computed at a place stands before the next loop."""
        waiting = [(0, root, -1)]  # depth, stage, and which of its loops; -1 in front of them
        while waiting:
            depth, stage, at = waiting.pop()
            loops = self.schedule[stage].loops
            if at == len(loops):
                yield Line(depth, self._element_text(stage), None)
                continue
            place = Place(stage, loops[at] if at >= 0 else None)
            text = self._loop_text(stage, at, stage is root) if place.loop else self._head(stage)
            yield Line(depth, f"{text}:", place)
            waiting.append((depth + 1, stage, at + 1))
            waiting += [(depth + 1, inner, -1) for inner in reversed(self.placed.get(place, []))]

    def _head(self, stage: Stage) -> str:
        return ", ".join([f"compute {stage.name}", *part_texts(self.schedule[stage], PROPERTIES)])

    def _loop_text(self, stage: Stage, at: int, root: bool) -> str:
        """The extent stands where a loop goes along a whole axis, as the outermost of a root."""
        loops = self.schedule[stage].loops
        loop = loops[at]
        outermost = all(other.axis is not loop.axis for other in loops[:at])
        extent = f" < {loop.axis.extent}" if root and outermost else ""
        reduced = " reduced" if loop.axis in stage.reduce_axes else ""
        kind = "" if loop.kind is LoopKind.SERIAL else f" {loop.kind.value}"
        return f"for {loop_name(loop)}{extent}{reduced}{kind}"

    def _element_text(self, stage: Stage) -> str:
        stored, inlined = self._operands(stage)
        indices = ", ".join([axis.name for axis in stage.axes])
        element = f"{stage.name}[{indices}]" if indices else stage.name
        operands = f" from {', '.join(_names(stored))}" if stored else ""
        return element + operands + (f"; {', '.join(_names(inlined))} inline" if inlined else "")

    def _operands(self, stage: Stage) -> tuple[list[Stage], list[Stage]]:
        """The stored stages that a stage reads, and the inlined ones through which it does."""
        found: dict[Stage, None] = {stage: None}
        waiting = [stage]
        for reader in waiting:
            for load in reader.reads():
                if load.source not in found:
                    found[load.source] = None
                    if not load.source.is_input and self.schedule[load.source].inlined:
                        waiting.append(load.source)
        through = dict.fromkeys(waiting)
        return [each for each in found if each not in through], waiting[1:]


def _names(stages: Sequence[Stage]) -> list[str]:
    return [stage.name for stage in stages]
