"""Counters of the processor and the system, through Linux's perf_event_open.

Each event is counted for every thread that the process has at that moment, in user code alone,
which needs no rights where kernel.perf_event_paranoid is 2 or less.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from tinyfuse.records import dataclass, field

CYCLES, INSTRUCTIONS, MISSES, FAULTS = "cycles", "instructions", "cache misses", "page faults"

_HARDWARE, _SOFTWARE = 0, 1
# (type, config) of perf_event_attr, from linux/perf_event.h
EVENTS = {
    CYCLES: (_HARDWARE, 0),
    INSTRUCTIONS: (_HARDWARE, 1),
    MISSES: (_HARDWARE, 3),
    FAULTS: (_SOFTWARE, 2),
}
PLACES = {name: place for place, name in enumerate(EVENTS)}

_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")  # perf_event_attr in its first version, of 64 bytes
_TIMES = 1 << 0 | 1 << 1  # read_format: how long it was wanted, how long it counted
_USER_CODE = 1 << 5 | 1 << 6  # exclude_kernel, exclude_hv
_CLOSED_BY_EXEC = 8

_FORBIDDEN = "the system does not permit it: see kernel.perf_event_paranoid"
_ABSENT = "this processor, or the virtual machine, does not have them"
_REASONS = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), _FORBIDDEN),
    **dict.fromkeys((errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP), _ABSENT),
}


@dataclass(frozen=True, slots=True)
class Counters:
    """files: (descriptor, place among EVENTS) of those that count. missing: the others, and why."""

    files: list[tuple[int, int]] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def missing_text(self) -> str:
        """`not counted: cycles, instructions (the system does not permit it)`; or nothing."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.missing.items():
            by_reason.setdefault(reason, []).append(name)
        listed = [f"{', '.join(names)} ({reason})" for reason, names in by_reason.items()]
        return f"not counted: {'; '.join(listed)}" if listed else ""


@contextmanager
def counters() -> Iterator[Counters]:
    """Counts of all events that can be had, on all threads of the process; closed at the end."""
    found = Counters()
    try:
        for name in EVENTS:
            _count(name, found)
        yield found
    finally:
        for file, _ in found.files:
            os.close(file)


def _count(name: str, found: Counters) -> None:
    for thread in _threads():
        try:
            found.files.append((_opened(*EVENTS[name], thread), PLACES[name]))
        except ProcessLookupError:  # that thread has ended
            continue
        except OSError as error:
            number = error.errno or 0
            found.missing[name] = _REASONS.get(number, os.strerror(number))
            return


def _threads() -> list[int]:
    try:
        return sorted(map(int, os.listdir("/proc/self/task")))
    except OSError:
        return [0]  # the one that asks


def _opened(kind: int, config: int, thread: int) -> int:
    """The descriptor of an event of one thread. Raises OSError."""
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    size = _ATTRIBUTES.size
    attributes = _ATTRIBUTES.pack(kind, size, config, 0, 0, _TIMES, _USER_CODE, 0, 0, 0)
    system_call = ctypes.CDLL(None, use_errno=True).syscall
    arguments = (thread, -1, -1, _CLOSED_BY_EXEC)  # of that thread on any processor, no group
    file: int = system_call(number, attributes, *map(ctypes.c_long, arguments))
    if file < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return file
