"""Which stages can be streamed: what is stored once, in rows of elements that lie side by side."""

from __future__ import annotations

from tinyfuse.loops.ir import LoopKind
from tinyfuse.schedule.places import Places, StagePlan
from tinyfuse.stage.ir import Order, Stage


def obstacle(stage: Stage, places: Places) -> str | None:
    """Why a stage cannot be streamed as it is planned; None where it can."""
    plan, readers = places.plans[stage], places.readers[stage]
    in_place = [reader.name for reader in readers if reader.order is not Order.SERIAL]
    reasons = [
        (plan.inlined, "it is inlined, so never stored"),
        (places.storage(stage) is not None, "it is stored inside another stage, and read at once"),
        (stage.scatter, "its elements are put in one after the other"),
        (stage.reduce_axes, "it is a reduction, which may store an element several times"),
        (stage.scan, "each element is read for the next one"),
        (stage.sort, "its rows are stored by sorting them"),
        (in_place, f"{', '.join(in_place)} combines its elements in place"),
        (not stage.axes, "it has a single element"),
    ]
    found = next((reason for holds, reason in reasons if holds), None)
    if found is None and not _stores_rows(stage, plan):
        return f"its innermost loop has to run over {stage.axes[-1].name}, not unrolled"
    return found


def _stores_rows(stage: Stage, plan: StagePlan) -> bool:
    last = plan.loops[-1]
    return last.axis is stage.axes[-1] and last.step == 1 and last.kind is not LoopKind.UNROLL
