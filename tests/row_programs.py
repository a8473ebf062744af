"""Random programs on small arrays: what compilers put into vectors across short rows.

Their elements are small integers, of any dtype, so that every sum is exact and numpy says what is
right. Short rows are what C compilers write out and then make vectors of, in orders of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 19, 24)
WIDTHS = (1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 16, 17, 33)
MOST_OUTER = 9  # of arrays of three axes
DTYPES = ("int64", "int64", "int32", "float64", "float32", "uint8", "int16", "uint32")
OTHERS = (*("int8", "uint8", "int16", "uint16", "int32", "int64"), "float32", "float64")

Step = tuple[str, Callable[[Any], Any]]


class RowProgram:
    """Two chains of steps on an array, and what is made of both.

    text: what it does. array: the argument.
    """

    def __init__(self, seed: int) -> None:
        self.random = choose = random.Random(seed)
        rank = choose.choice((1, 2, 2, 3, 3))
        outer = [choose.choice(EXTENTS) for _ in range(rank - 1)]
        outer = [min(extent, MOST_OUTER) if rank == 3 else extent for extent in outer]
        values = np.random.default_rng(seed).integers(0, 50, (*outer, choose.choice(WIDTHS)))
        self.array = values.astype(choose.choice(DTYPES))
        chains = [[self._step(rank) for _ in range(choose.choice((1, 2, 2, 3)))] for _ in range(2)]
        self.chains = chains
        self.joined, self.last = choose.choice(JOINED), choose.choice(LAST)
        words = [" | ".join(name for name, _ in chain) for chain in chains]
        self.text = f"{seed}: {self.array.dtype}{self.array.shape}: {'; '.join(words)}"

    def __call__(self, x: Any) -> Any:
        first, second = (_after(chain, x) for chain in self.chains)
        return self.last(self.joined(first, second))

    def _step(self, rank: int) -> Step:
        axis = self.random.randrange(rank)
        name, make = self.random.choice(STEPS)
        return f"{name} along {axis}", make(self.random, axis)


def _after(chain: Sequence[Step], x: Any) -> Any:
    for _, step in chain:
        x = step(x)
    return x


JOINED: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * (b % 5),
    lambda a, b: np.where(a > b, a, b),
    lambda a, b: np.concatenate([a, b], axis=-1),
)
LAST: tuple[Callable[[Any], Any], ...] = (
    lambda x: (x,),
    lambda x: (x[..., ::-1],),
    lambda x: (x, x.sum(axis=-1)),
    lambda x: (x, x.max(axis=0)),
)


def part(axis: int, *ends: int | None) -> Any:
    """Of an array a slice along an axis."""
    return lambda x: x[(*[slice(None)] * axis, slice(*ends))]


def reversed_(choose: random.Random, axis: int) -> Any:
    return part(axis, None, None, -1)


def rolled(choose: random.Random, axis: int) -> Any:
    by = choose.choice((1, 2, -1))
    return lambda x: np.roll(x, by, axis)


def padded(choose: random.Random, axis: int) -> Any:
    mode = choose.choice(("constant", "edge", "wrap", "symmetric"))

    def step(x: Any) -> Any:
        widths = [(1, 1) if at == axis else (0, 0) for at in range(x.ndim)]
        return part(axis, x.shape[axis])(np.pad(x, widths, mode=mode))

    return step


def where(choose: random.Random, axis: int) -> Any:
    turned = part(axis, None, None, -1)
    return lambda x: np.where(x % 3 == 1, x, turned(x))


def set_(choose: random.Random, axis: int) -> Any:
    """Some elements along an axis, to a number or to the first one."""
    place = (*[slice(None)] * axis, slice(choose.choice((0, 1, 2)), None, choose.choice((1, 2, 3))))
    is_number = choose.random() < 0.5

    def step(x: Any) -> Any:
        y = x.copy()
        y[place] = 7 if is_number else part(axis, 0, 1)(y)
        return y

    return step


def masked(choose: random.Random, axis: int) -> Any:
    def step(x: Any) -> Any:
        y = x.copy()
        y[y % 5 == 1] = 3
        return y

    return step


def neighbours(choose: random.Random, axis: int) -> Any:
    def step(x: Any) -> Any:
        y = x.copy()
        y[(*[slice(None)] * axis, slice(1, None))] += part(axis, None, -1)(y)
        return y

    return step


def evens_first(choose: random.Random, axis: int) -> Any:
    return lambda x: np.concatenate([part(axis, None, None, 2)(x), part(axis, 1, None, 2)(x)], axis)


def permuted(choose: random.Random, axis: int) -> Any:
    by = choose.choice((1, 2, 5))
    return lambda x: np.take(x, (np.arange(x.shape[axis]) * 3 + by) % x.shape[axis], axis)


def repeated(choose: random.Random, axis: int) -> Any:
    return lambda x: part(axis, x.shape[axis])(np.repeat(x, 2, axis))


def compared_halves(choose: random.Random, axis: int) -> Any:
    def step(x: Any) -> Any:
        half = x.shape[axis] // 2
        ends = part(axis, half)(x), part(axis, x.shape[axis] - half, None)(x)
        middle = part(axis, half, x.shape[axis] - half)(x)
        return np.concatenate([np.minimum(*ends), middle, np.maximum(*ends)], axis)

    return step


def combined(choose: random.Random, axis: int) -> Any:
    """With what a row comes to."""
    name = choose.choice(("sum", "max", "min", "prod"))

    def step(x: Any) -> Any:
        options = {"dtype": x.dtype} if name == "sum" else {}
        if name == "prod":
            return x - (x % 2 + 1).prod(axis=axis, keepdims=True, dtype=x.dtype) % 7
        return x - getattr(x, name)(axis=axis, keepdims=True, **options)

    return step


def found(choose: random.Random, axis: int) -> Any:
    def step(x: Any) -> Any:
        at = np.expand_dims(x.argmax(axis=axis), axis)
        some = (x > 40).any(axis=axis, keepdims=True)
        return np.where(some, x, at).astype(x.dtype)

    return step


def accumulated(choose: random.Random, axis: int) -> Any:
    if choose.random() < 0.5:
        return lambda x: np.maximum.accumulate(x, axis)
    return lambda x: np.cumsum(x, axis, dtype=x.dtype)


def sorted_(choose: random.Random, axis: int) -> Any:
    return lambda x: np.sort(x, axis)


def turned(choose: random.Random, axis: int) -> Any:
    return lambda x: np.swapaxes(x, 0, -1).reshape(x.shape)


def converted(choose: random.Random, axis: int) -> Any:
    """There and, with a number added, to another dtype."""
    first, second = choose.choice(OTHERS), choose.choice(OTHERS)
    return lambda x: (np.abs(x % 50).astype(first) * 2 + (x % 3 == 1)).astype(second)


def complex_(choose: random.Random, axis: int) -> Any:
    dtype = choose.choice(OTHERS)

    def step(x: Any) -> Any:
        z = np.abs(x % 50) + 1j * part(axis, None, None, -1)(x % 7)
        return (z * (1 - 2j)).imag.astype("int64").astype(dtype)

    return step


STEPS: tuple[tuple[str, Callable[[random.Random, int], Any]], ...] = tuple(
    (step.__name__.rstrip("_"), step)
    for step in (
        *(reversed_, rolled, padded, where, set_, masked, neighbours, evens_first, permuted),
        *(repeated, compared_halves, combined, found, accumulated, sorted_, turned, converted),
        complex_,
    )
)
