"""Registers of a thread: what is done where its values are too many for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.device_programs import array
from tests.test_device import flat
from tests.test_device_resources import has_nvcc
from tinyfuse.compilation import Lowered
from tinyfuse.lower.device_registers import Remedy
from tinyfuse.machine import SM_90, Machine
from tinyfuse.records import replace
from tinyfuse.runtime.emulated_program import run_program
from tinyfuse.runtime.nvcc import compile_cubin

assert SM_90.device is not None
# To which all kernels seem to fit.
BLIND = replace(SM_90, device=replace(SM_90.device, registers=1 << 16))


def on_device(function: Any, arrays: Sequence[np.ndarray], machine: Machine = SM_90) -> Lowered:
    traced = tinyfuse.jit(function, target="cuda").trace(*arrays)
    return Lowered(traced, traced.options, machine)


def reasons(lowered: Lowered) -> list[str]:
    stored = [each for each in lowered.decisions if each.action == "store"]
    return [each.reason.partition("; ")[2] for each in stored]


def products(x, *others):
    return [x @ other for other in others]


def gated(x, a, b):
    gate = x @ a
    return gate / (1 + np.exp(-gate)) * (x @ b)


def folded(x):
    """Many values that stay until the end."""
    parts = [np.sqrt(x * np.float32(k) + np.float32(2 * k)) for k in range(1, 41)]
    s = x
    for k in range(80):
        s = s * np.float32(0.5) + parts[7 * k % 40]
    return s


SQUARES = [array(128, 128, seed=seed) for seed in range(9)]


@pytest.mark.parametrize(("count", "each", "kernels"), [(1, 8, 1), (2, 4, 1), (4, 4, 1), (6, 4, 2)])
def test_tiles_are_as_large_as_registers_allow(count: int, each: int, kernels: int):
    lowered = on_device(products, SQUARES[: count + 1])
    assert len(lowered.kernels) == kernels
    assert {kernel.blocks for kernel in lowered.kernels} == {(128 // 16 // each) ** 2}
    assert {kernel.at_once for kernel in lowered.kernels} == {2}


def test_a_kernel_in_two_is_told():
    lowered = on_device(products, SQUARES[:7])
    words = "it has more values than registers: two kernels store what one did"
    assert reasons(lowered) == [words]
    written = [
        {buffer.name for buffer in kernel.parameters if buffer in kernel.written}
        for kernel in lowered.kernels
    ]
    assert written == [{"out", "out_1", "out_2"}, {"out_3", "out_4", "out_5"}]


def test_vectors_whose_values_are_too_many():
    """Forty values of four elements: of one element at a time there are forty."""
    x = array(64, 1024)
    lowered = on_device(folded, [x])
    assert "TF_LOAD(float4" not in lowered.as_text("cuda")
    words = "it has more values than registers: each thread does fewer elements at once"
    assert reasons(lowered) == [words]
    assert "TF_LOAD(float4" in on_device(folded, [x], BLIND).as_text("cuda")


@pytest.mark.parametrize(
    ("function", "arrays"),
    [(products, SQUARES[:5]), (gated, SQUARES[:3]), (folded, [array(64, 1024)])],
)
def test_every_remedy_leaves_the_bits(function: Any, arrays: Sequence[np.ndarray]):
    expected = np.concatenate(
        [each.reshape(-1) for each in _tuple(tinyfuse.jit(function)(*arrays))]
    )
    lowered = on_device(function, arrays, BLIND)
    texts = set()
    for remedy in Remedy:
        made = lowered.remedied(dict.fromkeys(lowered.origins.values(), remedy))
        report = run_program(made.cuda[0], flat(arrays))
        assert report.error is None
        np.testing.assert_array_equal(np.concatenate(report.outputs), expected)
        texts.add(made.as_text("cuda"))
    assert len(texts) >= 2


def _tuple(result: Any) -> Sequence[np.ndarray]:
    return result if isinstance(result, (tuple, list)) else (result,)


def test_what_one_kernel_changes_and_the_other_needs_stays_together():
    def chained(x, y):
        x += np.sqrt(y)
        y *= x
        return x

    arrays = (array(64, 1024), np.abs(array(64, 1024)))
    lowered = on_device(chained, arrays)
    made = lowered.remedied(dict.fromkeys(lowered.origins.values(), Remedy.QUARTERS))
    assert len(made.kernels) == len(lowered.kernels)


# --- what nvcc says -------------------------------------------------------------------------------


@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
@pytest.mark.parametrize("count", [2, 4])
def test_a_kernel_that_spills_is_cured(count: int):
    """Fused whole the products of one array with others take more registers than there are."""
    whole = on_device(products, SQUARES[: count + 1], BLIND)
    assert spilled(whole) > 100
    cured = whole.fitted()
    assert spilled(cured) == 0
    (reason,) = reasons(cured)
    pattern = r"it spilled \d+ bytes: each thread does fewer elements at once"
    assert re.fullmatch(pattern, reason)
    assert whole.fitted().as_text("cuda") == cured.as_text("cuda")


@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
def test_a_kernel_that_spills_in_any_tile_is_two():
    whole = on_device(products, SQUARES, BLIND)
    cured = whole.fitted()
    assert (len(whole.kernels), len(cured.kernels), spilled(cured)) == (1, 2, 0)
    assert re.fullmatch(r"it spilled \d+ bytes: two kernels store what one did", reasons(cured)[0])


@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
def test_what_fits_stays_as_it_is():
    lowered = on_device(gated, SQUARES[:3])
    assert lowered.fitted() is lowered


def spilled(lowered: Lowered) -> int:
    assert lowered.machine.device is not None
    text, architecture = lowered.cuda[0].text, lowered.machine.device.architecture
    resources = compile_cubin(text, "registers", architecture).resources
    return sum(each.spilled for each in resources.values())


def sorted_rows(x):
    return np.sort(x, axis=-1)


def order_of_rows(x):
    return np.argsort(x, axis=-1)


@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
@pytest.mark.parametrize("length", [12, 16, 17, 24, 31, 32])
def test_sorted_rows_of_any_length_fit(length: int):
    """Those that a thread sorts by itself are short; more threads take the others."""
    for dtype in (np.float32, np.float64, np.uint8):
        for function in (sorted_rows, order_of_rows):
            lowered = on_device(function, [np.zeros((5000, length), dtype)])
            (kernel,) = lowered.kernels
            assert kernel.threads == 256 or length > 16
            found = compile_cubin(lowered.cuda[0].text, "sorts", "sm_90").resources[kernel.name]
            assert (found.spilled, found.registers <= 128) == (0, True)
