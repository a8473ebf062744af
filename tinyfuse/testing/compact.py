"""Numpy's numerics on operands in one order, for results that depend on the order of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse.graph.ir import Eqn
from tinyfuse.graph.numerics import NumpyNumerics
from tinyfuse.graph.orders import Steps
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.testing.program import ascending


class CompactNumerics(NumpyNumerics):
    """Sums and products of operands in C order, approximated functions of ascending ones.

    `Program.compact` has them in its source.
    """

    def scalar(self, op_name: str, operands: Sequence[Any], dtype: np.dtype) -> Any:
        if SCALAR_OPS[op_name].exact:
            return super().scalar(op_name, operands, dtype)
        return super().scalar(op_name, [ascending(x) for x in operands], dtype)

    def reduce(self, eqn: Eqn, x: Any, steps: Steps) -> Any:
        return super().reduce(eqn, _compact(x), steps)

    def contract(self, eqn: Eqn, a: Any, b: Any, steps: Steps) -> Any:
        return super().contract(eqn, _compact(a), _compact(b), steps)


def _compact(x: Any) -> Any:
    return x.copy(order="C") if isinstance(x, np.ndarray) else x
