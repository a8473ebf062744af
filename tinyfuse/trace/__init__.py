"""Tracing: from a numpy function to its graph."""

from tinyfuse.trace import (
    elementwise as _elementwise,
)
from tinyfuse.trace.captured import Captured
from tinyfuse.trace.run import is_traced, trace
from tinyfuse.trace.specs import ArgumentSpec, Check, NeedsValue, OutputSpec, Trace
from tinyfuse.trace.tracer import Tracer

__all__ = [
    "ArgumentSpec",
    "Captured",
    "Check",
    "NeedsValue",
    "OutputSpec",
    "Trace",
    "Tracer",
    "is_traced",
    "trace",
]
