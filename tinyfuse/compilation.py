"""The stages before a function is compiled, as objects to look at, named as in JAX."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from tinyfuse import config
from tinyfuse.compiled import Compiled
from tinyfuse.emit.c import CModule, emit_c_many
from tinyfuse.emit.cuda import emit_cuda_many
from tinyfuse.emit.launch import CudaProgram
from tinyfuse.errors import ScheduleError
from tinyfuse.executable import Plan, plan_outputs
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.printer import graph_text
from tinyfuse.graph.verifier import verify_graph
from tinyfuse.loops.cost import Cost
from tinyfuse.loops.ir import Kernel, Loops
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.device import kernels_on_device, runs_alone
from tinyfuse.lower.device_registers import Remedies
from tinyfuse.lower.once import parted
from tinyfuse.machine import SM_90, Device, Machine, host
from tinyfuse.parameters import Function, Options
from tinyfuse.records import replace
from tinyfuse.schedule.cost import predicted_seconds
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.schedule.weighing import weighed
from tinyfuse.scheduling import scheduled
from tinyfuse.signature import Call, same_arrays, signature_of, with_aliases
from tinyfuse.stage.build_program import build_program
from tinyfuse.stage.copies import copies
from tinyfuse.stage.ir import Stages
from tinyfuse.stage.printer import program_text
from tinyfuse.stage.program import Program as StagedProgram
from tinyfuse.stage.program import all_stages
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.trace import ArgumentSpec, Trace, trace


class Traced:
    """A function traced for arguments of certain types: what it computes, as a graph."""

    def __init__(self, function: Function, call: Call, by_value: Collection[int]) -> None:
        start = time.perf_counter()
        self.parameters = function.parameters
        self.by_value = by_value
        self.options = function.options
        self.signature = signature_of(self.parameters, call, by_value)
        self.trace = self._traced(function, call, self.signature.specs)
        if self.trace.written and same_arrays(call.leaves):
            specs = with_aliases(self.signature.specs, call.leaves)
            self.trace = self._traced(function, call, specs)
        self.seconds = time.perf_counter() - start
        if config.verify:
            verify_graph(self.graph)

    def _traced(self, function: Function, call: Call, specs: tuple[ArgumentSpec, ...]) -> Trace:
        return trace(function.function, call.in_tree, specs, function.name)

    @property
    def name(self) -> str:
        return self.graph.name

    @property
    def graph(self) -> Graph:
        """All operations in the order in which the function did them."""
        return self.trace.graph

    def as_text(self) -> str:
        return graph_text(self.graph)

    def lower(self) -> Lowered:
        """Plan its loops. Raises ScheduleError where the schedule of the user's is no legal one."""
        return Lowered(self, self.options)

    def __repr__(self) -> str:
        return f"<traced {self.name}{self.signature}>"


