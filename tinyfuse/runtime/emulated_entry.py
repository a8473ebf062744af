"""CUDA programs that are called as compiled C is, with numpy arrays, on the emulated device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.dtypes import is_complex, part_dtype
from tinyfuse.emit.launch import CudaProgram
from tinyfuse.errors import EmulationError
from tinyfuse.runtime.emulated_program import run_program


class EmulatedEntry:
    """What an `Entry` is for C: every access of every thread is checked as it runs."""

    def __init__(self, program: CudaProgram) -> None:
        self.program = program

    @property
    def nbytes(self) -> int:
        """Bytes of the text."""
        return len(self.program.text)

    def __call__(
        self,
        arrays: Sequence[np.ndarray],
        scratch: np.ndarray | None = None,
        threads: int | None = None,
    ) -> int:
        """Call it on arrays, inputs before outputs; the scratch memory is the device's own.

        Raises EmulationError where threads do what they must not.
        """
        roles = [buffer.role for buffer in self.program.buffers]
        count = roles.count("input")
        given = [_parts(array) for array in arrays[:count]]
        report = run_program(self.program, given)
        if report.error:
            raise EmulationError(report.error)
        for array, made in zip(arrays[count:], report.outputs, strict=True):
            array.reshape(-1).view(np.uint8)[: made.nbytes] = made.view(np.uint8)
        return 0

    def __repr__(self) -> str:
        return f"<emulated {self.program.name}>"


def _parts(array: np.ndarray) -> np.ndarray:
    """The elements, of complex numbers their parts."""
    flat = array.reshape(-1)
    return flat.view(part_dtype(flat.dtype)) if is_complex(flat.dtype) else flat
