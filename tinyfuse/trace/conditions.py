"""What rewritten expressions call: `and`, `or`, `not`, `min` and `max` of Python's where data
decides what they give, and numpy's scalar types called with what is traced."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse.dtypes import FLOAT64
from tinyfuse.trace import rewriting_expressions as expressions
from tinyfuse.trace.branching import choose
from tinyfuse.trace.builder import state
from tinyfuse.trace.control_flow import is_unknown, truth
from tinyfuse.trace.operation import operate
from tinyfuse.trace.operations import cast, copy, scalar_copy, traced
from tinyfuse.trace.tracer import Tracer
from tinyfuse.trace.weak import TracedFloat, TracedInt

Part = Callable[[], Any]


def both(*parts: Part) -> Any:
    """`a and b and …`, each of them computed if those before are true."""
    first, *others = parts
    value = first()
    return choose(value, lambda: both(*others), lambda: value) if others else value


def either(*parts: Part) -> Any:
    """`a or b or …`, each of them computed if those before are false."""
    first, *others = parts
    value = first()
    return choose(value, lambda: value, lambda: either(*others)) if others else value


def tested(value: Any) -> Any:
    """Whether a value is true, in a test: `and` and `or` of different kinds have only that."""
    return truth(value) if is_unknown(value) else bool(value)


def negated(value: Any) -> Any:
    """`not value`."""
    return ~truth(value) if is_unknown(value) else not value


def extreme(function: Callable[..., Any], *values: Any) -> Any:
    """`min(...)` or `max(...)` of several values, or whatever else has that name."""
    precedes = _PRECEDES.get(id(function))
    if precedes is None:
        return function(*values)
    found, *others = values
    for value in others:
        found = choose(precedes(value, found), _constant(value), _constant(found))
    return found


def _constant(value: Any) -> Part:
    return lambda: value


_PRECEDES = {id(builtins.min): operator.lt, id(builtins.max): operator.gt}


def scalar(kind: Any, value: Any) -> Any:
    """`np.float64(x)` and the like: a scalar, of an array with axes a copy in that dtype."""
    is_kind = isinstance(kind, type) and issubclass(kind, np.generic)
    if not is_kind or type(value) not in (Tracer, TracedInt, TracedFloat) or state.builder is None:
        return kind(value)
    return operate(_scalar, np.dtype(kind), value)


def _scalar(dtype: np.dtype, value: Any) -> Tracer:
    x = traced(value)
    if type(value) is not Tracer and dtype.kind == "f":
        x = cast(x, FLOAT64)  # as Python's numbers become other ones
    x = cast(x, dtype)
    return copy(x) if x.shape else scalar_copy(x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    expressions.CHOOSE: choose,
    expressions.BOTH: both,
    expressions.EITHER: either,
    expressions.TESTED: tested,
    expressions.NOT: negated,
    expressions.EXTREME: extreme,
    expressions.SCALAR: scalar,
}
