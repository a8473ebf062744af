"""Writes tinyfuse/trace/COVERAGE.md: `python -m tests.coverage_table`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tinyfuse.trace
from tests.coverage_names import UFUNC_METHODS, attributes, functions
from tinyfuse.graph.special_functions import SPECIAL_FUNCTIONS
from tinyfuse.trace import Tracer
from tinyfuse.trace.dispatch import function_name
from tinyfuse.trace.listing import supported_functions
from tinyfuse.trace.refusals import NUMPYS_OWN, reason_of

FILE = Path(tinyfuse.trace.__file__).parent / "COVERAGE.md"

PAGE = """\
# numpy's functions under tinyfuse

Of the functions, ufuncs and methods of numpy {version}, `python -m tests.coverage_table` found that
{supported} are traced ({names} apart from other names for the same); {special} of scipy.special are
traced by name. What is traced takes all keywords that numpy documents, or refuses one by its name;
a test calls each with each. `np.random` is refused: `tinyfuse.random` has functions with explicit
keys in its place.

"Yes" means numpy's meaning, with the differences that the README states. "numpy's own" functions
read no elements: they run as they are while a function is traced.

| function | traced |
| --- | --- |
{rows}
"""


@dataclass(frozen=True)
class Row:
    """reason: why it is not traced. same_as: another name of the same function."""

    name: str
    function: Any
    is_supported: bool
    reason: str = ""
    same_as: str = ""

    @property
    def is_numpys(self) -> bool:
        return self.name in NUMPYS_OWN

    @property
    def is_ufunc(self) -> bool:
        return isinstance(self.function, np.ufunc)

    def text(self) -> str:
        answer = "numpy's own" if self.is_numpys else "yes"
        if not self.is_supported:
            answer = f"no: {self.reason}"
        if self.same_as:
            answer += f", as `{self.same_as}`"
        return f"| `{self.name}` | {answer} |"


def rows() -> list[Row]:
    return [*_functions(), *_methods(), *_ufunc_methods()]


def _functions() -> list[Row]:
    traced = {*supported_functions(), *NUMPYS_OWN}
    found = []
    for name, function in functions().items():
        own = _own_name(name, function)
        supported = own in traced or name in traced
        reason = "" if supported else reason_of(name)
        found.append(Row(name, function, supported, reason or "", "" if own == name else own))
    return found


def _own_name(name: str, function: Callable[..., Any]) -> str:
    """The one that the function gives itself, if numpy has it under that."""
    own = function_name(function)
    return own if functions().get(own) is function else name


def _methods() -> list[Row]:
    known = set(dir(Tracer))
    reasons = {name: reason_of(f"x.{name}") or "" for name in attributes()}
    return [
        Row(f"x.{name}", getattr(np.ndarray, name), name in known and not reason, reason)
        for name, reason in reasons.items()
    ]


def _ufunc_methods() -> list[Row]:
    return [Row(f"np.ufunc.{name}", getattr(np.ufunc, name), True) for name in UFUNC_METHODS]


def page() -> str:
    found = rows()
    supported = [row for row in found if row.is_supported]
    return PAGE.format(
        version=np.__version__,
        supported=len(supported),
        names=len([row for row in supported if not row.same_as]),
        special=len(SPECIAL_FUNCTIONS),
        rows="\n".join(row.text() for row in found),
    )


if __name__ == "__main__":
    FILE.write_text(page())
    print(page())
