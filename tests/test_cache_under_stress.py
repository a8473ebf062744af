"""The disk cache where things go wrong: full and read-only disks, damage, killed and interrupted
compilers, many processes at once."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_programs import ROOT, answering, run_python
from tinyfuse.errors import CompilationError
from tinyfuse.runtime import cache, library
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import Entry, load
from tinyfuse.runtime.toolchain import _find_compiler

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TINYFUSE_CACHE_DIR", str(tmp_path / "cache"))
    cache._counts.reset()
    return tmp_path / "cache"


def answer(number: int) -> int:
    return load(build(answering(number), "answer"), "answer")([], threads=1)


# -- many at once


def answer_in_process(barrier: Any, results: Any, number: int) -> None:
    barrier.wait()
    results.put(answer(number))


def test_sixteen_processes_on_an_empty_cache(directory: Path):
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(16), context.Queue()
    numbers = [6 + at % 2 for at in range(16)]
    processes = [
        context.Process(target=answer_in_process, args=(barrier, results, number))
        for number in numbers
    ]
    for process in processes:
        process.start()
    assert sorted(results.get(timeout=120) for _ in processes) == sorted(numbers)
    for process in processes:
        process.join()
    assert cache.disk_cache_info().entries == 2
    assert (answer(6), answer(7)) == (6, 7)
    assert cache._counts.hits == 2  # what they left is whole
    assert list((directory / "building").iterdir()) == []


def test_a_cache_that_is_emptied_meanwhile(monkeypatch: pytest.MonkeyPatch, directory: Path):
    """Between the look into it and the loading of what was found."""

    def emptied(path: Path, symbol: str) -> Entry:
        monkeypatch.setattr(library, "load", load)
        shutil.rmtree(directory)
        return load(path, symbol)

    monkeypatch.setattr(library, "load", emptied)
    assert library.loaded(answering(8), "answer", "answer")([], threads=1) == 8
    assert cache._counts.misses == 2


# -- damage


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"0" * 64])
def test_a_checksum_that_is_none_is_told(content: bytes, caplog: pytest.LogCaptureFixture):
    path = build(answering(4), "answer")
    path.with_suffix(".sha256").write_bytes(content)
    assert answer(4) == 4
    assert caplog.messages == [f"{path} does not match its checksum and is compiled anew"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"some other program"])
def test_what_is_noted_of_a_compiler_may_be_damaged(content: bytes, directory: Path):
    _find_compiler.cache_clear()
    path = build(answering(4), "answer")
    for noted in (directory / "compilers").iterdir():
        noted.write_bytes(content)
    _find_compiler.cache_clear()
    assert build(answering(4), "answer") == path


# -- disks that cannot be written


def test_a_cache_that_is_read_only_is_read(
    monkeypatch: pytest.MonkeyPatch, directory: Path, caplog: pytest.LogCaptureFixture
):
    path = build(answering(5), "answer")
    access = os.access
    monkeypatch.setattr(
        cache.os,
        "access",
        lambda where, mode: access(where, mode) and not (where == directory and mode & os.W_OK),
    )
    cache.tell_once.cache_clear()
    assert build(answering(5), "answer") == path
    assert caplog.messages == []
    other = build(answering(6), "answer")
    assert other.parent == cache.temporary_directory()
    assert build(answering(6), "answer") == other
    assert [answer(number) for number in (5, 6, 7)] == [5, 6, 7]
    assert caplog.messages == [
        f"{directory} cannot be written (it is read-only): compiled code is kept in "
        f"{other.parent} until this process ends. Set TINYFUSE_CACHE_DIR to a directory that you "
        "can write"
    ]
    assert cache.disk_cache_info().entries == 1


IN_A_PROCESS = """
import os
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load
from tests.runtime_programs import answering
def answer(number):
    return load(build(answering(number), "answer"), "answer")([], threads=1)
"""


@contextmanager
def small_disk(place: Path, options: str) -> Iterator[Path]:
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"{options},mode=0700", "tmpfs", place],
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this user cannot mount file systems")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


needs_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="mounts a file system of Linux's"
)


@needs_linux
@pytest.mark.parametrize("options", ["size=4k", "size=12k", "size=20k", "nr_inodes=4"])
def test_a_full_disk_is_told_and_done_without(options: str, tmp_path: Path):
    """Full when a folder is made, when the C is written, or when the compiler writes."""
    code = f"{IN_A_PROCESS}\nprint([answer(number) for number in range(20, 24)])"
    with small_disk(tmp_path / "small", options) as place:
        outcome = run_python(code, TINYFUSE_CACHE_DIR=str(place))
        assert outcome.stdout == "[20, 21, 22, 23]\n", outcome.stderr
        (line,) = outcome.stderr.splitlines()
        assert line.startswith(f"tinyfuse: {place} cannot be written (No space left on device): ")
        nowhere = run_python(code, TINYFUSE_CACHE_DIR=str(place), TMPDIR=str(place))
        assert nowhere.returncode in (0, 1)
        if nowhere.returncode:
            assert nowhere.stderr.splitlines()[-1].startswith(
                "tinyfuse.errors.CacheError: compiled code can be written neither into "
            )


@needs_linux
def test_a_read_only_disk_is_read_and_told(tmp_path: Path):
    with small_disk(tmp_path / "small", "size=1m") as place:
        first = run_python(f"{IN_A_PROCESS}\nprint(answer(50))", TINYFUSE_CACHE_DIR=str(place))
        assert (first.stdout, first.stderr) == ("50\n", "")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        code = f"{IN_A_PROCESS}\nprint(answer(50))\nprint(answer(51), flush=True)"
        outcome = run_python(code, TINYFUSE_CACHE_DIR=str(place))
        assert outcome.stdout == "50\n51\n"
        (line,) = outcome.stderr.splitlines()
        assert line.startswith(f"tinyfuse: {place} cannot be written (it is read-only): compiled ")


def test_files_that_may_not_grow_are_told():
    code = f"""{IN_A_PROCESS}
