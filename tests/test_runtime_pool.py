"""Threads: every index once, whoever calls; processes fork and end as if there were none."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.runtime_programs import POOL, ROOT, run_python
from tinyfuse import machine
from tinyfuse.emit.prelude import runtime_c
from tinyfuse.errors import ThreadCountError
from tinyfuse.runtime import pool
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import Entry, load

# arrays: extent and grain, a count for each index, the length of the chunk that begins at an index,
# the thread that ran an index
COUNTING = f"""\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
{POOL}
static void count(void *const *buffers, long begin, long end) {{
  int *counts = buffers[1];
  long *lengths = buffers[2], *threads = buffers[3];
  lengths[begin] = end - begin;
  for (long i = begin; i < end; i++) counts[i]++, threads[i] = syscall(SYS_gettid);
}}

int counting(void *const *arrays, void *scratch, const tf_pool *pool) {{
  const long *sizes = arrays[0];
  (void)scratch;
  if (!pool) return 1;
  pool->run(pool, count, arrays, sizes[0], sizes[1]);
  return 0;
}}
"""

# arrays: a counter of the threads that have come, the number that each of two chunks saw in the
# end, the thread that ran each
MEETING = f"""\
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
{POOL}
static void meet(void *const *buffers, long begin, long end) {{
  atomic_int *arrived = buffers[0];
  int *seen = buffers[1];
  long *threads = buffers[2];
  time_t start = time(0);
  for (long i = begin; i < end; i++) {{
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < 2 && time(0) - start < 60) {{}}
    seen[i] = atomic_load(arrived);
    threads[i] = syscall(SYS_gettid);
  }}
}}

int meeting(void *const *arrays, void *scratch, const tf_pool *pool) {{
  (void)scratch;
  pool->run(pool, meet, arrays, 2, 1);
  return 0;
}}
"""

# arrays: 100 rows of 1000 counts
NESTED = f"""\
{POOL}
static void columns(void *const *buffers, long begin, long end) {{
  int *row = buffers[0];
  for (long j = begin; j < end; j++) row[j]++;
}}

static void rows(void *const *buffers, long begin, long end) {{
  const tf_pool *pool = buffers[1];
  for (long i = begin; i < end; i++) {{
    void *const row[] = {{(int *)buffers[0] + 1000 * i}};
    pool->run(pool, columns, row, 1000, 10);
  }}
}}

int nested(void *const *arrays, void *scratch, const tf_pool *pool) {{
  void *const buffers[] = {{arrays[0], (void *)pool}};
  (void)scratch;
  pool->run(pool, rows, buffers, 100, 1);
  return 0;
}}
"""


# With the pool's own text before it: loops of all lengths in pools of one to five threads, with
# times in between in which workers fall asleep.
RACING = """\
#include <stdio.h>
#include <time.h>
static unsigned seed = 1;
static long below(long n) { return (long)((seed = seed * 1103515245 + 12345) >> 16) % n; }

static void increment(void *const *buffers, long begin, long end) {
  int *counts = buffers[0];
  for (long i = begin; i < end; i++) counts[i]++;
}

int main(void) {
  static int counts[4096];
  void *buffers[] = {counts};
  long expected = 0, found = 0;
  for (int loop = 0; loop < 4000; loop++) {
    long extent = 1 + below(4096), grain = 1 + below(64);
    const tf_pool *pool = tf_pool_of(1 + below(5));
    pool->run(pool, increment, buffers, extent, grain);
    expected += extent;
    if (loop % 500 == 0) nanosleep(&(struct timespec){0, 3000000}, 0);
  }
  for (int i = 0; i < 4096; i++) found += counts[i];
  printf("%ld", found - expected);
  return 0;
}
"""


@pytest.fixture(scope="module")
def counting() -> Entry:
    return load(build(COUNTING, "counting", libc=True), "counting")


def count(entry: Entry, extent: int, grain: int, threads: int | None) -> tuple[list[int], set[int]]:
    """Calls it; the chunks' lengths in order and the threads that ran them, all indices once."""
    counts = np.zeros(max(extent, 0), np.int32)
    lengths, ran_by = np.zeros((2, max(extent, 0)), np.int64)
    assert entry([np.array([extent, grain]), counts, lengths, ran_by], None, threads) == 0
    assert (counts == 1).all()
    begins = np.flatnonzero(lengths)
    chunks = lengths[begins].tolist()
    assert begins.tolist() == [0, *np.cumsum(chunks)[:-1].tolist()] if chunks else extent <= 0
    return chunks, set(ran_by.tolist())


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize(
    ("extent", "grain"),
    [
        (1, 1),
        (2, 1),
        (7, 2),
        (64, 64),
        (65, 64),
        (1000, 1),
        (1000, 7),
        (1000, 999),
        (100_003, 4096),
    ],
)
def test_every_index_is_run_once_in_chunks_of_at_least_the_grain(counting, extent, grain, threads):
    chunks, _ = count(counting, extent, grain, threads)
    assert sum(chunks) == extent
    assert all(length >= grain and length % grain == 0 for length in chunks[:-1])
    assert len(chunks) <= 4 * threads


