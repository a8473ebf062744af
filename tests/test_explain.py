"""explain: the report's words and figures, its page, and its drawing."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tinyfuse
from tests.programs import PROGRAMS
from tinyfuse.compilation import Lowered
from tinyfuse.inspect.arrangement import arranged
from tinyfuse.inspect.diagram import INPUTS, diagram_of
from tinyfuse.inspect.drawing import MOST_NODES
from tinyfuse.inspect.layout import WIDEST, Box, rows_of
from tinyfuse.inspect.nest import nest_lines
from tinyfuse.inspect.reasons import decision_text
from tinyfuse.inspect.report import Report
from tinyfuse.inspect.table import Table
from tinyfuse.inspect.writing import cut, number_text, plural, printable, time_text
from tinyfuse.machine import REFERENCE
from tinyfuse.records import dataclass
from tinyfuse.schedule.schedule import Schedule


def brighten(image, gain):
    scaled = image * gain
    return np.minimum(scaled + 1, 255)


IMAGE = np.zeros((480, 640), np.float32)

BRIGHTEN = """\
brighten(float32[480, 640], float)
planned for the machine reference: 2 cores, vectors of 64 bytes, caches of 48 KiB, 1 MiB, 32 MiB

                           fused   unfused  factor
kernels                        1         4      4x
bytes read              1.17 MiB  3.52 MiB      3x
bytes written           1.17 MiB  3.52 MiB      3x
bytes read and written  2.34 MiB  7.03 MiB      3x
operations               921,600   921,600
operations per byte        0.375     0.125
scratch memory               0 B  2.34 MiB     all
predicted time           10.8 µs   32.5 µs      3x

kernel 1 of 1: brighten_out
  test_explain.py:31  scaled = image * gain
  test_explain.py:32  return np.minimum(scaled + 1, 255)
  computes cast, scaled, add, out
  reads 1.17 MiB, writes 1.17 MiB; 921,600 operations, 0.375 per byte; predicted 10.8 µs
  for i < 307200 parallel: out
  cast -> scaled: inline, out takes each element as it is computed
  scaled -> add: inline, out takes each element as it is computed (307,200 operations; saves 2.34
    MiB; alone 20.7 µs)
  add -> out: inline, out takes each element as it is computed (307,200 operations; saves 2.34
    MiB; alone 20.7 µs)
  out -> the caller: store, it is an output (307,200 operations; alone 20.7 µs)
