"""Random programs on small arrays, compiled many at a time, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyfuse
from tests.row_programs import RowProgram

PROGRAMS, TOGETHER = 192, 16


@pytest.mark.parametrize("first", range(0, PROGRAMS, TOGETHER))
def test_rows_are_what_numpy_makes_of_them(first: int) -> None:
    programs = [RowProgram(seed) for seed in range(first, first + TOGETHER)]
    arrays = [program.array for program in programs]

    def all_of_them(*xs: Any) -> Any:
        return [program(x) for program, x in zip(programs, xs, strict=True)]

    with np.errstate(all="ignore"):
        expected = all_of_them(*arrays)
    for program, found, right in zip(
        programs, tinyfuse.jit(all_of_them)(*arrays), expected, strict=True
    ):
        for one, other in zip(found, right, strict=True):
            assert one.dtype == other.dtype, program.text
            np.testing.assert_array_equal(one, other, err_msg=program.text)
