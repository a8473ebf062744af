"""What the planner decided about each stage, and why."""

from __future__ import annotations

from tinyfuse.records import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a stage. consumers: the stages that read it.

    action: "inline", "store", "compute_at" (inside a stage that reads it) or "compute_with" (inside
    one of the same outer loops); of a stage that is added to the program "cache_read" (a copy of
    what others read) or "cache_write" (what is computed before it is written). recompute: how often
    each element is computed. The rest is known once there are kernels: the operations of the stage;
    the bytes that are neither written nor read because of the decision; how many arrays, rows and
    values its kernel holds; and what it would take in a kernel of its own, by the cost model.
    """

    producer: str
    consumers: tuple[str, ...]
    action: str
    reason: str
    recompute: float = 1.0
    flops: int = 0
    bytes_saved: int = 0
    live_values: int = 0
    predicted_seconds: float = 0.0

    def __str__(self) -> str:
        readers = ", ".join(self.consumers) or "the caller"
        return f"{self.producer} -> {readers}: {self.action}, {self.reason}"