"""


def lowered_for(function: Any, *args: Any) -> Lowered:
    """Planned for the reference machine."""
    traced = tinyfuse.jit(function).trace(*args)
    return Lowered(traced, traced.options, REFERENCE)


def report_on(function: Any, *args: Any) -> Report:
    return tinyfuse.explain(lowered_for(function, *args))


def unfused_report_on(function: Any, *args: Any) -> Report:
    """With a kernel for each array, whatever the planner would do."""
    return tinyfuse.explain(lowered_for(function, *args).unfused())


def example(name: str) -> Report:
    return report_on(PROGRAMS[name].function, *PROGRAMS[name].arguments())


def parsed(report: Report) -> ElementTree.Element:
    """The page, which has to be well-formed."""
    return ElementTree.fromstring(report.html())


def words(report: Report) -> str:
    """What a reader sees of the page, block by block."""
    blocks = ("h1", "h2", "h3", "p", "li", "pre", "th", "td")
    found = [element for element in parsed(report).iter() if element.tag in blocks]
    return "".join(f"{''.join(element.itertext())}\n" for element in found)


def test_the_text_of_a_report():
    assert str(report_on(brighten, IMAGE, 1.5)) == BRIGHTEN


@pytest.mark.parametrize("name", PROGRAMS)
def test_figures_are_those_of_the_program(name: str):
    report, lowered = (
        example(name),
        lowered_for(PROGRAMS[name].function, *PROGRAMS[name].arguments()),
    )
    for totals, program in ((report.fused, lowered), (report.unfused, lowered.unfused())):
        costs = program.cost.values()
        assert totals.kernels == len(program.loops.kernels)
        assert totals.scratch_bytes == program.scratch_bytes
        assert totals.flops == sum(cost.flops for cost in costs)
        assert totals.nbytes == sum(cost.bytes_read + cost.bytes_written for cost in costs)
    assert [each.kernel.name for each in report.kernels] == list(lowered.cost)
    told = [decision for each in report.kernels for decision in each.decisions]
    told += report.facts.elsewhere
    assert sorted(map(str, told)) == sorted(map(str, lowered.decisions))


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_and_page_hold_everything(name: str):
    report = example(name)
    text, page = str(report), words(report)
    assert max(map(len, text.splitlines())) < 100
    assert text == str(example(name))
    for each in report.kernels:
        assert each.kernel.name in text
        assert each.text in page
        assert all(line in text for line in cut(each.nest, "  "))
        for decision in each.decisions:
            assert decision_text(decision) in page
    assert report.html() == example(name).html()


def test_c_in_a_report_is_what_is_compiled():
    lowered = lowered_for(PROGRAMS["layer_norm"].function, *PROGRAMS["layer_norm"].arguments())
    assert all(each.text in lowered.as_text("c") for each in tinyfuse.explain(lowered).kernels)


HOSTILE = """
def hostile(x, mode):
    words = "</pre><script>alert(1)</script>\\u202e&"
    y = (x + {len(words): 1}[
        len("</pre><script>alert(1)</script>\u202e&")
    ]) * len("']]><svg onload='alert(2)'>")
    return y
