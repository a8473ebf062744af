"""Equations on real arrays as Python writes arithmetic: what complex numbers are computed by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Literal, Primitive, Var
from tinyfuse.graph.scalar_ops import FMA, SCALAR_OPS
from tinyfuse.graph.shapes import infer, result_dtype
from tinyfuse.source import Source


class Equations:
    """Equations that are being written. source: the place in the user's code of those to come."""

    def __init__(self) -> None:
        self.eqns: list[Eqn] = []
        self.source: Source | None = None

    def emit(self, primitive: Primitive, *atoms: Atom, **params: Any) -> Var:
        """Append an equation; the primitive's shape rule gives the type of its output."""
        output = Var(*infer(primitive, atoms, params))
        self.eqns.append(Eqn(primitive, atoms, params, output, self.source))
        return output


class Real:
    """A real array, or a literal, with Python's operators as equations."""

    __slots__ = ("atom", "equations")

    def __init__(self, equations: Equations, atom: Atom) -> None:
        self.equations = equations
        self.atom = atom

    @property
    def dtype(self) -> np.dtype:
        return self.atom.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.atom.shape

    def like(self, value: Any) -> Real:
        """A number in this dtype."""
        return Real(self.equations, Literal(self.dtype.type(value)))

    def apply(self, op: str, *others: Real | float) -> Real:
        """A row of `SCALAR_OPS` on this one and others of its dtype, literals or of its shape."""
        operands = [other if isinstance(other, Real) else self.like(other) for other in others]
        return _elementwise(self.equations, op, [self, *operands])

    def of(self, primitive: Primitive, *others: Real, **params: Any) -> Real:
        """An equation on this one and others."""
        atoms = [other.atom for other in others]
        return Real(self.equations, self.equations.emit(primitive, self.atom, *atoms, **params))

    def cast(self, dtype: np.dtype) -> Real:
        return self if self.dtype == dtype else self.of(p.cast, dtype=dtype)

    def __add__(self, other: Real | float) -> Real:
        return self.apply("add", other)

    def __sub__(self, other: Real | float) -> Real:
        return self.apply("subtract", other)

    def __mul__(self, other: Real | float) -> Real:
        return self.apply("multiply", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self.apply("divide", other)

    def __neg__(self) -> Real:
        return self.apply("negative")

    def __abs__(self) -> Real:
        return self.apply("absolute")

    def __lt__(self, other: Real | float) -> Real:
        return self.apply("less", other)

    def __le__(self, other: Real | float) -> Real:
        return self.apply("less_equal", other)

    def __gt__(self, other: Real | float) -> Real:
        return self.apply("greater", other)

    def __ge__(self, other: Real | float) -> Real:
        return self.apply("greater_equal", other)

    def __and__(self, other: Real) -> Real:
        return self.apply("logical_and", other)

    def __or__(self, other: Real) -> Real:
        return self.apply("logical_or", other)

    def __invert__(self) -> Real:
        return self.apply("logical_not")

    def is_(self, other: Real | float) -> Real:
        """Where they are equal."""
        return self.apply("equal", other)


class Complex(NamedTuple):
    """The two parts of complex numbers, of one shape and dtype; either may be a literal."""

    re: Real
    im: Real


def fma(a: Real, b: Real, c: Real) -> Real:
    """a * b + c, rounded once."""
    return a.apply(FMA, b, c)


def select(condition: Real, a: Real | float, b: Real | float) -> Real:
    """a where the condition is true, else b; one of the two is no plain number."""
    known = a if isinstance(a, Real) else b
    assert isinstance(known, Real)
    if isinstance(condition.atom, Literal):
        chosen = a if condition.atom.value else b
        return chosen if isinstance(chosen, Real) else known.like(chosen)
    a, b = [each if isinstance(each, Real) else known.like(each) for each in (a, b)]
    return _elementwise(condition.equations, "select", [condition, a, b])


def choose(condition: Real, a: Complex, b: Complex) -> Complex:
    return Complex(select(condition, a.re, b.re), select(condition, a.im, b.im))


def _elementwise(equations: Equations, op: str, operands: Sequence[Real]) -> Real:
    """An equation; what has numpy's bits is computed at once where all operands are literals."""
    atoms = [operand.atom for operand in operands]
    row = SCALAR_OPS[op]
    if row.exact and all(isinstance(atom, Literal) for atom in atoms):
        values = [atom.value for atom in atoms if isinstance(atom, Literal)]
        dtype = result_dtype(op, tuple([value.dtype for value in values]))
        with np.errstate(all="ignore"):
            return Real(equations, Literal(dtype.type(row.evaluate(*values))))
    shape = max([atom.shape for atom in atoms], key=len)
    spread = [
        atom
        if isinstance(atom, Literal) or atom.shape == shape
        else equations.emit(p.broadcast, atom, shape=shape)
        for atom in atoms
    ]
    return Real(equations, equations.emit(p.elementwise, *spread, op=op))
