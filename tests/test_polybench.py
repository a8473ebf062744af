"""PolyBench's kernels, as people write them in numpy, give numpy's results, and few kernels."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.polybench import KERNELS, Kernel
from tests.written_bytes import written_bytes
from tinyfuse.testing import Ladder
from tinyfuse.testing.case import Case
from tinyfuse.trace import loop_statements
from tinyfuse.tree import flatten

SIZE = 12
# Products of slices of a length that loops decide about, and of columns: BLAS adds in other orders.
OF_PRODUCTS = ("cholesky", "lu", "ludcmp", "trisolv", "durbin", "gramschmidt")
BY_NAME = {kernel.name: kernel for kernel in KERNELS}


@pytest.fixture(autouse=True)
def few_turns_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_statements, "MOST_UNROLLED", 4)


def arguments(kernel: Kernel) -> tuple[Any, ...]:
    return kernel.arguments(SIZE, np.random.default_rng(0))


def lowered(name: str) -> Any:
    kernel = BY_NAME[name]
    return tinyfuse.jit(kernel.function).lower(*arguments(kernel))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_results_and_what_is_written_are_numpys(kernel: Kernel):
    given = arguments(kernel)
    mine, its = copy.deepcopy(given), copy.deepcopy(given)
    expected, found = kernel.function(*mine), tinyfuse.jit(kernel.function)(*its)
    for one, other in zip(flatten((expected, mine))[0], flatten((found, its))[0], strict=True):
        assert type(one) is type(other)
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_every_level_computes_the_same_bits():
    cases = [
        Case(each.function, arguments(each), f"# {each.name}", exact=each.name not in OF_PRODUCTS)
        for each in KERNELS
    ]
    report = Ladder(jit_of=lambda case: True).climb(cases)
    assert "\n".join(map(str, report.failures)) == ""


# The loop nests of the program: what is before the time loop, that, what is after it.
COUNTS = {
    "jacobi_1d": 2, "jacobi_2d": 2, "heat_3d": 2, "fdtd_2d": 2, "seidel_2d": 2, "adi": 2,
    "deriche": 9, "floyd_warshall": 2, "nussinov": 2, "cholesky": 2, "lu": 2, "ludcmp": 6,
    "trisolv": 2, "durbin": 2, "gramschmidt": 2,
}  # fmt: skip


def test_loops_are_one_kernel_each():
    assert {name: len(lowered(name).loops.kernels) for name in COUNTS} == COUNTS


N, TURNS = SIZE, SIZE - 1
WRITTEN = {
    "jacobi_1d": TURNS * 2 * (4 * N - 2) * 8,
    "jacobi_2d": TURNS * 2 * (N - 2) ** 2 * 8,
    "heat_3d": TURNS * 2 * (N - 2) ** 3 * 8,
    "fdtd_2d": N * ((N + 2) + (N - 1) * (N + 2) + N * (N + 1) + (N - 1) * (N + 1)) * 8,
    "floyd_warshall": N * N * N * 8,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_turns_write_what_the_program_says(name: str):
    """And nothing else: no array is copied, no border is written again."""
    loops = lowered(name).loops
    _, loop, *_ = loops.kernels
    assert written_bytes([loop]) * loops.turns[loop] == WRITTEN[name]
