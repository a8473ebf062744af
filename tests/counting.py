"""How much work the compiler does on a program: instructions of Python, which no clock changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import tinyfuse

_INTERNAL = os.path.dirname(tinyfuse.__file__) + os.sep


def instructions(function: Callable[[], object], file: str = "") -> int:
    """How many instructions of Python run in tinyfuse, or one file of it, while a function does."""
    counted, within = 0, _INTERNAL + file

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal counted
        counted += event == "opcode"
        if not frame.f_code.co_filename.startswith(within):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return counted
