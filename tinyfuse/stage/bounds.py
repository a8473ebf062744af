"""Intervals of indices where some index tests are known to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import gcd

from tinyfuse.records import dataclass, field
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
        low, high = self._summed(index, self.interval)
        for terms, known in self.sums.items():
            for first, last in self._bounds(index, Affine(terms), known):
                low, high = max(low, first), min(high, last)
        first, last = self._by_sums(index)
        return max(low, first), min(high, last)

    def _by_sums(self, index: Affine) -> tuple[int, int]:
        """The same, of an index that is made of tested sums and others: a row and a column, say."""
        low = high = 0
        rest = index
        for terms, known in self.sums.items():
            factor = _factor(rest, terms)
            if factor:
                rest -= Affine(terms) * factor
                ends = sorted([end * factor for end in known])
                low, high = low + ends[0], high + ends[1]
        first, last = self._by_axes(rest)
        return low + first, high + last

    def _by_axes(self, index: Affine) -> tuple[int, int]:
        """The same, from what is known about axes alone."""
        return self._summed(index, self._by_axes)

    def _bounds(
        self, index: Affine, tested: Affine, known: tuple[int, int]
    ) -> Iterator[tuple[int, int]]:
        """What a tested sum says about an index, by each term that they share.

        `p * index` is `q * tested` plus a difference, whose interval is smallest where p and q make
        the shared term vanish. A quotient in the index shares `k` with the sum: `k` is
        `d * (k / d) + k % d`.
        """
        for term, count in index.terms:
            multiple = tested.coefficient(term)
            if multiple:
                p, q = _ratio(multiple, count)
                yield _divided(p, q, known, self._by_axes(index * p - tested * q))
            if not isinstance(term, Quotient):
                continue
            multiple = _factor(tested, term.index.terms) or 0
            if multiple:
                p, q = _ratio(multiple * term.divisor, count)
                others = (index - Affine(((term, count),))) * p
                low, high = self._by_axes(others - (tested - term.index * multiple) * q)
                ends = sorted([0, -q * multiple * (term.divisor - 1)])
                yield _divided(p, q, known, (low + ends[0], high + ends[1]))

    def _summed(self, index: Affine, inner: Callable[[Affine], tuple[int, int]]) -> tuple[int, int]:
        low = high = index.constant
        for term, coefficient in index.terms:
            ends = sorted([end * coefficient for end in self._term(term, inner)])
            low, high = low + ends[0], high + ends[1]
        return low, high

    def _term(self, term: Term, inner: Callable[[Affine], tuple[int, int]]) -> tuple[int, int]:
        if isinstance(term, Axis):
            return self.axes.get(term, term.interval())
        low, high = inner(term.index)
        if isinstance(term, Quotient):
            return low // term.divisor, high // term.divisor
        if low // term.divisor == high // term.divisor:
            return low % term.divisor, high % term.divisor
        return 0, term.divisor - 1


def _ratio(of_tested: int, of_index: int) -> tuple[int, int]:
    """The smallest p > 0 and q with `p * of_index = q * of_tested`."""
    divisor = gcd(of_tested, of_index)
    p, q = of_tested // divisor, of_index // divisor
    return (p, q) if p > 0 else (-p, -q)


def _divided(
    p: int, q: int, known: tuple[int, int], difference: tuple[int, int]
) -> tuple[int, int]:
    """Bounds of an index, where `p * index` is `q` times something known plus a difference."""
    ends = sorted([end * q for end in known])
    return -(-(ends[0] + difference[0]) // p), (ends[1] + difference[1]) // p


def _factor(index: Affine, terms: Terms) -> int | None:
    """f such that the index has f times these terms; None where there is none."""
    if not terms:
        return None
    factor, remainder = divmod(index.coefficient(terms[0][0]), terms[0][1])
    same = all(index.coefficient(term) == factor * coefficient for term, coefficient in terms)
    return factor if same and not remainder and factor else None
