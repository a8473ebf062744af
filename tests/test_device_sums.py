"""Sums on a device: lanes halved by the shuffles of a warp, columns in all rounds at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.device_programs import array
from tests.test_device import flat
from tinyfuse.compilation import Lowered
from tinyfuse.lower import device
from tinyfuse.machine import SM_90
from tinyfuse.records import replace
from tinyfuse.runtime.emulated_program import run_program
from tinyfuse.testing import Case, Ladder


def lowered(function: Callable[..., Any], *arrays: np.ndarray) -> Lowered:
    traced = tinyfuse.jit(function, target="cuda").trace(*arrays)
    return Lowered(traced, traced.options, SM_90)


def launches(program: Lowered) -> list[tuple[int, int]]:
    return [(kernel.blocks, kernel.threads) for kernel in program.loops.kernels]


# --- lanes ----------------------------------------------------------------------------------------


def row_sums(x):
    return x.sum(axis=1)


def mean_and_variance(x):
    return x.mean(axis=1), x.var(axis=1)


def of_two(x, y):
    return x.sum(axis=1) * y.sum(axis=1)


def of_all(x):
    return x.sum()


ROW_SUM = """\
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x % 32;
    float sum = out_lanes[lane] + out_lanes[lane + 32];
    for (int apart = 16; apart > 0; apart /= 2)
      sum += __shfl_down_sync(0xffffffffu, sum, apart);
    if (lane == 0) {
      out_lanes[0] = sum;
      out[i] = out_lanes[0];
    }
  }
}
"""
SIDE_BY_SIDE = """\
    const int b = threadIdx.x / 32;
    if (b < 3) {
      const int lane = threadIdx.x % 32;
      float sum = """


def test_a_warp_halves_the_lanes_of_a_row():
    assert lowered(row_sums, array(50, 200)).as_text("cuda").endswith(ROW_SUM)


def test_each_warp_halves_the_lanes_of_a_block():
    assert SIDE_BY_SIDE in lowered(row_sums, array(50, 3000)).as_text("cuda")


LANES: list[tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = [
    *[(row_sums, (array(5, n),)) for n in (32, 33, 63, 64, 65, 127, 1000, 1025, 3000, 5000)],
    (row_sums, (array(3, 700, dtype=np.float64),)),
    (row_sums, (array(3, 700, dtype=np.float16),)),
    (mean_and_variance, (array(7, 2500),)),
    (of_two, (array(7, 100), array(7, 3000, seed=1))),
    (of_all, (array(100_000),)),
]


def test_the_bits_of_c():
    for function, given in LANES:
        case = Case(function, given, function.__name__)
        Ladder((), lambda case: False, emulated_of=lambda case: True).climb([case]).check()


REPORTS = {
    "if (threadIdx.x < 31)": "it waits for lanes of its warp that do not come: mask ffffffff, "
    "arrived 7fffffff",
    "if (threadIdx.x < 16)": "it waits for lanes of its warp that do not come: mask ffffffff, "
    "arrived 0000ffff",
}


@pytest.mark.parametrize("test", REPORTS)
def test_lanes_that_do_not_come_are_reported(test: str):
    x = array(4, 200)
    program = lowered(row_sums, x).cuda[0]
    text = program.text.replace("if (threadIdx.x < 32)", test)
    error = run_program(replace(program, text=text), flat([x])).error
    assert error is not None
    assert error.endswith(REPORTS[test])


def test_lanes_that_a_mask_does_not_name_are_reported():
    x = array(4, 200)
    program = lowered(row_sums, x).cuda[0]
    text = program.text.replace("if (threadIdx.x < 32)", "if (threadIdx.x < 16)")
    text = text.replace("0xffffffffu", "0x0000ffffu")
    error = run_program(replace(program, text=text), flat([x])).error
    assert error is not None
    assert error.endswith("it asks for the value of lane 16, which mask 0000ffff does not name")


# --- columns --------------------------------------------------------------------------------------


def column_sums(x):
    return x.sum(axis=0)


def column_products(x):
    return x.prod(axis=0)


def of_squares_too(x):
    return x.sum(axis=0), (x * x).sum(axis=0)


def test_columns_of_many_rows_are_two_kernels():
    assert launches(lowered(column_sums, array(100_000, 64))) == [(782, 64), (2, 256)]
    assert launches(lowered(column_sums, array(4096, 1024))) == [(128, 256), (32, 256)]


def test_columns_together_have_the_bits_of_c(monkeypatch: pytest.MonkeyPatch):
    """In parts of 32 columns, the last of fewer, and in one that has fewer."""
    monkeypatch.setattr(device, "LEAST_APART", 64)
    shapes = [(3000, 50), (2000, 64), (1200, 7), (700, 3, 20), (700, 2, 33), (1300, 1)]
    for shape in shapes:
        for function in (column_sums, column_products, of_squares_too):
            x = array(*shape)
            expected = tinyfuse.jit(function)(x)
            report = run_program(lowered(function, x).cuda[0], flat([x]))
            assert report.error is None
            found = np.concatenate(report.outputs)
            want = np.concatenate([np.reshape(each, -1) for each in np.atleast_2d(expected)])
            np.testing.assert_array_equal(found, want.reshape(-1))
