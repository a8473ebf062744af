"""float16, and the bfloat16 of ml_dtypes: stored as they are, computed with in float32."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.errors import UnsupportedDtypeError
from tinyfuse.testing import Case, Ladder
from tinyfuse.testing.compare import difference
from tinyfuse.testing.half_constructs import halves

DTYPES = halves()
BFLOAT16 = DTYPES[-1]
RANDOM = np.random.default_rng(3)
needs_ml_dtypes = pytest.mark.skipif(len(DTYPES) == 1, reason="needs ml_dtypes")
of_both = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def drawn(dtype: Any, *shape: int, scale: float = 3.0) -> np.ndarray:
    """Ordinary numbers, and some at which roundings and comparisons go wrong."""
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, -6e-8, 65504.0, 1e-40, 1.0]
    values = RANDOM.standard_normal(shape) * scale
    chosen = RANDOM.random(shape) < 0.1
    return np.where(chosen, RANDOM.choice(special, shape), values).astype(dtype)


def plain(dtype: Any, *shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def same_bits(found: Any, expected: Any) -> None:
    assert difference(expected, found) is None, difference(expected, found)


def every(dtype: np.dtype) -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def floats_around(dtype: np.dtype) -> np.ndarray:
    """Between each two neighbours of a dtype their middle, and what is next to that; NaN too."""
    values = every(dtype).astype(np.float32)
    bits = values.view(np.uint32)
    step = np.uint32(1 << (13 if dtype == np.float16 else 16))
    near = [bits + offset for offset in (0, 1, step // 2 - 1, step // 2, step // 2 + 1, step - 1)]
    tiny = np.geomspace(1e-9, 1e-4, 20000).astype(np.float32)
    ties = np.arange(-200, 200, dtype=np.float32) * np.float32(2.0**-25)
    return np.concatenate([*[each.view(np.float32) for each in near], tiny, -tiny, ties])


# -- conversions


@of_both
@pytest.mark.parametrize("to", ["float32", "float64", "bool"])
def test_every_value_is_widened_exactly(dtype: np.dtype, to: str):
    def widened(x: Any) -> Any:
        return x.astype(to)

    with np.errstate(invalid="ignore"):
        same_bits(tinyfuse.jit(widened)(every(dtype)), widened(every(dtype)))


@of_both
def test_small_values_become_integers_as_numpys(dtype: np.dtype):
    values = every(dtype)
    values = values[abs(values.astype(np.float32)) < 2**15]
    for to in ("int8", "int32", "uint16", "int64"):
        kept = values[values.astype(np.float32) >= 0] if to[0] == "u" else values
        kept = kept[abs(kept.astype(np.float32)) < 127]
        same_bits(tinyfuse.jit(lambda x, to=to: x.astype(to))(kept), kept.astype(to))


@of_both
def test_floats_are_rounded_to_the_nearest(dtype: np.dtype):
    x = floats_around(dtype)
    with np.errstate(all="ignore"):
        expected = x.astype(dtype)
    same_bits(tinyfuse.jit(lambda x: x.astype(dtype))(x), expected)


@of_both
def test_doubles_are_rounded_as_numpy_does(dtype: np.dtype):
    """To float16 once, to bfloat16 by way of float32."""
    x = floats_around(dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, x * (1 + 2.0**-40), x * (1 - 2.0**-40), [1e300, -1e300, 5e-324]])
        expected = x.astype(dtype)
    same_bits(tinyfuse.jit(lambda x: x.astype(dtype))(x), expected)


@of_both
def test_integers_are_rounded(dtype: np.dtype):
    for source in ("int8", "uint16", "int32", "int64", "bool"):
        x = np.arange(-70000, 70000, 7).astype(source)
        with np.errstate(over="ignore"):
            expected = x.astype(dtype)
        same_bits(tinyfuse.jit(lambda x: x.astype(dtype))(x), expected)


@of_both
def test_nan_becomes_the_quiet_one_of_its_sign(dtype: np.dtype):
    """Payloads of NaN are no part of the promises; what is stored is one pattern for each sign."""
    x = np.array([0x7F800001, 0x7FFFFFFF, 0x7FC00000, 0xFF800001], np.uint32).view(np.float32)
    found = tinyfuse.jit(lambda x: x.astype(dtype))(x).view(np.uint16)
    quiet = 0x7E00 if dtype == np.float16 else 0x7FC0
    assert set((found & 0x7FFF).tolist()) <= {quiet, quiet | 0x3FF}


# -- elementwise, rounded after each operation


@of_both
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: x - y * x / y,
        lambda x, y: x * 2 + 1,
        lambda x, y: x * 2.5,
        lambda x, y: -x + abs(y),
        lambda x, y: np.sqrt(abs(x)) ** 2,
        lambda x, y: x // y,
        lambda x, y: x % y,
        lambda x, y: np.floor(x) + np.rint(y),
        lambda x, y: np.where(x < y, x, y),
        lambda x, y: (x == y) | np.isnan(x) & ~np.isfinite(y),
        lambda x, y: np.sign(x) * np.copysign(x, np.where(y == y, y, 1)),
        lambda x, y: x + np.float32(1.1) * np.ones(7, np.float32),
        lambda x, y: np.stack([x, y])[:, ::-1, 1:].T,
        lambda x, y: np.pad(x, 1) + 1,
        lambda x, y: x[np.array([2, 0, -1])] - y[:3],
        lambda x, y: np.concatenate([x, y, x * y]),
        lambda x, y: np.full((2, 3), 1.5, x.dtype) * x[0, 0],
        lambda x, y: (x.argmax(axis=1), np.argsort(x, axis=1), np.sort(y, axis=0)),
        lambda x, y: np.frexp(np.where(np.isfinite(x), x, 1)),
        lambda x, y: x[0, 1],
    ],
)
def test_numpys_bits(dtype: np.dtype, function: Callable[..., Any]):
    x, y = drawn(dtype, 4, 7), drawn(dtype, 4, 7)
    with np.errstate(all="ignore"):
        expected = function(x, y)
    found = tinyfuse.jit(function)(x, y)
    pairs = (
        zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    )
    for have, want in pairs:
        same_bits(have, want)


@of_both
def test_writes_in_place(dtype: np.dtype):
    def write(x: Any, y: Any) -> Any:
        z = np.zeros((4, 7), x.dtype)
        z[1:] = y[1:]
        z[0] = 1.5
        z += x
        x[2] = z[0]
        return z

    x, y = drawn(dtype, 4, 7), drawn(dtype, 4, 7)
    expected_x = x.copy()
    with np.errstate(all="ignore"):
        expected = write(expected_x, y)
    same_bits(tinyfuse.jit(write)(x, y), expected)
    same_bits(x, expected_x)


@of_both
def test_functions_are_those_of_float32_rounded(dtype: np.dtype):
    x = plain(dtype, 300)
    for function in (np.exp, np.tanh, np.log1p, np.sin):
        wide = tinyfuse.jit(lambda x, f=function: f(x.astype(np.float32)).astype(x.dtype))(abs(x))
        same_bits(tinyfuse.jit(function)(abs(x)), wide)


@of_both
def test_scalars(dtype: np.dtype):
    x, y = plain(dtype, 2), plain(dtype, 3)
    function = tinyfuse.jit(lambda a, x: (a + x, a * a, x.max()))
    for found, expected in zip(function(x[0], y), (x[0] + y, x[0] * x[0], y.max()), strict=True):
        same_bits(found, expected)


# -- sums and products: in float32, rounded once


@of_both
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_are_rounded_once(dtype: np.dtype, axis: int | None):
    x = plain(dtype, 70, 90)
    wide = tinyfuse.jit(lambda x: x.sum(axis=axis))(x.astype(np.float32))
    same_bits(tinyfuse.jit(lambda x: x.sum(axis=axis))(x), wide.astype(dtype))
    average = tinyfuse.jit(lambda x: x.mean(axis=axis))(x.astype(np.float32))
    same_bits(tinyfuse.jit(lambda x: x.mean(axis=axis))(x), average.astype(dtype))


def test_a_mean_does_not_overflow():
    x = np.full(1000, 60000, np.float16)
    assert tinyfuse.jit(np.mean)(x) == np.mean(x) == 60000


@of_both
@pytest.mark.parametrize("shape", [(1, 300, 40), (3, 64, 64), (40, 100, 80)])
def test_products_are_rounded_once(dtype: np.dtype, shape: tuple[int, int, int]):
    rows, length, columns = shape
    a, b = plain(dtype, rows, length), plain(dtype, length, columns)
    found = tinyfuse.jit(np.matmul)(a, b)
    wide = tinyfuse.jit(np.matmul)(a.astype(np.float32), b.astype(np.float32))
    assert found.dtype == np.matmul(a, b).dtype
    same_bits(found, wide.astype(found.dtype))
    dotted = tinyfuse.jit(np.dot)(a, b)
    assert dotted.dtype == dtype
    same_bits(dotted, wide.astype(dtype))


@of_both
@pytest.mark.parametrize("rows", [1, 3, 8, 40])
@pytest.mark.parametrize("turned", [False, True])
def test_weights_meet_float32_as_if_they_were(dtype: np.dtype, rows: int, turned: bool):
    x, w = plain(np.float32, rows, 96), plain(dtype, 96, 130)
    w = np.ascontiguousarray(w.T) if turned else w

    def product(x: Any, w: Any) -> Any:
        return np.maximum(x @ (w.T if turned else w), 0)

    expected = tinyfuse.jit(product)(x, w.astype(np.float32))
    assert expected.dtype == product(x, w).dtype == np.float32
    constant = tinyfuse.constant(w)
    ways = (
        tinyfuse.jit(product),
        tinyfuse.jit(product, fuse=False),
        tinyfuse.jit(lambda x, w: product(x, constant)),
    )
    for way in ways:
        same_bits(way(x, w), expected)


@of_both
def test_weights_are_converted_while_they_are_packed(dtype: np.dtype):
    x, w = plain(np.float32, 48, 256), plain(dtype, 256, 256)
    lowered = tinyfuse.jit(np.matmul).lower(x, w)
    text = lowered.as_text("schedule")
    assert "cast: inline" in text
    assert "cache_read(cast, " in text
    assert len(lowered.kernels) == 1
    assert any("vector registers" in line for line in lowered.as_text("loops").splitlines())


@of_both
def test_a_vector_meets_weights_without_a_copy(dtype: np.dtype):
    """Half the bytes of float32 are read, and none written between."""
    x, w = plain(np.float32, 1, 256), plain(dtype, 256, 256)
    constant = tinyfuse.constant(w)
    for function, arguments in ((np.matmul, (x, w)), (lambda x: x @ constant, (x,))):
        lowered = tinyfuse.jit(function).lower(*arguments)
        (cost,) = lowered.cost.values()
        assert cost.bytes_read < 1.05 * w.nbytes
        assert lowered.kept_bytes == lowered.scratch_bytes == 0


@of_both
def test_both_factors_are_converted_once(dtype: np.dtype):
    a, b = plain(dtype, 48, 256), plain(dtype, 256, 256)
    decisions = tinyfuse.jit(np.dot).lower(a, b).decisions
    reasons = [each.reason for each in decisions if each.action == "store"]
    assert "each element is converted once, not again for every tile" in reasons


# -- all levels


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def stencil(x: Any) -> Any:
    return (x[1:-1] + x[:-2] + x[2:]) * 0.5


@of_both
def test_every_level_computes_the_same_bits(dtype: np.dtype):
    cases = [
        Case(softmax, (plain(dtype, 9, 130),), "softmax", exact=False),
        Case(layer, (plain(dtype, 20, 40), plain(dtype, 40, 70), plain(dtype, 70)), "layer", False),
        Case(layer, (plain(np.float32, 20, 40), plain(dtype, 40, 70), plain(dtype, 70)), "", False),
        Case(stencil, (drawn(dtype, 40, 33),), "stencil"),
        Case(lambda x, y: (x * y - x).T.sum(axis=0), (plain(dtype, 40, 9),) * 2, "sum", False),
    ]
    Ladder(jit_of=lambda case: True).climb(cases).check()


# -- what is refused, and what is not needed


@of_both
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.cumsum(x),
        lambda x: np.nextafter(x, x),
        lambda x: np.add.at(x, np.array([0, 0]), x[:2]),
    ],
)
def test_what_rounds_at_each_of_many_steps_is_refused(
    dtype: np.dtype, function: Callable[[Any], Any]
):
    with pytest.raises(UnsupportedDtypeError, match="convert the array before, with astype"):
        tinyfuse.jit(function)(plain(dtype, 5))


@needs_ml_dtypes
def test_other_dtypes_of_ml_dtypes_are_refused():
    import ml_dtypes

    with pytest.raises(UnsupportedDtypeError, match=r"float8_e4m3fn\[2\] is not supported"):
        tinyfuse.jit(lambda x: x + 1)(np.zeros(2, ml_dtypes.float8_e4m3fn))


def test_ml_dtypes_is_not_imported():
    code = (
        "import sys, numpy as np, tinyfuse\n"
        "tinyfuse.jit(lambda x: x + 1)(np.ones(3, np.float16))\n"
        "assert 'ml_dtypes' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_ml_dtypes
def test_the_text_names_them():
    lowered = tinyfuse.jit(lambda x: x.astype(np.float32) * 2).lower(np.ones(64, BFLOAT16))
    assert "x: bfloat16[64]" in lowered.as_text("graph")
    text = lowered.as_text("c")
    assert "typedef __UINT16_TYPE__ bfloat16_t;" in text
    assert "out[i] = tf_float_of_bfloat16(x[i]) * 2.0f;" in text
