"""tinyfuse turns plain numpy functions into fused, multi-threaded C."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinyfuse.api import ShapeDtypeStruct, cache_info, disable_jit, jit, make_graph
from tinyfuse.errors import TinyfuseError
from tinyfuse.fixed import constant

if TYPE_CHECKING:
    from tinyfuse import errors, nn, random, testing
    from tinyfuse.calibration import calibrate
    from tinyfuse.compilation import Lowered, Traced
    from tinyfuse.compiled import Compiled
    from tinyfuse.control_flow import cond, fori_loop, map, scan, switch, while_loop  # noqa: A004
    from tinyfuse.inspect import explain
    from tinyfuse.inspect.bisect import bisect
    from tinyfuse.naming import name
    from tinyfuse.runtime.device_array import device_put
    from tinyfuse.runtime.device_streams import cuda_stream
    from tinyfuse.runtime.pool import num_threads, set_num_threads
    from tinyfuse.schedule.schedule import Schedule
    from tinyfuse.trace.listing import supported_functions

__version__ = "0.1.0"

__all__ = [
    "Compiled",
    "Lowered",
    "Schedule",
    "ShapeDtypeStruct",
    "TinyfuseError",
    "Traced",
    "bisect",
    "cache_info",
    "calibrate",
    "cond",
    "constant",
    "cuda_stream",
    "device_put",
    "disable_jit",
    "errors",
    "explain",
    "fori_loop",
    "jit",
    "make_graph",
    "map",
    "name",
    "nn",
    "num_threads",
    "random",
    "scan",
    "set_num_threads",
    "supported_functions",
    "switch",
    "testing",
    "while_loop",
]

# Public names that are imported when they are first asked for, and the modules that they are in.
_LATER = {
    "Compiled": "tinyfuse.compiled",
    "Lowered": "tinyfuse.compilation",
    "Schedule": "tinyfuse.schedule.schedule",
    "Traced": "tinyfuse.compilation",
    "bisect": "tinyfuse.inspect.bisect",
    "calibrate": "tinyfuse.calibration",
    "cuda_stream": "tinyfuse.runtime.device_streams",
    "device_put": "tinyfuse.runtime.device_array",
    "explain": "tinyfuse.inspect",
    "name": "tinyfuse.naming",
    "supported_functions": "tinyfuse.trace.listing",
    **dict.fromkeys(
        ("cond", "fori_loop", "map", "scan", "switch", "while_loop"), "tinyfuse.control_flow"
    ),
    "num_threads": "tinyfuse.runtime.pool",
    "set_num_threads": "tinyfuse.runtime.pool",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    if name in ("nn", "random", "testing"):
        return importlib.import_module(f"tinyfuse.{name}")
    raise AttributeError(f"module 'tinyfuse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
