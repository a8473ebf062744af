"""Products of vectors share kernels: which, in what parts, and with the bits of products apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.test_networks import lowered
from tinyfuse.testing import ArraySpec, check_equivalence

N, M, WIDE, HIGH = (1, 256), (256, 512), (256, 1024), (512, 256)


def siblings(x, q, k, v):
    return x @ q, x @ k, x @ v


def gate(x, up, down):
    a = x @ up
    return a / (1 + np.exp(-a)) * (x @ down)


def residual(x, w, y):
    return x @ w + y


def of_a_norm(x, q, k):
    h = x / np.sqrt((x * x).mean() + 1e-5)
    return h @ q, np.tanh(h @ k)


def one_after_the_other(x, w, back):
    return x @ w, (x @ w) @ back, x @ back[:256]


def of_other_widths(x, w, wide):
    return x @ w, x @ wide


def of_other_vectors(x, w, y, back):
    return x @ w, y @ back


# By what they are called: shapes, the number of kernels, and how many products are in another's.
PROGRAMS: dict[Callable[..., Any], tuple[tuple[tuple[int, ...], ...], int, int]] = {
    siblings: ((N, M, M, M), 1, 2),
    gate: ((N, M, M), 1, 2),
    residual: ((N, M, (1, 512)), 1, 1),
    of_a_norm: ((N, M, M), 3, 1),
    one_after_the_other: ((N, M, HIGH), 2, 1),
    of_other_widths: ((N, M, WIDE), 2, 0),
    of_other_vectors: ((N, M, (1, 512), HIGH), 2, 0),
}


@pytest.mark.parametrize("function", PROGRAMS)
def test_products_of_a_vector_share_kernels(function: Callable[..., Any]):
    shapes, kernels, joined = PROGRAMS[function]
    program = lowered(function, *shapes)
    assert len(program.kernels) == kernels
    reasons = [each.reason for each in program.decisions]
    assert sum("in the same parts of columns" in reason for reason in reasons) == joined


@pytest.mark.parametrize("function", [siblings, gate, one_after_the_other])
def test_bits_are_those_of_products_apart(function: Callable[..., Any]):
    shapes, _, _ = PROGRAMS[function]
    arrays = [ArraySpec("float32", shape) for shape in shapes]
    check_equivalence(function, *arrays, exact=False, schedules=0, examples=1)


def test_a_gate_stores_none_of_its_products():
    program = lowered(gate, N, M, M)
    assert program.scratch_bytes == 0
    decision = next(each for each in program.decisions if each.producer == "a")
    assert str(decision) == (
        "a -> negative, divide: compute_at, one kernel computes it and out, in the same parts of"
        " columns"
    )


def test_threads_meet_once_for_all_siblings():
    text = lowered(siblings, N, M, M, M).as_text("schedule")
    assert text.count("parallel") == 1
    assert text.count("compute_with(") == 2
