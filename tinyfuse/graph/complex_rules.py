"""What scalar operations mean for complex numbers."""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.graph.complex_arithmetic import (
    absolute,
    at_least,
    at_most,
    by_parts,
    comparison,
    conjugate,
    divide,
    either,
    equal,
    extreme,
    is_nan,
    logical,
    multiply,
    reciprocal,
    sign,
    square,
)
from tinyfuse.graph.complex_functions import FUNCTIONS
from tinyfuse.graph.parts import Complex, Real, choose

# The meaning of each row of `SCALAR_OPS` for complex operands.
RULES: dict[str, Callable[..., Complex | Real]] = {
    **{name: by_parts(name) for name in ("add", "subtract", "negative", "rint")},
    "positive": lambda z: z,
    "conjugate": conjugate,
    "multiply": multiply,
    "square": square,
    "divide": divide,
    "reciprocal": reciprocal,
    "absolute": absolute,
    "sign": sign,
    "select": choose,
    "equal": equal,
    "not_equal": lambda a, b: ~equal(a, b),
    "less": comparison("less", "less"),
    "less_equal": at_most,
    "greater": comparison("greater", "greater"),
    "greater_equal": at_least,
    "maximum": extreme(at_least, skips=False),
    "minimum": extreme(at_most, skips=False),
    "fmax": extreme(at_least, skips=True),
    "fmin": extreme(at_most, skips=True),
    **{f"logical_{name}": logical(f"logical_{name}") for name in ("and", "or", "xor", "not")},
    "isnan": is_nan,
    "isinf": either("isinf"),
    "isfinite": either("isfinite", "logical_and"),
    **FUNCTIONS,
}
