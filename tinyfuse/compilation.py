"""The stages of compiling a function, as objects to look at, named as in JAX."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyfuse import config
from tinyfuse.config import compile_log as log
from tinyfuse.dtypes import FLOAT64
from tinyfuse.emit.c import CModule, emit_c_many
from tinyfuse.emit.cuda import emit_cuda_many
from tinyfuse.emit.launch import CudaProgram
from tinyfuse.errors import ScheduleError, SignatureMismatchError
from tinyfuse.executable import Executable, Plan, Program, Site, plan_outputs
from tinyfuse.graph.ir import Atom, Graph
from tinyfuse.graph.printer import graph_text
from tinyfuse.graph.verifier import verify_graph
from tinyfuse.kept import Kept
from tinyfuse.loops.ir import Cost, Kernel, Loops
from tinyfuse.loops.printer import loops_text
from tinyfuse.loops.verifier import verify_loops
from tinyfuse.lower.device import on_device, runs_alone
from tinyfuse.lower.once import parted
from tinyfuse.machine import SM_90, Machine, host
from tinyfuse.parameters import Function, Options
from tinyfuse.records import replace
from tinyfuse.runtime.library import Entry, loaded
from tinyfuse.schedule.cost import predicted_seconds
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.schedule.weighing import weighed
from tinyfuse.scheduling import scheduled
from tinyfuse.signature import (
    Call,
    Signature,
    StaleError,
    differences,
    same_arrays,
    signature_of,
    take_apart,
    with_aliases,
)
from tinyfuse.stage.build_program import build_program
from tinyfuse.stage.copies import copies
from tinyfuse.stage.ir import Stages
from tinyfuse.stage.printer import program_text
from tinyfuse.stage.program import Program as StagedProgram
from tinyfuse.stage.program import all_stages
from tinyfuse.stage.verifier import verify_stages
from tinyfuse.trace import ArgumentSpec, Trace, trace

if TYPE_CHECKING:
    from tinyfuse.finite_check import FiniteCheck
    from tinyfuse.inspect import Profile
    from tinyfuse.runtime.emulated_entry import EmulatedEntry


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
    """

    def __init__(
        self,
        traced: Traced,
        options: Options,
        machine: Machine | None = None,
        known: Lowered | None = None,
    ) -> None:
        """known: the same program under another schedule, whose stages it shares."""
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
        if self.machine.device:
            self.loops = on_device(self.loops, self.machine.device)
            self.once = self.once and on_device(self.once, self.machine.device)
        self.seconds = time.perf_counter() - start
        if config.verify:
            verify_graph(self.graph)
            for schedule in self.schedules:
                verify_stages(schedule.stages)
            for each in (loops, *self.both_loops):
                verify_loops(each)

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
        return tuple([_by_one_thread(each) if each.producer in alone else each for each in found])

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

    def compile(self) -> Compiled:
        """Build the C, or find it in the disk cache.

        Raises CompilerNotFoundError, CompilationError or CacheError.
        """
        return Compiled(self)

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


class MemoryAnalysis(NamedTuple):
    """The memory of one call, in bytes; the names are JAX's.

    argument: of the arrays that it reads, captured ones among them. output: of the arrays that it
    makes. temp: of intermediate arrays that live at once. generated_code: of the library.
    constant: of the constants, and of what is computed of them once and kept.
    """

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    constant_size_in_bytes: int


