"""Whom a call of a jitted function meets first: the few programs it was called with last.

The extension module `tinyfuse._dispatch` does this without running Python code. Where it could not
be built, and with TINYFUSE_EXTENSION=0, what is here does the same.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from tinyfuse import config

INTERFACE = 2  # as in runtime_c/dispatch.c
MOST_CALLS = 8  # as there: of one function

MISS = object()  # in place of the result of a call that does not fit


def _extension() -> Any:
    """The extension module; None where there is none, or that of another version."""
    if not config.extension:
        return None
    try:
        module: Any = importlib.import_module("tinyfuse._dispatch")
    except ImportError:
        return None
    if module.INTERFACE != INTERFACE:
        return None
    module.keep_at_most(_kept_bytes())
    return module


def _kept_bytes() -> int:
    """How many bytes of dropped outputs are kept for the next: as set, or an eighth of memory."""
    if config.kept_bytes is not None:
        return config.kept_bytes
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8


extension = _extension()


class DirectCall(Protocol):
    """Calls a compiled program with arguments of certain types, from certain places."""

    used: int  # how many uses its function had at its last one


class PythonCall:
    """A DirectCall in Python: `run` gives the result for (args, kwargs), or MISS."""

    __slots__ = ("run", "used")

    def __init__(self, run: Any) -> None:
        self.run = run
        self.used = 0


class _PythonDispatcher:
    """Base of functions that call compiled code as directly as their arguments allow."""

    __slots__ = ("_calls", "_uses")  # found faster than what is in a dictionary

    _calls: list[PythonCall]
    _uses: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        function = super().__new__(cls)
        function._calls = []
        function._uses = 0
        return function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not _paused:
            for call in self._calls:
                result = call.run(args, kwargs)
                if result is not MISS:
                    self._uses = call.used = self._uses + 1
                    return result
        try:
            return self._slowly(*args, **kwargs)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next  # without this frame
            raise

    def _slowly(self, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _remember(self, call: Any) -> None:
        """Try this call first from now on."""
        others = [other for other in self._calls if other is not call]
        self._calls = [call, *others[: MOST_CALLS - 1]]  # a new list: others may be at the old one

    def _forget(self, call: Any) -> None:
        self._calls = [other for other in self._calls if other is not call]

    def _forget_all(self) -> None:
        self._calls = []


# Type checkers understand no shorter form.
if TYPE_CHECKING or extension is None:  # noqa: SIM108
    Dispatcher = _PythonDispatcher
else:
    Dispatcher = extension.Dispatcher


# -- pauses


class _Own(threading.local):
    pauses = 0


_own = _Own()
_paused = 0  # the pauses of all threads
_lock = threading.Lock()


def _pause(by: int) -> None:
    global _paused
    with _lock:
        _paused += by
    _own.pauses += by
    if extension is not None:
        extension.set_paused(_paused)


@contextmanager
def paused() -> Iterator[None]:
    """Inside this block every call of every thread is looked at closely."""
    _pause(1)
    try:
        yield
    finally:
        _pause(-1)


def _forget_other_threads() -> None:
    """Those of the parent of a fork are gone, and so are their pauses."""
    global _lock, _paused
    _lock = threading.Lock()
    _paused = _own.pauses
    if extension is not None:
        extension.set_paused(_paused)


os.register_at_fork(after_in_child=_forget_other_threads)


def set_default_pool(address: int) -> None:
    """Tell the extension which threads calls use that are given none."""
    if extension is not None:
        extension.set_default_pool(address)
