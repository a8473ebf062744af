"""`np.arange` to integers that are known at run time only: a part that is read nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyfuse.dtypes import INT64
from tinyfuse.graph.ir import Literal
from tinyfuse.trace.builder import active
from tinyfuse.trace.position_bounds import interval
from tinyfuse.trace.run_time_parts import UNBOUNDED, RunTimePart
from tinyfuse.trace.weak import TracedInt
from tinyfuse.trace.weak_integers import as_integer, integer_atom


def run_time_range(args: Sequence[Any], options: Mapping[str, Any]) -> RunTimePart | None:
    """The numbers of such a range, one for each place; None where Python knows its ends, or where
    they are not all integers and int64."""
    ends = [as_integer(each) for each in args]
    if not any(type(each) is TracedInt for each in ends):
        return None
    if any(value is not None for value in options.values()) or len(ends) > 3:
        return None
    start, stop, step = (0, *ends, 1) if len(ends) == 1 else (*ends, 1)[:3]
    if {type(start), type(stop)} - {int, TracedInt} or type(step) is not int or not step:
        return None
    count: Any = stop - start if step > 0 else start - stop
    if abs(step) > 1:
        count = (count + (abs(step) - 1)) // abs(step)
    length = np.maximum(count, 0)._atom
    low, high = interval(active(), integer_atom(count, active()))
    active().bounds[length] = max(low or 0, 0), high
    most = UNBOUNDED if high is None else max(high, 0)
    return RunTimePart(length, most, lambda target: lambda place: _number(start, place, step))


def _number(start: Any, place: Any, step: int) -> Any:
    scaled = place if step == 1 else place * step
    if type(start) is int and not start:
        return scaled
    first: Any = TracedInt(active(), Literal(INT64.type(start))) if type(start) is int else start
    return scaled + first
