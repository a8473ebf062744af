"""Random arrays with the values and memory layouts that break compilers."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tinyfuse.testing.choices import Choices

Generator = np.random.Generator


@functools.cache
def special_values(dtype: np.dtype) -> np.ndarray:
    """The values of a dtype at which operations go wrong: extremes, both zeros, NaN, subnormals."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        close = [
            0,
            1,
            2,
            7,
            limits.bits - 1,
            limits.max,
            limits.max - 1,
            limits.min,
            limits.min + 1,
        ]
        return np.array([*close, -1] if dtype.kind == "i" else close, dtype)
    limit = np.finfo(dtype)
    largest, normal, subnormal = limit.max, limit.smallest_normal, limit.smallest_subnormal
    plain = [
        0.0,
        0.5,
        1.0,
        2.5,
        float("inf"),
        largest,
        normal,
        subnormal,
        subnormal * 7,
        limit.eps,
        2.0**31,
        2.0**63,
    ]
    with np.errstate(invalid="ignore"):  # of complex infinities
        signed = [sign * np.asarray(value, dtype) for value in plain for sign in (1, -1)]
    return np.array([*signed, np.nan], dtype)


def _small(random: Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return random.integers(
        0 if dtype.kind in "bu" else -3, 2 if dtype.kind == "b" else 5, shape
    ).astype(dtype)


def _unit(random: Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind != "f":
        return _small(random, shape, dtype)
    return (2 * random.random(shape) - 1).astype(dtype)


def _wide(random: Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return _small(random, shape, dtype)
    if dtype.kind == "f":
        return (random.standard_normal(shape) * 10.0 ** random.integers(-4, 5, shape)).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def _special(random: Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Mostly ordinary values, so that not every sum becomes NaN."""
    special = random.choice(special_values(dtype), shape)
    return np.where(random.random(shape) < 0.2, special, _unit(random, shape, dtype))


VALUES: tuple[Callable[[Generator, tuple[int, ...], np.dtype], np.ndarray], ...] = (
    _small,
    _unit,
    _wide,
    _special,
)


def draw_values(choices: Choices, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A contiguous array; small integers are the simplest choice."""
    kind = choices.choose(VALUES)
    return np.asarray(kind(np.random.default_rng(choices.below(1 << 16)), shape, dtype), dtype)


def _contiguous(array: np.ndarray) -> np.ndarray:
    return array


def _fortran(array: np.ndarray) -> np.ndarray:
    return array.copy(order="F")


def _reversed(array: np.ndarray) -> np.ndarray:
    return np.flip(np.flip(array).copy())


def _stepped(array: np.ndarray) -> np.ndarray:
    base = np.full((*array.shape[:-1], 3 * array.shape[-1] + 1), special_values(array.dtype)[-1])
    view = base[..., 1::3]
    view[...] = array
    return view


def _rolled_axes(array: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.moveaxis(array, 0, -1).copy(), -1, 0)


def _inner(array: np.ndarray) -> np.ndarray:
    base = np.pad(array, 1)
    return base[(slice(1, -1),) * array.ndim]


def _broadcast(array: np.ndarray) -> np.ndarray:
    """All rows are the first one, with stride 0."""
    return np.broadcast_to(array[:1], array.shape)


def _overlapping(array: np.ndarray) -> np.ndarray:
    """Every axis steps by one element, so that elements share memory."""
    base = array.ravel()[: sum(extent - 1 for extent in array.shape) + 1].copy()
    return as_strided(base, array.shape, (array.itemsize,) * array.ndim, writeable=False)


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _misaligned(array: np.ndarray) -> np.ndarray:
    view = np.ndarray(array.shape, array.dtype, buffer=bytearray(array.nbytes + 1), offset=1)
    view[...] = array
    return view


# Each takes a contiguous array of at least one axis and one element and returns one of the same
# shape and dtype in another memory layout; broadcast and overlapping ones repeat some values.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": _contiguous,
    "read-only": _read_only,
    "misaligned": _misaligned,
    "fortran": _fortran,
    "reversed": _reversed,
    "stepped": _stepped,
    "rolled axes": _rolled_axes,
    "inner": _inner,
    "broadcast": _broadcast,
    "overlapping": _overlapping,
}
_FLAT = ("contiguous", "read-only", "misaligned")  # those that exist without an axis or an element


def layouts_of(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the layouts that an array of this shape can have."""
    return tuple(LAYOUTS) if shape and 0 not in shape else _FLAT


def draw_array(choices: Choices, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of random values; half of them in a random layout."""
    array = draw_values(choices, shape, dtype)
    if choices.chance(1, 2):
        array = LAYOUTS[choices.choose(layouts_of(shape))](array)
    return array
