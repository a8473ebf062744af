"""Which compiler is found, and what is said when there is none."""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.runtime_programs import TWICE, answering
from tinyfuse.errors import CompilationError, CompilerNotFoundError
from tinyfuse.runtime import cache, toolchain
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load
from tinyfuse.runtime.toolchain import find_compiler

GCC = shutil.which("gcc") or ""

needs_gcc = pytest.mark.skipif(not GCC, reason="gcc is not installed")


@pytest.fixture(autouse=True)
def own_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TINYFUSE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    toolchain._find_compiler.cache_clear()


def program(path: Path, version: str) -> Path:
    """Something that looks like a compiler with this version text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {shlex.quote(version)}\n")
    path.chmod(0o755)
    return path


GCC_VERSION = "gcc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc."


@pytest.mark.parametrize(
    ("command", "version", "kind"),
    [
        (("gcc",), GCC_VERSION, "gcc"),
        (("gcc",), "Apple clang version 15.0.0 (clang-1500.3.9.4)", "apple clang"),
        (("cc",), "Debian clang version 14.0.6", "clang"),
        (("/opt/zig", "cc"), "clang version 22.1.8", "zig"),
        (("python", "-m", "ziglang", "cc"), "clang version 22.1.8", "zig"),
        (("tcc",), "tcc version 0.9.27", None),
    ],
)
def test_kind_is_told_by_the_version_not_by_the_name(command, version, kind):
    assert toolchain.kind_of(command, version) == kind


def test_gcc_comes_before_clang_before_cc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("cc", "clang", "gcc"):
        path = program(tmp_path / "bin" / name, GCC_VERSION)
        assert find_compiler().command == (str(path),)
        toolchain._find_compiler.cache_clear()


def test_a_program_that_is_no_compiler_is_passed_over(monkeypatch, tmp_path: Path):
    program(tmp_path / "bin" / "gcc", "not a compiler")
    clang = program(tmp_path / "bin" / "clang", "clang version 17")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert (find_compiler().command, find_compiler().kind) == ((str(clang),), "clang")


def test_no_compiler_is_one_error_with_the_remedy(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(CompilerNotFoundError) as raised:
        build(answering(1), "answer")
    assert str(raised.value) == (
        "tinyfuse needs a C compiler and found none (tried: gcc, clang, cc, python -m "
        "ziglang cc).\n"
        "Install one, for example by `apt install gcc` or `pip install ziglang` (the wheel brings "
        "a C\ncompiler along and needs no rights on the system), or name one in the environment "
        "variable CC."
    )


@pytest.mark.parametrize(
    ("cc", "message"),
    [
        ("no-such-gcc -m64", "CC='no-such-gcc -m64': there is no program 'no-such-gcc'.\n"),
        ("gcc 'half", 'CC="gcc \'half" cannot be read: No closing quotation.\n'),
        ("false", "CC='false' is none of the compilers known: gcc, clang and zig cc.\n"),
    ],
)
def test_a_bad_cc_is_named_and_nothing_else_is_tried(monkeypatch, cc: str, message: str):
    monkeypatch.setenv("CC", cc)
    with pytest.raises(CompilerNotFoundError) as raised:
        find_compiler()
    assert str(raised.value) == message + toolchain.REMEDY


@needs_gcc
def test_cc_may_have_spaces_and_arguments_but_no_shell(monkeypatch, tmp_path: Path):
    link = tmp_path / "my compilers; touch pwned" / "gcc"
    link.parent.mkdir()
    link.symlink_to(GCC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", f"{shlex.quote(str(link))} -DNUMBER=7")
    assert load(build(answering("NUMBER"), "answer"), "answer")([], threads=1) == 7
    assert not (tmp_path / "pwned").exists()


def test_a_compiler_that_makes_nothing_is_an_error(monkeypatch, tmp_path: Path):
    lazy = program(tmp_path / "gcc", GCC_VERSION)
    monkeypatch.setenv("CC", str(lazy))
    with pytest.raises(
        CompilationError, match=r"gcc failed on the C of answer \(it made no library"
    ):
        build(answering(1), "answer")


@needs_gcc
def test_the_compiler_is_asked_once_for_all_processes(monkeypatch):
    asked = []
    ask = toolchain.ask_version
    monkeypatch.setattr(
        toolchain, "ask_version", lambda command: asked.append(command) or ask(command)
    )
    first = find_compiler()
    toolchain._find_compiler.cache_clear()  # as in another process
    assert find_compiler() == first
    assert len(asked) == 1


def test_a_changed_compiler_has_another_identity(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("CC", str(program(tmp_path / "gcc", GCC_VERSION)))
    before = find_compiler()
    program(tmp_path / "gcc", GCC_VERSION.replace("12.2.0", "13.1.0"))
    toolchain._find_compiler.cache_clear()
    after = find_compiler()
    assert "12.2.0" in before.identity
    assert "13.1.0" in after.identity
    assert "12.2.0" not in after.identity


def test_the_ziglang_wheel_compiles_where_there_is_no_other(monkeypatch, tmp_path: Path):
    pytest.importorskip("ziglang", reason="the ziglang wheel is not installed (extra: zig)")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_compiler().kind == "zig"
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    assert load(build(TWICE, "twice"), "twice")([x, y], threads=1) == 0
    assert y.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    assert (cache.directory() / "zig").is_dir()


@needs_gcc
@pytest.mark.parametrize("command", ["gcc", "python -m ziglang cc"])
def test_memset_is_found_without_linking_libc(monkeypatch, command: str):
    if "ziglang" in command:
        pytest.importorskip("ziglang", reason="the ziglang wheel is not installed (extra: zig)")
    monkeypatch.setenv("CC", command.replace("python", shlex.quote(sys.executable)))
    text = """\
void *memset(void *, int, unsigned long);
int zeros(void *const *arrays, void *scratch, const void *pool) {
  double *y = arrays[0];
  (void)scratch, (void)pool;
  memset(y, 0, 4096 * sizeof(double));
  y[0] = 7.0;
  return 0;
}
"""
    y = np.ones(4096)
    load(build(text, "zeros"), "zeros")([y], threads=1)
    assert y[0] == 7
    assert not y[1:].any()


# What gcc 12 took for a function without effects, on one level of optimization for one processor.
ADDING = """\
typedef __INT64_TYPE__ int64_t;
typedef struct tf_pool tf_pool;
static __attribute__((noinline)) void add(const int64_t *restrict x, int64_t *restrict y) {
  for (long j = 0; j < 4; j++)
    for (long k = 0; k < 7; k++)
      for (long l = 0; l < 4; l++)
        y[28 * j + 4 * k + l] = x[28 * j + 7 * l + k] + x[28 * l + 7 * j + k];
}

int adding(void *const *arrays, void *scratch, const tf_pool *pool) {
  (void)scratch;
  (void)pool;
  add(arrays[0], arrays[1]);
  return 0;
}
"""


@needs_gcc
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a processor of x86-64")
def test_no_call_of_a_kernel_is_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CC", GCC)
    x, y = np.arange(112).reshape(4, 4, 7), np.zeros((4, 7, 4), np.int64)
    flags = ("-O1", "-march=x86-64", "-mtune=znver3")
    load(build(ADDING, "adding", flags=flags), "adding")([x, y], None, 1)
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1) + x.transpose(1, 2, 0))
