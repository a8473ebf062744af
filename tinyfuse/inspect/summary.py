"""The parts of a report that its text and its page share: tables and sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyfuse.emit.comments import names_text, size_text
from tinyfuse.inspect.facts import Facts, KernelFacts, Passed, Totals
from tinyfuse.inspect.table import Table
from tinyfuse.inspect.writing import number_text, plural, time_text
from tinyfuse.machine import Machine


def _count(value: int) -> str:
    return f"{value:,}"


# Of a program with and without fusion: label, quantity, its text, and whether a factor is told.
_ROWS: tuple[tuple[str, Callable[[Totals], Any], Callable[[Any], str], bool], ...] = (
    ("kernels", lambda totals: totals.kernels, _count, True),
    ("bytes read", lambda totals: totals.bytes_read, size_text, True),
    ("bytes written", lambda totals: totals.bytes_written, size_text, True),
    ("bytes read and written", lambda totals: totals.nbytes, size_text, True),
    ("operations", lambda totals: totals.flops, _count, True),
    ("operations per byte", lambda totals: totals.intensity, number_text, False),
    ("scratch memory", lambda totals: totals.scratch_bytes, size_text, True),
    ("predicted time", lambda totals: totals.seconds, time_text, True),
)


def comparison(facts: Facts) -> Table:
    """The program beside the one with nothing fused."""
    rows = []
    for label, of, text, counted in _ROWS:
        fused, unfused = of(facts.fused), of(facts.unfused)
        rows.append((label, text(fused), text(unfused), _factor(fused, unfused) if counted else ""))
    return Table(("", "fused", "unfused", "factor"), tuple(rows))


def _factor(fused: float, unfused: float) -> str:
    if fused == unfused:
        return ""
    return f"{number_text(unfused / fused)}x" if fused else "all"


def machine_text(machine: Machine) -> str:
    caches = ", ".join(map(size_text, (machine.l1, machine.l2, machine.l3)))
    return (
        f"planned for the machine {machine.name}: {plural(machine.cores, 'core')}, vectors of"
        f" {machine.vector_bytes} bytes, caches of {caches}"
    )


def notes(facts: Facts) -> list[str]:
    """Sentences on what stands in no kernel."""
    said = []
    if not facts.kernels:
        said.append("There is nothing to compute: no kernel runs.")
    if facts.made_by_numpy:
        count = plural(facts.made_by_numpy, "result")
        said.append(
            f"{count} without computing: arguments, captured arrays, views of arrays, or values"
            " that are the same at every call."
        )
    if facts.once:
        count, kept = plural(len(facts.once), "kernel"), size_text(facts.lowered.kept_bytes)
        said.append(f"Once, before the first call, {count} of constants alone; {kept} are kept.")
    if facts.written:
        said.append(f"Written at the end of a call: {names_text(facts.written)}.")
    return said


def cost_text(each: KernelFacts) -> str:
    cost = each.kernel.cost
    nbytes = cost.bytes_read + cost.bytes_written
    intensity = f", {number_text(cost.flops / nbytes)} per byte" if nbytes else ""
    return (
        f"reads {size_text(cost.bytes_read)}, writes {size_text(cost.bytes_written)};"
        f" {plural(cost.flops, 'operation')}{intensity}; predicted {time_text(each.seconds)}"
    )


def stages_text(kernel: KernelFacts) -> str:
    return f"computes {names_text(kernel.kernel.stages)}"


def passed_text(passed: Passed) -> str:
    """`e (16 MiB), stored by f_e, read by f_sum, f_out: out and sum_lanes read it`."""
    readers = names_text([kernel.name for kernel in passed.readers])
    size = size_text(passed.buffer.nbytes)
    return (
        f"{passed.buffer.name} ({size}), stored by {passed.writer.name}, read by {readers}:"
        f" {passed.reason}"
    )
