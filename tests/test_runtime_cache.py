"""The disk cache: what is a hit, what is thrown away, what is refused."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runtime_programs import answering, run_python
from tinyfuse.cache_directory import sha256, temporary_directory, usual_directory
from tinyfuse.errors import CacheError, CompilationError
from tinyfuse.runtime import cache
from tinyfuse.runtime.build import _LIKE_ALTERNATING, build, cache_key, without_comments
from tinyfuse.runtime.library import load
from tinyfuse.runtime.toolchain import Compiler, _find_compiler, find_compiler

STARTING_A_PROCESS = (
    "subprocess.Popen",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.exec",
    "os.system",
)


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TINYFUSE_CACHE_DIR", str(tmp_path / "cache"))
    temporary_directory.cache_clear()  # where other tests may have put their code
    cache._counts.reset()
    return tmp_path / "cache"


def counts() -> tuple[int, int]:
    info = cache.disk_cache_info()
    return info.hits, info.misses


def answer(text: str) -> int:
    return load(build(text, "answer"), "answer")([], threads=1)


def test_the_second_build_is_a_hit(directory: Path):
    path = build(answering(1), "answer")
    assert counts() == (0, 1)
    assert build(answering(1), "another name") == path
    assert counts() == (1, 1)
    info = cache.disk_cache_info()
    files = [path.with_suffix(suffix) for suffix in (".so", ".c", ".sha256")]
    assert (info.entries, info.directory) == (1, directory)
    assert info.bytes == sum(file.stat().st_size for file in files)
    assert path.with_suffix(".c").read_text() == answering(1)
    assert list((directory / "building").iterdir()) == []


def test_other_text_or_flags_are_another_entry():
    paths = {
        build(answering(1), "answer"),
        build(answering(2), "answer"),
        build(answering(1), "answer", flags=("-O1",)),
        build(answering(1), "answer", libc=True),
    }
    assert len(paths) == 4


def test_comments_are_no_part_of_the_key():
    path = build(answering(1), "answer")
    commented = "// mean of line 7\n\n" + answering(1).replace(
        "return", "\n/* from line 7 */\n  return"
    )
    assert build(commented.replace("line 7", "line 12"), "answer") == build(commented, "answer")
    assert build(f"/* one */\n{answering(1)}// two\n", "answer") == path


def test_the_key_depends_on_compiler_and_processor(monkeypatch: pytest.MonkeyPatch):
    one = Compiler(("gcc",), "gcc", "gcc 12")
    keys = {cache_key("int x;", one, [])}
    keys.add(cache_key("int x;", Compiler(("gcc",), "gcc", "gcc 13"), []))
    monkeypatch.setattr("tinyfuse.runtime.build.cpu_identity", lambda: "another")
    keys.add(cache_key("int x;", one, []))
    monkeypatch.setattr("tinyfuse.runtime.build.CACHE_VERSION", "0")
    keys.add(cache_key("int x;", one, []))
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("a /* b */ c", "a   c"),
        ("a // b\nc", "a\nc"),
        ("a /* // */ b", "a   b"),
        ("a // /* b\nc */", "a\nc */"),
        ("a/**/b", "a b"),
        ('"/* no */" /* yes */', '"/* no */"'),
        (r'"\"/*" + "*/"', r'"\"/*" + "*/"'),
        ("'\"' // \"", "'\"'"),
        (r"'\'' /* x */ '/' // y", r"'\''   '/'"),
        ("a / b * c", "a / b * c"),
        ("// one\n  /* two\n three */\n  a;\n\n\tb;", "a;\nb;"),
        ("// spliced \\\n still\nint x;", "// spliced \\\n still\nint x;"),
        ("// trigraph ??/\nint x;", "// trigraph ??/\nint x;"),
        ("/* never closed", "/* never closed"),
    ],
)
def test_comments_are_found_as_c_does(text: str, bare: str):
    assert without_comments(text) == bare


@pytest.mark.parametrize("damage", ["truncated", "other", "empty"])
def test_a_damaged_library_is_compiled_anew(damage: str, caplog: pytest.LogCaptureFixture):
    path = build(answering(3), "answer")
    whole = path.read_bytes()
    damaged = {"truncated": whole[: len(whole) // 2], "other": whole[:-1] + b"?", "empty": b""}
    path.write_bytes(damaged[damage])
    with caplog.at_level(logging.WARNING, "tinyfuse.cache"):
        assert answer(answering(3)) == 3
    assert caplog.messages == [f"{path} does not match its checksum and is compiled anew"]
    assert sha256(path.read_bytes()) == path.with_suffix(".sha256").read_text()
    assert counts() == (0, 2)


@pytest.mark.parametrize("suffix", [".so", ".sha256"])
def test_half_an_entry_is_a_miss(suffix: str):
    path = build(answering(4), "answer")
    path.with_suffix(suffix).unlink()
    assert answer(answering(4)) == 4
    assert counts() == (0, 2)


def test_a_hit_starts_no_process(monkeypatch: pytest.MonkeyPatch):
    build(answering(5), "answer")
    monkeypatch.setattr(subprocess, "Popen", None)
    assert answer(answering(5)) == 5


def test_a_hit_in_a_new_process_starts_none_either(directory: Path):
    _find_compiler.cache_clear()  # its version was asked for with another directory
    build(answering(5), "answer")
    code = f"""
