"""Timing functions beside one another."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter, sleep

from tinyfuse.machine import available_cores

Call = Callable[[], object]

SAMPLE = 2e-4  # seconds that a sample takes at least: shorter calls are repeated within it
TURN = 1e-2  # seconds of samples of one call before the next one's turn
ROUNDS = 5  # at least
PAUSE = 0.06  # seconds for which threads of other libraries, as OpenBLAS's, wait busily for work
OPENBLAS_SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # they make numpy slower or faster


def medians(calls: Mapping[str, Call], seconds: float) -> dict[str, float]:
    """Median seconds of a call of each.

    They take turns (A B C, A B C, …), so that whatever else the machine does hits all of them;
    where there are several cores, no turn begins before the threads of the last one sleep.
    """
    pause = PAUSE if len(calls) > 1 and available_cores() > 1 else 0.0
    repeats = {name: _repeats(call) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    end, rounds = perf_counter() + seconds, 0
    while rounds < ROUNDS or perf_counter() < end:
        for name, call in calls.items():
            sleep(pause)
            call()
            samples[name] += _turn(call, repeats[name])
        rounds += 1
    return {name: median(times) for name, times in samples.items()}


def _turn(call: Call, repeats: int) -> list[float]:
    end, samples = perf_counter() + TURN, [_sample(call, repeats)]
    while perf_counter() < end:
        samples.append(_sample(call, repeats))
    return samples


def _repeats(call: Call) -> int:
    call()
    once = max(_sample(call, 1), 1e-8)
    return max(1, int(SAMPLE / once))


def _sample(call: Call, repeats: int) -> float:
    start = perf_counter()
    for _ in range(repeats):
        call()
    return (perf_counter() - start) / repeats


def duration(seconds: float) -> str:
    """Seconds as text of 8 characters."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:5.1f} us"
    return f"{seconds * 1e3:5.{0 if seconds >= 1 else 1 if seconds >= 0.01 else 2}f} ms"


def run_without_openblas_settings() -> None:
    """Start this script again without the variables that change what numpy's products cost."""
    if any(name in os.environ for name in OPENBLAS_SETTINGS):
        environment = {k: v for k, v in os.environ.items() if k not in OPENBLAS_SETTINGS}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
