"""What is counted of kernels on a device: how many there are, and what they transfer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests import fusion_programs as fusion
from tests.device_programs import array
from tests.fusion_programs import PROGRAMS, Fused
from tests.test_fusion import arguments
from tinyfuse.compilation import Lowered
from tinyfuse.lower.device import runs_alone
from tinyfuse.machine import SM_80, SM_90
from tinyfuse.runtime.emulated_program import ProgramReport, run_program
from tinyfuse.runtime.emulator import Accesses
from tinyfuse.testing import Case
from tinyfuse.testing.devices import device_loops, emitted

# --- kernels --------------------------------------------------------------------------------------


# Where a strip has no room on the stack of a CPU; that of a block lies in the device's memory.
IN_FEWER = {"horizontal_diffusion": 1}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_fuses_in_c_fuses_on_a_device(program: Fused):
    traced = tinyfuse.jit(program.function).trace(*arguments(program, program.shapes))
    for machine in (SM_80, SM_90):
        lowered = Lowered(traced, traced.options._replace(target="cuda"), machine)
        assert len(lowered.kernels) == IN_FEWER.get(program.name, program.kernels)


# Blocks for each of 128 parts of the rows, or more of them where they compute little twice.
BLOCKS = {"blur": 256, "harris": 128, "jacobi": 128, "four_upwind_steps": 128}


@pytest.mark.parametrize("name", BLOCKS)
def test_strips_of_stencils_keep_a_device_busy(name: str):
    (program,) = [each for each in PROGRAMS if each.name == name]
    traced = tinyfuse.jit(program.function).trace(*arguments(program, program.shapes))
    lowered = Lowered(traced, traced.options._replace(target="cuda"), SM_90)
    (kernel,) = lowered.loops.kernels
    assert (kernel.blocks, runs_alone(kernel)) == (BLOCKS[name], False)


# --- transfers ------------------------------------------------------------------------------------

ROWS = (array(8, 2048), array(8, 2048, seed=1))
ROW = (array(2048), array(2048, seed=1))
LABELS = np.arange(8) * 7


def product(x, y):
    return x @ y


def product_of_transposed(x, y):
    return x @ y.T


def product_and_bias(x, y, bias):
    return np.maximum(x @ y + bias, 0)


def batch_of_products(x, y):
    return np.matmul(x, y) * 2


def transpose(x):
    return x.T + 1


def with_its_transpose(x):
    return x * 2 + x.T


def planes(x):
    return x.transpose(2, 0, 1) * 2


X, SQUARE = array(64, 1024), array(128, 128)
# By kind: the function and its arguments.
COUNTED: dict[str, list[tuple[Callable[..., Any], tuple[np.ndarray, ...]]]] = {
    "elementwise": [
        (fusion.chain_with_broadcasts, (X, X[0], X[:, :1].copy())),
        (fusion.skip_connection, (X, X[::-1], np.float32(2))),
        (fusion.stored_skip, (X, X[::-1])),
        (fusion.several_outputs, (X, X[::-1])),
        (fusion.masks, (X, X[::-1], np.float32(1))),
        (fusion.adam, (X, X[::-1], X * X, X * X)),
    ],
    "row reductions": [
        (fusion.softmax, (array(256, 1024),)),
        (fusion.softmax_backward, ROWS),
        (fusion.cross_entropy_backward, (array(256, 1024), array(256, 1024))),
        (fusion.layer_norm, (ROWS[0], *ROW)),
        (fusion.layer_norm_backward, (*ROWS, ROW[0])),
        (fusion.rms_norm, (ROWS[0], ROW[0])),
        (fusion.unit_rows, ROWS[:1]),
        (fusion.variance, ROWS[:1]),
    ],
    "transposes": [
        (transpose, (array(64, 96),)),
        (with_its_transpose, (SQUARE,)),
        (planes, (array(3, 64, 96),)),
        (fusion.transposes, (SQUARE,)),
    ],
    "products": [
        (product, (SQUARE, SQUARE)),
        (product_of_transposed, (SQUARE, SQUARE)),
        (product_and_bias, (SQUARE, SQUARE, SQUARE[0])),
        (batch_of_products, (array(2, 64, 64), array(2, 64, 64))),
    ],
}
EACH = [(kind, *counted) for kind, programs in COUNTED.items() for counted in programs]


@pytest.fixture(scope="module")
def reports() -> dict[Callable[..., Any], ProgramReport]:
    cases = [Case(function, given, function.__name__) for _, function, given in EACH]
    programs = emitted([device_loops(case, True, SM_90) for case in cases])
    return {
        case.function: run_program(
            program, [np.ascontiguousarray(each).reshape(-1) for each in case.arrays]
        )
        for case, program in zip(cases, programs, strict=True)
    }


def together(access: Accesses) -> bool:
    """Whether several threads of a warp did it."""
    return access.accesses > access.requests


@pytest.mark.parametrize(
    "function", [each[1] for each in EACH], ids=[each[1].__name__ for each in EACH]
)
def test_transfers(reports: dict[Any, ProgramReport], function: Callable[..., Any]):
    report = reports[function]
    assert report.error is None
    accesses = [each for launch in report.launches for each in launch.accesses]
    poor = [
        (each.array, each.line, each.efficiency)
        for each in accesses
        if not each.shared and together(each) and each.efficiency < 0.9
    ]
    assert poor == []
    assert max([each.worst for each in accesses if each.shared], default=1) == 1


# By product: for each kind of access of its result's tiles how many requests warps make. A step of
# the sums loads 16 rows and columns of a thread in six requests of four elements: those of columns
# are the same for both rows, for which nvcc has them once.
@pytest.mark.parametrize(
    ("function", "steps", "tiles"), [(product, 128, 1), (product_of_transposed, 128, 1)]
)
def test_products_load_and_store_16_bytes_at_once(
    reports: dict[Any, ProgramReport], function: Callable[..., Any], steps: int, tiles: int
):
    (launch,) = reports[function].launches
    warps = 8 * tiles
    loads = [each for each in launch.accesses if each.shared and each.kind == "read"]
    stores = [each for each in launch.accesses if not each.shared and each.kind == "write"]
    assert {each.bytes for each in (*loads, *stores)} == {16}
    assert sum(each.requests for each in loads) == warps * steps * 6
    assert sum(each.requests for each in stores) == warps * 16
