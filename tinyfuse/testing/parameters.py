"""What random programs are given: arguments and captured arrays, of shapes that fit together."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse.dtypes import COMPLEX, FLOAT32, FLOAT64, SUPPORTED, part_dtype
from tinyfuse.testing import half_constructs as of_halves
from tinyfuse.testing.choices import Choices
from tinyfuse.testing.values import LAYOUTS, draw_array, draw_values, layouts_of

_DTYPES: tuple[np.dtype, ...] = (FLOAT32, FLOAT64, *SUPPORTED, FLOAT32, FLOAT64, FLOAT32, FLOAT64)
_EXTENTS = (2, 3, 4, 1, 5, 7, 0)
# Shapes at which a reduction is split into lanes, blocks or several chains.
_LARGE_SHAPES = (
    (70,), (64,), (3, 70), (130, 3), (128, 2), (2, 65, 2), (5, 200), (300, 4), (2, 3, 100), (1030,),
    (2, 1100), (2100,), (33, 34), (4100,), (4097, 1),
)  # fmt: skip
_PARAMETERS = ("x", "y", "z", "w")
_CAPTURED = ("table", "weights")
_INDICES = ("ids", "rows")


def draw_parameters(
    choices: Choices, large: bool, effects: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The arguments of a program, and the arrays that its function captures."""
    shapes = _shapes(choices, large)
    dtype = choices.choose(_DTYPES)
    arguments: dict[str, Any] = {}
    for name in _PARAMETERS[: 1 + choices.below(len(_PARAMETERS))]:
        arguments[name] = draw_array(
            choices, choices.choose(shapes), _related_dtype(choices, dtype)
        )
    if choices.chance(1, 6):
        arguments["count"] = draw_values(choices, (), _related_dtype(choices, dtype))[()]
    if choices.chance(1, 4):
        arguments["factor"] = choices.choose((2.0, 0.5, -0.0, 1e-3, 3.7, float("inf")))
    names = _CAPTURED[: choices.choose((0, 0, 0, 1, 2))]
    captured = {
        name: draw_array(choices, choices.choose(shapes), _related_dtype(choices, dtype))
        for name in names
    }
    if effects:
        arguments.update(_index_parameters(choices, shapes[0]))
        if choices.chance(1, 10):
            arguments["same"] = arguments["x"]
        if choices.chance(1, 4):
            drawn = draw_array(choices, choices.choose(shapes), FLOAT32)
            with np.errstate(over="ignore"):
                arguments["half"] = drawn.astype(choices.choose(of_halves.halves()))
        if choices.chance(1, 4):
            arguments["pair"] = _complex_array(choices, choices.choose(shapes))
    return arguments, captured


def _complex_array(choices: Choices, shape: tuple[int, ...]) -> np.ndarray:
    """With any values in either part; half of them in a random layout."""
    dtype = choices.choose(COMPLEX)
    array = np.empty(shape, dtype)
    array.real = draw_values(choices, shape, part_dtype(dtype))
    array.imag = draw_values(choices, shape, part_dtype(dtype))
    return LAYOUTS[choices.choose(layouts_of(shape))](array) if choices.below(2) else array


def _index_parameters(choices: Choices, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Indices into the axes of a shape, duplicates and negative ones among them; and a mask."""
    found: dict[str, np.ndarray] = {}
    extents = [extent for extent in shape if extent]
    if extents:
        count = choices.below(5) + 1
        for name in _INDICES[: choices.below(3)]:
            found[name] = _indices(choices, choices.choose(extents), count)
    if choices.chance(1, 3):
        found["mask"] = draw_array(
            choices, shape[: choices.choose((len(shape), 1))], np.dtype(np.bool_)
        )
    return found


def _indices(choices: Choices, extent: int, count: int) -> np.ndarray:
    """Integers from -extent to extent - 1."""
    shape = choices.choose(((count,), (count,), (2, count), (count, 1), ()))
    dtype = choices.choose((np.int64, np.int32, np.int8, np.int64, np.uint8))
    least = 0 if dtype is np.uint8 or choices.below(2) == 0 else -min(extent, 128)
    random = np.random.default_rng(choices.below(1 << 16))
    ids = np.asarray(random.integers(least, min(extent, 128), shape), dtype)
    return LAYOUTS[choices.choose(layouts_of(shape))](ids) if choices.chance(1, 4) else ids


def _related_dtype(choices: Choices, dtype: np.dtype) -> np.dtype:
    return choices.choose(_DTYPES) if choices.chance(1, 3) else dtype


def _shapes(choices: Choices, large: bool) -> tuple[tuple[int, ...], ...]:
    """A shape, some that broadcast with it, and one to multiply it with."""
    if large:
        base = choices.choose(_LARGE_SHAPES)
    else:
        base = tuple(choices.choose(_EXTENTS) for _ in range(choices.choose((1, 2, 3, 2, 2, 0, 4))))
    ones = tuple(1 if choices.below(2) else extent for extent in base)
    suffix = base[choices.below(len(base) + 1) :]
    other = (*base[1:], choices.choose(_EXTENTS[:4])) if base else (3,)
    return base, base, base, suffix, ones, other