class Lowered:
    """A traced function as loop nests and as C, with all decisions that led there.

    Attributes:
        graph: what is compiled, simplified. Outputs that are arguments, or views of them, are not.
        program: the parts that are planned by themselves, and the user's loops around them.
        schedules: for each part the loops of every stage, and where it is computed.
        loops: the loop nests of a call.
        once: those that read constants alone and run before the first call; None without any.
        origins: for each kernel on a device the name of the loop nest that it does a part of.
        remedies: what is done for those that spill registers otherwise; spilled: bytes, without.
    """

    def __init__(
        self,
        traced: Traced,
        options: Options,
        machine: Machine | None = None,
        known: Lowered | None = None,
        remedies: Remedies | None = None,
    ) -> None:
        """known: the same program under another schedule, whose stages it shares. remedies: for
        kernels on a device that spill registers otherwise."""
        start = time.perf_counter()
        self.traced = traced
        self.options = options
        self.plan: Plan = known.plan if known else plan_outputs(traced.trace, options.rewrites)
        self.graph = self.plan.computed
        self.program: StagedProgram = known.program if known else build_program(self.graph)
        self.machine = machine or (host() if options.target == "c" else SM_90)
        self._scheduled, loops = scheduled(self.program, options, self.machine)
        parts = parted(loops)
        self.loops, self.once = parts.each, parts.once
        self.remedies: Remedies = remedies or {}
        self.origins: dict[str, str] = {}
        self.spilled: Mapping[str, int] = {}
        if self.machine.device:
            self.loops = self._on_device(self.loops, self.machine.device)
            self.once = self.once and self._on_device(self.once, self.machine.device)
        self.seconds = time.perf_counter() - start
        if config.verify:
            verify_graph(self.graph)
            for schedule in self.schedules:
                verify_stages(schedule.stages)
            for each in (loops, *self.both_loops):
                verify_loops(each)

    def _on_device(self, loops: Loops, device: Device) -> Loops:
        made, origins = kernels_on_device(loops, device, self.remedies)
        self.origins.update(origins)
        return made

    @cached_property
    def stages(self) -> Stages:
        """Each array of the program, defined element by element, those in loops too."""
        return all_stages(self.program)

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Those of the parts of the program, in their order: one where it has no loops."""
        return tuple([schedule for schedule, _ in self._scheduled])

    @property
    def schedule(self) -> Schedule:
        """The loops of every stage, and where it is computed.

        Raises ScheduleError for a program with loops, whose parts each have one: `schedules`.
        """
        if self.program.alone is None:
            raise ScheduleError(
                f"{self.traced.name} has loops or choices, and each part between them has a "
                f"schedule of its own: lowered.schedules has {len(self.schedules)}"
            )
        return self.schedules[0]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The loop nests that compute stages, in the order they run; those that differ in names
        alone call one C function."""
        return tuple([kernel for kernel in self.all_kernels if not self._is_pack(kernel)])

    @property
    def all_kernels(self) -> tuple[Kernel, ...]:
        """Those that run once first."""
        return (*(self.once.kernels if self.once else ()), *self.loops.kernels)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """For each stage what the planner did with it, why, and what that is worth; none for a
        user's schedule."""
        found = [
            decision
            for schedule, decisions in self._scheduled
            if decisions
            for decision in weighed(schedule, decisions, self.all_kernels, self.machine)
        ]
        alone = {s for each in self.all_kernels if runs_alone(each) for s in each.stages}
        found = [_by_one_thread(each) if each.producer in alone else each for each in found]
        return tuple([self._with_fit(each) for each in found])

    def _with_fit(self, decision: Decision) -> Decision:
        """What is stored by a kernel with more values at once than registers, with what was done
        about it."""
        kernels = [k for k in self.all_kernels if k.fitted and decision.producer in k.stages]
        if decision.action != "store" or not kernels:
            return decision
        spilled = self.spilled.get(self.origins[kernels[0].name])
        why = f"it spilled {spilled} bytes" if spilled else "it has more values than registers"
        done = " and ".join(dict.fromkeys(words for each in kernels for words in each.fitted))
        return replace(decision, reason=f"{decision.reason}; {why}: {done}")

    @property
    def packs(self) -> tuple[Kernel, ...]:
        """The loop nests that only copy what a kernel reads, to where it lies better."""
        return tuple([kernel for kernel in self.all_kernels if self._is_pack(kernel)])

    def _is_pack(self, kernel: Kernel) -> bool:
        return any(copies(each.stages).issuperset(kernel.stages) for each in self.schedules)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of intermediate arrays that live in memory at once."""
        return self.loops.scratch_bytes

    @property
    def cost(self) -> Mapping[str, Cost]:
        """For each loop nest its arithmetic operations, and the bytes it reads and writes."""
        return {kernel.name: kernel.cost for kernel in self.all_kernels}

    @property
    def kept_bytes(self) -> int:
        """Bytes of what is computed of constants once, and read at every call."""
        return sum([buffer.nbytes for buffer in self.once.outputs]) if self.once else 0

    @property
    def predicted_seconds(self) -> float:
        """How long the kernels take on one core, one after the other, by the cost model."""
        turns = self.loops.turns
        seconds = [predicted_seconds(kernel, self.machine) for kernel in self.loops.kernels]
        return sum([turns[kernel] * each for kernel, each in zip(turns, seconds, strict=True)])

    @cached_property
    def module(self) -> CModule:
        """The C, a whole translation unit."""
        return emit_c_many(self.both_loops)

    @cached_property
    def cuda(self) -> tuple[CudaProgram, ...]:
        """The CUDA of each of `both_loops`, in one text."""
        return emit_cuda_many(self.both_loops)

    def on(self, target: str) -> Lowered:
        """The same function for another target: with the same result, bit for bit.

        target: as of `jit`, or "cuda" for what can be read, but not run here.
        """
        if (target == "c") == (self.machine.device is None):
            return self
        options = self.options._replace(target=target, schedule=None)
        return Lowered(self.traced, options, None, self)

    @property
    def both_loops(self) -> tuple[Loops, ...]:
        """The loop nests of a call, then those that run once."""
        return (self.loops, self.once) if self.once else (self.loops,)

    def as_text(self, level: str = "c") -> str:
        """The program as text at one level: graph, stages, schedule, loops, c or cuda.

        Raises ValueError for another level.
        """
        if level not in LEVELS:
            raise ValueError(f"there is no level {level!r}, only {', '.join(LEVELS)}")
        return LEVELS[level](self)

    def unfused(self) -> Lowered:
        """The same function with every stage stored: with the same result, bit for bit."""
        return self._again(fuse=False, schedule=None)

    def with_schedule(self, schedule: Schedule) -> Lowered:
        """The same function run as a schedule says: with the same result, bit for bit.

        schedule: of `self.stages`: one made from `self.schedule`, or `Schedule.load(path,
        self.stages)`. Of a program with loops the schedule of one part; others keep theirs. Raises
        ScheduleError where it is of other stages or cannot be lowered.
        """
        if self.program.alone is None:
            made = [
                schedule if schedule.program is each.program else each for each in self.schedules
            ]
            if schedule in made:
                return self.with_schedules(made)
        return self._again(schedule=lambda stages: schedule)

    def with_schedules(self, schedules: Sequence[Schedule]) -> Lowered:
        """The same function with a schedule for each part, as `schedules` has them."""
        made = {each.program: each for each in schedules}
        return self._again(schedule=made.get)

    def _again(self, **changes: Any) -> Lowered:
        return Lowered(self.traced, self.options._replace(**changes), self.machine, self)

    def remedied(self, remedies: Remedies) -> Lowered:
        """The same function with something done for kernels that spill registers."""
        return Lowered(self.traced, self.options, self.machine, self, remedies)

    def fitted(self) -> Lowered:
        """The same function on a device, whose kernels spill no registers if that can be helped.

        Those of which nvcc says that they do are lowered again: with fewer blocks at once, with
        fewer elements or smaller tiles for a thread, as two kernels or four. `decisions` tell. The
        result is the same, bit for bit.

        Raises CudaCompilerNotFoundError, CompilationError or CacheError.
        """
        from tinyfuse.fitting import fitted  # only who has nvcc

        return fitted(self, self.machine.device.architecture) if self.machine.device else self

    def compile(self) -> Compiled:
        """Build the C, or find it in the disk cache.

        Raises CompilerNotFoundError, CompilationError or CacheError.
        """
        if self.options.target != "cuda":
            return Compiled(self)
        from tinyfuse.fitting import fitted_for_gpu  # likewise

        return Compiled(fitted_for_gpu(self))

    def __repr__(self) -> str:
        return f"<lowered {self.traced.name}{self.traced.signature}, {len(self.kernels)} kernels>"


LEVELS: dict[str, Callable[[Lowered], str]] = {
    "graph": lambda lowered: graph_text(lowered.graph),
    "stages": lambda lowered: program_text(lowered.program),
    "schedule": lambda lowered: "\n".join(map(schedule_text, lowered.schedules)),
    "loops": lambda lowered: "\n".join(map(loops_text, lowered.both_loops)),
    "c": lambda lowered: lowered.on("c").module.text,
    "cuda": lambda lowered: lowered.on("cuda").cuda[0].text,
}


def _by_one_thread(decision: Decision) -> Decision:
    """What is stored by a kernel of which one thread of a device does a part."""
    if decision.action != "store":
        return decision
    note = "one thread of its kernel goes through what no others can share"
    return replace(decision, reason=f"{decision.reason}; {note}")
