"""The arithmetic of compiled code, for the interpreters: the same C, as plain loops over arrays."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tinyfuse.dtypes import SUPPORTED
from tinyfuse.emit.ctext import CText, type_text
from tinyfuse.emit.prelude import prelude_text
from tinyfuse.emit.scalar import op_text
from tinyfuse.graph.numerics import Array, OrderedNumerics
from tinyfuse.graph.scalar_ops import FMA, SCALAR_OPS, ScalarOp
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import Entry, load

UINT32 = np.dtype(np.uint32)
INT64 = np.dtype(np.int64)


class CompiledNumerics(OrderedNumerics):
    """Bit for bit what emitted C computes, whatever its loops and its reduction's blocks are.

    What is promised to have numpy's bits comes from numpy itself, all else from the functions that
    emitted C calls. Any number of threads may share it.
    """

    def scalar(self, op_name: str, operands: Sequence[Array], dtype: np.dtype) -> Array:
        op = SCALAR_OPS[op_name]
        if not op.exact:
            return _compiled(op_name, operands, dtype)
        with np.errstate(all="ignore"):
            return op.evaluate(*operands)

    def fma(self, a: Array, b: Array, c: Array) -> Array:
        return _compiled(FMA, (a, b, c), c.dtype)

    def cast(self, x: Array, dtype: np.dtype) -> Array:
        with np.errstate(all="ignore"):
            if x.dtype.kind == "f" and dtype == UINT32:  # here numpy's answer depends on the place
                x = x.astype(INT64)
            return x.astype(dtype)


def _compiled(name: str, operands: Sequence[Array], dtype: np.dtype) -> Array:
    """The operation by its loop in C, on operands that broadcast."""
    shape = operands[0].shape
    if any(operand.shape != shape for operand in operands):
        shape = np.broadcast_shapes(*[operand.shape for operand in operands])
        operands = [np.broadcast_to(operand, shape) for operand in operands]
    out = np.empty(shape, dtype)
    inputs = [np.ascontiguousarray(operand) for operand in operands]
    entry = _entry(name, tuple([operand.dtype for operand in operands]))
    entry([np.array([out.size], INT64), *inputs, out], threads=1)
    return out[()]


class Loop(NamedTuple):
    """One operation on operands of these dtypes, in C."""

    name: str
    operands: tuple[np.dtype, ...]
    dtype: np.dtype

    @property
    def symbol(self) -> str:
        return _symbol(self.name, self.operands)


def _loops() -> Iterator[Loop]:
    """All that `_compiled` can be asked for."""
    for op in SCALAR_OPS.values():
        if not op.exact and op.name != FMA:
            yield from _loops_of(op)
    for dtype in SUPPORTED:
        yield Loop(FMA, (dtype,) * 3, dtype)


def _loops_of(op: ScalarOp) -> Iterator[Loop]:
    if op.ufunc is None:
        return iter([Loop(op.name, dtypes, made) for dtypes, made in op.loops.items()])
    return _ufunc_loops(op.name, op.ufunc)


def _ufunc_loops(name: str, ufunc: np.ufunc) -> Iterator[Loop]:
    found: dict[Loop, None] = {}
    for dtypes in itertools.combinations_with_replacement(SUPPORTED, ufunc.nin):
        try:
            *operands, dtype = ufunc.resolve_dtypes((*dtypes, None))
        except TypeError:
            continue
        if all(used in SUPPORTED for used in (*operands, dtype)):
            found[Loop(name, tuple(operands), dtype)] = None
    yield from found


def _symbol(name: str, dtypes: Sequence[np.dtype]) -> str:
    return "_".join(["loop", name, *[dtype.name for dtype in dtypes]])


def library_text(loops: Iterable[Loop]) -> str:
    """A function for each loop; its arrays are the number of elements, the operands, the result."""
    used: dict[str, None] = {"int64_t": None}
    functions = [_loop_text(loop, used) for loop in loops]
    return prelude_text(used) + "typedef struct tf_pool tf_pool;\n\n" + "\n".join(functions)


def _loop_text(loop: Loop, used: dict[str, None]) -> str:
    names = [f"x{number}" for number in range(len(loop.operands))]
    places = [
        f"  {type_text(dtype, used)} *restrict {name} = arrays[{number}];\n"
        for number, (name, dtype) in enumerate(
            zip([*names, "y"], [*loop.operands, loop.dtype], strict=True), 1
        )
    ]
    elements = [CText(f"{name}[i]") for name in names]
    value = op_text(loop.name, elements, loop.operands, loop.dtype, used).text
    return (
        f"int {loop.symbol}(void *const *arrays, void *scratch, const tf_pool *pool) {{\n"
        "  (void)scratch, (void)pool;\n"
        "  const int64_t count = *(const int64_t *)arrays[0];\n"
        f"{''.join(places)}"
        f"  for (int64_t i = 0; i < count; i++) y[i] = {value};\n"
        "  return 0;\n"
        "}\n"
    )


@functools.cache
def _entry(name: str, dtypes: tuple[np.dtype, ...]) -> Entry:
    return load(_library(), _symbol(name, dtypes))


_building = threading.Lock()


def _library() -> Path:
    with _building:  # so that threads do not build it side by side
        return _built()


@functools.cache
def _built() -> Path:
    # -O1 halves the wait, and the level of optimization changes no bits.
    return build(library_text(_loops()), "scalar functions", flags=("-O1",))
