"""Graphs built by hand, and tinyfuse's numerics in plain numpy, for the tests of single levels."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOAT32
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Atom, Eqn, Graph, Literal, Primitive, Var
from tinyfuse.graph.numerics import OrderedNumerics
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.graph.shapes import infer


class GraphBuilder:
    """Each method appends an equation and returns its output; `infer` gives the type."""

    def __init__(self, name: str = "f"):
        self.name = name
        self.inputs: list[Var] = []
        self.eqns: list[Eqn] = []

    def input(self, name: str, *shape: int, dtype: Any = FLOAT32) -> Var:
        self.inputs.append(Var(shape, np.dtype(dtype), name))
        return self.inputs[-1]

    def apply(
        self, primitive: Primitive, *atoms: Atom, name: str | None = None, **params: Any
    ) -> Var:
        shape, dtype = infer(primitive, atoms, params)
        self.eqns.append(Eqn(primitive, atoms, params, Var(shape, dtype, name)))
        return self.eqns[-1].output

    def op(self, op: str, *atoms: Atom, name: str | None = None) -> Var:
        return self.apply(p.elementwise, *atoms, name=name, op=op)

    def cast(self, x: Atom, dtype: Any, name: str | None = None) -> Var:
        return self.apply(p.cast, x, name=name, dtype=np.dtype(dtype))

    def broadcast(self, x: Atom, *shape: int, name: str | None = None) -> Var:
        return self.apply(p.broadcast, x, name=name, shape=shape)

    def reshape(self, x: Atom, *shape: int, name: str | None = None) -> Var:
        return self.apply(p.reshape, x, name=name, shape=shape)

    def transpose(self, x: Atom, *axes: int, name: str | None = None) -> Var:
        return self.apply(p.transpose, x, name=name, axes=axes)

    def slice(self, x: Atom, index: Sequence[slice], name: str | None = None) -> Var:
        ranges = [range(*s.indices(n)) for s, n in zip(index, x.shape, strict=True)]
        starts, steps = tuple(r.start for r in ranges), tuple(r.step for r in ranges)
        shape = tuple(len(r) for r in ranges)
        return self.apply(p.slice_, x, name=name, starts=starts, steps=steps, shape=shape)

    def windows(self, x: Atom, window_shape: tuple[int, ...], axes: tuple[int, ...]) -> Var:
        return self.apply(p.windows, x, window_shape=window_shape, axes=axes)

    def pad(self, x: Atom, fill: Atom, before: tuple[int, ...], after: tuple[int, ...]) -> Var:
        return self.apply(p.pad, x, fill, before=before, after=after)

    def concat(self, *atoms: Atom, axis: int, name: str | None = None) -> Var:
        return self.apply(p.concat, *atoms, name=name, axis=axis)

    def reduce(
        self, op: str, x: Atom, *axes: int, dtype: Any = None, name: str | None = None
    ) -> Var:
        default = np.int64 if op.startswith("arg") else x.dtype
        dtype = np.dtype(default if dtype is None else dtype)
        return self.apply(p.reduce, x, name=name, op=op, axes=axes, dtype=dtype)

    def contract(self, labels: str, a: Atom, b: Atom, via: str = "einsum") -> Var:
        """labels: as einsum's, `ij,jk->ik`."""
        lhs, rhs, out = [tuple(map(ord, part)) for part in labels.replace("->", ",").split(",")]
        return self.apply(p.contract, a, b, lhs=lhs, rhs=rhs, out=out, via=via)

    def graph(self, *outputs: Atom) -> Graph:
        return Graph(self.name, tuple(self.inputs), tuple(self.eqns), outputs)


def float32(value: float) -> Literal:
    return Literal(np.float32(value))


class PlainNumerics(OrderedNumerics):
    """tinyfuse's orders with numpy's scalar functions, and fma in exact arithmetic."""

    def scalar(self, op_name: str, operands: Sequence[Any], dtype: np.dtype) -> Any:
        with np.errstate(all="ignore"):
            result = SCALAR_OPS[op_name].evaluate(*operands)
            if op_name in ("maximum", "minimum") and dtype.kind == "f":
                negative = np.logical_and if op_name == "maximum" else np.logical_or
                zeros = np.equal(operands[0], 0) & np.equal(operands[1], 0)
                sign = negative(*map(np.signbit, operands))
                result = np.where(zeros, np.where(sign, dtype.type(-0.0), dtype.type(0)), result)
            return result

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        dtype = np.result_type(c)
        if dtype == FLOAT32:
            return _fma32(a, b, c)
        if dtype.kind == "f":
            return np.asarray(np.frompyfunc(_fma64, 3, 1)(a, b, c)).astype(dtype)
        return np.add(np.multiply(a, b), c)


def _fma32(a: Any, b: Any, c: Any) -> np.ndarray:
    """Exact product in float64; the sum rounded to odd there, so rounding again is harmless."""
    with np.errstate(all="ignore"):
        product, c = np.float64(1) * a * b, np.asarray(c, np.float64)
        total = np.asarray(product + c)
        back = total - product
        error = (product - (total - back)) + (c - back)
        even = np.ascontiguousarray(total).view(np.int64).reshape(total.shape) & 1 == 0
        inexact = np.isfinite(total) & (error != 0) & even
        towards = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
        return np.where(inexact, towards, total).astype(np.float32)


def _fma64(a: float, b: float, c: float) -> float:
    plain = float(a) * float(b) + float(c)
    if not np.isfinite([a, b, c]).all():
        return plain
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else plain
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
