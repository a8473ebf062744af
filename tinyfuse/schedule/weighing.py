"""What each decision of the planner is worth, by the cost model: figures for people to read."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.loops.ir import Alloc, Kernel, walk_statements
from tinyfuse.machine import Machine
from tinyfuse.records import replace
from tinyfuse.schedule.cost import bytes_saved, seconds, stage_bytes, stage_cost
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.ir import Stage


def weighed(
    schedule: Schedule, decisions: Sequence[Decision], kernels: Sequence[Kernel], machine: Machine
) -> tuple[Decision, ...]:
    """The decisions, one for each stage, with figures. kernels: those of the schedule."""
    held = {name: _held(kernel) for kernel in kernels for name in kernel.stages}
    found = []
    for stage, decision in zip(schedule.stages.stages, decisions, strict=True):
        alone = stage_cost(stage)
        found.append(
            replace(
                decision,
                flops=alone.flops,
                bytes_saved=_bytes_saved(schedule, stage),
                live_values=held.get(stage.name, 0),
                predicted_seconds=seconds(alone, machine),
            )
        )
    return tuple(found)


def _held(kernel: Kernel) -> int:
    """How many arrays a kernel goes through, and rows and values it keeps of its own."""
    allocated = {s.buffer for s in walk_statements(kernel.body) if isinstance(s, Alloc)}
    return len(kernel.parameters) + len(allocated)


def _bytes_saved(schedule: Schedule, stage: Stage) -> int:
    """What is neither written nor read because a stage is not stored, or read while it is there."""
    plan, places = schedule[stage], schedule.places
    if plan.inlined:
        return bytes_saved(stage, max(1, len(places.readers[stage])))
    if plan.compute_at is None:
        return 0
    inside = sum(places.within(reader, plan.compute_at) for reader in places.readers[stage])
    return (
        inside * stage_bytes(stage) if places.storage(stage) is None else bytes_saved(stage, inside)
    )
