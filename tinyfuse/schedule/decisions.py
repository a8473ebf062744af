"""What the planner decided about each stage, and why."""

from __future__ import annotations

from tinyfuse.records import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a stage. consumers: the stages that read it.

    action: "inline", "store", or "compute_at" (inside its only reader).
    """

    producer: str
    consumers: tuple[str, ...]
    action: str
    reason: str

    def __str__(self) -> str:
        readers = ", ".join(self.consumers) or "the caller"
        return f"{self.producer} -> {readers}: {self.action}, {self.reason}"
