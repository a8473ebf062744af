"""The ladder: every level that a program goes through has to compute the same bits.

First rung: the plain function and its traced graph, under numpy's numerics. All other rungs, under
tinyfuse's numerics: the simplified graph, the stages, the loops and the C, unfused, fused and under
random schedules, with loops cut up among threads, by several compilers and for several machines.
No rung has a tolerance.
"""

from __future__ import annotations

import collections
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tinyfuse.errors import CompilationError, ScheduleError
from tinyfuse.graph.interpreter import interpret
from tinyfuse.loops.interpreter import interpret_loops
from tinyfuse.loops.ir import Loops
from tinyfuse.lower.lower import lower
from tinyfuse.machine import REFERENCE
from tinyfuse.runtime.numerics import CompiledNumerics
from tinyfuse.schedule.planner import default_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.stage.interpreter import interpret_stages
from tinyfuse.testing.case import Case
from tinyfuse.testing.choices import Choices, SeededChoices
from tinyfuse.testing.compare import difference
from tinyfuse.testing.compiled import Library
from tinyfuse.testing.schedules import random_schedule

ScheduleOf = Callable[[Case], Schedule]


def unfused(case: Case) -> Schedule:
    """Every stage in a loop nest of its own."""
    return default_schedule(case.stages, REFERENCE, fuse=False)[0]


def fused(case: Case) -> Schedule:
    """As programs run by default."""
    return default_schedule(case.stages, REFERENCE)[0]


def plain(case: Case) -> Schedule:
    """No directive at all."""
    return Schedule(case.stages)


