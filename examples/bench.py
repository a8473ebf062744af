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
from products import print_products
from timing import Call, duration, medians, run_without_openblas_settings
from workloads import WORKLOADS, Workload, arguments

import tinyfuse

# Run in processes of their own, each of which prints milliseconds.
IMPORT = """
from time import perf_counter
import numpy
start = perf_counter()
import tinyfuse
print(1e3 * (perf_counter() - start))
"""
CALLS = """
from time import perf_counter
import numpy as np, tinyfuse, workloads
for length in range(16, 26):
    for _ in range(2):
        x = np.ones(length, np.float32)
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
        print_products(options.seconds)
        return
    print_compilation(options.processes)
    print_dispatch()
    print_legend()
    given = ["--workloads-only", "--seconds", str(options.seconds)]
    if not hasattr(os, "sched_getaffinity"):  # macOS keeps no process on some cores
        print("\nall threads", flush=True)
        subprocess.run([sys.executable, __file__, *given], check=True)
        return
    every = sorted(os.sched_getaffinity(0))
    for cores in ([every[0]], every) if len(every) > 1 else (every,):
        print(f"\n{len(cores)} thread{'s' if len(cores) > 1 else ''}", flush=True)
        on_cores(cores, given)


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
    print(f"From nothing to a result, ms, in {processes} new processes each:")
    in_process(CALLS)  # has Python's bytecode written
    repeated = range(processes)
    report("import tinyfuse, beyond numpy", [in_process(IMPORT)[0] for _ in repeated], 30)
    report("50 operations, call to C, first of all", [in_process(TO_C)[0] for _ in repeated])
    report("50 operations, call to C", c_text_again(), 20)
    fresh, filled = calls(processes)
    report("a small kernel, no cache, first of all", [times[0] for times in fresh])
    report("a small kernel, no cache", [time for times in fresh for time in times[2::2]], 60)
    report("a small kernel, disk cache, first of all", [times[0] for times in filled])
    report("a small kernel, disk cache", [time for times in fresh for time in times[3::2]], 5)


def report(what: str, milliseconds: Sequence[float], target: float | None = None) -> None:
    value = median(milliseconds)
    verdict = f"target {target}: {'met' if value <= target else 'MISSED'}" if target else ""
    spread = f"{min(milliseconds):6.1f} to {max(milliseconds):6.1f}"
    print(f"  {what:42s} {value:6.1f}   ({spread})   {verdict}".rstrip())


def in_process(script: str, **settings: str) -> list[float]:
    """The milliseconds that a script prints."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **settings}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as where tinyfuse is installed
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return [float(line) for line in run.stdout.split()]


def calls(processes: int) -> tuple[list[list[float]], list[list[float]]]:
    """Of new processes: with an empty disk cache, and with what the one before left there."""
    fresh, filled = [], []
    for _ in range(processes):
        with TemporaryDirectory() as directory:
            fresh.append(in_process(CALLS, TINYFUSE_CACHE_DIR=directory))
            filled.append(in_process(CALLS, TINYFUSE_CACHE_DIR=directory))
    return fresh, filled


def c_text_again(times: int = 15) -> list[float]:
    """In this process, when it has read the function's source before."""
    arrays = arguments(((32, 16), (16, 16), (16,)))
    milliseconds = []
    for _ in range(times + 1):
        start = perf_counter()
        tinyfuse.jit(workloads.fifty_operations).lower(*arrays).as_text("c")
        milliseconds.append(1e3 * (perf_counter() - start))
    return milliseconds[1:]


def print_dispatch() -> None:
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
    print("copy: the speed over that of a plain copy, on 1 thread, which moves as many bytes.")
    print("-: does not compile that function as it stands, or is not limited by moving bytes.")
    print("Products: after that the share of what the machine can do at most, in multiplying and")
    print("adding or, where that is less, in moving bytes, as tinyfuse.calibrate has measured it.")
    missing = [name for name in PEERS if name not in installed()]
    if missing:
        print(f"Not installed: {', '.join(missing)}.")


def print_workloads(seconds: float) -> None:
    names = "".join(f" {name:>16s}" for name in ("tinyfuse", *installed()))
    print(f"  {'':12s} {'numpy':>8s}{names}    copy")
    for workload in WORKLOADS:
        print(row(workload, seconds), flush=True)


def row(workload: Workload, seconds: float) -> str:
    times = medians(calls_of(workload), seconds)
    names = ("tinyfuse", *installed())
    cells = [cell(times.get(name), times["numpy"]) for name in names]
    copy = f"{times['copy'] / times['tinyfuse']:.0%}" if workload.moved else "-"
    name = workload.function.__name__
    return " ".join([f"  {name:12s} {duration(times['numpy'])}", *cells, f"{copy:>7s}"])


def calls_of(workload: Workload) -> dict[str, Call]:
    """The workload in numpy, tinyfuse and its peers; and a copy of as many bytes as it moves."""
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