import sys
started = []
sys.addaudithook(lambda event, _: event in {STARTING_A_PROCESS!r} and started.append(event))
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load
number = load(build({answering(5)!r}, "answer"), "answer")([], threads=1)
print(number, started, "pycparser" in sys.modules)
"""
    outcome = run_python(code, TINYFUSE_CACHE_DIR=str(directory))
    assert (outcome.stdout, outcome.stderr) == ("5 [] False\n", "")


def test_the_same_text_gives_the_same_library():
    path = build(answering(7), "answer")
    first = path.read_bytes()
    path.unlink()
    build(answering(7), "answer")
    assert path.read_bytes() == first


def test_settings_of_the_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("TINYFUSE_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.directory() == tmp_path / "xdg" / "tinyfuse"
    assert cache.directory().stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.directory() == tmp_path / "home" / ".cache" / "tinyfuse"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert usual_directory() == tmp_path / "home" / "Library" / "Caches" / "tinyfuse"


def test_a_directory_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, directory: Path):
    owner = os.geteuid()
    cache.directory()
    monkeypatch.setattr(cache.os, "geteuid", lambda: owner + 1)
    with pytest.raises(CacheError) as raised:
        build(answering(1), "answer")
    assert str(raised.value) == (
        f"the cache directory {directory} belongs to another user (uid {owner}, not {owner + 1}), "
        "who could put code into it. Set TINYFUSE_CACHE_DIR to a directory of your own"
    )


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777, 0o702])
def test_a_directory_that_others_can_write_is_refused(mode: int, directory: Path):
    cache.directory().chmod(mode)
    with pytest.raises(CacheError) as raised:
        build(answering(1), "answer")
    assert str(raised.value) == (
        f"other users can write into the cache directory {directory} (mode {mode:04o}), and so "
        f"put code into it. Look at what is in it, then `chmod 700 {directory}`"
    )


def test_a_directory_that_others_can_read_is_used(directory: Path):
    cache.directory().chmod(0o755)
    assert answer(answering(1)) == 1


def test_a_chosen_directory_that_cannot_be_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TINYFUSE_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(CacheError) as raised:
        build(answering(1), "answer")
    assert str(raised.value) == (
        f"TINYFUSE_CACHE_DIR='{tmp_path}/file' is no directory and cannot be made one: File exists"
    )


def test_without_a_home_the_cache_lasts_as_long_as_the_process(tmp_path: Path):
    (tmp_path / "home").write_text("in the way")
    code = f"""
import os, pathlib
from tinyfuse.runtime import cache
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load
path = build({answering(8)!r}, "answer")
print(load(path, "answer")([], threads=1), path.parent == cache.directory())
print(oct(path.parent.stat().st_mode & 0o777), path.parent)
if os.fork() == 0:
    raise SystemExit  # a child's end deletes nothing
