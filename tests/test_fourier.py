"""np.fft: transforms of any length, within a bound in proportion to its logarithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.testing import check_equivalence
from tinyfuse.testing.compare import difference

RANDOM = np.random.default_rng(5)
# No pass, one of each kind, several, columns in blocks; primes by a matrix and by a convolution.
LENGTHS = (1, 2, 3, 8, 13, 15, 16, 37, 60, 64, 211, 256, 338, 2048)


def numbers(*shape: int, dtype: Any = np.complex128) -> np.ndarray:
    whole = RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)
    return whole.astype(dtype) if np.dtype(dtype).kind == "c" else whole.real.astype(dtype)


def exact(x: np.ndarray, sign: int) -> np.ndarray:
    """The transform along the last axis by its definition, in long double."""
    n = x.shape[-1]
    turns = np.arange(n)[:, None] * np.arange(n) % n
    angles = turns * (8 * np.arctan(np.longdouble(1)) / n)
    return x.astype(np.clongdouble) @ (np.cos(angles) + sign * 1j * np.sin(angles))


def bound(expected: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """What is stated of the error of a row: eps log2 n of its size, and one for what is scaled."""
    size = np.linalg.norm(expected.astype(complex), axis=-1, keepdims=True)
    return np.finfo(dtype).eps * (1 + np.log2(expected.shape[-1])) * size


def require_near(
    function: Callable[..., Any], x: np.ndarray, expected: np.ndarray | None = None
) -> None:
    """As near to what is expected as stated, and in the shape and dtype of numpy's result."""
    numpys, found = function(x), tinyfuse.jit(function)(x)
    assert (found.shape, found.dtype) == (numpys.shape, numpys.dtype)
    expected = numpys if expected is None else expected
    assert (abs(found - expected) <= bound(expected, numpys.dtype)).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    z = numbers(2, n)
    require_near(lambda z: np.fft.ifft(z), z, exact(z, 1) / n)
    single = z.astype(np.complex64)
    require_near(lambda z: np.fft.fft(z), single, exact(single, -1))
    real = z.real.astype(np.float32)
    require_near(lambda x: np.fft.fft(x), real, exact(real, -1))
    half = exact(z.real, -1)[:, : n // 2 + 1]
    require_near(lambda x: np.fft.rfft(x), z.real, half)
    require_near(lambda x: np.fft.ihfft(x), z.real, half.conj() / n)
    if n > 1:
        require_near(lambda z: np.fft.hfft(z), z)
        require_near(lambda z: np.fft.irfft(z, 2 * n - 1), z)


@pytest.mark.parametrize("n", [12, 17, 64, 226])
def test_columns(n: int) -> None:
    """Passes go through what lies side by side; 48 columns of 64 are transformed in blocks."""
    columns = numbers(n, 48)
    found = tinyfuse.jit(lambda z: np.fft.fft(z, axis=0))(columns)
    expected = exact(columns.T, -1)
    assert (abs(found.T - expected) <= bound(expected, found.dtype)).all()


@pytest.mark.parametrize("n", [15, 64, 77, 211])
def test_every_rung_has_the_same_bits(n: int) -> None:
    def both(z: Any, x: Any) -> Any:
        return np.fft.fft(z), np.fft.irfft(np.fft.rfft(x)), np.fft.ifft(z, axis=0)

    check_equivalence(both, numbers(3, n), numbers(3, n, dtype=float), schedules=1, exact=False)


@pytest.mark.parametrize(("rows", "n"), [(1, 64), (40, 64), (40, 256), (40, 1024)])
def test_all_passes_of_a_row_are_one_kernel(rows: int, n: int) -> None:
    """Several rows are kept in the innermost caches from the first pass to the last."""
    lowered = tinyfuse.jit(lambda z: np.fft.fft(z)).lower(numbers(rows, n))
    assert (len(lowered.kernels), lowered.scratch_bytes) == ((3, 2048) if rows == 1 else (1, 0))


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