def random(choices: Choices) -> ScheduleOf:
    """Some directives away from one of the others, and refused by nothing."""

    def schedule_of(case: Case) -> Schedule:
        start = choices.choose((plain, fused, unfused))(case)
        schedule = random_schedule(choices, start)
        try:
            lower(schedule, REFERENCE)
        except ScheduleError:
            return start
        return schedule

    return schedule_of


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to compile: schedule, flags for the compiler, into how many pieces loops are cut."""

    name: str
    schedule_of: ScheduleOf
    flags: tuple[str, ...] = ("-O1",)
    pieces: tuple[int, ...] = (1,)


def variants(seed: int = 0) -> tuple[Variant, ...]:
    """The usual ones; the random schedules are those of a seed."""
    return (
        Variant("unfused C", unfused),
        Variant("fused C", fused, pieces=(1, 3)),
        Variant("C of a random schedule", random(SeededChoices(seed)), pieces=(2, 7)),
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """A rung whose result is not that of the rung before, or that raised."""

    rung: str
    message: str
    program: str

    def __str__(self) -> str:
        return f"{self.rung}: {self.message}\n{self.program}"


@dataclass(slots=True)
class Report:
    """Which rungs were climbed how often, how long that took in seconds, and what failed."""

    climbed: collections.Counter[str] = field(default_factory=collections.Counter)
    seconds: collections.Counter[str] = field(default_factory=collections.Counter)  # type: ignore[assignment]
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{count:8d} {rung:30s} {self._rate(rung)}" for rung, count in self.climbed.items()
        ]
        failed = [f"\n{failure}" for failure in self.failures[:5]]
        more = [f"\n… and {len(self.failures) - 5} more failures"] if len(self.failures) > 5 else []
        return "\n".join([*lines, f"{len(self.failures):8d} failures", *failed, *more])

    def _rate(self, rung: str) -> str:
        seconds = self.seconds[rung]
        return f"{self.climbed[rung] / seconds:7.0f} per second" if seconds else ""

    def merge(self, other: Report) -> None:
        self.climbed.update(other.climbed)
        self.seconds.update(other.seconds)
        self.failures.extend(other.failures)

    @contextmanager
    def timed(self, rung: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[rung] += time.perf_counter() - start  # type: ignore[assignment]


class Ladder:
    """Climbs with many cases at once, so that the C of many is compiled together.

    interpret_loops_of: whether the loops of a case are also interpreted, element by element.
    """

    def __init__(
        self,
        compiled: Sequence[Variant] | None = None,
        interpret_loops_of: Callable[[Case], bool] = lambda case: True,
    ):
        self.numerics = CompiledNumerics()
        self.compiled = variants() if compiled is None else tuple(compiled)
        self.interpret_loops_of = interpret_loops_of
        self.report = Report()

    def climb(self, cases: Iterable[Case]) -> Report:
        """Compare every rung for every case; the report so far, this one included."""
        results: dict[Case, list[np.ndarray]] = {}
        for case in cases:
            if self._attempt("trace", case, lambda case=case: case.trace) is None:
                continue
            self._first_rung(case)
            result = self._attempt("graph", case, lambda case=case: self._graph(case))
            if result is not None:
                results[case] = result
                self._interpreted(case, result)
        for variant in self.compiled:
            self._variant(variant, results)
        return self.report

    def _graph(self, case: Case) -> list[np.ndarray]:
        return interpret(case.graph, case.arrays, self.numerics)

    def _first_rung(self, case: Case) -> None:
        if case.exact:
            expected = self._attempt("numpy", case, lambda: case.expected)
            if expected is not None:
                self._compare("traced graph", case, expected, case.traced)

    def _interpreted(self, case: Case, expected: list[np.ndarray]) -> None:
        self._compare(
            "stages",
            case,
            expected,
            lambda: interpret_stages(case.stages, case.arrays, self.numerics),
        )
        if self.interpret_loops_of(case):
            for name, schedule_of in (("unfused loops", unfused), ("fused loops", fused)):
                self._compare(name, case, expected, lambda of=schedule_of: self._loops(case, of))  # type: ignore[misc]

    def _loops(self, case: Case, schedule_of: ScheduleOf) -> list[np.ndarray]:
        loops = lower(schedule_of(case), REFERENCE)
        return _shaped(case, interpret_loops(loops, case.arrays, self.numerics))

    # --- compiled rungs ---------------------------------------------------------------------------

    def _variant(self, variant: Variant, results: Mapping[Case, list[np.ndarray]]) -> None:
        programs: dict[Case, Loops] = {}
        for case in results:
            loops = self._attempt(
                f"lowering to {variant.name}",
                case,
                lambda case=case: lower(variant.schedule_of(case), REFERENCE),
            )
            if loops is not None:
                programs[case] = loops
        for library, some in self._libraries(variant, programs):
            for case, loops in some.items():
                for pieces in variant.pieces:
                    self._run(variant.name, pieces, library, loops, case, results[case])

    def _run(
        self,
        name: str,
        pieces: int,
        library: Library,
        loops: Loops,
        case: Case,
        expected: list[np.ndarray],
    ) -> None:
        rung = name if pieces == 1 else f"{name}, {pieces} threads"
        run = partial(library.run, loops, case.arrays, pieces)
        self._compare(rung, case, expected, lambda: _shaped(case, run()))

    def _libraries(
        self, variant: Variant, programs: dict[Case, Loops]
    ) -> Iterator[tuple[Library, dict[Case, Loops]]]:
        """One library for all; where the compiler refuses that, one for each, to know which."""
        if not programs:
            return
        try:
            with self.report.timed(f"compiling {variant.name}"):
                library = Library(programs.values(), variant.flags, variant.name)
            self.report.climbed[f"compiling {variant.name}"] += len(programs)
            yield library, programs
        except CompilationError as error:
            if len(programs) == 1:
                self.report.failures.append(
                    Failure(f"compiling {variant.name}", str(error), next(iter(programs)).text)
                )
                return
            for case, loops in programs.items():
                yield from self._libraries(variant, {case: loops})

    # --- outcomes ---------------------------------------------------------------------------------

    def _compare(
        self, rung: str, case: Case, expected: Sequence[Any], compute: Callable[[], Sequence[Any]]
    ) -> None:
        found = self._attempt(rung, case, compute)
        if found is None:
            return
        if len(found) != len(expected):
            self._fail(rung, case, f"expected {len(expected)} outputs, found {len(found)}")
        for number, (want, have) in enumerate(zip(expected, found, strict=False)):
            text = difference(want, have)
            if text:
                self._fail(rung, case, f"output {number}: {text}")

    def _attempt(self, rung: str, case: Case, compute: Callable[[], Any]) -> Any:
        """What is computed; None, and a failure in the report, where that raises."""
        try:
            with self.report.timed(rung):
                result = compute()
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__)[-2:])
            self._fail(rung, case, f"{type(error).__name__}: {error}\n{where}")
            return None
        self.report.climbed[rung] += 1
        return result

    def _fail(self, rung: str, case: Case, message: str) -> None:
        self.report.failures.append(Failure(rung, message, case.text))


def _shaped(case: Case, flat: Sequence[np.ndarray]) -> list[np.ndarray]:
    outputs = case.stages.outputs
    return [array.reshape(stage.shape) for array, stage in zip(flat, outputs, strict=True)]
