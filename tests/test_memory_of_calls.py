"""The memory of calls: large outputs are used again, and what a program needs is known before."""

from __future__ import annotations

import gc
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import tinyfuse
from tests.runtime_programs import run_python
from tinyfuse.dispatch import extension

MIB = 1 << 20

needs_extension = pytest.mark.skipif(extension is None, reason="the extension is not in use")


@pytest.fixture
def kept() -> Iterator[None]:
    """Nothing is kept yet, and up to 256 MiB are."""
    extension.keep_at_most(0)
    extension.keep_at_most(256 * MIB)
    yield
    extension.keep_at_most(0)


def adder(x: np.ndarray) -> tinyfuse.jit:
    f = tinyfuse.jit(lambda x: x + 1)
    for _ in range(2):  # from the third call on it is called directly
        f(x)
    gc.collect()
    return f


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@needs_extension
def test_the_memory_of_a_dropped_output_is_that_of_the_next(kept: None):
    x = np.zeros(4 * MIB, np.float32)
    f = adder(x)
    y = f(x)
    place = address(y)
    assert extension.kept_bytes() == 0
    del y
    assert extension.kept_bytes() == x.nbytes
    z = f(x)
    assert (address(z), extension.kept_bytes()) == (place, 0)
    assert address(f(x)) != place
    np.testing.assert_array_equal(z, x + 1)


@needs_extension
def test_a_large_output_is_an_array_as_any_other(kept: None):
    x = np.zeros((2, 4 * MIB), np.float32)
    y = adder(x)(x)
    assert y.base is None
    assert y.flags.owndata
    assert y.flags.writeable
    assert y.flags.c_contiguous
    assert address(y) % 4096 == 0  # where those of numpy begin, but for 16 bytes
    y.resize((3, 4 * MIB), refcheck=False)
    assert (y[:2] == 1).all()
    assert not y[2].any()
    y.resize((1, 100), refcheck=False)
    assert (y == 1).all()
    assert (y.copy() == 1).all()


@needs_extension
def test_memory_that_is_looked_at_is_not_used_again(kept: None):
    x = np.zeros(4 * MIB, np.float32)
    f = adder(x)
    views = []
    for number in range(4):
        x[:] = number
        views.append(f(x)[::2])
    assert extension.kept_bytes() == 0
    assert [set(view[::1000].tolist()) for view in views] == [{1}, {2}, {3}, {4}]
    views.clear()
    assert extension.kept_bytes() == 4 * x.nbytes


@needs_extension
def test_no_more_than_the_limit_is_kept(kept: None):
    x = np.zeros(8 * MIB, np.float32)
    f = adder(x)
    extension.keep_at_most(3 * x.nbytes)
    results = [f(x) for _ in range(5)]
    results.clear()
    assert extension.kept_bytes() == 3 * x.nbytes
    extension.keep_at_most(2 * x.nbytes + 5)
    assert extension.kept_bytes() == 2 * x.nbytes
    extension.keep_at_most(x.nbytes - 1)
    assert extension.kept_bytes() == 0
    y = f(x)  # more than may be kept: left to numpy
    del y
    assert extension.kept_bytes() == 0


@needs_extension
def test_blocks_are_used_for_outputs_that_nearly_fill_them(kept: None):
    large, near, small = (np.zeros(size * MIB, np.float32) for size in (12, 10, 5))
    functions = [adder(x) for x in (large, near, small)]
    place = address(functions[0](large))
    y = functions[2](small)
    assert address(y) != place
    z = functions[1](near)
    assert address(z) == place
    np.testing.assert_array_equal(z, near + 1)
    del z
    assert extension.kept_bytes() == large.nbytes
    assert address(functions[0](large)) == place


@needs_extension
def test_small_outputs_are_left_to_numpy(kept: None):
    x = np.zeros(MIB - 1, np.float32)
    f = adder(x)
    f(x)
    assert extension.kept_bytes() == 0


@needs_extension
def test_outputs_from_4_mib_on_are_kept_as_malloc_does_not_keep_several(kept: None):
    x = np.zeros(MIB, np.float32)
    f = tinyfuse.jit(lambda x: (x + 1, x + 2))
    for _ in range(3):
        f(x)
    assert extension.kept_bytes() == 2 * x.nbytes


@needs_extension
def test_python_knows_of_the_memory(kept: None):
    x = np.zeros(4 * MIB, np.float32)
    f = adder(x)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        y = f(x)
        assert tracemalloc.get_traced_memory()[0] - before >= x.nbytes
        del y
        assert tracemalloc.get_traced_memory()[0] - before < MIB
    finally:
        tracemalloc.stop()