@pytest.mark.parametrize(("extent", "grain"), [(0, 1), (-5, 1), (0, 0)])
def test_no_indices_no_call(counting, extent: int, grain: int):
    assert count(counting, extent, grain, 4) == ([], set())


@pytest.mark.parametrize(("extent", "grain"), [(1, 1), (10, 10), (9, 10), (1, 0)])
def test_what_is_no_longer_than_the_grain_is_one_call(counting, extent: int, grain: int):
    assert count(counting, extent, grain, 4) == ([extent], {threading.get_native_id()})


def test_a_grain_below_one_is_one(counting):
    chunks, _ = count(counting, 3, -4, 2)
    assert chunks == [1, 1, 1]


def test_long_loops_are_cut_into_equal_shares_of_four_chunks_for_each_thread(counting):
    chunks, _ = count(counting, 1000, 10, 2)
    assert chunks == [130, 130, 130, 110] * 2
    chunks, _ = count(counting, 28, 1, 2)
    assert chunks == [4, 4, 4, 2] * 2


def test_a_thread_keeps_to_its_share_from_loop_to_loop(counting):
    """Also beside workers of a loop that had more threads: both chunks wait for each other."""
    count(counting, 1000, 1, 8)
    meeting = load(build(MEETING, "meeting", libc=True), "meeting")
    ran_by = set()
    for _ in range(200):
        arrived, seen, threads = np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros(2, np.int64)
        meeting([arrived, seen, threads], None, 2)
        ran_by.add(tuple(threads.tolist()))
    ((first, second),) = ran_by
    assert first == threading.get_native_id() != second


def test_one_thread_needs_no_pool(counting):
    assert not pool.pool(1)
    assert counting([np.array([10, 1])], None, 1) == 1


def test_two_threads_run_at_the_same_time():
    meeting = load(build(MEETING, "meeting", libc=True), "meeting")
    for _ in range(50):
        arrived, seen, threads = np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros(2, np.int64)
        meeting([arrived, seen, threads], None, 2)
        assert seen.tolist() == [2, 2]


def test_a_loop_in_a_loop_is_run_by_the_thread_that_meets_it():
    nested = load(build(NESTED, "nested"), "nested")
    counts = np.zeros((100, 1000), np.int32)
    nested([counts], None, 4)
    assert (counts == 1).all()


def test_eight_python_threads_call_at_once(counting):
    wrong: list[BaseException] = []

    def call() -> None:
        try:
            for extent in range(1, 300):
                chunks, threads = count(counting, extent, 1, 4)
                assert chunks == [extent]  # not the main thread: it runs its loops by itself
                assert threads == {threading.get_native_id()}
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for extent in range(1, 300):
        count(counting, extent, 1, 4)
    for thread in threads:
        thread.join()
    assert wrong == []


def test_many_loops_one_after_the_other(counting):
    for turn in range(2000):
        count(counting, 2 + turn % 50, 1, 2 + turn % 7)


