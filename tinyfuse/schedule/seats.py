"""Where the planner puts a stage inside another one, before the loops of that one are decided."""

from __future__ import annotations

from tinyfuse.records import dataclass
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage


@dataclass(frozen=True, slots=True)
class Seat:
    """Inside the loop of a stage over an axis; without one, in the innermost loop around its whole
    reduction.

    step: of the loop. aligned: as of `places.Site`. kept_at: where its memory is, if that is
    further out. at_root: whether that is the memory of the program.
    is_one_element: whether each step computes one element. ring: as of a
    plan. before: whether it is before all loops, rather than in one.
    """

    stage: Stage
    axis: Axis | None = None
    step: int = 1
    aligned: tuple[tuple[Axis, Axis], ...] = ()
    kept_at: Seat | None = None
    at_root: bool = False
    is_one_element: bool = False
    ring: tuple[Axis, int] | None = None
    before: bool = False
