"""Where the planner puts a stage inside another one, before the loops of that one are decided."""

from __future__ import annotations

from tinyfuse.records import dataclass, replace
from tinyfuse.schedule.decisions import Decision
from tinyfuse.stage.copies import current
from tinyfuse.stage.index import Axis
from tinyfuse.stage.ir import Stage, Stages


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


def carried(stage: Stage, seat: Seat, program: Stages) -> Seat:
    """The seat of a stage in a program that was made of its own."""
    kept, ring = seat.kept_at, seat.ring
    if ring:
        ring = current(stage, program).axes[stage.axes.index(ring[0])], ring[1]
    return replace(
        seat,
        stage=current(seat.stage, program),
        kept_at=kept and replace(kept, stage=current(kept.stage, program)),
        ring=ring,
    )


def moved(decision: Decision, seat: Seat) -> Decision:
    """The decision on a stage that is computed in the kernel of a group."""
    action = "compute_with" if seat.aligned else "compute_at"
    assert seat.axis is not None
    place = f"{seat.axis.name} by {seat.step}" if seat.step > 1 else seat.axis.name
    return replace(
        decision,
        action=action,
        reason=f"one kernel computes it and {seat.stage.name}, step by step of {place}",
    )


def before(decision: Decision, seat: Seat) -> Decision:
    """The decision on a small stage that is computed before the loops of another one."""
    reason = f"both are small: one kernel computes it, then {seat.stage.name}"
    return replace(decision, action="compute_at", reason=reason)
