"""Ranks: integers in the order of the values that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, from_dtype

from tinyfuse.graph.ranks import UNSIGNED, of_rank, rank

DTYPES = [np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nan", ["last", "first"])
def test_ranks_ascend_with_their_values(dtype: Any, nan: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.array([-np.inf, -1, -tiny, -0.0, 0.0, tiny, 1, np.inf], dtype)
    ranks = rank(values, nan)
    assert ranks.dtype == UNSIGNED[values.dtype]
    assert np.all(ranks[1:] > ranks[:-1])
    assert of_rank(ranks, nan).tobytes() == values.tobytes()
    missing = rank(np.array([np.nan, -np.nan], dtype), nan)
    assert np.all(missing > ranks[-1] if nan == "last" else missing < ranks[0])
    assert np.isnan(of_rank(missing, nan)).all()


def test_ranks_of_infinities_are_where_extremes_start() -> None:
    assert rank(np.float32(-np.inf), "last") == 0
    assert rank(np.float64(np.inf), "first") == 2**64 - 1
    assert np.isnan(of_rank(np.uint32(0), "first"))
    assert np.isnan(of_rank(np.uint32(2**32 - 1), "last"))


@settings(deadline=None)
@given(st.sampled_from(["last", "first"]), st.sampled_from(DTYPES), st.data())
def test_extremes_of_ranks_are_ranks_of_extremes(nan: str, dtype: Any, data: st.DataObject) -> None:
    x = data.draw(arrays(dtype, st.integers(1, 9), elements=from_dtype(np.dtype(dtype))))
    best = np.maximum if nan == "last" else np.fmax
    found = of_rank(rank(x, nan).max(), nan)
    assert np.array_equal(found, best.reduce(x), equal_nan=True)
    best = np.fmin if nan == "last" else np.minimum
    found = of_rank(rank(x, nan).min(), nan)
    assert np.array_equal(found, best.reduce(x), equal_nan=True)