os.wait()
print(path.exists())
"""
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": None, "TINYFUSE_CACHE_DIR": None}
    outcome = run_python(code, TMPDIR=str(tmp_path), **home)
    first, second, third = outcome.stdout.splitlines()
    path = Path(second.split()[-1])
    assert (first, second, third) == ("8 True", f"0o700 {path}", "True")
    assert path.parent == tmp_path
    assert path.name.startswith("tinyfuse-")
    assert not path.exists()
    assert outcome.stderr == (
        f"tinyfuse: {tmp_path}/home/.cache/tinyfuse cannot be written (Not a directory): compiled "
        f"code is kept in {path} until this process ends. Set TINYFUSE_CACHE_DIR to a directory "
        "that you can write\n"
    )


def entry(name: str, age: float, size: int = 1000) -> None:
    """An entry last used so many seconds ago."""
    for suffix in cache.SUFFIXES:
        file = cache.directory() / f"{name}{suffix}"
        file.write_bytes(b"x" * (size if suffix == ".so" else 0))
        os.utime(file, (time.time() - age, time.time() - age))


def test_what_was_not_used_for_longest_is_evicted():
    for number in range(5):
        entry(f"entry{number}", age=10_000 - number)
    cache.evict(3000)
    assert sorted(cache.entries()) == ["entry2", "entry3", "entry4"]
    assert not list(cache.directory().glob("entry0*"))


def test_what_was_just_used_is_not_evicted():
    for number in range(5):
        entry(f"entry{number}", age=10)
    cache.evict(0)
    assert len(cache.entries()) == 5


def test_a_hit_counts_as_use():
    path = build(answering(9), "answer")
    for suffix in cache.SUFFIXES:
        os.utime(path.with_suffix(suffix), (0, 0))
    build(answering(9), "answer")
    entry("older", age=10_000)
    cache.evict(1)
    assert sorted(cache.entries()) == [path.stem]


def test_leavings_go_after_a_week():
    for parent, age in (("building", 0), ("building", 700_000), ("failed", 0), ("failed", 700_000)):
        path = cache.directory() / parent / f"left{age}"
        path.mkdir(parents=True) if parent == "building" else (
            path.parent.mkdir(exist_ok=True),
            path.touch(),
        )
        os.utime(path, (time.time() - age, time.time() - age))
    cache.evict(0)
    left = sorted(
        str(path.relative_to(cache.directory())) for path in cache.directory().glob("*/*")
    )
    assert left == ["building/left0", "failed/left0"]


def test_a_store_keeps_to_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "SWEPT", "")  # every one looks
    monkeypatch.setenv("TINYFUSE_CACHE_LIMIT", "1K")
    entry("old", age=10_000)
    path = build(answering(10), "answer")
    assert sorted(cache.entries()) == [path.stem]


@pytest.mark.parametrize(
    ("setting", "limit"), [("5", 5), ("500M", 500 << 20), ("2G", 2 << 30), ("10K", 10240), ("0", 0)]
)
def test_limits(monkeypatch: pytest.MonkeyPatch, setting: str, limit: int):
    monkeypatch.setenv("TINYFUSE_CACHE_LIMIT", setting)
    assert cache.limit() == limit


@pytest.mark.parametrize("setting", ["", "much", "5X", "-1", "1.5G"])
def test_a_limit_that_is_no_size_is_an_error(monkeypatch: pytest.MonkeyPatch, setting: str):
    monkeypatch.setenv("TINYFUSE_CACHE_LIMIT", setting)
    with pytest.raises(CacheError) as raised:
        cache.limit()
    assert str(raised.value) == (
        f"TINYFUSE_CACHE_LIMIT={setting!r} is no size: write a number of bytes, or one with "
        "K, M or G after it, as in 500M"
    )


@pytest.mark.skipif(find_compiler().kind != "gcc", reason="the words asserted are those of gcc")
def test_c_that_is_refused_is_kept_and_its_line_shown(directory: Path):
    text = "int fine;\nint broken(void) {\n  return 1 +;\n}\n"
    with pytest.raises(CompilationError) as raised:
        build(text, "softmax <i>")
    kept = next((directory / "failed").iterdir())
    assert kept.read_text() == text
    assert kept.name.startswith("softmax__i_-")
    lines = str(raised.value).splitlines()
    assert (
        lines[0] == f"{find_compiler().command[0]} failed on the C of softmax <i> (exit status 1)."
    )
    assert lines[1:4] == [
        "Line 3 of the C: expected expression before ';' token",
        "    return 1 +;",
        "The compiler's words:",
    ]
    assert "    kernel.c:3:13: error: expected expression before ';' token" in lines
    assert lines[-2] == f"The C was kept in {kept}"
    assert lines[-1].startswith("The command was: ")
    assert cache.disk_cache_info().entries == 0
    assert list((directory / "building").iterdir()) == []


def test_of_many_complaints_the_first_are_shown():
    text = "\n".join(f"int x{i} = y{i};" for i in range(100))
    with pytest.raises(CompilationError) as raised:
        build(text, "many")
    shown = [line for line in str(raised.value).splitlines() if line.startswith("    ")]
    assert len(shown) == 1 + 20 + 1
    assert shown[-1].endswith("more lines")


def test_hits_and_misses_are_logged(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "tinyfuse"):
        key = build(answering(11), "answer").stem
        build(answering(11), "answer")
    miss, compiled, hit = caplog.messages
    assert (miss, hit) == (f"miss: answer {key[:12]}", f"hit: answer {key[:12]}")
    assert re.fullmatch(r"answer: \S.* kernel\.c -o kernel\.so in \d+ ms", compiled)
    assert [record.name for record in caplog.records] == [
        *("tinyfuse.cache", "tinyfuse.compile", "tinyfuse.cache"),
    ]


ALTERNATING = """
void alternating(const double *restrict a, double *restrict out) {
  for (long i = 0; i < 48; i++) {
    const double even = a[2 * i] * a[2 * i] - a[2 * i + 1] * a[2 * i + 1];
    const double odd = a[2 * i] * a[2 * i + 1] + a[2 * i + 1] * a[2 * i];
    out[2 * i] = a[2 * i] * even - a[2 * i + 1] * odd;
    out[2 * i + 1] = a[2 * i] * odd + a[2 * i + 1] * even;
  }
}
"""


def test_no_library_has_instructions_that_alternate():
    """Whatever the compiler makes of it, and though it is told not to contract."""
    library = build(ALTERNATING, "alternating").read_bytes()
    assert not _LIKE_ALTERNATING.search(library)


WITHOUT_ANY = """
const unsigned char of_an_instruction[] = {0xc4, 0xe2, 0xed, 0xb6, 0xc1};
void twice(const float *restrict x, float *restrict y) {
  for (long i = 0; i < 1024; i++)
    y[i] = x[i] * 2.0f;
}
"""


def test_bytes_that_look_like_such_an_instruction_are_none(caplog: pytest.LogCaptureFixture):
    """The library has vectors."""
    with caplog.at_level("INFO", logger="tinyfuse.compile"):
        library = build(WITHOUT_ANY, "without_any").read_bytes()
    assert _LIKE_ALTERNATING.search(library)
    assert not [text for text in caplog.messages if "without vectors" in text]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("c4e2edb6c1", True),  # vfmaddsub231pd ymm0, ymm2, ymm1
        ("62f2ed48b7c1", True),  # vfmsubadd231pd zmm0, zmm2, zmm1
        ("c4e2edb8c1", False),  # vfmadd231pd ymm0, ymm2, ymm1
        ("62f2ed48bac1", False),  # vfmsub231pd zmm0, zmm2, zmm1
    ],
)
def test_instructions_that_alternate_are_found(code: str, found: bool):
    assert bool(_LIKE_ALTERNATING.search(bytes.fromhex(code))) == found
