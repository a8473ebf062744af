"""Exact arithmetic on indices: affine in axes, with quotients and remainders kept whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from tinyfuse.records import dataclass


class IndexArithmetic:
    """The operators of everything that can stand in an index."""

    __slots__ = ()

    def __add__(self, other: IndexLike) -> Affine:
        return affine(self)._plus(affine(other))

    __radd__ = __add__

    def __sub__(self, other: IndexLike) -> Affine:
        return affine(self)._plus(affine(other)._times(-1))

    def __rsub__(self, other: IndexLike) -> Affine:
        return affine(other)._plus(affine(self)._times(-1))

    def __mul__(self, factor: int) -> Affine:
        return affine(self)._times(factor)

    __rmul__ = __mul__

    def __neg__(self) -> Affine:
        return affine(self)._times(-1)

    def __floordiv__(self, divisor: int) -> Affine:
        return affine(self)._quotient(divisor)

    def __mod__(self, divisor: int) -> Affine:
        return affine(self)._remainder(divisor)


@dataclass(frozen=True, eq=False, slots=True)
class Axis(IndexArithmetic):
    """An axis of a stage or the counter of a loop: the values start … start + extent - 1."""

    name: str
    extent: int
    start: int = 0

    def interval(self) -> tuple[int, int]:
        return self.start, self.start + self.extent - 1

    def substitute(self, values: Mapping[Axis, IndexLike]) -> Affine:
        return affine(values.get(self, self))


@dataclass(frozen=True, slots=True)
class Quotient(IndexArithmetic):
    """floor(index / divisor), where the division could not be simplified away."""

    index: Affine
    divisor: int

    def interval(self) -> tuple[int, int]:
        low, high = self.index.interval()
        return low // self.divisor, high // self.divisor

    def substitute(self, values: Mapping[Axis, IndexLike]) -> Affine:
        return self.index.substitute(values) // self.divisor


@dataclass(frozen=True, slots=True)
class Remainder(IndexArithmetic):
    """index mod divisor (never negative), where it could not be simplified away."""

    index: Affine
    divisor: int

    def interval(self) -> tuple[int, int]:
        return 0, self.divisor - 1

    def substitute(self, values: Mapping[Axis, IndexLike]) -> Affine:
        return self.index.substitute(values) % self.divisor


Term = Axis | Quotient | Remainder


class Affine(IndexArithmetic):
    """A sum of coefficient * term, plus a constant. Immutable; equal when the same sum."""

    __slots__ = ("_hash", "constant", "terms")

    terms: tuple[tuple[Term, int], ...]  # in order of first appearance; coefficients are never 0
    constant: int

    def __init__(self, terms: tuple[tuple[Term, int], ...] = (), constant: int = 0):
        self.terms = terms
        self.constant = constant
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Affine):
            return NotImplemented
        if self.constant != other.constant or len(self.terms) != len(other.terms):
            return False
        return self.terms == other.terms or dict(self.terms) == dict(other.terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms), self.constant))
        return self._hash

    def __repr__(self) -> str:
        return index_text(self)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def coefficient(self, term: Term) -> int:
        for known, coefficient in self.terms:
            if known is term or known == term:
                return coefficient
        return 0

    def interval(self) -> tuple[int, int]:
        """(smallest, largest) value over all values of the axes."""
        low = high = self.constant
        for term, coefficient in self.terms:
            first, last = term.interval()
            if coefficient > 0:
                low, high = low + coefficient * first, high + coefficient * last
            else:
                low, high = low + coefficient * last, high + coefficient * first
        return low, high

    def substitute(self, values: Mapping[Axis, IndexLike]) -> Affine:
        if len(self.terms) == 1 and not self.constant:
            term, coefficient = self.terms[0]
            value = term.substitute(values)
            return value if coefficient == 1 else value._times(coefficient)
        result = Affine((), self.constant)
        for term, coefficient in self.terms:
            result = result._plus(term.substitute(values)._times(coefficient))
        return result

    def axes(self) -> dict[Axis, None]:
        """All axes it depends on, also inside quotients and remainders, in order of appearance."""
        found: dict[Axis, None] = {}
        for term, _ in self.terms:
            if isinstance(term, Axis):
                found[term] = None
            else:
                found.update(term.index.axes())
        return found

    def depends_on(self, axis: Axis) -> bool:
        for term, _ in self.terms:
            if term is axis or (not isinstance(term, Axis) and term.index.depends_on(axis)):
                return True
        return False

    def _plus(self, other: Affine) -> Affine:
        if not other.terms:
            return Affine(self.terms, self.constant + other.constant) if other.constant else self
        if not self.terms:
            return Affine(other.terms, self.constant + other.constant) if self.constant else other
        total = dict(self.terms)
        for term, coefficient in other.terms:
            total[term] = total.get(term, 0) + coefficient
        return _recombined(_sum(total, self.constant + other.constant))

    def _times(self, factor: int) -> Affine:
        if factor == 1 or not (self.terms or self.constant):
            return self
        if not factor:
            return Affine()
        terms = tuple([(term, coefficient * factor) for term, coefficient in self.terms])
        return Affine(terms, self.constant * factor)

    def _quotient(self, divisor: int) -> Affine:
        if divisor == 1:
            return self
        multiples, rest, last = self._reduced(divisor)
        if last < divisor:
            return multiples
        grouped = rest._grouped(divisor)
        if grouped is not None:
            size, groups, _ = grouped
            return multiples + groups._quotient(divisor // size)
        if len(rest.terms) == 1 and rest.terms[0][1] == 1:
            term = rest.terms[0][0]
            if isinstance(term, Quotient):
                inner = term.index + rest.constant * term.divisor
                return multiples + inner._quotient(term.divisor * divisor)
        return multiples + Affine(((Quotient(rest, divisor), 1),))

    def _remainder(self, divisor: int) -> Affine:
        if divisor == 1:
            return Affine()
        _, rest, last = self._reduced(divisor)
        if last < divisor:
            return rest
        grouped = rest._grouped(divisor)
        if grouped is not None:
            size, groups, within = grouped
            return groups._remainder(divisor // size) * size + within
        return Affine(((Remainder(rest, divisor), 1),))

    def _reduced(self, divisor: int) -> tuple[Affine, Affine, int]:
        """(multiples, rest, the largest rest) with self = divisor * multiples + rest and 0 <= rest.

        The smallest rest is below `divisor`. What is divided in the end is never negative, so that
        C's division, which rounds towards 0, is this one.
        """
        multiples, rest = self._split(divisor)
        low, high = rest.interval()
        below = low // divisor
        return multiples + below, rest - below * divisor, high - below * divisor

    def _split(self, divisor: int) -> tuple[Affine, Affine]:
        """(multiples, rest) with self = divisor * multiples + rest."""
        whole, constant = divmod(self.constant, divisor)
        multiples = tuple([(t, c // divisor) for t, c in self.terms if c % divisor == 0])
        rest = tuple([(t, c) for t, c in self.terms if c % divisor])
        return Affine(multiples, whole), Affine(rest, constant)

    def _grouped(self, divisor: int) -> tuple[int, Affine, Affine] | None:
        """(size, groups, within) with self = size * groups + within and 0 <= within < size.

        The size divides `divisor`, so that groups are divided instead: `(64 * s + l) / 128` is
        `s / 2` where l < 64.
        """
        for size in sorted({gcd(divisor, c) for _, c in self.terms}, reverse=True):
            groups, within = self._split(size)
            low, high = within.interval()
            if size > 1 and low >= 0 and high < size:
                return size, groups, within
        return None


def _sum(coefficients: Mapping[Term, int], constant: int) -> Affine:
    terms = tuple(coefficients.items())
    if all(coefficients.values()):
        return Affine(terms, constant)
    return Affine(tuple([(term, times) for term, times in terms if times]), constant)


def _recombined(index: Affine) -> Affine:
    """`c * d * (k / d) + c * (k % d)` is `c * k`."""
    for term, coefficient in index.terms:
        if isinstance(term, Remainder):
            quotient = (term.index // term.divisor)._times(coefficient * term.divisor)
            if all(index.coefficient(t) == c for t, c in quotient.terms):
                used = (term, *(t for t, _ in quotient.terms))
                first = min(at for at, (t, _) in enumerate(index.terms) if t in used)
                before = Affine(index.terms[:first], index.constant - quotient.constant)
                after = tuple([(t, c) for t, c in index.terms[first:] if t not in used])
                return before._plus(term.index._times(coefficient))._plus(Affine(after))
    return index


_ZERO = Affine()

IndexLike = Affine | Axis | Quotient | Remainder | IndexArithmetic | int


def affine(value: IndexLike) -> Affine:
    """Any index as an `Affine`."""
    if isinstance(value, Affine):
        return value
    if isinstance(value, int):
        return Affine((), value)
    return Affine(((value, 1),))  # type: ignore[arg-type]


def flat_index(indices: Sequence[IndexLike], shape: Sequence[int]) -> Affine:
    """The position of an element among all of an array's, in C order."""
    flat, stride = _ZERO, 1
    for index, extent in zip(reversed(indices), reversed(shape), strict=True):
        if extent != 1:
            flat = affine(index)._times(stride)._plus(flat)
        stride *= extent
    return flat


def index_text(index: IndexLike, names: Mapping[Axis, str] | None = None) -> str:
    """As C writes it: `64 * b + l - 1`. `names` replaces the axes' own names."""
    index = affine(index)
    parts = [_product_text(term, coefficient, names) for term, coefficient in index.terms]
    if index.constant or not parts:
        parts.append(str(index.constant))
    return " + ".join(parts).replace("+ -", "- ")


def _product_text(term: Term, coefficient: int, names: Mapping[Axis, str] | None) -> str:
    if isinstance(term, Axis):
        text = names.get(term, term.name) if names else term.name
    else:
        inner = index_text(term.index, names)
        inner = inner if " " not in inner else f"({inner})"
        text = f"{inner} {'/' if isinstance(term, Quotient) else '%'} {term.divisor}"
        if coefficient != 1:
            text = f"({text})"
    if coefficient == 1:
        return text
    return f"-{text}" if coefficient == -1 else f"{coefficient} * {text}"
