"""Intervals of indices where some index tests are known to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyfuse.stage.expr import Expr, IndexTest, Op
from tinyfuse.stage.index import Affine, Axis, Quotient, Term

Bounds = tuple[int | None, int | None]  # (smallest, largest); None: not known
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
        for terms, known in self.sums.items():
            for first, last in (self._by_terms(index, terms, known), self._by_quotient(index, terms, known)):
                low = low if first is None else max(low, first)
                high = high if last is None else min(high, last)
        return low, high

    def _by_terms(self, index: Affine, terms: Terms, known: tuple[int, int]) -> Bounds:
        """Bounds of an index that has a multiple of a tested sum."""
        factor = _factor(index, terms)
        if not factor:
            return None, None
        low, high = self._sum_of_intervals(index - Affine(terms) * factor)
        ends = sorted([end * factor for end in known])
        return ends[0] + low, ends[1] + high

    def _by_quotient(self, index: Affine, terms: Terms, known: tuple[int, int]) -> Bounds:
        """Bounds of an index with a quotient of what a tested sum has a multiple of.

        With the sum `a * k + rest`, `k = d * (k / d) + k % d`, and an index `c * (k / d) + other`,
        `f * index` is the sum plus `f * other - rest - a * (k % d)` for `f = a * d / c`.
        """
        tested = Affine(terms)
        for term, count in index.terms:
            divided = term.index if isinstance(term, Quotient) else None
            multiple = _factor(tested, divided.terms) if divided else None
            if divided is None or not multiple or multiple * term.divisor % count:
                continue
            factor = multiple * term.divisor // count
            if multiple > 0 and factor > 0:
                others = (index - Affine(((term, count),))) * factor - (tested - divided * multiple)
                low, high = self._sum_of_intervals(others)
                low -= multiple * (term.divisor - 1)
                return -(-(known[0] + low) // factor), (known[1] + high) // factor
        return None, None

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
