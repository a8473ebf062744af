"""The disk cache: compiled libraries under a key, in a directory that only its user can write.

    <key>.so  <key>.c  <key>.sha256     an entry; the checksum is that of the library
    compilers/                          what each compiler said of its version
    building/  failed/  zig/            compilations under way, C that was refused, zig's own cache

Files come into being under another name and are renamed, so that no process sees half of one.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from tinyfuse.errors import CacheError
from tinyfuse.machine import MIB, parse_size

log = logging.getLogger("tinyfuse.cache")

SUFFIXES = (".so", ".c", ".sha256")
DEFAULT_LIMIT = 1024 * MIB
KEPT_AFTER_USE = 600  # seconds: what was just looked up is about to be loaded
KEPT_IF_UNFINISHED = 7 * 24 * 3600  # seconds: leavings of compilations that failed or were killed
SWEPT = "0"  # a store looks for what to evict if its key begins so: one in sixteen


@dataclass(frozen=True, slots=True)
class DiskCacheInfo:
    """What this process found and missed in the disk cache, and what now lies in it.

    bytes: of all files that belong to entries.
    """

    hits: int
    misses: int
    entries: int
    bytes: int
    directory: Path


@dataclass(slots=True)
class Entry:
    """An entry as a listing of the directory shows it."""

    used: float = 0.0  # when, in seconds since the epoch
    bytes: int = 0


class _Counts:
    """How lookups went, over all threads."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = Lock()
        self.hits = self.misses = 0

    def add(self, hit: bool) -> None:
        with self._lock:
            self.hits += hit
            self.misses += not hit


_counts = _Counts()
os.register_at_fork(after_in_child=_counts.reset)  # another thread may have held the lock


def disk_cache_info() -> DiskCacheInfo:
    """Hits and misses of this process, and the size and place of the cache."""
    found = entries()
    total = sum(entry.bytes for entry in found.values())
    return DiskCacheInfo(_counts.hits, _counts.misses, len(found), total, directory())


def lookup(key: str) -> Path | None:
    """The library with this key if it is there and whole; marks it as used."""
    found = _lookup(key)
    _counts.add(hit=found is not None)
    return found


def _lookup(key: str) -> Path | None:
    library = directory() / f"{key}.so"
    try:
        content = library.read_bytes()
        checksum = library.with_suffix(".sha256").read_text()
    except FileNotFoundError:
        return None
    if sha256(content) != checksum:
        log.warning("%s does not match its checksum and is compiled anew", library)
        return None
    with suppress(OSError):  # of a directory that can only be read
        os.utime(library)
    return library


def store(key: str, source: Path, library: Path) -> Path:
    """Make files out of a folder of `building` an entry; returns the place of its library."""
    place = directory() / f"{key}.so"
    checksum = library.with_suffix(".sha256")
    checksum.write_text(sha256(library.read_bytes()))
    for file in (source, checksum, library):  # the library last: without it there is no entry
        os.replace(file, place.with_suffix(file.suffix))
    if key.startswith(SWEPT):
        evict(limit())
    return place


def recall(kind: str, key: str, compute: Callable[[], str]) -> str:
    """A text that was computed before under this key, by any process; empty ones are not kept."""
    place = directory() / kind / sha256(key.encode())
    with suppress(FileNotFoundError):
        return place.read_text()
    text = compute()
    if text:
        place.parent.mkdir(mode=0o700, exist_ok=True)
        with building() as folder:
            (folder / "text").write_text(text)
            os.replace(folder / "text", place)
    return text


