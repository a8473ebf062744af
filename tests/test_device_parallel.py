"""What one thread of a CPU does in order, done by many threads of a device: the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.device_programs import F32, array
from tinyfuse.lower.device import runs_alone
from tinyfuse.machine import SM_90
from tinyfuse.testing import Case, Ladder
from tinyfuse.testing.devices import device_loops

IDS = np.random.default_rng(0).integers(-10, 50, 300)
PLACES = np.random.default_rng(1).integers(0, 50, 300)
REPEATED = (np.arange(130) ** 2 % 17).astype(np.int64)
# NaN, zeros of both signs, infinities, a row of NaN, and rows with many equal elements.
ROWS = array(5, 70)
ROWS[0, 3:9] = ROWS[3] = np.nan
ROWS[1, ::3], ROWS[1, 1::3] = 0, -0.0
ROWS[2, 5], ROWS[2, 8] = np.inf, -np.inf
ROWS[4] = np.round(ROWS[4])

Given = tuple[Callable[..., Any], tuple[np.ndarray, ...]]

# --- scatters -------------------------------------------------------------------------------------


def counted(ids):
    return np.bincount(ids, minlength=50)


def weighted(ids, w):
    return np.bincount(ids, w, minlength=50)


def in_bins(x):
    return np.histogram(x, bins=20, range=(-1, 3))[0]


def last_of_several(ids, x):
    found = np.zeros(60, F32)
    found[ids] = x
    return found


def last_at_pairs(ids, places, x):
    found = np.zeros((60, 52), F32)
    found[ids, places] = x
    return found


def added_at_pairs(places, x):
    found = np.zeros((12, 50), F32)
    np.add.at(found, (places % 12, places), x)
    return found


def added_blocks(places, x):
    found = np.ones((50, 4, 3), F32)
    np.add.at(found, places, x)
    return found


def largest(ids, x):
    found = np.zeros(60, F32)
    np.maximum.at(found, ids, x)
    return found


def subtracted(ids, x):
    found = np.ones(60, F32)
    np.subtract.at(found, ids, x)
    return found


def added_integers(places, rows):
    found = np.ones((50, 3), np.int64)
    np.add.at(found, places, rows)
    return found


def added_bytes(places, x):
    found = np.zeros(50, np.uint8)
    np.add.at(found, places, x)
    return found


def into_an_argument(ids, x, found):
    np.add.at(found, ids, x)
    return found.sum()


def far_apart(places, x):
    found = np.ones(5000, F32)
    found[99 * places] += x
    return found


SCATTERS: list[Given] = [
    (counted, (PLACES,)),
    (weighted, (PLACES, array(300))),
    (in_bins, (array(300),)),
    (last_of_several, (IDS, array(300))),
    (last_at_pairs, (IDS, PLACES, array(300))),
    (added_at_pairs, (PLACES, array(300))),
    (added_blocks, (PLACES, array(300, 4, 3))),
    (largest, (IDS, array(300))),
    (subtracted, (IDS, array(300))),
    (added_integers, (PLACES, np.arange(900).reshape(300, 3))),
    (added_bytes, (PLACES, PLACES.astype(np.uint8))),
    (into_an_argument, (IDS, PLACES, np.arange(60))),
    (far_apart, (PLACES, array(300))),
]

# --- sorts ----------------------------------------------------------------------------------------


def sorted_rows(x):
    return np.sort(x, axis=-1)


def order_of_rows(x):
    return np.argsort(x, axis=-1, kind="stable")


def sorted_integers(x):
    return np.sort(x)


def order_of_integers(x):
    return np.argsort(x, kind="stable")


def both_in_double(x):
    return np.sort(x, axis=-1), np.argsort(x, axis=-1, kind="stable")


def sorted_columns(x):
    return np.sort(x, axis=0)


def in_place(x):
    x.sort()
    return x


def medians(x):
    return np.median(x, axis=1)


def smallest_of_computed(x):
    return np.sort(np.exp(x), axis=-1)[:, :5]


def places_of_smallest(x):
    return np.argsort(np.exp(x), axis=-1)[:, :5]


def sorted_masks(x):
    return np.sort(x, axis=-1)


def sorted_bytes(x):
    return np.sort(x)


def sorted_halves(x):
    return np.sort(x)


def one_run(x):
    return np.argsort(x, kind="stable")


def one_more_than_a_run(x):
    return np.sort(x)


def many_runs(x):
    return np.sort(x)


SORTS: list[Given] = [
    (sorted_rows, (ROWS,)),
    (order_of_rows, (ROWS,)),
    (sorted_integers, (REPEATED,)),
    (order_of_integers, (REPEATED,)),
    (both_in_double, (ROWS.astype(np.float64),)),
    (sorted_columns, (ROWS.T.copy(),)),
    (in_place, (array(97),)),
    (medians, (ROWS,)),
    (smallest_of_computed, (array(6, 64),)),
    (places_of_smallest, (array(6, 64),)),
    (sorted_masks, ((REPEATED % 2 == 0).reshape(2, 65),)),
    (sorted_bytes, (REPEATED.astype(np.uint8),)),
    (sorted_halves, (array(300, dtype=np.float16),)),
    (one_run, (array(32),)),
    (one_more_than_a_run, (array(33),)),
    (many_runs, (array(1000),)),
]


# --- running values -------------------------------------------------------------------------------


def running_sums(x):
    return np.cumsum(x)


def running_products(x):
    return np.cumprod(x)


def largest_so_far(x):
    return np.maximum.accumulate(x)


def smallest_so_far(x):
    return np.minimum.accumulate(x[::-1] * 2)


def any_so_far(x):
    return np.logical_or.accumulate(x > 900)


def sums_of_computed(x):
    return np.cumsum(x * x - 3, dtype=np.int32) // 2


def sums_of_rows(x):
    sums = np.cumsum(x, axis=1)
    return sums - sums[:, -1:]


def best_of_a_loop(x):
    best = x[0]
    found = np.zeros(len(x), F32)
    for t in range(len(x)):
        best = max(best, x[t])
        found[t] = best
    return found, best


def sums_and_more(x):
    sums = np.cumsum(x)
    return sums, sums[-1], x.sum(), sums * x


def sums_in_place(x):
    np.cumsum(x, out=x)
    return x[-1]


LONG = np.concatenate([np.round(array(900)), [-0.0, 0.0, -0.0], array(2000), [np.nan], array(9)])
INTEGERS = (np.arange(3000) ** 3 + 1).astype(np.int64)
SCANS: list[Given] = [
    (running_sums, (INTEGERS**2,)),
    (running_products, (2 * INTEGERS[:1100] + 1,)),
    (largest_so_far, (LONG.astype(F32),)),
    (smallest_so_far, (LONG,)),
    (any_so_far, (INTEGERS % 1000,)),
    (sums_of_computed, (INTEGERS.astype(np.int32),)),
    (sums_of_rows, (INTEGERS[: 2 * 1300].reshape(2, 1300),)),
    (best_of_a_loop, (LONG.astype(F32),)),
    (sums_and_more, (INTEGERS[:1025],)),
]
# So long that each step of their parts is a kernel, of several blocks.
LONG_SCANS: list[Given] = [
    (sums_of_computed, (np.arange(66000, dtype=np.int32),)),
    (largest_so_far, (np.tile(LONG.astype(F32), 23),)),
    (sums_in_place, (np.arange(66000) ** 2,)),
    (sums_and_more, (np.arange(66000) ** 2,)),
]


def running_sums_of_reals(x):
    return np.cumsum(x)


def test_sums_of_reals_have_an_order():
    """They are made by one thread: in parts they would be rounded otherwise."""
    case = Case(running_sums_of_reals, (array(2000),), "running_sums_of_reals")
    (kernel,) = device_loops(case, True, SM_90).kernels
    assert (kernel.threads, runs_alone(kernel)) == (32, True)


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [SCATTERS, SORTS, SCANS, LONG_SCANS],
    ids=["scatters", "sorts", "scans", "long scans"],
)
def test_the_bits_of_c(given: list[Given]):
    cases = [Case(function, arguments, function.__name__) for function, arguments in given]
    Ladder((), lambda case: False, emulated_of=lambda case: True).climb(cases).check()


@pytest.mark.parametrize(
    ("function", "arguments"), SCATTERS + SORTS, ids=lambda each: getattr(each, "__name__", "")
)
def test_no_thread_works_alone(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]):
    loops = device_loops(Case(function, arguments, function.__name__), True, SM_90)
    assert not any(map(runs_alone, loops.kernels))


# --- how many of them -----------------------------------------------------------------------------

MANY = np.zeros(1_000_000, np.int64)
REALS = np.zeros(100_000, F32)
COUNTS: list[tuple[Given, list[tuple[int, int]]]] = [
    ((counted, (MANY,)), [(977, 256), (1, 256), (196, 256), (1, 64)]),
    ((weighted, (MANY, MANY.astype(F32))), [(977, 256), (1, 256), (1, 64)]),
    ((added_blocks, (MANY[:3000], array(3000, 4, 3))), [(1, 256), (1, 256)]),
    ((sorted_rows, (array(40, 500),)), [(40, 256)]),
    ((many_runs, (REALS,)), [*[(391, 256)] * 13, (98, 256)]),
    ((one_run, (REALS,)), [(391, 256)] * 14),
    ((running_sums, (MANY[:65536],)), [(1, 256)]),
    ((running_sums, (MANY,)), [(4, 256), (1, 32), (4, 256)]),
    ((largest_so_far, (REALS,)), [(2, 256), (1, 32), (2, 256)]),
    ((sums_in_place, (MANY,)), [(4, 256), (1, 32), (4, 256), (1, 32)]),
    ((sums_of_rows, (MANY.reshape(500, 2000),)), [(500, 256)]),
]


@pytest.mark.parametrize(("given", "kernels"), COUNTS, ids=lambda each: "")
def test_blocks_and_threads(given: Given, kernels: list[tuple[int, int]]):
    function, arguments = given
    loops = tinyfuse.jit(function).lower(*arguments).on("cuda").loops
    assert [(kernel.blocks, kernel.threads) for kernel in loops.kernels] == kernels
