"""Shared libraries opened in this process, and the addresses in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tinyfuse.errors import CompilationError
from tinyfuse.runtime.declarations import ffi

_process = ffi.dlopen(None)
_dlopen, _dlsym, _dlclose = _process.dlopen, _process.dlsym, _process.dlclose
_dlerror = _process.dlerror  # looked up now: looking it up after a failure would clear the message


def open_library(path: Path) -> Any:
    """The library's handle, which stays valid until it is closed.

    Raises:
        CompilationError: it cannot be loaded.
    """
    library = _dlopen(os.fsencode(path), os.RTLD_NOW)
    if not library:
        raise CompilationError(f"{path} was compiled but cannot be loaded: {_reason()}")
    return library


def closing(library: Any) -> Any:
    """The handle, closed when nothing refers to it any more."""
    return ffi.gc(library, _dlclose)


def find(library: Any, name: str, kind: str) -> Any:
    """The function of this name, of one of the types declared in `declarations`.

    Raises:
        CompilationError: the library has none.
    """
    return ffi.cast(f"{kind} *", symbol(library, name))


def symbol(library: Any, name: str) -> int:
    """The address of what a library calls by this name.

    Raises:
        CompilationError: the library has none.
    """
    found = _dlsym(library, name.encode())
    if not found:
        raise CompilationError(f"a compiled library lacks its function {name}: {_reason()}")
    return address(found)


def address(pointer: Any) -> int:
    """A cffi pointer as a number, for C that is not called through cffi."""
    return int(ffi.cast("uintptr_t", pointer))


def _reason() -> str:
    message = _dlerror()
    return ffi.string(message).decode(errors="replace") if message else "unknown reason"
