"""Rows that a kernel keeps and overwrites in the end lie in its result: which, and their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.compilation import Lowered
from tinyfuse.lower import rows_in_results
from tinyfuse.machine import REFERENCE
from tinyfuse.testing.case import program_case
from tinyfuse.testing.generate import random_program
from tinyfuse.testing.ladder import Ladder
from tinyfuse.testing.variants import Variant, fused


def exponentials(x: Any) -> Any:
    return np.exp(x - x.max(axis=-1, keepdims=True))


def softmax(x: Any) -> Any:
    e = exponentials(x)
    return e / e.sum(axis=-1, keepdims=True)


def rows(count: int = 64, columns: int = 300, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((count, columns)).astype(dtype)


def loops_of(function: Callable, *arrays: np.ndarray) -> str:
    traced = tinyfuse.jit(function).trace(*arrays)
    return Lowered(traced, traced.options, REFERENCE).as_text("loops")


def test_a_softmax_keeps_no_row_of_its_own() -> None:
    text = loops_of(softmax, rows())
    assert text.count("alloc") == 3  # its largest element, the lanes of a sum, and the sum
    assert "        out[300 * i + j] = exp_nonpositive(x[300 * i + j] - max)\n" in text
    assert "        out[300 * i + j] = out[300 * i + j] / sum[0]" in text


def test_what_a_kernel_keeps_in_its_result_it_does_not_read() -> None:
    lowered = tinyfuse.jit(softmax).lower(rows())
    (kernel,) = lowered.loops.kernels
    assert (kernel.cost.bytes_read, kernel.cost.bytes_written) == (76800, 76800)
    assert "reads 75 KiB, writes 75 KiB" in lowered.as_text("c")


def overwritten(x: Any) -> None:
    x[:] = softmax(x)


def repeated(x: Any) -> Any:
    for _ in range(100):
        x = softmax(x) + x
    return x


def is_read_later(x: Any) -> tuple:
    y = softmax(x)
    return y, (y * y).sum(-1)


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (softmax, rows(), 1),
        (lambda x: softmax(x) * 2 + 1, rows(), 1),
        (lambda x: softmax(x) - x, rows(), 1),
        (softmax, rows(dtype=np.float64), 1),
        (softmax, rows(columns=255), 0),  # it may be in registers
        (lambda x: softmax(x).astype(np.float64), rows(), 0),
        (lambda x: softmax(x)[:, ::-1], rows(), 0),  # each element becomes another one
        (lambda x: softmax(x)[:, :299], rows(), 0),  # one has no place there
        (lambda x: (softmax(x), exponentials(x)), rows(), 0),  # it is a result itself
        (lambda x: (e := exponentials(x)) / e.sum(-1)[:, None] + e[:, ::-1], rows(), 0),
        (is_read_later, rows(), 0),
        (lambda x: (h := x * x + 1) / np.sqrt(h.sum(-1))[:, None], rows(), 0),  # none is kept
        (lambda x: softmax(x) * softmax(x + x), rows(), 1),  # of two rows one
        (overwritten, rows(), 1),  # which is written back later
        (repeated, rows(), 1),  # whose turns have one array in the end
    ],
)
def test_which_rows(
    function: Callable, x: np.ndarray, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    placed = rows_in_results.with_rows_in_results

    def counting(statements: Any) -> Any:
        after = placed(statements)
        found.append(after != tuple(statements))
        return after

    monkeypatch.setattr("tinyfuse.lower.lower.with_rows_in_results", counting)
    loops_of(function, x)
    assert sum(found) == expected
    results = []
    for fuse in (True, False):
        argument = x.copy()
        value = tinyfuse.jit(function, fuse=fuse)(argument)
        results.append((argument, *(value if isinstance(value, tuple) else (value,))))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random programs in which every row is placed that can be."""
    monkeypatch.setattr(rows_in_results, "LEAST_ROW", 1)
    cases = [program_case(random_program(seed)) for seed in range(8000, 8060)]
    variants = [Variant("fused C, rows in results", fused, (), (1, 3))]
    Ladder(variants, lambda case: True).climb(cases).check()
