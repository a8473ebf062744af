"""The disk cache: compiled libraries under a key, in a directory that only its user can write.

    <key>.so  <key>.c  <key>.sha256     an entry; the checksum is that of the library
    compilers/                          what each compiler said of its version
    building/  failed/  zig/            compilations under way, C that was refused, zig's own cache

Files come into being under another name and are renamed, so that no process sees half of one.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from tinyfuse.cache_directory import directory, places, sha256, tell_once, temporary_directory
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
    for place in places():
        found = _whole(place / f"{key}.so")
        if found is not None:
            return found
    return None


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
        tell_once(str(usual), reason, other)
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
