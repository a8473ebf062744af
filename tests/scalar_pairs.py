"""Two scalar operations in one loop, to be compared with one loop after another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.test_scalar_ops import (
    LEVELS,
    LOOPS,
    WARNINGS,
    Loop,
    module_text,
    nasty,
    random,
    run,
    same,
)
from tinyfuse.emit.ctext import type_text
from tinyfuse.emit.expression import Expressions
from tinyfuse.emit.prelude import prelude_text
from tinyfuse.loops.ir import Buffer, Scope
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load
from tinyfuse.stage.expr import Cast, Const, Expr, Load, Op
from tinyfuse.stage.index import Axis

COUNT = 1024  # elements of each array
LITERALS = {"f": ("0", "-0", "1", "-1"), "i": ("0", "1", "-1"), "u": ("0", "1")}
OTHERS = ("another", "itself", *LITERALS["f"])  # what the outer operation's further operands are
SEE_NAN = ("copysign", "signbit", "rank_nan_first", "rank_nan_last")


class Pair(NamedTuple):
    """outer(...), where operands called "inner" are inner(x...), others new ones or literals."""

    inner: Loop
    outer: Loop
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.inner.symbol}, {self.outer.symbol} of {', '.join(self.operands)}"


def pairs_of(
    dtype: np.dtype, inner: Collection[str] | None = None, outer: Collection[str] | None = None
) -> Iterator[Pair]:
    """All pairs with this dtype between them, or those of the operations named."""
    for first in LOOPS:
        if first.dtype == dtype and (inner is None or first.name in inner):
            for second in LOOPS:
                if outer is None or second.name in outer:
                    yield from _pairs(first, second)


def _pairs(inner: Loop, outer: Loop) -> Iterator[Pair]:
    places = [place for place, dtype in enumerate(outer.dtypes) if dtype == inner.dtype]
    choices = [_operands(inner.dtype, outer.dtypes, p, other) for p in places for other in OTHERS]
    yield from (Pair(inner, outer, operands) for operands in dict.fromkeys(choices))


def _operands(
    between: np.dtype, dtypes: Sequence[np.dtype], place: int, other: str
) -> tuple[str, ...]:
    def operand(k: int, dtype: np.dtype) -> str:
        if k == place or (other == "itself" and dtype == between):
            return "inner"
        return other if other in LITERALS.get(dtype.kind, ()) else "another"

    return tuple(operand(k, dtype) for k, dtype in enumerate(dtypes))


def differences(pairs: Sequence[Pair], flags: tuple[str, ...]) -> list[str]:
    """What is wrong with the pairs, compiled with these flags after the usual ones."""
    library = build(_module_text(pairs), "pairs", flags=flags)
    found = [_difference(library, number, pair) for number, pair in enumerate(pairs)]
    return [text for text in found if text]


# As C


def _module_text(pairs: Sequence[Pair]) -> str:
    used: dict[str, None] = {}
    functions = [_function(f"pair_{number}", pair, used) for number, pair in enumerate(pairs)]
    return prelude_text(used) + "\n".join(functions)


def _function(name: str, pair: Pair, used: dict[str, None]) -> str:
    arrays = {f"x{k}": dtype for k, dtype in enumerate(pair.inner.dtypes)}
    arrays |= {f"z{k}": dtype for k, dtype in _others(pair)}
    value = Expressions({}, used, "fma" in (pair.inner.name, pair.outer.name), chained=False)
    return "\n".join(
        [
            f"int {name}(void *const *arrays, void *scratch, const void *pool) {{",
            *map(_declaration, count(), arrays, (type_text(d, used) for d in arrays.values())),
            f"  {type_text(pair.outer.dtype, used)} *restrict y = arrays[{len(arrays)}];",
            "  (void)scratch, (void)pool;",
            f"  for (int i = 0; i < {COUNT}; i++) y[i] = {value.text(_expression(pair)).text};",
            "  return 0;\n}\n",
        ]
    )


def _declaration(position: int, name: str, ctype: str) -> str:
    return f"  const {ctype} *restrict {name} = arrays[{position}];\n  (void){name};"


def _others(pair: Pair) -> list[tuple[int, np.dtype]]:
    """Position and dtype of each operand of the outer operation that is another array."""
    kinds = enumerate(pair.operands)
    return [(k, pair.outer.dtypes[k]) for k, kind in kinds if kind == "another"]


def _expression(pair: Pair) -> Expr:
    inner = _applied(pair.inner, [_element(f"x{k}", d) for k, d in enumerate(pair.inner.dtypes)])
    kinds = zip(pair.operands, pair.outer.dtypes, strict=True)
    operands = [_operand(k, kind, dtype, inner) for k, (kind, dtype) in enumerate(kinds)]
    return _applied(pair.outer, operands)


def _operand(k: int, kind: str, dtype: np.dtype, inner: Expr) -> Expr:
    if kind == "inner":
        return inner
    return _element(f"z{k}", dtype) if kind == "another" else Const(dtype.type(kind))


def _element(name: str, dtype: np.dtype) -> Expr:
    return Load(Buffer(name, dtype, COUNT, Scope.ARGUMENT), (Axis("i", COUNT) + 0,))


def _applied(loop: Loop, operands: Sequence[Expr]) -> Expr:
    if loop.name == "cast":
        return Cast(operands[0], loop.dtype)
    return Op(loop.name, tuple(operands), loop.dtype)


# Comparing


@cache
def _one_by_one() -> Path:
    return build(module_text(), "operations", flags=(*WARNINGS, *LEVELS["O0"]))


@cache
def _inner(loop: Loop) -> tuple[list[np.ndarray], np.ndarray]:
    """Operands, a third of them equal ones, and what is made of them."""
    operands = [_values(dtype, seed) for seed, dtype in enumerate(loop.dtypes)]
    for operand in operands[1:]:
        if operand.dtype == operands[0].dtype:
            operand[::3] = operands[0][::3]
    return operands, run(_one_by_one(), loop, operands)


def _values(dtype: np.dtype, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    few = generator.choice(nasty(dtype), COUNT * 7 // 8)
    return np.concatenate([few, random(dtype, COUNT // 8, generator)])


def _outer_operands(pair: Pair, result: np.ndarray) -> list[np.ndarray]:
    pairs = zip(pair.operands, pair.outer.dtypes, strict=True)
    return [_outer_operand(k, kind, dtype, result) for k, (kind, dtype) in enumerate(pairs)]


def _outer_operand(k: int, kind: str, dtype: np.dtype, result: np.ndarray) -> np.ndarray:
    """Other arrays have many elements in common with the inner result, or with its opposite."""
    if kind == "inner":
        return result
    if kind != "another":
        return np.full(COUNT, dtype.type(kind))
    values = _values(dtype, 10 + k)
    if dtype == result.dtype and dtype.kind != "b":
        values[::2], values[1::6] = result[::2], -result[1::6]
    return values


def _difference(library: Path, number: int, pair: Pair) -> str:
    operands, result = _inner(pair.inner)
    outer = _outer_operands(pair, result)
    expected = run(_one_by_one(), pair.outer, outer)
    found = np.empty(COUNT, pair.outer.dtype)
    others = [outer[k] for k, _ in _others(pair)]
    load(library, f"pair_{number}")([*operands, *others, found], threads=1)
    wrong = np.nonzero(~same(found, expected) & _has_to_be_same(pair, outer))[0][:3]
    shown = [(*[operand[at] for operand in outer], found[at], expected[at]) for at in wrong]
    return f"{pair}: operands, result, what it should be: {shown}" if shown else ""


def _has_to_be_same(pair: Pair, operands: Sequence[np.ndarray]) -> np.ndarray:
    """All but what tells the sign of a NaN, or its bits."""
    if pair.outer.name in SEE_NAN:
        return ~np.logical_or.reduce([np.isnan(operand) for operand in operands])
    return np.ones(COUNT, bool)
