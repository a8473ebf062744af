"""`and`, `or`, `not`, `min` and `max` of Python's, where data decides what they give."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

from tinyfuse.trace.branching import choose
from tinyfuse.trace.control_flow import is_unknown, truth

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
