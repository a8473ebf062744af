"""Decisions of the planner as people read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyfuse.emit.comments import names_text, size_text
from tinyfuse.inspect.writing import number_text, plural, time_text
from tinyfuse.schedule.decisions import Decision

_WORDS = ("producer", "consumers", "action", "reason")

# Figures up to these are not worth a line of a report; of all others 0 is.
TOO_LITTLE = {"bytes_saved": 1023, "recompute": 1, "live_values": 16, "predicted_seconds": 1e-6}
# What else a decision may say.
_FIGURES: dict[str, Callable[[Any], str]] = {
    "flops": lambda count: plural(count, "operation"),
    "bytes_saved": lambda count: f"saves {size_text(count)}",
    "recompute": lambda times: f"computed {number_text(times)} times",
    "live_values": lambda count: plural(count, "live value"),
    "predicted_seconds": lambda seconds: f"alone {time_text(seconds)}",
}


def decision_text(decision: Decision) -> str:
    """`e -> sum: inline, sum takes each element as it is computed (saves 16 MiB)`."""
    readers = names_text(decision.consumers) or "the caller"
    text = f"{decision.producer} -> {readers}: {decision.action}, {decision.reason}"
    figures = _figures(decision)
    return f"{text} ({'; '.join(figures)})" if figures else text


def _figures(decision: Decision) -> list[str]:
    names = [name for name in type(decision).__match_args__ if name not in _WORDS]
    given = [(name, getattr(decision, name)) for name in names]
    return [_figure_text(name, value) for name, value in given if _is_telling(name, value)]


def _is_telling(name: str, value: Any) -> bool:
    return value > TOO_LITTLE.get(name, 0) if isinstance(value, int | float) else bool(value)


def _figure_text(name: str, value: Any) -> str:
    if name in _FIGURES:
        return _FIGURES[name](value)
    return f"{name.replace('_', ' ')} {value}"
