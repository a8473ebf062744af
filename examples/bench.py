"""Prints the times that tinyfuse promises, and how it compares with numpy and other compilers.

Every time is a median. Peers (jax, torch, numba) are left out where they are not installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import workloads
from peers import PEERS, installed, peer_call
from timing import Call, duration, medians, run_without_openblas_settings
from workloads import WORKLOADS, Workload, arguments

# Run in processes of their own, each of which prints milliseconds.
IMPORT = """
from time import perf_counter
import numpy
start = perf_counter()
import tinyfuse
print(1e3 * (perf_counter() - start))
"""
CALL = """
from time import perf_counter
import numpy as np, tinyfuse, workloads
x = np.ones(16, np.float32)
function = tinyfuse.jit(workloads.scaled)
start = perf_counter()
function(x, x, x)
print(1e3 * (perf_counter() - start))
"""
TO_C = """
from time import perf_counter
import numpy as np, tinyfuse, workloads
x, weight, bias = workloads.arguments(((32, 16), (16, 16), (16,)))
lower = tinyfuse.jit(workloads.fifty_operations).lower
start = perf_counter()
lower(x, weight, bias).as_text("c")
print(1e3 * (perf_counter() - start))
"""


def main(given: Sequence[str] | None = None) -> None:
    options = parsed(given)
    if options.workloads_only:
        print_workloads(options.seconds)
        return
    print_compilation(options.processes)
    print_dispatch()
    print_legend()
    every = sorted(os.sched_getaffinity(0))
    for cores in ([every[0]], every) if len(every) > 1 else (every,):
        print(f"\n{len(cores)} thread{'s' if len(cores) > 1 else ''}", flush=True)
        on_cores(cores, ["--workloads-only", "--seconds", str(options.seconds)])


def parsed(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each workload (1)")
    parser.add_argument("--processes", type=int, default=9, help="for each time to start (9)")
    parser.add_argument("--workloads-only", action="store_true", help="on the cores as they are")
    return parser.parse_args(given)


def on_cores(cores: Sequence[int], given: Sequence[str]) -> None:
    """Run this script in a process of its own, where every thread pool sees these cores only."""
    command = [sys.executable, __file__, *given]
    subprocess.run(command, check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))


# -- from nothing to a result


def print_compilation(processes: int) -> None:
    print(f"From nothing to a result, each in {processes} new processes, ms:")
    cold, cached = first_calls(processes)
    report("import tinyfuse, beyond numpy", [in_process(IMPORT) for _ in range(processes)], 30)
    report("50 operations, call to C text, first", [in_process(TO_C) for _ in range(processes)])
    report("50 operations, call to C text, again", c_text_again(), 20)
    report("a small kernel, call to result, no cache", cold, 60)
    report("a small kernel, call to result, cached", cached, 5)


def report(what: str, milliseconds: Sequence[float], target: float | None = None) -> None:
    value = median(milliseconds)
    verdict = f"target {target}: {'met' if value <= target else 'MISSED'}" if target else ""
    spread = f"{min(milliseconds):6.1f} to {max(milliseconds):6.1f}"
    print(f"  {what:42s} {value:6.1f}   ({spread})   {verdict}".rstrip())


def in_process(script: str, **environment: str) -> float:
    """What a script prints, in milliseconds."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment}
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env=settings, check=True, stdout=subprocess.PIPE, text=True)
    return float(run.stdout)


def first_calls(processes: int) -> tuple[list[float], list[float]]:
    """Of a new process: with an empty disk cache, and with what the former one left there."""
    cold, cached = [], []
    for _ in range(processes):
        with TemporaryDirectory() as directory:
            cold.append(in_process(CALL, TINYFUSE_CACHE_DIR=directory))
            cached.append(in_process(CALL, TINYFUSE_CACHE_DIR=directory))
    return cold, cached


def c_text_again(times: int = 15) -> list[float]:
    """Of functions whose source this process has read before."""
    import tinyfuse

    arrays = arguments(((32, 16), (16, 16), (16,)))
    milliseconds = []
    for _ in range(times + 1):
        start = perf_counter()
        tinyfuse.jit(workloads.fifty_operations).lower(*arrays).as_text("c")
        milliseconds.append(1e3 * (perf_counter() - start))
    return milliseconds[1:]


def print_dispatch() -> None:
    import tinyfuse

    x = np.ones(16, np.float32)
    compiled = tinyfuse.jit(workloads.scaled)
    calls: dict[str, Call] = {
        "tinyfuse": lambda: compiled(x, x, x),
        "numpy": lambda: workloads.scaled(x, x, x),
    }
    times = medians(calls, 0.5)
    cells = [f"{name} {duration(seconds).strip()}" for name, seconds in times.items()]
    print(f"\nA call of a * x + b on 16 floats: {', '.join(cells)}")


# -- against others


def print_legend() -> None:
    print("\nTimes, and in brackets numpy's over them: more than 1 is faster than numpy.")
    print("limit: the part reached of the speed of a copy that moves as many bytes (on 1 thread).")
    print("-: does not compile that function as it stands, or has no such limit.")
    missing = [name for name in PEERS if name not in installed()]
    if missing:
        print(f"Not installed: {', '.join(missing)}.")


def print_workloads(seconds: float) -> None:
    names = "".join(f" {name:>16s}" for name in ("tinyfuse", *installed()))
    print(f"  {'':12s} {'numpy':>8s}{names}   limit")
    for workload in WORKLOADS:
        print(row(workload, seconds), flush=True)


def row(workload: Workload, seconds: float) -> str:
    times = medians(calls_of(workload), seconds)
    names = ("tinyfuse", *installed())
    cells = [cell(times.get(name), times["numpy"]) for name in names]
    limit = f"{times['copy'] / times['tinyfuse']:.0%}" if workload.moved else "-"
    name = workload.function.__name__
    return " ".join([f"  {name:12s} {duration(times['numpy'])}", *cells, f"{limit:>7s}"])


def calls_of(workload: Workload) -> dict[str, Call]:
    """The workload in numpy, tinyfuse and its peers; and a copy of as many bytes as it moves."""
    import tinyfuse

    function, arrays = workload.function, arguments(workload.shapes)
    expected = np.asarray(function(*arrays))
    compiled = tinyfuse.jit(function)
    calls: dict[str, Call] = {
        "numpy": lambda: function(*arrays),
        "tinyfuse": lambda: compiled(*arrays),
    }
    for name in installed():
        call = peer_call(name, function, arrays, expected)
        if call:
            calls[name] = call
    if workload.moved:
        calls["copy"] = copy_call(sum(array.nbytes for array in (*arrays, expected)))
    return calls


def cell(seconds: float | None, numpy: float) -> str:
    if seconds is None:
        return f"{'-':>16s}"
    return f"{duration(seconds)} {f'({numpy / seconds:.2f})':>7s}"


def copy_call(count: int) -> Call:
    """A copy that reads and writes so many bytes, taken together."""
    source = np.ones(count // 2, np.uint8)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


if __name__ == "__main__":
    run_without_openblas_settings()
    main()
