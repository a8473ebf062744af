"""How fast a computer is: constants that can be measured, as a value and as a file.

The file is JSON, in the cache directory, under a name that stands for the processor.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinyfuse.cache_directory import present, sha256
from tinyfuse.errors import CacheError
from tinyfuse.records import dataclass

log = logging.getLogger("tinyfuse.cache")

FOLDER = "constants"
LEVELS = ("L1", "L2", "L3", "memory")

Bandwidths = tuple[float, float, float, float]  # bytes per second, of each of LEVELS
Costs = tuple[tuple[str, float, float], ...]  # name, cost in float32, cost in float64


@dataclass(frozen=True, slots=True)
class Constants:
    """What operations, memory and calls take on a computer. Times are seconds.

    The defaults are those of a Zen 5 core of 4.2 GHz with vectors of 64 bytes, two of them sharing
    the L3 and the memory, for code by gcc 12.

    bandwidth: bytes per second that one core reads and writes, together, in L1, L2, L3 and memory.
    shared_bandwidth: the same for all cores together.
    float32_rate, float64_rate: operations per second of one core's vector code, on elements of up
        to 4 and of 8 bytes; an addition, a multiplication and a fused multiply-add are one each.
    costs: what other operations take, in additions of vector code: (name, float32, float64) for
        those that were measured. The others take what `graph.scalar_ops.SCALAR_OPS` says.
    latency: from an addition to the next one that needs its result.
    launch: the call of a kernel.
    wake: until another thread takes part in a kernel that shares its loop.
    """

    bandwidth: Bandwidths = (383e9, 191e9, 119e9, 34e9)
    shared_bandwidth: Bandwidths = (766e9, 382e9, 238e9, 38e9)
    float32_rate: float = 134e9
    float64_rate: float = 67e9
    costs: Costs = ()
    latency: float = 0.5e-9
    launch: float = 5e-9
    wake: float = 0.5e-6


def path_in(directory: Path, processor: str) -> Path:
    """Where a cache directory holds the constants of a processor."""
    return directory / FOLDER / f"{sha256(processor.encode())}.json"


def stored_constants(processor: str) -> Constants | None:
    """What was measured on this processor, if anything; a file that is spoilt is left aside."""
    try:
        paths = [path_in(directory, processor) for directory in present()]
    except CacheError:  # which compiling is going to raise
        return None
    return next((found for path in reversed(paths) if (found := _read(path, processor))), None)


def _read(path: Path, processor: str) -> Constants | None:
    try:
        text = path.read_bytes()
    except OSError:
        return None
    try:
        return parse(text, processor)
    except ValueError as error:
        log.warning(
            "%s is left aside (%s): tinyfuse.calibrate() measures the machine anew", path, error
        )
        return None


def text_of(constants: Constants, processor: str) -> str:
    """The constants as JSON."""
    import json  # only here and in `parse`: its import takes a millisecond

    values = {name: getattr(constants, name) for name in Constants.__match_args__}
    return json.dumps({"processor": processor, **values}, indent=1) + "\n"


def parse(text: bytes, processor: str) -> Constants:
    """The constants of a text. Raises ValueError where it is not one of this processor's."""
    import json

    try:
        read = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(read, dict) or read.pop("processor", None) != processor:
        raise ValueError("it is of another processor")
    if read.keys() != set(Constants.__match_args__):
        raise ValueError("it has not the constants that this version of tinyfuse needs")
    return Constants(**{name: _CHECKS.get(name, _positive)(value) for name, value in read.items()})


def _positive(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{value!r:.40} is no number")
    if not 0 < value <= sys.float_info.max:
        raise ValueError(f"{value!r:.40} is no positive number")
    return float(value)


def _bandwidths(value: Any) -> Bandwidths:
    if not isinstance(value, list) or len(value) != len(LEVELS):
        raise ValueError(f"{value!r:.40} is no bandwidth for each of {', '.join(LEVELS)}")
    l1, l2, l3, memory = map(_positive, value)
    return l1, l2, l3, memory


def _costs(value: Any) -> Costs:
    if not isinstance(value, list) or not all(map(_is_cost, value)):
        raise ValueError(f"{value!r:.40} is no list of costs")
    return tuple([(name, _positive(single), _positive(double)) for name, single, double in value])


def _is_cost(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)


_CHECKS: Mapping[str, Any] = {
    "bandwidth": _bandwidths,
    "shared_bandwidth": _bandwidths,
    "costs": _costs,
}
