"""Tests of functions that tinyfuse compiles, and of tinyfuse. Needs `tinyfuse[testing]`.

    from tinyfuse.testing import ArraySpec, check_equivalence

    def test_softmax():
        check_equivalence(softmax, ArraySpec("float32", (4, 300)))

`arrays` and `programs` are hypothesis strategies; `random_program(seed)` is the quick way to
thousands.
"""

from __future__ import annotations

try:
    import hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "tinyfuse.testing needs hypothesis: pip install 'tinyfuse[testing]'", name="hypothesis"
    ) from error

from tinyfuse.testing.case import Case, program_case
from tinyfuse.testing.compare import difference, ulps
from tinyfuse.testing.emulate import Accesses, Emulation, emulate
from tinyfuse.testing.equivalence import ArraySpec, check_equivalence
from tinyfuse.testing.generate import random_program
from tinyfuse.testing.ladder import Ladder
from tinyfuse.testing.program import Program
from tinyfuse.testing.report import Failure, Report
from tinyfuse.testing.strategies import arrays, dtypes, programs, shapes
from tinyfuse.testing.values import LAYOUTS, special_values
from tinyfuse.testing.variants import Variant

__all__ = [
    "LAYOUTS",
    "Accesses",
    "ArraySpec",
    "Case",
    "Emulation",
    "Failure",
    "Ladder",
    "Program",
    "Report",
    "Variant",
    "arrays",
    "check_equivalence",
    "difference",
    "dtypes",
    "emulate",
    "program_case",
    "programs",
    "random_program",
    "shapes",
    "special_values",
    "ulps",
]
