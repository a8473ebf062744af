"""Diagonals of matrices, and what lies on one side of them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.graph import primitives as p
from tinyfuse.graph.ir import Literal
from tinyfuse.trace.arrays import assigned_value
from tinyfuse.trace.axes import normalize_axis_index
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import listed
from tinyfuse.trace.masking import select_atom
from tinyfuse.trace.operations import insert_axes, reshape, slice_axis, transpose
from tinyfuse.trace.picking import as_tracer, repeated, written_array
from tinyfuse.trace.ranges import compared_positions
from tinyfuse.trace.reductions import sum_
from tinyfuse.trace.tracer import Tracer


@listed(np.diagonal, method="diagonal")
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tracer:
    """A view that can't be written: every (columns + 1)th element of the rows, one by one."""
    x = as_tracer(a)
    if x.ndim < 2:
        raise errors.InvalidArgumentError("diag requires an array of at least two dimensions")
    first, second = normalize_axis_index(axis1, x.ndim), normalize_axis_index(axis2, x.ndim)
    if first == second:
        raise errors.InvalidArgumentError("axis1 and axis2 cannot be the same")
    others = [at for at in range(x.ndim) if at not in (first, second)]
    x = transpose(x, [*others, first, second])
    view = _diagonal_of_rows(x, operator.index(offset))
    view._read_only = ""
    return view


def _diagonal_of_rows(x: Tracer, offset: int) -> Tracer:
    rows, columns = x.shape[-2:]
    start = offset if offset >= 0 else -offset * columns
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    flat = reshape(x, (*x.shape[:-2], rows * columns), copies=False)
    view = slice_axis(flat, x.ndim - 2, start if count else 0, count, columns + 1)
    return Tracer(active(), view._atom) if view is x else view


@listed(np.diag)
def diag(v: Any, k: Any = 0) -> Tracer:
    x, offset = as_tracer(v), operator.index(k)
    if x.ndim == 2:
        return diagonal(x, offset)
    if x.ndim != 1:
        raise errors.InvalidArgumentError("Input must be 1- or 2-d.")
    return _with_diagonal(x, offset)


@listed(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Tracer:
    x = as_tracer(v)
    return _with_diagonal(reshape(x, (x.size,)), operator.index(k))


def _with_diagonal(x: Tracer, offset: int) -> Tracer:
    """A square matrix: row `i` has `x[i]` at the column `i + offset`."""
    builder, zero = active(), Literal(x.dtype.type(0))
    size = x.size + abs(offset)
    padded = Tracer(builder, builder.emit(p.pad, x._atom, zero, before=(0,), after=(abs(offset),)))
    spread = padded if offset < 0 else insert_axes(padded, (1,))
    there = compared_positions(size, size, np.equal, offset)
    shape = (size, size)
    return Tracer(builder, select_atom(there._atom, spread._atom, zero, shape))


@listed(np.trace, method="trace")
def trace(
    a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Tracer:
    return sum_(diagonal(a, offset, axis1, axis2), -1, dtype, out)


@listed(np.tril)
def tril(m: Any, k: Any = 0) -> Tracer:
    return _one_side(as_tracer(m), operator.index(k), lower=True)


@listed(np.triu)
def triu(m: Any, k: Any = 0) -> Tracer:
    return _one_side(as_tracer(m), operator.index(k) - 1, lower=False)


def _one_side(x: Tracer, k: int, lower: bool) -> Tracer:
    shape = (x.size, x.size) if x.ndim == 1 else x.shape  # numpy stretches a row to a square
    mask = compared_positions(shape[-2], shape[-1], np.greater_equal, k)
    zero = Literal(x.dtype.type(0))
    one, other = (x._atom, zero) if lower else (zero, x._atom)
    return Tracer(active(), select_atom(mask._atom, one, other, shape))


@listed(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    a = written_array(a, "np.fill_diagonal")
    if a.ndim < 2:
        raise errors.InvalidArgumentError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise errors.InvalidArgumentError("All dimensions of input must be of equal length")
    count, columns = min(a.shape), a.shape[1]
    if wrap and a.ndim == 2 and a.shape[0] > columns:
        raise errors.UnsupportedArgumentError(
            f"np.fill_diagonal(x, value, wrap=True) of more rows than columns is not traced: write "
            f"x.reshape(-1)[::{columns + 1}] = value"
        )
    value = assigned_value(val, a.dtype)
    if not value.size:
        return
    value = repeated(value, count)
    if a.ndim > 2:
        a[(np.arange(count),) * a.ndim] = value
        return
    value = reshape(value, (count, 1)) if value.ndim else value
    there = compared_positions(count, columns, np.equal, 0)
    block: Tracer = a[:count]
    block._assign(Tracer(active(), select_atom(there._atom, value._atom, block._atom, block.shape)))
