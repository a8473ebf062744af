"""Products of arrays: contractions of two operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse import errors
from tinyfuse.dtypes import is_complex, is_half
from tinyfuse.graph import primitives as p
from tinyfuse.trace.axes import normalize_axis_index
from tinyfuse.trace.builder import active
from tinyfuse.trace.dispatch import as_method, listed
from tinyfuse.trace.elementwise import COMPOSED_UFUNCS, apply
from tinyfuse.trace.operations import (
    broadcast,
    cast,
    insert_axes,
    lying,
    reshape,
    shape_text,
    size_of,
    traced,
    transpose,
    type_text,
)
from tinyfuse.trace.promotion import resolve
from tinyfuse.trace.shape import swapaxes
from tinyfuse.trace.tracer import Tracer

Labels = tuple[int, ...]


def contract(a: Tracer, b: Tracer, lhs: Labels, rhs: Labels, out: Labels, via: str) -> Tracer:
    """A contraction; a 0-d result is a numpy scalar."""
    builder = active()
    var = builder.emit(p.contract, a._atom, b._atom, lhs=lhs, rhs=rhs, out=out, via=via)
    return Tracer(builder, var, not var.shape)


def _promoted(a: Tracer, b: Tracer, ufunc: np.ufunc) -> tuple[Tracer, Tracer]:
    first, second = resolve(ufunc, (a.dtype, b.dtype)).operands
    return cast(a, first), cast(b, second)


# -- matmul


def matmul(a: Any, b: Any, **options: Any) -> Tracer:
    if options:
        raise errors.UnsupportedArgumentError(
            f"np.matmul(..., {next(iter(options))}=) is not supported: leave it out, "
            "and move axes or convert before, with np.moveaxis or astype"
        )
    a, b = traced(a), traced(b)
    _require_matrices(a, b)
    a, b = _promoted(a, b, np.matmul)
    batch = broadcast_shape_of_batches(a, b)
    a, b = _with_batch(a, batch), _with_batch(b, batch)
    count = len(batch)
    row, inner, column = count, count + 1, count + 2
    lhs = _batch_labels(a, count) + ((row, inner) if a.ndim > 1 else (inner,))
    rhs = _batch_labels(b, count) + ((inner, column) if b.ndim > 1 else (inner,))
    out = (*range(count), *([row] * (a.ndim > 1)), *([column] * (b.ndim > 1)))
    return contract(a, b, lhs, rhs, out, "matmul")


COMPOSED_UFUNCS[np.matmul] = matmul


def _require_matrices(a: Tracer, b: Tracer) -> None:
    for at, x in enumerate((a, b)):
        if not x.ndim:
            raise errors.ShapeError(
                f"matmul: Input operand {at} does not have enough dimensions (has 0, gufunc core "
                "with signature (n?,k),(k,m?)->(n?,m?) requires 1)"
            )
    dimension = b.ndim - 2 if b.ndim > 1 else 0
    if a.shape[-1] != b.shape[dimension]:
        raise errors.ShapeError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc "
            f"signature (n?,k),(k,m?)->(n?,m?) (size {b.shape[dimension]} is different from "
            f"{a.shape[-1]}): {type_text(a)} @ {type_text(b)}"
        )


def broadcast_shape_of_batches(a: Tracer, b: Tracer) -> tuple[int, ...]:
    """The broadcast shape of what stands before the matrices."""
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise errors.ShapeError(
            "operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{shape_text(a.shape)} {shape_text(b.shape)}: {type_text(a)} @ {type_text(b)}"
        ) from None


def _with_batch(x: Tracer, batch: tuple[int, ...]) -> Tracer:
    """Stretch the batch axes of size 1; batch axes that x lacks need no equation."""
    own = x.shape[:-2]
    wanted = batch[len(batch) - len(own) :]
    return x if own == wanted else broadcast(x, (*wanted, *x.shape[-2:]))


def _batch_labels(x: Tracer, count: int) -> Labels:
    return tuple(range(count - max(x.ndim - 2, 0), count))


# -- dot and what numpy makes of it


@listed(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Tracer:
    a, b = traced(a), traced(b)
    if not a.ndim or not b.ndim:
        return _scaled(a, b)
    dimension = b.ndim - 2 if b.ndim > 1 else 0
    if a.shape[-1] != b.shape[dimension]:
        raise errors.ShapeError(
            f"shapes {shape_text(a.shape)} and {shape_text(b.shape)} not aligned: {a.shape[-1]} "
            f"(dim {a.ndim - 1}) != {b.shape[dimension]} (dim {dimension})"
        )
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = _promoted(a, b, np.matmul)
    lhs = tuple(range(a.ndim))
    rhs = tuple([a.ndim - 1 if at == dimension else a.ndim + at for at in range(b.ndim)])
    out_labels = (*lhs[:-1], *[label for label in rhs if label != a.ndim - 1])
    product = contract(a, b, lhs, rhs, out_labels, "dot")
    return cast(product, dtype) if is_half(dtype) else product


def _scaled(a: Tracer, b: Tracer) -> Tracer:
    """A product with a 0-d array. Of vectors and matrices of floats numpy adds it to zeros."""
    product: Tracer = apply(np.multiply, (a, b))
    if product.dtype.kind != "f" or product.size == 1 or product.ndim > 2:
        return product
    return lying(apply(np.add, (product, product.dtype.type(0))), "C", product)


as_method("dot")(dot)


@listed(np.inner)
def inner(a: Any, b: Any, /) -> Tracer:
    a, b = traced(a), traced(b)
    if a.ndim and b.ndim and a.shape[-1] != b.shape[-1]:
        raise errors.ShapeError(
            f"shapes {shape_text(a.shape)} and {shape_text(b.shape)} not aligned: {a.shape[-1]} "
            f"(dim {a.ndim - 1}) != {b.shape[-1]} (dim {b.ndim - 1})"
        )
    return dot(a, swapaxes(b, -1, -2) if b.ndim > 1 and a.ndim else b)


def conjugated(x: Tracer) -> Tracer:
    """The complex conjugate; of real numbers the array itself."""
    conjugate: Tracer = apply(np.conjugate, (x,)) if is_complex(x.dtype) else x
    return conjugate


@listed(np.vdot)
def vdot(a: Any, b: Any, /) -> Tracer:
    a, b = conjugated(traced(a)), traced(b)
    return dot(reshape(a, (a.size,)), reshape(b, (b.size,)))


if hasattr(np, "vecdot"):

    def vecdot(a: Any, b: Any, **options: Any) -> Tracer:
        if options:
            name = next(iter(options))
            raise errors.UnsupportedArgumentError(
                f"np.vecdot(..., {name}=) is not supported: write (a * b).sum(axis=-1)"
            )
        a, b = traced(a), traced(b)
        for at, x in enumerate((a, b)):
            if not x.ndim:
                raise errors.ShapeError(
                    f"vecdot: Input operand {at} does not have enough dimensions (has 0, gufunc "
                    "core with signature (n),(n)->() requires 1)"
                )
        row, column = insert_axes(conjugated(a), (a.ndim - 1,)), insert_axes(b, (b.ndim,))
        product = matmul(row, column)
        return scalar_if_0d(reshape(product, product.shape[:-2]))

    COMPOSED_UFUNCS[np.vecdot] = vecdot


if hasattr(np, "matvec"):

    def matvec(a: Any, b: Any, **options: Any) -> Any:
        _require_axes("matvec", 0, a, "(m,n),(n)->(m)")
        return np.matmul(a, traced(b)[..., None], **options)[..., 0]  # type: ignore[index]

    def vecmat(a: Any, b: Any, **options: Any) -> Any:
        _require_axes("vecmat", 1, b, "(n),(n,m)->(m)")
        return np.matmul(traced(a)[..., None, :], b, **options)[..., 0, :]  # type: ignore[index]

    COMPOSED_UFUNCS[np.matvec] = matvec
    COMPOSED_UFUNCS[np.vecmat] = vecmat


def _require_axes(name: str, at: int, x: Any, signature: str) -> None:
    """Raises ShapeError where an operand is no matrix."""
    if np.ndim(x) < 2:
        raise errors.ShapeError(
            f"{name}: Input operand {at} does not have enough dimensions (has {np.ndim(x)}, gufunc "
            f"core with signature {signature} requires 2)"
        )


def scalar_if_0d(x: Tracer) -> Tracer:
    x._scalar = not x.shape
    return x


@listed(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Tracer:
    a, b = traced(a), traced(b)
    return apply(np.multiply, (reshape(a, (a.size, 1)), reshape(b, (1, b.size))))


@listed(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tracer:
    """numpy's own transposes, reshapes and product of two matrices."""
    a, b = traced(a), traced(b)
    axes_a, axes_b = _tensordot_axes(axes, a.ndim, b.ndim)
    if len(axes_a) != len(axes_b) or any(
        a.shape[i] != b.shape[j] for i, j in zip(axes_a, axes_b, strict=True)
    ):
        raise errors.ShapeError(
            f"shape-mismatch for sum: {type_text(a)} and {type_text(b)}, axes {axes}"
        )
    kept_a = [at for at in range(a.ndim) if at not in axes_a]
    kept_b = [at for at in range(b.ndim) if at not in axes_b]
    summed = size_of(tuple([a.shape[at] for at in axes_a]))
    rows = size_of(tuple([a.shape[at] for at in kept_a]))
    columns = size_of(tuple([b.shape[at] for at in kept_b]))
    left = reshape(transpose(a, [*kept_a, *axes_a]), (rows, summed))
    right = reshape(transpose(b, [*axes_b, *kept_b]), (summed, columns))
    shape = (*[a.shape[at] for at in kept_a], *[b.shape[at] for at in kept_b])
    return reshape(dot(left, right), shape)


def _tensordot_axes(axes: Any, ndim_a: int, ndim_b: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, (int, np.integer)):
        first, second = list(range(-int(axes), 0)), list(range(int(axes)))
    else:
        first, second = [[part] if isinstance(part, int) else list(part) for part in axes]
    return (
        [normalize_axis_index(at, ndim_a) for at in first],
        [normalize_axis_index(at, ndim_b) for at in second],
    )
