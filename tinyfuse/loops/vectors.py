"""What loops over vectors may hold, where a buffer lives in vector registers."""

from __future__ import annotations

from tinyfuse.stage.index import Affine, Axis

# Operations that C has on vectors, each lane as the scalar one, and those of `vectors.h`.
VECTOR_OPS = frozenset({"add", "subtract", "multiply", "divide", "square", "fma"})


def is_along(place: Affine, variable: Axis) -> bool:
    """Whether steps of a loop go from one element to the next."""
    hidden = any(
        term.index.depends_on(variable) for term, _ in place.terms if not isinstance(term, Axis)
    )
    return place.coefficient(variable) == 1 and not hidden
