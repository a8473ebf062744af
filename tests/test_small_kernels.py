"""Small kernels that run one after the other are one: which ones, and that all is computed."""

from __future__ import annotations

import numpy as np
import pytest

import tinyfuse
from tests.test_fusion import lowered
from tests.test_fusion_rules import kernels_of, ones
from tinyfuse.schedule import small


def standardized(x):
    centred = x - x.mean()
    return centred / np.sqrt((centred * centred).mean())


def test_small_kernels_become_one_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels_of(lowered(standardized, ones(300))) == ["out"]
    assert len(lowered(standardized, ones(300_000)).kernels) == 5
    monkeypatch.setattr(small, "SMALL_OPERATIONS", 0)
    assert len(lowered(standardized, ones(300)).kernels) == 4


def totals_around(x, y, z):
    """A few elements, many that need their sum, then a few again."""
    total = np.exp(y).sum()
    rows = (x * total).sum(axis=1)
    return np.sqrt(z) * 2, rows, rows.max() + total


def test_only_what_is_large_stands_between_small_kernels() -> None:
    program = lowered(totals_around, ones(300, 400), ones(20), ones(30))
    assert kernels_of(program) == ["out", "rows", "out_1"]
    assert "total" in program.kernels[0].stages


def roots_and_some(x):
    root = np.exp(x)
    return root, root[3:8].max()


def test_a_small_kernel_computes_all_of_what_is_returned() -> None:
    """Not only what the one that follows needs of it."""
    x = np.arange(20, dtype=np.float32)
    assert len(lowered(roots_and_some, x).kernels) == 1
    root, most = tinyfuse.jit(roots_and_some)(x)
    np.testing.assert_allclose(root, np.exp(x), rtol=1e-6)
    assert most == root[7]


def roots_and_a_total(x):
    root, total = np.sqrt(x), np.cumsum(x, axis=1)
    return root, total[2] * 2


def test_a_small_kernel_computes_all_of_what_is_computed_in_its_loops() -> None:
    """The roots go along with the rows that are summed, of which one is read afterwards."""
    x = np.full((5, 6), 4, np.float32)
    assert len(lowered(roots_and_a_total, x).kernels) == 1
    root, row = tinyfuse.jit(roots_and_a_total)(x)
    assert root.tolist() == [[2.0] * 6] * 5
    assert row.tolist() == [8, 16, 24, 32, 40, 48]


def largest_beside(x):
    e = np.exp(x)
    return e, np.argmax(e[1:]), np.sqrt(e)


def test_what_a_small_kernel_computes_inside_it_comes_after_what_it_reads() -> None:
    """Exponentials are computed with their roots; the largest of them stands before these."""
    x = np.array([7, 5, 2, 3, 9, 4], np.float32)
    assert len(lowered(largest_beside, x).kernels) == 2
    e, place, root = tinyfuse.jit(largest_beside)(x)
    np.testing.assert_allclose(e, np.exp(x), rtol=1e-6)
    assert place == 3
    assert root.tolist() == np.sqrt(e).tolist()


def remainders(x, y):
    small = y % 7
    most = small.max()
    return (small > 5).any(), np.exp(x) + small, most + 1


def test_small_kernels_run_in_the_order_of_the_program() -> None:
    """The remainders are computed with the sum; what is asked of them stands before that, and only
    one of it can be the last."""
    x, y = ones(40), np.arange(40)
    assert kernels_of(lowered(remainders, x, y)) == ["out_1", "out_2"]
    some, total, more = tinyfuse.jit(remainders)(x, y)
    assert some
    assert more == 7
    np.testing.assert_allclose(total, np.exp(x) + y % 7, rtol=1e-6)
