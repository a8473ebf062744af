"""What the kernels of the example programs take of a GPU, as NVIDIA's compiler tells."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.programs import PROGRAMS
from tinyfuse.emit.cuda import emit_cuda_many
from tinyfuse.errors import CudaCompilerNotFoundError
from tinyfuse.machine import SM_80, SM_90, Machine
from tinyfuse.runtime.nvcc import compile_cubin, find_nvcc
from tinyfuse.testing import Case
from tinyfuse.testing.devices import device_loops

MOST_REGISTERS = 128
# Of one register that ptxas puts aside outside of the loops of attention.
MOST_SPILLED = 8


def has_nvcc() -> bool:
    try:
        find_nvcc()
    except CudaCompilerNotFoundError:
        return False
    return True


def all_programs(machine: Machine) -> str:
    """The CUDA of all example programs, in one text."""
    cases = [Case(each.function, each.arguments(), name) for name, each in PROGRAMS.items()]
    return emit_cuda_many([device_loops(case, True, machine) for case in cases])[0].text


@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
@pytest.mark.parametrize("machine", [SM_80, SM_90], ids=lambda machine: machine.name)
def test_registers_and_shared_memory(machine: Machine, golden: Callable[[str, str], None]):
    assert machine.device is not None
    cubin = compile_cubin(all_programs(machine), "programs", machine.device.architecture)
    lines = ["kernel: registers, bytes spilled, of stack, of shared memory, barriers"]
    for name, taken in sorted(cubin.resources.items()):
        numbers = (taken.registers, taken.spilled, taken.stack, taken.shared, taken.barriers)
        lines.append(f"{name}: {', '.join(map(str, numbers))}")
    golden(f"resources_{machine.name}.txt", "\n".join(lines) + "\n")
    assert max(each.registers for each in cubin.resources.values()) <= MOST_REGISTERS
    spilled = [name for name, each in cubin.resources.items() if each.spilled > MOST_SPILLED]
    assert spilled == []
