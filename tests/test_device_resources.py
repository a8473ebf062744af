"""What the kernels of the example programs take of a GPU, as NVIDIA's compiler tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.device_programs import array
from tests.fusion_programs import PROGRAMS as FUSED
from tests.programs import PROGRAMS
from tests.test_fusion import arguments
from tinyfuse.compilation import Lowered, Traced
from tinyfuse.emit.cuda import emit_cuda_many
from tinyfuse.errors import CudaCompilerNotFoundError
from tinyfuse.graph.rewrite_names import REWRITES
from tinyfuse.machine import SM_80, SM_90, Machine
from tinyfuse.runtime.nvcc import Resources, compile_cubin, find_nvcc

MOST_REGISTERS = 128


def has_nvcc() -> bool:
    try:
        find_nvcc()
    except CudaCompilerNotFoundError:
        return False
    return True


def product(x, y):
    return x @ y


def product_with_rows(x, y):
    return x @ y.T


def gated_products(x, a, b):
    gate = x @ a
    return gate / (1 + np.exp(-gate)) * (x @ b)


def product_in_double(x, y):
    return x.astype(np.float64) @ y


def convolution_of_channels(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.einsum("chwij,ocij->ohw", windows, w)


SQUARE = array(512, 512)
PRODUCTS: list[tuple[Callable[..., Any], Sequence[np.ndarray]]] = [
    (product, (SQUARE, SQUARE)),
    (product_with_rows, (SQUARE, SQUARE)),
    (gated_products, (SQUARE, SQUARE, SQUARE[::-1].copy())),
    (product_in_double, (SQUARE, SQUARE)),
    (convolution_of_channels, (array(16, 66, 66), array(64, 16, 3, 3))),
]
SETS: dict[str, list[tuple[Callable[..., Any], Sequence[np.ndarray]]]] = {
    "resources": [(each.function, each.arguments()) for each in PROGRAMS.values()],
    "resources_of_fusion": [(each.function, arguments(each, each.shapes)) for each in FUSED],
    "resources_of_products": PRODUCTS,
    **{f"resources_of_{kind}": PRODUCTS[:3] for kind in ("tf32", "bfloat16", "float16")},
}


def traced(function: Callable[..., Any], arrays: Sequence[np.ndarray], name: str) -> Traced:
    rewrite = f"{name.removeprefix('resources_of_')}_products"
    chosen = [rewrite] if rewrite in REWRITES else None
    return tinyfuse.jit(function, target="cuda", rewrites=chosen).trace(*arrays)


def taken(lowered: Sequence[Lowered], architecture: str) -> dict[str, Resources]:
    """What kernels take; of those that spill, as they are lowered then."""
    loops = [loops for each in lowered for loops in each.both_loops]
    found = compile_cubin(emit_cuda_many(loops)[0].text, "programs", architecture).resources
    for each in lowered:
        if any(found[name].spilled for name in each.origins if name in found):
            cured = each.fitted()
            cubin = compile_cubin(cured.cuda[0].text, "programs", architecture)
            found = {name: found[name] for name in found if name not in each.origins}
            found.update(cubin.resources)
    return found


@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("machine", [SM_80, SM_90], ids=lambda machine: machine.name)
def test_registers_and_shared_memory(
    machine: Machine, name: str, golden: Callable[[str, str], None]
):
    assert machine.device is not None
    traces = [traced(*each, name) for each in SETS[name]]
    lowered = [Lowered(each, each.options, machine) for each in traces]
    kernels = taken(lowered, machine.device.architecture)
    lines = ["kernel: registers, bytes spilled, of stack, of shared memory, barriers"]
    for kernel, each in sorted(kernels.items()):
        numbers = (each.registers, each.spilled, each.stack, each.shared, each.barriers)
        lines.append(f"{kernel}: {', '.join(map(str, numbers))}")
    golden(f"{name}_{machine.name}.txt", "\n".join(lines) + "\n")
    assert max(each.registers for each in kernels.values()) <= MOST_REGISTERS
    assert [kernel for kernel, each in kernels.items() if each.spilled] == []