class Compiled:
    """A compiled function, to be called with arguments of the types that it was lowered for."""

    def __init__(self, lowered: Lowered) -> None:
        start = time.perf_counter()
        self.lowered = lowered
        self._entry = _built(lowered, 0)
        self._kept = Kept(lowered, lambda: _built(lowered, 1))
        self.seconds = time.perf_counter() - start
        self._executables: dict[tuple[Any, ...], Executable] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result.

        Raises SignatureMismatchError where the arguments, or captured arrays, are of other types.
        """
        call, executable = self.prepared(args, kwargs)
        try:
            return executable(call.values)
        except StaleError as stale:
            raise SignatureMismatchError(
                f"{self.lowered.traced.name} was compiled for other arrays: {stale}"
            ) from None

    def prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, Executable]:
        """A call taken apart, and what runs it. Raises SignatureMismatchError."""
        traced = self.lowered.traced
        call = take_apart(traced.parameters, *traced.parameters.bind(args, kwargs))
        executable = self._executables.get(call.key)
        if executable is None or traced.by_value:  # whose values are no part of the key
            self._require(signature_of(traced.parameters, call, traced.by_value))
            executable = self._executables[call.key] = self.executable(call, _ignore)
        return call, executable

    def _require(self, given: Signature) -> None:
        traced = self.lowered.traced
        lines = differences(given, traced.signature)
        if lines:
            raise SignatureMismatchError(
                f"{traced.name} was compiled for {traced.signature}, not for {given}; what differs:"
                + "".join(f"\n  {line}" for line in lines)
            )

    def executable(self, call: Call, copied: Callable[[str], None]) -> Executable:
        """What runs calls that are taken apart like this one."""
        lowered, specs = self.lowered, self.lowered.traced.signature.specs
        pairs = zip(call.places, specs, strict=True)
        places = tuple([place for place, spec in pairs if spec.kind != "static"])
        dtypes = [getattr(call.values[place], "dtype", FLOAT64) for place in places]
        swapped = not all(dtype.isnative for dtype in dtypes)
        program = Program(
            lowered.traced.trace,
            lowered.plan,
            self._entry,
            lowered.scratch_bytes,
            lowered.options.threads if lowered.loops.shares_work else 1,
            lowered.predicted_seconds * 1e6,
            _check(lowered),
            self._kept.arrays(),
        )
        site = Site(places, len(call.values), swapped, copied)
        return Executable(program, site, lowered.traced.signature)

    def as_text(self, level: str = "c") -> str:
        """As `Lowered.as_text`."""
        return self.lowered.as_text(level)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self.lowered.kernels

    @property
    def packs(self) -> tuple[Kernel, ...]:
        return self.lowered.packs

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return self.lowered.decisions

    @property
    def schedule(self) -> Schedule:
        return self.lowered.schedule

    @property
    def scratch_bytes(self) -> int:
        return self.lowered.scratch_bytes

    @property
    def cost(self) -> Mapping[str, Cost]:
        return self.lowered.cost

    def memory_analysis(self) -> MemoryAnalysis:
        """How much memory a call reads, makes, and works with."""
        graph = self.lowered.graph
        return MemoryAnalysis(
            sum([_bytes(var) for var in graph.inputs if not var.constant]),
            sum(map(_bytes, graph.outputs)),
            self.scratch_bytes,
            0 if self._entry is None else self._entry.nbytes,
            sum([_bytes(var) for var in graph.inputs if var.constant]) + self.lowered.kept_bytes,
        )

    def profile(self, /, *args: Any, repeat: int = 20, **kwargs: Any) -> Profile:
        """Run such a call `repeat` times, and tell how long each kernel takes.

        Arrays that the function writes are put back as they were after each run, and also when a
        run is interrupted. A parameter of the function's called `repeat` goes by position.

        Raises:
            SignatureMismatchError: the arguments are of other types.
            ValueError: repeat is not positive, or the target is emulated.
            What a call raises, and what building C raises.
        """
        # By name: what looks at programs from outside stands after them.
        inspect = importlib.import_module("tinyfuse.inspect")
        found: Profile = inspect.profile(self, args, kwargs, repeat)
        return found

    def __repr__(self) -> str:
        traced = self.lowered.traced
        return f"<compiled {traced.name}{traced.signature}, {len(self.kernels)} kernels>"


def _by_one_thread(decision: Decision) -> Decision:
    """What is stored by a kernel of which one thread of a device does a part."""
    if decision.action != "store":
        return decision
    note = "one thread of its kernel goes through what no others can share"
    return replace(decision, reason=f"{decision.reason}; {note}")


def _bytes(atom: Atom) -> int:
    return math.prod(atom.shape) * atom.dtype.itemsize


def _ignore(name: str) -> None:
    pass


def _check(lowered: Lowered) -> FiniteCheck | None:
    if lowered.options.check is None:
        return None
    from tinyfuse.finite_check import FiniteCheck  # only here: it brings the interpreter

    return FiniteCheck(lowered.graph)


def _built(lowered: Lowered, number: int) -> Entry | EmulatedEntry | None:
    """A function of the program's, of those of `both_loops`; none where there is nothing to
    compute."""
    if not lowered.graph.outputs:
        return None
    if lowered.machine.device:
        from tinyfuse.runtime.emulated_entry import EmulatedEntry  # only who asks for it

        return EmulatedEntry(lowered.cuda[number])
    module = lowered.module
    return loaded(module.text, lowered.traced.name, module.entries[number])


def log_compilation(compiled: Compiled) -> None:
    lowered = compiled.lowered
    traced, count = lowered.traced, len(lowered.kernels)
    log.info(
        "compile %s%s: trace %.1f ms, lower %.1f ms, %s %d lines, build %.1f ms, %s",
        traced.name,
        traced.signature,
        traced.seconds * 1e3,
        lowered.seconds * 1e3,
        "CUDA" if lowered.machine.device else "C",
        lowered.as_text("cuda" if lowered.machine.device else "c").count("\n"),
        compiled.seconds * 1e3,
        "1 kernel" if count == 1 else f"{count} kernels",
    )