import resource
answer(30)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
print(answer(30), flush=True)
answer(31)
"""
    outcome = run_python(code)
    assert outcome.stdout == "30\n"
    assert outcome.stderr.splitlines()[-1].startswith(
        "tinyfuse.errors.CacheError: compiled code can be written neither into "
    )


# -- compilers that end otherwise


def compiler_that(tmp_path: Path, *lines: str) -> str:
    """A program that says of itself what gcc says, and compiles like this."""
    script = tmp_path / "compiler"
    version = 'case "$*" in *--version*) exec gcc --version;; esac'
    script.write_text("\n".join(["#!/bin/sh", version, *lines, ""]))
    script.chmod(0o700)
    return str(script)


needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


@needs_gcc
@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("kill -KILL $$", "killed by SIGKILL"),
        ("kill -TERM $$", "killed by SIGTERM"),
        ("exit 3", "exit status 3"),
        ("exit 0", "it made no library"),
    ],
)
def test_compilers_that_end_otherwise(
    line: str, ending: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, directory: Path
):
    compiler = compiler_that(tmp_path, line)
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(CompilationError) as raised:
        build(answering(1), "softmax")
    words = str(raised.value).splitlines()
    assert words[0] == f"{compiler} failed on the C of softmax ({ending})."
    assert list((directory / "building").iterdir()) == []
    assert cache.disk_cache_info().entries == 0


@needs_gcc
def test_a_compiler_that_crashes_is_asked_again_without_vectors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    crash = "echo 'kernel.c:9:5: internal compiler error: in vect'; exit 1"
    retried = 'case "$*" in *-fno-tree-vectorize*) exec gcc "$@";; esac'
    monkeypatch.setenv("CC", compiler_that(tmp_path, retried, crash))
    assert answer(7) == 7
    assert "crashed on the C of" in caplog.text
    assert cache.disk_cache_info().entries == 1


@needs_gcc
def test_half_a_library_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    compiler = compiler_that(tmp_path, 'gcc "$@"', "truncate -s 100 kernel.so")
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(CompilationError, match="was compiled but cannot be loaded"):
        answer(1)


def waiting_compiler(tmp_path: Path) -> str:
    """One that notes the number of its process, and that of one that it starts."""
    note = f"sleep 600 & echo $$ $! >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/started"
    return compiler_that(tmp_path, note, "wait")


def started(tmp_path: Path) -> list[int]:
    """The processes of the waiting compiler, once there are any."""
    end = time.monotonic() + 120
    while not (tmp_path / "started").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return [int(word) for word in (tmp_path / "started").read_text().split()]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def have_ended(processes: list[int]) -> bool:
    end = time.monotonic() + 60
    while any(map(is_running, processes)) and time.monotonic() < end:
        time.sleep(0.01)
    return not any(map(is_running, processes))


def start_python(code: str, tmp_path: Path, directory: Path) -> subprocess.Popen[str]:
    """A process that will wait for its compiler."""
    settings = {"CC": waiting_compiler(tmp_path), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **settings, "TINYFUSE_CACHE_DIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@needs_gcc
@needs_proc
def test_an_interrupt_ends_the_compiler(tmp_path: Path, directory: Path):
    code = """
import os, signal
import numpy as np, tinyfuse
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background jobs
f = tinyfuse.jit(lambda x: x + 1)
try:
    f(np.ones(3))
except KeyboardInterrupt:
    print("interrupted", flush=True)
del os.environ["CC"]
print(f(np.ones(3)), f(np.ones(3)), f.cache_info().misses)
"""
    process = start_python(code, tmp_path, directory)
    compilers = started(tmp_path)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert (stdout, stderr) == ("interrupted\n[2. 2. 2.] [2. 2. 2.] 1\n", "")
    assert have_ended(compilers)
    assert len(cache.entries()) == 1
    assert list((directory / "building").iterdir()) == []


@needs_gcc
@needs_proc
def test_a_process_that_is_killed_while_it_compiles_leaves_no_entry(
    tmp_path: Path, directory: Path
):
    process = start_python(f"{IN_A_PROCESS}\nanswer(40)", tmp_path, directory)
    compilers = started(tmp_path)
    process.kill()
    process.communicate()
    for compiler in compilers:
        os.kill(compiler, signal.SIGKILL)
    assert cache.entries() == {}
    assert answer(40) == 40
    assert len(list((directory / "building").iterdir())) == 1  # for the next sweep
