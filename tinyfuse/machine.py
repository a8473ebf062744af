"""The machine that code is planned and compiled for, as a value.

What a program compiles to depends on a `Machine` and on nothing else of the computer it is
compiled on, so that the text for a fixed machine is the same everywhere.
"""

from __future__ import annotations

import itertools
import os
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tinyfuse.constants import Constants, stored_constants
from tinyfuse.records import dataclass

KIB = 1024
MIB = 1024 * KIB
LINE_BYTES = 64  # of a cache line

CPU_INFO = "/proc/cpuinfo"
CPU_CACHES = "/sys/devices/system/cpu/cpu0/cache"
CPU_INFO_BYTES = 16 * KIB  # the first processor's block; the file grows with their number


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU that kernels run on.

    architecture: as nvcc names it. threads: of a block, at most. blocks: of a kernel whose threads
    share one loop, at most. shared_bytes: memory that the threads of a block share, at most.
    registers: of a thread, at most, so that a multiprocessor holds two blocks of 256 threads.
    """

    architecture: str
    threads: int = 256
    blocks: int = 1056
    shared_bytes: int = 48 * KIB
    registers: int = 128


@dataclass(frozen=True, slots=True)
class Machine:
    """What the planner and the C compiler have to know of a computer.

    vector_bytes, vector_registers: width of a vector register, and how many one core has.
    l1, l2, l3: bytes of data cache, l1 and l2 of one core, l3 of all.
    cores: how many may compute at once.
    flags: what tells the C compiler which instructions there are.
    constants: how fast it is.
    device: the GPU that kernels run on; None where they run on the computer itself.
    """

    name: str
    vector_bytes: int
    l1: int
    l2: int
    l3: int
    cores: int
    flags: tuple[str, ...] = ("-march=native",)
    constants: Constants = Constants()
    vector_registers: int = 32
    device: Device | None = None


REFERENCE = Machine("reference", 64, 48 * KIB, MIB, 32 * MIB, 2, ("-march=x86-64-v4",))
# The same core, with vectors half as wide.
REFERENCE_AVX2 = Machine(
    *("reference-avx2", 32, 32 * KIB, 512 * KIB, 16 * MIB, 2, ("-march=x86-64-v3",)),
    Constants(
        bandwidth=(222e9, 186e9, 119e9, 34e9),
        shared_bandwidth=(444e9, 372e9, 238e9, 38e9),
        float32_rate=67e9,
        float64_rate=33.5e9,
    ),
    vector_registers=16,
)

# GPUs. A vector is what a thread loads at once; what is fused is what REFERENCE fuses.
SM_80 = Machine("sm_80", 16, 48 * KIB, MIB, 40 * MIB, 2, device=Device("sm_80"))
SM_90 = Machine("sm_90", 16, 48 * KIB, MIB, 50 * MIB, 2, device=Device("sm_90"))

_VECTOR_BYTES = {"avx512f": 64, "avx2": 32}  # elsewhere 16, as of SSE2 and NEON
_IDENTIFYING = (  # the lines of /proc/cpuinfo that -march=native depends on (x86-64, Arm64)
    *("vendor_id", "cpu family", "model", "model name", "flags"),
    *("CPU implementer", "CPU part", "CPU variant", "Features"),
)


@cache
def host() -> Machine:
    """The computer this process runs on; what it does not tell is taken from `REFERENCE`.

    Its constants are those that `calibrate` has stored, or else those of `REFERENCE`.
    """
    caches, cores = data_caches(Path(CPU_CACHES)), available_cores()
    width = vector_bytes(cpu_features())
    return Machine(
        name="host",
        vector_bytes=width,
        l1=caches.get(1, REFERENCE.l1),
        l2=caches.get(2, REFERENCE.l2),
        l3=caches.get(3, caches.get(2, REFERENCE.l3)),
        cores=cores,
        constants=stored_constants(processor(cores)) or Constants(),
        vector_registers=vector_registers(width, platform.machine()),
    )


def processor(cores: int) -> str:
    """What measured constants belong to: the processor, and how many of its cores may be used."""
    return f"{cpu_identity()}\ncores: {cores}"


def vector_bytes(features: Iterable[str]) -> int:
    return max((_VECTOR_BYTES.get(feature, 16) for feature in features), default=16)


def vector_registers(width: int, architecture: str) -> int:
    """How many vectors of so many bytes a core has: 32 of AVX-512 and of NEON, 16 of others."""
    return 32 if width == 64 or architecture in ("aarch64", "arm64") else 16


@cache
def cpu_identity() -> str:
    """What `-march=native` stands for here: the processor's model and features."""
    lines = [platform.machine()]
    for field, value in cpu_info():
        if field in _IDENTIFYING:
            lines.append(f"{field}: {value}")
    return "\n".join(lines)


def cpu_features() -> list[str]:
    return next(
        (value.split() for field, value in cpu_info() if field in ("flags", "Features")), []
    )


@cache
def cpu_info() -> tuple[tuple[str, str], ...]:
    """The fields of /proc/cpuinfo for the first processor; none where there is no such file."""
    try:
        with open(CPU_INFO, "rb", buffering=0) as file:
            text = file.read(CPU_INFO_BYTES).decode(errors="replace")
    except OSError:
        return ()
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return tuple((field.strip(), value.strip()) for field, _, value in pairs)


def data_caches(directory: Path) -> dict[int, int]:
    """Bytes of the data caches by level, as Linux lists them; empty where it does not."""
    sizes = {}
    for index in itertools.count():
        level = _read(f"{directory}/index{index}/level")
        if not level:
            break
        if level.isdigit() and _read(f"{directory}/index{index}/type") in ("Data", "Unified"):
            sizes[int(level)] = parse_size(_read(f"{directory}/index{index}/size"))
    return {level: size for level, size in sizes.items() if size}


def parse_size(text: str) -> int:
    """`48K` is 49152; 0 for what is no size."""
    number, unit = (text[:-1], text[-1:]) if text[-1:] in ("K", "M", "G") else (text, "")
    return (
        int(number) * {"": 1, "K": KIB, "M": MIB, "G": 1024 * MIB}[unit] if number.isdigit() else 0
    )


def available_cores() -> int:
    """Cores that this process may use, by its affinity and its control group's quota."""
    return max(1, min([_scheduled_cores(), *map(_rounded_up, control_group_quotas())]))


def _scheduled_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _rounded_up(quota: tuple[int, int]) -> int:
    microseconds, period = quota
    return -(-microseconds // period)


def control_group_quotas(
    own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> list[tuple[int, int]]:
    """(microseconds, per period) that each control group above this process allows it."""
    quotas = []
    for line in _read(own).splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = f"{root}/cpu" if controllers else f"{root}"
        names = [name for name in group.split("/") if name]
        for depth in range(len(names), -1, -1):
            quotas += _quota("/".join([mount, *names[:depth]]))
    return quotas


def _quota(group: str) -> list[tuple[int, int]]:
    """Of one control group: version 2 has `cpu.max`, version 1 two files. Unlimited: none."""
    words = _read(f"{group}/cpu.max").split()
    if not words:
        words = [_read(f"{group}/cpu.cfs_{name}_us") for name in ("quota", "period")]
    if len(words) == 2 and all(word.isdigit() and int(word) for word in words):
        return [(int(words[0]), int(words[1]))]
    return []


def _read(path: str | Path) -> str:
    try:
        with open(path, "rb", buffering=0) as file:  # a fraction of the time of `read_text`
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""
