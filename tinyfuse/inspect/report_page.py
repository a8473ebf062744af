"""A report as HTML: the table, the drawing, and for each kernel its source beside its C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tinyfuse.inspect.drawing import drawing
from tinyfuse.inspect.facts import Facts, KernelFacts
from tinyfuse.inspect.highlight import code
from tinyfuse.inspect.page import Markup, element, fragment
from tinyfuse.inspect.reasons import decision_text
from tinyfuse.inspect.summary import (
    comparison,
    cost_text,
    machine_text,
    notes,
    passed_text,
    stages_text,
)


def report_fragment(facts: Facts) -> Markup:
    """All of the report, to stand in a page or a notebook."""
    return fragment(*_parts(facts))


def _parts(facts: Facts) -> Iterator[Markup]:
    yield element("h1", facts.title)
    yield element("p", machine_text(facts.lowered.machine))
    yield comparison(facts).html()
    yield from [element("p", note) for note in notes(facts)]
    if facts.kernels:
        yield element("h2", "Stages and kernels")
        yield drawing(facts.lowered)
        yield element("h2", "Kernels")
        yield from map(_kernel, facts.kernels)
    if facts.once:
        yield element("h2", "Once, at the first call")
        yield from map(_kernel, facts.once)
    if facts.elsewhere:
        yield element("h2", "In no kernel")
        yield _list(map(decision_text, facts.elsewhere))
    if facts.passed:
        yield element("h2", "Not fused")
        yield _list(map(passed_text, facts.passed))


def _list(texts: Iterable[str]) -> Markup:
    return element("ul", *[element("li", text) for text in texts])


def _kernel(kernel: KernelFacts) -> Markup:
    return element(
        "section",
        element("h3", kernel.kernel.name),
        element("p", f"{stages_text(kernel)}; {cost_text(kernel)}"),
        element("div", code(_source(kernel), "python"), code(kernel.text, "c"), class_="beside"),
        element("pre", "\n".join(kernel.nest)),
        _list(map(decision_text, kernel.decisions)),
    )


def _source(kernel: KernelFacts) -> str:
    return "\n".join([f"# {line.place}\n{line.statement}" for line in kernel.lines])
