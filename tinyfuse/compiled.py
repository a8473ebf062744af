"""Compiled programs: what a lowered function becomes once its C is built."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyfuse.config import compile_log as log
from tinyfuse.dtypes import FLOAT64
from tinyfuse.errors import ArgumentError, SignatureMismatchError
from tinyfuse.executable import Executable, Program, Site
from tinyfuse.graph.ir import Atom
from tinyfuse.kept import Kept
from tinyfuse.loops.cost import Cost
from tinyfuse.loops.ir import Kernel
from tinyfuse.memory import OnDevice
from tinyfuse.runtime.library import Entry, loaded
from tinyfuse.schedule.decisions import Decision
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.signature import (
    Call,
    Signature,
    StaleError,
    refusal,
    signature_of,
    take_apart,
)
from tinyfuse.signature_differences import differences

if TYPE_CHECKING:
    from tinyfuse.compilation import Lowered
    from tinyfuse.finite_check import FiniteCheck
    from tinyfuse.inspect import Profile
    from tinyfuse.runtime.device_entry import DeviceEntry
    from tinyfuse.runtime.emulated_entry import EmulatedEntry


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

    def executable(self, call: Call, copied: Callable[[str, str], None]) -> Executable:
        """What runs calls that are taken apart like this one.

        Raises ArgumentError where arrays are on a GPU, and the program is for the CPU.
        """
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
        return self._kind(call)(program, site, lowered.traced.signature)

    def _kind(self, call: Call) -> type[Executable]:
        on_device = [at for at, each in enumerate(call.leaves) if isinstance(each, OnDevice)]
        if not on_device:
            return Executable
        traced, target = self.lowered.traced, self.lowered.options.target
        if target != "cuda":
            words = (
                f"it lies on a GPU, and the program is for the CPU (target={target!r}): pass a "
                "copy in numpy's memory, or compile the function with target='cuda'"
            )
            name = traced.signature.names[on_device[0]]
            raise refusal(ArgumentError(words), traced.parameters, name)
        from tinyfuse.device_executable import DeviceExecutable  # only who has a GPU

        return DeviceExecutable

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
            ValueError: repeat is not positive, or the target is not C.
            What a call raises, and what building C raises.
        """
        # By name: what looks at programs from outside stands after them.
        inspect = importlib.import_module("tinyfuse.inspect")
        found: Profile = inspect.profile(self, args, kwargs, repeat)
        return found

    def __repr__(self) -> str:
        traced = self.lowered.traced
        return f"<compiled {traced.name}{traced.signature}, {len(self.kernels)} kernels>"


def _bytes(atom: Atom) -> int:
    return math.prod(atom.shape) * atom.dtype.itemsize


def _ignore(name: str, why: str) -> None:
    pass


def _check(lowered: Lowered) -> FiniteCheck | None:
    if lowered.options.check is None:
        return None
    from tinyfuse.finite_check import FiniteCheck  # only here: it brings the interpreter

    return FiniteCheck(lowered.graph)


def _built(lowered: Lowered, number: int) -> Entry | EmulatedEntry | DeviceEntry | None:
    """A function of the program's, of those of `both_loops`; none where there is nothing to
    compute."""
    if not lowered.graph.outputs:
        return None
    if lowered.options.target == "cuda-emulated":
        from tinyfuse.runtime.emulated_entry import EmulatedEntry  # only who asks for it

        return EmulatedEntry(lowered.cuda[number])
    if lowered.options.target == "cuda":
        from tinyfuse.runtime.device_entry import DeviceEntry  # likewise

        return DeviceEntry(lowered.cuda[number])
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
