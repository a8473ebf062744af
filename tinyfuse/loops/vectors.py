"""What loops over vectors may hold, where a buffer lives in vector registers."""

from __future__ import annotations

import numpy as np

from tinyfuse.dtypes import is_half
from tinyfuse.stage.index import Affine, Axis

# Operations that C has on vectors, each lane as the scalar one, and those of `vectors.h`, by the
# kind of their operands.
_OF_INTEGERS = frozenset({"add", "subtract", "multiply", "square", "fma"})
_OPERATIONS = {
    "b": frozenset({"add", "multiply", "fma"}),
    **dict.fromkeys("iu", _OF_INTEGERS),
    "f": _OF_INTEGERS | {"divide"},
}


def has_vectors(operation: str, dtype: np.dtype) -> bool:
    """Whether there is such an operation on vectors of this type."""
    return not is_half(dtype) and operation in _OPERATIONS[dtype.kind]


def is_along(place: Affine, variable: Axis) -> bool:
    """Whether steps of a loop go from one element to the next."""
    hidden = any(
        term.index.depends_on(variable) for term, _ in place.terms if not isinstance(term, Axis)
    )
    return place.coefficient(variable) == 1 and not hidden
