"""Measuring the constants of the machine that this process runs on."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from tinyfuse.constants import LEVELS, Bandwidths, Constants, Costs, path_in, text_of
from tinyfuse.dtypes import FLOAT32, FLOAT64
from tinyfuse.emit.ctext import CText, type_text
from tinyfuse.emit.prelude import prelude_text, runtime_c
from tinyfuse.emit.scalar import op_text
from tinyfuse.graph.scalar_ops import SCALAR_OPS
from tinyfuse.machine import KIB, MIB, Machine, available_cores, host, processor
from tinyfuse.runtime import cache
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import aligned, load
from tinyfuse.runtime.pool import MAX_THREADS

# The operations that are measured; the costs of others are in proportion to one of these.
MEASURED = tuple(dict.fromkeys(op.like for op in SCALAR_OPS.values() if op.like))
DTYPES = (FLOAT32, FLOAT64)

IN_L1 = 16 * KIB  # bytes of arrays that are read and written, where arithmetic is measured
ADDITIONS = 16  # to each element, in what is timed as an addition
LEAST = 5  # timings of each thing
LONGEST = 0.2  # seconds that they take together, unless there are fewer
TIMED = 0.001  # seconds that one timing takes at least, less than a process runs undisturbed
DIGITS = 2  # that are kept: more are not repeatable


class Effort(NamedTuple):
    """What it may take to measure.

    timings: of each thing. memory: bytes to work through where the L3 is to be of no use.
    """

    timings: int
    memory: int


THOROUGH, QUICK = Effort(33, 256 * MIB), Effort(9, 64 * MIB)


def calibrate(quick: bool = False) -> Machine:
    """Measure how fast this machine is, for the cost model: bandwidths, arithmetic, calls, threads.

    The constants are stored in the user's cache directory. For functions that are compiled from
    then on, in this process and in later ones, times are predicted by them, and so is from how
    much work on threads share a loop; no result depends on them. It takes a few seconds, in which
    nothing else should be running. Call it on the main thread: elsewhere
    loops are not shared, and cores are not measured together.

    Args:
        quick: take a second or so, for rougher figures.

    Returns:
        The machine with its constants, as `lower` and `compile` use it.

    Raises:
        CompilerNotFoundError: there is no C compiler.
        CacheError: there is no place to store the constants.
    """
    with Progress(sys.stderr) as progress:
        progress.show("compiling", 0, 1)
        bench = Bench(host(), QUICK if quick else THOROUGH)
        probes = all_probes(bench)
        found = {}
        for done, (name, probe) in enumerate(probes.items()):
            progress.show(name, done, len(probes))
            found[name] = rounded(probe())
    constants = as_constants(found)
    cache.written(lambda directory: store(constants, directory))
    host.cache_clear()
    return host()


def store(constants: Constants, directory: Path) -> Path:
    """Put the constants into a cache directory. Raises OSError where that cannot be written."""
    measured_on = processor(available_cores())
    place = path_in(directory, measured_on)
    place.parent.mkdir(mode=0o700, exist_ok=True)
    with cache.building(directory) as folder:
        (folder / "constants").write_text(text_of(constants, measured_on))
        os.replace(folder / "constants", place)
    return place


class Progress:
    """A bar on a terminal; nothing elsewhere."""

    WIDTH = 30

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._write("")

    def show(self, doing: str, done: int, of: int) -> None:
        bar = "#" * (self.WIDTH * done // of)
        self._write(f"calibrating [{bar:{self.WIDTH}}] {doing}")

    def _write(self, text: str) -> None:
        stream = self.stream
        if stream is not None and stream.isatty():
            stream.write(f"\r\033[K{text}")
            stream.flush()


class Bench:
    """The compiled loops that are timed, for one machine."""

    def __init__(self, machine: Machine, effort: Effort) -> None:
        self.machine = machine
        self.effort = effort
        self.library = build(library_text(), "calibration")

    def seconds(
        self, symbol: str, count: int, arrays: Sequence[np.ndarray], parts: int = 1
    ) -> float:
        """What one repetition of an entry takes.

        It is the quartile of the shorter timings: other processes only add to them.

        count: elements for each part. parts: of the work; as many threads share them.
        """
        entry = load(self.library, symbol)

        def timed(repeats: int) -> float:
            given = [np.array([count, repeats, parts], np.int64), *arrays]
            start = time.perf_counter()
            entry(given, threads=parts)
            return time.perf_counter() - start

        timed(1)  # starts threads, touches memory
        repeats = 1
        while (taken := timed(repeats)) < TIMED:
            repeats *= min(100, max(2, math.ceil(TIMED / taken)))
        timings = min(self.effort.timings, max(LEAST, int(LONGEST / taken)))
        return sorted(timed(repeats) for _ in range(timings))[timings // 4] / repeats

    def bandwidth(self, footprint: int, parts: int = 1) -> float:
        """Bytes per second, where each of so many threads works on a footprint of its own."""
        count = footprint // (2 * FLOAT32.itemsize)
        x, y = (memory(FLOAT32, count * parts) for _ in range(2))
        x[:] = 1.0
        return 2 * FLOAT32.itemsize * count * parts / self.seconds("scale", count, (x, y), parts)

    def per_element(self, symbol: str, dtype: np.dtype, operands: int = 1) -> float:
        """Seconds for each element, with all arrays in the L1."""
        count = IN_L1 // (2 * dtype.itemsize)
        arrays = [filled(dtype, count) for _ in range(operands + 1)]
        return self.seconds(symbol, count, arrays) / count


def filled(dtype: np.dtype, count: int) -> np.ndarray:
    """Usual numbers, all different."""
    made = memory(dtype, count)
    made[:] = np.linspace(0.5, 9.5, count, dtype=dtype)
    return made


def memory(dtype: np.dtype, count: int) -> np.ndarray:
    """Room for so many elements, which begins with a cache line."""
    return aligned(count * dtype.itemsize)[: count * dtype.itemsize].view(dtype)


# -- what is measured

Probe = Callable[[], float]


def all_probes(bench: Bench) -> dict[str, Probe]:
    """For each constant how it is measured, by the name under which it is shown."""
    return {**_arithmetic(bench), **_calls(bench), **_bandwidths(bench)}


def _arithmetic(bench: Bench) -> dict[str, Probe]:
    probes: dict[str, Probe] = {}
    for dtype in DTYPES:
        probes[f"add {dtype}"] = partial(bench.per_element, f"add_{dtype}", dtype)
        for name in MEASURED:
            operands = SCALAR_OPS[name].arity
            probes[f"{name} {dtype}"] = partial(
                bench.per_element, f"{name}_{dtype}", dtype, operands
            )
    return probes


def _calls(bench: Bench) -> dict[str, Probe]:
    small = (filled(FLOAT32, 16), filled(FLOAT32, 16))
    probes: dict[str, Probe] = {
        "chain": partial(bench.per_element, "chain", FLOAT32),
        "call": partial(bench.seconds, "call", 16, small),
    }
    if bench.machine.cores > 1:
        probes["threads"] = partial(bench.seconds, "share", 1, (np.zeros(1, np.int64),), 2)
    return probes


def _bandwidths(bench: Bench) -> dict[str, Probe]:
    machine = bench.machine
    threads = min(machine.cores, MAX_THREADS)
    probes: dict[str, Probe] = {}
    for level, one, each in zip(LEVELS, *_footprints(machine, bench.effort, threads), strict=True):
        probes[f"{level}, one core"] = partial(bench.bandwidth, one)
        if threads > 1:
            probes[f"{level}, all cores"] = partial(bench.bandwidth, each, threads)
    return probes


def _footprints(
    machine: Machine, effort: Effort, threads: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Bytes that lie in each of LEVELS, where one thread works, and for each where many do."""
    memory = min(4 * machine.l3, effort.memory)
    l1, l2 = machine.l1 // 2, machine.l2 // 2
    l3 = [min(4 * machine.l2, machine.l3 // (2 * sharing)) for sharing in (1, threads)]
    return (l1, l2, l3[0], memory), (l1, l2, l3[1], memory // threads)


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def as_constants(found: Mapping[str, float]) -> Constants:
    """The constants, from what the probes have found; for what there is none, as usual."""
    usual = Constants()
    one = _at_each_level(found, "one core")
    return Constants(
        bandwidth=one,
        shared_bandwidth=_at_each_level(found, "all cores") if "threads" in found else one,
        float32_rate=rounded(ADDITIONS / found["add float32"]),
        float64_rate=rounded(ADDITIONS / found["add float64"]),
        costs=_costs(found),
        latency=found["chain"],
        launch=found["call"],
        wake=found.get("threads", usual.wake),
    )


def _at_each_level(found: Mapping[str, float], where: str) -> Bandwidths:
    """None above that of the level before, whatever disturbed a measurement."""
    l1, l2, l3, memory = accumulate([found[f"{level}, {where}"] for level in LEVELS], min)
    return l1, l2, l3, memory


def _costs(found: Mapping[str, float]) -> Costs:
    """In additions."""
    add32, add64 = (found[f"add {dtype}"] / ADDITIONS for dtype in DTYPES)
    return tuple(
        (name, rounded(found[f"{name} float32"] / add32), rounded(found[f"{name} float64"] / add64))
        for name in MEASURED
    )


# -- the C


def library_text() -> str:
    """All entries that are timed: those of runtime_c/calibration.c, and one for each operation."""
    used: dict[str, None] = {"int64_t": None}
    loops = [_loop_text(name, dtype, used) for name in MEASURED for dtype in DTYPES]
    files = [(runtime_c() / name).read_text() for name in ("entry.h", "calibration.c")]
    return prelude_text(used) + "\n".join([*files, *loops])


def _loop_text(name: str, dtype: np.dtype, used: dict[str, None]) -> str:
    operands = [f"x{number}" for number in range(SCALAR_OPS[name].arity)]
    kind = type_text(dtype, used)
    elements = [CText(f"{operand}[i]") for operand in operands]
    value = op_text(name, elements, [dtype] * len(operands), dtype, used).text
    places = [
        f"  {kind} *restrict {array} = arrays[{number}];\n"
        for number, array in enumerate([*operands, "y"], 1)
    ]
    return (
        f"int {name}_{dtype}(void *const *arrays, void *scratch, const tf_pool *pool) {{\n"
        "  (void)scratch, (void)pool;\n"
        "  const int64_t count = ((const int64_t *)arrays[0])[0];\n"
        "  const int64_t repeats = ((const int64_t *)arrays[0])[1];\n"
        f"{''.join(places)}"
        "  for (int64_t r = 0; r < repeats; r++) {\n"
        f"    for (int64_t i = 0; i < count; i++) y[i] = {value};\n"
        "    touch_memory();\n"
        "  }\n"
        "  return 0;\n"
        "}\n"
    )
