"""The disk cache: compiled libraries under a key, in a directory that only its user can write.

    <key>.so  <key>.c  <key>.sha256     an entry; the checksum is that of the library
    compilers/                          what each compiler said of its version
    building/  failed/  zig/            compilations under way, C that was refused, zig's own cache

Files come into being under another name and are renamed, so that no process sees half of one.
"""

from __future__ import annotations

import atexit
import errno
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
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from tinyfuse.errors import CacheError
from tinyfuse.machine import MIB, parse_size
from tinyfuse.records import dataclass

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
    for place in _places():
        found = _whole(place / f"{key}.so")
        if found is not None:
            return found
    return None


def _places() -> Iterator[Path]:
    """Where entries can be."""
    yield directory()
    if temporary_directory.cache_info().currsize:
        yield temporary_directory()


def _whole(library: Path) -> Path | None:
    """The library if it is there, as it was made; marks it as used."""
    try:
        content = library.read_bytes()
        checksum = library.with_suffix(".sha256").read_bytes()
    except OSError:
        return None
    if sha256(content).encode() != checksum:
        log.warning("%s does not match its checksum and is compiled anew", library)
        return None
    with suppress(OSError):  # of a directory that can only be read
        os.utime(library)
    return library


def store(where: Path, key: str, source: Path, library: Path) -> Path:
    """Make files out of a folder of `building` an entry; returns the place of its library."""
    place = where / f"{key}.so"
    checksum = library.with_suffix(".sha256")
    checksum.write_text(sha256(library.read_bytes()))
    for file in (source, checksum, library):  # the library last: without it there is no entry
        os.replace(file, place.with_suffix(file.suffix))
    if key.startswith(SWEPT):
        evict(limit())
    return place


def recall(kind: str, key: str, compute: Callable[[], str], accept: Callable[[str], bool]) -> str:
    """A text that was computed before under this key, by any process, if it is acceptable."""
    place = directory() / kind / sha256(key.encode())
    with suppress(OSError):
        text = place.read_text(errors="replace")
        if accept(text):
            return text
    text = compute()
    if accept(text):
        with suppress(OSError):  # then it is asked for again next time
            _put_down(text, place)
    return text


def _put_down(text: str, place: Path) -> None:
    place.parent.mkdir(mode=0o700, exist_ok=True)
    with building(directory()) as folder:
        (folder / "text").write_text(text)
        os.replace(folder / "text", place)


def written(write: Callable[[Path], Path]) -> Path:
    """What `write` gives for the cache directory, or, where that cannot be written, another one.

    Raises CacheError where that cannot be written either.
    """
    usual = directory()
    try:
        if os.access(usual, os.W_OK | os.X_OK):
            return write(usual)
        reason = "it is read-only"
    except OSError as error:
        if not _is_about_writing(error):
            raise
        reason = error.strerror or str(error)
    try:
        other = temporary_directory()
        _tell_once(str(usual), reason, other)
        return write(other)
    except OSError as error:
        if not _is_about_writing(error):
            raise
        raise CacheError(
            f"compiled code can be written neither into {usual} ({reason}) nor into the directory "
            f"for temporary files ({error.strerror}): make room, or set TINYFUSE_CACHE_DIR to a "
            "directory that has some"
        ) from None


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _is_about_writing(error: OSError) -> bool:
    return error.errno in (*_FULL, errno.EROFS, errno.EACCES, errno.EPERM)


def require_space(where: Path, complaint: str) -> None:
    """Raises OSError where a compiler has failed because the file system is full."""
    for number in _FULL:
        if os.strerror(number) in complaint:
            raise OSError(number, os.strerror(number), str(where))


@contextmanager
def building(where: Path) -> Iterator[Path]:
    """A fresh folder within a cache directory, gone at the end."""
    folder = where / "building" / os.urandom(12).hex()
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

    Where the user's own cannot be made, one that lasts as long as the process. There may be no
    writing into it.

    Raises:
        CacheError: others could have put code into it, or TINYFUSE_CACHE_DIR cannot be made.
    """
    chosen = os.environ.get("TINYFUSE_CACHE_DIR")
    if chosen:
        return _chosen(Path(chosen).expanduser().absolute())
    usual = usual_directory()
    reason = "there is no home directory"
    if usual is not None:
        try:
            return private(usual)
        except OSError as error:
            reason = error.strerror or str(error)
    place = private(temporary_directory())
    _tell_once(str(usual), reason, place)
    return place


def _chosen(path: Path) -> Path:
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
def temporary_directory() -> Path:
    """For a process that has no other place for a cache; deleted when the process ends."""
    import tempfile  # only here: hardly any process needs it

    path = Path(tempfile.mkdtemp(prefix="tinyfuse-"))
    atexit.register(_delete, path, os.getpid())
    return path


@lru_cache(maxsize=16)
def _tell_once(usual: str, reason: str, path: Path) -> None:
    log.warning(
        "%s cannot be written (%s): compiled code is kept in %s until this process ends. "
        "Set TINYFUSE_CACHE_DIR to a directory that you can write",
        *(usual, reason, path),
    )


def _delete(path: Path, process: int) -> None:
    if os.getpid() == process:  # not in a child that was forked
        shutil.rmtree(path, ignore_errors=True)
