"""Which kernels gcc is to interleave the steps of, and that their bits stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.programs import PROGRAMS
from tinyfuse.emit.interleaving import INTERLEAVED


def densities(x: Any) -> Any:
    """Three exponentials and a logarithm: of 100 additions and more."""
    e = np.exp(-x * x)
    return np.log(1 + e) * np.exp(e) / (1 + np.exp(-e)) * np.sqrt(x * x + 1)


def polynomial(x: Any) -> Any:
    for _ in range(60):
        x = x * x - 0.5
    return x


@pytest.mark.parametrize(
    ("function", "expected"),
    [(densities, True), (polynomial, True), (np.tanh, False), (lambda x: np.exp(x) / x, False)],
)
def test_steps_of_100_additions(function: Callable, expected: bool) -> None:
    x = np.linspace(-2, 2, 1001)
    jitted = tinyfuse.jit(lambda x: function(x))
    text = jitted.lower(x).as_text("c")
    assert (f"static {INTERLEAVED} void" in text) is expected
    np.testing.assert_array_equal(jitted(x), tinyfuse.jit(function, fuse=False)(x))


def test_short_steps_and_tiles_are_left_alone() -> None:
    for name in ("softmax", "attention"):
        program = PROGRAMS[name]
        text = tinyfuse.jit(program.function).lower(*program.arguments()).as_text("c")
        assert INTERLEAVED not in text
