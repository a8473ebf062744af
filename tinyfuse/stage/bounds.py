"""Intervals of indices where some index tests are known to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyfuse.stage.expr import Expr, IndexTest, Op
from tinyfuse.stage.index import Affine, Axis, Quotient, Term

Terms = tuple[tuple[Term, int], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about axes, and about the sums of terms that were tested."""

    axes: Mapping[Axis, tuple[int, int]] = field(default_factory=dict)
    sums: Mapping[Terms, tuple[int, int]] = field(default_factory=dict)

    @property
    def contradictory(self) -> bool:
        """Whether they can never hold."""
        return any(low > high for bounds in (self.axes, self.sums) for low, high in bounds.values())

    def where(self, condition: Expr, holds: bool) -> Facts:
        """With a condition that holds, or does not hold."""
        if isinstance(condition, IndexTest):
            return self._where_test(condition, holds)
        if holds and isinstance(condition, Op) and condition.name == "logical_and":
            first, second = condition.operands
            return self.where(first, True).where(second, True)
        return self

    def _where_test(self, test: IndexTest, holds: bool) -> Facts:
        low, high = test.low, test.high
        if not holds:
            if low is not None and high is not None:
                return self
            low, high = high, low
        last = None if high is None else high - 1
        return self._within(test.index, low, last)

    def _within(self, index: Affine, low: int | None, last: int | None) -> Facts:
        """With an index in low … last."""
        first, end = self.interval(index)
        first = first if low is None else max(first, low)
        end = end if last is None else min(end, last)
        bounds = first - index.constant, end - index.constant
        axes = dict(self.axes)
        for term, coefficient in index.terms:
            if isinstance(term, Axis):
                axes[term] = self._solved(index, term, coefficient, first, end)
        return Facts(axes, {**self.sums, index.terms: bounds})

    def _solved(
        self, index: Affine, axis: Axis, coefficient: int, first: int, end: int
    ) -> tuple[int, int]:
        """The values of an axis for which an index can be in first … end."""
        rest_low, rest_high = self.interval(index - axis * coefficient)
        least, most = first - rest_high, end - rest_low
        if coefficient < 0:
            least, most = -most, -least
        low, high = self.axes.get(axis, axis.interval())
        factor = abs(coefficient)
        return max(low, -(-least // factor)), min(high, most // factor)

    def interval(self, index: Affine) -> tuple[int, int]:
        """(smallest, largest) value that an index can have."""
        low, high = self._sum_of_intervals(index)
        for terms, (known_low, known_high) in self.sums.items():
            factor = _factor(index, terms)
            if factor:
                rest = Affine(tuple([part for part in index.terms if part[0] not in dict(terms)]))
                rest_low, rest_high = self._sum_of_intervals(rest)
                ends = sorted([known_low * factor, known_high * factor])
                low = max(low, ends[0] + rest_low + index.constant)
                high = min(high, ends[1] + rest_high + index.constant)
        return low, high

    def _sum_of_intervals(self, index: Affine) -> tuple[int, int]:
        low = high = index.constant
        for term, coefficient in index.terms:
            ends = sorted([end * coefficient for end in self._term(term)])
            low, high = low + ends[0], high + ends[1]
        return low, high

    def _term(self, term: Term) -> tuple[int, int]:
        if isinstance(term, Axis):
            return self.axes.get(term, term.interval())
        low, high = self.interval(term.index)
        if isinstance(term, Quotient):
            return low // term.divisor, high // term.divisor
        if low // term.divisor == high // term.divisor:
            return low % term.divisor, high % term.divisor
        return 0, term.divisor - 1


def _factor(index: Affine, terms: Terms) -> int | None:
    """f such that the index has f times these terms; None where there is none."""
    if not terms:
        return None
    factor, remainder = divmod(index.coefficient(terms[0][0]), terms[0][1])
    same = all(index.coefficient(term) == factor * coefficient for term, coefficient in terms)
    return factor if same and not remainder and factor else None
