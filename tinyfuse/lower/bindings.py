"""What of a schedule says which loops the blocks of a device share, passed on to its kernels."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.loops.ir import ON_DEVICE, Kernel, LoopKind, Loops
from tinyfuse.records import replace
from tinyfuse.schedule.schedule import Schedule


def bindings(schedule: Schedule) -> dict[str, LoopKind]:
    """For stages at the root what their outermost loop is bound to on a device, if it is."""
    return {
        stage.name: plan.loops[0].kind
        for stage, plan in schedule.places.plans.items()
        if plan.loops and plan.loops[0].kind in ON_DEVICE and not plan.compute_at
    }


def with_bindings(loops: Loops, bound: Mapping[str, LoopKind]) -> Loops:
    """The loop nests, each with what its outermost loop is bound to."""
    new: dict[Kernel, Kernel] = {}
    for kernel in loops.kernels if bound else ():
        kinds = [bound[name] for name in kernel.stages if name in bound]
        again = kernel.again and new[kernel.again]
        new[kernel] = replace(kernel, bound=kinds[-1] if kinds else None, again=again)
    return replace(loops, kernels=tuple(new.values())) if bound else loops
