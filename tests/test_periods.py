"""Rows that read the same elements again and again are loops over one period, without divisions."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tinyfuse

PROGRAMS = {
    "rows": lambda x: np.tile(x, (2, 2)),
    "one row": lambda x: np.tile(x.ravel(), 700),
    "summed": lambda x: np.tile(x, (3, 1, 2)) + x[:1, :1],
    "with a tail": lambda x: np.tile(x, (1, 5))[:, :170] * 2,
    "repeated": lambda x: np.repeat(x, 40, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_periods_are_loops(name: str):
    program = PROGRAMS[name]
    x = np.random.default_rng(0).standard_normal((30, 50)).astype(np.float32)
    lowered = tinyfuse.jit(program).lower(x)
    assert " by " in str(lowered.schedule)
    kernels = lowered.as_text("c").partition("// [")[2]
    assert not re.search(r"[jk] [%/] |out\[i\]", kernels)
    np.testing.assert_array_equal(lowered.compile()(x), program(x), strict=True)


@pytest.mark.parametrize("period", [1, 15])
def test_short_periods_are_not_worth_a_loop(period: int):
    x = np.zeros(period, np.float32)
    lowered = tinyfuse.jit(lambda x: np.tile(x, 100)).lower(x)
    assert " by " not in str(lowered.schedule)
