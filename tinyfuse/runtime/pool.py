"""Threads for parallel loops: how many, and the pool in `runtime_c/pool.c` that has them."""

from __future__ import annotations

import os
from functools import cache
from threading import Lock
from typing import Any

from tinyfuse.dispatch import set_default_pool
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import ThreadCountError
from tinyfuse.machine import available_cores
from tinyfuse.runtime.build import build
from tinyfuse.runtime.declarations import ffi
from tinyfuse.runtime.linking import address, find, open_library

MAX_THREADS = 256  # as in pool.c

_NULL = ffi.NULL
_pools: dict[int | None, Any] = {1: _NULL}
_lock = Lock()


def _replace_lock() -> None:
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=_replace_lock)  # another thread may have held it


def pool(threads: int | None = None) -> Any:
    """What an entry takes as its last argument: a pool of up to `threads`, a null pointer for 1.

    None: as many as `num_threads` says. The pool is compiled when it is first asked for; its
    threads start when a long enough loop first runs in it, on the process's main thread.

    Raises:
        ThreadCountError: `threads` is no whole number from 1.
    """
    found = _pools.get(threads)
    return _add_pool(threads) if found is None else found


def num_threads() -> int:
    """How many threads a parallel loop uses: as set, or TINYFUSE_NUM_THREADS, or one for each core.

    Those are the cores that the process's affinity and its control group's quota allow.
    """
    return _default_threads() if _chosen is None else _chosen


def set_num_threads(threads: int | None) -> None:
    """Let parallel loops use that many threads from now on; None: as many as without this call.

    The number never changes a result.

    Raises:
        ThreadCountError: it is no whole number from 1.
    """
    global _chosen
    with _lock:
        _chosen = None if threads is None else checked(threads)
        in_use = _pools.pop(None, None) is not None
    if in_use:
        pool(None)


_chosen: int | None = None


@cache
def _default_threads() -> int:
    setting = os.environ.get("TINYFUSE_NUM_THREADS", "")
    if not setting:
        return min(available_cores(), MAX_THREADS)
    if not setting.isdecimal():
        raise ThreadCountError(
            f"TINYFUSE_NUM_THREADS={setting!r} is no number of threads, such as 4"
        )
    return checked(int(setting))


def checked(threads: int) -> int:
    """The number if it is one of threads; no more than `MAX_THREADS`."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ThreadCountError(
            f"{threads!r} is no number of threads: it must be a whole number from 1"
        )
    return min(threads, MAX_THREADS)


def _add_pool(threads: int | None) -> Any:
    with _lock:
        count = num_threads() if threads is None else checked(threads)
        found = _pools[threads] = _NULL if count == 1 else _pool_of()(count)
        if threads is None:
            set_default_pool(address(found))
        return found


@cache
def _pool_of() -> Any:
    """`tf_pool_of` of the pool's library, which stays loaded: threads run in it until the end."""
    text = (runtime_c() / "pool.c").read_text()
    return find(open_library(build(text, "pool", libc=True)), "tf_pool_of", "tf_pool_of")
