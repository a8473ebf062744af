"""Measuring calls of a compiled function: as a whole, and kernel by kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinyfuse.compiled import Compiled
from tinyfuse.direct_call import direct_call
from tinyfuse.dispatch import DirectCall, Dispatcher
from tinyfuse.executable import Executable
from tinyfuse.inspect.counters import EVENTS, PLACES, counters
from tinyfuse.inspect.watch import Watched
from tinyfuse.records import dataclass
from tinyfuse.signature import Call

COUNTED_RUNS = 3


@dataclass(frozen=True, slots=True)
class Measurement:
    """What calls took.

    calls: float64[repeat], seconds of whole calls. kernels: float64[repeat, kernels].
    counts: for each event that was counted float64[kernels], of one call. missing: says which were
    not, and why.
    """

    calls: np.ndarray
    kernels: np.ndarray
    counts: dict[str, np.ndarray]
    missing: str


class _Called(Dispatcher):
    """Calls a compiled function as a jitted one does that has found its program."""

    def __init__(self, compiled: Compiled, direct: DirectCall | None) -> None:
        self._compiled = compiled
        if direct is not None:
            self._remember(direct)

    def _slowly(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)


def measure(
    compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], repeat: int
) -> Measurement:
    """Whole calls and watched ones in turn, after one of each, on the same threads.

    Watched calls compute into memory that is there already: what fresh memory takes, and copies
    and writes at the end of a call, is in the whole call's time only.
    """
    call, executable = compiled.prepared(args, kwargs)
    run = _called(compiled, executable, call, (len(args), tuple(kwargs)))
    values = given(executable, call)
    with kept(executable, values) as put_back:
        run(*args, **kwargs)
        put_back()
        watched = _watched(compiled, executable, values)
        watched_seconds = watched.seconds if watched else lambda: np.empty(0)
        watched_seconds()
        calls, kernels = [], []
        for _ in range(repeat):
            calls.append(_seconds(run, args, kwargs))
            put_back()
            kernels.append(watched_seconds())
    counts, missing = _counted(watched) if watched else ({}, "")
    return Measurement(np.array(calls), np.array(kernels), counts, missing)


def _called(compiled: Compiled, executable: Executable, call: Call, form: Any) -> _Called:
    plan = compiled.lowered.traced.parameters.plan(form)
    return _Called(compiled, direct_call(executable, form, plan, call.given))


def given(executable: Executable, call: Call) -> list[Any]:
    """What a program is given: the call's values, then what captured variables hold now."""
    return [*call.values, *[captured.current() for captured, _ in executable.captured]]


@contextmanager
def kept(executable: Executable, values: Sequence[Any]) -> Iterator[Callable[[], None]]:
    """A function that puts the arrays that a program writes back as they are now.

    They are so afterwards in any case. values: what the program is given.
    """
    arrays = [values[place] for *_, place in executable.writes]
    before = [(array, array.copy()) for array in arrays if array.flags.writeable]

    def put_back() -> None:
        for array, copy in before:
            np.copyto(array, copy)

    try:
        yield put_back
    finally:
        put_back()


def _watched(compiled: Compiled, executable: Executable, values: Sequence[Any]) -> Watched | None:
    """The program with its own copies of what has to be converted; None where it has no kernels."""
    lowered = compiled.lowered
    if not lowered.loops.kernels:
        return None
    operands = [
        np.require(values[place], var.dtype, ("C_CONTIGUOUS", "ALIGNED"))
        for place, var in executable.operands
    ]
    results = [np.empty(shape, dtype) for shape, dtype in executable.results]
    arrays = [*operands, *results]
    return Watched(lowered.traced.name, lowered.loops, arrays, executable.threads)


def _seconds(run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """The result is dropped before the next run, which can have its memory."""
    start = time.perf_counter()
    run(*args, **kwargs)
    return time.perf_counter() - start


def _counted(watched: Watched) -> tuple[dict[str, np.ndarray], str]:
    with counters() as found:
        runs = [watched.counts(found.files) for _ in range(COUNTED_RUNS)]
    means = np.mean(runs, axis=0)
    counts = {name: means[:, PLACES[name]] for name in EVENTS if name not in found.missing}
    return counts, found.missing_text()
