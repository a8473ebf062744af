"""Sines, cosines and tangents of float64: loops that look first whether an angle is large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.emit.angles import BLOCK_STEPS, LEAST_STEPS

FUNCTIONS: list[Callable[[Any], Any]] = [np.sin, np.cos, np.tan]
LARGE = (2.0**30, -(2.0**30), 1e300, np.inf, -np.inf, np.nan)


def kernels(function: Callable[..., Any], *arguments: Any) -> str:
    text = tinyfuse.jit(function).lower(*arguments).as_text("c")
    return text[text.index("// [") :]


def angles(count: int) -> np.ndarray:
    """Of all sizes below 2^30, and near multiples of pi / 2."""
    random = np.random.default_rng(count)
    any_size = 2.0 ** random.uniform(-60, 29.99, count)
    near = np.round(2.0 ** random.uniform(0, 29, count)) * (np.pi / 2)
    found = np.where(random.random(count) < 0.5, any_size, near)
    return np.where(random.random(count) < 0.5, found, -found)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_large_angle_changes_no_bit_of_another(function: Callable[[Any], Any]) -> None:
    """One in the block makes its loop take the functions for all angles."""
    compiled = tinyfuse.jit(lambda x: function(x))
    x = angles(1 << 18)
    expected = compiled(x)
    with_large = x.copy()
    with_large[::100] = np.inf
    found = compiled(with_large)
    assert np.isnan(found[::100]).all()
    found[::100] = expected[::100]
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("count", [LEAST_STEPS - 1, LEAST_STEPS, 200, BLOCK_STEPS, BLOCK_STEPS + 1])
def test_large_angles_anywhere(function: Callable[[Any], Any], count: int) -> None:
    compiled = tinyfuse.jit(lambda x: function(2 * x + 1))
    for at in (0, count // 2, count - 1):
        x = np.linspace(-9, 9, count)
        x[at : at + len(LARGE)] = LARGE[: len(x[at : at + len(LARGE)])]
        with np.errstate(invalid="ignore"):
            expected = function(2 * x + 1)
        np.testing.assert_allclose(compiled(x), expected, rtol=4e-16 * 2)


def test_the_text() -> None:
    text = kernels(lambda x: np.sin(2 * x) + np.cos(2 * x), np.ones(200))
    assert text.count("is_large_angle") == 1  # of one angle
    assert text.count("tf_sin_small_double(") == text.count("tf_sin_double(") == 1
    assert "_from" not in text
    text = kernels(np.sin, np.ones(5000))
    assert "i_from += 1024" in text


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sin(np.exp(x)),  # an angle that takes long
        lambda x: np.sin(x[:8]),
        lambda x: np.sin(x.astype(np.float32)),
        lambda x: np.exp(x),
    ],
)
def test_what_need_not_look(function: Callable[[Any], Any]) -> None:
    assert "is_large_angle" not in kernels(function, np.ones(200))


def test_rotations_share_what_they_look_at() -> None:
    def rotated(points: Any, angle: Any) -> Any:
        x, y = points
        s, c = np.sin(angle), np.cos(angle)
        return np.stack([c * x - s * y, s * x + c * y])

    points, angle = np.arange(800.0).reshape(2, 400), np.linspace(0, 1e10, 400)
    text = kernels(rotated, points, angle)
    assert text.count("is_large_angle") == 1
    found = tinyfuse.jit(rotated)(points, angle)
    np.testing.assert_allclose(found, rotated(points, angle), rtol=1e-13, atol=1e-12)


def test_angles_that_the_loop_computes_itself() -> None:
    def function(x: Any) -> Any:
        angle = x * 0.5 - 1
        return np.sin(angle) * angle

    x = np.linspace(-3, 3, 300)
    assert "is_large_angle" in kernels(function, x)
    np.testing.assert_allclose(tinyfuse.jit(function)(x), function(x), rtol=1e-15)


def test_angles_in_place() -> None:
    def function(x: Any) -> Any:
        x[...] = np.sin(x)
        return x

    x = np.linspace(-30, 30, 3000)
    np.testing.assert_allclose(tinyfuse.jit(function)(x.copy()), np.sin(x), rtol=1e-15)


def test_what_is_not_chosen_is_not_looked_at() -> None:
    def function(x: Any) -> Any:
        return np.pad(np.sin(x), 3)[1:-1]

    x = np.linspace(-30, 30, 3000)
    np.testing.assert_allclose(tinyfuse.jit(function)(x), function(x), rtol=1e-15)


def test_angles_of_complex_exponentials() -> None:
    def function(z: Any, turn: Any) -> Any:
        return z * np.exp(1j * turn)

    turn = np.linspace(-30, 30, 300)
    z = turn[::-1] + 1j
    text = kernels(function, z, turn)
    assert text.count("tf_cos_small_double(") == text.count("tf_sin_small_double(") == 1
    for array in (turn, np.where(turn > 29, 1e15, turn)):
        found = tinyfuse.jit(function)(z, array)
        np.testing.assert_allclose(found, function(z, array), rtol=1e-13)
