"""np.fft: transforms of any length, within a bound in proportion to its logarithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.testing.compare import difference

RANDOM = np.random.default_rng(5)
# One matrix, factors of several kinds, primes of one matrix and those of a convolution.
LENGTHS = (1, 2, 16, 37, 60, 211)


def require_near(function: Callable[..., Any], x: np.ndarray) -> None:
    expected, found = function(x), tinyfuse.jit(function)(x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    eps = np.finfo(expected.dtype).eps
    size = np.linalg.norm(expected, axis=-1, keepdims=True)
    steps = 1 + np.log2(x.shape[-1])
    assert (abs(found - expected) <= eps * steps * size).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    z = RANDOM.standard_normal((2, n)) + 1j * RANDOM.standard_normal((2, n))
    require_near(lambda z: np.fft.ifft(z), z)
    require_near(lambda x: np.fft.fft(x), z.real.astype(np.float32))
    require_near(lambda x: np.fft.ihfft(x), z.real)
    if n > 1:
        require_near(lambda z: np.fft.hfft(z), z)


def test_roots_whose_part_vanishes_are_exact() -> None:
    x = np.array([1.0, 0, 0, 0, 0, 0, 0, 0])
    assert difference(np.ones(8, complex), tinyfuse.jit(lambda x: np.fft.fft(x))(x)) is None


def test_a_spectrum_is_fused_with_what_follows() -> None:
    def power(x: Any) -> Any:
        return np.abs(np.fft.fft(x * np.hanning(x.size))) ** 2

    x = RANDOM.standard_normal(16)
    require_near(power, x)
    assert len(tinyfuse.jit(power).lower(x).kernels) == 1


def test_there_and_back() -> None:
    x = RANDOM.standard_normal((12, 15))
    require_near(lambda x: np.fft.irfft2(np.fft.rfft2(x), s=(12, 15)), x)
    require_near(lambda x: np.fft.ifftn(np.fft.fftn(x)).real, x)


def test_what_is_refused() -> None:
    x = np.ones(4)
    with pytest.raises(ValueError, match=r"Invalid number of FFT data points \(0\) specified"):
        tinyfuse.jit(lambda x: np.fft.fft(x, 0))(x)
    with pytest.raises(ValueError, match="Invalid norm value long"):
        tinyfuse.jit(lambda x: np.fft.fft(x, norm="long"))(x)
    with pytest.raises(TypeError, match=r"^np\.fft\.rfft of complex numbers is not"):
        tinyfuse.jit(lambda x: np.fft.rfft(x * 1j))(x)
