"""Keys of random numbers, and the words that they give: Threefry-2x32 of 20 rounds.

Source: J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tinyfuse import errors
from tinyfuse.api import jit
from tinyfuse.trace.builder import state
from tinyfuse.trace.operation import operate
from tinyfuse.trace.stand_ins import NUMPY

Function = TypeVar("Function", bound=Callable[..., Any])
_WORD = np.uint32


def drawn(function: Function) -> Function:
    """Decorator: a part of the program that is traced, or a program of its own."""
    statics = ("shape", "num", "dtype", "axis", "replace", "independent")
    taken = function.__code__.co_varnames[: function.__code__.co_argcount]
    program = jit(function, static_argnames=[name for name in statics if name in taken])

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.builder is not None:
            return operate(function, *args, **kwargs)
        numbers = {name: _as_array(name, value) for name, value in kwargs.items()}
        return program(*map(_as_array, taken, args), **numbers)

    return call  # type: ignore[return-value]


def _as_array(name: str, value: Any) -> Any:
    """Of which there are many, and which a program is not to be compiled for."""
    if name not in ("data", "minval", "maxval") or type(value) is not int:
        return value
    return np.asarray(value & 0xFFFFFFFF if name == "data" else value)


# -- keys


def key(seed: Any) -> Any:
    """The key of an integer: its lower 64 bits, uint32[2]."""
    if isinstance(seed, int):
        words = (seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF
        return NUMPY.array(words, _WORD)
    whole = NUMPY.asarray(seed)
    if whole.dtype.kind not in "iu" or whole.ndim:
        raise errors.ArgumentTypeError(f"the seed of a key is an integer, not {seed!r}")
    both = whole.astype(np.int64).astype(np.uint64)
    high = 0 if whole.dtype.itemsize < 8 else both >> np.uint64(32)
    return NUMPY.stack([NUMPY.asarray(high), both]).astype(_WORD)


PRNGKey = key


@drawn
def split(key: Any, num: Any = 2) -> Any:
    """New keys from one, (num, 2); of a shape `num`, (*num, 2)."""
    shape = shape_of(num)
    return NUMPY.stack(words_of(key, shape), axis=-1)


@drawn
def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer, for which the lower 32 bits count."""
    number = NUMPY.asarray(data & 0xFFFFFFFF if type(data) is int else data).astype(_WORD)
    return NUMPY.stack(threefry(key, number * _WORD(0), number))


# -- bits


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(key: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Two words for two words that count, uint32 of one shape."""
    shape = x0.shape
    first, second = _parts(key)
    schedule = first, second, first ^ second ^ _WORD(_PARITY)
    x0, x1 = NUMPY.atleast_1d(x0) + first, NUMPY.atleast_1d(x1) + second
    for block in range(5):
        for places in _ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = ((x1 << _WORD(places)) | (x1 >> _WORD(32 - places))) ^ x0
        x0 = x0 + schedule[(block + 1) % 3]
        x1 = x1 + (schedule[(block + 2) % 3] + _WORD(block + 1))
    return x0.reshape(shape), x1.reshape(shape)


def _parts(key: Any) -> tuple[Any, Any]:
    """The words of a key, each (1,)."""
    words = NUMPY.asarray(key)
    if words.shape != (2,) or words.dtype != _WORD:
        raise errors.ArgumentTypeError(
            f"a key is an array uint32[2], as tinyfuse.random.key(seed) gives, not {key!r}"
        )
    return words[:1], words[1:]


def shape_of(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, Sequence):
        return tuple([operator.index(extent) for extent in shape])
    return (operator.index(shape),)


def words_of(key: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Two words for each position."""
    count = math.prod(shape)
    places = NUMPY.arange(count).astype(np.uint64).reshape(shape)
    return threefry(key, (places >> np.uint64(32)).astype(_WORD), places.astype(_WORD))


@drawn
def bits(key: Any, shape: Any = (), dtype: Any = np.uint32) -> Any:
    """Uniformly distributed unsigned integers of 8 to 64 bits."""
    to = np.dtype(dtype)
    if to.kind != "u":
        raise errors.ArgumentTypeError(f"dtype of bits has to be unsigned, not {to}")
    high, low = words_of(key, shape_of(shape))
    if to.itemsize == 8:
        return (high.astype(to) << to.type(32)) | low.astype(to)
    return (high ^ low).astype(to)
