"""What C would write out again and again: nothing has a name behind a test that runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from tinyfuse.schedule.content import Content, references_of
from tinyfuse.schedule.places import MAX_PIECES
from tinyfuse.schedule.uses import Use
from tinyfuse.stage.expr import IndexTest, Load, always_run, is_guard
from tinyfuse.stage.index import Affine, Axis
from tinyfuse.stage.ir import Stage

# Operations that may be written out several times behind a test.
WRITTEN_OUT_BUDGET = 16

Test = tuple[Affine, int | None, int | None]


class Texts:
    """The tests in the loops of each stored stage, and what is inlined there, the last one first.

    Whether a test runs is known only when all of them are: loops are cut at a few.
    """

    def __init__(self) -> None:
        self.tests: dict[Stage, dict[Test, None]] = {}
        self.inlined: dict[Stage, dict[Stage, None]] = {}

    def note(self, stage: Stage, use: Use, content: Content, inlined: bool) -> None:
        """Note that a stage is computed where the use is, as a part of the reader if inlined."""
        values = dict(zip(stage.axes, use.indices, strict=True))
        self.tests.setdefault(use.reader, {}).update(dict.fromkeys(_tests(content, values)))
        self.inlined.setdefault(use.reader, {}).update({stage: None} if inlined else {})

    def repeated(self, content: Mapping[Stage, Content]) -> dict[Stage, str]:
        """What would be written out again and again behind tests, and the reason for storing it."""
        return {
            stage: f"{reader.name} would write it out {times} times behind a test"
            for reader, tests in self.tests.items()
            if _some_run(tests)
            for stage, times in written_out(reader, [*self.inlined[reader]][::-1], content)
        }


def _tests(content: Content, values: Mapping[Axis, Affine]) -> list[Test]:
    """The tests of a stage in terms of its reader, as far as they are not decided there."""
    moved = [IndexTest(t.index.substitute(values), t.low, t.high) for t in content.tests]
    return [(test.index, test.low, test.high) for test in moved if test.decided() is None]


def _some_run(tests: Collection[Test]) -> bool:
    """Whether loops cannot be cut at all of the tests."""
    return len(tests) >= MAX_PIECES or any(
        len(index.terms) > 1 or not all(isinstance(term, Axis) for term, _ in index.terms)
        for index, _, _ in tests
    )


def written_out(
    reader: Stage, stages: Sequence[Stage], content: Mapping[Stage, Content]
) -> Iterator[tuple[Stage, int]]:
    """Those of the stages inlined into a reader that are long and that its text would hold several
    times, and how often. With these stored, it is about as long as the stages' own expressions.

    stages: what is inlined, in the order of the program.
    """
    mentions = {stage: references_of(stage) for stage in (*stages, reader)}
    times = Counter[Stage]()
    for counts in mentions.values():
        times.update(counts)
    named, length = _named(reader, stages), dict.fromkeys(stages, 0)
    for stage in stages:
        if stage not in named:
            inside = [n * length.get(source, 0) for source, n in mentions[stage].items()]
            length[stage] = content[stage].operations + sum(inside)
            if times[stage] > 1 and length[stage] > WRITTEN_OUT_BUDGET:
                length[stage] = 0
                yield stage, times[stage]


def _named(reader: Stage, stages: Sequence[Stage]) -> set[Stage]:
    """The stages whose elements are all needed whatever the tests say: these have names."""
    behind: set[Stage] = set()
    for stage in (reader, *reversed(stages)):
        runs = {} if stage in behind else _always_read(stage)
        behind.update([load.source for load in stage.reads() if load not in runs])
    return set(stages) - behind


def _always_read(stage: Stage) -> dict[Load, None]:
    """The loads of a stage that run whatever its tests say."""
    nodes = [node for each in stage.expressions for node in always_run(each, is_guard)]
    return {node: None for node in nodes if isinstance(node, Load)}