USING_THE_POOL = """
import os, sys, threading
import numpy as np
from tests.test_runtime_pool import COUNTING, count
from tinyfuse.runtime.build import build
from tinyfuse.runtime.library import load
counting = load(build(COUNTING, "counting", libc=True), "counting")
def tasks():
    return len(os.listdir("/proc/self/task"))
before = tasks()
def works():
    return sum(count(counting, 5000, 10, 4)[0]) == 5000
def in_child(body):
    child = os.fork()
    if child == 0:
        os._exit(0 if body() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def printed(code: str, **environment: str | None) -> list[str]:
    outcome = run_python(USING_THE_POOL + code, **environment)
    assert outcome.stderr == ""
    assert outcome.returncode == 0
    return outcome.stdout.split()


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="there is no /proc")


@needs_proc
def test_no_thread_exists_before_the_first_long_loop():
    code = """
count(counting, 8, 8, 4)
none_for_short = tasks() - before
count(counting, 8, 1, 4)
print(none_for_short, tasks() - before)
count(counting, 8, 1, 3), count(counting, 800, 1, 6)
print(tasks() - before)
"""
    assert printed(code) == ["0", "3", "5"]


@needs_proc
def test_signals_go_to_the_threads_that_python_knows():
    code = """
works()
workers = [t for t in os.listdir("/proc/self/task") if int(t) != threading.get_native_id()]
for worker in workers[-3:]:
    status = open(f"/proc/self/task/{worker}/status").read()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")))
"""
    blocked = printed(code)
    assert len(blocked) == 3
    assert all(int(mask, 16) & 1 << 1 and int(mask, 16) & 1 << 14 for mask in blocked)


def test_a_forked_child_has_a_pool_of_its_own():
    code = """
print(in_child(works), works(), in_child(works), works())
print(in_child(lambda: works() and in_child(works) == 0 and works()))
"""
    assert printed(code) == ["0", "True", "0", "True", "0"]


def test_a_fork_by_another_thread_during_a_loop():
    code = """
stop = False
def fork_and_work():
    global stop
    try:
        print(*[in_child(works) for _ in range(20)])
    finally:
        stop = True
thread = threading.Thread(target=fork_and_work)
thread.start()
while not stop:
    assert works()
thread.join()
print(works())
"""
    assert printed(code) == ["0"] * 20 + ["True"]


def test_a_pool_does_not_keep_the_process():
    assert printed("print(works())") == ["True"]
    assert printed("print(works()); sys.exit()") == ["True"]


def test_a_pool_that_is_at_work_ends_with_the_process():
    """Threads of Python's that are in a loop when the main thread ends, and calls after that."""
    code = """
import atexit, time
atexit.register(lambda: print(works()))
def call():
    while True:
        works()
for _ in range(3):
    threading.Thread(target=call, daemon=True).start()
for _ in range(50):
    works()
print("end", flush=True)
"""
    assert printed(code) == ["end", "True"]


# arrays: counts, of which one is added to by each index
FAILING = f"""\
{POOL}
static void count(void *const *buffers, long begin, long end) {{
  int *counts = buffers[0];
  for (long i = begin; i < end; i++) counts[i]++;
}}

int failing(void *const *arrays, void *scratch, const tf_pool *pool) {{
  (void)scratch;
  pool->run(pool, count, arrays, 1000, 10);
  return 5;
}}
"""


def test_a_kernel_that_fails_leaves_the_pool_as_it_was(counting):
    failing = load(build(FAILING, "failing"), "failing")
    counts = np.zeros(1000, np.int32)
    for turn in range(1, 20):
        assert failing([counts], None, 4) == 5
        assert (counts == turn).all()
        count(counting, 1000, 10, 4)


JITTED = """
import multiprocessing, os, sys
import numpy as np
import tinyfuse

@tinyfuse.jit(threads=4)
def waves(x):
    return np.exp(-x * x).sum(axis=1)

X = np.linspace(-1, 1, 1 << 18).reshape(64, -1)

def digest(number):
    return waves(X * number).tobytes()

def main(method, used):
    if used:
        digest(1)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        found = pool.map(digest, range(4))
        again = pool.map(waves, [X, X])
    expected = [digest(n) for n in range(4)]
    print(found == expected, all((each == waves(X)).all() for each in again))

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "used")
"""


