"""Where the time of a call goes: kernel by kernel, beside what was predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tinyfuse.compilation import Lowered
from tinyfuse.compiled import Compiled
from tinyfuse.inspect.counters import CYCLES, FAULTS, INSTRUCTIONS, MISSES
from tinyfuse.inspect.limits import bytes_per_second, note, operations_per_second
from tinyfuse.inspect.measure import Measurement, measure
from tinyfuse.inspect.page import Markup, element, fragment, page
from tinyfuse.inspect.table import Table
from tinyfuse.inspect.writing import number_text, plural, time_text, wrapped
from tinyfuse.loops.ir import Kernel
from tinyfuse.records import dataclass, field
from tinyfuse.runtime.pool import num_threads
from tinyfuse.schedule.cost import predicted_seconds


@dataclass(frozen=True, slots=True)
class KernelTime:
    """A kernel's median time and what was predicted, in seconds, of all its turns in loops.

    most_bytes, most_operations: what the machine can do in a second.
    counts: of events by name, in one run. turns: how often a call runs it, as far as is known.
    """

    kernel: Kernel
    seconds: float
    predicted: float
    most_bytes: float
    most_operations: float
    counts: Mapping[str, float] = field(default_factory=dict)
    turns: int = 1

    @property
    def bytes_per_second(self) -> float:
        cost = self.kernel.cost
        nbytes = self.turns * (cost.bytes_read + cost.bytes_written)
        return nbytes / self.seconds if self.seconds else 0.0

    @property
    def operations_per_second(self) -> float:
        return self.turns * self.kernel.cost.flops / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """What calls of a compiled function took: `print` it, or let a notebook show it.

    title: the function and the types of its arguments. repeat: how many calls were measured.
    call_seconds: the median of whole calls. notes: what could not be counted, and the like.

    A reading of the clock, some 20 ns, is in the time of each kernel. Kernels are timed in calls of
    their own, so that on a busy machine they can take more than the whole call did. Beside the
    kernels a call finds its program, takes memory for results, copies arguments that are not in C
    order, writes arrays of the caller's, and makes views.
    """

    title: str
    threads: int
    repeat: int
    kernels: tuple[KernelTime, ...]
    call_seconds: float
    notes: tuple[str, ...] = ()

    @property
    def kernel_seconds(self) -> float:
        """Of all kernels."""
        return sum([each.seconds for each in self.kernels])

    @property
    def dispatch_seconds(self) -> float:
        """What a call takes beside its kernels: finding the program, memory, copies, writes."""
        return max(0.0, self.call_seconds - self.kernel_seconds)

    @property
    def dispatch_share(self) -> float:
        """Of a whole call, 0 to 1."""
        return self.dispatch_seconds / self.call_seconds if self.call_seconds else 0.0

    def __str__(self) -> str:
        lines = [*wrapped(self.title), *wrapped(self._how()), "", *self._times().text()]
        for table in self._counts():
            lines += ["", *table.text()]
        notes = [line for each in self.notes for line in wrapped(each)]
        return "\n".join([*lines, *notes]) + "\n"

    def html(self) -> str:
        """A page of its own, without scripts, that loads nothing."""
        return page(self.title, self._fragment())

    def _repr_html_(self) -> str:
        return str(self._fragment())

    def __repr__(self) -> str:
        return f"<profile of {self.title}, {time_text(self.call_seconds)}>"

    def _fragment(self) -> Markup:
        return fragment(
            element("h1", self.title),
            element("p", self._how()),
            self._times().html(),
            *[table.html() for table in self._counts()],
            *[element("p", each) for each in self.notes],
        )

    def _how(self) -> str:
        return f"medians of {plural(self.repeat, 'call')}, {plural(self.threads, 'thread')}"

    def _times(self) -> Table:
        rest = [""] * (len(_COLUMNS) - 1)
        rows = [
            (each.kernel.name, *self._time(each.seconds), *[text(each) for _, text in _COLUMNS])
            for each in self.kernels
        ]
        predicted = time_text(sum([each.predicted for each in self.kernels]))
        rows += [
            ("all kernels", *self._time(self.kernel_seconds), predicted, *rest),
            ("beside the kernels", *self._time(self.dispatch_seconds), "", *rest),
            ("call", *self._time(self.call_seconds), "", *rest),
        ]
        return Table(("kernel", "time", "share", *[label for label, _ in _COLUMNS]), tuple(rows))

    def _time(self, seconds: float) -> tuple[str, str]:
        share = seconds / self.call_seconds if self.call_seconds else 0.0
        return time_text(seconds), f"{share:.0%}"

    def _counts(self) -> Iterator[Table]:
        """A table of what was counted; none where nothing was."""
        counted = {name for each in self.kernels for name in each.counts}
        columns = [(label, of) for label, needs, of in _COUNTS if counted.issuperset(needs)]
        if columns:
            rows = [
                (each.kernel.name, *[number_text(of(each.counts)) for _, of in columns])
                for each in self.kernels
            ]
            yield Table(("kernel", *[label for label, _ in columns]), tuple(rows))


# After the time of a kernel and its share of the call.
_COLUMNS: tuple[tuple[str, Callable[[KernelTime], str]], ...] = (
    ("predicted", lambda each: time_text(each.predicted)),
    ("GB/s", lambda each: number_text(each.bytes_per_second / 1e9)),
    ("at most", lambda each: number_text(each.most_bytes / 1e9)),
    ("Gop/s", lambda each: number_text(each.operations_per_second / 1e9)),
    ("at most", lambda each: number_text(each.most_operations / 1e9)),
)

# What is told of counts, and the events that each needs.
_COUNTS: tuple[tuple[str, tuple[str, ...], Callable[[Mapping[str, float]], float]], ...] = (
    (
        "instructions per cycle",
        (INSTRUCTIONS, CYCLES),
        lambda counts: counts[INSTRUCTIONS] / max(1.0, counts[CYCLES]),
    ),
    (MISSES, (MISSES,), lambda counts: counts[MISSES]),
    (FAULTS, (FAULTS,), lambda counts: counts[FAULTS]),
)


# Why kernels of a target are not profiled, and what to do instead.
_ON_DEVICE = {
    "cuda": "runs on a GPU, whose kernels are not timed one by one: profile the function with "
    "target='c', or the process with NVIDIA's Nsight Systems",
    "cuda-emulated": "runs on an emulated device, whose times say nothing of a GPU's: profile the "
    "function with target='c'",
}


def profile(
    compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], repeat: int
) -> Profile:
    """As `Compiled.profile`, which see."""
    if repeat < 1:
        raise ValueError(f"repeat must be positive, not {repeat}")
    lowered = compiled.lowered
    if lowered.machine.device:
        raise ValueError(f"{lowered.traced.name} {_ON_DEVICE[lowered.options.target]}")
    measured = measure(compiled, args, kwargs, repeat)
    threads = threads_of(lowered)
    return Profile(
        f"{lowered.traced.name}{lowered.traced.signature}",
        threads,
        repeat,
        tuple(_kernel_times(lowered, measured, threads)),
        float(np.median(measured.calls)),
        tuple([each for each in (measured.missing, note(lowered.machine)) if each]),
    )


def threads_of(lowered: Lowered) -> int:
    """How many threads a call may use."""
    if not lowered.loops.shares_work:
        return 1
    return lowered.options.threads or num_threads()


def _kernel_times(lowered: Lowered, measured: Measurement, threads: int) -> Iterator[KernelTime]:
    machine, turns = lowered.machine, lowered.loops.turns
    for at, kernel in enumerate(lowered.loops.kernels):
        yield KernelTime(
            kernel,
            float(np.median(measured.kernels[:, at])),
            turns[kernel] * predicted_seconds(kernel, machine, threads),
            bytes_per_second(kernel, machine, threads),
            operations_per_second(kernel, machine, threads),
            {name: float(counts[at]) for name, counts in measured.counts.items()},
            turns[kernel],
        )