"""


def test_what_the_user_writes_is_text_only(tmp_path: Path):
    path = tmp_path / "hostile <b>.py"
    path.write_text(HOSTILE)
    variables: dict[str, Any] = {"np": np}
    exec(compile(HOSTILE, str(path), "exec"), variables)
    report = report_on(variables["hostile"], np.ones(3), "<script>alert(3)</script>\u202e")
    tags = {element.tag.rpartition("}")[2] for element in parsed(report).iter()}
    assert tags & {"script", "b", "img", "link", "iframe"} == set()
    attributes = {name for element in parsed(report).iter() for name in element.attrib}
    assert not any(name.startswith("on") or name in ("href", "src") for name in attributes)
    seen = words(report)
    assert 'len("</pre><script>alert(1)</script>?&")' in seen
    assert "mode='<script>alert(3)</script>" in seen
    assert "\u202e" not in report.html() + str(report)
    assert "<script" not in report.html()


def test_a_page_needs_nothing_else(tmp_path: Path):
    report = report_on(brighten, IMAGE, 1.5)
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page == report.html()
    assert page.startswith("<!DOCTYPE html>")
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert report._repr_html_() in page
    assert report._repr_html_().startswith('<div class="tinyfuse">')
    assert repr(report) == "<report on brighten(float32[480, 640], float), 1 kernel>"


def twice(x):
    total = x.sum()
    return x / total, total * 2


def test_what_is_not_fused_and_why():
    report = unfused_report_on(twice, np.ones(50))
    (passed,) = report.facts.passed
    assert (passed.buffer.name, passed.buffer.nbytes) == ("total", 8)
    assert passed.writer.name == "twice_total"
    assert [kernel.name for kernel in passed.readers] == ["twice_out", "twice_out_1"]
    line = "total (8 B), stored by twice_total, read by twice_out, twice_out_1: fusion is off"
    assert f"not fused\n  {line}\n" in str(report)
    assert line in words(report)


def test_a_schedule_of_the_users_has_no_reasons():
    jitted = tinyfuse.jit(brighten, schedule=Schedule)
    report = tinyfuse.explain(jitted, IMAGE, 1.5)
    assert report.fused.nbytes == report.unfused.nbytes
    assert "the schedule says so" in str(report)
    assert [each.decisions for each in report.kernels] == [()] * 4


class Scaling:
    def __init__(self):
        self.factor = np.float32(2)

    @tinyfuse.jit
    def jitted(self, x):
        return x * self.factor

    def plain(self, x):
        return x * self.factor


def test_whatever_stands_for_a_program_can_be_explained():
    x = np.ones(3, np.float32)
    jitted = tinyfuse.jit(brighten)
    lowered = jitted.lower(x, gain=2.0)
    forms = [lowered, lowered.traced, lowered.compile()]
    texts = {str(tinyfuse.explain(form)) for form in forms}
    texts |= {str(tinyfuse.explain(f, x, gain=2.0)) for f in (jitted, brighten)}
    texts.add(str(tinyfuse.explain(brighten, tinyfuse.ShapeDtypeStruct((3,), np.float32), 2.0)))
    assert len(texts) == 1
    assert "kernel 1 of 1: jitted_out" in str(tinyfuse.explain(Scaling().jitted, x))
    assert "kernel 1 of 1: plain_out" in str(tinyfuse.explain(Scaling().plain, x))
    with pytest.raises(TypeError, match=r"<lowered brighten\(.*has its arguments already"):
        tinyfuse.explain(lowered, x)
    for other in (None, 3):
        with pytest.raises(TypeError, match=f"explain takes a function, not {other}"):
            tinyfuse.explain(other)


def test_a_function_that_computes_nothing():
    report = report_on(lambda x: (x.T, x, "name"), np.ones((3, 2)))
    assert report.fused.kernels == report.fused.intensity == 0
    assert "There is nothing to compute: no kernel runs.\n3 results without computing" in str(
        report
    )
    assert "There is nothing to compute" in words(report)
    empty = report_on(lambda x: x + 1, np.ones((0, 3)))
    assert "\nin no kernel\n  out -> the caller: store, it is an output\n" in str(empty)
    assert "In no kernel" in words(empty)


def counted(x, state):
    x[1:] += state["step"]
    return state["step"] * 2


def test_arrays_that_are_written_are_named():
    report = report_on(counted, np.ones(4), {"step": np.float64(2)})
    assert "Written at the end of a call: x.\n" in str(report)
    assert "Written at the end of a call: x." in words(report)


def many(x):
    for turn in list(range(MOST_NODES)):
        x = x * turn + x.sum()
    return x


def test_a_large_program_is_listed_in_place_of_drawn():
    report = unfused_report_on(many, np.ones(5))
    page = parsed(report)
    assert [element for element in page.iter() if element.tag.endswith("svg")] == []
    assert f"are more than the {MOST_NODES} that are." in words(report)
    assert "many_sum_1 reads x_1\n" in words(report)
    assert len(report.kernels) == report.fused.kernels >= MOST_NODES


# -- drawings


def overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.bottom
        and other.y < one.bottom
    )


def holds(outer: Box, inner: Box) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.bottom <= outer.bottom
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_boxes_lie_beside_one_another_and_lines_lead_down_around_them(name: str):
    diagram = diagram_of(lowered_for(PROGRAMS[name].function, *PROGRAMS[name].arguments()))
    drawn = arranged(diagram)
    for boxes in (drawn.groups[1:], drawn.nodes):
        assert not any(overlap(*pair) for pair in itertools.combinations(boxes, 2))
    for node, box in zip(diagram.nodes, drawn.nodes, strict=True):
        assert holds(drawn.groups[node.group], box)
        assert holds(Box(0, 0, drawn.width, drawn.height), box)
    for (source, target), line in zip(diagram.edges, drawn.lines, strict=True):
        assert (line[0], line[-1]) == (drawn.nodes[source], drawn.nodes[target])
        assert all(one.bottom < other.y for one, other in itertools.pairwise(line))
        assert not any(overlap(cell, node) for cell in line[1:-1] for node in drawn.nodes)


def test_a_diagram_shows_what_reads_what():
    diagram = diagram_of(lowered_for(twice, np.ones(20)).unfused())
    assert diagram.groups == ("", "twice_total", "twice_out", "twice_out_1")
    nodes = [(node.group, node.name, node.kind) for node in diagram.nodes]
    assert nodes == [
        (INPUTS, "x", "input"),
        (1, "total", "stored"),
        (2, "out", "output"),
        (3, "out_1", "output"),
    ]
    assert diagram.edges == ((0, 1), (0, 2), (1, 2), (1, 3))
    assert diagram.nodes[1].about == "total: float64[]\ntotal = x.sum()"
    titles = [
        e.text for e in parsed(unfused_report_on(twice, np.ones(20))).iter() if "title" in e.tag
    ]
    assert "total: float64[]\ntotal = x.sum()" in titles


def test_rows_follow_the_longest_paths():
    assert rows_of(4, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 1)]) == [0, 1, 2, 3]
    assert rows_of(WIDEST + 2, [(0, WIDEST + 1)]) == [*[0] * WIDEST, 1, 2]
    assert rows_of(0, []) == []


# -- words


@dataclass(frozen=True, slots=True)
class FullDecision:
    producer: str
    consumers: tuple[str, ...]
    action: str
    reason: str
    recompute: float = 1
    flops: int | None = None
    bytes_saved: int = 0
    live_values: int = 0
    predicted_seconds: float = 0
    device: str = ""


def test_a_decision_tells_all_that_it_knows():
    bare = ("e", ("sum", "out"), "inline", "both take it")
    assert decision_text(FullDecision(*bare)) == "e -> sum, out: inline, both take it"
    full = FullDecision(*bare, 1.5, 1000, 2048, 17, 2.5e-6, "cpu")
    assert decision_text(full) == (
        "e -> sum, out: inline, both take it (computed 1.5 times; 1,000 operations; saves 2 KiB;"
        " 17 live values; alone 2.5 µs; device cpu)"
    )
    nobody = FullDecision("e", (), "store", "it is an output")
    assert decision_text(nobody) == "e -> the caller: store, it is an output"


def test_loop_nests_in_short():
    lowered = lowered_for(PROGRAMS["softmax"].function, *PROGRAMS["softmax"].arguments())
    kernels = {kernel.name: kernel for kernel in lowered.unfused().kernels}
    assert nest_lines(kernels["softmax_out"].body) == ["for i < 8, j < 300 vector: out"]
    assert nest_lines(kernels["softmax_max"].body) == [
        *("for i < 8", "  max_rank", "  for k < 300: max_rank", "  max")
    ]


def test_numbers_read_as_a_person_says_them():
    times = [time_text(s) for s in (0, 2e-9, 999.6e-9, 1.234e-6, 0.0123, 1, 3000)]
    assert times == ["0 ns", "2 ns", "1 µs", "1.23 µs", "12.3 ms", "1 s", "3,000 s"]
    assert [number_text(n) for n in (0, 0.125, 12.34, 999.7, 12345)] == [
        *("0", "0.125", "12.3", "1,000", "12,345")
    ]
    assert [plural(n, "call") for n in (0, 1, 2000)] == ["0 calls", "1 call", "2,000 calls"]
    assert printable("a\tb\x00\u202e") == "a   b??"
    assert cut(["x" * 100, ""], "  ") == ["  " + "x" * 96, "  " + "x" * 4, "  "]


def test_a_table_as_text_and_as_html():
    table = Table(("of", "n"), (("a", "1"), ("b" * 40, "20"), ("<c>", "300")))
    assert table.text() == ["of     n", "a      1", "b" * 40, "      20", "<c>  300"]
    assert table.html() == (
        "<table><thead><tr><th>of</th><th>n</th></tr></thead><tbody><tr><td>a</td><td>1</td></tr>"
        f"<tr><td>{'b' * 40}</td><td>20</td></tr><tr><td>&lt;c&gt;</td><td>300</td></tr></tbody>"
        "</table>"
    )
