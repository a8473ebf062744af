"""Ranges: what a loop nest covers of each axis, as an affine start and a constant extent."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.errors import ScheduleError
from tinyfuse.records import dataclass
from tinyfuse.stage.expr import IndexTest
from tinyfuse.stage.index import Affine, Axis, affine


@dataclass(frozen=True, slots=True)
class Range:
    """The positions base … base + extent - 1."""

    base: Affine
    extent: int

    def hull(self, other: Range) -> Range:
        """The smallest range that covers both."""
        apart = other.base - self.base
        if not apart.is_constant:
            raise ScheduleError(f"two reads at unrelated places: {self.base} and {other.base}")
        low = min(0, apart.constant)
        return Range(self.base + low, max(self.extent, apart.constant + other.extent) - low)

    def within(self, axis: Axis) -> Range:
        """Cut to the axis: what lies outside is only read where a test has excluded it.

        What moves with a loop and meets an edge is all that its steps cover.
        """
        low, high = self.base.interval()
        if low >= 0 and high + self.extent <= axis.extent:
            return self
        if not axis.extent:
            return whole(axis)
        start = min(max(0, low), axis.extent - 1)  # never empty: a buffer has an element
        return Range(affine(start), max(1, min(axis.extent, high + self.extent) - start))


Ranges = Mapping[Axis, Range]

_START = Affine()


def whole(axis: Axis) -> Range:
    return Range(_START, axis.extent)


def image(index: Affine, ranges: Mapping[Axis, Range]) -> Range:
    """The range that an index covers while its axes run over their ranges."""
    if any(not isinstance(term, Axis) for term, _ in index.terms):
        return _image_of_quotients(index, ranges)
    base, extent = affine(index.constant), 1
    for axis, coefficient in index.terms:
        assert isinstance(axis, Axis)
        span = (ranges[axis].extent - 1) * coefficient
        base = base + ranges[axis].base * coefficient + min(span, 0)
        extent += abs(span)
    return Range(base, extent)


def _image_of_quotients(index: Affine, ranges: Mapping[Axis, Range]) -> Range:
    """A single point stays exact; anything larger is covered by an interval."""
    if all(ranges[axis].extent == 1 for axis in index.axes()):
        return Range(index.substitute({axis: ranges[axis].base for axis in index.axes()}), 1)
    spans = {axis: _span(axis, ranges[axis]) for axis in index.axes()}
    low, high = index.substitute(spans).interval()
    return Range(affine(low), high - low + 1)


def _span(axis: Axis, range_: Range) -> Axis:
    low, high = range_.base.interval()
    return Axis(axis.name, high - low + range_.extent, low)


def excluded(test: IndexTest, ranges: Mapping[Axis, Range]) -> bool:
    """Whether a test fails everywhere in the ranges."""
    return IndexTest(_within(test.index, ranges), test.low, test.high).decided() is False


def _within(index: Affine, ranges: Mapping[Axis, Range]) -> Affine:
    return index.substitute(
        {axis: _span(axis, ranges[axis]) for axis in index.axes() if axis in ranges}
    )


def changes(test: IndexTest, axis: Axis, ranges: Mapping[Axis, Range]) -> list[int]:
    """The positions of an axis at which a test becomes, or stops being, decided.

    All other axes run over their ranges.
    """
    coefficient = test.index.coefficient(axis)
    rest = test.index - affine(axis) * coefficient
    if not coefficient or rest.depends_on(axis):
        return []
    low, high = _within(rest, ranges).interval()
    found = []
    for bound in (test.low, test.high):
        if bound is not None:  # index >= bound flips, for the two extremes of the rest
            found += [_flip(coefficient, bound - high), _flip(coefficient, bound - low)]
    return found


def _flip(coefficient: int, bound: int) -> int:
    """The first position x at which `coefficient * x >= bound` has changed."""
    if coefficient > 0:
        return -(-bound // coefficient)
    return bound // coefficient + 1
