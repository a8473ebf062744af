"""Long runs of the ladder: `python -m tests.thorough [STATE] [--programs 100000]`.

STATE is a file that says how far the run has come; a run with the same file goes on from there.
Each program is compiled under two schedules, the default one, also with all optimizations, and a
random one; the CUDA of one in twenty runs too, thread by thread on the emulated device, which takes
about a seventh of the time. `--loops` instead climbs with programs of Python loops, all of them
rolled where they can be. `--sanitize N` instead builds N programs as standalone executables with
gcc's address and undefined-behaviour sanitizers and runs them on recorded inputs. `--math` instead
compares mathematical functions with the exact values: those of one float32 for every float32 (or
one of STEP), the others on millions of samples; `--functions exp log` are the only ones then.
`--pairs` instead compares two scalar operations compiled together with one after another: all that
there are, or one of STEP.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests import math_checking, scalar_pairs
from tests.loop_programs import loop_case
from tests.sanitized import run_sanitized
from tinyfuse.dtypes import SUPPORTED
from tinyfuse.machine import available_cores
from tinyfuse.testing import Case, Failure, Ladder, Report, Variant, program_case, random_program
from tinyfuse.testing.variants import fused, random
from tinyfuse.trace import loop_statements

BATCH = 100
BATCHES_PER_PROCESS = 20
PAIRS = 500  # of scalar operations, compiled together
LOOPS_EVERY = 10  # one program in so many has its loops interpreted too
DEVICE_EVERY = 20  # and of one in so many the CUDA is run, on the emulated device
FIRST_SEED = 1_000_000  # the suite's own programs have the seeds below


def variants(seed: int) -> tuple[Variant, ...]:
    """The default schedule, quickly compiled and as `tinyfuse.jit` does, where compilers have more
    occasion to go wrong; and a random one with loops cut into three."""
    random_one = Variant("C of a random schedule", random(seed), pieces=(3,))
    return Variant("fused C", fused), Variant("fast C", fused, flags=()), random_one


Climb = Callable[[tuple[int, int]], Report]


def climb_batch(batch: tuple[int, int]) -> Report:
    """The report on a batch: (seed of the first program, number of programs)."""
    first, count = batch
    return climb_cases(
        first, [program_case(random_program(at)) for at in range(first, first + count)]
    )


def climb_loops(batch: tuple[int, int]) -> Report:
    """The same for programs of Python loops; those that numpy or tinyfuse refuse are left out."""
    first, count = batch
    loop_statements.MOST_UNROLLED = 1
    return climb_cases(
        first, [case for at in range(first, first + count) if (case := loop_case(at))]
    )


def climb_cases(seed: int, cases: Sequence[Case]) -> Report:
    """The report on these, under the schedules of a seed."""
    looped, emulated = set(cases[::LOOPS_EVERY]), set(cases[::DEVICE_EVERY])
    ladder = Ladder(variants(seed), looped.__contains__, emulated_of=emulated.__contains__)
    return ladder.climb(cases)


def load_state(path: Path) -> tuple[int, Report]:
    """(number of programs done, report on them)."""
    if not path.exists():
        return 0, Report()
    state = json.loads(path.read_text())
    report = Report()
    report.climbed.update(state["climbed"])
    report.seconds.update(state["seconds"])
    report.failures.extend(Failure(**failure) for failure in state["failures"])
    return state["done"], report


def save_state(path: Path, done: int, report: Report) -> None:
    failures = [dataclasses.asdict(failure) for failure in report.failures]
    state: dict[str, Any] = {
        "done": done,
        "climbed": report.climbed,
        "seconds": report.seconds,
        "failures": failures,
    }
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(state, indent=1))
    os.replace(beside, path)


def run(path: Path, programs: int, jobs: int, climb: Climb = climb_batch) -> Report:
    """Climb with as many programs in all, those of earlier runs included."""
    done, report = load_state(path)
    starts = range(done, programs, BATCH)
    batches = [(FIRST_SEED + start, min(BATCH, programs - start)) for start in starts]
    with get_context("spawn").Pool(jobs, maxtasksperchild=BATCHES_PER_PROCESS) as pool:
        begin, before = time.perf_counter(), done
        for (_, count), part in zip(batches, pool.imap(climb, batches), strict=True):
            report.merge(part)
            done += count
            save_state(path, done, report)
            rate = (done - before) / (time.perf_counter() - begin)
            print(f"{done} of {programs}, {len(report.failures)} failures, {rate:.1f} per second")
            sys.stdout.flush()
    return report


def run_math(step: int, names: Sequence[str], jobs: int) -> bool:
    """Whether these functions are as near the exact values as they should be.

    Those of one float32 for every float32, or one of `step`.
    """
    reports: list[math_checking.Report] = []
    with get_context("spawn").Pool(jobs) as pool:
        checks = math_checking.thorough_checks(step, names)
        for report in pool.imap(math_checking.check_thoroughly, checks):
            print(report, flush=True)
            reports.append(report)
            math_checking.save(reports)
    failed = sum(report.failed for report in reports)
    print(f"{failed} functions are too far from the exact values")
    return not failed


def check_pairs(pairs: Sequence[scalar_pairs.Pair]) -> list[str]:
    return scalar_pairs.differences(pairs, ("-O1",))


def run_pairs(step: int, jobs: int) -> bool:
    """Whether all pairs of scalar operations, or one of `step`, have the bits they should have."""
    pairs = [pair for dtype in SUPPORTED for pair in scalar_pairs.pairs_of(dtype)][::step]
    done = failed = 0
    with get_context("spawn").Pool(jobs) as pool:
        batches = [pairs[start : start + PAIRS] for start in range(0, len(pairs), PAIRS)]
        for batch, found in zip(batches, pool.imap(check_pairs, batches), strict=True):
            done, failed = done + len(batch), failed + len(found)
            print(*found, f"{done} of {len(pairs)} pairs, {failed} failures", sep="\n", flush=True)
    return not failed


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.thorough", description=__doc__)
    parser.add_argument("state", type=Path, nargs="?", help="build/thorough.json, or -loops.json")
    parser.add_argument("--programs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes")
    parser.add_argument("--loops", action="store_true", help="programs of Python loops")
    parser.add_argument("--sanitize", type=int, metavar="N", help="N programs, under sanitizers")
    parser.add_argument("--math", type=int, metavar="STEP", nargs="?", const=1)
    parser.add_argument(
        "--functions",
        nargs="+",
        metavar="NAME",
        choices=math_checking.FUNCTIONS,
        default=math_checking.FUNCTIONS,
        help="those that --math checks",
    )
    parser.add_argument("--pairs", type=int, metavar="STEP", nargs="?", const=1)
    options = parser.parse_args(arguments)
    if options.state is None:  # the two kinds of programs are counted apart
        options.state = Path(f"build/thorough{'-loops' if options.loops else ''}.json")
    options.state.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("TINYFUSE_CACHE_DIR", cache)
        if options.math:
            return 0 if run_math(options.math, options.functions, options.jobs) else 1
        if options.pairs:
            return 0 if run_pairs(options.pairs, options.jobs) else 1
        if options.sanitize:
            seeds = range(FIRST_SEED, FIRST_SEED + options.sanitize)
            report = run_sanitized(seeds, options.state.parent)
        else:
            climb = climb_loops if options.loops else climb_batch
            report = run(options.state, options.programs, options.jobs, climb)
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