@contextmanager
def building() -> Iterator[Path]:
    """A fresh folder on the cache's file system, gone at the end."""
    folder = directory() / "building" / os.urandom(12).hex()
    folder.mkdir(mode=0o700, parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sha256(content: bytes) -> str:
    return _hasher()(content).hexdigest()


@lru_cache(maxsize=1)
def _hasher() -> Any:
    """Python's own SHA-256, else hashlib's: loading OpenSSL takes longer than all else of a hit."""
    for name in ("_sha2", "_sha256"):  # since Python 3.12, until 3.11
        with suppress(ImportError):
            return importlib.import_module(name).sha256
    return importlib.import_module("hashlib").sha256


def entries() -> dict[str, Entry]:
    """The entries by their keys; an entry was used when the youngest of its files was."""
    found: dict[str, Entry] = {}
    for file in os.scandir(directory()):
        key, suffix = os.path.splitext(file.name)
        if suffix in SUFFIXES:
            with suppress(FileNotFoundError):  # evicted by another process
                status = file.stat()
                entry = found.setdefault(key, Entry())
                entry.used = max(entry.used, status.st_mtime)
                entry.bytes += status.st_size
    return found


def limit() -> int:
    """Bytes that entries may take: TINYFUSE_CACHE_LIMIT (as in 500M or 2G) or 1 GiB."""
    setting = os.environ.get("TINYFUSE_CACHE_LIMIT")
    if setting is None:
        return DEFAULT_LIMIT
    if not re.fullmatch("[0-9]+[KMG]?", setting):
        raise CacheError(
            f"TINYFUSE_CACHE_LIMIT={setting!r} is no size: write a number of bytes, or one with "
            "K, M or G after it, as in 500M"
        )
    return parse_size(setting)


def evict(most: int) -> None:
    """Delete the entries that were not used for longest until at most this many bytes are left.

    Entries used in the last minutes stay: another process may be about to load them.
    """
    oldest_first = sorted(entries().items(), key=lambda item: item[1].used)
    total = sum(entry.bytes for _, entry in oldest_first)
    before = time.time() - KEPT_AFTER_USE
    for key, entry in oldest_first:
        if total <= most or entry.used > before:
            break
        remove(key)
        total -= entry.bytes
        log.info("evicted %s", key)
    _remove_leavings(time.time() - KEPT_IF_UNFINISHED)


def remove(key: str) -> None:
    """Delete an entry, library first."""
    for suffix in SUFFIXES:
        (directory() / f"{key}{suffix}").unlink(missing_ok=True)


def _remove_leavings(before: float) -> None:
    for parent in ("building", "failed"):
        for path in (directory() / parent).glob("*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def directory() -> Path:
    """The cache directory, made if need be: TINYFUSE_CACHE_DIR, or the user's own.

    Where the user's own cannot be written, one that lasts as long as the process.

    Raises:
        CacheError: others could have put code into it, or TINYFUSE_CACHE_DIR cannot be made.
    """
    chosen = os.environ.get("TINYFUSE_CACHE_DIR")
    if chosen:
        return _chosen(Path(chosen).expanduser().absolute())
    usual = usual_directory()
    with suppress(OSError):
        if usual is not None and os.access(private(usual), os.W_OK | os.X_OK):
            return usual
    return private(temporary_directory(str(usual)))


def _chosen(path: Path) -> Path:
    try:
        private(path)
    except OSError as error:
        raise CacheError(
            f"TINYFUSE_CACHE_DIR={str(path)!r} is no directory and cannot be made one: "
            f"{error.strerror}"
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise CacheError(f"TINYFUSE_CACHE_DIR={str(path)!r} cannot be written")
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
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
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
def temporary_directory(usual: str) -> Path:
    """For a process whose user has no place for a cache; deleted when the process ends."""
    import tempfile  # only here: hardly any process needs it

    path = Path(tempfile.mkdtemp(prefix="tinyfuse-"))
    log.warning(
        "%s cannot be written: compiled code is kept in %s until this process ends. "
        "Set TINYFUSE_CACHE_DIR to a directory that you can write",
        usual,
        path,
    )
    atexit.register(_delete, path, os.getpid())
    return path


def _delete(path: Path, process: int) -> None:
    if os.getpid() == process:  # not in a child that was forked
        shutil.rmtree(path, ignore_errors=True)
