"""The ladder: every level that a program goes through has to compute the same bits.

First rung: the plain function and its traced graph, under numpy's numerics. All other rungs, under
tinyfuse's numerics: the simplified graph, the stages, the loops and the C, unfused, fused and under
random schedules, with loops cut up among threads, by several compilers and for several machines.
No rung has a tolerance.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tinyfuse.emit.c import emit_c
from tinyfuse.emit.launch import CudaProgram
from tinyfuse.errors import CompilationError
from tinyfuse.graph.interpreter import interpret
from tinyfuse.loops.interpreter import interpret_loops
from tinyfuse.loops.ir import Loops
from tinyfuse.runtime.build import mixes_precisions
from tinyfuse.runtime.numerics import CompiledNumerics
from tinyfuse.stage.interpreter import interpret_program
from tinyfuse.testing.case import Case
from tinyfuse.testing.compare import difference
from tinyfuse.testing.compiled import Library
from tinyfuse.testing.devices import device_loops, emitted, run_emulated
from tinyfuse.testing.parting import run_parts
from tinyfuse.testing.report import Failure, Report
from tinyfuse.testing.variants import (
    ScheduleOf,
    Variant,
    fused,
    lowered,
    lowered_with_constants,
    unfused,
    usual_variants,
)

Results = Mapping[Case, list[np.ndarray]]


class Ladder:
    """Climbs with many cases at once, so that the C of many is compiled together.

    compiled: the variants of the C. loops_of: whether the loops of a case are also interpreted,
    element by element. jit_of: whether a case is also called through `tinyfuse.jit`, which
    compiles it by itself. emulated_of: whether its CUDA runs too, unfused and fused, in threads
    that are emulated.
    """

    def __init__(
        self,
        compiled: Sequence[Variant] | None = None,
        loops_of: Callable[[Case], bool] = lambda case: True,
        jit_of: Callable[[Case], bool] = lambda case: False,
        emulated_of: Callable[[Case], bool] = lambda case: False,
    ):
        self.numerics = CompiledNumerics()
        self.compiled = usual_variants() if compiled is None else tuple(compiled)
        self.loops_of, self.jit_of, self.emulated_of = loops_of, jit_of, emulated_of
        self.report = Report()

    def climb(self, cases: Iterable[Case]) -> Report:
        """Compare every rung for every case; the report so far, this one included."""
        results = {
            case: result for case in cases if (result := self._interpreted(case)) is not None
        }
        for variant in self.compiled:
            programs = self._lowered(variant, results)
            for group in _apart(programs) if variant.vectors else [programs]:
                for library, some in self._libraries(variant, group):
                    self._run(variant, library, some, results)
        chosen = {case: result for case, result in results.items() if self.emulated_of(case)}
        for fuse in (False, True) if chosen else ():
            self._emulate(fuse, chosen)
        return self.report

    # --- interpreted rungs ------------------------------------------------------------------------

    def _interpreted(self, case: Case) -> list[np.ndarray] | None:
        """What the simplified graph computes, which all rungs are compared with."""
        if self._attempt("trace", case, lambda: case.trace) is None:
            return None
        if case.exact:
            self._compare("traced graph", case, case.expected, case.traced)
        result = self._attempt("graph", case, lambda: self._graph(case))
        if result is not None:
            self._lower_rungs(case, result)
        return result

    def _lower_rungs(self, case: Case, expected: list[np.ndarray]) -> None:
        self._compare("stages", case, expected, lambda: self._stages(case))
        if self.loops_of(case):
            self._compare("unfused loops", case, expected, lambda: self._loops(case, unfused))
            self._compare("fused loops", case, expected, lambda: self._loops(case, fused))
            self._compare("constants", case, expected, lambda: self._with_constants(case))
        if self.jit_of(case):
            self._compare("jit", case, [*case.returned(expected), case.shared], case.jitted)

    def _graph(self, case: Case) -> list[np.ndarray]:
        return interpret(case.graph, case.arrays, self.numerics)

    def _stages(self, case: Case) -> list[np.ndarray]:
        return _shaped(case, interpret_program(case.program, case.arrays, self.numerics))

    def _loops(self, case: Case, schedule_of: ScheduleOf) -> list[np.ndarray]:
        loops = lowered(case, schedule_of)
        return _shaped(case, interpret_loops(loops, case.arrays, self.numerics))

    def _with_constants(self, case: Case) -> list[np.ndarray]:
        def run(loops: Loops, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
            return interpret_loops(loops, arrays, self.numerics)

        parts = lowered_with_constants(case, fused)
        return _shaped(case, run_parts(parts, case.arrays, run))

    # --- compiled rungs ---------------------------------------------------------------------------

    def _lowered(self, variant: Variant, results: Results) -> dict[Case, Loops]:
        rung = f"lowering to {variant.name}"
        programs = {
            case: self._attempt(rung, case, partial(variant.loops, case)) for case in results
        }
        return {case: loops for case, loops in programs.items() if loops is not None}

    def _libraries(
        self, variant: Variant, programs: dict[Case, Loops]
    ) -> Iterator[tuple[Library, dict[Case, Loops]]]:
        """One library for all; where the compiler refuses that, one for each, to know which."""
        if not programs:
            return
        rung = f"compiling {variant.name}"
        try:
            with self.report.timed(rung):
                library = Library(programs.values(), variant.flags, variant.name)
            self.report.climbed[rung] += len(programs)
            yield library, programs
        except CompilationError as error:
            if len(programs) == 1:
                self._fail(rung, next(iter(programs)), str(error))
                return
            for case, loops in programs.items():
                yield from self._libraries(variant, {case: loops})

    def _run(
        self, variant: Variant, library: Library, programs: dict[Case, Loops], results: Results
    ) -> None:
        for pieces in variant.pieces:
            rung = variant.name if pieces == 1 else f"{variant.name}, {pieces} threads"
            for case, loops in programs.items():
                run = partial(_outputs, library, loops, case, pieces)
                self._compare(rung, case, results[case], run, partial(variant.text, case))

    # --- emulated rungs ---------------------------------------------------------------------------

    def _emulate(self, fuse: bool, results: Results) -> None:
        rung = "fused CUDA" if fuse else "unfused CUDA"
        lowering = f"lowering to {rung}"
        made = {
            case: self._attempt(lowering, case, partial(device_loops, case, fuse))
            for case in results
        }
        cases = [case for case, loops in made.items() if loops is not None]
        with self.report.timed(f"emitting {rung}"):
            programs = emitted([made[case] for case in cases])
        for case, program in zip(cases, programs, strict=True):
            self._compare(rung, case, results[case], partial(_emulated, program, case))

    # --- outcomes ---------------------------------------------------------------------------------

    def _compare(
        self,
        rung: str,
        case: Case,
        expected: Sequence[Any],
        compute: Callable[[], Sequence[Any]],
        schedule: Callable[[], str] = str,
    ) -> None:
        """schedule: the text of what is to be told besides the program."""
        found = self._attempt(rung, case, compute)
        if found is None:
            return
        if len(found) != len(expected):
            message = f"expected {len(expected)} outputs, found {len(found)}"
            self._fail(rung, case, message, schedule())
        for number, (want, have) in enumerate(zip(expected, found, strict=False)):
            text = difference(want, have)
            if text:
                self._fail(rung, case, f"output {number}: {text}", schedule())

    def _attempt(self, rung: str, case: Case, compute: Callable[[], Any]) -> Any:
        """What is computed; None, and a failure in the report, where that raises."""
        try:
            with self.report.timed(rung):
                result = compute()
        except Exception as error:  # whatever it is, it is reported with the program
            where = "".join(traceback.format_tb(error.__traceback__)[-2:])
            self._fail(rung, case, f"{type(error).__name__}: {error}\n{where}")
            return None
        self.report.climbed[rung] += 1
        return result

    def _fail(self, rung: str, case: Case, message: str, schedule: str = "") -> None:
        self.report.failures.append(Failure(rung, message, case.text, schedule))


def _apart(programs: Mapping[Case, Loops]) -> list[dict[Case, Loops]]:
    """The programs that `build` compiles with other flags than the rest apart from these."""
    groups: dict[bool, dict[Case, Loops]] = {}
    for case, loops in programs.items():
        groups.setdefault(mixes_precisions(emit_c(loops).text), {})[case] = loops
    return list(groups.values())


def _outputs(library: Library, loops: Loops, case: Case, pieces: int) -> list[np.ndarray]:
    return _shaped(case, library.run(loops, case.arrays, pieces))


def _emulated(program: CudaProgram, case: Case) -> list[np.ndarray]:
    return _shaped(case, run_emulated(program, case.arrays))


def _shaped(case: Case, flat: Sequence[np.ndarray]) -> list[np.ndarray]:
    outputs = case.graph.outputs
    return [array.reshape(atom.shape) for array, atom in zip(flat, outputs, strict=True)]
