"""The stages of compiling a function, as objects to look at: Traced, Lowered, Compiled (as in JAX)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tinyfuse import config
from tinyfuse.emit.c import CModule, emit_c
from tinyfuse.errors import SignatureMismatchError
from tinyfuse.executable import Executable, Plan, Program, Site, plan_outputs
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.printer import graph_text
from tinyfuse.graph.verifier import verify_graph
from tinyfuse.loops.ir import Cost, Kernel, Loops
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import Machine, host
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.printer import schedule_text
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.signature import Signature, differences
from tinyfuse.stage.build import build_stages
from tinyfuse.stage.ir import Stages
from tinyfuse.stage.printer import stages_text
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.trace import Trace

log = logging.getLogger("tinyfuse.compile")

MILLISECONDS = 1e3


@dataclass(frozen=True, slots=True)
class Options:
    """How `jit` compiles: see there."""

    fuse: bool = True
    threads: int | None = None
    schedule: Callable[[Stages], Schedule] | None = None


class Traced:
    """A function traced for arguments of certain types: what it computes, as a graph."""

    def __init__(self, trace: Trace, signature: Signature, options: Options, seconds: float) -> None:
        self._trace = trace
        self._options = options
        self.signature = signature
        self.seconds = seconds  # that tracing took
        if config.verify:
            verify_graph(trace.graph)

    @property
    def name(self) -> str:
        return self._trace.graph.name

    @property
    def graph(self) -> Graph:
        """All operations in the order in which the function did them."""
        return self._trace.graph

    def as_text(self) -> str:
        return graph_text(self.graph)

    def lower(self) -> Lowered:
        """Plan its loops. Raises ScheduleError where the schedule of the user's is no legal one."""
        return Lowered(self, self._options)

    def __repr__(self) -> str:
        return f"<traced {self.name}{self.signature}>"


class Lowered:
    """A traced function as loop nests and as C, with all decisions that led there.

    Attributes:
        graph: what is compiled, simplified. Outputs that are arguments, or views of them, are not.
        stages: each array of the program, defined element by element.
        schedule: the loops of every stage, and where it is computed.
        decisions: for each stage what the planner did with it and why; none for a user's schedule.
        loops: the loop nests.
    """

    def __init__(self, traced: Traced, options: Options, machine: Machine | None = None) -> None:
        start = time.perf_counter()
        self.traced = traced
        self._options = options
        self._plan = plan_outputs(traced._trace)
        self.graph = self._plan.computed
        self.stages = build_stages(self.graph)
        self.schedule, self.decisions = _scheduled(self.stages, options, machine or host())
        self.loops = lower(self.schedule, machine or host())
        self.seconds = time.perf_counter() - start
        if config.verify:
            verify_graph(self.graph)
            verify_stages(self.stages)
            verify_loops(self.loops)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The loop nests that compute stages, each a C function, in the order they run."""
        return self.loops.kernels

    @property
    def packs(self) -> tuple[Kernel, ...]:
        """The loop nests that only rearrange operands for a kernel (none yet does)."""
        return ()

    @property
    def scratch_bytes(self) -> int:
        """Bytes of intermediate arrays that live in memory at once."""
        return self.loops.scratch_bytes

    @property
    def cost(self) -> Mapping[str, Cost]:
        """For each kernel its arithmetic operations, and the bytes it reads and writes."""
        return {kernel.name: kernel.cost for kernel in self.kernels}

    @cached_property
    def module(self) -> CModule:
        """The C, a whole translation unit."""
        return emit_c(self.loops)

    def as_text(self, level: str = "c") -> str:
        """The program as text at one level: graph, stages, schedule, loops or c.

        Raises ValueError for another level.
        """
        if level not in LEVELS:
            raise ValueError(f"there is no level {level!r}, only {', '.join(LEVELS)}")
        return LEVELS[level](self)

    def unfused(self) -> Lowered:
        """The same function with every stage stored: with the same result, bit for bit."""
        return Lowered(self.traced, replace(self._options, fuse=False, schedule=None))

    def compile(self) -> Compiled:
        """Build the C, or find it in the disk cache.

        Raises CompilerNotFoundError, CompilationError or CacheError.
        """
        return Compiled(self)

    def __repr__(self) -> str:
        return f"<lowered {self.traced.name}{self.traced.signature}, {len(self.kernels)} kernels>"


def _scheduled(
    stages: Stages, options: Options, machine: Machine
) -> tuple[Schedule, tuple[Decision, ...]]:
    if options.schedule is not None:
        return options.schedule(stages), ()
    return default_schedule(stages, machine, fuse=options.fuse)


LEVELS: dict[str, Callable[[Lowered], str]] = {
    "graph": lambda lowered: graph_text(lowered.graph),
    "stages": lambda lowered: stages_text(lowered.stages),
    "schedule": lambda lowered: schedule_text(lowered.schedule),
    "loops": lambda lowered: loops_text(lowered.loops),
    "c": lambda lowered: lowered.module.text,
}


class Compiled:
    """A compiled function: called with arguments of the types that it was lowered for."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.program = _built(lowered)