@pytest.mark.parametrize("used", ["unused", "used"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing(method: str, used: str, tmp_path: Path):
    """With a pool that their parent has used, or not."""
    script = tmp_path / "waves.py"
    script.write_text(JITTED)
    outcome = subprocess.run(
        [sys.executable, script, method, used],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (outcome.stdout, outcome.stderr) == ("True True\n", "")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_two_processes_on_one_core_get_done():
    """Four threads each, where one that waited for another by spinning would take its turn."""
    code = f"""
os.sched_setaffinity(0, [{min(os.sched_getaffinity(0))}])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(300):
    count(counting, 4000, 10, 4)
print("done")
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", USING_THE_POOL + code],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert outputs == ["done\n", "done\n"]


def test_beside_the_threads_of_a_blas(counting):
    """Whose own threads spin for a while after each product."""
    a = np.random.default_rng(0).standard_normal((256, 256))
    expected = a @ a
    for _ in range(100):
        assert ((a @ a) == expected).all()
        count(counting, 4000, 10, 4)


def test_default_is_what_the_process_may_use():
    code = "from tinyfuse.runtime.pool import num_threads\nprint(num_threads())"
    outcome = run_python(code, TINYFUSE_NUM_THREADS=None)
    assert outcome.stdout == f"{machine.available_cores()}\n"
    one_core = f"import os\nos.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n{code}"
    assert run_python(one_core, TINYFUSE_NUM_THREADS=None).stdout == "1\n"
    assert run_python(code, TINYFUSE_NUM_THREADS="3").stdout == "3\n"
    assert run_python(code, TINYFUSE_NUM_THREADS="100000").stdout == "256\n"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("all", "TINYFUSE_NUM_THREADS='all' is no number of threads, such as 4"),
        ("-1", "TINYFUSE_NUM_THREADS='-1' is no number of threads, such as 4"),
        ("0", "0 is no number of threads: it must be a whole number from 1"),
    ],
)
def test_a_setting_that_is_no_number_is_an_error(setting: str, message: str):
    code = "from tinyfuse.runtime.pool import num_threads\nnum_threads()"
    outcome = run_python(code, TINYFUSE_NUM_THREADS=setting)
    assert outcome.stderr.splitlines()[-1] == f"tinyfuse.errors.ThreadCountError: {message}"


def test_set_num_threads(counting):
    default = pool.num_threads()
    try:
        pool.set_num_threads(1)
        assert pool.num_threads() == 1
        assert not pool.pool()
        pool.set_num_threads(5)
        assert pool.num_threads() == 5
        assert pool.pool() == pool.pool(5) != pool.pool(4)
        assert len(count(counting, 1000, 1, None)[0]) == 20
    finally:
        pool.set_num_threads(None)
    assert pool.num_threads() == default


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_what_is_no_number_of_threads_is_refused(threads: object):
    with pytest.raises(ThreadCountError) as raised:
        pool.set_num_threads(threads)  # type: ignore[arg-type]
    expected = f"{threads!r} is no number of threads: it must be a whole number from 1"
    assert str(raised.value) == expected


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_pool_c_has_no_warnings(compiler: str, tmp_path: Path):
    command = ["gcc"]
    if compiler == "zig":
        zig = pytest.importorskip(
            "ziglang", reason="the ziglang wheel is not installed (extra: zig)"
        )
        command = [str(Path(zig.__file__).with_name("zig")), "cc"]
    options = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-c", "-o", "pool.o"]
    caches = {f"ZIG_{name}_CACHE_DIR": str(tmp_path / "zig") for name in ("GLOBAL", "LOCAL")}
    outcome = subprocess.run(
        [*command, *options, str(runtime_c() / "pool.c")],
        cwd=tmp_path,
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_threads_do_not_race(tmp_path: Path):
    """What one thread writes without an atomic operation no other one looks at meanwhile."""
    (tmp_path / "racing.c").write_text((runtime_c() / "pool.c").read_text() + RACING)
    flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=thread", "-pthread", "racing.c", "-o", "racing"]
    compiled = subprocess.run(["gcc", *flags], cwd=tmp_path, capture_output=True, text=True)
    if compiled.returncode:
        pytest.skip("gcc has no thread sanitizer here")
    ran = subprocess.run([tmp_path / "racing"], capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "0", "")
