"""From C text to a shared library, through the disk cache."""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tinyfuse.cache_directory import sha256
from tinyfuse.errors import CompilationError
from tinyfuse.machine import cpu_identity
from tinyfuse.runtime import cache
from tinyfuse.runtime.toolchain import Compiler, environment, find_compiler

log = logging.getLogger("tinyfuse.compile")

CACHE_VERSION = "3"  # of what a key is made of and of how libraries are called
SHOWN_LINES = 20  # of a compiler's complaint
# What gcc says where it is at fault itself, mostly in its vectorizer. Results are the same without.
CRASH = "internal compiler error"
WITHOUT_VECTORS = ("-fno-tree-vectorize",)

# gcc 12 takes a double that is rounded to float and widened again for the same double, where it
# makes vectors of statements one after the other: not where both types are in a text, then.
WITHOUT_STATEMENT_VECTORS = ("-fno-tree-slp-vectorize",)
_TYPES = re.compile(r"\bfloat\b"), re.compile(r"\bdouble\b")

# gcc 12 makes one instruction, rounded once, of products that are subtracted and added in turn, as
# `a * b - c` beside `a * b + c`, whatever -ffp-contract says. C from here is written such that it
# does not (`emit/alternating.py`); libraries with bytes such as its are looked at as text all the
# same, and compiled without vectors if it is there.
_ALTERNATING = re.compile(rb"\bvfm(addsub|subadd)")


def _bytes_of(bits: int, value: int) -> bytes:
    return b"[" + b"".join([b"\\x%02x" % x for x in range(256) if x & bits == value]) + b"]"


# The map 0f38 with the prefix 66, in both encodings, and the opcodes.
_LIKE_ALTERNATING = re.compile(
    b"(\xc4%b%b|\x62%b%b.)" % (_bytes_of(31, 2), _bytes_of(3, 1), _bytes_of(15, 2), _bytes_of(7, 5))
    + rb"[\x96\x97\xa6\xa7\xb6\xb7]",
    re.DOTALL,
)

