"""What the planner decided about each stage, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """One stage's fate. action: "inline", "store", or "compute_at" with the loop's name."""

    producer: str
    consumers: tuple[str, ...]
    action: str
    reason: str

    def __str__(self) -> str:
        readers = ", ".join(self.consumers) or "the caller"
        return f"{self.producer} -> {readers}: {self.action}, {self.reason}"
