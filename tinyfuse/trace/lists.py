"""Lists of traced arrays where numpy's functions take one array: `np.max([a, b], axis=0)`.

numpy asks arrays about a function, not lists, which it converts by itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse.trace.builder import state
from tinyfuse.trace.dispatch import FUNCTIONS, REFUSED
from tinyfuse.trace.new_arrays import array
from tinyfuse.trace.operations import holds_tracer
from tinyfuse.trace.stand_ins import replace, stand_in_for

# What takes several arrays as a list, and asks each.
_OF_SEVERAL = (
    *(np.block, np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack),
    *(np.linalg.multi_dot, np.select, np.ravel_multi_index, np.histogramdd),
    *([np.row_stack] if "row_stack" in dir(np) else []),
)


def _taking_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.builder and args and type(args[0]) in (list, tuple) and holds_tracer(args[0]):
            args = array(args[0]), *args[1:]
        return function(*args, **kwargs)

    return call


def take_lists() -> None:
    """Let all that is in `FUNCTIONS` by now take lists of traced arrays."""
    for function in FUNCTIONS:
        known = stand_in_for(function) is not function
        if not known and function not in (*_OF_SEVERAL, *REFUSED):
            replace(function, _taking_lists(function))
