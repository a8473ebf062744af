"""The interpreters' arithmetic, compiled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.graphs import PlainNumerics
from tinyfuse.dtypes import BOOL, FLOAT32, FLOAT64
from tinyfuse.runtime import numerics as numerics_module
from tinyfuse.runtime.numerics import CompiledNumerics

NUMERICS = CompiledNumerics()
X = np.linspace(-3, 3, 60, dtype=np.float32).reshape(3, 4, 5)


def test_what_is_not_exact_is_compiled() -> None:
    got = NUMERICS.scalar("exp", [X], FLOAT32)
    assert got.dtype == FLOAT32
    assert got.shape == X.shape
    assert np.allclose(got, np.exp(X.astype(np.float64)), rtol=2e-7)


def test_every_row_that_is_not_exact_has_its_loops() -> None:
    names = {(loop.name, loop.operands[0].name) for loop in numerics_module._loops()}
    assert len(names) == 138
    assert {("exp", "float32"), ("power", "int8"), ("maximum", "bool"), ("fma", "uint64")} <= names


def test_operands_broadcast_and_may_have_any_strides() -> None:
    a, b = X.T[::-1], np.float32([[2], [-2], [0]])[::2, 0]
    got = NUMERICS.scalar("maximum", [X[:, ::2, ::-1][..., :2], b], FLOAT32)
    assert np.array_equal(got, np.maximum(X[:, ::2, ::-1][..., :2], b))
    assert np.array_equal(NUMERICS.fma(a, a, a), PlainNumerics().fma(a, a, a))
    assert NUMERICS.scalar("maximum", [a[:0], a[:0]], FLOAT32).shape == (0, 4, 3)


def test_numbers_give_numbers() -> None:
    result = NUMERICS.fma(np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(-1))
    assert isinstance(result, np.float32)
    assert result == np.float32(2**-11 + 2**-24)
    assert isinstance(NUMERICS.scalar("maximum", [np.int8(1), np.int8(2)], np.dtype("i1")), np.int8)


def test_zeros_are_ordered() -> None:
    zero = np.float64(0)
    for operands in ([zero, -zero], [-zero, zero]):
        assert not np.signbit(NUMERICS.scalar("maximum", operands, FLOAT64))
        assert np.signbit(NUMERICS.scalar("minimum", operands, FLOAT64))


def test_fma_of_integers_wraps_around_and_of_bools_is_and_or() -> None:
    a = np.int8([100, -128])
    assert NUMERICS.fma(a, a, a).tolist() == (a * a + a).tolist()
    t, f = np.array([True]), np.array([False])
    assert NUMERICS.fma(t, f, t).dtype == BOOL
    assert [NUMERICS.fma(*row).item() for row in ((t, t, f), (t, f, t), (t, f, f))] == [1, 1, 0]


def test_exact_operations_are_those_of_numpy_without_warnings() -> None:
    a, zeros = np.float32([1, 0, -1]), np.zeros(3, np.float32)
    with np.errstate(all="raise"):
        assert np.array_equal(
            NUMERICS.scalar("divide", [a, zeros], FLOAT32),
            [np.inf, np.nan, -np.inf],
            equal_nan=True,
        )


@pytest.mark.parametrize("count", [1, 3, 64])
def test_casts_to_uint32_do_not_depend_on_the_place(count: int) -> None:
    values = np.float64([np.nan, -1, 3e9, 5e9, -3e9, np.inf])
    got = NUMERICS.cast(np.repeat(values, count), np.dtype(np.uint32))
    assert got[::count].tolist() == [0, 2**32 - 1, 3_000_000_000, 705_032_704, 1_294_967_296, 0]


def test_casts_are_those_of_numpy() -> None:
    got = NUMERICS.cast(np.float32([np.nan, 300.7, -1.5, 3e9]), np.dtype(np.int32))
    assert got.tolist() == [-(2**31), 300, -1, -(2**31)]


def test_threads_share_it() -> None:
    numerics_module._entry.cache_clear()
    numerics_module._built.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: NUMERICS.scalar("sin", [X], FLOAT32), range(64)))
    assert all(np.array_equal(result, results[0]) for result in results)