@needs_extension
def test_threads_share_what_is_kept(kept: None):
    x = np.zeros(4 * MIB, np.float32)
    f = adder(x)
    wrong = []

    def call(index: int) -> None:
        own = np.full_like(x, index)
        wrong.extend([1 for _ in range(10) if not (f(own)[:: MIB // 4] == index + 1).all()])

    threads = [threading.Thread(target=call, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert extension.kept_bytes() <= 8 * x.nbytes


@needs_extension
def test_a_forked_child_uses_what_its_parent_kept(kept: None):
    x = np.zeros(4 * MIB, np.float32)
    f = adder(x)
    f(x)
    child = os.fork()
    if child == 0:
        y = f(x)
        y[:] = 7
        os._exit(int(f(x)[5]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert f(x)[5] == 1


RESIDENT = """
import numpy as np, tinyfuse
def resident(kind="VmRSS"):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(kind))
"""


NEIGHBOURS = """
import ctypes
import numpy as np, tinyfuse
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
x = np.zeros((65 << 17) + 5)
f = tinyfuse.jit(lambda x: x + 1)
libc.mallopt(-4, 0)  # M_MMAP_MAX: from now on the C library takes all memory from its heap
held = [f(x) for _ in range(2)]
y = f(x)
end = y.ctypes.data + y.nbytes
page = end & ~4095
blocks = (libc.malloc(1000) for _ in range(100_000))
beside = [block for block in blocks if end <= block < page + 4096 - 1008]
for block in beside:
    ctypes.memset(block, 0x5A, 1000)
del y
libc.madvise(page, 4096, 21)  # MADV_PAGEOUT: as if other processes needed the memory
print(all(ctypes.string_at(block, 1000) == b"Z" * 1000 for block in beside))
"""


@needs_extension
@pytest.mark.skipif(sys.platform != "linux", reason="the advice that it gives is Linux's")
def test_kept_memory_is_no_more_than_the_output_had():
    assert run_python(NEIGHBOURS).stdout == "True\n"


def test_large_outputs_do_not_pile_up():
    code = f"""{RESIDENT}
x = np.zeros(1 << 22, np.float32)
f = tinyfuse.jit(lambda x: (x + 1, x * 2, x.sum()))
for _ in range(50):  # until the C library keeps as much as it will
    f(x)
before = resident()
for _ in range(200):
    f(x)
print((resident() - before) // x.nbytes)
"""
    assert int(run_python(code).stdout) <= 2


def test_the_setting_of_what_is_kept():
    code = "import tinyfuse\nprint(tinyfuse.config.kept_bytes)"
    assert run_python(code, TINYFUSE_KEPT_BYTES=None).stdout == "None\n"
    assert run_python(code, TINYFUSE_KEPT_BYTES="1000").stdout == "1000\n"
    wrong = run_python(code, TINYFUSE_KEPT_BYTES="much")
    assert wrong.stdout == "None\n"
    assert "TINYFUSE_KEPT_BYTES='much' is no number of bytes" in wrong.stderr


# -- what is known before


def test_memory_analysis():
    table = np.ones(4, np.float32)
    x, y = np.ones((3, 4), np.float32), np.ones((3, 4))
    compiled = tinyfuse.jit(lambda x, y, n: (x + table * n, y)).lower(x, y, 0.5).compile()
    analysis = compiled.memory_analysis()
    temporary = compiled.scratch_bytes
    assert analysis[:3] == (x.nbytes + table.nbytes + 8, x.nbytes, temporary)
    assert analysis.generated_code_size_in_bytes > 1000
    assert analysis._fields == (
        "argument_size_in_bytes",
        "output_size_in_bytes",
        "temp_size_in_bytes",
        "generated_code_size_in_bytes",
        "constant_size_in_bytes",
    )
    stored = tinyfuse.jit(lambda x: (x / x.sum(axis=0)).sum(), fuse=False).lower(x).compile()
    analysis = stored.memory_analysis()
    assert analysis.output_size_in_bytes == 4
    assert analysis.temp_size_in_bytes == stored.scratch_bytes >= x.nbytes
    nothing = tinyfuse.jit(lambda x: x).lower(x).compile().memory_analysis()
    assert nothing == (0, 0, 0, 0, 0)


def test_intermediate_arrays_that_do_not_live_at_once_share_memory():
    """Fifty of them, in which each reads the one before: two are alive at a time."""
    x = np.ones((64, 64), np.float32)

    @tinyfuse.jit(fuse=False)
    def f(x):
        for _ in range(50):
            x = x * 2 - 1
        return x

    assert f.lower(x).scratch_bytes == 2 * x.nbytes


def test_a_trace_of_ten_thousand_operations_takes_little_memory():
    code = f"""{RESIDENT}
x = np.ones(16, np.float32)
def f(x):
    for _ in range(5000):
        x = x * 0.5 + 1
    return x
tinyfuse.make_graph(lambda x: x + 1)(x)
before = resident()
graph = tinyfuse.make_graph(f)(x)
print(len(graph.eqns))
print((resident("VmHWM") - before) // len(graph.eqns))
"""
    count, bytes_each = map(int, run_python(code).stdout.split())
    assert count == 10_000
    assert bytes_each < 4000
