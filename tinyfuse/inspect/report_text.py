"""A report as plain text of less than 100 columns."""

from __future__ import annotations

from collections.abc import Iterator

from tinyfuse.inspect.facts import Facts, KernelFacts, Line
from tinyfuse.inspect.reasons import decision_text
from tinyfuse.inspect.summary import (
    comparison,
    cost_text,
    machine_text,
    notes,
    passed_text,
    stages_text,
)
from tinyfuse.inspect.writing import cut, wrapped


def report_text(facts: Facts) -> str:
    """The same for the same program, in every process."""
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: Facts) -> Iterator[str]:
    yield from wrapped(facts.title)
    yield from wrapped(machine_text(facts.lowered.machine))
    yield ""
    yield from comparison(facts).text()
    for note in notes(facts):
        yield from wrapped(note)
    for number, kernel in enumerate(facts.kernels, 1):
        yield ""
        yield from wrapped(f"kernel {number} of {len(facts.kernels)}: {kernel.kernel.name}")
        yield from _kernel(kernel)
    for kernel in facts.once:
        yield ""
        yield from wrapped(f"once, at the first call: {kernel.kernel.name}")
        yield from _kernel(kernel)
    if facts.elsewhere:
        yield from ("", "in no kernel")
        for decision in facts.elsewhere:
            yield from wrapped(decision_text(decision), "  ")
    if facts.passed:
        yield from ("", "not fused")
        for passed in facts.passed:
            yield from wrapped(passed_text(passed), "  ")


def _kernel(kernel: KernelFacts) -> Iterator[str]:
    for line in kernel.lines:
        yield from _source(line)
    yield from wrapped(stages_text(kernel), "  ")
    yield from wrapped(cost_text(kernel), "  ")
    yield from cut(kernel.nest, "  ")
    for decision in kernel.decisions:
        yield from wrapped(decision_text(decision), "  ")


def _source(line: Line) -> list[str]:
    first, *others = line.statement.split("\n")
    return [*cut([f"{line.place}  {first}"], "  "), *cut(others, "      ")]
