"""Numpy's numerics on operands in C order, for results that depend on the order of memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse.graph.ir import Eqn
from tinyfuse.graph.numerics import NumpyNumerics
from tinyfuse.graph.orders import Steps


class CompactNumerics(NumpyNumerics):
    """Sums and products over copies in C order, as `Program.compact` has them in its source."""

    def reduce(self, eqn: Eqn, x: Any, steps: Steps) -> Any:
        return super().reduce(eqn, _compact(x), steps)

    def contract(self, eqn: Eqn, a: Any, b: Any, steps: Steps) -> Any:
        return super().contract(eqn, _compact(a), _compact(b), steps)


def _compact(x: Any) -> Any:
    return x.copy(order="C") if isinstance(x, np.ndarray) else x