_SPLICE = re.compile(r"\\[ \t]*\n|\?\?/")
_COMMENT = re.compile(
    r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
_COMPLAINT = re.compile(r"^[^:\n]+:(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)


def build(
    text: str, name: str, *, flags: tuple[str, ...] = (), libc: bool = False, head: str = ""
) -> Path:
    """The shared library of a C text: from the disk cache, or compiled and put there.

    Args:
        text: one translation unit.
        name: what messages call it; no part of the key.
        flags: more flags for the compiler; they override the usual ones.
        libc: whether the text includes headers and is to be linked to libc.
        head: stands before the text; messages count lines without it.

    Raises:
        CompilerNotFoundError: there is no C compiler.
        CompilationError: the compiler refused the text.
        CacheError: the cache directory is not safe to use.
    """
    compiler = find_compiler()
    if compiler.kind == "gcc" and mixes_precisions(text):
        flags = (*WITHOUT_STATEMENT_VECTORS, *flags)
    arguments = compiler.arguments(flags, libc=libc)
    key = cache_key(head + text, compiler, arguments)
    found = cache.lookup(key)
    if found is None:
        return _compile(head, text, name, compiler, arguments, key)
    cache.log.info("hit: %s %s", name, key[:12])
    return found


def cache_key(text: str, compiler: Compiler, arguments: list[str]) -> str:
    """SHA-256 of all that a library depends on; comments in the text are not among it."""
    command = compiler.call("", "", arguments)
    parts = (CACHE_VERSION, compiler.identity, cpu_identity(), *command, without_comments(text))
    return sha256("\0".join(parts).encode())


def mixes_precisions(text: str) -> bool:
    """Whether a C text, its comments left out, has both float and double."""
    code = without_comments(text)
    return all(name.search(code) for name in _TYPES)


@lru_cache(maxsize=1)  # of a text that is built it is asked for twice
def without_comments(text: str) -> str:
    """The text with a space for each comment, as C defines it, and without the lines left empty.

    A text with spliced lines comes back as it is: there a comment may end elsewhere.
    """
    if _SPLICE.search(text):
        return text
    lines = _COMMENT.sub(lambda match: match[1] or " ", text).splitlines()
    return "\n".join(stripped for line in lines if (stripped := line.strip()))


def _compile(
    head: str, text: str, name: str, compiler: Compiler, arguments: list[str], key: str
) -> Path:
    cache.log.info("miss: %s %s", name, key[:12])
    start = time.perf_counter()
    command = compiler.call("kernel.c", "kernel.so", arguments)
    gcc = compiler.kind == "gcc"
    place = cache.written(lambda where: _compile_in(where, head, text, name, command, key, gcc))
    log.info("%s: %s in %.0f ms", name, shlex.join(command), (time.perf_counter() - start) * 1e3)
    return place


def _compile_in(
    where: Path, head: str, text: str, name: str, command: list[str], key: str, gcc: bool
) -> Path:
    """Compile within a cache directory. Raises OSError where that cannot be written."""
    with cache.building(where) as folder:
        source, library = folder / "kernel.c", folder / "kernel.so"
        source.write_text(f'{head}#line 1 "kernel.c"\n{text}' if head else text)
        status, complaint = run_compiler(command, folder, environment(where))
        if status and CRASH in complaint:
            log.warning(
                "%s crashed on the C of %s: it is compiled without vectors", command[0], name
            )
            command = [*command, *WITHOUT_VECTORS]
            status, complaint = run_compiler(command, folder, environment(where))
        if gcc and not status and _alternates(library, command, where):
            log.warning("%s: compiled without vectors, which would be rounded otherwise", name)
            command = [*command, *WITHOUT_VECTORS]
            status, complaint = run_compiler(command, folder, environment(where))
        if status or not library.exists():
            cache.require_space(where, complaint)
            kept = keep_refused(where, source, name, key)
            raise CompilationError(refusal(name, text, command, status, complaint, kept))
        return cache.store(where, key, source, library)


def _alternates(library: Path, command: list[str], where: Path) -> bool:
    """Whether a library that was just compiled has instructions that alternate."""
    if not library.exists() or not _LIKE_ALTERNATING.search(library.read_bytes()):
        return False
    text = library.with_suffix(".s")
    to_text = [text.name if each == library.name else each for each in command]
    run_compiler([*to_text, "-S"], library.parent, environment(where))
    return not text.exists() or bool(_ALTERNATING.search(text.read_bytes()))


def run_compiler(command: list[str], folder: Path, settings: dict[str, str]) -> tuple[int, str]:
    """Runs in the folder, so that no path gets into the library; the exit status and the words.

    A group of its own, which no Ctrl-C reaches, is ended as a whole when something comes up.
    """
    import subprocess  # only here and where it asks for a version: its import takes milliseconds

    process = subprocess.Popen(
        command,
        cwd=folder,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    try:
        words, _ = process.communicate()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, words.decode(errors="replace")


def keep_refused(where: Path, source: Path, name: str, key: str) -> Path:
    """Put C that was refused where one can look at it."""
    readable = re.sub(r"[^A-Za-z0-9_]", "_", name)[:80]
    place = where / "failed" / f"{readable}-{key[:12]}.c"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    return source.replace(place)


def refusal(
    name: str, text: str, command: list[str], status: int, complaint: str, kept: Path
) -> str:
    """What to tell of a failed compilation: the place in the C, the compiler's words, the files."""
    words = complaint.strip().splitlines() or ["(it said nothing)"]
    return "\n".join(
        [
            f"{command[0]} failed on the C of {name} ({_ending(status)}).",
            *_place(text, complaint),
            "The compiler's words:",
            *(f"    {line}" for line in words[:SHOWN_LINES]),
            *(
                [f"    … and {len(words) - SHOWN_LINES} more lines"]
                if len(words) > SHOWN_LINES
                else []
            ),
            f"The C was kept in {kept}",
            f"The command was: {shlex.join(command)}",
        ]
    )


def _ending(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}" if status else "it made no library"


def _place(text: str, complaint: str) -> list[str]:
    """The line of C that the first error is about; nothing where the error has no place."""
    first = _COMPLAINT.search(complaint)
    if first is None:
        return []
    number = int(first[1])
    lines = text.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return [f"Line {number} of the C: {first[2]}", f"    {line}"]
