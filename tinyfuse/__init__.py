"""tinyfuse turns plain numpy functions into fused, multi-threaded C."""

from __future__ import annotations

from typing import Any

from tinyfuse import config as _config  # first: it sets up logging
from tinyfuse.api import (
    Compiled,
    Lowered,
    ShapeDtypeStruct,
    Traced,
    cache_info,
    disable_jit,
    jit,
    make_graph,
)
from tinyfuse.errors import TinyfuseError
from tinyfuse.runtime.pool import num_threads, set_num_threads

__version__ = "0.1.0"

__all__ = [
    "Compiled",
    "Lowered",
    "ShapeDtypeStruct",
    "TinyfuseError",
    "Traced",
    "cache_info",
    "disable_jit",
    "errors",
    "jit",
    "make_graph",
    "num_threads",
    "set_num_threads",
    "testing",
]


def __getattr__(name: str) -> Any:
    """`tinyfuse.testing` and other modules, imported when they are first asked for."""
    if name in ("testing",):
        import importlib

        return importlib.import_module(f"tinyfuse.{name}")
    raise AttributeError(f"module 'tinyfuse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
