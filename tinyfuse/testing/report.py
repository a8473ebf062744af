"""What climbing the ladder found: which rungs how often, how fast, and what failed."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SHOWN = 5  # failures


@dataclass(frozen=True, slots=True)
class Failure:
    """A rung whose result is not that of the rung before, or that raised."""

    rung: str
    message: str
    program: str
    schedule: str = ""

    def __str__(self) -> str:
        return f"{self.rung}: {self.message}\n{self.program}\n{self.schedule}".rstrip("\n")


@dataclass(slots=True)
class Report:
    """For each rung the number of programs and the seconds that they took; and all failures."""

    climbed: dict[str, int] = field(default_factory=lambda: collections.defaultdict(int))
    seconds: dict[str, float] = field(default_factory=lambda: collections.defaultdict(float))
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{n:8d} {rung:40s} {self._rate(rung)}" for rung, n in self.climbed.items()]
        failed = [f"\n{failure}" for failure in self.failures[:SHOWN]]
        hidden = len(self.failures) - SHOWN
        more = [f"\n… and {hidden} more failures"] if hidden > 0 else []
        return "\n".join([*lines, f"{len(self.failures):8d} failures", *failed, *more])

    def _rate(self, rung: str) -> str:
        seconds = self.seconds.get(rung)
        return f"{self.climbed[rung] / seconds:7.0f} per second" if seconds else ""

    def check(self) -> None:
        """Raises AssertionError, with the first failures, where there are any."""
        if self.failures:
            raise AssertionError(str(self))

    def merge(self, other: Report) -> None:
        for rung, count in other.climbed.items():
            self.climbed[rung] += count
        for rung, seconds in other.seconds.items():
            self.seconds[rung] += seconds
        self.failures.extend(other.failures)

    @contextmanager
    def timed(self, rung: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[rung] += time.perf_counter() - start
