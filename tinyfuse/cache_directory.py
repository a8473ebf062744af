"""The directory for what tinyfuse keeps on disk: one that only its user can write."""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from tinyfuse.errors import CacheError

log = logging.getLogger("tinyfuse.cache")


def directory() -> Path:
    """The cache directory, made if need be: TINYFUSE_CACHE_DIR, or the user's own.

    Where the user's own cannot be made, one that lasts as long as the process. There may be no
    writing into it.

    Raises:
        CacheError: others could have put code into it, or TINYFUSE_CACHE_DIR cannot be made.
    """
    chosen = _chosen_directory()
    if chosen is not None:
        return _made(chosen)
    usual = usual_directory()
    reason = "there is no home directory"
    if usual is not None:
        try:
            return private(usual)
        except OSError as error:
            reason = error.strerror or str(error)
    place = private(temporary_directory())
    tell_once(str(usual), reason, place)
    return place


def places() -> Iterator[Path]:
    """Where files can be: the directory, and the one of this process where it has had to make one.

    Raises CacheError as `directory` does.
    """
    yield directory()
    yield from _made_for_this_process()


def present() -> Iterator[Path]:
    """Those of `places` that are there already: for who only looks, and makes none for it.

    Raises:
        CacheError: others could have written into it.
    """
    path = _chosen_directory() or usual_directory()
    if path is not None and path.is_dir():
        yield require_private(path)
    yield from _made_for_this_process()


def _made_for_this_process() -> Iterator[Path]:
    if temporary_directory.cache_info().currsize:
        yield temporary_directory()


def _chosen_directory() -> Path | None:
    chosen = os.environ.get("TINYFUSE_CACHE_DIR")
    return Path(chosen).expanduser().absolute() if chosen else None


def _made(path: Path) -> Path:
    try:
        private(path)
    except OSError as error:
        raise CacheError(
            f"TINYFUSE_CACHE_DIR={str(path)!r} is no directory and cannot be made one: "
            f"{error.strerror}"
        ) from None
    return path


def usual_directory() -> Path | None:
    """Where this user's caches lie; None for a user without a home."""
    if sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # such a value is to be ignored
            base = os.path.expanduser("~/.cache")
    return Path(base, "tinyfuse") if os.path.isabs(base) else None


def private(path: Path) -> Path:
    """This directory, made if need be, if nobody but this user can write into it.

    Raises:
        CacheError: others can.
        OSError: it cannot be made.
    """
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    return require_private(path)


def require_private(path: Path) -> Path:
    """This directory, if nobody but its user can write into it. Raises CacheError if others can."""
    status = path.stat()
    if status.st_uid != os.geteuid():
        raise CacheError(
            f"the cache directory {path} belongs to another user (uid {status.st_uid}, not "
            f"{os.geteuid()}), who could put code into it. Set TINYFUSE_CACHE_DIR to a directory "
            "of your own"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise CacheError(
            f"other users can write into the cache directory {path} (mode {mode:04o}), and so put "
            f"code into it. Look at what is in it, then `chmod 700 {path}`"
        )
    return path


@lru_cache(maxsize=1)
def temporary_directory() -> Path:
    """For a process that has no other place for a cache; deleted when the process ends."""
    import tempfile  # only here: hardly any process needs it

    path = Path(tempfile.mkdtemp(prefix="tinyfuse-"))
    atexit.register(_delete, path, os.getpid())
    return path


@lru_cache(maxsize=16)
def tell_once(usual: str, reason: str, path: Path) -> None:
    log.warning(
        "%s cannot be written (%s): compiled code is kept in %s until this process ends. "
        "Set TINYFUSE_CACHE_DIR to a directory that you can write",
        *(usual, reason, path),
    )


def _delete(path: Path, process: int) -> None:
    if os.getpid() == process:  # not in a child that was forked
        shutil.rmtree(path, ignore_errors=True)


def sha256(content: bytes) -> str:
    return _hasher()(content).hexdigest()


_OWN_SHA256 = "_sha256" if sys.version_info < (3, 12) else "_sha2"


@lru_cache(maxsize=1)
def _hasher() -> Any:
    """Python's own SHA-256, else hashlib's: loading OpenSSL takes longer than all else of a hit."""
    with suppress(ImportError):
        return importlib.import_module(_OWN_SHA256).sha256
    return importlib.import_module("hashlib").sha256
