"""Entries: which arrays they take, how long they live, and the memory lent to them."""

from __future__ import annotations

import gc
import re
import threading
from pathlib import Path

import cffi
import numpy as np
import pytest

from tests.runtime_programs import TWICE, answering
from tinyfuse.errors import CompilationError
from tinyfuse.runtime import declarations
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import Entry, load, scratch

BYTE_SUMS = """\
int byte_sums(void *const *arrays, void *scratch, const void *pool) {
  long *sums = arrays[3];
  for (int k = 0; k < 3; k++) sums[k] = ((const unsigned char *)arrays[k])[0];
  sums[3] = scratch != 0;
  sums[4] = (unsigned long)scratch % 64;
  sums[5] = pool != 0;
  return 0;
}
"""


@pytest.fixture(scope="module")
def byte_sums() -> Entry:
    return load(build(BYTE_SUMS, "byte_sums"), "byte_sums")


def call(entry: Entry, *arrays: np.ndarray, memory: np.ndarray | None = None) -> list[int]:
    sums = np.full(6, -1)
    assert entry([*arrays, sums], memory, 1) == 0
    return sums.tolist()


def test_an_entry_reads_and_writes_the_arrays_themselves():
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    twice = load(build(TWICE, "twice"), "twice")
    assert twice([x, y], threads=1) == 0
    assert y.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    assert repr(twice) == f"<entry twice of {twice.path}>"


def test_every_dtype_and_read_only_and_zero_dimensional_arrays_will_do(byte_sums: Entry):
    read_only = np.array([3, 4], np.int8)
    read_only.flags.writeable = False
    assert call(byte_sums, np.array(7, np.uint64), read_only, np.array([True])) == [
        7,
        3,
        1,
        0,
        0,
        0,
    ]
    assert call(byte_sums, *(np.array([2], dtype) for dtype in "iBQ"))[:3] == [2, 2, 2]


def test_arrays_without_elements_have_an_address():
    entry = load(build(answering(5), "answer"), "answer")
    assert entry([np.zeros((0, 3)), np.zeros(0, np.bool_)], threads=1) == 5
    assert entry([], threads=1) == 5


@pytest.mark.parametrize(
    "array", [np.zeros((4, 4)).T[::2], np.zeros((4, 4))[:, ::2], np.eye(3).T[1:]]
)
def test_an_array_with_gaps_is_refused(byte_sums: Entry, array: np.ndarray):
    with pytest.raises(ValueError, match="not C-contiguous"):
        call(byte_sums, array, array, array)


def test_scratch_is_aligned_and_used_again():
    first = scratch(100)
    assert first is not None
    assert (first.dtype, first.size >= 100, first.ctypes.data % 64) == (np.uint8, True, 0)
    assert scratch(50) is first
    larger = scratch(first.size + 1)
    assert larger is not None
    assert larger.size > first.size
    assert larger.ctypes.data % 64 == 0
    assert scratch(0) is None


def test_scratch_is_handed_to_the_entry(byte_sums: Entry):
    one = np.array([1])
    assert call(byte_sums, one, one, one, memory=scratch(8)) == [1, 1, 1, 1, 0, 0]


def test_every_thread_has_its_own_scratch():
    found: list[np.ndarray | None] = []
    thread = threading.Thread(target=lambda: found.append(scratch(64)))
    thread.start()
    thread.join()
    assert not np.shares_memory(found[0], scratch(64))


@pytest.mark.parametrize("size", [1 << 60, 1 << 70])
def test_scratch_that_cannot_be_had_is_a_memory_error(size: int):
    with pytest.raises(MemoryError) as raised:
        scratch(size)
    assert str(raised.value) == f"there are no {size} bytes of memory for intermediate arrays"


def is_mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


def test_a_library_is_loaded_as_long_as_an_entry_lives():
    path = build(answering(77), "answer")
    first, second = load(path, "answer"), load(path, "answer")
    del first
    gc.collect()
    assert is_mapped(path)
    assert second([], threads=1) == 77
    del second
    gc.collect()
    assert not is_mapped(path)


def test_a_library_may_be_deleted_while_it_is_loaded():
    path = build(answering(78), "answer")
    entry = load(path, "answer")
    path.unlink()
    assert entry([], threads=1) == 78


def test_a_missing_function_or_library_is_named(tmp_path: Path):
    with pytest.raises(
        CompilationError, match=r"^a compiled library lacks its function question: .*"
    ):
        load(build(answering(1), "answer"), "question")
    absent = tmp_path / "absent.so"
    reason = re.escape(f"{absent} was compiled but cannot be loaded: {absent}: cannot open shared")
    with pytest.raises(CompilationError, match=reason):
        load(absent, "answer")
    with pytest.raises(CompilationError, match="undefined symbol: tf_no_such_function"):
        load(
            build(
                "int tf_no_such_function(void); int f(void) { return tf_no_such_function(); }", "f"
            ),
            "f",
        )


def test_other_threads_go_on_during_a_call():
    waiting = """\
int wait_for(void *const *arrays, void *scratch, const void *pool) {
  volatile int *flag = arrays[0];
  (void)scratch, (void)pool;
  while (!*flag) {}
  return 0;
}
"""
    entry = load(build(waiting, "wait_for"), "wait_for")
    flag = np.zeros(1, np.int32)
    thread = threading.Thread(target=entry, args=([flag], None, 1))
    thread.start()
    flag[0] = 1  # if the call held the interpreter's lock, this would never be reached
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_declarations_are_what_cffi_generates(tmp_path: Path):
    text = Path(declarations.__file__).read_text()
    ffi = cffi.FFI()
    ffi.cdef(
        "\n".join(
            line for line in text.splitlines() if line.startswith("    ") and line.endswith(";")
        )
    )
    ffi.set_source("tinyfuse.runtime.declarations", None)
    generated = tmp_path / "declarations.py"
    ffi.emit_python_code(str(generated))
    assert text.endswith(generated.read_text().partition("import _cffi_backend\n\n")[2])
