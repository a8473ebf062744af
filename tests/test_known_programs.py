"""Programs after well-known methods: numpy's results for random arguments, and their kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyfuse
from tests.programs import iterated
from tests.programs.known import KNOWN
from tinyfuse import tree
from tinyfuse.compilation import Lowered
from tinyfuse.machine import REFERENCE

by_name = pytest.mark.parametrize("name", KNOWN)
JITTED = {name: tinyfuse.jit(each.function) for name, each in KNOWN.items()}


@by_name
def test_results_are_numpys(name: str) -> None:
    function, arguments, _ = KNOWN[name]
    jitted = JITTED[name]

    @settings(max_examples=20, deadline=None, derandomize=True)
    @given(st.integers(0, 2**32), st.booleans())
    def compared(seed: int, reversed_: bool) -> None:
        args = arguments(np.random.default_rng(seed))
        if reversed_:  # another layout in memory, with the same elements
            args = tuple([arg[::-1].copy()[::-1] for arg in args])
        kept = [arg.copy() for arg in args]
        expected, found = tree.flatten(function(*args)), tree.flatten(jitted(*args))
        assert found[1] == expected[1]
        for have, want in zip(found[0], expected[0], strict=True):
            assert_close(have, want)
        for arg, before in zip(args, kept, strict=True):
            np.testing.assert_array_equal(arg, before)

    compared()


def assert_close(have: Any, want: Any) -> None:
    """Integers and truths are the same; floats are within 10^4 roundings of the largest."""
    assert (have.dtype, have.shape) == (want.dtype, want.shape)
    if want.dtype.kind != "f":
        difference = np.abs(have.astype(np.int64) - want.astype(np.int64))
        # a picture may be rounded the other way
        assert difference.max(initial=0) <= (want.dtype == np.uint8)
        return
    scale = np.abs(want).max(initial=1e-300)
    np.testing.assert_allclose(have, want, rtol=0, atol=1e4 * np.finfo(want.dtype).eps * scale)


@by_name
def test_kernels_are_as_many_as_expected(name: str) -> None:
    function, arguments, kernels = KNOWN[name]
    traced = tinyfuse.jit(function).trace(*arguments(np.random.default_rng(0)))
    assert len(Lowered(traced, traced.options, REFERENCE).cost) == kernels


def test_there_are_programs_enough() -> None:
    assert len(KNOWN) >= 30
    assert len([each for each in KNOWN if hasattr(iterated, each)]) >= 16
